//! What a model takes beyond the common form, told from its id and name.
//!
//! The id of an application inference profile does not say which model is behind it, so the name, which
//! the user chooses, counts as well.

use crate::llm::limits::setting;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;

/// Claude models that decide themselves how much to think.
const ADAPTIVE: &[&str] =
    &["opus-4-6", "opus-4-7", "opus-4-8", "opus-5", "sonnet-4-6", "sonnet-5", "haiku-5", "fable-5"];
/// Those that know the effort `xhigh`.
const XHIGH: &[&str] = &["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable-5"];
/// Those that can leave out thinking that no longer fits what is before it.
const BINDING: &[&str] = XHIGH;
/// Claude models whose prompts can be cached.
const CACHED: &[&str] =
    &["fable-5", "opus-5", "sonnet-5", "haiku-5", "-4-", "claude-3-7-sonnet", "claude-3-5-haiku"];

pub struct Family {
    /// Id and name in lower case, as they are and with hyphens for what parts words.
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

    /// Made by Anthropic: thinks with a budget or an effort, and signs its thoughts. Other models refuse
    /// the signature.
    pub fn is_claude(&self) -> bool {
        self.claude
    }

    pub fn adaptive_thinking(&self) -> bool {
        self.has(ADAPTIVE)
    }

    pub fn takes_block_binding(&self) -> bool {
        self.has(BINDING)
    }

    /// One of OpenAI's open models.
    pub fn is_gpt_oss(&self) -> bool {
        self.has(&["gpt-oss"])
    }

    pub fn is_gpt(&self) -> bool {
        self.has(&["gpt-"])
    }

    pub fn knows_xhigh(&self) -> bool {
        self.has(XHIGH)
    }

    /// Marks for the prompt cache are understood. Other makers' models refuse them or cache by themselves.
    pub fn takes_cache_points(&self, options: &StreamOptions) -> bool {
        match self.has(&["claude"]) {
            true => self.has(CACHED),
            false => setting(options, "AWS_BEDROCK_FORCE_CACHE").as_deref() == Some("1"),
        }
    }
}

/// Runs of blanks, dots, colons and underscores become one hyphen.
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

/// In AWS GovCloud (US), whose models lag behind.
pub fn is_gov_cloud(model: &Model, options: &StreamOptions) -> bool {
    let region = setting(options, "AWS_REGION").or_else(|| setting(options, "AWS_DEFAULT_REGION"));
    let id = model.id.to_lowercase();
    region.is_some_and(|region| region.to_lowercase().starts_with("us-gov-"))
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:")
}
