//! Operations on a whole session, with a model that says what it is told.

use super::compaction::NotCompacted;
use super::config::Config;
use super::control::{Begin, Parts, user_message};
use super::event::Event;
use super::expand::Commands;
use super::service::Services;
use super::session::Session;
use super::tree::Move;
use crate::auth::credential::Credentials;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::model::ThinkingLevel;
use crate::models::Registry;
use crate::resources::settings::Settings;
use crate::session::entry::Body;
use crate::session::{Conversation, Log};
use crate::tools::testing::TempDir;
use crate::wire::faux;
use serde_json::Value;
use std::sync::Arc;

/// A session with `faux/echo` that keeps ten tokens when it is compacted.
fn session(dir: &TempDir) -> Session {
    let (mut registry, _) = Registry::load(dir.path());
    registry.add(faux::models());
    let settings = Settings::default();
    let credentials = Credentials::load(dir.path(), Env::process());
    let mut services = Services::new(registry, credentials, &settings, dir.path());
    services.compaction.keep = Some(10);
    let model = services.registry.find("faux", "echo").unwrap();
    let mut log = Log::in_memory(dir.path(), None).unwrap();
    let context = log.context();
    let parts = Parts {
        conversation: Conversation::new(log, context),
        model,
        thinking: ThinkingLevel::Off,
        tools: Vec::new(),
        absent: Vec::new(),
        config: Config {
            services,
            settings,
            workspace: Arc::new(dir.workspace()),
            tools: Vec::new(),
            prompt: Arc::default(),
            commands: Commands::default(),
            scope: Vec::new(),
            limits: Default::default(),
            context_files: Vec::new(),
            themes: Default::default(),
            wanted: None,
            hooks: Default::default(),
            agents: Default::default(),
            over: Default::default(),
            started_in: dir.path().to_owned(),
            agent_dir: Default::default(),
            consent: None,
        },
    };
    Session::new(parts, None, &CancelToken::new())
}

fn say(session: &mut Session, text: &str) {
    session.prompt(text.to_owned(), Vec::new(), &mut |_| Ok(())).unwrap();
}

/// What the model would be told: a letter for each kind of message but the prompt.
fn shape(session: &Session) -> String {
    let letter = |role: &str| role.chars().next().unwrap_or('?');
    let messages = session.control().messages();
    let spoken = messages.iter().filter(|message| message.role() != "system");
    spoken.map(|message| letter(message.role())).collect()
}

fn leaf(session: &Session) -> String {
    session.control().log().leaf().unwrap_or("none").to_owned()
}

#[test]
fn a_compaction_that_is_asked_for_shortens_the_conversation() {
    let dir = TempDir::create();
    let mut session = session(&dir);
    let cancel = CancelToken::new();
    let mut told = Vec::new();
    let mut compact = |session: &mut Session| {
        let listener = &mut |event: &Event<'_>| {
            match event {
                Event::CompactionStart { .. } => told.push("start".to_owned()),
                Event::CompactionEnd { error_message, .. } => {
                    told.push(error_message.unwrap_or("end").to_owned());
                }
                _ => {}
            }
            Ok(())
        };
        session.compact(Some("the colours"), listener, &cancel)
    };
    assert_eq!(compact(&mut session).unwrap_err().to_string(), "Nothing to compact (session too small)");
    say(&mut session, &"red ".repeat(20));
    say(&mut session, &"blue ".repeat(20));
    let before = session.control().context_usage().unwrap();
    assert!(before.tokens.unwrap() > 100 && before.percent().unwrap() > 0.0);
    let result = compact(&mut session).unwrap();
    assert_eq!(shape(&session), "ca");
    assert!(result.summary.contains("[User]: red red"));
    assert!(result.summary.contains("Additional focus: the colours"));
    assert_eq!(session.control().context_usage().unwrap().tokens, None);
    assert_eq!(compact(&mut session).unwrap_err().to_string(), "Already compacted");
    assert_eq!(
        told,
        [
            "start",
            "Compaction failed: Nothing to compact (session too small)",
            "start",
            "end",
            "start",
            "Compaction failed: Already compacted",
        ]
    );
    say(&mut session, "green");
    assert_eq!(shape(&session), "caua");
    assert!(session.control().context_usage().unwrap().tokens.is_some());
}

#[test]
fn a_cancelled_compaction_changes_nothing() {
    let dir = TempDir::create();
    let mut session = session(&dir);
    say(&mut session, &"red ".repeat(20));
    say(&mut session, &"blue ".repeat(20));
    let (before, cancel) = (leaf(&session), CancelToken::new());
    let mut aborted = None;
    let listener = &mut |event: &Event<'_>| {
        match event {
            Event::CompactionStart { .. } => cancel.cancel(),
            Event::CompactionEnd { aborted: ended, error_message, .. } => {
                aborted = Some((*ended, error_message.is_some()));
            }
            _ => {}
        }
        Ok(())
    };
    let outcome = session.compact(None, listener, &cancel);
    assert!(matches!(outcome, Err(NotCompacted::Cancelled)));
    assert_eq!(aborted, Some((true, false)));
    assert_eq!((leaf(&session), shape(&session)), (before, "uaua".to_owned()));
}

