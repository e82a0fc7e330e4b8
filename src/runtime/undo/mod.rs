//! Undoes file changes of the write and edit tools.
//!
//! Before a tool changes a file, the file's content is copied to a folder beside the session file, and the
//! journal there gets a line with the path, the mode, and the hashes of the old and new content. An undo can
//! therefore restore the file exactly, and detects changes by others. Commands of the bash tool are not
//! covered.
//!
//! A journal is not trusted: a file is opened without following links ([`place`]), inside the sandbox if
//! there is one, and only permission bits of a mode are restored.
//!
//! Contents are kept up to a limit, beyond which the oldest are removed. Their journal lines stay, and an
//! undo then says that the content is gone.

mod journal;
mod note;
mod place;

pub use journal::{Journal, Step};

use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::llm::message::Content;
use crate::session::Store;
use crate::session::entry::CustomMessage;
use crate::tools::diff::changes;
use crate::tools::local::write_here;
use crate::tools::mutation;
use crate::tools::sandbox::Sandbox;
use journal::State;
use place::Place;
use serde_json::json;
use std::collections::HashMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What an undo would do to one file.
#[derive(Clone, Debug)]
pub struct Plan {
    pub path: PathBuf,
    pub action: Action,
    /// Why an undo would lose changes that someone else made to the file.
    pub conflict: Option<String>,
    /// The changes to undo, newest first.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Restore the file's earlier content and mode.
    Restore,
    /// Remove the file, which a tool created.
    Remove,
    /// Do nothing: the file has its earlier content.
    Nothing,
    /// The change cannot be undone, even if forced, for this reason.
    Impossible(String),
}

/// A plan after an attempt to carry it out. `error` says why the attempt failed.
#[derive(Debug)]
pub struct Undone {
    pub plan: Plan,
    pub error: Option<String>,
}

/// Plans the undo of `steps`, which must be the newest ones, with one plan for each file. Changes nothing.
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

/// Plans the undo of `steps`, which are of one file, newest first.
fn plan_file(journal: &Journal, steps: &[&Step]) -> Option<Plan> {
    let (newest, oldest) = (steps.first()?, steps.last()?);
    let path = newest.path.clone();
    let steps_of_it = || steps.iter().map(|step| (*step).clone()).collect();
    let now = match Place::find(&path, false) {
        Ok(Some(place)) => State::of(&place.file()),
        Ok(None) => State::Missing,
        Err(why) => {
            let action = Action::Impossible(why);
            return Some(Plan { path, action, conflict: None, steps: steps_of_it() });
        }
    };
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
    Some(Plan { path, action, conflict, steps: steps_of_it() })
}

/// Returns reasons to ask the user before `plans` are carried out: the file `session`, whose folder is `cwd`,
/// may come from someone else.
pub fn doubts(session: &Path, cwd: &str, store: &Store, plans: &[Plan]) -> Vec<String> {
    let mut doubts = Vec::new();
    if !store.holds(session) {
        doubts.push(format!("{} is not in the folder of sessions", session.display()));
    }
    let folder = Path::new(cwd).canonicalize().ok();
    let changes = plans.iter().filter(|plan| matches!(plan.action, Action::Restore | Action::Remove));
    let is_outside = |path: &Path| folder.as_ref().is_none_or(|folder| !path.starts_with(folder));
    for plan in changes.filter(|plan| is_outside(&plan.path)) {
        doubts.push(format!("{} is outside the session's folder", plan.path.display()));
    }
    doubts
}

/// Carries out `plans`, inside the sandbox if there is one. Plans with a conflict are carried out only with
/// `force`.
pub fn carry_out(journal: &Journal, plans: Vec<Plan>, force: bool, sandbox: Option<&Sandbox>) -> Vec<Undone> {
    let mut done = Vec::new();
    for plan in plans {
        let result = match (&plan.conflict, &plan.action) {
            (Some(why), _) if !force => Err(why.clone()),
            (_, Action::Impossible(why)) => Err(why.clone()),
            _ => file(journal, &plan, sandbox),
        };
        done.push(Undone { plan, error: result.err() });
    }
    done
}

