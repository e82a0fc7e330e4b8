//! Every source of tokens, against scripted services.

use super::*;
use crate::base::testing::TempDir;
use crate::llm::testing::{Received, Server};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// Made for these tests.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDxLK5QrZk3BXrq
BYmxtQ55NWD/bVQXYjVwcnL4+G/heB7Hpvd2qqXKYbelEbLCvZUdAopngTy4wefA
b1dDZRoaXg/2HaVoNro+h+JmZ+1C6y1yDAESIOo+IRILkyh8d3hxdKoWQl+sgPt0
b69XXcdJ4J6aFuEiwe0vyJjbyEZRkwed+2iBOm+9p3aAi+7cOooN9UJWwgnyzoA+
7Er4m4zBjj5gidpBM5ViKtGbHo8TA2aLr7TO6FjLy+knWfi4qr4PlPYVmXF6VoU1
lqQkZgoMlzbAHJ85JOZk7unR6zPbjagkG9zuV9vQnBxUef/YSEZJ0XKEjhn1Cs0n
a0U9QzmVAgMBAAECggEAA/Ty8TKENKO5i10tS7khkjnaifufC1cJYgPgSTk46TmF
urDE9TWwzJWp6F5N3eF4DpfSYMLSjVENpOaTAxwFocfZF+zbucXiwaGMO/7ALXpj
sriMCBV6OufamD0FaWSQiDZlj1LulnGmobEuu4HIvdINpOU3zR1rEX8hAQe12YDw
/EVTaODBwR0yXOqJY668F1oUNC6CTO5MWR90BhLUufasrx3q2fUV5Ehoawalb8r0
QapzWDf/jhuT1GJGaiCrnRE6lWCqnXVak85AOhaE/Ph0JO9t/WynFPw8O8vP2bsK
qGKP7dwCI+AqsaPKLHqtyrMeYLCTXn9uzHw/bq1RIQKBgQD9ddg0m3we5fhs0Wg4
aNK7nhJCzaUch5yBvNQuht9ES9/IMnrkzkSgzGBJNvGt4ch1FJ3hPBC5TJJPknrE
I0wljj5SKZUH9aOBKDuS7HnekxCKXx13LEvIb0ZEmjmT9NiAlSI4Y7gmqrvHOnMT
qnVRXTQDfgiJYxVJZNyOeOaX5QKBgQDzl1JleW/yCPCc2eJhTE5EDDbhD9HvGYP9
Gztid6y2TIIH8oEfHMbJRssu7wNJYtmV1hKsVAI1Ef2Pp4+InKqhlVHd0MCRGz/o
X0hw55atm6RcAMie0cCj2+7olsRyPd+bvTDyenbyc5IWj/a6uDxdeUhg01P9HugW
XLtqKQuf8QKBgFUJiLR9xjMHrUW1LGZgpPNVoYLQRClCRnwwwm+pyJa9biNY7Gp/
2f6pE1T9HjDco8jEVgQPhvzkd+JCnvXXceDXzIj8coftHiJjQTmWJX1Lki0apGQr
dHGXA9hYdiDx8QGTB5wruMkgV0gMkDd05U+bGaxiSLLvj2DEektCvPsRAoGAe0At
qLpxMf3kAPkd2i1JzJSBkA75Igm/BuooegIjmXnMsUi6nItq6ZywYeb9urwRbAcN
G7TGCSQ5L96QeYcLrwZmjd16EfG/vEu506baTq1Z1FNxLyriVgaKM5VVgJhd8+ce
RRJB7Rsc592f8YoWwRUE0jkbXg+tTuNM0MJD54ECgYEAuAwmFx2c7Sj3drU1KTPo
EYk/LG6lLMlZo+Yx/bTe9AnikC6T/IhKS8UeQSAXaPrJGz5un1PHdbGLG/VB+ALJ
Hdy5pNiLauiw69a5Gi0Q83ZvNLMqlg75BXqoaSRxtkdCXr0WU5rYCPIV7HdYYqPA
AWsjoHllY1nOU0FAB3EPXZU=
-----END PRIVATE KEY-----
";

/// A folder, and a server that gives one answer to all.
struct World {
    folder: TempDir,
    server: Server,
    seen: Arc<Mutex<Vec<Received>>>,
    gcp: Gcp,
}

impl World {
    fn new(status: &'static str, headers: &'static str, body: Value) -> Self {
        let folder = TempDir::create();
        std::fs::create_dir_all(folder.path().join(".config/gcloud")).unwrap();
        let seen: Arc<Mutex<Vec<Received>>> = Arc::default();
        let server = Server::start({
            let seen = seen.clone();
            move |connection| {
                while let Some(request) = connection.request() {
                    seen.lock().unwrap().push(request);
                    connection.answer(status, headers, body.to_string());
                }
            }
        });
        Self { folder, server, seen, gcp: Gcp::default() }
    }

    /// One that gives a token for `seconds`.
    fn giving(seconds: u64) -> Self {
        Self::new("200 OK", "", json!({"access_token": "ya29.x", "expires_in": seconds}))
    }

    fn file(&self, name: &str, mut content: Value) -> String {
        if content.get("token_uri").is_none() {
            content["token_uri"] = self.server.url("/token").into();
        }
        self.folder.write(name, content.to_string()).to_str().unwrap().to_owned()
    }

    fn ask(&self, variables: &[(&str, &str)]) -> Result<Token, StreamError> {
        let settings = variables.iter();
        let mut settings: Vec<_> =
            settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        settings.push(("HOME".to_owned(), self.folder.path().to_str().unwrap().to_owned()));
        let env = Env::of([("METADATA_SERVER_DETECTION", "none")]).with(&settings);
        self.gcp.token(&env, &CancelToken::new())
    }

