//! Reading settings, as a whole.

use super::form::Form;
use super::*;
use crate::base::testing::TempDir;
use serde_json::json;

fn load(text: &str) -> (Settings, Vec<String>) {
    let scratch = TempDir::create();
    let path = scratch.write("settings.json", text);
    let (settings, diagnostics) = Settings::load(scratch.path());
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.path == path));
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    (settings, diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect())
}

#[test]
fn compaction_sizes_of_a_model_come_before_those_of_all() {
    let (settings, diagnostics) = load(
        r#"{"compaction":{"enabled":false,"reserveTokens":100,"model":"l/m",
        "modelOverrides":{"a/b/c":{"keepRecentTokens":5,"later":1},"a/d":{"reserveTokens":0}}},
        "branchSummary":{"reserveTokens":7,"skipPrompt":true}}"#,
    );
    assert_eq!(diagnostics, [""; 0]);
    let compaction = settings.compaction();
    assert!(!compaction.enabled && settings.branch_summary_skip_prompt());
    assert_eq!((compaction.model.as_deref(), compaction.branch_reserve), (Some("l/m"), 7));
    assert_eq!(compaction.sizes("a", "b/c"), (Some(100), Some(5)));
    assert_eq!(compaction.sizes("a", "d"), (Some(0), None));
    assert_eq!(compaction.sizes("a/b", "c"), (Some(100), Some(5)));
    assert_eq!(compaction.sizes("A", "d"), (Some(100), None));
    let usual = Settings::default().compaction();
    assert_eq!(usual.sizes("a", "d"), (None, None));
    assert!(usual.enabled && usual.branch_reserve == 16_384);
}

