//! Where keys come from, and that they are seen nowhere.

use super::*;
use crate::base::testing::TempDir;
use crate::llm::message::now_ms;
use crate::llm::testing::Server;
use std::os::unix::fs::PermissionsExt;

/// An agent folder with this `auth.json`; none if it is empty.
pub struct Folder(TempDir);

impl Folder {
    pub fn new(auth: &str) -> Self {
        let folder = TempDir::create();
        if !auth.is_empty() {
            let file = folder.write("auth.json", auth);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn read(&self) -> String {
        String::from_utf8(self.0.read("auth.json")).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

pub fn model(provider: &str) -> Model {
    Model {
        id: "m".into(),
        provider: provider.into(),
        base_url: "https://example.test/v1".into(),
        ..Model::default()
    }
}

/// A key that must be in no text but the key itself.
const CANARY: &str = "canary-5e1f";

struct Case<'a> {
    auth: &'a str,
    configured: Configured,
    env: Env,
    flag: Option<&'a str>,
    model: Model,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            auth: "",
            configured: Configured::default(),
            env: Env::of([]),
            flag: None,
            model: model("anthropic"),
        }
    }
}

impl Case<'_> {
    /// Resolves, and holds every text that comes out against the canary.
    #[track_caller]
    fn resolve(self) -> (bool, Result<Resolved, String>) {
        let folder = Folder::new(self.auth);
        let mut credentials = Credentials::load(folder.path(), self.env);
        if let Some(key) = self.flag {
            credentials.give("anthropic", Secret::new(key));
        }
        let has = credentials.has(&self.model.provider, &self.configured);
        let got = credentials.resolve(&self.model, &self.configured, &CancelToken::new());
        let shown = format!(
            "{got:?} {:?} {:?} {:?}",
            self.configured,
            credentials.warning(),
            got.as_ref().map(|resolved| resolved.source.to_string()),
        );
        assert!(!shown.contains(CANARY), "{shown}");
        (has, got.map_err(|error| error.message))
    }

    /// The source and the key.
    #[track_caller]
    fn check(self, source: &str, key: Option<&str>) {
        let (has, got) = self.resolve();
        let got = got.unwrap();
        assert_eq!(got.source.to_string(), source);
        assert_eq!(got.key.as_ref().map(Secret::expose), key);
        assert!(has);
    }

    /// Pieces of the error.
    #[track_caller]
    fn fails(self, has: bool, pieces: &[&str]) {
        let (had, got) = self.resolve();
        let error = got.unwrap_err();
        for piece in pieces {
            assert!(error.contains(piece), "{piece} is not in: {error}");
        }
        assert_eq!(had, has);
    }
}

fn with_key(value: &str) -> Configured {
    Configured { api_key: Some(value.into()), ..Configured::default() }
}

const STORED: &str =
    r#"{"anthropic": {"type": "api_key", "key": "stored"}, "later": {"type": "new", "x": [1]}}"#;

#[test]
fn the_first_source_wins() {
    let env = || Env::of([("ANTHROPIC_API_KEY", "from-env"), ("K", "by-name")]);
    let configured = with_key("$K");
    let all = || Case { auth: STORED, configured: configured.clone(), env: env(), ..Case::default() };
    Case { flag: Some("flag"), ..all() }.check("--api-key", Some("flag"));
    all().check("auth.json", Some("stored"));
    Case { auth: "", ..all() }.check("models.json", Some("by-name"));
    Case { auth: "", configured: Configured::default(), ..all() }
        .check("environment variable ANTHROPIC_API_KEY", Some("from-env"));
}

#[test]
fn a_given_key_is_for_its_provider_alone() {
    let case = Case { flag: Some("flag"), model: model("openai"), ..Case::default() };
    case.fails(false, &["OPENAI_API_KEY"]);
}

#[test]
fn values_are_resolved() {
    fn case<'a>(auth: &'a str) -> Case<'a> {
        let env = Env::of([("X", " env-key\n"), ("ACCOUNT", "process")]);
        Case { auth, env, ..Case::default() }
    }
    let auth = |key: &str| {
        let env = r#"{"ACCOUNT": "own"}"#;
        format!(r#"{{"anthropic": {{"type": "api_key", "key": "{key}", "env": {env}}}}}"#)
    };
    case(&auth("$X")).check("auth.json", Some("env-key"));
    case(&auth("${ACCOUNT}-1")).check("auth.json", Some("own-1"));
    case(&auth("!echo printed")).check("auth.json", Some("printed"));
    let got = case(&auth("k")).resolve().1.unwrap();
    assert_eq!(got.env, [("ACCOUNT".to_owned(), "own".to_owned())]);
}

