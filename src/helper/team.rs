//! The helpers of a session: how many work at once, their names, and where their answers are kept.

use super::command;
use super::isolate::{Copy, Source, Terms};
use super::place::{Places, Slots};
use super::process::{self, Helper};
use super::task::{NAME, Task};
use super::r#yield;
use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::base::thread::Thread;
use crate::runtime::config::Config;
use crate::runtime::control::{Control, WeakControl};
use crate::runtime::event::Event;
use crate::runtime::helpers::{self, Changes, Member, Report, Status};
use crate::tools::{OutputDir, artifact};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Helpers of helpers have this depth, and give no tasks.
pub const DEPTH_MAX: usize = 2;

/// Maximum length of a helper's name.
const NAME_MAX: usize = 48;

pub struct Team {
    control: WeakControl,
    places: Places,
    /// Names in use, in lower case.
    names: Mutex<HashSet<String>>,
    /// The turn to take over changes.
    taking_over: Slots,
}

/// Who gives tasks, and what holds for them.
pub struct Orders<'a> {
    /// 1 for helpers of the session.
    pub depth: usize,
    pub is_allowed: &'a (dyn Fn(&str) -> bool + Sync),
    /// Called with all reports when one has changed.
    pub update: &'a (dyn Fn(&[Report]) + Sync),
    pub cancel: &'a CancelToken,
    /// The working folder.
    pub cwd: &'a Path,
    /// The copies that the working folder lies in, the innermost first.
    pub copies: &'a [Original],
    /// The id of the session's call.
    pub call: &'a str,
}

/// A copy, and the folder that it is a copy of.
#[derive(Clone)]
pub struct Original {
    copy: PathBuf,
    root: PathBuf,
}

impl Original {
    /// `text` with the paths of the folder itself.
    pub fn text(&self, text: &str) -> String {
        match (self.copy.to_str(), self.root.to_str()) {
            (Some(copy), Some(root)) => text.replace(copy, root),
            _ => text.to_owned(),
        }
    }

    fn path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.copy).map_or_else(|_| path.to_owned(), |rest| self.root.join(rest))
    }
}

impl Team {
    pub fn new(control: &Control) -> Self {
        Self {
            control: control.downgrade(),
            places: Places::new(&control.config().settings),
            names: Mutex::default(),
            taking_over: Slots::new(1),
        }
    }

    /// The session; `None` if it has ended.
    pub fn control(&self) -> Option<Control> {
        self.control.upgrade()
    }

    /// Gives names to tasks, and makes them known. What is known of each follows.
    pub fn muster(
        &self,
        tasks: &[Task],
        control: &Control,
        is_background: bool,
        cancel: &CancelToken,
    ) -> Vec<Arc<Member>> {
        let config = control.config();
        let member = |task: &Task| {
            let report = Report {
                name: self.take_name(task, &config),
                agent: task.agent.clone(),
                task: task.text.clone(),
                is_background,
                ..Report::default()
            };
            control.helpers().add(report, cancel.child())
        };
        tasks.iter().map(member).collect()
    }

    /// Runs tasks beside each other. Returns their reports in order; `None` if the session has ended.
    pub fn run(&self, tasks: &[Task], orders: &Orders<'_>) -> Option<Vec<Report>> {
        let control = self.control.upgrade()?;
        let members = self.muster(tasks, &control, false, orders.cancel);
        Some(self.run_members(tasks, &members, &control, orders))
    }

    /// Runs tasks for which `members` were mustered.
    pub fn run_members(
        &self,
        tasks: &[Task],
        members: &[Arc<Member>],
        control: &Control,
        orders: &Orders<'_>,
    ) -> Vec<Report> {
        let config = control.config();
        thread::scope(|scope| {
            for (at, task) in tasks.iter().enumerate() {
                let row = Row { members, at, control, update: orders.update };
                let config = &config;
                let work = move || self.work(task, config, row, orders);
                let started = Thread::named("helper").start_in(scope, work);
                if let Err(error) = started {
                    row.end(Status::Failed, &format!("Cannot start a thread: {error}"));
                }
            }
        });
        members.iter().map(|member| member.report()).collect()
    }

