//! Renewals: once for all who ask, with nothing lost on any way out.

use super::super::tests::{Folder, model};
use super::*;
use crate::auth::oauth::{Answer, Event, Prompt};
use crate::llm::testing::Server;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

const CANARY: &str = "canary-secret-1";

/// Credentials of `folder`, whose providers are all at `server`.
fn credentials(folder: &Path, server: &Server) -> Credentials {
    let mut credentials = Credentials::load(folder, Env::of([]));
    credentials.place.hosts = Hosts::At(server.url(""));
    credentials
}

fn entry(expires: u64) -> String {
    format!(
        r#"{{"before": [1.5, null], "anthropic": {{"x": 1, "type": "oauth", "access": "old", "refresh": "{CANARY}", "expires": {expires}}}, "after": {{}}}}"#
    )
}

fn key(credentials: &Credentials, cancel: &CancelToken) -> Result<String, StreamError> {
    let got = credentials.resolve(&model("anthropic"), &Configured::default(), cancel)?;
    assert_eq!(got.source.to_string(), "auth.json (signed in)");
    Ok(got.key.unwrap().expose().to_owned())
}

/// A server that gives the tokens `new-1`, `new-2`, each for an hour, and counts.
fn renewing(count: &Arc<AtomicUsize>) -> Server {
    let count = count.clone();
    Server::start(move |connection| {
        while connection.request().is_some() {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let body = json!({"access_token": format!("new-{number}"), "refresh_token": format!("next-{number}"), "expires_in": 3600});
            connection.answer("200 OK", "", body.to_string());
        }
    })
}

fn answering(status: &'static str, body: &'static str) -> Server {
    Server::start(move |connection| {
        while connection.request().is_some() {
            connection.answer(status, "", body);
        }
    })
}

