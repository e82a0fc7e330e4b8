//! Every sign-in against a scripted server that stands for all providers, with a user that plays a part
//! and a clock that does not wait.

use super::*;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::now_ms;
use crate::llm::testing::{Received, Server};
use serde_json::Value;
use serde_json::json;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const INSTALLATION: &str = "0197B7A0-0000-7000-8000-000000000001";

/// What must be in nothing that is shown.
const CANARY: &str = "canary-secret-1";

/// One request as a test looks at it.
#[derive(Clone, Debug)]
struct Seen {
    /// `POST /host/path`.
    line: String,
    authorization: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Seen {
    fn field(&self, name: &str) -> Option<String> {
        match serde_json::from_str::<Value>(&self.body) {
            Ok(body) => body.get(name)?.as_str().map(str::to_owned),
            Err(_) => form::value(&self.body, name),
        }
    }
}

/// A status and a body for each request, the last one for ever.
struct Provider {
    server: Server,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Provider {
    fn new(replies: Vec<(u16, Value)>) -> Self {
        Self::answering(move |number, _| replies.get(number).or(replies.last()).cloned().unwrap())
    }

    fn answering(answer: impl Fn(usize, &Seen) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let server = {
            let seen = seen.clone();
            Server::start(move |connection| {
                while let Some(received) = connection.request() {
                    let now = shown(&received);
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(now.clone());
                        seen.len() - 1
                    };
                    let (status, body) = answer(number, &now);
                    let body = match body {
                        Value::String(raw) => raw,
                        body => body.to_string(),
                    };
                    connection.answer(&format!("{status} X"), "", body);
                }
            })
        };
        Self { server, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}

fn shown(received: &Received) -> Seen {
    Seen {
        line: received.line.trim_end_matches(" HTTP/1.1").to_owned(),
        authorization: received.header("authorization").unwrap_or_default().to_owned(),
        headers: received.headers.clone(),
        body: String::from_utf8_lossy(&received.body).into_owned(),
    }
}

/// Time passes only where somebody waits for it.
#[derive(Default)]
struct FakeClock {
    now: Mutex<Duration>,
    waits: Mutex<Vec<u64>>,
    /// Cancels at this wait.
    cancel_at: Option<usize>,
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn wait(&self, time: Duration, cancel: &CancelToken) -> bool {
        *self.now.lock().unwrap() += time;
        let mut waits = self.waits.lock().unwrap();
        waits.push(time.as_secs());
        if self.cancel_at == Some(waits.len()) {
            cancel.cancel();
        }
        cancel.is_cancelled()
    }
}

/// What the user does when the address of the browser comes.
enum Browser {
    /// Nothing.
    Idle,
    /// Requests these targets of the callback server, with `STATE` filled in, and keeps the answers.
    Goes(Vec<&'static str>),
}

/// A user who has answers ready.
struct User {
    answers: Mutex<VecDeque<Answer>>,
    browser: Browser,
    told: Mutex<Vec<Event>>,
    asked: Mutex<Vec<Prompt>>,
    pages: Mutex<Vec<String>>,
    /// An answer that is not there is waited for, as with a real user.
    waits: bool,
}

impl User {
    fn new(answers: impl IntoIterator<Item = Answer>, browser: Browser) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            browser,
            told: Mutex::default(),
            asked: Mutex::default(),
            pages: Mutex::default(),
            waits: true,
        }
    }

    fn told(&self) -> Vec<Event> {
        self.told.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        let told = self.told();
        let url = told.iter().find_map(|event| match event {
            Event::Url { url, .. } => Some(url.clone()),
            _ => None,
        });
        url.expect("an address to open")
    }

    fn progress(&self) -> String {
        let lines = self.told().into_iter().filter_map(|event| match event {
            Event::Progress(text) => Some(text),
            _ => None,
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Interaction for User {
    fn tell(&self, event: &Event) {
        self.told.lock().unwrap().push(event.clone());
        let (Event::Url { url, .. }, Browser::Goes(targets)) = (event, &self.browser) else {
            return;
        };
        let query = url.split_once('?').unwrap().1;
        let back = form::value(query, "redirect_uri").or_else(|| form::value(query, "callback_url"));
        let back = back.unwrap();
        let (host, path) = back.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let port = host.rsplit(':').next().unwrap();
        let state = form::value(query, "state").unwrap_or_default();
        for target in targets {
            let target = target.replace("PATH", &format!("/{path}")).replace("STATE", &state);
            let page = visit(port.parse().unwrap(), &target);
            self.pages.lock().unwrap().push(page);
        }
    }

    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer {
        self.asked.lock().unwrap().push(prompt.clone());
        let mut answers = self.answers.lock().unwrap();
        // A user who has nothing more to say takes the first way.
        if let Prompt::Select { options, .. } = prompt
            && self.waits
            && answers.is_empty()
        {
            return Answer::Text(options[0].id.clone());
        }
        let answer = answers.pop_front();
        drop(answers);
        match answer {
            Some(Answer::Text(text)) => {
                let state = match prompt {
                    Prompt::Code { .. } => {
                        let url = self.url();
                        form::value(url.split_once('?').unwrap().1, "state").unwrap_or_default()
                    }
                    _ => String::new(),
                };
                Answer::Text(text.replace("STATE", &state))
            }
            Some(answer) => answer,
            None if self.waits => {
                let _ = cancel.receiver().recv();
                Answer::Cancelled
            }
            None => Answer::Nobody,
        }
    }
}

/// Sends a request line and gives the whole answer.
fn visit(port: u16, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let line = match target.contains(' ') {
        true => target.to_owned(),
        false => format!("GET {target}"),
    };
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    let _ = stream.read_to_string(&mut page);
    page
}

fn text(text: &str) -> Answer {
    Answer::Text(text.into())
}

/// A sign-in that is tried.
struct Try {
    provider: &'static str,
    server: Provider,
    user: User,
    clock: FakeClock,
    cancel: CancelToken,
}

impl Try {
    fn new(provider: &'static str, server: Provider, user: User) -> Self {
        Self { provider, server, user, clock: FakeClock::default(), cancel: CancelToken::new() }
    }

    fn run(&self) -> Result<Value, StreamError> {
        let hosts = Hosts::At(self.server.server.url(""));
        let setting = Setting {
            hosts: &hosts,
            clock: &self.clock,
            env: &Env::of([]),
            gateway: None,
            device: Some(INSTALLATION),
            http_proxy: None,
        };
        let method = method(self.provider, None).unwrap();
        method.login(&setting, &self.user, &self.cancel).map(Value::Object)
    }

    #[track_caller]
    fn fails(&self, kind: ErrorKind, piece: &str) {
        let error = self.run().unwrap_err();
        assert!(error.message.contains(piece), "{piece} is not in: {}", error.message);
        assert_eq!(error.kind, kind, "{}", error.message);
        let shown = format!("{error:?} {:?}", self.user.told());
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

fn renew(provider: &str, server: &Provider, entry: &Value) -> Result<Value, StreamError> {
    let hosts = Hosts::At(server.server.url(""));
    let clock = FakeClock::default();
    let setting = Setting {
        hosts: &hosts,
        clock: &clock,
        env: &Env::of([]),
        gateway: None,
        device: Some(INSTALLATION),
        http_proxy: None,
    };
    let mut entry = entry.as_object().unwrap().clone();
    let method = method(provider, None).unwrap();
    method.renew(&setting, &mut entry, &CancelToken::new())?;
    Ok(Value::Object(entry))
}

/// Checks `expires` and takes it away.
#[track_caller]
fn without_expiry(mut entry: Value, seconds: u64) -> Value {
    let expires = entry.as_object_mut().unwrap().shift_remove("expires").unwrap();
    let left = expires.as_u64().unwrap().saturating_sub(now_ms());
    let range = seconds.saturating_sub(60) * 1000..=seconds * 1000;
    assert!(range.contains(&left), "{left} ms");
    entry
}

fn tokens() -> Value {
    json!({"access_token": "access-1", "refresh_token": "refresh-1", "expires_in": 3600, "token_type": "x"})
}

/// A token of OpenAI.
fn account_token() -> String {
    use base64::Engine;
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acct"}}).to_string();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
    format!("h.{claims}.s")
}

#[test]
fn anthropic_through_the_browser() {
    let user = User::new([], Browser::Goes(vec!["PATH?code=the-code&state=STATE"]));
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), user);
    let entry = without_expiry(run.run().unwrap(), 3300);
    assert_eq!(entry.to_string(), r#"{"type":"oauth","access":"access-1","refresh":"refresh-1"}"#);

    let url = run.user.url();
    let (page, query) = url.split_once('?').unwrap();
    assert_eq!(page, "https://claude.ai/oauth/authorize");
    let value = |name| form::value(query, name).unwrap();
    assert_eq!(value("code_challenge_method"), "S256");
    assert_eq!(value("response_type"), "code");
    let seen = run.server.seen();
    assert_eq!(run.server.lines(), ["POST /platform.claude.com/v1/oauth/token"]);
    let sent = |name| seen[0].field(name).unwrap();
    assert_eq!(sent("grant_type"), "authorization_code");
    assert_eq!(sent("code"), "the-code");
    assert_eq!(sent("state"), value("state"));
    assert_eq!(sent("redirect_uri"), value("redirect_uri"));
    use base64::Engine;
    let hash = ring::digest::digest(&ring::digest::SHA256, sent("code_verifier").as_bytes());
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash);
    assert_eq!(challenge, value("code_challenge"));
}

#[test]
fn wrong_requests_are_answered_and_change_nothing() {
    let targets = vec![
        "/favicon.ico",
        "PATH",
        "PATH?code=evil",
        "PATH?code=evil&state=other",
        "PATH?error=access_denied&state=other",
        "PATH?state=STATE",
        "POST PATH?code=evil&state=STATE",
        "PATH?code=a%2Fb&state=STATE",
    ];
    let user = User::new([], Browser::Goes(targets));
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), user);
    run.run().unwrap();
    assert_eq!(run.server.seen()[0].field("code").unwrap(), "a/b");
    let pages = run.user.pages.lock().unwrap();
    let statuses: Vec<&str> = pages.iter().map(|page| page.split(' ').nth(1).unwrap()).collect();
    assert_eq!(statuses, ["404", "400", "400", "400", "400", "400", "405", "200"]);
    assert!(pages.iter().all(|page| page.contains("no-store")));
}

#[test]
fn a_refusal_in_the_browser_ends_the_sign_in() {
    let target = "PATH?error=access_denied&error_description=%3Cb%3Eno%0Athanks&state=STATE";
    let user = User::new([], Browser::Goes(vec![target]));
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), user);
    run.fails(ErrorKind::Auth, "did not allow the sign-in: <b>no thanks");
    assert!(run.user.pages.lock().unwrap()[0].contains("&lt;b&gt;no"));
    assert!(run.server.seen().is_empty());
}

#[test]
fn the_address_can_be_pasted_and_nonsense_is_asked_for_again() {
    let answers = [
        text("browser"),
        text(""),
        text("http://localhost:1/callback?error=x"),
        text("http://localhost:1/callback?code=evil&state=other"),
        text("http://localhost:1/callback?code=pasted&state=STATE"),
    ];
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), User::new(answers, Browser::Idle));
    run.run().unwrap();
    assert_eq!(run.server.seen()[0].field("code").unwrap(), "pasted");
    assert!(run.user.progress().contains("another sign-in"));