    #[track_caller]
    fn fails(&self, variables: &[(&str, &str)], parts: &[&str]) {
        let Err(error) = self.ask(variables) else { panic!("no error") };
        for part in parts {
            assert!(error.message.contains(part), "{part:?} is not in: {}", error.message);
        }
        assert!(!error.message.contains("canary"), "{}", error.message);
    }

    fn seen(&self) -> Vec<Received> {
        self.seen.lock().unwrap().clone()
    }
}

fn user() -> Value {
    json!({"type": "authorized_user", "client_id": "id/1", "client_secret": "canary-c", "refresh_token": "canary-r",
        "quota_project_id": "payer"})
}

#[test]
fn a_user_s_sign_in_is_exchanged_for_a_token_once() {
    let world = World::giving(3600);
    world.file(".config/gcloud/application_default_credentials.json", user());
    for _ in 0..2 {
        let token = world.ask(&[]).unwrap();
        assert_eq!((token.access.expose(), token.quota_project.as_deref()), ("ya29.x", Some("payer")));
    }
    let seen = world.seen();
    assert_eq!(seen.len(), 1);
    let body = String::from_utf8_lossy(&seen[0].body);
    assert_eq!(
        body,
        "client_id=id%2F1&client_secret=canary-c&refresh_token=canary-r&grant_type=refresh_token"
    );
    let token = world.ask(&[("GOOGLE_CLOUD_QUOTA_PROJECT", "other")]).unwrap();
    assert_eq!(token.quota_project.as_deref(), Some("other"));
    let config = world.folder.path().join(".config/gcloud");
    let config = config.to_str().unwrap();
    assert!(world.ask(&[("CLOUDSDK_CONFIG", config)]).is_ok());
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn a_token_that_expires_soon_is_renewed() {
    let world = World::giving(60);
    let file = world.file("adc.json", user());
    for count in 1..3 {
        assert!(world.ask(&[("GOOGLE_APPLICATION_CREDENTIALS", &file)]).is_ok());
        assert_eq!(world.seen().len(), count);
    }
}

#[test]
fn a_service_account_signs_what_it_says() {
    let world = World::giving(3600);
    let account = json!({"type": "service_account", "client_email": "me@p.test", "private_key": KEY, "private_key_id": "k1"});
    let file = world.file("adc.json", account);
    assert!(world.ask(&[("GOOGLE_APPLICATION_CREDENTIALS", &file)]).is_ok());
    let seen = world.seen();
    let body = String::from_utf8_lossy(&seen[0].body).into_owned();
    let start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let assertion = body.strip_prefix(start).unwrap();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).unwrap();
    let parts: Vec<Value> =
        signed.split('.').map(|part| serde_json::from_slice(&decode(part)).unwrap()).collect();
    assert_eq!(parts[0], json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    assert_eq!(
        (&parts[1]["iss"], &parts[1]["aud"]),
        (&json!("me@p.test"), &json!(world.server.url("/token")))
    );
    assert_eq!(parts[1]["scope"], SCOPE);
    let time = |name: &str| parts[1][name].as_u64().unwrap();
    assert_eq!(time("exp"), time("iat") + 3600);
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    assert!(public.verify(signed.as_bytes(), &decode(signature)).is_ok());
}

#[test]
fn the_metadata_server() {
    let body = json!({"access_token": "ya29.m", "expires_in": 3600});
    let world = World::new("200 OK", "Metadata-Flavor: Google\r\n", body.clone());
    let host = world.server.address().to_string();
    let here = [("GCE_METADATA_HOST", &*host), ("METADATA_SERVER_DETECTION", "assume-present")];
    assert_eq!(world.ask(&here).unwrap().access.expose(), "ya29.m");
    let seen = world.seen();
    assert!(seen[0].line.starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token "));
    assert_eq!(seen[0].header("metadata-flavor"), Some("Google"));
    let other = World::new("200 OK", "", body);
    let host = other.server.address().to_string();
    let here = [("GCE_METADATA_HOST", &*host), ("METADATA_SERVER_DETECTION", "assume-present")];
    other.fails(&here, &["is not Google's metadata server"]);
    other.fails(&[], &["no Google application default credentials", "gcloud auth application-default login"]);
    assert_eq!(other.seen().len(), 1);
}

#[test]
fn credentials_that_cannot_be_used_say_why() {
    let world = World::new(
        "400 Bad",
        "",
        json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."}),
    );
    let cases = [
        (user(), "Token has been expired or revoked. (invalid_grant)"),
        (json!({}), "\"type\""),
        (json!({"type": "authorized_user", "client_id": "x"}), "\"client_secret\""),
        (json!({"type": "external_account"}), "\"external_account\", which is not known here"),
        (json!({"type": "service_account", "client_email": "m", "private_key": "canary"}), "PKCS#8"),
        (json!({"type": "authorized_user", "token_uri": "http://example.test/"}), "without HTTPS"),
    ];
    for (content, part) in cases {
        let file = world.file("adc.json", content);
        world.fails(&[("GOOGLE_APPLICATION_CREDENTIALS", &file)], &[part, "adc.json"]);
    }
    world.fails(&[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/x")], &["Cannot read", "/nowhere/x"]);
    let file = world.file("adc.json", json!({}));
    std::fs::write(&file, "{canary").unwrap();
    world.fails(&[("GOOGLE_APPLICATION_CREDENTIALS", &file)], &["not valid JSON"]);
}
