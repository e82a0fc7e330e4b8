//! Finds the parameters that an error answer calls unknown or unsupported.
//!
//! Servers phrase such errors differently, so the phrases are data: each row of [`FORMS`] is a pattern with
//! the names in a group. The patterns are loose, since a name counts only if the request has an optional
//! parameter of that name, which `optional` decides.

use crate::llm::http::body_error;
use regex::Regex;
use std::sync::LazyLock;

/// The patterns, matched case-insensitively against the body with its quotes unescaped. `NAME` stands for a
/// name with or without quotes, `LIST` for names separated by commas. Groups: `names` are parameters, each
/// below `at` if that group exists; `path` is one parameter, as the list of its parts; `beta` are values of
/// the header `anthropic-beta`; `strict` says that strict tools are too many.
const FORMS: &[&str] = &[
    // OpenAI, Azure, Codex, Go, serde, Python's keyword arguments.
    r"(?:unknown|unsupported|unrecognized|unexpected) (?:(?:request|body|input|keyword) )?(?:param(?:eter)?|argument|field|key|property|option)s?(?: supplied)?:? ?[\[(]?(?<names>LIST)",
    // OpenAI, of a value other than the default.
    r"unsupported value: (?<names>NAME) does not support .{0,80}only the default",
    r"(?<names>NAME) is (?:not (?:supported|enabled|available|allowed)|unsupported|deprecated) (?:with|by|for|on|in) (?:this|the) (?:model|endpoint|api|provider)",
    // LiteLLM: a list, or a dictionary with the values.
    r"does not support param(?:eter)?s?:? ?[\[{(](?<names>[^\]})]*)",
    r#"does(?: not|n't) support ['"`](?<names>[a-z_][\w.]*)['"`]"#,
    // xAI.
    r"does not support (?:the )?param(?:eter)?s?:? ?(?<names>LIST)",
    r"argument not supported(?: on this model)?:? (?<names>NAME)",
    // Groq, Cerebras.
    r"(?:property|param(?:eter)?|argument|field|key|option):? (?<names>NAME) (?:is|are) (?:not (?:supported|allowed|permitted|recogni[sz]ed)|unsupported|unknown|unexpected)",
    // Pydantic: as JSON, as Python writes it, and its own text, which Anthropic has too.
    r#"(?:extra_forbidden|value_error\.extra)['"]\s*,\s*['"]loc['"]\s*:\s*[\[(](?<path>[^\])]*)"#,
    r#"['"]loc['"]\s*:\s*[\[(](?<path>[^\])]*)[\])]\s*,\s*['"](?:msg|type)['"]\s*:\s*['"](?:extra |value_error\.extra)"#,
    r"(?<names>NAME):?\s+extra (?:inputs|fields) (?:are )?not permitted",
    r"extra (?:inputs|fields) (?:are )?not permitted,? field: (?<names>NAME)",
    // JSON schema of Python, of Amazon.
    r"(?<names>LIST) (?:was|were) unexpected",
    r"(?:#/?(?<at>[\w/.]*): )?extraneous key \[(?<names>[^\]]*)\]",
    // Google.
    r#"unknown name (?<names>NAME)(?: at ['"](?<at>[^'"]*)['"])?"#,
    r"unexpected value\(s\) (?<beta>[^.]*?) for the .?anthropic-beta",
    r"invalid beta flag(?<beta>)",
    // Claude, at Anthropic and at Amazon: too many strict tools, or too much in them.
    r"(?<strict>compiled grammar is too large|too many strict tools \(|too many parameters with union types \()",
];

const NAME: &str = r#"['"`]?[a-z_][\w.\[\]-]*['"`]?"#;

/// The first part of a path that stands for the header `anthropic-beta`.
pub(super) const BETA: &str = "anthropic-beta";

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let list = format!("{NAME}(?:, ?{NAME})*");
    let patterns =
        FORMS.iter().map(|form| format!("(?i){}", form.replace("LIST", &list).replace("NAME", NAME)));
    patterns.filter_map(|pattern| Regex::new(&pattern).ok()).collect()
});

