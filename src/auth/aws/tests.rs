//! Every source of keys, against scripted services.

use super::*;
use crate::base::testing::TempDir;
use crate::base::time;
use crate::llm::secret::Secret;
use crate::llm::testing::{Received, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const HOUR_MS: u64 = 3_600_000;

fn later(ms: u64) -> String {
    time::iso(now_ms() + ms)
}

/// A home folder, and services that answer by method and path.
struct World {
    home: TempDir,
    server: Server,
    seen: Arc<Mutex<Vec<Received>>>,
    settings: Vec<(String, String)>,
    aws: Aws,
}

impl World {
    /// `answers`: the beginning of a request's line, the status and the body.
    fn new(answers: Vec<(&'static str, &'static str, String)>) -> Self {
        let home = TempDir::create();
        std::fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
        let seen: Arc<Mutex<Vec<Received>>> = Arc::default();
        let server = Server::start({
            let seen = seen.clone();
            move |connection| {
                while let Some(request) = connection.request() {
                    let mut rows = answers.iter();
                    let row = rows.find(|(start, ..)| request.line.starts_with(start));
                    seen.lock().unwrap().push(request);
                    let (status, body) =
                        row.map_or(("404 Not Found", ""), |(_, status, body)| (status, body));
                    connection.answer(status, "", body);
                }
            }
        });
        let world = Self { aws: Aws::default(), settings: Vec::new(), home, server, seen };
        let (home, url) = (world.home.path().to_str().unwrap().to_owned(), world.server.url(""));
        // Nothing that is not scripted is reached.
        world
            .with("HOME", &home)
            .with("AWS_ENDPOINT_URL_STS", &url)
            .with("AWS_ENDPOINT_URL_SSO", &url)
            .with("AWS_ENDPOINT_URL_SSO_OIDC", &url)
            .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", &url)
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        self.home.write(&format!(".aws/{name}"), text);
        self
    }

    fn access_as(&self, own_profile: bool, has_key: bool) -> Result<Access, StreamError> {
        let model = Model {
            id: "m".into(),
            base_url: "https://bedrock-runtime.us-east-1.amazonaws.com".into(),
            ..Model::default()
        };
        let env = Env::of([]).with(&self.settings);
        let asked = Asked { model: &model, env: &env, own_profile, has_key };
        self.aws.access(&asked, &CancelToken::new())
    }

    fn access(&self) -> Result<Access, StreamError> {
        self.access_as(false, false)
    }

    /// Id, secret and token of the keys that are found.
    #[track_caller]
    fn check(&self, id: &str, secret: &str, token: Option<&str>) {
        let keys = self.access().unwrap().keys.unwrap();
        let found = keys.session_token.as_ref().map(Secret::expose);
        assert_eq!((&*keys.id, keys.secret.expose(), found), (id, secret, token));
        assert!(!format!("{keys:?}").contains(secret));
    }

    /// Checks that asking fails with all of `parts` in the text, and no secret.
    #[track_caller]
    fn fails(&self, parts: &[&str]) {
        let error = self.access().unwrap_err();
        for part in parts {
            assert!(error.message.contains(part), "{part:?} is not in: {}", error.message);
        }
        assert!(!error.message.contains("canary"), "{}", error.message);
    }

    fn seen(&self) -> Vec<Received> {
        self.seen.lock().unwrap().clone()
    }
}

fn quiet() -> World {
    World::new(Vec::new())
}

fn sts_answer(life_ms: u64) -> String {
    format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA</AccessKeyId>\
         <SecretAccessKey>role&amp;secret</SecretAccessKey><SessionToken>token==</SessionToken>\
         <Expiration>{}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        later(life_ms)
    )
}

const STATIC: &str = "[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = base-secret\n";

