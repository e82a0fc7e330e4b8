//! Opens sessions: one after another, on a thread of its own, since a long one takes its time.

use super::files::Files;
use super::mode::Modes;
use super::peer::{Peer, Reply};
use super::permit::Permits;
use super::update;
use super::work::{self, Job};
use super::{AUTH_REQUIRED, Host, Listed, NOT_FOUND, Refusal};
use crate::jsonrpc::message::INTERNAL_ERROR;
use crate::runtime::control::Control;
use crate::runtime::{CancelToken, Workspace};
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Sessions of one answer to `session/list`.
const PAGE_MAX: usize = 100;

/// Jobs that wait for a session's thread: a prompt and the end.
const JOBS_MAX: usize = 4;

pub enum Wish {
    New {
        cwd: PathBuf,
    },
    Stored {
        cwd: PathBuf,
        id: String,
        /// Tells the conversation anew.
        replay: bool,
    },
    List {
        cwd: Option<PathBuf>,
        /// The session after which the page begins.
        after: Option<String>,
    },
}

/// An open session.
pub struct Open {
    pub control: Control,
    pub jobs: Sender<Job>,
    pub modes: Option<Modes>,
    pub worker: JoinHandle<()>,
    workspace: Arc<Workspace>,
}

/// All open sessions, by id. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sessions {
    open: Arc<Mutex<HashMap<String, Open>>>,
    /// Threads of sessions that are being closed.
    leaving: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Sessions {
    pub fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a session's thread that will end by itself.
    pub fn leave(&self, worker: JoinHandle<()>) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|worker| !worker.is_finished());
        leaving.push(worker);
    }

    /// Waits until all sessions are closed. False when one of them failed inside.
    pub fn close(&self) -> bool {
        let open: Vec<Open> = self.lock().drain().map(|(_, open)| open).collect();
        open.into_iter().for_each(|open| self.leave(open.worker));
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<bool> = leaving.drain(..).map(|w| w.join().is_ok()).collect();
        ended.into_iter().all(|well| well)
    }

    /// Whether some session's background processes live on.
    pub fn keep_background(&self) -> bool {
        let open = self.lock();
        open.values().any(|open| open.workspace.options.bash_keep_background)
    }
}

pub struct Opener<H> {
    pub host: H,
    pub peer: Peer,
    pub sessions: Sessions,
    pub cancel: CancelToken,
}

/// The sessions behind the one called `after`, and where the next page begins.
fn page(sessions: &[Listed], after: Option<&str>) -> Result<Value, Refusal> {
    let from = match after {
        None => 0,
        Some(id) => {
            let at = sessions.iter().position(|listed| listed.session_id == id);
            let at = at.ok_or_else(|| Refusal::NotFound(format!("No session \"{id}\" to go on from")))?;
            at + 1
        }
    };
    let rest = sessions.get(from..).unwrap_or_default();
    let (shown, later) = rest.split_at(rest.len().min(PAGE_MAX));
    let mut answer = json!({ "sessions": shown });
    if let (Some(last), false) = (shown.last(), later.is_empty()) {
        answer["nextCursor"] = last.session_id.as_str().into();
    }
    Ok(answer)
}

impl<H: Host> Opener<H> {
    pub fn work(mut self, wishes: &Receiver<(Wish, Reply)>) {
        for (wish, reply) in wishes {
            match self.fulfil(wish) {
                Ok((answer, session)) => {
                    reply.done(answer);
                    if let Some(id) = session {
                        self.tell_commands(&id);
                    }
                }
                Err(Refusal::NotFound(reason)) => reply.fail(NOT_FOUND, reason),
                Err(Refusal::NoModel(reason)) => reply.fail(AUTH_REQUIRED, reason),
                Err(Refusal::Failed(reason)) => reply.fail(INTERNAL_ERROR, reason),
            }
        }
    }