/// The parameters named in the body of an error answer, each as the parts of its path: in snake case, without
/// list indices.
pub(super) fn named(body: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut add = |path: Vec<String>| {
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    };
    if let Some(error) = body_error(body)
        && ["code", "type"]
            .iter()
            .any(|name| matches!(error[*name].as_str(), Some("unknown_parameter" | "unsupported_parameter")))
    {
        add(parts(error["param"].as_str().unwrap_or_default()));
    }
    let text = unescaped(body);
    for caps in PATTERNS.iter().flat_map(|pattern| pattern.captures_iter(&text)) {
        let group = |name: &str| caps.name(name).map(|group| group.as_str());
        if let Some(path) = group("path") {
            add(parts(&words(path).collect::<Vec<_>>().join(".")));
        }
        if let Some(flags) = group("beta") {
            let mut flags = words(flags).peekable();
            if flags.peek().is_none() {
                add(vec![BETA.to_owned()]);
            }
            flags.for_each(|flag| add(vec![BETA.to_owned(), flag.to_owned()]));
        }
        if group("strict").is_some() {
            add(vec!["tools".to_owned(), "strict".to_owned()]);
        }
        for name in group("names").into_iter().flat_map(words) {
            add(parts(&format!("{}.{name}", group("at").unwrap_or_default())));
        }
    }
    found
}

/// Removes the backslashes before quotes, for JSON inside JSON.
fn unescaped(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut slashes = 0;
    for char in body.chars() {
        if char == '\\' {
            slashes += 1;
            continue;
        }
        if !matches!(char, '"' | '\'') {
            text.extend(std::iter::repeat_n('\\', slashes));
        }
        slashes = 0;
        text.push(char);
    }
    text
}

/// The names in a list, regardless of delimiters.
fn words(list: &str) -> impl Iterator<Item = &str> {
    let is_name = |char: char| char.is_alphanumeric() || "_.-[]/".contains(char);
    let words = list.split(move |char| !is_name(char)).map(|word| word.trim_matches('.'));
    words.filter(|word| word.starts_with(|first: char| first.is_alphabetic() || first == '_'))
}

/// Splits a path: `body.tools[0].functionCall` becomes `tools`, `function_call`.
fn parts(name: &str) -> Vec<String> {
    let parts = name.split(['.', '[', ']', '/']);
    let parts = parts.filter(|part| !part.is_empty() && !part.bytes().all(|byte| byte.is_ascii_digit()));
    let mut parts: Vec<String> = parts.map(snake).collect();
    if parts.len() > 1 && parts[0] == "body" {
        parts.remove(0);
    }
    parts
}

