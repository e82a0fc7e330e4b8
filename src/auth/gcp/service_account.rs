//! Signs the JSON web token with which a service account requests an access token (RFC 7523).

use crate::base::json::json;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;

/// The longest lifetime that Google accepts, in seconds.
const LIFE: u64 = 3600;

pub struct Claims<'a> {
    pub email: &'a str,
    pub scope: &'a str,
    pub audience: &'a str,
    pub now_ms: u64,
}

/// A JSON web token, signed with RS256. `key` is PKCS#8 in PEM. An error is the end of a sentence that begins
/// "The private key", and does not quote the key.
pub fn assertion(claims: &Claims<'_>, key: &str, key_id: Option<&str>) -> Result<String, &'static str> {
    let der =
        PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map_err(|_| "is not a PKCS#8 key in PEM form")?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
        .map_err(|_| "is not an RSA key of 2048 bits or more")?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = key_id {
        header["kid"] = id.into();
    }
    let now = claims.now_ms / 1000;
    let claims = json!({
        "iss": claims.email, "scope": claims.scope, "aud": claims.audience, "exp": now + LIFE, "iat": now,
    });
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    let random = SystemRandom::new();
    pair.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).map_err(|_| "cannot sign")?;
    Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}