    fn work(&self, task: &Task, config: &Config, row: Row<'_>, orders: &Orders<'_>) {
        let agents = &config.agents;
        let allowed = |name: &str| (orders.is_allowed)(name);
        let Some(agent) = agents.find(&task.agent).filter(|agent| allowed(&agent.name)) else {
            let known = agents.used().map(|agent| agent.name.as_str()).filter(|name| allowed(name));
            let known: Vec<&str> = known.collect();
            return row.end(
                Status::Failed,
                &format!("There is no agent \"{}\". Known: {}", task.agent, known.join(", ")),
            );
        };
        let schema = task.schema.as_ref().or(agent.output.as_ref());
        if let Some(fault) = schema.and_then(r#yield::fault_of) {
            return row.end(Status::Failed, &format!("The output schema cannot be used: {fault}"));
        }
        let member = row.member();
        let model = command::model(row.control, config, agent).map(|chosen| chosen.model);
        let model = model.unwrap_or_else(|| row.control.models().current());
        let slots = self.places.of(&model, &config.services, &member.cancel);
        let Some(slot) = slots.take(&member.cancel) else {
            return row.end(Status::Aborted, "It had not begun");
        };
        let outputs = &*config.workspace.outputs;
        let copy = match task.is_isolated.then(|| self.copy(config, member, orders.cwd)) {
            Some(Err(reason)) => {
                return row.end(Status::Failed, &format!("There is no copy to work in: {reason}"));
            }
            Some(Ok(copy)) => Some(copy),
            None => None,
        };
        let cwd = copy.as_ref().map(|(copy, _)| copy.cwd());
        let own = copy.iter().map(|(copy, _)| Original { copy: copy.tree(), root: copy.root().to_owned() });
        let copies: Vec<Original> = own.chain(orders.copies.iter().cloned()).collect();
        process::run(&Helper {
            team: self,
            control: row.control,
            config,
            agent,
            name: &member.name,
            task: &task.text,
            schema,
            cwd: cwd.as_deref().unwrap_or(orders.cwd),
            copies: &copies,
            depth: orders.depth,
            slot: &slot,
            row,
            cancel: &member.cancel,
        });
        if let Some((copy, notes)) = copy {
            let (changes, more) = self.take_over(copy, config, row, orders);
            row.change(|report| {
                report.changes = changes;
                let notes = report.note.take().into_iter().chain(notes).chain(more).collect::<Vec<_>>();
                report.note = (!notes.is_empty()).then(|| notes.join(". "));
            });
        }
        row.change(|report| report.is_kept = keep(outputs, report).is_ok());
    }

    fn copy(&self, config: &Config, member: &Member, cwd: &Path) -> Result<(Copy, Vec<String>), String> {
        let bytes_max = config.settings.count("helpers.copyBytes");
        let (agent_dir, home) = (&*config.agent_dir, config.workspace.home.as_deref());
        Copy::create(&Source { agent_dir, home, cwd, bytes_max }, &member.name, &member.cancel)
    }

    /// Takes over what a helper has changed in its copy, one helper after the other. Stopping the helper does not take
    /// away what it has done; who aborts the call does not wait.
    fn take_over(
        &self,
        copy: Copy,
        config: &Config,
        row: Row<'_>,
        orders: &Orders<'_>,
    ) -> (Option<Changes>, Vec<String>) {
        let member = row.member();
        let Some(_turn) = self.taking_over.take(orders.cancel) else {
            return (Some(copy.leave("the call was aborted")), Vec::new());
        };
        let workspace = &config.workspace;
        let is_done = member.report().status == Status::Done;
        let sandbox = workspace.backend.sandbox();
        let may_write = |path: &Path| {
            if sandbox.is_some_and(|sandbox| !sandbox.allows(path)) {
                let path = helpers::shown(&path.to_string_lossy());
                return Err(format!("the sandbox does not allow to change {path}"));
            }
            let path = orders.copies.iter().fold(path.to_owned(), |path, copy| copy.path(&path));
            let refused = row.control.refuses_change(&path);
            refused.map_or(Ok(()), |why| Err(format!("{}: {why}", helpers::shown(&path.to_string_lossy()))))
        };
        let patch = workspace.outputs.path().ok();
        let patch = patch.map(|folder| artifact::answer_path(&folder, &member.name).with_extension("patch"));
        if let Some(folder) = patch.as_ref().and_then(|patch| patch.parent()) {
            let _ = file::make_private_folder(folder); // without it there is no diff, and no more
        }
        let terms = Terms {
            refusal: (!is_done).then_some("the helper has not finished"),
            may_write: &may_write,
            sandbox,
            patch: patch.as_deref(),
            cancel: orders.cancel,
        };
        let looking = workspace.changes.begin(NAME, orders.call, orders.cancel);
        let taken = copy.finish(&member.name, &terms);
        if let Some(number) = looking {
            workspace.changes.end(NAME, orders.call, number);
        }
        taken
    }