/// Converts to snake case: `toolChoice` becomes `tool_choice`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for char in name.chars() {
        if char.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(char.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_a_pattern() {
        assert_eq!(PATTERNS.len(), FORMS.len());
    }

    /// Checks that the parameters found in `body` are exactly `expected`.
    #[track_caller]
    fn check(body: &str, expected: &[&str]) {
        let known = |path: &Vec<String>| {
            let last = path.last().unwrap();
            ["store", "metadata", "effort", "reasoning_effort", "temperature", "max_tokens", "strict"]
                .contains(&last.as_str())
                || ["prompt_cache_key", "thinking", "display", "cache_control", "ttl", "messages"]
                    .contains(&last.as_str())
                || path[0] == BETA
        };
        let found: Vec<String> = named(body).into_iter().filter(known).map(|path| path.join(".")).collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn the_forms_of_refusals() {
        // OpenAI.
        check(
            r#"{"error":{"message":"Unknown parameter: 'store'.","type":"invalid_request_error","param":"store","code":"unknown_parameter"}}"#,
            &["store"],
        );
        check(
            r#"{"error":{"message":"No.","param":"tools[0].function.strict","code":"unsupported_parameter"}}"#,
            &["tools.function.strict"],
        );
        check(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
            &["max_tokens"],
        );
        check(
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","param":"temperature","code":"unsupported_value"}}"#,
            &["temperature"],
        );
        // Azure and earlier versions of OpenAI.
        check(r#"{"error":{"message":"Unrecognized request argument supplied: store"}}"#, &["store"]);
        check(
            r#"{"error":{"message":"Unrecognized request arguments supplied: metadata, store"}}"#,
            &["metadata", "store"],
        );
        check(r#"{"detail":"Unsupported parameter: prompt_cache_key"}"#, &["prompt_cache_key"]);
        // LiteLLM, in both forms, and with the error of a server behind it.
        check(
            r#"{"error":{"message":"litellm.UnsupportedParamsError: anthropic does not support parameters: ['store', 'prompt_cache_key'], for model=claude. To drop these, set `litellm.drop_params=True`","type":"None","param":null,"code":"400"}}"#,
            &["store", "prompt_cache_key"],
        );
        check(
            r#"{"error":{"message":"litellm.UnsupportedParamsError: vertex_ai does not support parameters: {'store': False, 'metadata': {}}, for model=x"}}"#,
            &["store", "metadata"],
        );
        check(
            r#"{"error":{"message":"litellm.BadRequestError: OpenAIException - {\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"store\"],\"msg\":\"x\"}]}"}}"#,
            &["store"],
        );
        check(
            r#"{"error":{"message":"litellm.UnsupportedParamsError: gpt-4.1 doesn't support `reasoning.effort` (its model cost map entry lacks `supports_reasoning`)."}}"#,
            &["reasoning.effort"],
        );
        check(
            r#"{"error":{"message":"AsyncCompletions.create() got an unexpected keyword argument 'store'"}}"#,
            &["store"],
        );
        // FastAPI with either version of pydantic, vLLM, Mistral, Fireworks.
        check(
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","store"],"msg":"Extra inputs are not permitted","input":false},{"type":"extra_forbidden","loc":["body","tools",0,"function","strict"],"msg":"Extra inputs are not permitted"}]}"#,
            &["store", "tools.function.strict"],
        );
        check(
            r#"{"detail":[{"loc":["body","store"],"msg":"extra fields not permitted","type":"value_error.extra"}]}"#,
            &["store"],
        );
        check(
            r#"{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'store'), 'msg': 'Extra inputs are not permitted', 'input': False}]","code":400}"#,
            &["store"],
        );
        check(
            "1 validation error for Request\nbody -> store\n  extra fields not permitted (type=x)",
            &["store"],
        );
        check(
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","metadata"],"msg":"Extra inputs are not permitted","input":{}}]}}"#,
            &["metadata"],
        );
        check(
            r#"{"error":{"message":"Extra inputs are not permitted, field: 'store', value: False"}}"#,
            &["store"],
        );
        // Groq, Cerebras, xAI.
        check(r#"{"error":{"message":"property 'store' is unsupported"}}"#, &["store"]);
        check(r#"{"message":"body.store: property 'body.store' is unsupported"}"#, &["store"]);
        check(r#"{"error":"Argument not supported on this model: reasoningEffort"}"#, &["reasoning_effort"]);
        check(
            r#"{"error":"Model grok-4 does not support parameter reasoningEffort."}"#,
            &["reasoning_effort"],
        );
        check(r#"{"message":"reasoning_effort is not enabled for this model"}"#, &["reasoning_effort"]);
        // Google.
        check(
            r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"store\": Cannot find field.","status":"INVALID_ARGUMENT"}}]"#,
            &["store"],
        );
        check(
            r#"{"error":{"message":"Unknown name \"thinking\" at 'generation_config.thinking_config': Cannot find field."}}"#,
            &["generation_config.thinking_config.thinking"],
        );
        // Anthropic and Amazon.
        check(
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"store: Extra inputs are not permitted"}}"#,
            &["store"],
        );
        check(
            r#"{"error":{"message":"system.0.cache_control.ttl: Extra inputs are not permitted"}}"#,
            &["system.cache_control.ttl"],
        );
        check(r#"{"error":{"message":"`temperature` is deprecated for this model."}}"#, &["temperature"]);
        check(
            r##"{"message":"Malformed input request: #/thinking: extraneous key [display] is not permitted"}"##,
            &["thinking.display"],
        );
        check(
            r##"{"message":"Malformed input request: #: extraneous key [thinking] is not permitted"}"##,
            &["thinking"],
        );
        check(
            r#"{"error":{"message":"Unexpected value(s) `a-2025-05-14`, `b-2` for the `anthropic-beta` header."}}"#,
            &["anthropic-beta.a-2025-05-14", "anthropic-beta.b-2"],
        );
        check(r#"{"message":"invalid beta flag"}"#, &["anthropic-beta"]);
        check(
            r#"{"error":{"type":"invalid_request_error","message":"Too many strict tools (21). The maximum is 20."}}"#,
            &["tools.strict"],
        );
        check(
            r#"{"message":"The compiled grammar is too large, which would cause issues."}"#,
            &["tools.strict"],
        );
        check(
            r#"{"error":{"message":"Schemas contains too many parameters with union types (17 parameters)."}}"#,
            &["tools.strict"],
        );
        // Go, Rust, Python's jsonschema.
        check(r#"{"error":"json: unknown field \"store\""}"#, &["store"]);
        check(
            r#"{"error":"unknown field `store`, expected one of `model`, `messages`, `temperature` at line 1"}"#,
            &["store"],
        );
        check(
            "Additional properties are not allowed ('metadata', 'store' were unexpected)",
            &["metadata", "store"],
        );
    }

    #[test]
    fn other_complaints_name_nothing() {
        for body in [
            "",
            "{}",
            r#"{"error":{"message":"temperature must be at most 2","param":"temperature","code":"invalid_value"}}"#,
            r#"{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'low'.","param":"reasoning_effort","code":"unsupported_value"}}"#,
            r#"{"error":{"message":"metadata: Input should be a valid dictionary"}}"#,
            r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
            r#"{"error":{"message":"the store is closed"}}"#,
            "\\\\\\",
        ] {
            check(body, &[]);
        }
    }
}
