//! The settings of compaction and branch summaries.

use super::Settings;
use super::form::whole;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// True if conversations are compacted automatically.
    pub enabled: bool,
    /// Tokens to keep free; `None` for the default.
    pub reserve: Option<u64>,
    /// Tokens at the end of a conversation that are not summarized; `None` for the default.
    pub keep: Option<u64>,
    /// Sizes for single models.
    pub overrides: Vec<Override>,
    /// The model that writes summaries, as `provider/id`; `None` for the session's model.
    pub model: Option<String>,
    /// Tokens to keep free when a branch is summarized.
    pub branch_reserve: u64,
}

/// Compaction sizes for one model, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The model, as `provider/id`.
    pub model: String,
    pub reserve: Option<u64>,
    pub keep: Option<u64>,
}

impl Compaction {
    /// Returns the configured reserve and keep sizes for a model, in tokens; `None` for a default.
    pub fn sizes(&self, provider: &str, id: &str) -> (Option<u64>, Option<u64>) {
        let is_it = |own: &&Override| {
            let rest = own.model.strip_prefix(provider);
            rest.and_then(|rest| rest.strip_prefix('/')) == Some(id)
        };
        let own = self.overrides.iter().find(is_it);
        (own.and_then(|own| own.reserve).or(self.reserve), own.and_then(|own| own.keep).or(self.keep))
    }
}

impl Settings {
    pub fn compaction(&self) -> Compaction {
        let overrides = self.get("compaction.modelOverrides");
        let overrides = overrides.and_then(Value::as_object).into_iter().flatten();
        Compaction {
            enabled: self.flag("compaction.enabled"),
            reserve: self.whole("compaction.reserveTokens"),
            keep: self.whole("compaction.keepRecentTokens"),
            overrides: overrides
                .map(|(model, sizes)| Override {
                    model: model.clone(),
                    reserve: sizes.get("reserveTokens").and_then(whole),
                    keep: sizes.get("keepRecentTokens").and_then(whole),
                })
                .collect(),
            model: self.text("compaction.model").map(str::to_owned),
            branch_reserve: self.count("branchSummary.reserveTokens"),
        }
    }

    /// True if the user is not asked whether to summarize an abandoned branch.
    pub fn branch_summary_skip_prompt(&self) -> bool {
        self.flag("branchSummary.skipPrompt")
    }
}