#[test]
fn without_a_file_the_defaults_hold() {
    let scratch = TempDir::create();
    let (settings, diagnostics) = Settings::load(scratch.path());
    assert_eq!(diagnostics, []);
    for settings in [settings, load("").0, load("{}").0, load("\u{feff}{\"shellPath\":null}").0] {
        assert!(!settings.user.is_broken);
        assert_eq!(settings.default_model(), None);
        assert_eq!(settings.text("shellPath"), None);
        assert_eq!(settings.texts("defaultTools"), None);
        assert_eq!(settings.steering_mode(), "one-at-a-time");
        assert_eq!(settings.word("session.sync"), "turn");
        assert_eq!(settings.http_idle_timeout(), Some(Duration::from_secs(300)));
        assert!(settings.flag("images.autoResize") && !settings.flag("images.blockImages"));
        assert_eq!(settings.count("bash.outputCapBytes"), 1 << 30);
        assert_eq!(settings.number("bash.timeoutSeconds"), None);
        let retry = settings.retry();
        assert_eq!((retry.max_retries, retry.base_delay_ms, retry.max_agent_delay_ms), (3, 2000, 60_000));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_the_place() {
    let rows = [
        ("{\n  \"a\": 1,\n}", "line 3, column 1: trailing comma; the defaults are used"),
        ("{\n  // no\n}", "line 2, column 3: key must be a string; the defaults are used"),
        ("[]", "is not a JSON object; the defaults are used"),
        ("{\"shellPath\":\"x\"", "line 1, column 16: EOF while parsing an object; the defaults are used"),
    ];
    for (text, message) in rows {
        let (settings, diagnostics) = load(text);
        assert_eq!(diagnostics, [message]);
        assert!(settings.user.is_broken);
        assert_eq!(settings.text("shellPath"), None);
    }
}

#[test]
fn every_value_is_read() {
    let (settings, diagnostics) = load(
        r#"{"defaultProvider":"p","defaultModel":"m","defaultThinkingLevel":"high","modelThinkingLevels":{"p/m":"low"},
        "thinkingBudgets":{"low":1000,"later":"x"},"enabledModels":["a*"],"defaultTools":[],"sessionDir":"~/s",
        "shellPath":"/bin/sh","shellCommandPrefix":"set -e","steeringMode":"all","followUpMode":"all",
        "httpIdleTimeoutMs":0,"images":{"autoResize":false,"blockImages":true},
        "bash":{"timeoutSeconds":0.5,"keepBackground":true,"outputCapBytes":5.0},
        "retry":{"enabled":false,"maxRetries":1,"baseDelayMs":2,"maxAgentDelayMs":3,
        "provider":{"timeoutMs":4,"maxRetries":5,"maxRetryDelayMs":6}},
        "session":{"sync":"always"},"httpProxy":" http://p ","theme":"dark"}"#,
    );
    assert_eq!(diagnostics, [""; 0]);
    assert_eq!((settings.default_provider(), settings.default_model()), (Some("p"), Some("m")));
    assert_eq!(settings.default_thinking_level(), Some(ThinkingLevel::High));
    assert_eq!(settings.model_thinking_level("p", "m"), Some(ThinkingLevel::Low));
    assert_eq!(settings.model_thinking_level("p", "n"), None);
    assert_eq!(settings.thinking_budgets(), [(ThinkingLevel::Low, 1000)]);
    assert_eq!(settings.enabled_models(), Some(vec!["a*".to_owned()]));
    assert_eq!(settings.texts("defaultTools"), Some(Vec::new()));
    assert_eq!(settings.text("sessionDir"), Some("~/s"));
    assert_eq!(settings.text("shellPath"), Some("/bin/sh"));
    assert_eq!(settings.text("shellCommandPrefix"), Some("set -e"));
    assert_eq!((settings.steering_mode(), settings.follow_up_mode()), ("all", "all"));
    assert_eq!(settings.http_idle_timeout(), None);
    assert!(!settings.flag("images.autoResize") && settings.flag("images.blockImages"));
    assert_eq!(settings.number("bash.timeoutSeconds"), Some(0.5));
    assert!(settings.flag("bash.keepBackground"));
    assert_eq!(settings.count("bash.outputCapBytes"), 5);
    assert_eq!(settings.word("session.sync"), "always");
    assert_eq!(settings.http_proxy(), Some("http://p"));
    assert_eq!(settings.get("theme"), Some(&json!("dark")));
    assert_eq!(
        settings.retry(),
        Retry {
            enabled: false,
            max_retries: 1,
            base_delay_ms: 2,
            max_agent_delay_ms: 3,
            provider_max_retries: 5,
            provider_max_retry_delay_ms: 6,
        }
    );
}

#[test]
fn a_value_of_the_wrong_type_is_told_and_left_out() {
    for key in table::keys() {
        let (path, form) = (key.path, key.form);
        let wrong: &[Value] = match form {
            Form::Flag => &[json!(1), json!("true")],
            Form::Count => &[json!(-1), json!(1.5), json!("1"), json!(1e300)],
            Form::Seconds | Form::Amount => &[json!(0), json!("1")],
            Form::Timeout => &[json!(-1), json!(""), json!("soon"), json!("inf"), json!(true)],
            Form::Text => &[json!(1), json!([])],
            Form::Texts => &[json!("a"), json!([1])],
            Form::OneOf(_) => &[json!("All"), json!(1)],
            Form::Levels => &[json!([]), json!({"a":"huge"})],
            Form::Counts(_) => &[json!(1), json!({"low":-1})],
            Form::List => &[json!({}), json!("x")],
            Form::Hooks => &[json!([]), json!("x")],
            Form::FlagOr(_) => &[json!(1), json!("true")],
            Form::CountOr(..) => &[json!(0), json!(101), json!("5"), json!(true)],
            Form::Range(..) => &[json!(-1), json!(21), json!("1")],
            Form::TextLists => &[json!([]), json!({"/a": "b"}), json!({"/a": [1]})],
            Form::ModelCounts(_) => &[json!([]), json!({"a/b":1}), json!({"a/b":{"reserveTokens":-1}})],
        };
        for value in wrong {
            let text = path.rsplit('.').fold(value.clone(), |value, name| json!({name: value}));
            let (settings, diagnostics) = load(&text.to_string());
            assert_eq!(diagnostics.len(), 1, "{text}");
            assert!(diagnostics[0].starts_with(&format!("{path} must be ")), "{diagnostics:?}");
            assert_eq!(settings.get(path), None);
            assert!(!settings.user.is_broken);
        }
    }
    assert_eq!(load(r#"{"retry":true}"#).1, ["retry must be an object; it is ignored"]);
}

#[test]
fn a_project_goes_over_the_user_but_not_in_everything() {
    let scratch = TempDir::create();
    scratch.write(
        "agent/settings.json",
        r#"{"theme":"a","retry":{"maxRetries":1,"baseDelayMs":5},"skills":["u"],"httpProxy":"http://u","defaultTools":["ls"]}"#,
    );
    let project = scratch.write(
        "p/.pi/settings.json",
        r#"{"theme":"b","retry":{"maxRetries":2},"skills":["p"],"httpProxy":"http://p","defaultProjectTrust":"always",
        "limits":{"turns":3},"defaultTools":["read"],"own":1}"#,
    );
    let (mut settings, _) = Settings::load(&scratch.path().join("agent"));
    let diagnostics = settings.add_project(&scratch.path().join("p"));
    let said: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        said,
        ["defaultProjectTrust", "limits.turns", "httpProxy"]
            .map(|key| format!("{key} can only be set in the agent folder; it is ignored"))
    );
    assert!(diagnostics.iter().all(|d| d.path == project));
    assert_eq!(settings.get("theme"), Some(&json!("b")));
    assert_eq!((settings.retry().max_retries, settings.retry().base_delay_ms), (2, 5));
    assert_eq!(settings.resources("skills"), (vec!["u".to_owned()], vec!["p".to_owned()]));
    assert_eq!(settings.http_proxy(), Some("http://u"));
    assert_eq!(settings.default_project_trust(), "ask");
    assert_eq!(settings.texts("defaultTools"), Some(vec!["read".to_owned()]));
    let origin = |path| settings.origin(path);
    assert_eq!(origin("theme"), Origin::Project);
    assert_eq!(origin("retry.baseDelayMs"), Origin::User);
    assert_eq!(origin("retry.enabled"), Origin::Default);
}

#[test]
fn a_damaged_project_file_leaves_the_users_settings() {
    let scratch = TempDir::create();
    scratch.write("agent/settings.json", r#"{"theme":"a"}"#);
    scratch.write("p/.pi/settings.json", "{\n\"theme\":}");
    let (mut settings, _) = Settings::load(&scratch.path().join("agent"));
    let diagnostics = settings.add_project(&scratch.path().join("p"));
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].message, "line 2, column 9: expected value; it is ignored");
    assert_eq!(settings.get("theme"), Some(&json!("a")));
    assert!(!settings.user.is_broken);
}

#[test]
fn the_users_file_is_read_again_and_the_project_stays_as_it_was_decided_on() {
    let scratch = TempDir::create();
    scratch.write("agent/settings.json", r#"{"theme": "a", "quietStartup": true}"#);
    scratch.write("project/.pi/settings.json", r#"{"theme": "p"}"#);
    let (mut settings, _) = Settings::load(&scratch.path().join("agent"));
    assert!(!settings.has_project());
    settings.add_project(&scratch.path().join("project"));
    scratch.write("agent/settings.json", r#"{"theme": "b"}"#);
    scratch.write("project/.pi/settings.json", r#"{"theme": "q", "externalEditor": "evil"}"#);
    let again = settings.again();
    assert_eq!(again.get("externalEditor"), None);
    assert!(again.has_project());
    assert_eq!(again.get("theme"), Some(&json!("p")));
    assert_eq!(again.of_user("theme"), Some(&json!("b")));
    assert_eq!(again.get("quietStartup"), None);
    assert_eq!(settings.of_user("theme"), Some(&json!("a")));
}
