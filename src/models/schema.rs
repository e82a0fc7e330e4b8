//! The schema of `models.json`, and error messages for invalid values.
//!
//! A table describes the file; [`check`] compares a document with it. Unknown fields are accepted, since a
//! newer version may define them.

use crate::base::json::json;
use serde_json::{Map, Value};

/// Maximum number of problems reported for a file.
const PROBLEMS_MAX: usize = 8;

enum Kind {
    Bool,
    Text,
    /// Text that is not empty.
    Word,
    Number,
    Positive,
    /// An integer within these bounds.
    Whole(f64, f64),
    OneOf(&'static [&'static str]),
    /// Text or `null`.
    TextOrNull,
    List(&'static Kind),
    /// An object with arbitrary keys and values of one kind.
    Table(&'static Kind),
    Object(&'static [Field]),
    /// A value that is described and not checked; `null` leaves it out.
    Hint(&'static Kind),
    Anything,
}

struct Field {
    name: &'static str,
    kind: Kind,
    required: bool,
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false }
}

const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true }
}

use Kind::{
    Anything, Bool, Hint, List, Number, Object, OneOf, Positive, Table, Text, TextOrNull, Whole, Word,
};

static FILE: Kind = Object(&[required("providers", Table(&PROVIDER))]);

static PROVIDER: Kind = Object(&[
    field("name", Word),
    field("baseUrl", Word),
    field("apiKey", Word),
    field("api", Word),
    field("oauth", OneOf(&["radius"])),
    field("headers", Table(&Text)),
    field("compat", COMPAT),
    field("authHeader", Bool),
    field("models", List(&MODEL)),
    field("modelOverrides", Table(&OVERRIDE)),
]);

static MODEL: Kind = Object(&[
    required("id", Word),
    field("name", Word),
    field("api", Word),
    field("baseUrl", Word),
    field("reasoning", Bool),
    field("thinkingLevelMap", LEVELS),
    field("input", INPUT),
    field("inputLimits", INPUT_LIMITS),
    field(
        "cost",
        Object(&[
            required("input", Number),
            required("output", Number),
            required("cacheRead", Number),
            required("cacheWrite", Number),
            field("tiers", List(&TIER)),
        ]),
    ),
    field("promptCache", PROMPT_CACHE),
    field("contextWindow", Number),
    field("maxTokens", Number),
    field("samplingParams", Table(&Anything)),
    field("samplingParamsByThinkingLevel", SAMPLING),
    field("headers", Table(&Text)),
    field("compat", COMPAT),
]);

static OVERRIDE: Kind = Object(&[
    field("name", Word),
    field("reasoning", Bool),
    field("thinkingLevelMap", LEVELS),
    field("input", INPUT),
    field("inputLimits", INPUT_LIMITS),
    field(
        "cost",
        Object(&[
            field("input", Number),
            field("output", Number),
            field("cacheRead", Number),
            field("cacheWrite", Number),
            field("tiers", List(&TIER)),
        ]),
    ),
    field("promptCache", PROMPT_CACHE),
    field("contextWindow", Number),
    field("maxTokens", Number),
    field("samplingParams", Table(&Anything)),
    field("samplingParamsByThinkingLevel", SAMPLING),
    field("headers", Table(&Text)),
    field("compat", COMPAT),
]);

static TIER: Kind = Object(&[
    required("inputTokensAbove", Number),
    required("input", Number),
    required("output", Number),
    required("cacheRead", Number),
    required("cacheWrite", Number),
]);

const INPUT: Kind = List(&OneOf(&["text", "image"]));

const LEVELS: Kind = Object(&[
    field("off", TextOrNull),
    field("minimal", TextOrNull),
    field("low", TextOrNull),
    field("medium", TextOrNull),
    field("high", TextOrNull),
    field("xhigh", TextOrNull),
    field("max", TextOrNull),
]);

const SAMPLING: Kind = Object(&[
    field("off", Table(&Anything)),
    field("minimal", Table(&Anything)),
    field("low", Table(&Anything)),
    field("medium", Table(&Anything)),
    field("high", Table(&Anything)),
    field("xhigh", Table(&Anything)),
    field("max", Table(&Anything)),
]);

const PROMPT_CACHE: Kind = Object(&[field("short", Positive), field("long", Positive)]);

const COUNT: Kind = Whole(1.0, f64::INFINITY);

