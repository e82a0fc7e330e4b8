//! Undoes changes of files by tools and commands.
//!
//! Before a tool changes a file, the file's content is copied to a folder beside the session file, and the
//! journal there gets a line with the path, the mode, and the hashes of the old and new content. An undo can
//! therefore restore the file exactly, and detects changes by others. What commands change is found by a
//! [`watch`] of the working folder, and recorded in the same way when they end.
//!
//! A journal is not trusted: a file is opened without following links ([`place`]), inside the sandbox if
//! there is one, and only permission bits of a mode are restored.
//!
//! Contents are kept up to a limit, beyond which the oldest are removed. Their journal lines stay, and an
//! undo then says that the content is gone.

mod choice;
mod journal;
mod note;
mod place;
mod state;
mod watch;

pub use choice::{Wanted, choose};
pub use journal::{Journal, Step};
pub use watch::{Extent, Watch};

use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::Content;
use crate::session::Store;
use crate::session::entry::CustomMessage;
use crate::tools::diff::changes;
use crate::tools::local::write_here;
use crate::tools::mutation;
use crate::tools::sandbox::Sandbox;
use place::Place;
use serde_json::Value;
use state::State;
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
    let mut plans: Vec<Plan> = plans.filter_map(|steps| plan_file(journal, &steps)).collect();
    plans.order_by_key(Plan::rank);
    plans
}

impl Plan {
    /// Returns the plan as JSON. `problem` says why it was not, or would not be, carried out.
    pub fn json(&self, is_done: bool, problem: Option<&str>) -> Value {
        let action = match self.action {
            Action::Restore => "restore",
            Action::Remove => "remove",
            Action::Nothing | Action::Impossible(_) => "none",
        };
        let numbers: Vec<u64> = self.steps.iter().map(|step| step.number).collect();
        json!({"path": self.path, "action": action, "steps": numbers, "done": is_done && problem.is_none(),
            "problem": problem})
    }

    /// Returns why the plan cannot be carried out as it is.
    pub fn problem(&self) -> Option<&str> {
        match &self.action {
            Action::Impossible(why) => Some(why),
            _ => self.conflict.as_deref(),
        }
    }

    /// Returns the earlier state.
    fn before(&self) -> Option<&State> {
        self.steps.last().map(|step| &step.before)
    }

    /// True if the path is to be a folder again.
    fn makes_folder(&self) -> bool {
        self.action == Action::Restore && matches!(self.before(), Some(State::Folder { .. }))
    }

    /// Order of the work: files go before their folders, and modes of folders are set when all is in them.
    fn rank(&self) -> (u8, std::cmp::Reverse<usize>) {
        let depth = std::cmp::Reverse(self.path.components().count());
        let left = self.steps.first().and_then(|step| step.left.as_ref());
        match (&self.action, left) {
            (Action::Remove, Some(State::Folder { .. })) => (1, depth),
            (Action::Remove, _) => (0, std::cmp::Reverse(0)),
            _ if self.makes_folder() => (3, depth),
            _ => (2, std::cmp::Reverse(0)),
        }
    }
}