    let answers = std::iter::once(text("browser")).chain((0..9).map(|_| text("?code=")));
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), User::new(answers, Browser::Idle));
    run.fails(ErrorKind::Auth, "no code was pasted");
    let user = User::new([Answer::Cancelled], Browser::Idle);
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), user);
    run.fails(ErrorKind::Aborted, "Login cancelled");
}

#[test]
fn without_anybody_to_ask_the_browser_is_waited_for() {
    let mut user = User::new([Answer::Nobody], Browser::Goes(vec!["PATH?code=c&state=STATE"]));
    user.waits = false;
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), user);
    run.run().unwrap();
}

#[test]
fn anthropic_with_a_code_that_its_page_shows() {
    let answers = [text("copy_code"), text("the-code#STATE")];
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), User::new(answers, Browser::Idle));
    let entry = without_expiry(run.run().unwrap(), 3300);
    assert_eq!(entry.to_string(), r#"{"type":"oauth","access":"access-1","refresh":"refresh-1"}"#);
    let url = run.user.url();
    let query = url.split_once('?').unwrap().1;
    let back = form::value(query, "redirect_uri");
    assert_eq!(back.as_deref(), Some("https://platform.claude.com/oauth/code/callback"));
    let seen = run.server.seen();
    assert_eq!((seen[0].field("code").as_deref(), seen[0].field("redirect_uri")), (Some("the-code"), back));
    assert_eq!(seen[0].field("state"), form::value(query, "state"));

    for (pasted, piece) in [("the-code#other", "another sign-in"), (" ", "no code")] {
        let answers = [text("copy_code"), text(pasted)];
        let user = User::new(answers, Browser::Idle);
        Try::new("anthropic", Provider::new(vec![(200, tokens())]), user).fails(ErrorKind::Auth, piece);
    }
}

