//! PKCE (RFC 7636): proves to the token endpoint that the program which requests the token also started the
//! sign-in.

use super::entry::failed;
use crate::llm::event::StreamError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

pub struct Pkce {
    pub verifier: String,
    pub challenge: String,
}

impl Pkce {
    pub fn new() -> Result<Self, StreamError> {
        let verifier = random()?;
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        Ok(Self { verifier, challenge })
    }
}

/// 256 random bits, encoded for a URL.
pub fn random() -> Result<String, StreamError> {
    crate::base::random::text().map_err(|_| failed("the system has no random numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_hash_of_the_verifier() {
        let hash = |text: &str| URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
        // The example of the RFC's appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(hash(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (Pkce::new().unwrap(), Pkce::new().unwrap());
        assert_eq!(one.challenge, hash(&one.verifier));
        assert_ne!(one.verifier, two.verifier);
        assert_eq!(one.verifier.len(), 43);
    }
}
