//! When and how old parts of a conversation are replaced by a summary.

use super::Settings;
use super::form::whole;
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// True if conversations are compacted without being asked.
    pub enabled: bool,
    /// Tokens kept free; none for the usual figure.
    pub reserve: Option<u64>,
    /// Tokens at the end that are not summarised; none for the usual figure.
    pub keep: Option<u64>,
    /// Reserve and keep for single models.
    pub overrides: Vec<Override>,
    /// The model that writes the summaries, as `provider/id`; none for the model of the session.
    pub model: Option<String>,
    /// Tokens kept free when a branch is summarised.
    pub branch_reserve: u64,
}

/// The sizes for one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// `provider/id`
    pub model: String,
    pub reserve: Option<u64>,
    pub keep: Option<u64>,
}

impl Compaction {
    /// Reserve and keep for a model.
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

    /// A branch is left without the question whether to summarise it.
    pub fn branch_summary_skip_prompt(&self) -> bool {
        self.flag("branchSummary.skipPrompt")
    }
}