fn direct_tokens(access: &str) -> Value {
    json!({"access_token": access, "refresh_token": "refresh-1", "id_token": "id", "expires_in": 3600,
        "scope": "openid resource.invoke chatgpt.tokens.use.direct"})
}

#[test]
fn chatgpt_for_the_api_registers_a_client() {
    let user = User::new([], Browser::Goes(vec!["PATH?code=the-code&client_id=issued&state=STATE"]));
    let run = Try::new("openai", Provider::new(vec![(200, direct_tokens("access-1"))]), user);
    let entry = without_expiry(run.run().unwrap(), 3420);
    let scopes = json!(["openid", "resource.invoke", "chatgpt.tokens.use.direct"]);
    let expected = json!({"type": "oauth", "access": "access-1", "refresh": "refresh-1", "clientId": "issued",
        "scopes": scopes});
    assert_eq!(entry.to_string(), expected.to_string());

    let url = run.user.url();
    let (page, query) = url.split_once('?').unwrap();
    assert_eq!(page, "https://auth.openai.com/api/accounts/authorize");
    let asked = [
        ("client_id", "dynamic_agent_client"),
        ("ext_agent_host_id", "urn:uuid:0197b7a0-0000-7000-8000-000000000001"),
        ("resource", "https://api.openai.com/v1"),
        ("scope", "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct"),
    ];
    for (name, value) in asked {
        assert_eq!(form::value(query, name).as_deref(), Some(value), "{name}");
    }
    let redirect = form::value(query, "redirect_uri").unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/auth/callback"), "{redirect}");
    let seen = run.server.seen();
    assert_eq!(run.server.lines(), ["POST /auth.openai.com/api/accounts/oauth/token"]);
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("client_id", "issued"),
        ("code", "the-code"),
        ("resource", "https://api.openai.com/v1"),
        ("redirect_uri", &redirect),
    ] {
        assert_eq!(seen[0].field(name).as_deref(), Some(value), "{name}");
    }

    // A new token is asked for as the client that was registered.
    let server = Provider::new(vec![(200, direct_tokens("access-2"))]);
    let renewed = without_expiry(renew("openai", &server, &expected).unwrap(), 3420);
    assert_eq!((&renewed["access"], &renewed["clientId"]), (&json!("access-2"), &json!("issued")));
    assert_eq!(renewed["scopes"], scopes);
    let seen = server.seen();
    assert_eq!(seen[0].field("client_id").as_deref(), Some("issued"));
    assert_eq!(seen[0].field("resource").as_deref(), Some("https://api.openai.com/v1"));
    let mut nameless = expected;
    nameless.as_object_mut().unwrap().shift_remove("clientId");
    assert!(renew("openai", &server, &nameless).unwrap_err().message.contains("sign in again"));
}