#[test]
fn keys_in_the_environment_come_before_a_profile_there_and_after_one_of_the_credential() {
    let world = quiet()
        .file("credentials", STATIC)
        .with("AWS_ACCESS_KEY_ID", "AKIDENV")
        .with("AWS_SECRET_ACCESS_KEY", "env-secret")
        .with("AWS_PROFILE", "base");
    world.check("AKIDENV", "env-secret", None);
    let own = world.access_as(true, false).unwrap();
    assert_eq!(own.keys.unwrap().id, "AKIDBASE");
    let world = world.with("AWS_SESSION_TOKEN", "env-token");
    world.check("AKIDENV", "env-secret", Some("env-token"));
    assert_eq!(world.access_as(false, true).unwrap().keys, None);
    let skipped = world.with("AWS_BEDROCK_SKIP_AUTH", "1").access_as(false, true);
    assert_eq!(skipped.unwrap().keys.unwrap().id, "dummy-access-key");
}

#[test]
fn both_files_make_a_profile() {
    let world = quiet()
        .file("config", "[profile base]\nregion = eu-west-1\naws_access_key_id = OLD\n[default]\nregion = us-west-2\n")
        .file("credentials", &format!("{STATIC}[default]\naws_access_key_id=AKIDDEFAULT\naws_secret_access_key=default-secret\naws_session_token=t\n"));
    world.check("AKIDDEFAULT", "default-secret", Some("t"));
    assert_eq!(world.access().unwrap().region, "us-west-2");
    let world = world.with("AWS_PROFILE", "base");
    world.check("AKIDBASE", "base-secret", None);
    let access = world.access().unwrap();
    assert_eq!(access.endpoint, "https://bedrock-runtime.eu-west-1.amazonaws.com");
    let world = world.with("AWS_REGION", "ap-south-1");
    assert_eq!(world.access().unwrap().region, "ap-south-1");
    let elsewhere = world.home.path().join("other").to_str().unwrap().to_owned();
    std::fs::write(&elsewhere, "[mine]\naws_access_key_id=A\naws_secret_access_key=other-secret").unwrap();
    let world = world.with("AWS_SHARED_CREDENTIALS_FILE", &elsewhere).with("AWS_PROFILE", "mine");
    world.check("A", "other-secret", None);
    world.with("AWS_PROFILE", "base").with("AWS_CONFIG_FILE", "/nowhere").fails(&[
        "\"base\"",
        "/nowhere",
        "AWS_PROFILE",
    ]);
}

#[test]
fn a_role_of_another_profile_is_asked_for_once() {
    let config = "[profile work]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\nexternal_id = e/1\nrole_session_name = me\nregion = eu-west-1\n";
    let world = World::new(vec![("POST / ", "200 OK", sts_answer(HOUR_MS))])
        .file("config", config)
        .file("credentials", STATIC)
        .with("AWS_PROFILE", "work");
    world.check("ASIA", "role&secret", Some("token=="));
    world.check("ASIA", "role&secret", Some("token=="));
    let seen = world.seen();
    assert_eq!(seen.len(), 1);
    let body = String::from_utf8_lossy(&seen[0].body);
    assert_eq!(
        body,
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx&RoleSessionName=me&DurationSeconds=3600&ExternalId=e%2F1"
    );
    let signature = seen[0].header("authorization").unwrap();
    assert!(
        signature.contains("Credential=AKIDBASE/") && signature.contains("/eu-west-1/sts/aws4_request"),
        "{signature}"
    );
    let address = world.server.address().to_string();
    assert_eq!(seen[0].header("host"), Some(address.as_str()));
}

#[test]
fn keys_that_expire_soon_are_renewed_and_used_while_the_service_is_away() {
    let config = "[profile work]\nrole_arn = r\ncredential_source = Environment\n";
    let world = World::new(vec![("POST / ", "200 OK", sts_answer(60_000))])
        .file("config", config)
        .with("AWS_ACCESS_KEY_ID", "AKIDENV")
        .with("AWS_SECRET_ACCESS_KEY", "env-secret")
        .with("AWS_PROFILE", "work");
    for count in 1..3 {
        let keys = world.access_as(true, false).unwrap().keys.unwrap();
        assert_eq!((&*keys.id, world.seen().len()), ("ASIA", count));
    }
    let world = world.with("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9");
    assert_eq!(world.access_as(true, false).unwrap().keys.unwrap().id, "ASIA");
}

