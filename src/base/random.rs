//! Secrets that nobody can guess.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};

/// 256 random bits, encoded for a URL.
pub fn text() -> Result<String, Unspecified> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
