//! The rows without a remark were produced by the reference with these two keys set.

use super::*;
use crate::llm::model::Model;
use proptest::prelude::*;
use std::path::Path;

const KEYS: [&str; 2] = ["anthropic", "openrouter"];

fn usable(provider: &str) -> bool {
    KEYS.contains(&provider)
}

/// The catalogue and the faux provider.
fn registry() -> Registry {
    let (mut registry, _) = Registry::load(Path::new("/nonexistent"));
    registry.add(crate::wire::faux::models());
    registry
}

fn full(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

fn with_level(model: &Model, level: Option<ThinkingLevel>) -> String {
    let level = level.map_or(String::new(), |level| format!(" {}", level.name()));
    full(model) + &level
}

/// Checks what `provider` and `model` name: `provider/id`, a level if there is one, and the warning.
#[track_caller]
fn check(provider: Option<&str>, model: &str, expected: &str, warning: Option<&str>) {
    let wanted = Wanted { provider, model: Some(model), thinking: None };
    let choice = resolve(&registry(), &usable, wanted).unwrap();
    assert_eq!(with_level(&choice.model, choice.thinking), expected, "{model}");
    assert_eq!(choice.warning.as_deref(), warning, "{model}");
    assert!(!choice.model.api.is_empty(), "{model}");
}

#[track_caller]
fn check_error(provider: Option<&str>, model: &str, expected: &str) {
    let wanted = Wanted { provider, model: Some(model), thinking: None };
    assert_eq!(resolve(&registry(), &usable, wanted).unwrap_err(), expected);
}

#[test]
fn an_exact_name_is_what_it_says() {
    for (provider, model, expected) in [
        (None, "claude-opus-4-8", "anthropic/claude-opus-4-8"),
        (Some("anthropic"), "claude-opus-4-8", "anthropic/claude-opus-4-8"),
        (Some("anthropic"), "anthropic/claude-opus-4-8", "anthropic/claude-opus-4-8"),
        (None, "ANTHROPIC/CLAUDE-OPUS-4-8", "anthropic/claude-opus-4-8"),
        (Some("OpenAI"), "GPT-5.5", "openai/gpt-5.5"),
        (None, " anthropic/claude-opus-4-8 ", "anthropic/claude-opus-4-8"),
        (None, "anthropic/claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5-20251001"),
        (None, "zai/glm-5.3", "zai/glm-5.3"),
        (None, "faux/demo", "faux/demo"),
        (Some("faux"), "script", "faux/script"),
    ] {
        check(provider, model, expected, None);
    }
}

#[test]
fn an_id_with_a_slash_is_found_where_it_can_be_used() {
    check(None, "xiaomi/mimo-v2.5-pro", "openrouter/xiaomi/mimo-v2.5-pro", None);
    check(None, "moonshotai/kimi-k2.6", "openrouter/moonshotai/kimi-k2.6", None);
    check(Some("openrouter"), "moonshotai/kimi-k2.6", "openrouter/moonshotai/kimi-k2.6", None);
    check(None, "openrouter/moonshotai/kimi-k2.6", "openrouter/moonshotai/kimi-k2.6", None);
}

#[test]
fn part_of_a_name_finds_the_highest_alias() {
    for (provider, model, expected) in [
        (None, "anthropic/opus", "anthropic/claude-opus-5-5"),
        (None, "anthropic/haiku-4-5-2025", "anthropic/claude-haiku-4-5-20251001"),
        (None, "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        (None, "zai/glm-5", "zai/glm-5.3-highspeed"),
        (None, "gemini", "openrouter/google/gemini-nano-banana-2.1"),
        (None, "google/gemini", "google/gemini-robotics-er-2-preview"),
        (None, "groq/llama", "groq/llama-3.3-70b-versatile"),
        (None, "mistral/latest", "mistral/voxtral-small-latest"),
        (Some("xai"), "grok", "xai/grok-4.7"),
        (
            None,
            "amazon-bedrock/anthropic.claude-opus-4-1",
            "amazon-bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0",
        ),
    ] {
        check(provider, model, expected, None);
    }
}

#[test]
fn of_several_providers_one_with_a_key_is_taken() {
    // The reference takes the highest id, which is Bedrock's, key or not.
    check(None, "sonnet", "anthropic/claude-sonnet-5-5", None);
    check(None, "haiku:low", "anthropic/claude-haiku-5-5 low", None);
    check(None, "Claude Haiku 4.5", "anthropic/claude-haiku-4-5", None);
    let wanted = Wanted { model: Some("sonnet"), ..Wanted::default() };
    let choice = resolve(&registry(), &|_| false, wanted).unwrap();
    assert_eq!(full(&choice.model), "amazon-bedrock/us.anthropic.claude-sonnet-5-5");
}

#[test]
fn keys_are_asked_for_once_a_provider() {
    let asked = std::cell::RefCell::new(HashSet::new());
    let usable = |provider: &str| {
        assert!(asked.borrow_mut().insert(provider.to_owned()), "{provider} twice");
        false
    };
    let wanted = Wanted { model: Some("claude"), ..Wanted::default() };
    resolve(&registry(), &usable, wanted).unwrap();
    assert!(asked.borrow().len() > 1);
    asked.borrow_mut().clear();
    scope(&registry(), &usable, &["claude", "*gpt*"]);
    assert_eq!(asked.borrow().len(), 42);
}

#[test]
fn the_faux_provider_is_found_only_by_name() {
    let wanted = |model| Wanted { model: Some(model), ..Wanted::default() };
    let with_faux = |provider: &str| provider == FAUX;
    let found = |model| full(&resolve(&registry(), &with_faux, wanted(model)).unwrap().model);
    assert_eq!(found("script"), "faux/script");
    assert_eq!(found("faux/ec"), "faux/echo");
    assert!(!found("claude-opus").starts_with("faux/"));
}

#[test]
fn a_level_may_stand_at_the_end() {
    for (model, expected) in [
        ("anthropic/claude-haiku-4-5:high", "anthropic/claude-haiku-4-5 high"),
        ("anthropic/claude-opus-4-8:off", "anthropic/claude-opus-4-8 off"),
        ("us.anthropic.claude-opus-4-6-v1:high", "amazon-bedrock/us.anthropic.claude-opus-4-6-v1 high"),
        ("deepseek/deepseek-v4-pro:max", "deepseek/deepseek-v4-pro max"),
        ("openai/gpt-5.5:high:low", "openai/gpt-5.5 low"),
        ("openrouter/google/gemini-3.8-flash:batch", "openrouter/google/gemini-3.8-flash:batch"),
        ("openrouter/google/gemini-3.8-flash:batch:high", "openrouter/google/gemini-3.8-flash:batch high"),
        ("faux/echo:high", "faux/echo high"),
    ] {
        check(None, model, expected, None);
    }
}

#[test]
fn an_unknown_id_of_a_known_provider_is_a_custom_model() {
    let warning = |id: &str, provider: &str, near: &str| {
        format!("Model \"{id}\" not found for provider \"{provider}\"{near}. Using custom model id.")
    };
    for (model, expected, id, provider, near) in [
        ("openai/foo-1", "openai/foo-1", "foo-1", "openai", ""),
        ("openai/foo-1:high", "openai/foo-1 high", "foo-1", "openai", ""),
        ("anthropic/foo:off", "anthropic/foo off", "foo", "anthropic", ""),
        ("openai/gpt-4o:extended", "openai/gpt-4o:extended", "gpt-4o:extended", "openai", ""),
        ("deepseek/x:y:high", "deepseek/x:y high", "x:y", "deepseek", ""),
        ("anthropic/sonnet:bogus", "anthropic/sonnet:bogus", "sonnet:bogus", "anthropic", ""),
        (
            "groq/llma-3.3-70b-vers:low",
            "groq/llma-3.3-70b-vers low",
            "llma-3.3-70b-vers",
            "groq",
            " (it has groq/llama-3.3-70b-versatile)",
        ),
    ] {
        check(None, model, expected, Some(&warning(id, provider, near)));
    }
    let custom = |model, thinking| {
        let wanted = Wanted { model: Some(model), thinking, ..Wanted::default() };
        resolve(&registry(), &usable, wanted).unwrap().model
    };
    let like = registry().find("groq", "openai/gpt-oss-120b").unwrap();
    let model = custom("groq/x", None);
    assert_eq!(
        (&model.api, &model.base_url, model.context_window),
        (&like.api, &like.base_url, like.context_window)
    );
    assert_eq!((model.id.as_str(), model.name.as_str()), ("x", "x"));
    assert_eq!(custom("openai/zzz:high", Some(ThinkingLevel::Low)).id, "zzz:high");
    assert!(!custom("github-copilot/x", Some(ThinkingLevel::Off)).id.is_empty());
}

#[test]
fn an_id_of_several_providers_is_an_error_without_a_single_key() {
    let all =
        "github-copilot/grok-4.7, opencode-go/grok-4.7, opencode/grok-4.7, radius/grok-4.7, xai/grok-4.7";
    let how = "name one with --provider or as provider/model.";
    let error = |text: &str, keys: &str| {
        format!("Model \"{text}\" is ambiguous across providers: {all}. {keys} a key; {how}")
    };
    let none = "None of these providers has";
    check_error(None, "grok-4.7", &error("grok-4.7", none));
    // The reference takes the highest of all that contain the id here.
    check_error(None, "grok-4.7:high", &error("grok-4.7:high", none));
    let wanted = Wanted { model: Some("grok-4.7"), ..Wanted::default() };
    let with = |keys: &'static [&'static str]| {
        resolve(&registry(), &move |provider: &str| keys.contains(&provider), wanted)
    };
    assert_eq!(full(&with(&["xai"]).unwrap().model), "xai/grok-4.7");
    let two = with(&["xai", "opencode-go"]).unwrap_err();
    assert_eq!(two, error("grok-4.7", "More than one of these providers has"));
}

#[test]
fn what_is_unknown_is_an_error_that_helps() {
    let list = "\"pi --list-models\" shows the models that can be used.";
    check_error(None, "nope-nothing", &format!("Model \"nope-nothing\" not found. {list}"));
    check_error(
        None,
        "cluade-sonnet-4-6",
        &format!(
            "Model \"cluade-sonnet-4-6\" not found. Did you mean anthropic/claude-sonnet-4-6, anthropic/claude-sonnet-4-5, anthropic/claude-sonnet-4-5-20250929, openrouter/anthropic/claude-sonnet-4.6, openrouter/anthropic/claude-sonnet-4.6:batch? {list}"
        ),
    );
    check_error(Some("opnai"), "x", &format!("Unknown provider \"opnai\". Did you mean openai? {list}"));
    check_error(None, "", &format!("Model \"\" not found. {list}"));
    check_error(None, "faux/nope", &format!("Model \"faux/nope\" not found. {list}"));
    check_error(None, "faux/dmo", &format!("Model \"faux/dmo\" not found. Did you mean faux/demo? {list}"));
    let wanted = Wanted { provider: Some("zzz"), ..Wanted::default() };
    let error = resolve(&registry(), &usable, wanted).unwrap_err();
    assert!(error.starts_with("Unknown provider \"zzz\". There are amazon-bedrock, "), "{error}");
}

#[test]
fn a_provider_alone_means_its_default_model() {
    check(Some("openai"), "", "openai/gpt-6.1-sol", None);
    check(None, "openai/", "openai/gpt-6.1-sol", None);
    check(Some("azure-openai-responses"), "gpt-5.4", "azure/gpt-5.4", None);
    check(None, "azure-openai-responses/gpt-5.4:high", "azure/gpt-5.4 high", None);
    check(Some("faux"), "", "faux/demo", None);
    check(None, "faux", "faux/demo", None);
}

#[test]
fn every_default_is_in_the_catalogue() {
    let registry = registry();
    let providers: HashSet<&str> = DEFAULTS.iter().map(|(provider, _)| *provider).collect();
    assert_eq!(providers, crate::models::catalogue::providers().collect());
    for (provider, id) in DEFAULTS {
        assert_eq!(full(&default_model(&registry, provider).unwrap()), format!("{provider}/{id}"));
    }
}

#[track_caller]
fn check_scope(patterns: &[&str], expected: &[&str], warnings: &[&str]) {
    let (scoped, said) = scope(&registry(), &usable, patterns);
    let names: Vec<String> = scoped.iter().map(|s| with_level(&s.model, s.thinking)).collect();
    assert_eq!(names, expected, "{patterns:?}");
    assert_eq!(said, warnings, "{patterns:?}");
}

#[test]
fn a_scope_is_made_of_patterns() {
    check_scope(
        &["*sonnet*"],
        &[
            "anthropic/claude-sonnet-4-5",
            "anthropic/claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-6",
            "anthropic/claude-sonnet-5",
            "anthropic/claude-sonnet-5-5",
        ],
        &[],
    );
    check_scope(
        &["ANTHROPIC/*HAIKU*:high", "gpt-5.5"],
        &[
            "anthropic/claude-haiku-4-5 high",
            "anthropic/claude-haiku-4-5-20251001 high",
            "anthropic/claude-haiku-5-5 high",
            "openrouter/anthropic/claude-haiku-4.5 high",
            "openrouter/anthropic/claude-haiku-5.5 high",
            "openrouter/anthropic/claude-haiku-4.5:batch high",
            "openrouter/anthropic/claude-haiku-5.5:batch high",
            "openrouter/openai/gpt-5.5:batch",
        ],
        &[],
    );
    check_scope(
        &["openrouter/*"],
        &[
            "openrouter/auto",
            "openrouter/openrouter/auto",
            "openrouter/openrouter/auto-beta",
            "openrouter/openrouter/auto-code",
            "openrouter/openrouter/free",
            "openrouter/openrouter/fusion",
            "openrouter/openrouter/pareto-code",
        ],
        &[],
    );
    check_scope(
        &["claude-opus-4-[56]", "claude-opus-4-?:low"],
        &[
            "anthropic/claude-opus-4-5",
            "anthropic/claude-opus-4-6",
            "anthropic/claude-opus-4-7 low",
            "anthropic/claude-opus-4-8 low",
        ],
        &[],
    );
    check_scope(&["*[!0-9]"], &["openrouter/auto"], &[]);
    let (azure, _) =
        scope(&registry(), &|provider| provider == "azure", &["azure-openai-responses/gpt-5.4:high"]);
    assert_eq!(
        azure.iter().map(|s| with_level(&s.model, s.thinking)).collect::<Vec<_>>(),
        ["azure/gpt-5.4 high"]
    );
    check_scope(
        &["anthropic/claude-[h-o]*-4-5"],
        &["anthropic/claude-haiku-4-5", "anthropic/claude-opus-4-5"],
        &[],
    );
    check_scope(
        &["anthropic/claude-opus-4-8", "anthropic/claude-opus-4-8:high"],
        &["anthropic/claude-opus-4-8"],
        &[],
    );
    check_scope(
        &["haiku:high", "opus"],
        &["anthropic/claude-haiku-5-5 high", "anthropic/claude-opus-5-5"],
        &[],
    );
    check_scope(&["sonnet:high:low"], &["anthropic/claude-sonnet-5-5 low"], &[]);
    let (everything, _) = scope(&registry(), &usable, &["**"]);
    assert_eq!(everything.len(), 18 + 403);
}

#[test]
fn a_pattern_without_a_model_is_reported() {
    check_scope(
        &["nope*", "nope", ""],
        &[],
        &[
            "No models match pattern \"nope*\"",
            "No models match pattern \"nope\"",
            "No models match pattern \"\"",
        ],
    );
    check_scope(
        &["haiku:bogus"],
        &["anthropic/claude-haiku-5-5"],
        &["Invalid thinking level \"bogus\" in pattern \"haiku:bogus\". Using default instead."],
    );
    check_scope(
        &["haiku:bogus:high", "opus:low:bogus"],
        &["anthropic/claude-haiku-5-5", "anthropic/claude-opus-5-5"],
        &[
            "Invalid thinking level \"bogus\" in pattern \"haiku:bogus:high\". Using default instead.",
            "Invalid thinking level \"bogus\" in pattern \"opus:low:bogus\". Using default instead.",
        ],
    );
    check_scope(&["xai/*"], &[], &["No models match pattern \"xai/*\""]);
}

#[test]
fn the_faux_provider_is_in_a_scope_only_by_name() {
    check_scope(&["faux/*:low"], &["faux/demo low", "faux/echo low", "faux/script low"], &[]);
    check_scope(
        &["demo", "*echo"],
        &[],
        &["No models match pattern \"demo\"", "No models match pattern \"*echo\""],
    );
}

#[track_caller]
fn check_initial(keys: &[&str], start: &Start<'_>, expected: Option<&str>, warning: Option<&str>) {
    let choice = initial(&registry(), &|provider| keys.contains(&provider), start).unwrap();
    let name = choice.as_ref().map(|choice| with_level(&choice.model, choice.thinking));
    assert_eq!(name.as_deref(), expected);
    assert_eq!(choice.and_then(|choice| choice.warning).as_deref(), warning);
}

#[test]
fn the_first_model_of_a_session() {
    let none = Start::default();
    check_initial(&[], &none, None, None);
    check_initial(&["faux"], &none, None, None);
    for (provider, id) in DEFAULTS {
        check_initial(&[provider], &none, Some(&format!("{provider}/{id}")), None);
    }
    // The order of the defaults, not of the catalogue.
    check_initial(&["azure", "openai"], &none, Some("openai/gpt-6.1-sol"), None);
    let former = Start { saved: Some(("azure-openai-responses", "gpt-5.4")), ..none };
    check_initial(&["azure", "openai"], &former, Some("azure/gpt-5.4"), None);
    let former = Start { session: Some(("azure-openai-responses", "gpt-5.4")), ..none };
    check_initial(&["azure", "openai"], &former, Some("azure/gpt-5.4"), None);

    let saved = Start { saved: Some(("openrouter", "openrouter/auto")), ..none };
    check_initial(&KEYS, &saved, Some("openrouter/openrouter/auto"), None);
    let opus = "anthropic/claude-opus-5-5";
    let gone = Start { saved: Some(("anthropic", "gone")), ..none };
    for (start, lost) in [
        (&saved, "openrouter/openrouter/auto: there is no key for openrouter"),
        (&gone, "anthropic/gone: there is no such model now"),
    ] {
        let warning = format!("The default model cannot be used, {lost}. Using {opus}.");
        check_initial(&["anthropic"], start, Some(opus), Some(&warning));
    }

    let (scoped, _) = scope(&registry(), &usable, &["haiku:low", "sonnet:high"]);
    let scope_only = Start { scope: &scoped, ..none };
    check_initial(&KEYS, &scope_only, Some("anthropic/claude-haiku-5-5 low"), None);
    let saved_in_scope = Start { saved: Some(("anthropic", "claude-sonnet-5-5")), ..scope_only };
    check_initial(&KEYS, &saved_in_scope, Some("anthropic/claude-sonnet-5-5 high"), None);
    let saved_outside = Start { saved: Some(("anthropic", "claude-opus-4-8")), ..scope_only };
    check_initial(&KEYS, &saved_outside, Some("anthropic/claude-haiku-5-5 low"), None);

    let wanted = Start {
        wanted: Wanted { model: Some("anthropic/opus:high"), ..Wanted::default() },
        session: Some(("anthropic", "claude-sonnet-5")),
        ..saved_in_scope
    };
    check_initial(&KEYS, &wanted, Some("anthropic/claude-opus-5-5 high"), None);
}

#[test]
fn a_continued_session_keeps_its_model_if_it_can() {
    let (scoped, _) = scope(&registry(), &usable, &["haiku"]);
    let session = |session| Start {
        session: Some(session),
        scope: &scoped,
        saved: Some(("anthropic", "claude-sonnet-5")),
        ..Start::default()
    };
    let now = "Using anthropic/claude-sonnet-5.";
    check_initial(
        &KEYS,
        &session(("openrouter", "openrouter/auto")),
        Some("openrouter/openrouter/auto"),
        None,
    );
    check_initial(&KEYS, &session(("faux", "demo")), Some("faux/demo"), None);
    check_initial(
        &KEYS,
        &session(("groq", "openai/gpt-oss-120b")),
        Some("anthropic/claude-sonnet-5"),
        Some(&format!(
            "The session's model cannot be used, groq/openai/gpt-oss-120b: there is no key for groq. {now}"
        )),
    );
    check_initial(
        &KEYS,
        &session(("anthropic", "gone")),
        Some("anthropic/claude-sonnet-5"),
        Some(&format!(
            "The session's model cannot be used, anthropic/gone: there is no such model now. {now}"
        )),
    );
    check_initial(&[], &session(("anthropic", "gone")), None, None);
}

#[test]
fn a_level_comes_from_the_nearest_source() {
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};
    let model = registry().find("zai", "glm-4.7").unwrap();
    for (asked, of_model, of_settings, expected) in [
        (None, None, None, Medium),
        (None, None, Some(Low), Low),
        (None, Some(Minimal), Some(Low), Minimal),
        (Some(Off), Some(Minimal), Some(Low), Off),
        (Some(Max), None, None, High),
    ] {
        assert_eq!(thinking_level(&model, asked, of_model, of_settings), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_is_asked_for_the_answer_is_a_model_or_an_error(
        text in "(anthropic/|openrouter/|faux/|x/)?[a-z*?\\[\\]:/é. -]{0,12}(:high|:low)?",
    ) {
        let registry = registry();
        let wanted = Wanted { model: Some(&text), ..Wanted::default() };
        match resolve(&registry, &usable, wanted) {
            Ok(choice) => prop_assert!(!choice.model.id.is_empty()),
            Err(error) => prop_assert!(error.contains("Model \""), "{}", error),
        }
        let (scoped, warnings) = scope(&registry, &usable, &[&text]);
        prop_assert!(!scoped.is_empty() || warnings.len() == 1);
    }
}

#[test]
fn an_endless_pattern_is_no_model() {
    let long = ":high".repeat(100_000);
    check_error(
        None,
        &long,
        &format!("Model \"{long}\" not found. \"pi --list-models\" shows the models that can be used."),
    );
    let (scoped, warnings) = scope(&registry(), &usable, &[&long]);
    assert!(scoped.is_empty() && warnings.len() == 1);
}