fn file(journal: &Journal, plan: &Plan, sandbox: Option<&Sandbox>) -> Result<(), String> {
    let Some(oldest) = plan.steps.last() else {
        return Ok(());
    };
    let path = plan.path.as_path();
    let _lock = mutation::lock(path, &CancelToken::new());
    // The file may have changed since the plan was made, for instance while the user was asked.
    let steps: Vec<&Step> = plan.steps.iter().collect();
    let again = plan_file(journal, &steps);
    if again.is_none_or(|again| again.conflict != plan.conflict || again.action != plan.action) {
        return Err("was changed just now; try again".into());
    }
    let say = |error: io::Error| error.to_string();
    failpoint::hit("undo.file").map_err(say)?;
    let content = match plan.action {
        Action::Restore => Some(journal.content(oldest)?),
        _ => None,
    };
    let work = || match &plan.action {
        Action::Restore => restore(oldest, content.as_deref().unwrap_or_default()),
        Action::Remove => remove(oldest),
        Action::Nothing | Action::Impossible(_) => Ok(()),
    };
    match sandbox {
        None => work()?,
        Some(sandbox) if sandbox.allows(path) => sandbox.run(|| Ok(work())).map_err(say)??,
        Some(sandbox) => return Err(format!("the sandbox forbids it. {sandbox}")),
    }
    let numbers: Vec<u64> = plan.steps.iter().map(|step| step.number).collect();
    journal
        .mark_undone(&numbers)
        .map_err(|error| format!("is as it was, but that could not be noted: {error}"))
}

fn restore(step: &Step, content: &[u8]) -> Result<(), String> {
    let say = |error: io::Error| error.to_string();
    let place = Place::find(&step.path, true)?.ok_or("its folder was removed just now")?;
    let path = place.file();
    if fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
        fs::remove_file(&path).map_err(say)?;
    }
    write_here(&path, content).map_err(say)?;
    if let State::File { mode: Some(mode), .. } = step.before {
        let open =
            |options: &mut OpenOptions| options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path);
        let file = open(OpenOptions::new().read(true)).or_else(|_| open(OpenOptions::new().write(true)));
        // Permission bits only: an undo must not create a set-user-ID file.
        file.and_then(|file| file.set_permissions(Permissions::from_mode(mode & 0o777))).map_err(say)?;
    }
    Ok(())
}

fn remove(step: &Step) -> Result<(), String> {
    if let Some(place) = Place::find(&step.path, false)? {
        fs::remove_file(place.file()).map_err(|error| error.to_string())?;
    }
    // Folders that were created for the file are removed if they are empty.
    let is_above = |folder: &&PathBuf| step.path != **folder && step.path.starts_with(folder);
    let is_removed = |folder: &PathBuf| {
        let place = Place::find(folder, false).ok().flatten();
        place.is_some_and(|place| fs::remove_dir(place.file()).is_ok())
    };
    let _ = step.folders.iter().take_while(is_above).take_while(|folder| is_removed(folder)).count();
    Ok(())
}

/// Returns the message that tells the model which files were undone; `None` if no file changed.
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

/// Returns the planned change of a file as a diff in the edit tool's form; `None` if a content is binary or
/// larger than 1 MiB.
pub fn preview(journal: &Journal, plan: &Plan) -> Option<String> {
    const MOST: usize = 1 << 20;
    let before = match plan.action {
        Action::Restore => journal.content(plan.steps.last()?).ok()?,
        Action::Remove => Vec::new(),
        Action::Nothing | Action::Impossible(_) => return None,
    };
    let is_short = |length: u64| usize::try_from(length).is_ok_and(|length| length <= MOST);
    let place = Place::find(&plan.path, false).ok()?;
    let path = place.as_ref().map_or_else(|| plan.path.clone(), Place::file);
    let now = match fs::symlink_metadata(&path) {
        Ok(file) if file.is_file() && is_short(file.len()) => fs::read(&path).ok()?,
        Ok(_) => return None,
        Err(_) => Vec::new(),
    };
    if before.len() > MOST || before.contains(&0) || now.contains(&0) {
        return None;
    }
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    Some(changes(&plan.path.to_string_lossy(), &text(now)?, &text(before)?).diff)
}

/// Returns the steps from `time` (ISO 8601) on; none if `time` cannot be parsed.
pub fn since(steps: &[Step], time: &str) -> Vec<Step> {
    let parse = crate::base::time::parse_iso;
    let Some(from) = parse(time) else {
        return Vec::new();
    };
    let later = |step: &&Step| parse(&step.time).is_some_and(|time| time >= from);
    let first = steps.iter().position(|step| later(&step));
    first.map_or(Vec::new(), |first| steps.iter().skip(first).cloned().collect())
}

#[cfg(test)]
mod tests;
