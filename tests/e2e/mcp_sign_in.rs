//! Signing in to MCP servers over HTTP, against a server that is guarded by an authorization server of its own.

use crate::agent::{Outcome, Running, World, wait_until};
use crate::mcp::usual;
use crate::rpc::client;
use crate::server::{Reply, Server};
use crate::world;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use pi::client::Client;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::thread;

/// What the servers know.
#[derive(Default)]
struct Inside {
    base: String,
    /// Requests, as `GET /path` and `POST /token grant_type=…`.
    seen: Vec<String>,
    /// The token that is good, and how many there were.
    access: String,
    refresh: String,
    tokens: usize,
    challenge: String,
    scope: String,
    /// Changes what is answered for a path.
    lie: Option<Lie>,
    /// Calls of tools need the scope `write`.
    guards_calls: bool,
    /// Listening needs it, too.
    guards_listening: bool,
    registration: Value,
}

type Lie = Box<dyn Fn(&str, &str, &mut Value) + Send>;

struct Guarded {
    port: u16,
    inside: Arc<Mutex<Inside>>,
}

/// The fields of a form or a query.
fn fields(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let [first, tail @ ..] = rest {
            rest = tail;
            match (first, tail) {
                (b'%', [high, low, after @ ..]) => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).unwrap();
                    bytes.push(u8::from_str_radix(digits, 16).unwrap());
                    rest = after;
                }
                (b'+', _) => bytes.push(b' '),
                (first, _) => bytes.push(*first),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    text.split('&').filter_map(|pair| pair.split_once('=')).map(|(a, b)| (decode(a), decode(b))).collect()
}

impl Guarded {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inside =
            Inside { base: format!("http://127.0.0.1:{port}"), refresh: "r0".into(), ..Inside::default() };
        let inside = Arc::new(Mutex::new(inside));
        let kept = inside.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                thread::spawn(move || drop(serve(stream, &kept)));
            }
        });
        Self { port, inside }
    }

    fn lie(&self, lie: impl Fn(&str, &str, &mut Value) + Send + 'static) {
        self.inside.lock().unwrap().lie = Some(Box::new(lie));
    }

    fn configure(&self, world: &World, fields: &Value) {
        let mut entry = json!({"url": format!("http://127.0.0.1:{}/mcp", self.port), "exposure": "direct"});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        world.write_config("mcp.json", &json!({"mcpServers": {"web": entry}}).to_string());
    }

    fn count(&self, request: &str) -> usize {
        self.inside.lock().unwrap().seen.iter().filter(|seen| seen.starts_with(request)).count()
    }
}

fn serve(stream: TcpStream, inside: &Mutex<Inside>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        head.push_str(&std::mem::take(&mut line));
    }
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let mut body = vec![0; header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, headers, text) = inside.lock().unwrap().answer(method, path, header("authorization"), &body);
    let reply = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{text}",
        text.len()
    );
    stream.write_all(reply.as_bytes())
}