#[test]
fn a_sign_in_with_chatgpt_needs_its_client_and_its_scope() {
    let rows = [
        ("PATH?code=c&state=STATE", direct_tokens("a"), "names no client"),
        ("PATH?code=c&client_id=i&state=STATE", tokens(), "no scope chatgpt.tokens.use.direct"),
        (
            "PATH?code=c&client_id=i&state=STATE",
            json!({"access_token": "a", "refresh_token": "r", "expires_in": 1, "scope": "chatgpt.tokens.use.direct"}),
            "id_token",
        ),
    ];
    for (target, reply, piece) in rows {
        let user = User::new([], Browser::Goes(vec![target]));
        Try::new("openai", Provider::new(vec![(200, reply)]), user).fails(ErrorKind::Auth, piece);
    }
}

#[test]
fn codex_through_the_browser_or_with_a_code() {
    let token = json!({"access_token": account_token(), "refresh_token": "r", "expires_in": 60});
    let user = User::new([text("browser")], Browser::Goes(vec!["PATH?code=c&state=STATE"]));
    let run = Try::new("openai-codex", Provider::new(vec![(200, token.clone())]), user);
    let entry = without_expiry(run.run().unwrap(), 60);
    assert_eq!(entry["accountId"], "acct");
    assert!(run.user.url().contains("originator=pi"));
    assert_eq!(run.server.lines(), ["POST /auth.openai.com/oauth/token"]);

    let replies = vec![
        (200, json!({"device_auth_id": "dev-1", "user_code": "AB-CD", "interval": "7"})),
        (403, json!({})),
        (404, json!({})),
        (400, json!({"error": {"code": "deviceauth_authorization_pending"}})),
        (400, json!({"error": "slow_down"})),
        (200, json!({"authorization_code": "ac", "code_verifier": "cv"})),
        (200, token),
    ];
    let run =
        Try::new("openai-codex", Provider::new(replies), User::new([text("device_code")], Browser::Idle));
    run.run().unwrap();
    assert_eq!(*run.clock.waits.lock().unwrap(), [7, 7, 7, 12]);
    let last = run.server.seen().pop().unwrap();
    assert_eq!(last.field("code_verifier").unwrap(), "cv");
    assert_eq!(last.field("redirect_uri").unwrap(), "https://auth.openai.com/deviceauth/callback");
    assert!(matches!(&run.user.told()[0], Event::DeviceCode { user_code, .. } if user_code == "AB-CD"));

    let token = json!({"access_token": "no-jwt", "refresh_token": "r", "expires_in": 60});
    let user = User::new([text("browser")], Browser::Goes(vec!["PATH?code=c&state=STATE"]));
    Try::new("openai-codex", Provider::new(vec![(200, token)]), user).fails(ErrorKind::Auth, "account");
    Try::new(
        "openai-codex",
        Provider::new(vec![(404, json!({}))]),
        User::new([text("device_code")], Browser::Idle),
    )
    .fails(ErrorKind::Auth, "OPENAI_API_KEY");
    Try::new(
        "openai-codex",
        Provider::new(vec![(200, json!({}))]),
        User::new([text("phone")], Browser::Idle),
    )
    .fails(ErrorKind::Auth, "no such way");
}