    /// The answer, and the session that was opened.
    fn fulfil(&mut self, wish: Wish) -> Result<(Value, Option<String>), Refusal> {
        match wish {
            Wish::New { cwd } => {
                let id = self.open(&cwd, None)?;
                let mut answer = self.modes(&id);
                answer["sessionId"] = id.as_str().into();
                Ok((answer, Some(id)))
            }
            Wish::Stored { cwd, id, replay } => {
                if !self.sessions.lock().contains_key(&id) {
                    self.open(&cwd, Some(&id))?;
                }
                if replay {
                    self.replay(&id);
                }
                Ok((self.modes(&id), Some(id)))
            }
            Wish::List { cwd, after } => {
                let sessions = self.host.list(cwd.as_deref())?;
                Ok((page(&sessions, after.as_deref())?, None))
            }
        }
    }

    fn open(&mut self, cwd: &Path, stored: Option<&str>) -> Result<String, Refusal> {
        let files = Arc::new(Files::new(self.peer.clone()));
        let before = files.clone();
        let over = Box::new(move |below| before.clone().over(below));
        let session = self.host.open(cwd, stored, over, &self.cancel)?;
        let (control, workspace) = (session.control().clone(), session.workspace().clone());
        let id = session.header().id;
        let folder = workspace.backend.canonical(&workspace.cwd);
        files.serve(folder.unwrap_or_else(|_| workspace.cwd.clone()), id.clone());
        control.set_approver(Arc::new(Permits {
            peer: self.peer.clone(),
            session: id.clone(),
            workspace: workspace.clone(),
        }));
        let (jobs, waiting) = bounded(JOBS_MAX);
        let (name, peer) = (id.clone(), self.peer.clone());
        let worker = thread::Builder::new()
            .name("session".into())
            .spawn(move || work::work(session, &name, &waiting, &peer, &files))
            .map_err(|error| Refusal::Failed(format!("Cannot start a thread: {error}")))?;
        let open = Open { modes: Modes::of(&control), control, jobs, workspace, worker };
        self.sessions.lock().insert(id.clone(), open);
        Ok(id)
    }

    fn modes(&self, id: &str) -> Value {
        let sessions = self.sessions.lock();
        match sessions.get(id).and_then(|open| open.modes.as_ref()) {
            Some(modes) => json!({"modes": modes.to_json()}),
            None => json!({}),
        }
    }

    fn replay(&self, id: &str) {
        let Some((control, workspace)) =
            self.sessions.lock().get(id).map(|open| (open.control.clone(), open.workspace.clone()))
        else {
            return;
        };
        control.each_message(|message| {
            update::replay(&workspace, message, &mut |update| {
                self.peer.update(id, &update);
            });
        });
    }

    /// What a prompt can begin with.
    fn tell_commands(&self, id: &str) {
        let Some(control) = self.sessions.lock().get(id).map(|open| open.control.clone()) else {
            return;
        };
        let command = |command: Value| {
            json!({"name": command["name"], "description": command["description"],
                "input": {"hint": "arguments"}})
        };
        let commands: Vec<Value> = control.commands().into_iter().map(command).collect();
        if !commands.is_empty() {
            let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
            self.peer.update(id, &update);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_comes_in_pages() {
        let listed = |n: usize| Listed {
            session_id: format!("s{n}"),
            cwd: String::new(),
            title: String::new(),
            updated_at: String::new(),
        };
        let sessions: Vec<Listed> = (0..2 * PAGE_MAX + 1).map(listed).collect();
        let (mut ids, mut pages, mut after) = (Vec::new(), 0, None);
        loop {
            let page = page(&sessions, after.as_deref()).unwrap();
            let shown = page["sessions"].as_array().unwrap().iter();
            ids.extend(shown.map(|listed| listed["sessionId"].as_str().unwrap().to_owned()));
            pages += 1;
            after = page["nextCursor"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, 3);
        let all: Vec<&str> = sessions.iter().map(|listed| &*listed.session_id).collect();
        assert_eq!(ids, all);
        assert_eq!(page(&[], None).unwrap(), json!({"sessions": []}));
        assert!(page(&sessions, Some("gone")).is_err());
        let whole = page(&sessions[..PAGE_MAX], None).unwrap();
        assert!(whole.get("nextCursor").is_none());
    }
}