#[test]
fn a_token_that_ends_soon_is_renewed_once_for_all_threads() {
    let count = Arc::default();
    let server = renewing(&count);
    let folder = Folder::new(&entry(now_ms() + 60_000));
    let start = Barrier::new(8);
    let keys: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    // Each as good as a process: nothing is shared but the file.
                    let credentials = credentials(folder.path(), &server);
                    start.wait();
                    key(&credentials, &CancelToken::new()).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(keys, ["new-1"; 8]);
    assert_eq!(count.load(Ordering::SeqCst), 1);

    let file = folder.path().join("auth.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(stored["anthropic"]["refresh"], "next-1");
    assert_eq!(stored["anthropic"]["x"], 1);
    assert_eq!(stored["before"], json!([1.5, null]));
    let names: Vec<&String> = stored.as_object().unwrap().keys().collect();
    assert_eq!(names, ["before", "anthropic", "after"]);
    assert!(text.starts_with("{\n  \"before\": [\n    1.5,"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(folder.names(), ["auth.json"], "something was left behind");
}

#[test]
fn a_renewal_that_fails_leaves_the_old_token_and_says_what_to_do() {
    let server = answering(
        "400 Bad Request",
        r#"{"error": "invalid_grant", "error_description": "canary-secret-1 revoked"}"#,
    );
    let folder = Folder::new(&entry(5));
    let error = key(&credentials(folder.path(), &server), &CancelToken::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    let expected = "OAuth refresh failed for anthropic: Anthropic token refresh failed with status 400: \
        invalid_grant: ••• revoked. An API key works too: set ANTHROPIC_API_KEY, or pi auth login anthropic \
        --stdin. Sign in again: pi auth login anthropic";
    assert_eq!(error.message, expected);
    assert_eq!(folder.read(), entry(5));
    assert_eq!(folder.names(), ["auth.json"]);

    // One that has not ended is used as long as it lasts.
    let expires = now_ms() + 120_000;
    let folder = Folder::new(&entry(expires));
    let credentials = credentials(folder.path(), &server);
    assert_eq!(key(&credentials, &CancelToken::new()).unwrap(), "old");
    let half_an_hour = Duration::from_secs(1800);
    let renewed = credentials.renew("anthropic", &Configured::default(), half_an_hour, &CancelToken::new());
    assert!(renewed.unwrap_err().message.contains("Sign in again"));
}

#[test]
fn a_token_that_is_too_short_is_an_error_for_who_needs_more() {
    let count = Arc::default();
    let server = renewing(&count);
    let folder = Folder::new(&entry(5));
    let credentials = credentials(folder.path(), &server);
    let renew = |seconds| {
        let at_least = Duration::from_secs(seconds);
        credentials.renew("anthropic", &Configured::default(), at_least, &CancelToken::new())
    };
    renew(1800).unwrap();
    renew(1800).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(renew(7200).unwrap_err().message.contains("expires too soon"));
    assert_eq!(key(&credentials, &CancelToken::new()).unwrap(), "new-2");
}

#[test]
fn an_abort_leaves_at_once_and_the_new_token_is_stored() {
    let (entered, waiting) = crossbeam_channel::bounded(0);
    let (open, gate) = crossbeam_channel::bounded::<()>(0);
    let server = Server::start(move |connection| {
        connection.request();
        entered.send(()).unwrap();
        let _ = gate.recv();
        connection.answer(
            "200 OK",
            "",
            r#"{"access_token": "new", "refresh_token": "next", "expires_in": 3600}"#,
        );
    });
    let folder = Folder::new(&entry(5));
    let cancel = CancelToken::new();
    std::thread::scope(|scope| {
        let result = scope.spawn(|| key(&credentials(folder.path(), &server), &cancel));
        waiting.recv().unwrap();
        cancel.cancel();
        assert_eq!(result.join().unwrap().unwrap_err(), StreamError::aborted());
        assert_eq!(folder.read(), entry(5));
        // Somebody who waits for the lock can leave too, and asks no server.
        let cancel = CancelToken::new();
        let other = scope.spawn({
            let cancel = cancel.clone();
            let (folder, server) = (&folder, &server);
            move || key(&credentials(folder.path(), server), &cancel)
        });
        cancel.cancel();
        assert_eq!(other.join().unwrap().unwrap_err(), StreamError::aborted());
    });
    drop(open);
    // Whoever comes next waits for the lock, and finds the new token.
    let got = key(&credentials(folder.path(), &server), &CancelToken::new());
    assert_eq!(got.unwrap(), "new");
}

#[test]
fn a_sign_out_or_a_repair_meanwhile_is_seen() {
    let count = Arc::default();
    let server = renewing(&count);
    let folder = Folder::new(&entry(5));
    let credentials = credentials(folder.path(), &server);
    credentials.file.entries().unwrap();
    assert!(credentials.remove("anthropic", &CancelToken::new()).unwrap());
    assert!(!credentials.remove("anthropic", &CancelToken::new()).unwrap());
    assert_eq!(folder.read(), "{\n  \"before\": [\n    1.5,\n    null\n  ],\n  \"after\": {}\n}");
    let error = key(&credentials, &CancelToken::new()).unwrap_err();
    assert!(error.message.contains("pi auth login anthropic"), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn a_broken_file_is_never_written_over() {
    let server = answering("200 OK", "{}");
    for broken in ["{\"anthropic\": {", "[]", "{} x"] {
        let folder = Folder::new(broken);
        let credentials = credentials(folder.path(), &server);
        let cancel = CancelToken::new();
        let stored = credentials.store_key("openai", &Secret::new(CANARY), &cancel);
        let error = stored.unwrap_err().message;
        assert!(error.contains("auth.json") && !error.contains(CANARY), "{error}");
        assert!(credentials.remove("anthropic", &cancel).is_err());
        let signed_in = credentials.sign_in("xai", &Configured::default(), None, &Nobody, &cancel);
        assert!(signed_in.unwrap_err().message.contains("auth.json"));
        assert_eq!(folder.read(), broken);
        assert_eq!(folder.names(), ["auth.json"]);
    }
}

struct Nobody;

impl Interaction for Nobody {
    fn tell(&self, _: &Event) {}

    fn ask(&self, _: &Prompt, _: &CancelToken) -> Answer {
        Answer::Nobody
    }
}

#[test]
fn a_new_folder_and_file_are_for_their_owner_alone() {
    let folder = Folder::new("");
    let agent = folder.path().join("a/b");
    let credentials = Credentials::load(&agent, Env::of([]));
    let cancel = CancelToken::new();
    credentials.store_key("openai", &Secret::new("sk-1"), &cancel).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&agent), mode(&agent.join("auth.json"))), (0o700, 0o600));
    let text = std::fs::read_to_string(agent.join("auth.json")).unwrap();
    assert_eq!(text, "{\n  \"openai\": {\n    \"type\": \"api_key\",\n    \"key\": \"sk-1\"\n  }\n}");
    assert_eq!(credentials.stored().unwrap().len(), 1);
}

#[test]
fn a_link_stays_a_link_and_settings_stay_with_the_provider() {
    let folder = Folder::new("");
    let real = folder.path().join("real.json");
    std::fs::write(&real, r#"{"openai": {"type": "api_key", "key": "a", "env": {"X": "y"}}}"#).unwrap();
    std::os::unix::fs::symlink("real.json", folder.path().join("auth.json")).unwrap();
    let credentials = Credentials::load(folder.path(), Env::of([]));
    credentials.store_key("openai", &Secret::new("b"), &CancelToken::new()).unwrap();
    assert!(folder.path().join("auth.json").is_symlink());
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(&real).unwrap()).unwrap();
    assert_eq!(stored, json!({"openai": {"type": "api_key", "key": "b", "env": {"X": "y"}}}));
}

#[test]
fn the_lock_of_the_other_program_is_waited_for_and_one_that_was_left_is_not() {
    let folder = Folder::new("{}");
    let credentials = Credentials::load(folder.path(), Env::of([]));
    let lock = folder.path().join("auth.json.lock");
    let store = |cancel: &CancelToken| credentials.store_key("openai", &Secret::new("k"), cancel);

    // Held by somebody: an abort ends the wait.
    std::fs::create_dir(&lock).unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(store(&cancel).unwrap_err().kind, ErrorKind::Aborted);
    assert!(lock.exists());
    // Freed by its holder while we wait.
    std::thread::scope(|scope| {
        let stored = scope.spawn(|| store(&CancelToken::new()));
        std::fs::remove_dir(&lock).unwrap();
        stored.join().unwrap().unwrap();
    });
    // Left by a crash of the other program, and by one of ours.
    let old = std::time::SystemTime::now() - Duration::from_secs(31);
    let ours = std::time::UNIX_EPOCH + Duration::new(now_ms() / 1000, 70_000_105);
    for time in [old, ours] {
        std::fs::create_dir(&lock).unwrap();
        let times = std::fs::FileTimes::new().set_modified(time);
        std::fs::File::open(&lock).unwrap().set_times(times).unwrap();
        store(&CancelToken::new()).unwrap();
        assert!(!lock.exists());
    }
}

#[test]
fn the_server_of_a_sign_in_is_used_unless_the_user_names_another() {
    let later = now_ms() + 3_600_000;
    let auth = format!(
        r#"{{"github-copilot": {{"type": "oauth", "access": "tid=1;proxy-ep=proxy.business.githubcopilot.com", "refresh": "r", "expires": {later}, "availableModelIds": ["m"]}}}}"#
    );
    let folder = Folder::new(&auth);
    let credentials = Credentials::load(folder.path(), Env::of([]));
    let section = crate::models::catalogue::Section::of("github-copilot").unwrap();
    let mut model = section.models().remove(0);
    let base_url = |model: &crate::llm::model::Model| {
        let got = credentials.resolve(model, &Configured::default(), &CancelToken::new());
        got.unwrap().base_url
    };
    assert_eq!(base_url(&model).as_deref(), Some("https://api.business.githubcopilot.com"));
    model.base_url = "http://localhost:1".into();
    assert_eq!(base_url(&model), None);
    let allowed = credentials.allowed_models();
    assert_eq!(allowed.len(), 1);
    assert!(allowed["github-copilot"].contains("m"));
    assert!(!allowed["github-copilot"].contains("n"));
}

#[test]
fn a_sign_in_ends_in_the_file() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            let body = match request.line.contains("device/code") {
                true => {
                    r#"{"device_code": "d", "user_code": "u", "verification_uri": "https://x.ai/d", "expires_in": 60}"#
                }
                false => r#"{"access_token": "a", "refresh_token": "r"}"#,
            };
            connection.answer("200 OK", "", body);
        }
    });
    struct Now(Mutex<Duration>);
    impl Clock for Now {
        fn now(&self) -> Duration {
            *self.0.lock().unwrap()
        }

        fn wait(&self, time: Duration, cancel: &CancelToken) -> bool {
            *self.0.lock().unwrap() += time;
            cancel.is_cancelled()
        }
    }
    let folder = Folder::new(r#"{"xai": {"type": "api_key", "key": "k"}}"#);
    let mut credentials = credentials(folder.path(), &server);
    credentials.place.clock = Arc::new(Now(Mutex::default()));
    credentials.sign_in("xai", &Configured::default(), None, &Nobody, &CancelToken::new()).unwrap();
    let stored = credentials.stored().unwrap();
    assert_eq!((stored[0].provider.as_str(), stored[0].kind.as_str()), ("xai", "oauth"));
    assert_eq!(credentials.stored_token("xai").unwrap().expose(), "a");
    let error = credentials.sign_in("groq", &Configured::default(), None, &Nobody, &CancelToken::new());
    assert!(error.unwrap_err().message.contains("takes an API key"));
}
