//! The helpers of a session, as a person and other programs see them: what each does, and orders to it.
//!
//! The room `helper` starts them. A helper is known here from the moment when its task was given until the session
//! changes to another conversation.

use super::approval::excerpt;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::visible;
use crate::llm::message::Usage;
use crate::session::compaction::add_usage;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Helpers that are remembered. The oldest one that has ended goes first.
const KNOWN_MAX: usize = 100;
/// Messages that may wait for a helper.
const MESSAGES_MAX: usize = 16;
/// Names in a text for people or the model: how many at most, and how many bytes after which no other one follows.
const NAMES_MAX: usize = 20;
const NAMES_BYTES_MAX: usize = 600;
/// Maximum characters of a name.
const NAME_MAX: usize = 200;
/// Time for helpers in the background to end when their conversation does.
const END_MAX: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    Aborted,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }

    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

/// A name of a file for a text: in one line, without what drives a terminal or hides.
pub fn shown(name: &str) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    excerpt(&visible::shown(name).chars().map(escape).collect::<String>(), NAME_MAX)
}

/// Some of the names, and how many more there are.
pub fn names(all: &[String]) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for name in all.iter().take(NAMES_MAX) {
        if text.len() > NAMES_BYTES_MAX {
            break;
        }
        text.push_str(if count == 0 { "" } else { ", " });
        text.push_str(&shown(name));
        count += 1;
    }
    match all.len() - count {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Changes that a helper has made in a copy of the folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub files: Vec<String>,
    /// True if they are in the folder now.
    pub is_applied: bool,
    /// Why they are not.
    pub problem: Option<String>,
    /// The file with the diff.
    pub patch: Option<PathBuf>,
    /// The branch that keeps them.
    pub branch: Option<String>,
    /// The copy that keeps them.
    pub place: Option<PathBuf>,
}

impl Changes {
    /// What has become of the changes, in a sentence.
    pub fn summary(&self) -> String {
        let files = names(&self.files);
        if self.is_applied {
            return format!("Changed: {files}");
        }
        let why = self.problem.as_deref().unwrap_or_default();
        let branch = self.branch.as_ref().map(|branch| format!("the branch {branch}"));
        let place = self.place.as_ref().map(|place| place.display().to_string());
        let patch = self.patch.as_ref().map(|patch| format!("the diff {}", patch.display()));
        let kept: Vec<String> = branch.into_iter().chain(place).chain(patch).collect();
        let files = if files.is_empty() { String::new() } else { format!(" ({files})") };
        format!("Its changes{files} are not in your files: {why}. They are kept in {}", kept.join(" and "))
    }

    fn to_json(&self) -> Value {
        json!({
            "files": self.files, "applied": self.is_applied, "problem": self.problem, "patch": self.patch,
            "branch": self.branch, "place": self.place,
        })
    }
}

/// What became of a task, or what is known of it so far.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub name: String,
    pub agent: String,
    pub task: String,
    pub status: Status,
    /// The result, or all that there is of it.
    pub text: String,
    /// The result as data, if a schema was wanted.
    pub data: Option<Value>,
    /// Why there is no result, or what is to be known about it.
    pub note: Option<String>,
    pub turns: u64,
    pub usage: Usage,
    /// The tool call under way.
    pub doing: String,
    pub session: Option<PathBuf>,
    /// True if the whole text can be read as `agent://NAME`.
    pub is_kept: bool,
    /// True if nothing waits for the result.
    pub is_background: bool,
    /// What a helper has changed that worked in a copy.
    pub changes: Option<Changes>,
}

impl Report {
    pub fn spend(&mut self, usage: &Usage) {
        self.turns += 1;
        self.usage = add_usage(&self.usage, usage);
    }

    /// One line on the progress.
    pub fn line(&self) -> String {
        let Self { name, agent, status, turns, doing, .. } = self;
        let doing = if doing.is_empty() { String::new() } else { format!(": {doing}") };
        format!("{name} ({agent}): {}, {turns} turns{doing}", status.name())
    }

    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name, "agent": self.agent, "status": self.status.name(), "turns": self.turns,
            "usage": self.usage, "doing": self.doing, "note": self.note, "data": self.data,
            "sessionFile": self.session, "background": self.is_background,
            "changes": self.changes.as_ref().map(Changes::to_json),
        })
    }
}

/// A helper, from its task to its end and after.
pub struct Member {
    pub name: String,
    report: Mutex<Report>,
    /// The number of messages that have ended, and the text of the unfinished one.
    partial: Mutex<(u64, String)>,
    watcher: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// Ends the helper.
    pub cancel: CancelToken,
    inbox: (Sender<String>, Receiver<String>),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    pub fn report(&self) -> Report {
        locked(&self.report).clone()
    }