#[test]
fn roles_that_cannot_be_had() {
    let refused =
        "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>";
    let world =
        World::new(vec![("POST / ", "403 Forbidden", refused.into())]).file("credentials", STATIC).file(
            "config",
            "\
            [profile work]\nrole_arn = arn:x\nsource_profile = base\n\
            [profile a]\nrole_arn = r\nsource_profile = b\n[profile b]\nrole_arn = r\nsource_profile = a\n\
            [profile mfa]\nrole_arn = r\nsource_profile = base\nmfa_serial = m\n\
            [profile gone]\nrole_arn = r\nsource_profile = nobody\n\
            [profile odd]\nrole_arn = r\ncredential_source = Moon\n\
            [profile env]\nrole_arn = r\ncredential_source = Environment\n\
            [profile login]\nlogin_session = x\n",
        );
    let rows: [(&str, &[&str]); 8] = [
        ("work", &["arn:x", "AccessDenied: not you"]),
        ("a", &["b, a", "source_profile of each other"]),
        ("mfa", &["multi-factor", "credential_process"]),
        ("gone", &["\"nobody\"", "source_profile"]),
        (
            "odd",
            &[
                "Unsupported credential source in profile odd. Got Moon, expected EcsContainer or Ec2InstanceMetadata or Environment.",
            ],
        ),
        ("env", &["AWS_ACCESS_KEY_ID"]),
        ("login", &["aws login", "export-credentials"]),
        ("none", &["\"none\" is not in", "aws configure"]),
    ];
    let mut world = world;
    for (profile, parts) in rows {
        world = world.with("AWS_PROFILE", profile);
        world.fails(parts);
    }
}