const INPUT_LIMITS: Kind = Object(&[
    field("maxRequestBytes", COUNT),
    field(
        "images",
        Object(&[
            field(
                "resize",
                Object(&[
                    field("maxWidth", COUNT),
                    field("maxHeight", COUNT),
                    field("maxBytes", COUNT),
                    field("jpegQuality", Whole(1.0, 100.0)),
                ]),
            ),
            field("maxPerMessage", COUNT),
            field("maxPerRequest", COUNT),
        ]),
    ),
]);

/// Switches depend on the protocol, and a provider's may be meant for several protocols. The reference
/// accepts what is valid for any protocol, which leaves only this field to check.
const COMPAT: Kind = Object(&[
    field("supportsLongCacheRetention", Bool),
    switch("allowEmptySignature"),
    switch("cumulativeToolArguments"),
    switch("forceAdaptiveThinking"),
    switch("promptProgress"),
    switch("requiresAssistantAfterToolResult"),
    switch("requiresNonNullAssistantContent"),
    switch("requiresReasoningContentOnAssistantMessages"),
    switch("requiresThinkingAsText"),
    switch("requiresToolResultName"),
    switch("requiresToolsWithToolHistory"),
    switch("sendSessionAffinityHeaders"),
    switch("supportsAdditionalTools"),
    switch("supportsCacheControlOnTools"),
    switch("supportsDeveloperRole"),
    switch("supportsEagerToolInputStreaming"),
    switch("supportsExplicitPromptCacheMode"),
    switch("supportsFinishReason"),
    switch("supportsMaxOutputTokens"),
    switch("supportsMessageThreads"),
    switch("supportsMidConvoEffort"),
    switch("supportsMidConvoSystemMessages"),
    switch("supportsMidConvoToolAdditions"),
    switch("supportsMidConvoToolChanges"),
    switch("supportsOpenAIGrammarTools"),
    switch("supportsReasoningEffort"),
    switch("supportsStore"),
    switch("supportsStrictMode"),
    switch("supportsStrictTools"),
    switch("supportsTemperature"),
    switch("supportsThinkingTokenBudget"),
    switch("supportsToolSearch"),
    switch("supportsUsageInStreaming"),
    switch("textToolCalls"),
    switch("thinkTags"),
    switch("zaiToolStream"),
    field("allowedFallbackModels", Hint(&List(&Object(&[required("model", Word)])))),
    field("cacheControlFormat", Hint(&OneOf(&["anthropic"]))),
    field("chatTemplateArgs", Hint(&Table(&Anything))),
    field("chatTemplateKwargs", Hint(&Table(&Anything))),
    field("maxTokensField", Hint(&OneOf(&["max_completion_tokens", "max_tokens"]))),
    field("openRouterRouting", Hint(&Table(&Anything))),
    field("promptCacheKeyMode", Hint(&OneOf(&["auto", "enabled", "disabled"]))),
    field("sessionAffinityFormat", Hint(&OneOf(&["openai", "openai-nosession", "openrouter"]))),
    field("thinkingFormat", Hint(&OneOf(THINKING_FORMATS))),
    field("thinkingTokenBudgetField", Hint(&Word)),
    field("vercelGatewayRouting", Hint(&Table(&Anything))),
    field("vllmPriority", Hint(&Number)),
]);

const fn switch(name: &'static str) -> Field {
    field(name, Hint(&Bool))
}

const THINKING_FORMATS: &[&str] = &[
    "openai",
    "openrouter",
    "deepseek",
    "together",
    "baseten",
    "zai",
    "qwen",
    "chat-template",
    "qwen-chat-template",
    "string-thinking",
    "ant-ling",
];

/// The JSON Schema of the file.
pub fn json_schema() -> Value {
    let mut schema = FILE.json_schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "models.json of pi".into();
    schema["properties"]["$schema"] = json!({"type": "string"});
    schema
}

/// The problems of `document`, one line each; empty if it is valid.
pub fn check(document: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    FILE.check(document, &mut String::new(), &mut problems);
    problems.truncate(PROBLEMS_MAX);
    problems
}

