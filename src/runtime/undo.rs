//! Undoing what the write and edit tools did to files.
//!
//! Before a tool changes a file, its content goes into a folder beside the session file, and a line of a
//! journal there says what is about to happen: which file, its mode, hashes of what it held and what it
//! will hold. So a change can be taken back exactly, and a file that somebody else has changed since is
//! seen. Commands of the bash tool are not covered.
//!
//! Contents are kept up to a limit; past it the oldest go. The journal outlives them and says so.

mod journal;

pub use journal::{Journal, Step};

use super::event::Event;
use super::session::Session;
use crate::agent::run::Fatal;
use crate::llm::cancel::CancelToken;
use crate::llm::message::Content;
use crate::session::entry::CustomMessage;
use crate::session::failpoint;
use crate::tools::backend::Backend;
use crate::tools::diff::changes;
use crate::tools::local::Local;
use crate::tools::mutation;
use journal::State;
use serde_json::json;
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is to happen to one file.
#[derive(Clone, Debug)]
pub struct Plan {
    pub path: PathBuf,
    pub action: Action,
    /// Somebody else changed the file, so that taking our change back would lose theirs.
    pub conflict: Option<String>,
    /// The steps that this takes back, newest first.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The file gets its earlier content and mode.
    Restore,
    /// The file goes: a tool had made it.
    Remove,
    /// The file is as it was.
    Nothing,
    /// It cannot be done, whatever is asked.
    Impossible(String),
}

/// What came of it for one file.
#[derive(Debug)]
pub struct Undone {
    pub plan: Plan,
    pub error: Option<String>,
}

/// Looks at the files that `steps` are about, which must be the newest ones. Touches nothing.
pub fn plan(journal: &Journal, steps: &[Step]) -> Vec<Plan> {
    let mut order: Vec<&Path> = Vec::new();
    let mut by_path: HashMap<&Path, Vec<&Step>> = HashMap::new();
    for step in steps.iter().rev() {
        let of_path = by_path.entry(&step.path).or_insert_with(|| {
            order.push(&step.path);
            Vec::new()
        });
        of_path.push(step);
    }
    let plans = order.iter().filter_map(|path| by_path.remove(path));
    plans.filter_map(|steps| plan_file(journal, &steps)).collect()
}

/// `steps` are of one file, newest first.
fn plan_file(journal: &Journal, steps: &[&Step]) -> Option<Plan> {
    let (newest, oldest) = (steps.first()?, steps.last()?);
    let path = newest.path.clone();
    let now = State::of(&path);
    let mut expected = now.clone();
    let mut conflict = None;
    for step in steps {
        if expected.content() != Some(step.after.as_str()) && expected.content() != step.before.content() {
            conflict.get_or_insert_with(|| match step.number == newest.number {
                true => "was changed since".to_owned(),
                false => format!("was changed by something else after step {}", step.number),
            });
        }
        expected = step.before.clone();
    }
    let action = match &oldest.before {
        before if *before == now => Action::Nothing,
        State::Missing => Action::Remove,
        State::File { .. } => match journal.content(oldest) {
            Ok(_) => Action::Restore,
            Err(why) => Action::Impossible(why),
        },
        State::Other(what) => Action::Impossible(format!("it was {what}")),
    };
    let action = match (&now, action) {
        (State::Other(what), Action::Restore | Action::Remove) if what != State::LINK => {
            Action::Impossible(format!("there is {what} now"))
        }
        (_, action) => action,
    };
    let conflict = conflict.filter(|_| action != Action::Nothing);
    Some(Plan { path, action, conflict, steps: steps.iter().map(|step| (*step).clone()).collect() })
}

/// Carries plans out. Those with a conflict only when `force` says so: the caller asks before.
pub fn carry_out(journal: &Journal, plans: Vec<Plan>, force: bool) -> Vec<Undone> {
    let mut done = Vec::new();
    for plan in plans {
        let result = match (&plan.conflict, &plan.action) {
            (Some(why), _) if !force => Err(why.clone()),
            (_, Action::Impossible(why)) => Err(why.clone()),
            _ => file(journal, &plan),
        };
        done.push(Undone { plan, error: result.err() });
    }
    done
}