    /// Takes a name for a helper that no other one of the session has or had.
    fn take_name(&self, task: &Task, config: &Config) -> String {
        let wanted = task.name.as_ref().unwrap_or(&task.agent);
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
        let mut wanted: String =
            wanted.chars().map(|c| if c == ' ' { '-' } else { c }).filter(is_plain).take(NAME_MAX).collect();
        wanted = wanted.trim_matches(|c| "_-".contains(c)).to_owned();
        if wanted.is_empty() {
            wanted = "helper".into();
        }
        let kept: HashSet<String> =
            artifact::answers(&*config.workspace.outputs).map(|name| name.to_ascii_lowercase()).collect();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_free = |name: &String| {
            let name = name.to_ascii_lowercase();
            !kept.contains(&name) && names.insert(name)
        };
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        std::iter::once(wanted.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or(wanted)
    }
}

/// Keeps the whole answer of a helper, to be read as `agent://NAME`.
fn keep(outputs: &dyn OutputDir, report: &Report) -> std::io::Result<()> {
    let path = artifact::answer_path(&outputs.path()?, &report.name);
    if let Some(folder) = path.parent() {
        file::make_private_folder(folder)?;
    }
    file::create_private(&path)?.write_all(report.text.as_bytes())
}

/// The report of one task of a call.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The helpers of the call.
    members: &'a [Arc<Member>],
    at: usize,
    control: &'a Control,
    update: &'a (dyn Fn(&[Report]) + Sync),
}

impl<'a> Row<'a> {
    pub fn member(&self) -> &'a Arc<Member> {
        &self.members[self.at]
    }

    /// Changes the report, and shows it.
    pub fn change<T>(&self, change: impl FnOnce(&mut Report) -> T) -> T {
        let member = self.member();
        let result = member.change(change);
        if let Some(ui) = self.control.ui() {
            ui.event(&Event::HelperUpdate { helper: &member.report().to_json() });
        }
        let reports: Vec<Report> = self.members.iter().map(|member| member.report()).collect();
        (self.update)(&reports);
        result
    }

    pub fn end(&self, status: Status, note: &str) {
        self.change(|report| {
            (report.status, report.note) = (status, Some(note.to_owned()));
            report.doing.clear();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_copy_stands_for_one_in_the_folder() {
        let copy = |copy: &str, root: &str| Original { copy: copy.into(), root: root.into() };
        // A copy of a copy.
        let copies = [copy("/c/2/tree", "/c/1/tree"), copy("/c/1/tree", "/proj")];
        let text = |text: &str| copies.iter().fold(text.to_owned(), |text, copy| copy.text(&text));
        let path = |path: &str| copies.iter().fold(PathBuf::from(path), |path, copy| copy.path(&path));
        for (given, expected) in
            [("/c/2/tree/a", "/proj/a"), ("/c/1/tree/a", "/proj/a"), ("/proj/a", "/proj/a"), ("a", "a")]
        {
            assert_eq!((text(given), path(given)), (expected.to_owned(), expected.into()));
        }
        assert_eq!(text("cp a /c/2/tree/secret/; ls /c/2/tree"), "cp a /proj/secret/; ls /proj");
    }
}