impl Kind {
    fn check(&self, value: &Value, path: &mut String, problems: &mut Vec<String>) {
        if problems.len() >= PROBLEMS_MAX {
            return;
        }
        let inner = |name: &str, kind: &Kind, value: &Value, path: &mut String, problems: &mut _| {
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            kind.check(value, path, problems);
            path.truncate(length);
        };
        match (self, value) {
            (Object(fields), Value::Object(map)) => {
                missing(fields, map, path, problems);
                for field in *fields {
                    if let Some(value) = map.get(field.name) {
                        inner(field.name, &field.kind, value, path, problems);
                    }
                }
            }
            (Table(kind), Value::Object(map)) => {
                for (key, value) in map {
                    inner(key, kind, value, path, problems);
                }
            }
            (List(kind), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    inner(&index.to_string(), kind, value, path, problems);
                }
            }
            _ if self.takes(value) => {}
            _ => {
                let place = if path.is_empty() { "root" } else { path };
                problems.push(format!("{place}: must be {}", self.describe()));
            }
        }
    }

    /// True if a value other than a list or object is of this kind.
    fn takes(&self, value: &Value) -> bool {
        match self {
            Bool => value.is_boolean(),
            Text => value.is_string(),
            Word => value.as_str().is_some_and(|text| !text.is_empty()),
            TextOrNull => value.is_string() || value.is_null(),
            Number => value.is_number(),
            Positive => value.as_f64().is_some_and(|number| number > 0.0),
            Whole(least, most) => value
                .as_f64()
                .is_some_and(|number| number.fract() == 0.0 && (*least..=*most).contains(&number)),
            OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Hint(_) | Anything => true,
            List(_) | Table(_) | Object(_) => false,
        }
    }

    fn json_schema(&self) -> Value {
        match self {
            Bool => json!({"type": "boolean"}),
            Text => json!({"type": "string"}),
            Word => json!({"type": "string", "minLength": 1}),
            TextOrNull => json!({"type": ["string", "null"]}),
            Number => json!({"type": "number"}),
            Positive => json!({"type": "number", "exclusiveMinimum": 0}),
            Whole(least, most) => {
                let mut schema = json!({"type": "integer", "minimum": least});
                if most.is_finite() {
                    schema["maximum"] = (*most).into();
                }
                schema
            }
            OneOf(words) => json!({"enum": words}),
            Hint(kind) => {
                let mut schema = kind.json_schema();
                if let Some(Value::Array(words)) = schema.get_mut("enum") {
                    words.push(Value::Null);
                } else {
                    schema["type"] = json!([schema["type"].take(), "null"]);
                }
                schema
            }
            List(kind) => json!({"type": "array", "items": kind.json_schema()}),
            Table(kind) => json!({"type": "object", "additionalProperties": kind.json_schema()}),
            Object(fields) => {
                let property = |field: &Field| (field.name.to_owned(), field.kind.json_schema());
                let properties: Map<String, Value> = fields.iter().map(property).collect();
                let required: Vec<&str> =
                    fields.iter().filter(|field| field.required).map(|field| field.name).collect();
                let mut schema = json!({"type": "object", "properties": properties});
                if !required.is_empty() {
                    schema["required"] = required.into();
                }
                schema
            }
            Anything => json!({}),
        }
    }

    fn describe(&self) -> String {
        match self {
            Bool => "boolean".into(),
            Text => "string".into(),
            Word => "a string that is not empty".into(),
            TextOrNull => "string or null".into(),
            Number => "number".into(),
            Positive => "a number above 0".into(),
            Whole(least, most) if most.is_finite() => {
                format!("a whole number from {least} to {most}")
            }
            Whole(least, _) => format!("a whole number of at least {least}"),
            OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                quoted.join(" or ")
            }
            List(_) => "array".into(),
            Table(_) | Object(_) => "object".into(),
            Hint(_) | Anything => "anything".into(),
        }
    }
}