impl Inside {
    fn answer(&mut self, method: &str, path: &str, key: Option<String>, body: &str) -> (u16, String, String) {
        let form = fields(body);
        let grant = form.get("grant_type").cloned().unwrap_or_default();
        self.seen.push(format!("{method} {path} {grant}").trim_end().to_owned());
        let base = self.base.clone();
        if path == "/mcp" {
            return self.guarded(method, key.as_deref(), body);
        }
        let (mut status, mut answer) = match path {
            "/.well-known/oauth-protected-resource/mcp" => (
                200,
                json!({"resource": format!("{base}/mcp"), "authorization_servers": [format!("{base}/auth")],
                    "scopes_supported": ["read"]}),
            ),
            "/.well-known/oauth-authorization-server/auth" => (
                200,
                json!({"issuer": format!("{base}/auth"), "authorization_endpoint": format!("{base}/authorize?x=1"),
                    "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                    "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true}),
            ),
            "/register" => {
                let about: Value = serde_json::from_str(body).unwrap();
                self.registration = about.clone();
                (201, json!({"client_id": "c1", "redirect_uris": about["redirect_uris"]}))
            }
            "/token" => self.token(&form),
            _ => (404, json!({})),
        };
        if let Some(lie) = &self.lie {
            lie(path, &base, &mut answer);
            status =
                answer["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(status);
        }
        (status, "content-type: application/json\r\n".into(), answer.to_string())
    }

    fn token(&mut self, form: &BTreeMap<String, String>) -> (u16, Value) {
        let get = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let refused = |error: &str| (400, json!({"error": error}));
        if get("resource") != format!("{}/mcp", self.base) {
            return refused("invalid_target");
        }
        match get("grant_type") {
            "authorization_code" => {
                let hash = digest(&SHA256, get("code_verifier").as_bytes());
                if get("code") != "code-1" || BASE64_URL_SAFE_NO_PAD.encode(hash) != self.challenge {
                    return refused("invalid_grant");
                }
            }
            "refresh_token" if get("refresh_token") == self.refresh => {}
            _ => return refused("invalid_grant"),
        }
        self.tokens += 1;
        let number = self.tokens;
        (self.access, self.refresh) = (format!("access-token-{number}"), format!("refresh-token-{number}"));
        let mut answer = json!({"access_token": self.access, "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": self.refresh});
        if !self.scope.is_empty() {
            answer["scope"] = self.scope.as_str().into();
        }
        (200, answer)
    }

    fn guarded(&mut self, method: &str, key: Option<&str>, body: &str) -> (u16, String, String) {
        let base = self.base.clone();
        if self.access.is_empty() || key != Some(format!("Bearer {}", self.access).as_str()) {
            let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let challenge =
                format!("www-authenticate: Bearer realm=\"x\", resource_metadata=\"{place}\"\r\n");
            return (401, challenge, String::new());
        }
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        self.seen.push(body["method"].as_str().unwrap_or_default().to_owned());
        let needs_more = (self.guards_calls && body["method"] == "tools/call")
            || (self.guards_listening && method == "GET");
        if needs_more && !self.scope.contains("write") {
            let challenge = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"write\"\r\n";
            return (403, challenge.into(), String::new());
        }
        usual(&(String::new(), String::new(), body))
    }
}

/// The fields of the page that pi shows in `text`, as the browser would open it.
fn page(text: &str) -> BTreeMap<String, String> {
    let at = text.find("/authorize?x=1&").unwrap_or_else(|| panic!("no page in {text}"));
    fields(text[at..].split_whitespace().next().unwrap().split_once("x=1&").unwrap().1)
}

/// Agrees on the page: comes back to pi as the browser does, with more fields. Gives what pi answers.
fn agree(guarded: &Guarded, page: &BTreeMap<String, String>, more: &str) -> String {
    {
        let mut inside = guarded.inside.lock().unwrap();
        inside.challenge.clone_from(&page["code_challenge"]);
        inside.scope = page.get("scope").cloned().unwrap_or_default();
    }
    let address = page["redirect_uri"].strip_prefix("http://").unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path}?state={}&{more} HTTP/1.1\r\nhost: x\r\n\r\n", page["state"]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn code(guarded: &Guarded) -> String {
    format!("code=code-1&iss=http%3A%2F%2F127.0.0.1%3A{}%2Fauth", guarded.port)
}

fn begin<'w>(world: &'w World, words: &str) -> Running<'w> {
    let pi = world.pi().words(words).spawn();
    pi.wait_until_shown("Sign in there");
    pi
}

fn stored(world: &World, guarded: &Guarded) -> Value {
    let file = world.agent_dir().join("mcp-auth.json");
    let all: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    all[format!("mcp__web|http://127.0.0.1:{}/mcp", guarded.port)].clone()
}

fn calls(count: usize) -> (World, Server) {
    let turn = || [Reply::tool("c", "mcp__web__ask", &json!({})), Reply::text("done")];
    world((0..count).flat_map(|_| turn()))
}