#[test]
fn an_entry_that_cannot_be_used_blocks_the_environment() {
    let env = || Env::of([("ANTHROPIC_API_KEY", CANARY), ("K", CANARY)]);
    let case = |auth| Case { auth, env: env(), configured: with_key("$K"), ..Case::default() };
    let rows: &[(&str, bool, &[&str])] = &[
        (r#"{"anthropic": {"type": "api_key", "key": "$NOPE"}}"#, false, &["NOPE", "auth.json"]),
        (
            r#"{"anthropic": {"type": "api_key", "key": "!echo canary-5e1f; exit 4"}}"#,
            true,
            &["exit code 4", "auth.json"],
        ),
        (r#"{"anthropic": {"type": "api_key", "key": 5}}"#, true, &["not a text"]),
        (r#"{"anthropic": {"type": "magic", "key": "canary-5e1f"}}"#, true, &["\"type\"", "\"anthropic\""]),
        (r#"{"anthropic": {"type": "oauth", "access": "canary-5e1f"}}"#, true, &["expires"]),
        (r#"{"anthropic": {"type": "oauth", "expires": 99999999999999}}"#, true, &["access"]),
        (r#"{"anthropic": "canary-5e1f"}"#, true, &["\"type\""]),
    ];
    for (auth, has, pieces) in rows {
        case(auth).fails(*has, pieces);
    }
}

#[test]
fn a_broken_file_is_an_error_with_its_place_and_is_left_alone() {
    let broken = "{\"anthropic\": {\"type\": \"api_key\",\n \"key\": \"canary-5e1f\" oops}}";
    let env = || Env::of([("ANTHROPIC_API_KEY", CANARY)]);
    Case { auth: broken, env: env(), ..Case::default() }.fails(true, &["auth.json", "line 2, column"]);
    Case { auth: "[1]", env: env(), ..Case::default() }.fails(true, &["not a JSON object"]);
    // A key that is given and a server without keys do not need the file.
    Case { auth: broken, flag: Some("flag"), ..Case::default() }.check("--api-key", Some("flag"));
    Case { auth: broken, model: model("faux"), ..Case::default() }.check("no key needed", None);

    let folder = Folder::new(broken);
    let credentials = Credentials::load(folder.path(), Env::of([]));
    assert!(credentials.warning().unwrap().contains("line 2"));
    assert_eq!(std::fs::read_to_string(folder.path().join("auth.json")).unwrap(), broken);
}

#[test]
fn an_empty_file_and_a_byte_order_mark_are_fine() {
    let env = || Env::of([("ANTHROPIC_API_KEY", "k")]);
    Case { auth: " \n", env: env(), ..Case::default() }
        .check("environment variable ANTHROPIC_API_KEY", Some("k"));
    Case { auth: &format!("\u{feff}{STORED}"), ..Case::default() }.check("auth.json", Some("stored"));
}

#[test]
fn a_file_that_changed_is_read_again() {
    let folder = Folder::new(STORED);
    let credentials = Credentials::load(folder.path(), Env::of([]));
    let key = || {
        let got = credentials.resolve(&model("anthropic"), &Configured::default(), &CancelToken::new());
        got.unwrap().key.unwrap().expose().to_owned()
    };
    assert_eq!(key(), "stored");
    folder.0.write(
        "auth.json",
        r#"{"anthropic": {"type": "api_key", "key": "another one"}}"#
            .replace("another one", "second")
            .as_str(),
    );
    assert_eq!(key(), "second");
}

#[test]
fn a_file_that_others_can_read_is_told_about() {
    let folder = Folder::new(STORED);
    let credentials = Credentials::load(folder.path(), Env::of([]));
    assert_eq!(credentials.warning(), None);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.path().join("auth.json"), open).unwrap();
    assert!(credentials.warning().unwrap().contains("chmod 600"));
}

#[test]
fn a_sign_in_that_is_valid_is_a_key() {
    let expires = now_ms() + 3_600_000;
    let auth = |id: &str| {
        format!(
            r#"{{"{id}": {{"type": "oauth", "access": "token", "refresh": "{CANARY}", "expires": {expires}}}}}"#
        )
    };
    Case { auth: &auth("anthropic"), ..Case::default() }.check("auth.json (signed in)", Some("token"));
    // This one takes it as a bearer token.
    let case = Case { auth: &auth("kimi-coding"), model: model("kimi-coding"), ..Case::default() };
    let got = case.resolve().1.unwrap();
    assert_eq!(got.key, None);
    assert_eq!(got.headers, [("authorization".to_owned(), Some("Bearer token".to_owned()))]);
}

#[test]
fn tokens_for_other_headers_are_not_sent_as_a_key() {
    let env = Env::of([("ANTHROPIC_AUTH_TOKEN", "t"), ("ANTHROPIC_API_KEY", CANARY)]);
    let got = Case { env, ..Case::default() }.resolve().1.unwrap();
    assert_eq!((got.key, got.source), (None, Source::Variable("ANTHROPIC_AUTH_TOKEN")));
    assert_eq!(got.headers, [("authorization".to_owned(), Some("Bearer t".to_owned()))]);

    let env = Env::of([
        ("CLOUDFLARE_API_KEY", "k"),
        ("CLOUDFLARE_ACCOUNT_ID", "a"),
        ("CLOUDFLARE_GATEWAY_ID", "g"),
    ]);
    let gateway = Model {
        base_url: "https://gw.test/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/openai".into(),
        ..model("cloudflare-ai-gateway")
    };
    let got = Case { env, model: gateway.clone(), ..Case::default() }.resolve().1.unwrap();
    assert_eq!(got.key, None);
    assert_eq!(got.base_url.as_deref(), Some("https://gw.test/v1/a/g/openai"));
    let header = |name: &str| got.headers.iter().find(|(known, _)| known == name).unwrap().1.clone();
    assert_eq!(header("cf-aig-authorization").as_deref(), Some("Bearer k"));
    assert_eq!(header("authorization"), None);
    assert_eq!(header("x-api-key"), None);

    let env = Env::of([("CLOUDFLARE_API_KEY", CANARY), ("CLOUDFLARE_ACCOUNT_ID", "a")]);
    Case { env, model: gateway, ..Case::default() }
        .fails(true, &["CLOUDFLARE_GATEWAY_ID", "environment variable"]);
}

#[test]
fn headers_are_resolved_and_the_last_one_wins() {
    let env = || Env::of([("ANTHROPIC_API_KEY", "k"), ("T", CANARY)]);
    let configured = |headers: &[(&str, &str)], auth_header| Configured {
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        auth_header,
        ..Configured::default()
    };
    let case = |configured| Case { configured, env: env(), ..Case::default() };
    let got = case(configured(&[("X-Team", "a"), ("x-token", "v ${T}"), ("x-team", "b")], true));
    let headers = got.resolve().1.unwrap().headers;
    let expected = [("authorization", "Bearer k"), ("x-token", "v canary-5e1f"), ("x-team", "b")];
    let expected = expected.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    assert_eq!(headers, expected);
    case(configured(&[("x-token", "$NOPE")], false)).fails(true, &["x-token", "NOPE", "models.json"]);
    let broken = configured(&[("x-token", "!printf 'a\\ncanary-5e1f'")], false);
    case(broken).fails(true, &["x-token", "control character"]);
    let faux = Case { model: model("faux"), configured: configured(&[], true), ..Case::default() };
    faux.fails(true, &["authHeader"]);
}

#[test]
fn a_missing_key_names_the_variable_and_what_to_do() {
    let case = |id| Case { model: model(id), ..Case::default() };
    case("anthropic").fails(
        false,
        &[
            "Anthropic",
            "export ANTHROPIC_API_KEY=",
            "--api-key",
            "auth.json",
            "ANTHROPIC_AUTH_TOKEN",
            "pi docs providers",
        ],
    );
    case("openai").fails(false, &["OpenAI", "export OPENAI_API_KEY="]);
    case("openai-codex").fails(false, &["Not signed in", "pi auth login openai-codex"]);
    case("amazon-bedrock").fails(false, &["AWS_BEARER_TOKEN_BEDROCK", "AWS credentials"]);
    case("my-server").fails(false, &["my-server", "models.json", "apiKey"]);
    case("faux").check("no key needed", None);
    case("local").check("no key needed", None);
}

#[test]
fn a_key_that_no_header_can_hold_is_refused_where_it_came_from() {
    for bad in ["canary-5e1f\nx: y", "canary-5e1f more", "canary-5e1f\u{201d}"] {
        let env = Env::of([("ANTHROPIC_API_KEY", bad)]);
        Case { env, ..Case::default() }.fails(true, &["environment variable ANTHROPIC_API_KEY"]);
    }
    Case { flag: Some("  "), ..Case::default() }.fails(true, &["--api-key", "empty"]);
}

#[test]
fn a_cancel_is_an_abort_and_no_failure() {
    let folder = Folder::new(r#"{"anthropic": {"type": "api_key", "key": "!sleep 1000"}}"#);
    let credentials = Credentials::load(folder.path(), Env::of([]));
    let cancel = CancelToken::new();
    cancel.cancel();
    let got = credentials.resolve(&model("anthropic"), &Configured::default(), &cancel);
    assert_eq!(got.unwrap_err(), StreamError::aborted());
}

#[test]
fn an_entry_with_settings_only_leaves_the_key_to_the_environment() {
    let auth = r#"{"amazon-bedrock": {"type": "api_key", "env": {"AWS_PROFILE": "work"}}, "llama.cpp": {"type": "api_key", "env": {"LLAMA_BASE_URL": "http://box:9000/v1/"}}}"#;
    Case { auth, model: model("amazon-bedrock"), ..Case::default() }
        .check("environment variable AWS_PROFILE", None);
    let got = Case { auth, model: model("llama.cpp"), ..Case::default() }.resolve().1.unwrap();
    assert_eq!(got.base_url.as_deref(), Some("http://box:9000/v1"));
}

#[test]
fn a_local_server_sees_only_its_own_key() {
    let env =
        || Env::of([("LLAMA_API_KEY", "llama"), ("PI_LOCAL_URL", "box:9"), ("PI_LOCAL_API_KEY", "box")]);
    let at = |url: &str| {
        let model = Model { base_url: url.into(), ..model("local") };
        let got = Case { env: env(), model, ..Case::default() }.resolve().1.unwrap();
        got.key.map(|key| key.expose().to_owned())
    };
    assert_eq!(at("http://127.0.0.1:8080/v1").as_deref(), Some("llama"));
    assert_eq!(at("http://box:9/v1").as_deref(), Some("box"));
    assert_eq!(at("http://127.0.0.1:11434/v1"), None);
}

/// A model of Bedrock's or of Vertex AI's.
fn cloud(provider: &str, api: &str) -> Model {
    Model {
        api: api.into(),
        base_url: "https://bedrock-runtime.us-east-1.amazonaws.com".into(),
        ..model(provider)
    }
}

#[test]
fn requests_to_aws_get_a_signature_s_keys_and_an_address() {
    let keys =
        [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", CANARY), ("AWS_REGION", "eu-west-1")];
    for (provider, has) in [("amazon-bedrock", true), ("mine", false)] {
        let case = Case { env: Env::of(keys), model: cloud(provider, aws::API), ..Case::default() };
        let (found, got) = case.resolve();
        let got = got.unwrap();
        let access = got.aws.unwrap();
        assert_eq!((found, access.keys.as_ref().unwrap().id.as_str()), (has, "AKID"));
        let endpoint = "https://bedrock-runtime.eu-west-1.amazonaws.com";
        assert_eq!(got.base_url.as_deref(), Some(endpoint), "{provider}");
    }
    let case = Case {
        env: Env::of([keys[0], keys[1], ("AWS_BEARER_TOKEN_BEDROCK", "bearer")]),
        model: cloud("amazon-bedrock", aws::API),
        ..Case::default()
    };
    let got = case.resolve().1.unwrap();
    assert_eq!(got.aws.unwrap().keys, None);
    assert_eq!(got.key.as_ref().map(Secret::expose), Some("bearer"));
}

#[test]
fn settings_of_an_entry_count_for_the_cloud() {
    let auth = r#"{"amazon-bedrock": {"type": "api_key", "env": {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "canary-5e1f", "AWS_REGION": "us-west-2"}}}"#;
    let case = Case { auth, model: cloud("amazon-bedrock", aws::API), ..Case::default() };
    let access = case.resolve().1.unwrap().aws.unwrap();
    assert_eq!((&*access.region, &*access.keys.as_ref().unwrap().id), ("us-west-2", "AKID"));
    // An entry without anything leaves it all to AWS's own sources.
    let open = |auth| Case {
        auth,
        env: Env::of([("AWS_EC2_METADATA_DISABLED", "true")]),
        model: cloud("amazon-bedrock", aws::API),
        ..Case::default()
    };
    open(r#"{"amazon-bedrock": {"type": "api_key"}}"#).fails(true, &["No AWS credentials were found"]);
    open("").fails(false, &["No API key for Amazon Bedrock"]);
}

#[test]
fn a_key_for_vertex_needs_no_token_and_a_placeholder_does() {
    let case = |key| Case {
        env: Env::of([("GOOGLE_CLOUD_API_KEY", key), ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc")]),
        model: cloud("google-vertex", gcp::API),
        ..Case::default()
    };
    let got = case("key-1").resolve().1.unwrap();
    assert!(got.headers.is_empty() && got.key.is_some());
    case("gcp-vertex-credentials").fails(true, &["/nowhere/adc"]);
}

#[test]
fn an_entry_under_a_former_id_is_used_and_replaced() {
    let folder = Folder::new(
        r#"{"azure-openai-responses": {"type": "api_key", "key": "old", "env": {"AZURE_OPENAI_RESOURCE_NAME": "r"}}}"#,
    );
    let credentials = Credentials::load(folder.path(), Env::of([]));
    let (configured, cancel) = (Configured::default(), CancelToken::new());
    assert!(credentials.has("azure", &configured));
    let found = credentials.resolve(&model("azure"), &configured, &cancel).unwrap();
    assert_eq!(found.key.unwrap().expose(), "old");
    assert_eq!(found.env, [("AZURE_OPENAI_RESOURCE_NAME".to_owned(), "r".to_owned())]);
    credentials.store_key("azure", &Secret::new("new"), &cancel).unwrap();
    let stored: Value = serde_json::from_str(&folder.read()).unwrap();
    assert_eq!(
        stored,
        serde_json::json!({"azure": {"type": "api_key", "key": "new", "env": {"AZURE_OPENAI_RESOURCE_NAME": "r"}}})
    );
    assert!(credentials.remove("azure", &cancel).unwrap());
    let old = Folder::new(r#"{"azure-openai-responses": {"type": "api_key", "key": "old"}}"#);
    let credentials = Credentials::load(old.path(), Env::of([]));
    assert!(credentials.remove("azure", &cancel).unwrap());
    assert_eq!(old.read(), "{}");
}

#[test]
fn an_identity_of_the_machine_is_exchanged_for_anthropic_alone() {
    let server = Server::start(|connection| {
        while connection.request().is_some() {
            connection.answer("200 OK", "", r#"{"access_token":"at","expires_in":3600}"#);
        }
    });
    let folder = Folder::new("{}");
    let token = folder.path().join("token");
    std::fs::write(&token, "jwt").unwrap();
    let mut variables = vec![
        ("ANTHROPIC_FEDERATION_RULE_ID", "rule"),
        ("ANTHROPIC_ORGANIZATION_ID", "org"),
        ("ANTHROPIC_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
    ];
    let anthropic = Model { base_url: server.url(""), ..model("anthropic") };
    let resolve = |model: &Model, variables: &[(&str, &str)]| {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = Env::of([]).with(&owned.collect::<Vec<_>>());
        let credentials = Credentials::load(folder.path(), env);
        let has = credentials.has(&model.provider, &Configured::default());
        (has, credentials.resolve(model, &Configured::default(), &CancelToken::new()))
    };
    let (has, resolved) = resolve(&anthropic, &variables);
    let resolved = resolved.unwrap();
    assert!(has && resolved.key.is_none());
    assert_eq!(resolved.source.to_string(), "workload identity federation");
    assert_eq!(resolved.headers, [("authorization".to_owned(), Some("Bearer at".to_owned()))]);
    assert!(resolved.env.iter().any(|(name, _)| name == "ANTHROPIC_FEDERATION_RULE_ID"));
    let (has, others) = resolve(&model("openai"), &variables);
    assert!(!has && others.is_err());
    // A key comes before it.
    variables.push(("ANTHROPIC_API_KEY", "k"));
    let resolved = resolve(&anthropic, &variables).1.unwrap();
    assert_eq!(resolved.key.unwrap().expose(), "k");
    assert!(resolved.env.is_empty() && resolved.headers.is_empty());
}