#[test]
fn a_program_prints_the_keys() {
    let process = |output: &str| {
        let config = format!("[profile p]\ncredential_process = printf '%s' '{output}'\n");
        quiet().file("config", &config).with("AWS_PROFILE", "p")
    };
    let keys =
        |more: &str| format!(r#"{{"Version":1,"AccessKeyId":"A","SecretAccessKey":"canary-1"{more}}}"#);
    process(&keys("")).check("A", "canary-1", None);
    let more = format!(r#","SessionToken":"t","Expiration":"{}""#, later(HOUR_MS));
    process(&keys(&more)).check("A", "canary-1", Some("t"));
    let past = r#","Expiration":"2020-01-01T00:00:00Z""#;
    process(&keys(past)).fails(&["\"p\" returned expired credentials"]);
    process(&keys(r#","Expiration":"soon""#)).fails(&["Expiration"]);
    process("canary-2").fails(&["returned invalid JSON"]);
    process(r#"{"Version":2}"#).fails(&["did not return Version 1"]);
    process(r#"{"Version":1,"AccessKeyId":"A"}"#).fails(&["returned invalid credentials"]);
    let failing = "[profile p]\ncredential_process = echo canary-3; exit 3\n";
    let failing = quiet().file("config", failing).with("AWS_PROFILE", "p");
    failing.fails(&["credential_process", "\"p\"", "exit code 3"]);
}

fn sso(token: &Value, answers: Vec<(&'static str, &'static str, String)>) -> World {
    let config = "[profile s]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev ops\n\
        [sso-session corp]\nsso_start_url = https://corp.test/start\nsso_region = eu-west-1\n\
        [profile old]\nsso_start_url = corp\nsso_account_id = 1\nsso_role_name = dev ops\nsso_region = eu-west-1\n";
    let mut all = answers;
    let keys = json!({"roleCredentials": {"accessKeyId": "SSO", "secretAccessKey": "sso-secret",
        "sessionToken": "sso-token", "expiration": now_ms() + HOUR_MS}});
    all.push(("GET /federation/credentials?role_name=dev%20ops&account_id=1 ", "200 OK", keys.to_string()));
    let world = World::new(all).file("config", config).with("AWS_PROFILE", "s");
    std::fs::write(cache_of(&world), token.to_string()).unwrap();
    world
}

fn cache_of(world: &World) -> PathBuf {
    // The SHA-1 of `corp`.
    let name = "ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    world.home.path().join(".aws/sso/cache").join(name)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_sso_sign_in_is_exchanged_for_keys() {
    let world = sso(&json!({"accessToken": "bearer-1", "expiresAt": later(HOUR_MS)}), Vec::new());
    world.check("SSO", "sso-secret", Some("sso-token"));
    assert_eq!(world.seen()[0].header("x-amz-sso_bearer_token"), Some("bearer-1"));
    let expires = later(HOUR_MS).replace(".000Z", "UTC").replace('Z', "UTC");
    let world = sso(&json!({"accessToken": "bearer-2", "expiresAt": expires}), Vec::new());
    let world = world.with("AWS_PROFILE", "old");
    world.check("SSO", "sso-secret", Some("sso-token"));
    assert_eq!(world.seen()[0].header("x-amz-sso_bearer_token"), Some("bearer-2"));
}

#[test]
fn an_sso_token_is_renewed_where_the_cache_says_how() {
    let cached = |expires: String| {
        json!({"accessToken": "bearer-1", "expiresAt": expires, "clientId": "c",
            "clientSecret": "canary-c", "refreshToken": "canary-r", "other": [1]})
    };
    let fresh = json!({"accessToken": "bearer-2", "expiresIn": 3600, "refreshToken": "r2"});
    let world = sso(&cached(later(0)), vec![("POST /token ", "200 OK", fresh.to_string())]);
    world.check("SSO", "sso-secret", Some("sso-token"));
    let seen = world.seen();
    let asked: Value = serde_json::from_slice(&seen[0].body).unwrap();
    let expected = json!({"clientId": "c", "clientSecret": "canary-c", "refreshToken": "canary-r", "grantType": "refresh_token"});
    assert_eq!(asked, expected);
    assert_eq!(seen[1].header("x-amz-sso_bearer_token"), Some("bearer-2"));
    let kept = read(&cache_of(&world));
    assert_eq!(
        (&kept["accessToken"], &kept["refreshToken"], &kept["other"]),
        (&json!("bearer-2"), &json!("r2"), &json!([1]))
    );
    // A token that is still good is used when it cannot be renewed.
    let world = sso(&cached(later(60_000)), vec![("POST /token ", "500 No", String::new())]);
    world.check("SSO", "sso-secret", Some("sso-token"));
    let world = sso(&cached(later(0)), vec![("POST /token ", "400 No", String::new())]);
    world.fails(&["has expired", "aws sso login --profile s"]);
}

#[test]
fn sso_sign_ins_that_cannot_be_used_say_what_to_do() {
    let gone = sso(&json!({}), Vec::new());
    gone.fails(&["holds no SSO token", "aws sso login --profile s"]);
    std::fs::remove_file(cache_of(&gone)).unwrap();
    gone.fails(&["not signed in", "aws sso login"]);
    let refused =
        vec![("GET /federation", "401 No", r#"{"message":"Session token not found or invalid"}"#.to_owned())];
    let token = json!({"accessToken": "canary", "expiresAt": later(HOUR_MS)});
    sso(&token, refused).fails(&[
        "Session token not found or invalid",
        "role dev ops of account 1",
        "aws sso login",
    ]);
    let config = "[profile s]\nsso_session = nobody\nsso_account_id = 1\n[profile t]\nsso_account_id = 1\n";
    let world = quiet().file("config", config).with("AWS_PROFILE", "s");
    world.fails(&["sso-session \"nobody\""]);
    world.with("AWS_PROFILE", "t").fails(&["needs sso_region"]);
}

#[test]
fn a_web_identity_is_exchanged_for_keys() {
    let world = World::new(vec![("POST / ", "200 OK", sts_answer(HOUR_MS))]).file("jwt", "canary.jwt\n");
    let file = world.home.path().join(".aws/jwt").to_str().unwrap().to_owned();
    let world = world
        .with("AWS_WEB_IDENTITY_TOKEN_FILE", &file)
        .with("AWS_ROLE_ARN", "arn:x")
        .with("AWS_ROLE_SESSION_NAME", "me");
    world.check("ASIA", "role&secret", Some("token=="));
    let seen = world.seen();
    let body = String::from_utf8_lossy(&seen[0].body);
    assert_eq!(
        body,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Ax&RoleSessionName=me&WebIdentityToken=canary.jwt"
    );
    assert_eq!(seen[0].header("authorization"), None);
    world.with("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere").fails(&["Cannot read", "/nowhere"]);
}

#[test]
fn the_container_s_service() {
    let keys = json!({"AccessKeyId": "C", "SecretAccessKey": "c-secret", "Token": "t", "Expiration": later(HOUR_MS)});
    let world = World::new(vec![
        ("GET /creds?x=1 ", "200 OK", keys.to_string()),
        ("GET /bad ", "200 OK", "{}".into()),
        ("GET /no ", "403 No", r#"{"Message":"not you"}"#.into()),
    ]);
    let url = |world: &World, path: &str| world.server.url(path);
    let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    let creds = url(&world, "/creds?x=1");
    let world = world.with(full, &creds).with("AWS_CONTAINER_AUTHORIZATION_TOKEN", "canary-t");
    world.check("C", "c-secret", Some("t"));
    assert_eq!(world.seen()[0].header("authorization"), Some("canary-t"));
    let world = world.file("token", "canary-file\n");
    let file = world.home.path().join(".aws/token").to_str().unwrap().to_owned();
    let mut world = world.with("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &file);
    world.aws = Aws::default();
    world.check("C", "c-secret", Some("t"));
    assert_eq!(world.seen()[1].header("authorization"), Some("canary-file"));
    let (bad, no) = (url(&world, "/bad"), url(&world, "/no"));
    let world = world.with(full, &bad);
    world.fails(&["did not answer with credentials"]);
    let world = world.with(full, &no);
    world.fails(&["status 403: not you"]);
    for far in
        ["http://example.test/x", "http://169.254.170.3/", "http://127.0.0.1.test/", "ftp://localhost/"]
    {
        quiet().with(full, far).fails(&[far]);
    }
}

#[test]
fn the_instance_s_service() {
    let keys = json!({"Code": "Success", "AccessKeyId": "I", "SecretAccessKey": "i-secret", "Token": "t", "Expiration": later(HOUR_MS)});
    let roles = "/latest/meta-data/iam/security-credentials/";
    let world = World::new(vec![
        ("PUT /latest/api/token ", "200 OK", "imds-token".into()),
        ("GET /latest/meta-data/iam/security-credentials/ ", "200 OK", "my-role\n".into()),
        ("GET /latest/meta-data/iam/security-credentials/my-role ", "200 OK", keys.to_string()),
    ]);
    world.check("I", "i-secret", Some("t"));
    let seen = world.seen();
    assert_eq!(seen[0].header("x-aws-ec2-metadata-token-ttl-seconds"), Some("21600"));
    assert!(seen[1].line.contains(roles));
    assert_eq!(seen[2].header("x-aws-ec2-metadata-token"), Some("imds-token"));
    let world = world.with("AWS_EC2_METADATA_DISABLED", "true");
    assert_eq!(world.seen().len(), 3);
    let off = quiet().with("AWS_EC2_METADATA_DISABLED", "true");
    off.fails(&["No AWS credentials were found", "AWS_PROFILE"]);
    assert!(off.seen().is_empty());
    quiet().fails(&["No AWS credentials were found"]);
    let strange = vec![
        ("PUT /latest/api/token ", "200 OK", "t".to_owned()),
        ("GET /latest/meta-data", "200 OK", "../../x".to_owned()),
    ];
    World::new(strange).fails(&["has no role"]);
}

#[test]
fn a_cancel_ends_the_search() {
    let server = Server::start(|connection| {
        connection.request();
        connection.wait_for_close();
    });
    let world = quiet().with("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.url("/"));
    let env = Env::of([]).with(&world.settings);
    let asked = Asked { model: &Model::default(), env: &env, own_profile: false, has_key: false };
    let cancel = CancelToken::new();
    std::thread::scope(|scope| {
        let got = scope.spawn(|| world.aws.access(&asked, &cancel));
        while server.accepted() == 0 {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert_eq!(got.join().unwrap().unwrap_err(), StreamError::aborted());
    });
}