/// The device flows that share one shape: the provider, and what the first answer of its own looks like.
const DEVICE: [(&str, &str); 4] = [
    ("xai", "https://x.ai/d?c=1"),
    ("kimi-coding", "https://kimi.com/d?c=1"),
    ("meta", "https://meta.com/d?c=1"),
    ("github-copilot", "https://github.com/login/device"),
];

fn device_code(page: &str) -> Value {
    json!({"device_code": CANARY, "user_code": "AB-CD", "verification_uri": page,
        "verification_uri_complete": page, "expires_in": 60, "interval": 2})
}

/// A polling run of `provider` that gets `polls`, then `last` for ever.
fn device(provider: &'static str, page: &str, polls: Vec<(u16, Value)>) -> Try {
    let mut replies = vec![(200, device_code(page))];
    replies.extend(polls);
    Try::new(provider, Provider::new(replies), User::new([text("")], Browser::Idle))
}

#[test]
fn a_device_code_is_polled_at_the_pace_of_the_server() {
    for (provider, page) in DEVICE {
        let polls = vec![
            (400, json!({"error": "authorization_pending"})),
            (400, json!({"error": "slow_down"})),
            (400, json!({"error": "slow_down", "interval": 3})),
            (503, json!("<html><title>trouble</title>")),
            (400, json!({"error": "access_denied"})),
        ];
        let run = device(provider, page, polls);
        run.fails(ErrorKind::Auth, "denied");
        assert_eq!(*run.clock.waits.lock().unwrap(), [2, 2, 7, 3, 8], "{provider}");
        assert!(
            run.user.told().iter().any(|event| matches!(event, Event::DeviceCode { url, .. } if url == page))
        );
    }
}

#[test]
fn a_device_code_that_expires_or_is_refused_ends_the_wait() {
    for (provider, page) in DEVICE {
        let pending = || (400, json!({"error": "authorization_pending"}));
        device(provider, page, vec![pending()]).fails(ErrorKind::Auth, "expired");
        device(provider, page, vec![(400, json!({"error": "slow_down"}))]).fails(ErrorKind::Auth, "clock");
        device(provider, page, vec![(400, json!({"error": "expired_token"}))])
            .fails(ErrorKind::Auth, "expired");
        let quoted =
            json!({"error": "invalid_grant", "error_description": format!("bad {CANARY}\u{1b}[31m")});
        device(provider, page, vec![(400, quoted)]).fails(ErrorKind::Auth, "invalid_grant: bad •••");
        device(provider, page, vec![(418, json!("garbage"))]).fails(ErrorKind::Auth, "garbage");

        let mut run = device(provider, page, vec![pending()]);
        run.clock.cancel_at = Some(3);
        run.fails(ErrorKind::Aborted, "Login cancelled");
    }
}

#[test]
fn garbage_answers_are_errors() {
    let first = [
        (500, json!({"error": "x"})),
        (200, json!("no json")),
        (200, json!([1])),
        (200, json!({})),
        (200, json!({"device_code": 5, "user_code": true})),
        (200, device_code("javascript:alert(1)")),
        (200, device_code("file:///bin/sh")),
        (200, device_code("https://x.ai/\u{1b}]0;x")),
    ];
    for (provider, _) in DEVICE {
        for reply in &first {
            let run =
                Try::new(provider, Provider::new(vec![reply.clone()]), User::new([text("")], Browser::Idle));
            let error = run.run().unwrap_err();
            assert!(!error.message.is_empty() && !error.message.contains('\u{1b}'), "{error}");
            assert!(run.user.told().is_empty(), "{provider} {reply:?}");
        }
    }
    for bad in [
        json!("no json"),
        json!({"access_token": "", "refresh_token": "r", "expires_in": 5}),
        json!({"access_token": "a", "expires_in": 5}),
        json!({"access_token": "a", "refresh_token": "r", "expires_in": "soon"}),
        json!({"access_token": "a", "refresh_token": "r", "expires_in": -5}),
        json!({"access_token": {"x": 1}, "refresh_token": "r", "expires_in": 5}),
    ] {
        let user = User::new([], Browser::Goes(vec!["PATH?code=c&state=STATE"]));
        let run = Try::new("anthropic", Provider::new(vec![(200, bad)]), user);
        assert_eq!(run.run().unwrap_err().kind, ErrorKind::Auth);
    }
}

