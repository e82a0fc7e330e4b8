//! Chooses the changes to undo.

use super::journal::Unseen;
use super::{Journal, Plan, Step, plan};
use crate::base::time::parse_iso;
use crate::session::Log;
use crate::session::index::Kind;

/// The changes that someone asks to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All since the last prompt after which something changed.
    LastPrompt,
    /// The last changes of a file, so many.
    Steps(usize),
    /// All since the entry with this id.
    Since(String),
}

/// The chosen changes, with a plan for each file.
#[derive(Debug, Default)]
pub struct Chosen {
    pub plans: Vec<Plan>,
    /// What is not known of the time since then, as lines for the user.
    pub unseen: Vec<String>,
}

/// Chooses the changes of a session to undo. Without its log there are no prompts and no entries.
pub fn choose(journal: &Journal, log: Option<&Log>, wanted: &Wanted) -> Result<Chosen, String> {
    let steps = journal.steps().map_err(|error| format!("Could not read what can be undone: {error}"))?;
    let last = |count: usize| steps.len().saturating_sub(count);
    let (first, from) = match wanted {
        Wanted::Steps(count) => (last(*count), None),
        Wanted::LastPrompt => match log.and_then(|log| prompt_before(log, steps.last())) {
            Some(time) => (position(&steps, &time), Some(time)),
            None => (last(1), None),
        },
        Wanted::Since(id) => {
            let entry = log.and_then(|log| log.entry(id));
            let entry = entry.ok_or_else(|| format!("There is no entry '{id}' in the session"))?;
            (position(&steps, &entry.timestamp), Some(entry.timestamp))
        }
    };
    let chosen = steps.get(first..).unwrap_or_default();
    let from = from.or_else(|| chosen.first().map(|step| step.time.clone()));
    let unseen = from.map(|from| unseen_since(journal, &from)).unwrap_or_default();
    Ok(Chosen { plans: plan(journal, chosen), unseen })
}

/// Returns the time of the last prompt before `step`; of the last prompt if there is no step.
fn prompt_before(log: &Log, step: Option<&Step>) -> Option<String> {
    let until = step.map(|step| parse_iso(&step.time));
    let slots = log.index().slots.iter().enumerate().rev().filter(|(_, slot)| slot.kind == Kind::User);
    let mut times = slots.filter_map(|(at, _)| Some(log.entry_at(u32::try_from(at).ok()?)?.timestamp));
    times.find(|time| until.is_none_or(|until| parse_iso(time) <= until))
}

/// Returns the position of the first step from `time` on.
fn position(steps: &[Step], time: &str) -> usize {
    let from = parse_iso(time);
    let later = |step: &Step| from.is_some() && parse_iso(&step.time) >= from;
    steps.iter().position(later).unwrap_or(steps.len())
}

fn unseen_since(journal: &Journal, time: &str) -> Vec<String> {
    let from = parse_iso(time);
    let commands = journal.unseen().unwrap_or_default().into_iter();
    let commands = commands.filter(|command| parse_iso(&command.time) >= from);
    commands
        .map(|Unseen { tool, time, why, .. }| {
            format!("What a call of {tool} at {time} changed is not known: {why}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SyncMode;
    use crate::tools::Changes;
    use crate::tools::testing::TempDir;

    #[test]
    fn what_cannot_be_chosen_is_said() {
        let dir = TempDir::create();
        let file = dir.path().join("s.jsonl");
        let journal = Journal::new(&file);
        let none = choose(&journal, None, &Wanted::LastPrompt).unwrap();
        assert!(none.plans.is_empty() && none.unseen.is_empty());
        let log = Log::create(dir.path(), dir.path(), None, SyncMode::Never).unwrap();
        let refused = choose(&journal, Some(&log), &Wanted::Since("x".into())).unwrap_err();
        assert!(refused.contains("no entry 'x'"), "{refused}");
        // A journal without a watch looks at no command.
        assert_eq!(journal.begin("bash", "1", &crate::base::cancel::CancelToken::new()), None);
    }
}