    pub fn is_open(&self) -> bool {
        locked(&self.report).status.is_open()
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Report) -> T) -> T {
        change(&mut locked(&self.report))
    }

    /// The number of messages that have ended, and the text of the one that is being written: what follows its
    /// first `taken` bytes if so many messages as `ended` had ended then, otherwise all of it.
    pub fn partial(&self, ended: u64, taken: usize) -> (u64, String) {
        let partial = locked(&self.partial);
        let taken = if partial.0 == ended { taken } else { 0 };
        (partial.0, partial.1.get(taken..).unwrap_or_default().to_owned())
    }

    /// Adds to the unfinished message; `None` ends it.
    pub fn write(&self, delta: Option<&str>) {
        let mut partial = locked(&self.partial);
        match delta {
            Some(delta) => partial.1.push_str(delta),
            None => *partial = (partial.0 + 1, String::new()),
        }
        drop(partial);
        let watcher = locked(&self.watcher).clone();
        if let Some(watcher) = watcher {
            watcher();
        }
    }

    /// Sets what is called when the unfinished answer changes.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        *locked(&self.watcher) = watcher;
    }

    /// Messages for the helper.
    pub fn inbox(&self) -> &Receiver<String> {
        &self.inbox.1
    }

    /// Sends a message to the helper, which reads it after the turn under way.
    pub fn steer(&self, text: &str) -> Result<(), String> {
        if locked(&self.report).status != Status::Running {
            return Err(format!("{} is not running", self.name));
        }
        let sent = self.inbox.0.try_send(text.to_owned());
        sent.map_err(|_| format!("Too many messages wait for {}", self.name))
    }

    pub fn stop(&self) -> Result<(), String> {
        if !self.is_open() {
            return Err(format!("{} has ended", self.name));
        }
        self.cancel.cancel();
        Ok(())
    }
}

/// The helpers of a session.
pub struct Helpers {
    known: Mutex<Known>,
    /// Receives when a call in the background has ended.
    ended: (Sender<()>, Receiver<()>),
}

struct Known {
    members: Vec<Arc<Member>>,
    /// Calls in the background that are under way.
    calls: usize,
    /// Ends the calls in the background.
    background: CancelToken,
}

/// A call in the background, from its begin to its end.
pub struct Background {
    helpers: Arc<Helpers>,
    pub cancel: CancelToken,
}

impl Drop for Background {
    fn drop(&mut self) {
        locked(&self.helpers.known).calls -= 1;
        let _ = self.helpers.ended.0.try_send(()); // one wake-up that waits is enough
    }
}

impl Helpers {
    pub fn new(root: &CancelToken) -> Self {
        let known = Known { members: Vec::new(), calls: 0, background: root.child() };
        Self { known: Mutex::new(known), ended: bounded(1) }
    }

    pub fn all(&self) -> Vec<Arc<Member>> {
        locked(&self.known).members.clone()
    }

    pub fn add(&self, report: Report, cancel: CancelToken) -> Arc<Member> {
        let member = Arc::new(Member {
            name: report.name.clone(),
            report: Mutex::new(report),
            partial: Mutex::default(),
            watcher: Mutex::default(),
            cancel,
            inbox: bounded(MESSAGES_MAX),
        });
        let mut known = locked(&self.known);
        known.members.push(member.clone());
        let ended = |member: &Arc<Member>| !locked(&member.report).status.is_open();
        if known.members.len() > KNOWN_MAX
            && let Some(oldest) = known.members.iter().position(ended)
        {
            known.members.remove(oldest);
        }
        member
    }

    pub fn find(&self, name: &str) -> Result<Arc<Member>, String> {
        let members = self.all();
        let found = members.iter().find(|member| member.name.eq_ignore_ascii_case(name)).cloned();
        found.ok_or_else(|| {
            let known: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            match known.as_slice() {
                [] => format!("There is no helper {name:?}, and no other"),
                known => format!("There is no helper {name:?}. Known: {}", known.join(", ")),
            }
        })
    }

    /// Begins a call that nothing waits for.
    pub fn begin(self: &Arc<Self>) -> Background {
        let mut known = locked(&self.known);
        known.calls += 1;
        Background { helpers: self.clone(), cancel: known.background.child() }
    }

    /// Waits until a call in the background has ended. False if there is none, or on `cancel`.
    pub fn wait(&self, cancel: &CancelToken) -> bool {
        if locked(&self.known).calls == 0 {
            return self.ended.1.try_recv().is_ok();
        }
        select! {
            recv(self.ended.1) -> _ => true,
            recv(cancel.receiver()) -> _ => false,
        }
    }

    /// Ends the calls in the background, whose conversation ends, and forgets all helpers.
    pub fn end(&self, root: &CancelToken) {
        let background = {
            let mut known = locked(&self.known);
            known.members.clear();
            std::mem::replace(&mut known.background, root.child())
        };
        background.cancel();
        let until = Instant::now() + END_MAX;
        while locked(&self.known).calls > 0 {
            if self.ended.1.recv_deadline(until).is_err() {
                break;
            }
        }
        // The next conversation has nothing to wait for.
        let _ = self.ended.1.try_recv();
    }

    /// Does what another program asks: `list`, `steer` with `text`, or `stop` the `helper`.
    pub fn act(&self, arguments: &Map<String, Value>) -> Result<Vec<Value>, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let helper = || self.find(text("helper").ok_or("helper is needed: the name of one")?);
        match text("op").unwrap_or_default() {
            "list" => {}
            "steer" => helper()?.steer(text("text").ok_or("text is needed")?)?,
            "stop" => helper()?.stop()?,
            op => return Err(format!("There is no op {op:?}; there are list, steer and stop")),
        }
        Ok(self.all().iter().map(|member| member.report().to_json()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_few_and_each_is_in_one_line() {
        let of = |all: &[&str]| names(&all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["a", "é b"]), "a, é b");
        assert_eq!(of(&["a\n## b (b): done", "\u{1b}[31m"]), "a\\n## b (b): done, \\u{1b}[31m");
        let many: Vec<String> = (0..5000).map(|number| format!("f{number}")).collect();
        assert!(names(&many).ends_with(", f19 and 4980 more"), "{}", names(&many));
        let long: Vec<String> = (0..5000).map(|number| format!("{number}{}", "x".repeat(4000))).collect();
        assert!(names(&long).len() < 1000, "{}", names(&long));
    }
}