#[test]
fn the_simple_device_flows_give_an_entry() {
    let answer = tokens();
    let run = device("xai", "https://x.ai/d", vec![(200, answer.clone())]);
    assert_eq!(without_expiry(run.run().unwrap(), 3300)["refresh"], "refresh-1");
    assert_eq!(run.server.seen()[0].field("referrer").unwrap(), "pi");
    let run =
        device("xai", "https://x.ai/d", vec![(200, json!({"access_token": "a", "refresh_token": "r"}))]);
    without_expiry(run.run().unwrap(), 3300);
    device("xai", "http://x.ai/d", vec![]).fails(ErrorKind::Auth, "verification_uri");

    let run = device("kimi-coding", "https://kimi.com/d", vec![(200, answer)]);
    assert_eq!(without_expiry(run.run().unwrap(), 3600)["access"], "access-1");

    let polls = vec![(200, json!({"access_token": "identity"})), (200, json!({"api_key": "key"}))];
    let run = device("meta", "https://meta.com/d", polls);
    let entry = without_expiry(run.run().unwrap(), 86_400);
    assert_eq!((&entry["access"], &entry["refresh"]), (&json!("key"), &json!("identity")));
    assert_eq!(run.server.seen().pop().unwrap().authorization, "Bearer identity");
    let polls = vec![
        (200, json!({"access_token": "identity"})),
        (200, json!({"action_url": "https://meta.com/setup"})),
    ];
    device("meta", "https://meta.com/d", polls).fails(ErrorKind::Auth, "https://meta.com/setup");
}

#[test]
fn copilot_gets_a_token_of_its_own_and_the_models() {
    let later = now_ms() / 1000 + 1800;
    let server = Provider::answering(move |_, seen| {
        let path = seen.line.split_once(' ').unwrap().1;
        let reply = match path {
            "/ghe.example.com/login/device/code" => device_code("https://ghe.example.com/login/device"),
            "/ghe.example.com/login/oauth/access_token" => json!({"access_token": "ghu"}),
            "/api.ghe.example.com/copilot_internal/v2/token" => {
                json!({"token": "tid=1;proxy-ep=proxy.ghe.example.com;x", "expires_at": later})
            }
            "/api.ghe.example.com/models" => json!({"data": [
                {"id": "m-1", "model_picker_enabled": true},
                {"id": "m-2", "model_picker_enabled": false}]}),
            other => panic!("{other}"),
        };
        (200, reply)
    });
    let user = User::new([text(" https://GHE.example.com/ ")], Browser::Idle);
    let run = Try::new("github-copilot", server, user);
    let entry = without_expiry(run.run().unwrap(), 1500);
    let expected = json!({"type": "oauth", "access": "tid=1;proxy-ep=proxy.ghe.example.com;x", "refresh": "ghu",
        "enterpriseUrl": "ghe.example.com", "availableModelIds": ["m-1"]});
    assert_eq!(entry, expected);
    let base = method("github-copilot", None).unwrap().base_url(entry.as_object().unwrap());
    assert_eq!(base.as_deref(), Some("https://api.ghe.example.com"));
    // No request claims to come from an editor.
    for seen in run.server.seen() {
        let agent = seen.headers.iter().find(|(name, _)| name == "user-agent").unwrap();
        assert!(agent.1.starts_with("pi/"), "{agent:?}");
        let claims = ["editor-version", "editor-plugin-version", "copilot-integration-id"];
        assert!(!seen.headers.iter().any(|(name, _)| claims.contains(&name.as_str())));
    }
    Try::new(
        "github-copilot",
        Provider::new(vec![(200, json!({}))]),
        User::new([text("no domain!")], Browser::Idle),
    )
    .fails(ErrorKind::Auth, "domain");
}