fn missing(fields: &[Field], map: &Map<String, Value>, path: &str, problems: &mut Vec<String>) {
    let absent = |field: &&Field| field.required && !map.contains_key(field.name);
    let names: Vec<&str> = fields.iter().filter(absent).map(|f| f.name).collect();
    if let Some(first) = names.first() {
        let dot = if path.is_empty() { "" } else { "." };
        let names = names.join(", ");
        problems.push(format!("{path}{dot}{first}: must have required properties {names}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_document(document: Value, expected: &[&str]) {
        assert_eq!(check(&document), expected, "{document}");
    }

    #[track_caller]
    fn check_provider(provider: Value, expected: &[&str]) {
        check_document(json!({"providers": {"p": provider}}), expected);
    }

    #[test]
    fn the_frame() {
        check_document(json!({"providers": {}}), &[]);
        check_document(json!({"providers": {}, "later": [1]}), &[]);
        check_document(json!({}), &["providers: must have required properties providers"]);
        check_document(json!([]), &["root: must be object"]);
        check_document(json!({"providers": []}), &["providers: must be object"]);
        check_provider(json!(null), &["providers.p: must be object"]);
    }

    #[test]
    fn providers() {
        check_provider(
            json!({"baseUrl": "http://x", "apiKey": "$K", "api": "a", "oauth": "radius",
                "headers": {"a": ""}, "compat": {"supportsStore": 1, "x": {}}, "authHeader": true, "new": 1}),
            &[],
        );
        check_provider(json!({"baseUrl": 1}), &["providers.p.baseUrl: must be a string that is not empty"]);
        check_provider(json!({"apiKey": ""}), &["providers.p.apiKey: must be a string that is not empty"]);
        check_provider(json!({"oauth": "no"}), &["providers.p.oauth: must be \"radius\""]);
        check_provider(json!({"headers": {"a": 1}}), &["providers.p.headers.a: must be string"]);
        check_provider(json!({"authHeader": "y"}), &["providers.p.authHeader: must be boolean"]);
        check_provider(
            json!({"compat": {"supportsLongCacheRetention": 1}}),
            &["providers.p.compat.supportsLongCacheRetention: must be boolean"],
        );
    }

    #[test]
    fn models() {
        check_provider(
            json!({"models": [{"id": "m", "input": ["text", "image"], "reasoning": true,
            "cost": {"input": 1, "output": 0.5, "cacheRead": 0, "cacheWrite": 0}, "thinkingLevelMap": {"off": null, "low": "l"},
            "samplingParams": {"top_p": 1}, "contextWindow": 1.5}]}),
            &[],
        );
        check_provider(
            json!({"models": [{"name": ""}]}),
            &[
                "providers.p.models.0.id: must have required properties id",
                "providers.p.models.0.name: must be a string that is not empty",
            ],
        );
        check_provider(
            json!({"models": [{"id": "a"}, {"id": "b", "input": ["audio"], "cost": {"input": 1}}]}),
            &[
                "providers.p.models.1.input.0: must be \"text\" or \"image\"",
                "providers.p.models.1.cost.output: must have required properties output, cacheRead, cacheWrite",
            ],
        );
    }

    #[test]
    fn overrides() {
        check_provider(
            json!({"modelOverrides": {"m": {"cost": {"input": 1}, "promptCache": {"short": 0.5}}}}),
            &[],
        );
        check_provider(
            json!({"modelOverrides": {"m": {
                "thinkingLevelMap": {"low": 3},
                "inputLimits": {"maxRequestBytes": 0.5, "images": {"resize": {"jpegQuality": 101}}},
                "promptCache": {"short": 0},
                "cost": {"tiers": [{}]},
            }}}),
            &[
                "providers.p.modelOverrides.m.thinkingLevelMap.low: must be string or null",
                "providers.p.modelOverrides.m.inputLimits.maxRequestBytes: must be a whole number of at least 1",
                "providers.p.modelOverrides.m.inputLimits.images.resize.jpegQuality: must be a whole number from 1 to 100",
                "providers.p.modelOverrides.m.cost.tiers.0.inputTokensAbove: must have required properties inputTokensAbove, input, output, cacheRead, cacheWrite",
                "providers.p.modelOverrides.m.promptCache.short: must be a number above 0",
            ],
        );
    }

    #[test]
    fn every_switch_that_a_protocol_reads_is_described() {
        let described = COMPAT.json_schema();
        for source in [
            include_str!("../wire/anthropic_messages/compat.rs"),
            include_str!("../wire/openai_completions/compat.rs"),
            include_str!("../wire/openai_responses/compat.rs"),
        ] {
            let names = ["flag(\"", "set(\"", "text(\"", "object(\""].into_iter();
            for name in names.flat_map(|call| source.split(call).skip(1)) {
                let name = name.split('"').next().unwrap();
                assert!(described["properties"].get(name).is_some(), "{name}");
            }
        }
        for name in THINKING_FORMATS {
            let parsed = include_str!("../wire/openai_completions/compat.rs");
            assert!(*name == "openai" || parsed.contains(&format!("\"{name}\" => Self::")), "{name}");
        }
    }

    #[test]
    fn complaints_are_bounded() {
        let many: Vec<Value> = (0..1000).map(|_| json!({})).collect();
        assert_eq!(check(&json!({"providers": {"p": {"models": many}}})).len(), PROBLEMS_MAX);
    }
}
