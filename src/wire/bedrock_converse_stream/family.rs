//! Capabilities of a model, recognized by its id and name.
//!
//! The id of an application inference profile does not reveal the model, so the name, which the user chooses,
//! is checked too.

use crate::llm::limits::setting;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;

/// Claude models that limit their thinking by an effort.
const ADAPTIVE: &[&str] =
    &["opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "sonnet-4-6", "sonnet-5", "haiku-5", "fable-5"];
/// Claude models that support the effort `xhigh`.
const XHIGH: &[&str] = &["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable-5"];
/// Claude models that can drop thinking which no longer matches the preceding messages.
const BINDING: &[&str] = XHIGH;
/// Claude models whose prompts can be cached.
const CACHED: &[&str] =
    &["fable-5", "opus-5", "sonnet-5", "haiku-5", "-4-", "claude-3-7-sonnet", "claude-3-5-haiku"];

pub struct Family {
    /// Id and name in lower case, each with and without separators replaced by hyphens.
    names: [String; 4],
    claude: bool,
}

impl Family {
    pub fn of(model: &Model) -> Self {
        let id = model.id.to_lowercase();
        let name = model.name.to_lowercase();
        let claude =
            id.contains("anthropic.claude") || id.contains("anthropic/claude") || name.contains("claude");
        Self { names: [hyphenated(&id), hyphenated(&name), id, name], claude }
    }

    fn has(&self, parts: &[&str]) -> bool {
        let names = self.names.iter();
        names.flat_map(|name| parts.iter().map(move |part| name.contains(part))).any(|found| found)
    }

    /// True for models made by Anthropic, which sign their thinking. Other models reject a signature.
    pub fn is_claude(&self) -> bool {
        self.claude
    }

    pub fn adaptive_thinking(&self) -> bool {
        self.has(ADAPTIVE)
    }

    pub fn takes_block_binding(&self) -> bool {
        self.has(BINDING)
    }

    /// True for OpenAI's open models.
    pub fn is_gpt_oss(&self) -> bool {
        self.has(&["gpt-oss"])
    }

    pub fn is_gpt(&self) -> bool {
        self.has(&["gpt-"])
    }

    pub fn knows_xhigh(&self) -> bool {
        self.has(XHIGH)
    }

    /// True if the model accepts cache points. Other vendors' models reject them or cache automatically.
    pub fn takes_cache_points(&self, options: &StreamOptions) -> bool {
        match self.has(&["claude"]) {
            true => self.has(CACHED),
            false => setting(options, "AWS_BEDROCK_FORCE_CACHE").as_deref() == Some("1"),
        }
    }
}

/// Replaces runs of blanks, dots, colons and underscores by one hyphen.
fn hyphenated(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    for c in name.chars() {
        if !(c.is_whitespace() || "_.:".contains(c)) {
            result.push(c);
        } else if !result.ends_with('\u{0}') {
            result.push('\u{0}'); // a hyphen of our own, told from the name's
        }
    }
    result.replace('\u{0}', "-")
}

/// True for AWS GovCloud (US), whose models lack the newest features.
pub fn is_gov_cloud(model: &Model, options: &StreamOptions) -> bool {
    let region = setting(options, "AWS_REGION").or_else(|| setting(options, "AWS_DEFAULT_REGION"));
    let id = model.id.to_lowercase();
    region.is_some_and(|region| region.to_lowercase().starts_with("us-gov-"))
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:")
}