#[test]
fn a_user_message_is_gone_to_in_order_to_be_said_anew() {
    let dir = TempDir::create();
    let mut session = session(&dir);
    let cancel = CancelToken::new();
    say(&mut session, "red");
    let first = leaf(&session);
    say(&mut session, "blue");
    let (tree, last) = session.control().tree().json();
    let tree: Value = serde_json::from_str(&tree).unwrap();
    // Below the prompt, the message and its answer.
    let user = &tree[0]["children"][0]["children"][0]["children"][0]["entry"];
    assert_eq!(user["message"]["content"][0]["text"], "blue");
    let (user, last) = (user["id"].as_str().unwrap().to_owned(), last.unwrap());

    let go = |session: &mut Session, target: &str| {
        session.navigate(target, Move::default(), &mut |_| Ok(()), &cancel)
    };
    let same = go(&mut session, &last).unwrap();
    assert!(!same.cancelled && same.editor_text.is_none());
    let moved = go(&mut session, &user).unwrap();
    assert_eq!(moved.editor_text.as_deref(), Some("blue"));
    assert_eq!((leaf(&session), shape(&session)), (first, "ua".to_owned()));
    say(&mut session, "green");
    let moved = go(&mut session, &last).unwrap();
    assert_eq!((moved.editor_text, leaf(&session)), (None, last));
    assert_eq!(shape(&session), "uaua");
    let error = go(&mut session, "nowhere").unwrap_err();
    assert_eq!(error.to_string(), "Entry nowhere not found");
    assert_eq!(
        session.control().tree().set_label("nowhere", Some("x")).unwrap_err(),
        "Entry nowhere not found"
    );
}

#[test]
fn a_branch_is_summed_up_where_the_conversation_goes_on() {
    let dir = TempDir::create();
    let mut session = session(&dir);
    let cancel = CancelToken::new();
    say(&mut session, "red");
    let first = leaf(&session);
    say(&mut session, "blue");
    let left = leaf(&session);
    let how = Move {
        summarize: true,
        instructions: Some("the colours"),
        label: Some("after blue"),
        ..Move::default()
    };
    let moved = session.navigate(&first, how, &mut |_| Ok(()), &cancel).unwrap();
    let entry = moved.summary_entry.expect("a summary");
    assert_eq!(entry.parent_id.as_deref(), Some(first.as_str()));
    let Body::BranchSummary(branch) = &entry.body else { panic!("{entry:?}") };
    assert_eq!(branch.from_id.as_deref(), Some(left.as_str()));
    assert!(branch.usage.is_some());
    assert!(branch.summary.contains("[User]: blue"), "{}", branch.summary);
    assert!(!branch.summary.contains("[User]: red"));
    assert!(branch.summary.contains("Additional focus: the colours"));
    assert_eq!(shape(&session), "uab");
    let bookmarks = session.control().log().bookmarks();
    assert_eq!(bookmarks[&entry.id].label, "after blue");

    let (at, stopped) = (leaf(&session), CancelToken::new());
    stopped.cancel();
    let moved = session.navigate(&left, how, &mut |_| Ok(()), &stopped).unwrap();
    assert!(moved.cancelled && moved.aborted);
    assert_eq!(leaf(&session), at);
}

#[test]
fn a_setting_that_is_changed_counts_from_the_next_run_on() {
    let dir = TempDir::create();
    let (settings, _) = Settings::load(dir.path());
    let mut session = session(&dir);
    let control = session.control().clone();
    control.change_config(|config| config.settings = settings);
    control
        .preferences()
        .change_settings(&[("retry.maxRetries", Some(9.into())), ("modelThinkingLevels", None)])
        .unwrap();
    let config = control.config();
    assert_eq!(config.services.retry.max_retries, 9);
    assert_eq!(config.settings.retry().max_retries, 9);
    say(&mut session, "go on");
    assert_eq!(control.config().services.retry.max_retries, 9);
}

#[test]
fn the_models_to_change_between_can_be_replaced() {
    let dir = TempDir::create();
    let session = session(&dir);
    let control = session.control();
    let registry = control.config().services.registry.clone();
    let scoped = |id: &str| crate::models::resolve::Scoped {
        model: registry.find("faux", id).unwrap(),
        thinking: None,
    };
    control.models().set_scope(vec![scoped("echo"), scoped("demo")]);
    let cycled = control.models().cycle(true, &mut |_| {}).unwrap().unwrap();
    assert!(cycled.is_scoped);
    assert_eq!(cycled.model.id, "demo");
    control.models().set_scope(vec![scoped("demo")]);
    assert!(control.models().cycle(true, &mut |_| {}).unwrap().is_none());
}