fn file(journal: &Journal, plan: &Plan) -> Result<(), String> {
    let Some(oldest) = plan.steps.last() else {
        return Ok(());
    };
    let path = plan.path.as_path();
    let _lock = mutation::lock(path, &CancelToken::new());
    // A plan may be minutes old when it was asked about.
    let steps: Vec<&Step> = plan.steps.iter().collect();
    let again = plan_file(journal, &steps);
    if again.is_none_or(|again| again.conflict != plan.conflict || again.action != plan.action) {
        return Err("was changed just now; try again".into());
    }
    let say = |error: io::Error| error.to_string();
    failpoint::hit("undo.file").map_err(say)?;
    match &plan.action {
        Action::Restore => {
            let content = journal.content(oldest)?;
            if fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) {
                fs::remove_file(path).map_err(say)?;
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(say)?;
            }
            Local.write(path, &content).map_err(say)?;
            if let State::File { mode: Some(mode), .. } = oldest.before {
                fs::set_permissions(path, Permissions::from_mode(mode)).map_err(say)?;
            }
        }
        Action::Remove => {
            fs::remove_file(path).map_err(say)?;
            // Folders that came with the file go with it, as long as nothing else is in them.
            let folders = oldest.folders.iter();
            let _ = folders.take_while(|folder| fs::remove_dir(folder).is_ok()).count();
        }
        Action::Nothing | Action::Impossible(_) => {}
    }
    let numbers: Vec<u64> = plan.steps.iter().map(|step| step.number).collect();
    journal
        .mark_undone(&numbers)
        .map_err(|error| format!("is as it was, but that could not be noted: {error}"))
}

/// What the model is told at the next request: it believes that its changes stand. None when no file is
/// other than before.
pub fn note(done: &[Undone]) -> Option<CustomMessage> {
    let mut text = "The user took back changes that tools had made to files:\n".to_owned();
    let mut files = Vec::new();
    for file in done.iter().filter(|file| file.error.is_none()) {
        let plan = &file.plan;
        let what = match plan.action {
            Action::Restore => "has its earlier content again",
            Action::Remove => "was removed",
            Action::Nothing | Action::Impossible(_) => continue,
        };
        text.push_str(&format!("- {} {what}\n", plan.path.display()));
        files.push(plan.path.to_string_lossy().into_owned());
    }
    text.push_str("Read a file again before you change it.");
    (!files.is_empty()).then(|| CustomMessage {
        custom_type: "undo".into(),
        content: Some(Content::Text(text)),
        display: true,
        details: Some(json!({ "files": files })),
        ..CustomMessage::default()
    })
}

/// What a plan would change in its file, as the edit tool tells changes; none where that are no texts, or
/// too long ones.
pub fn preview(journal: &Journal, plan: &Plan) -> Option<String> {
    const MOST: usize = 1 << 20;
    let before = match plan.action {
        Action::Restore => journal.content(plan.steps.last()?).ok()?,
        Action::Remove => Vec::new(),
        Action::Nothing | Action::Impossible(_) => return None,
    };
    let is_short = |length: u64| usize::try_from(length).is_ok_and(|length| length <= MOST);
    let now = match fs::metadata(&plan.path) {
        Ok(file) if is_short(file.len()) => fs::read(&plan.path).ok()?,
        Ok(_) => return None,
        Err(_) => Vec::new(),
    };
    if before.len() > MOST || before.contains(&0) || now.contains(&0) {
        return None;
    }
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    Some(changes(&plan.path.to_string_lossy(), &text(now)?, &text(before)?).diff)
}

impl Session {
    /// The model is told at its next request of what was undone.
    pub fn note_undone(&mut self, done: &[Undone]) -> Result<(), Fatal> {
        let Some(note) = note(done) else {
            return Ok(());
        };
        let cancel = CancelToken::new();
        let unheard = &mut |_: &Event<'_>| Ok(());
        let (mut compactor, agent) = self.compactor(unheard, &cancel)?;
        {
            let mut log = compactor.control.log();
            log.append(note).map_err(|error| Fatal(error.to_string()))?;
            log.turn_ended();
        }
        compactor.reload(agent);
        Ok(())
    }
}

/// The steps from `time` (ISO 8601) on.
pub fn since(steps: &[Step], time: &str) -> Vec<Step> {
    let parse = crate::session::time::parse_iso;
    let Some(from) = parse(time) else {
        return Vec::new();
    };
    let later = |step: &&Step| parse(&step.time).is_some_and(|time| time >= from);
    let first = steps.iter().position(|step| later(&step));
    first.map_or(Vec::new(), |first| steps.iter().skip(first).cloned().collect())
}

#[cfg(test)]
mod tests;