#[test]
fn copilot_enables_models_and_bears_a_limit() {
    let known = crate::models::catalogue::Section::of("github-copilot").unwrap().models();
    let (one, two) = (known[0].id.clone(), known[1].id.clone());
    let (first, second) = (one.clone(), two.clone());
    let server = Provider::answering(move |number, seen| {
        let path = seen.line.split_once(' ').unwrap().1;
        let off =
            |id: &str| json!({"id": id, "model_picker_enabled": true, "policy": {"state": "unconfigured"}});
        match path {
            "/github.com/login/device/code" => (200, device_code("https://github.com/login/device")),
            "/github.com/login/oauth/access_token" => (200, json!({"access_token": "ghu"})),
            "/api.github.com/copilot_internal/v2/token" => {
                (200, json!({"token": "t", "expires_at": 9_999_999_999_u64}))
            }
            "/api.individual.githubcopilot.com/models" if number == 3 => (429, json!({})),
            "/api.individual.githubcopilot.com/models" => (200, json!({"data": [off(&first), off(&second)]})),
            path if path.contains(&first) => (200, json!({})),
            _ => (403, json!({})),
        }
    });
    let run = Try::new("github-copilot", server, User::new([Answer::Nobody], Browser::Idle));
    let entry = run.run().unwrap();
    assert_eq!(entry["availableModelIds"], json!([one, two]));
    let last = run.server.seen();
    let enabling: Vec<&Seen> = last.iter().filter(|seen| seen.line.ends_with("/policy")).collect();
    assert_eq!(enabling.len(), 2);
    assert_eq!(enabling[0].authorization, "Bearer t");
    assert_eq!(run.user.progress(), "Enabling models...");

    let refused = vec![
        (200, device_code("https://github.com/login/device")),
        (200, json!({"access_token": CANARY})),
        (403, json!({"message": format!("{CANARY} is not for you")})),
    ];
    Try::new("github-copilot", Provider::new(refused), User::new([text("")], Browser::Idle))
        .fails(ErrorKind::Auth, "••• is not for you. GitHub may allow Copilot to the editors it knows only");
}

#[test]
fn openrouter_gives_a_key_that_does_not_end() {
    let user = User::new([], Browser::Goes(vec!["/oauth/callback/guess?code=evil", "PATH?code=c"]));
    let run = Try::new("openrouter", Provider::new(vec![(200, json!({"key": "sk-or"}))]), user);
    let entry = run.run().unwrap();
    let expected = r#"{"type":"oauth","access":"sk-or","refresh":"","expires":9007199254740991}"#;
    assert_eq!(entry.to_string(), expected);
    assert_eq!(run.server.lines(), ["POST /openrouter.ai/api/v1/auth/keys"]);
    assert_eq!(run.server.seen()[0].field("code").unwrap(), "c");
    let user = User::new([text("http://x/?code=c")], Browser::Idle);
    Try::new(
        "openrouter",
        Provider::new(vec![(403, json!({"error": {"message": "no", "code": 403}}))]),
        user,
    )
    .fails(ErrorKind::Auth, "no. An API key works too: set OPENROUTER_API_KEY");
}

#[test]
fn radius_asks_its_gateway_for_the_page() {
    let replies = vec![
        (200, json!({"authorizationEndpoint": "https://radius.example/authorize?x=1"})),
        (200, json!({"access_token": "a", "refresh_token": "r", "expires_in": 600, "scope": "gateway"})),
    ];
    let user = User::new([text("browser")], Browser::Goes(vec!["PATH?code=c&state=STATE"]));
    let run = Try::new("radius", Provider::new(replies), user);
    let entry = without_expiry(run.run().unwrap(), 540);
    assert_eq!(entry["scope"], "gateway");
    assert!(run.user.url().starts_with("https://radius.example/authorize?response_type=code"));
    assert_eq!(run.server.lines(), ["GET /radius.pi.dev/v1/oauth", "POST /radius.pi.dev/v1/oauth/token"]);

    let replies = vec![
        (200, device_code("https://radius.example/d")),
        (400, json!({"error": "authorization_pending"})),
        (200, tokens()),
    ];
    let run = Try::new("radius", Provider::new(replies), User::new([text("device-code")], Browser::Idle));
    run.run().unwrap();
    let bad = vec![(200, json!({"authorizationEndpoint": "javascript:x"}))];
    Try::new("radius", Provider::new(bad), User::new([text("browser")], Browser::Idle))
        .fails(ErrorKind::Auth, "authorizationEndpoint");
}