#[test]
fn keys_that_are_stored_and_removed_open_and_close_a_provider() {
    use super::sign_in::{Failure, State, Way};
    let dir = TempDir::create();
    let session = session(&dir);
    let (control, cancel) = (session.control(), CancelToken::new());
    let state = |control: &super::control::Control| {
        let mut methods = control.sign_ins().methods().into_iter();
        let method = methods.find(|method| method.provider == "minimax-cn").unwrap();
        (method.way, method.state)
    };
    assert_eq!(state(control), (Way::Key, State::Nothing));
    for wrong in ["", " ", "a\nb", &"x".repeat(1 << 20)] {
        let stored = control.sign_ins().store_key("minimax-cn", wrong, &cancel);
        assert!(matches!(stored, Err(Failure::Because(_))), "{wrong:.10}");
    }
    control.sign_ins().store_key("minimax-cn", " k1\n", &cancel).unwrap();
    assert_eq!(state(control), (Way::Key, State::Stored(Way::Key)));
    assert_eq!(control.sign_ins().stored(), Ok(vec![("minimax-cn".to_owned(), Way::Key)]));
    assert_eq!(control.sign_ins().default_model("minimax-cn").unwrap().id, "MiniMax-M3");
    assert_eq!(control.sign_ins().sign_out("minimax-cn", &cancel), Ok(true));
    assert_eq!(control.sign_ins().sign_out("minimax-cn", &cancel), Ok(false));
    assert_eq!(state(control), (Way::Key, State::Nothing));
}

#[test]
fn a_compaction_that_is_over_leaves_the_next_one_alone() {
    let dir = TempDir::create();
    let session = session(&dir);
    let control = session.control();
    let first = control.begin_compaction().unwrap();
    // Its listeners are told, and one of them asks for another.
    control.end_compaction();
    let second = control.begin_compaction().unwrap();
    drop(first);
    assert!(!control.is_idle());
    drop(second);
    assert!(control.is_idle());
}

#[test]
fn plain_text_neither_drives_a_terminal_nor_hides_anything() {
    for (text, expected) in [
        ("a\x1b[31mb\u{202e}c", "ab\u{fffd}c"),
        ("a\u{200b}b \u{e0041}", "a\u{fffd}b \u{fffd}"),
        ("👨\u{200d}👩 ok", "👨\u{200d}👩 ok"),
    ] {
        assert_eq!(super::plain_text(text.as_bytes()), expected);
    }
}

/// The conversation without the prompt, roles in front.
fn spoken(session: &Session) -> Vec<String> {
    session
        .control()
        .messages()
        .iter()
        .filter(|message| message.role() != "system")
        .map(|message| format!("{}: {}", message.role(), message.text()))
        .collect()
}

#[test]
fn a_steering_message_that_follows_a_prompt_waits_for_the_second_request() {
    for before in [false, true] {
        let dir = TempDir::create();
        let mut session = session(&dir);
        let control = session.control().clone();
        let message = |text: &str| user_message(text.into(), Vec::new());
        if before {
            control.queue().steer(message("early"), &mut |_| {});
        }
        let Ok(Begin::Run(ticket)) = control.begin(None, || message("go"), &mut |_| {}) else {
            panic!("the session is idle");
        };
        // The prompt is accepted, and its run has not begun.
        control.queue().steer(message("late"), &mut |_| {});
        session.ask(ticket, message("go"), &mut || {}, &mut |_| Ok(())).unwrap();
        let spoken = spoken(&session);
        let early: &[&str] = if before { &["user: early"] } else { &[] };
        let first = spoken.iter().position(|line| line.starts_with("assistant")).unwrap();
        assert_eq!(spoken[..first], [&["user: go"], early].concat());
        assert_eq!(spoken[first + 1], "user: late");
        assert!(spoken[first + 2].starts_with("assistant"));
    }
}

#[test]
fn events_can_be_printed() {
    let dir = TempDir::create();
    let mut session = session(&dir);
    let mut printed = Vec::new();
    let listener = &mut |event: &Event<'_>| {
        printed.push(format!("{event:?}"));
        Ok(())
    };
    session.prompt("say it".into(), Vec::new(), listener).unwrap();
    assert_eq!(printed.first().unwrap(), "Agent(AgentStart)");
    assert_eq!(printed.last().unwrap(), "AgentSettled { aborted: false }");
    assert!(printed.iter().any(|line| line.contains("TextDelta") && line.contains("Fold { blocks: 1, .. }")));
}