fn call(world: &World) -> Outcome {
    world.pi().args(["--model", "mock/m1", "-p", "go"]).run()
}

#[test]
fn a_sign_in_registers_and_its_token_is_renewed_once_for_all() {
    let guarded = Guarded::start();
    let (world, model) = calls(4);
    guarded.configure(&world, &json!({}));
    world.pi().words("mcp list").run().fails_with(1).stdout_has("it wants a sign-in: pi mcp login web");
    let pi = begin(&world, "mcp login web");
    let page = page(&pi.shown());
    assert_eq!((page["client_id"].as_str(), page["scope"].as_str()), ("c1", "read"));
    assert_eq!(page["resource"], format!("http://127.0.0.1:{}/mcp", guarded.port));
    // An answer for another sign-in changes nothing.
    let other = BTreeMap::from_iter(page.clone().into_iter().chain([("state".into(), "other".into())]));
    assert!(agree(&guarded, &other, "code=code-1").starts_with("HTTP/1.1 400"));
    assert!(agree(&guarded, &page, &code(&guarded)).contains("Go back to pi"));
    pi.wait().success().stdout_is("Signed in to the MCP server \"web\" (1 tool).\n");

    let registration = guarded.inside.lock().unwrap().registration.clone();
    assert_eq!(
        registration,
        json!({"client_name": "pi", "redirect_uris": [page["redirect_uri"]], "scope": "read",
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none", "application_type": "native"})
    );
    let state = stored(&world, &guarded);
    assert_eq!(
        state["tokens"],
        json!({"access_token": "access-token-1", "token_type": "Bearer", "expires_in": 3600, "scope": "read",
            "refresh_token": "refresh-token-1"})
    );
    assert!(state["tokensExpireAt"].is_u64() && state["serverUrl"].is_string());
    assert_eq!(state["clientInformation"]["client_id"], "c1");
    assert_eq!(
        state["discovery"]["authorizationServerUrl"],
        format!("{}/auth", guarded.inside.lock().unwrap().base)
    );
    world.pi().words("mcp login web").run().success().stdout_has("Already signed in");

    call(&world).success();
    assert_eq!(model.requests()[1].last_text(), "told");
    // The token is withdrawn: three processes renew it once, and none writes it anywhere else.
    guarded.inside.lock().unwrap().access = "withdrawn".into();
    let runs: Vec<Running> =
        (0..3).map(|_| world.pi().args(["--model", "mock/m1", "-p", "go", "-a"]).spawn()).collect();
    for run in runs {
        let outcome = run.wait().success();
        assert!(!outcome.stderr.contains("access-token") && !outcome.stderr.contains("refresh-token"));
    }
    assert_eq!(guarded.count("POST /token refresh_token"), 1);
    assert_eq!(stored(&world, &guarded)["tokens"]["access_token"], "access-token-2");
    let told = model.requests().iter().filter(|request| request.last_text() == "told").count();
    assert_eq!(told, 4);

    world.pi().words("mcp logout web").run().success().stdout_is("Signed out of the MCP server \"web\".\n");
    assert_eq!(stored(&world, &guarded), Value::Null);
    world.pi().words("mcp logout web").run().success().stdout_has("There is no sign-in");
    // What was refused for good is forgotten, and the user is asked to sign in.
    world.pi().words("mcp test web").run().fails_with(1).stdout_has("pi mcp login web");
}

#[test]
fn a_client_of_another_authorization_server_is_not_shown_to_this_one() {
    for (issuer, client) in [("https://elsewhere.example/auth", "c1"), ("", "of-before")] {
        let guarded = Guarded::start();
        let (world, _model) = calls(0);
        guarded.configure(&world, &json!({}));
        let pi = begin(&world, "mcp login web");
        let first = page(&pi.shown());
        agree(&guarded, &first, &code(&guarded));
        pi.wait().success();
        let file = world.agent_dir().join("mcp-auth.json");
        let mut all: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let state = all.as_object_mut().unwrap().values_mut().next().unwrap();
        state["clientInformation"]["client_id"] = "of-before".into();
        if !issuer.is_empty() {
            state["discovery"]["authorizationServerUrl"] = issuer.into();
        }
        state["tokens"]["refresh_token"] = "unknown".into();
        fs::write(&file, all.to_string()).unwrap();
        guarded.inside.lock().unwrap().access = "withdrawn".into();
        let pi = begin(&world, "mcp login web");
        assert_eq!(page(&pi.shown())["client_id"], client, "{issuer}");
        pi.signal("INT");
        pi.wait();
    }
}

#[test]
fn an_expired_token_is_renewed_before_it_is_used() {
    let guarded = Guarded::start();
    let (world, _model) = calls(0);
    guarded.configure(&world, &json!({"oauth": {"clientId": "mine", "clientSecret": "${SECRET}"}}));
    let url = format!("http://127.0.0.1:{}/mcp", guarded.port);
    // An old file knows the address alone.
    let state = json!({&url: {"serverUrl": url, "tokens": {"access_token": "old", "token_type": "Bearer",
        "refresh_token": "r0", "scope": "read"}, "tokensExpireAt": 5, "later": 1}});
    world.write_config("mcp-auth.json", &state.to_string());
    let file = world.agent_dir().join("mcp-auth.json");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    let list = world.pi().words("mcp list").env("SECRET", "s3cret").run().success();
    assert!(list.stdout.contains("connected, 1 tool"), "{}", list.stdout);
    let state = stored(&world, &guarded);
    assert_eq!((&state["tokens"]["access_token"], &state["later"]), (&json!("access-token-1"), &json!(1)));
    assert_eq!(state["tokens"]["scope"], "read");
    // A refused renewal asks for a sign-in and forgets the tokens.
    guarded.inside.lock().unwrap().access = "withdrawn".into();
    guarded.inside.lock().unwrap().refresh = "withdrawn".into();
    let list = world.pi().words("mcp list").env("SECRET", "s3cret").run();
    list.fails_with(1).stdout_has("pi mcp login web");
    assert_eq!(stored(&world, &guarded)["tokens"], Value::Null);
}

#[test]
fn without_a_browser_the_address_is_pasted() {
    let guarded = Guarded::start();
    let (world, _model) = calls(0);
    let oauth = json!({"clientRegistration": "dcr", "clientName": "other", "scope": "all offline_access",
        "callbackUrl": "http://localhost/back"});
    guarded.configure(&world, &json!({"oauth": oauth}));
    let pi = world.pi().words("mcp login web").spawn_on_terminal();
    pi.wait_until_shown("Address or code from the browser");
    let page = page(&pi.shown());
    assert!(page["redirect_uri"].starts_with("http://localhost:") && page["redirect_uri"].ends_with("/back"));
    assert_eq!((page["scope"].as_str(), page["prompt"].as_str()), ("all offline_access", "consent"));
    assert_eq!(guarded.inside.lock().unwrap().registration["client_name"], "other");
    guarded.inside.lock().unwrap().challenge.clone_from(&page["code_challenge"]);
    pi.type_keys(&format!("{}?state=other&{}\n", page["redirect_uri"], code(&guarded)));
    pi.wait_until_shown("another sign-in");
    pi.type_keys(&format!("{}?state={}&{}\n", page["redirect_uri"], page["state"], code(&guarded)));
    pi.wait().success().stdout_has("Signed in");
}

#[test]
fn a_document_stands_for_a_registration_where_it_is_taken() {
    let guarded = Guarded::start();
    guarded.lie(|path, _, answer| {
        if path.contains("authorization-server") {
            answer["client_id_metadata_document_supported"] = true.into();
            answer["token_endpoint_auth_methods_supported"] = json!(["none"]);
            answer["authorization_response_iss_parameter_supported"] = false.into();
        }
    });
    let (world, _model) = calls(0);
    guarded.configure(&world, &json!({}));
    let pi = begin(&world, "mcp login web --timeout 60");
    let page = page(&pi.shown());
    let id = page["redirect_uri"].split_once("/callback/").unwrap().1;
    assert_eq!(page["client_id"], format!("https://pi.dev/oauth/{id}/client.json"));
    agree(&guarded, &page, "code=code-1");
    pi.wait().success();
    assert_eq!(guarded.count("POST /register"), 0);
    assert_eq!(stored(&world, &guarded)["clientInformation"], Value::Null);
}

#[test]
fn servers_that_lie_get_no_token() {
    type Change = fn(&str, &mut Value);
    let rows: [(&str, Change, &str); 8] = [
        (
            "authorization-server",
            |_, answer| answer["issuer"] = "https://evil.example".into(),
            "is of another issuer",
        ),
        (
            "authorization-server",
            |_, answer| answer["token_endpoint"] = "http://a.example/t".into(),
            "is not https",
        ),
        ("authorization-server", |_, answer| answer["authorization_endpoint"] = 7.into(), "no valid"),
        (
            "authorization-server",
            |_, answer| answer["response_types_supported"] = json!(["token"]),
            "no authorization codes",
        ),
        (
            "authorization-server",
            |_, answer| answer["code_challenge_methods_supported"] = json!(["plain"]),
            "PKCE",
        ),
        (
            "authorization-server",
            |_, answer| answer["registration_endpoint"] = Value::Null,
            "registers no clients",
        ),
        (
            "protected-resource",
            |_, answer| answer["resource"] = "https://bank.example/".into(),
            "is not asked for",
        ),
        ("register", |_, answer| *answer = json!({"status": 400, "error": "no_room"}), "no_room"),
    ];
    for (place, change, expected) in rows {
        let guarded = Guarded::start();
        guarded.lie(move |path, base, answer| {
            if path.contains(place) {
                change(base, answer);
            }
        });
        let (world, _model) = calls(0);
        guarded.configure(&world, &json!({}));
        let outcome = world.pi().words("mcp login web").run();
        assert!(
            !outcome.status.success() && outcome.stderr.contains(expected),
            "{expected}: {}",
            outcome.stderr
        );
        assert_eq!(guarded.count("POST /token"), 0, "{expected}");
    }
    // What is wrong is seen only when the browser comes back.
    for (answer, expected) in [
        ("code=code-1&iss=https%3A%2F%2Fevil.example", "is of another issuer (https://evil.example)"),
        ("code=code-1", "is of another issuer (none)"),
        ("error=access_denied&error_description=the+user+said+no", "the user said no"),
    ] {
        let guarded = Guarded::start();
        let (world, _model) = calls(0);
        guarded.configure(&world, &json!({}));
        let pi = begin(&world, "mcp login web");
        agree(&guarded, &page(&pi.shown()), answer);
        let outcome = pi.wait();
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert_eq!(guarded.count("POST /token"), 0, "{expected}");
    }
    // Nobody comes back.
    let guarded = Guarded::start();
    let (world, _model) = calls(0);
    guarded.configure(&world, &json!({}));
    let outcome = world.pi().words("mcp login web --timeout 0.2").run();
    outcome.fails_with(1).stderr_has("not done within 0.2 seconds");
    for (words, expected) in [
        ("mcp login", "takes the name of one server"),
        ("mcp login web --timeout x", "--timeout must be"),
        ("mcp login web -l", "leave --local out"),
        ("mcp logout other", "There is no MCP server"),
    ] {
        world.pi().words(words).run().fails_with(1).stderr_has(expected);
    }
}

#[test]
fn a_call_that_needs_more_leads_to_a_sign_in_for_more() {
    let guarded = Guarded::start();
    let (world, model) = calls(4);
    guarded.configure(&world, &json!({}));
    guarded.inside.lock().unwrap().guards_calls = true;
    let pi = begin(&world, "mcp login web");
    agree(&guarded, &page(&pi.shown()), &code(&guarded));
    pi.wait().success();
    // Nobody can be asked: the user is told what to type.
    let hint = "it wants more scopes (write) for this: pi mcp login web --scope write";
    call(&world).success().stderr_has(hint);
    assert!(model.requests()[1].last_text().contains(hint), "{}", model.requests()[1].last_text());

    // The user does not want it, then does with the command.
    let mut client = client(&world, "--model mock/m1");
    client.prompt("go").unwrap();
    confirm(&mut client, false);
    client.wait_until_settled().unwrap();
    assert!(model.requests()[3].last_text().contains("/mcp login web"));
    client.send("prompt", json!({"message": "/mcp login web"})).unwrap();
    agree_to_more(&mut client, &guarded);
    // The question for a pasted address is taken back; nothing says when the command is done.
    wait_until("the wider token is stored", || stored(&world, &guarded)["tokens"]["scope"] == "read write");
    client.prompt("go").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(model.requests()[5].last_text(), "told");

    // The user signs in for more in the middle of a call, which is then sent again, on one connection.
    guarded.inside.lock().unwrap().scope = "read".into();
    let greetings = guarded.count("initialize");
    client.prompt("go").unwrap();
    confirm(&mut client, true);
    agree_to_more(&mut client, &guarded);
    client.wait_until_settled().unwrap();
    assert_eq!(model.requests()[7].last_text(), "told");
    assert_eq!(guarded.count("initialize"), greetings);
    assert_eq!(guarded.count("tools/call"), 5);

    // In a shell, for what the user names.
    let pi = begin(&world, "mcp login web --scope more");
    let page = page(&pi.shown());
    assert_eq!(page["scope"], "read write more");
    agree(&guarded, &page, &code(&guarded));
    pi.wait().success();
}

#[test]
fn a_sign_in_for_more_lets_pi_listen_again() {
    let guarded = Guarded::start();
    let (world, _model) = calls(1);
    guarded.configure(&world, &json!({}));
    {
        let mut inside = guarded.inside.lock().unwrap();
        (inside.guards_calls, inside.guards_listening) = (true, true);
    }
    let pi = begin(&world, "mcp login web");
    agree(&guarded, &page(&pi.shown()), &code(&guarded));
    pi.wait().success();
    let mut client = client(&world, "--model mock/m1");
    let (before, greetings) = (guarded.count("GET /mcp"), guarded.count("initialize"));
    client.prompt("go").unwrap();
    wait_until("it wants to listen", || guarded.count("GET /mcp") == before + 1);
    confirm(&mut client, true);
    agree_to_more(&mut client, &guarded);
    client.wait_until_settled().unwrap();
    wait_until("it wants to listen again", || guarded.count("GET /mcp") == before + 2);
    assert_eq!(guarded.count("initialize"), greetings + 1);
}

/// Answers the question whether to sign in for more.
fn confirm(client: &mut Client, yes: bool) {
    let events = client.events_until("extension_ui_request").unwrap();
    let asked = events.last().unwrap();
    assert_eq!((&asked["method"], asked["message"].to_string().contains("write")), (&json!("confirm"), true));
    let answer = json!({"type": "extension_ui_response", "id": asked["id"], "confirmed": yes});
    client.send_line(answer.to_string().as_bytes()).unwrap();
}

/// Agrees on the page that is shown next.
fn agree_to_more(client: &mut Client, guarded: &Guarded) {
    let shown = loop {
        let event = client.next_event().unwrap();
        let text = event["message"].as_str().unwrap_or_default();
        if event["type"] == "extension_ui_request" && text.contains("/authorize") {
            break text.to_owned();
        }
    };
    let page = page(&shown);
    assert_eq!(page["scope"], "read write");
    agree(guarded, &page, &code(guarded));
}