#[test]
fn a_renewal_keeps_what_it_does_not_know() {
    let later = now_ms() / 1000 + 1800;
    let codex = json!({"access_token": account_token(), "refresh_token": "new", "expires_in": 3600});
    let fresh = json!({"access_token": "new", "refresh_token": "new", "expires_in": 3600, "scope": "s"});
    let rows = [
        ("anthropic", vec![(200, fresh.clone())], "new"),
        ("openai-codex", vec![(200, codex)], "new"),
        ("kimi-coding", vec![(503, json!({})), (429, json!({})), (200, fresh.clone())], "new"),
        ("xai", vec![(200, json!({"access_token": "new"}))], "old"),
        ("radius", vec![(200, fresh)], "new"),
        ("meta", vec![(200, json!({"api_key": "new"}))], "old"),
        (
            "github-copilot",
            vec![(200, json!({"token": "new", "expires_at": later})), (500, json!({}))],
            "old",
        ),
    ];
    let old = json!({"x": [1], "type": "oauth", "refresh": "old", "access": "old", "expires": 5, "env": {"A": "b"}});
    for (provider, replies, refresh) in rows {
        let server = Provider::new(replies);
        let entry = renew(provider, &server, &old).unwrap();
        let names: Vec<&String> = entry.as_object().unwrap().keys().take(6).collect();
        assert_eq!(names, ["x", "type", "refresh", "access", "expires", "env"], "{provider}");
        assert_eq!(entry["refresh"], refresh, "{provider}");
        assert_ne!(entry["access"], "old", "{provider}");
        assert!(entry["expires"].as_u64().unwrap() > now_ms(), "{provider}");
        assert_eq!(entry["x"], json!([1]));
    }
}

#[test]
fn a_refused_renewal_says_what_else_works_and_no_secret() {
    let old = json!({"type": "oauth", "refresh": CANARY, "access": "old", "expires": 5});
    let said = json!({"error": "invalid_grant", "error_description": format!("{CANARY} was revoked")});
    for provider in ["anthropic", "openai-codex", "kimi-coding", "xai", "radius", "meta", "github-copilot"] {
        let error = renew(provider, &Provider::new(vec![(400, said.clone())]), &old).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{provider}");
        assert!(error.message.contains("invalid_grant: ••• was revoked"), "{}", error.message);
        assert!(!error.message.contains(CANARY), "{}", error.message);
        let error = renew(provider, &Provider::new(vec![(503, json!({}))]), &old).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Provider, "{provider}");
        let error =
            renew(provider, &Provider::new(vec![(200, json!({}))]), &json!({"type": "oauth"})).unwrap_err();
        assert!(error.message.contains("refresh"), "{}", error.message);
    }
}

#[test]
fn an_abort_ends_every_wait_at_once() {
    // While the server says nothing.
    let (entered, waiting) = crossbeam_channel::bounded(0);
    let server = Server::start(move |connection| {
        connection.request();
        let _ = entered.send(());
        connection.wait_for_close();
    });
    let server = Provider { server, seen: Arc::default() };
    let run = Try::new("xai", server, User::new([], Browser::Idle));
    std::thread::scope(|scope| {
        let result = scope.spawn(|| run.run());
        waiting.recv().unwrap();
        run.cancel.cancel();
        assert_eq!(result.join().unwrap().unwrap_err().kind, ErrorKind::Aborted);
    });

    // While the user is in the browser, with idle connections open to the callback server.
    let run = Try::new("anthropic", Provider::new(vec![(200, tokens())]), User::new([], Browser::Idle));
    std::thread::scope(|scope| {
        let result = scope.spawn(|| run.run());
        let is_code = |prompt: &Prompt| matches!(prompt, Prompt::Code { .. });
        let asked = || run.user.asked.lock().unwrap().iter().any(is_code);
        while !asked() {
            std::thread::yield_now();
        }
        let url = run.user.url();
        let back = form::value(url.split_once('?').unwrap().1, "redirect_uri").unwrap();
        let port: u16 = back.split([':', '/']).nth(4).unwrap().parse().unwrap();
        let idle: Vec<TcpStream> =
            (0..20).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        run.cancel.cancel();
        assert_eq!(result.join().unwrap().unwrap_err().kind, ErrorKind::Aborted);
        drop(idle);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the callback server is still there");
    });
}

#[test]
fn gateways_of_the_user_are_signed_in_to_like_radius() {
    assert!(method("my-gateway", None).is_none());
    assert_eq!(method("my-gateway", Some("http://x")).unwrap().provider, "radius");
    for method in table::METHODS {
        let provider = crate::auth::provider::find(method.provider);
        assert!(provider.is_some_and(|row| row.has_sign_in()), "{} is no provider", method.provider);
    }
}
