//! One row for each wire protocol: a recorded answer, its error for a full context, and its rules.
//!
//! The streams are files, which the end-to-end tests send to the built binary too. All have equal content:
//! thinking, a text, two calls.

use super::rule;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::secret::Secret;
use crate::wire::testing;
use serde_json::{Value, json};

pub struct Row {
    pub api: &'static str,
    /// Event stream of an answer with thinking, a text and two calls.
    pub answer: &'static str,
    /// The ids of the calls, if the protocol has ids.
    pub ids: Option<[&'static str; 2]>,
    /// True if the thinking has a signature.
    pub signed: bool,
    /// True if usage is reported before the first text.
    pub early_usage: bool,
    /// Events with the text "ab" without a start of the block.
    pub bare_text: &'static [(&'static str, &'static str)],
    /// Status and body of the error for an exceeded context window.
    pub overflow: (u16, &'static str),
    /// Checks a request's body against the server's rules.
    pub rule: fn(&Value) -> rule::Verdict,
}

macro_rules! stream {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/streams/", $name, ".sse"))
    };
}

const RESPONSES: Row = Row {
    api: "openai-responses",
    answer: stream!("openai-responses"),
    ids: Some(["call_01|fc_01", "call_02|fc_02"]),
    signed: true,
    early_usage: false,
    bare_text: &[
        ("", r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#),
        ("", r#"{"type":"response.output_text.delta","output_index":0,"delta":"b"}"#),
    ],
    overflow: (
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
    ),
    rule: rule::responses,
};

const GOOGLE: Row = Row {
    api: "google-generative-ai",
    answer: stream!("google-generative-ai"),
    ids: None,
    signed: false,
    early_usage: true,
    bare_text: &[
        ("", r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#),
        ("", r#"{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}"#),
    ],
    overflow: (
        400,
        r#"{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#,
    ),
    rule: rule::google,
};

pub const ROWS: &[Row] = &[
    Row {
        api: "anthropic-messages",
        answer: stream!("anthropic-messages"),
        ids: Some(["toolu_01", "toolu_02"]),
        signed: true,
        early_usage: true,
        bare_text: &[
            ("", r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#),
            ("", r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}"#),
        ],
        overflow: (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_1"}"#,
        ),
        rule: rule::anthropic,
    },
    Row { api: "azure-openai-responses", ..RESPONSES },
    Row {
        api: "bedrock-converse-stream",
        answer: stream!("bedrock-converse-stream"),
        ids: Some(["tooluse_01", "tooluse_02"]),
        signed: true,
        early_usage: false,
        bare_text: &[
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"b"}}"#),
        ],
        overflow: (400, r#"{"message":"Input is too long for requested model."}"#),
        rule: rule::bedrock,
    },
    GOOGLE,
    Row { api: "google-vertex", ..GOOGLE },
    Row {
        api: "mistral-conversations",
        answer: stream!("mistral-conversations"),
        ids: Some(["abcDEF123", "abcDEF124"]),
        signed: false,
        early_usage: false,
        bare_text: &[
            ("", r#"{"choices":[{"delta":{"content":"a"}}]}"#),
            ("", r#"{"choices":[{"delta":{"content":"b"}}]}"#),
        ],
        overflow: (
            400,
            r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_message","code":"3051"}"#,
        ),
        rule: rule::mistral,
    },
    Row { api: "openai-codex-responses", ..RESPONSES },
    Row {
        api: "openai-completions",
        answer: stream!("openai-completions"),
        ids: Some(["call_01", "call_02"]),
        signed: false,
        early_usage: false,
        bare_text: &[
            ("", r#"{"choices":[{"delta":{"content":"a"}}]}"#),
            ("", r#"{"choices":[{"delta":{"content":"b"}}]}"#),
        ],
        overflow: (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        ),
        rule: rule::completions,
    },
    RESPONSES,
    Row {
        api: "pi-messages",
        answer: stream!("pi-messages"),
        ids: Some(["call_01", "call_02"]),
        signed: true,
        early_usage: false,
        bare_text: &[
            ("", r#"{"type":"text_delta","contentIndex":0,"delta":"a"}"#),
            ("", r#"{"type":"text_delta","contentIndex":0,"delta":"b"}"#),
        ],
        overflow: (
            400,
            r#"{"error":{"message":"context_length_exceeded: the conversation is longer than the model's window"}}"#,
        ),
        rule: rule::pi,
    },
];

impl Row {
    /// A model of this protocol with thinking and image input.
    pub fn model(&self) -> Model {
        self.model_with(json!({}))
    }

    pub fn model_with(&self, fields: Value) -> Model {
        let mut own = json!({"id": format!("{}-model", self.api), "api": self.api, "provider": format!("{}-host", self.api),
            "baseUrl": "https://api.acme.test/v1", "reasoning": true});
        testing::merge(&mut own, fields);
        testing::model(own)
    }

    /// Options with a key that every protocol accepts.
    pub fn options(&self) -> StreamOptions {
        // {"https://api.openai.com/auth":{"chatgpt_account_id":"acc"}}
        let token = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.s";
        let env =
            [("AWS_REGION", "us-east-1"), ("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")];
        StreamOptions {
            api_key: Some(Secret::new(token)),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            session_id: Some("s1".into()),
            ..StreamOptions::default()
        }
    }
}