/// Plans the undo of `steps`, which are of one file, newest first.
fn plan_file(journal: &Journal, steps: &[&Step]) -> Option<Plan> {
    let (newest, oldest) = (steps.first()?, steps.last()?);
    let path = newest.path.clone();
    let steps_of_it = || steps.iter().map(|step| (*step).clone()).collect();
    let now = match Place::find(&path, false) {
        Ok(Some(place)) => State::of(&place.file()),
        Ok(None) => State::Missing,
        // A folder above is something else now, as the command left it.
        Err(_) if newest.left == Some(State::Missing) => State::Missing,
        Err(why) => {
            let action = Action::Impossible(why);
            return Some(Plan { path, action, conflict: None, steps: steps_of_it() });
        }
    };
    let mut expected = now.clone();
    let mut conflict = None;
    for step in steps {
        let is_expected = match &step.left {
            Some(left) => expected == *left || expected == step.before,
            None => {
                expected.content() == Some(step.after.as_str()) || expected.content() == step.before.content()
            }
        };
        if !is_expected {
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
        State::Link { .. } if oldest.left.is_none() => Action::Impossible("it was a symbolic link".into()),
        State::Link { .. } | State::Folder { .. } => Action::Restore,
        State::File { .. } => match journal.content(oldest) {
            Ok(_) => Action::Restore,
            Err(why) => Action::Impossible(why),
        },
        State::Other(what) => Action::Impossible(format!("it was {what}")),
    };
    let action = match (&now, &newest.left, action) {
        (State::Other(what), _, Action::Restore | Action::Remove) => {
            Action::Impossible(format!("there is {what} now"))
        }
        (State::Folder { .. }, left, Action::Restore | Action::Remove)
            if !matches!(left, Some(State::Folder { .. })) =>
        {
            Action::Impossible("there is a folder now".into())
        }
        (_, _, action) => action,
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
    let mut are_folders_made = false;
    let mut folders: Vec<PathBuf> = {
        let made = plans.iter().filter(|plan| plan.makes_folder() && (force || plan.conflict.is_none()));
        made.map(|plan| plan.path.clone()).collect()
    };
    folders.order_by_key(|path| path.components().count());
    for plan in plans {
        if !are_folders_made && plan.rank().0 >= 2 {
            // Where it fails, the plan of the folder does, too.
            folders.iter().for_each(|path| drop(within(sandbox, path, || make_folder(path))));
            are_folders_made = true;
        }
        let result = match (&plan.conflict, &plan.action) {
            (Some(why), _) if !force => Err(why.clone()),
            (_, Action::Impossible(why)) => Err(why.clone()),
            _ => file(journal, &plan, sandbox),
        };
        done.push(Undone { plan, error: result.err() });
    }
    done
}

/// Runs `work` on `path`, inside the sandbox if there is one.
fn within(
    sandbox: Option<&Sandbox>,
    path: &Path,
    work: impl FnOnce() -> Result<(), String> + Send,
) -> Result<(), String> {
    match sandbox {
        None => work(),
        Some(sandbox) if sandbox.allows(path) => {
            sandbox.run(|| Ok(work())).map_err(|error| error.to_string())?
        }
        Some(sandbox) => Err(format!("the sandbox forbids it. {sandbox}")),
    }
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
    let is_same = |again: Plan| again.conflict == plan.conflict && again.action == plan.action;
    if !plan.makes_folder() && !again.is_some_and(is_same) {
        return Err("was changed just now; try again".into());
    }
    failpoint::hit("undo.file").map_err(|error| error.to_string())?;
    let content = match (&plan.action, &oldest.before) {
        (Action::Restore, State::File { .. }) => Some(journal.content(oldest)?),
        _ => None,
    };
    within(sandbox, path, || match &plan.action {
        Action::Restore => restore(oldest, content.as_deref().unwrap_or_default()),
        Action::Remove => remove(oldest),
        Action::Nothing | Action::Impossible(_) => Ok(()),
    })?;
    let numbers: Vec<u64> = plan.steps.iter().map(|step| step.number).collect();
    journal
        .mark_undone(&numbers)
        .map_err(|error| format!("is as it was, but that could not be noted: {error}"))
}

/// Makes a folder at `path`, in place of a file or link. Its mode is set when all is in it.
fn make_folder(path: &Path) -> Result<(), String> {
    let say = |error: io::Error| error.to_string();
    // The path is valid while the place lives.
    let place = Place::find(path, true)?.ok_or("its folder was removed just now")?;
    let path = place.file();
    match fs::symlink_metadata(&path) {
        Ok(there) if there.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(&path).map_err(say)?,
        Err(_) => {}
    }
    fs::create_dir(&path).map_err(say)
}

fn restore(step: &Step, content: &[u8]) -> Result<(), String> {
    let say = |error: io::Error| error.to_string();
    if let State::Folder { mode } = step.before {
        make_folder(&step.path)?;
        let place = Place::find(&step.path, false)?.ok_or("its folder was removed just now")?;
        let folder = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(place.file());
        return folder
            .and_then(|folder| folder.set_permissions(Permissions::from_mode(mode & 0o777)))
            .map_err(say);
    }
    let place = Place::find(&step.path, true)?.ok_or("its folder was removed just now")?;
    let path = place.file();
    match fs::symlink_metadata(&path) {
        Ok(there) if there.is_symlink() => fs::remove_file(&path).map_err(say)?,
        Ok(there) if there.is_dir() => fs::remove_dir(&path).map_err(say)?,
        Ok(_) if matches!(step.before, State::Link { .. }) => fs::remove_file(&path).map_err(say)?,
        _ => {}
    }
    if let State::Link { target } = &step.before {
        return std::os::unix::fs::symlink(target, &path).map_err(say);
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
        let path = place.file();
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir());
        let removed = if is_folder { fs::remove_dir(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| error.to_string())?;
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
        Action::Restore if plan.before()?.content().is_none() => return None,
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

#[cfg(test)]
mod tests;
