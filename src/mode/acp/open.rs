//! Opens sessions one after another on a separate thread, since a long session takes time.

use super::command;
use super::files::Files;
use super::mode::{self, Modes};
use super::option;
use super::peer::{AUTH_REQUIRED, CANCELLED, NOT_FOUND, Peer, Reply};
use super::permit::EditorApprover;
use super::replay;
use super::terminal::Drawn;
use super::typed::title;
use super::ui::EditorUi;
use super::update::{INFO, Updates, WARNING, notice};
use super::work::{self, Job};
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::jsonrpc::message::{INTERNAL_ERROR, INVALID_PARAMS};
use crate::mode::host::{self, Host, Listed, Refusal};
use crate::runtime::addition::{Addition, OWN, Owner};
use crate::runtime::control::Control;
use crate::runtime::lent::{Lend, LentServer};
use crate::runtime::{CancelToken, Workspace};
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

/// The version of the protocol.
const VERSION: u32 = 1;

/// Maximum jobs queued for a session's thread: a prompt and the end.
const JOBS_MAX: usize = 4;

/// A request that the opener answers.
pub enum Request {
    Initialize,
    Authenticate,
    New(Setup),
    Stored {
        setup: Setup,
        id: String,
        /// True to send the stored conversation.
        replay: bool,
    },
    /// The id of a session.
    Delete(String),
    Logout,
    List {
        cwd: Option<PathBuf>,
        /// The session after which the page begins.
        after: Option<String>,
    },
}

/// What the editor says of a session that it opens.
pub struct Setup {
    pub cwd: PathBuf,
    /// Folders of the workspace beside `cwd`.
    pub folders: Vec<PathBuf>,
    /// MCP servers of the editor.
    pub servers: Vec<LentServer>,
}

/// An open session.
pub struct Open {
    pub control: Control,
    pub jobs: Sender<Job>,
    /// Of the prompt that is being answered.
    pub turn: Weak<()>,
    pub modes: Option<Modes>,
    /// The mode that the editor knows of.
    told_mode: &'static str,
    pub worker: JoinHandle<()>,
    files: Arc<Files>,
    /// Replaces the editor's MCP servers; none if the session takes none.
    lend: Option<Lend>,
    ui: Arc<EditorUi>,
    workspace: Arc<Workspace>,
}

/// All open sessions, by id. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sessions {
    open: Arc<Mutex<HashMap<String, Open>>>,
    /// Threads of sessions that are closing.
    leaving: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Sessions {
    pub fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the options of a session anew.
    pub fn tell_options(&self, id: &str, peer: &Peer) {
        let options =
            self.lock().get(id).map(|Open { control, modes, .. }| option::list(control, modes.as_ref()));
        if let Some(options) = options {
            peer.update(id, &json!({"sessionUpdate": "config_option_update", "configOptions": options}));
        }
    }

    /// Tells the mode of a session, if it is another one than before.
    pub fn tell_mode(&self, id: &str, peer: &Peer) {
        let mut open = self.lock();
        let Some(Open { control, told_mode, .. }) = open.get_mut(id) else { return };
        let mode = mode::current(control);
        if std::mem::replace(told_mode, mode) != mode {
            // The editor may read slowly.
            drop(open);
            peer.update(id, &json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
            self.tell_options(id, peer);
        }
    }

    /// Takes what the editor says of a session that is open already.
    fn change(&self, id: &str, setup: Setup) {
        let open =
            self.lock().get(id).map(|open| (open.control.clone(), open.files.clone(), open.lend.clone()));
        if let Some((control, files, lend)) = open {
            take_folders(&control, &files, &setup.folders);
            if let Some(lend) = lend {
                lend(setup.servers);
            }
        }
    }

    /// Keeps the thread of a session that is closing.
    pub fn leave(&self, worker: JoinHandle<()>) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|worker| !worker.is_finished());
        leaving.push(worker);
    }

    /// Waits until all sessions are closed. False if one failed with an internal error.
    pub fn close(&self) -> bool {
        let open: Vec<Open> = self.lock().drain().map(|(_, open)| open).collect();
        open.into_iter().for_each(|open| self.leave(open.worker));
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<bool> = leaving.drain(..).map(|w| w.join().is_ok()).collect();
        ended.into_iter().all(|well| well)
    }

    /// True if background processes of a session should keep running.
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

struct Answer {
    result: Value,
    /// Id of the session that was opened.
    session: Option<String>,
    /// Updates with notices to send after the response.
    notices: Vec<Value>,
}

impl Answer {
    fn new(result: Value) -> Self {
        Self { result, session: None, notices: Vec::new() }
    }
}

/// The page of sessions after the session `after`, with the cursor of the next page.
fn page(sessions: &[Listed], after: Option<&str>) -> Result<Value, Refusal> {
    let (shown, next) = host::page(sessions, after)?;
    let shown_as = |listed: &Listed| Listed { title: title(&listed.title), ..listed.clone() };
    let mut answer = json!({"sessions": shown.iter().map(shown_as).collect::<Vec<_>>()});
    if let Some(next) = next {
        answer["nextCursor"] = next.into();
    }
    Ok(answer)
}

/// The result of `initialize`. The version is always this program's: the client decides whether it is
/// compatible.
fn initialize_result(methods: &[Value], takes_servers: bool) -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": takes_servers, "sse": takes_servers},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {},
                "additionalDirectories": {}},
            "auth": {"logout": {}},
        },
        "agentInfo": {"name": "pi", "title": "pi", "version": env!("CARGO_PKG_VERSION")},
        "authMethods": methods,
    })
}

impl<H: Host> Opener<H> {
    pub fn work(mut self, requests: &Receiver<(Request, Reply)>) {
        for (request, reply) in requests {
            if reply.is_cancelled() {
                reply.fail(CANCELLED, "The request was cancelled");
                continue;
            }
            match self.answer(request) {
                Ok(Answer { result, session, notices }) => {
                    reply.done(result);
                    if let Some(id) = session {
                        notices.iter().for_each(|notice| self.peer.update(&id, notice));
                        let open =
                            self.sessions.lock().get(&id).map(|open| (open.control.clone(), open.ui.clone()));
                        if let Some((control, ui)) = open {
                            tell_commands(&id, &control, &self.peer);
                            ui.release();
                        }
                    }
                }
                Err(Refusal::NoFolder(reason)) => reply.fail(INVALID_PARAMS, reason),
                Err(Refusal::NotFound(reason)) => reply.fail(NOT_FOUND, reason),
                Err(Refusal::NoModel(reason)) => reply.fail(AUTH_REQUIRED, reason),
                Err(Refusal::Failed(reason)) => reply.fail(INTERNAL_ERROR, reason),
            }
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Initialize => {
                let methods = self.auth_methods();
                Ok(Answer::new(initialize_result(&methods, self.host.takes_servers())))
            }
            Request::Authenticate => {
                self.host.check_key(&self.cancel).map_err(|reason| {
                    Refusal::NoModel(format!("{reason}\nTo sign in, run this in a terminal: pi auth login"))
                })?;
                Ok(Answer::new(json!({})))
            }
            Request::New(setup) => {
                let servers = names(&setup.servers);
                let id = self.open(setup, None)?;
                let notices = self.unused(&id, &servers);
                let mut result = self.options(&id);
                result["sessionId"] = id.as_str().into();
                Ok(Answer { result, session: Some(id), notices })
            }
            Request::Stored { setup, id, replay } => {
                let servers = names(&setup.servers);
                let is_open = self.sessions.lock().contains_key(&id);
                if is_open {
                    check_folders(&setup)?;
                    self.sessions.change(&id, setup);
                } else {
                    self.open(setup, Some(&id))?;
                }
                let mut notices = self.unused(&id, &servers);
                if !is_open && self.is_empty(&id) {
                    let title = "Nothing is stored of this session; it begins anew.";
                    notices.push(notice(self.peer.capabilities(), INFO, title, None));
                }
                if replay {
                    self.replay(&id);
                }
                Ok(Answer { result: self.options(&id), session: Some(id), notices })
            }
            Request::Delete(id) => {
                let open = self.sessions.lock().remove(&id);
                if let Some(open) = open {
                    open.control.abort();
                    drop(open.jobs);
                    let _ = open.worker.join();
                }
                self.host.delete(&id)?;
                Ok(Answer::new(json!({})))
            }
            Request::Logout => {
                self.host.sign_out(&self.cancel).map_err(Refusal::Failed)?;
                Ok(Answer::new(json!({})))
            }
            Request::List { cwd, after } => {
                let sessions = self.host.list(cwd.as_deref())?;
                Ok(Answer::new(page(&sessions, after.as_deref())?))
            }
        }
    }

    /// The sign-in methods. A client may insist on using an advertised method, so a method that the client
    /// cannot run itself is listed only if it is needed.
    fn auth_methods(&mut self) -> Vec<Value> {
        let mut method = json!({
            "id": "pi-auth-login",
            "name": "Sign in with pi",
            "description": "Run `pi auth login` in a terminal, or set a provider's key in the environment",
        });
        if self.peer.capabilities().terminal_login {
            method["type"] = "terminal".into();
            method["args"] = json!(["auth", "login"]);
            return vec![method];
        }
        match self.host.check_key(&self.cancel) {
            Ok(()) => Vec::new(),
            Err(_) => vec![method],
        }
    }

    /// A notice that the editor's MCP servers are not used, where that is so.
    fn unused(&self, id: &str, servers: &str) -> Vec<Value> {
        if servers.is_empty() || self.sessions.lock().get(id).is_some_and(|open| open.lend.is_some()) {
            return Vec::new();
        }
        let title = format!("MCP servers of the editor are not used: {servers}");
        let why = "This pi was built without MCP, or a flag or a setting switches it off.";
        vec![notice(self.peer.capabilities(), WARNING, &title, Some(why))]
    }

    fn is_empty(&self, id: &str) -> bool {
        let sessions = self.sessions.lock();
        sessions.get(id).is_some_and(|open| open.control.snapshot().message_count == 0)
    }

    fn open(&mut self, setup: Setup, stored: Option<&str>) -> Result<String, Refusal> {
        check_folders(&setup)?;
        let Setup { cwd, folders, servers } = setup;
        let (jobs, waiting) = bounded(JOBS_MAX);
        // The session's thread closes what it was handed, whatever fails here.
        let (hand_over, handed) = bounded(1);
        let files = Arc::new(Files::new(self.peer.clone()));
        let before = files.clone();
        let over = Box::new(move |below| before.clone().over(below));
        let worker = {
            let (peer, sessions, files) = (self.peer.clone(), self.sessions.clone(), files.clone());
            let work = move || {
                if let Ok(session) = handed.recv() {
                    work::work(session, &waiting, &sessions, &peer, &files);
                }
            };
            Thread::named("session")
                .start(work)
                .map_err(|error| Refusal::Failed(format!("Cannot start a thread: {error}")))?
        };
        let session = self.host.open(&cwd, stored, &folders, over, &self.cancel)?;
        let (control, workspace) = (session.control().clone(), session.workspace().clone());
        let id = session.header().id;
        files.serve(id.clone(), &control);
        take_folders(&control, &files, &folders);
        control.set_approver(Arc::new(EditorApprover {
            peer: self.peer.clone(),
            session: id.clone(),
            workspace: workspace.clone(),
            describer: control.tools().describer(),
            control: control.downgrade(),
        }));
        let ui = Arc::new(EditorUi::new(&self.peer, &id, &self.sessions, control.downgrade()));
        control.set_ui(ui.clone());
        let lend = self.host.start_servers(&session, servers, &self.cancel);
        // The channel has room for the one session.
        let _ = hand_over.send(session);
        let lend = lend?;
        mode::ask_by_default(&control);
        let (modes, told_mode) = (Modes::of(&control), mode::current(&control));
        let turn = Weak::new();
        let open = Open { modes, told_mode, control, jobs, turn, workspace, files, lend, ui, worker };
        self.sessions.lock().insert(id.clone(), open);
        Ok(id)
    }

    /// Modes and options of a session, for the answer to its opening.
    fn options(&self, id: &str) -> Value {
        let sessions = self.sessions.lock();
        let Some(open) = sessions.get(id) else {
            return json!({});
        };
        let mut options = json!({"configOptions": option::list(&open.control, open.modes.as_ref())});
        if let Some(modes) = &open.modes {
            options["modes"] =
                json!({"currentModeId": open.told_mode, "availableModes": modes.choices("id")});
        }
        options
    }

    fn replay(&self, id: &str) {
        let Some((control, workspace)) =
            self.sessions.lock().get(id).map(|open| (open.control.clone(), open.workspace.clone()))
        else {
            return;
        };
        let mut updates = Updates::new(
            self.peer.clone(),
            id.to_owned(),
            workspace,
            control.tools().describer(),
            Drawn::default(),
        );
        control.tree().each_message(|message| replay::message(&mut updates, message));
    }
}

fn names(servers: &[LentServer]) -> String {
    servers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn check_folders(setup: &Setup) -> Result<(), Refusal> {
    match std::iter::once(&setup.cwd).chain(&setup.folders).find(|folder| !folder.is_dir()) {
        Some(folder) => Err(Refusal::NoFolder(format!("There is no folder {}", folder.display()))),
        None => Ok(()),
    }
}

/// Takes up the folders beside the session's own: the model is told of them, and the editor accesses their files.
fn take_folders(control: &Control, files: &Files, folders: &[PathBuf]) {
    let workspace = &control.config().workspace;
    let real = |folder: &PathBuf| workspace.backend.canonical(folder).unwrap_or_else(|_| folder.clone());
    files.set_folders(std::iter::once(&workspace.cwd).chain(folders).map(real).collect());
    let owner = Owner { rank: OWN, name: "folders".into() };
    if folders.is_empty() {
        return control.remove_addition(&owner);
    }
    let list: Vec<String> = folders.iter().map(|folder| format!("\n- {}", folder.display())).collect();
    let text = format!("The workspace has more folders, besides the working folder:{}", list.concat());
    let sections = vec![("workspace_folders".to_owned(), text)];
    // A section is never refused.
    control.set_addition(owner, Addition { sections, ..Addition::default() });
}

/// Sends the commands of pi, of extensions, templates and skills to the editor.
pub fn tell_commands(id: &str, control: &Control, peer: &Peer) {
    let command = |name: &str, description: &str, hint: Option<&str>| {
        let mut command = json!({"name": name, "description": description});
        if let Some(hint) = hint {
            command["input"] = json!({ "hint": hint });
        }
        command
    };
    let config = control.config();
    let templates = config.commands.templates.iter().map(|template| {
        // One that takes no arguments leaves out what is said behind its name.
        let takes_any = template.content.contains('$').then_some("arguments");
        command(&template.name, &template.description, template.hint.as_deref().or(takes_any))
    });
    let skills = config
        .commands
        .skills
        .iter()
        .map(|skill| command(&format!("skill:{}", skill.name), &skill.description, Some("arguments")));
    let added = control.added_commands();
    let added = added.iter().map(|named| {
        command(&named.name, named.command.description().unwrap_or_default(), Some("arguments"))
    });
    let commands: Vec<Value> = command::list().chain(added).chain(templates).chain(skills).collect();
    let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    peer.update(id, &update);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::output::Output;
    use crate::runtime::backend::Over;
    use crate::runtime::session::Session;
    use std::io::{self, Write};
    use std::path::Path;

    /// A host without sessions, which opens none.
    struct Empty;

    impl Host for Empty {
        fn takes_servers(&self) -> bool {
            unreachable!()
        }

        fn start_servers(
            &mut self,
            _: &Session,
            _: Vec<LentServer>,
            _: &CancelToken,
        ) -> Result<Option<Lend>, Refusal> {
            unreachable!()
        }

        fn open_tools(&mut self, _: &CancelToken) -> Result<Session, Refusal> {
            unreachable!()
        }

        fn read(&mut self, _: &str) -> Result<String, Refusal> {
            unreachable!()
        }

        fn place(&mut self, _: &str) -> Result<PathBuf, Refusal> {
            unreachable!()
        }

        fn delete(&mut self, _: &str) -> Result<(), Refusal> {
            unreachable!()
        }

        fn sign_out(&mut self, _: &CancelToken) -> Result<(), String> {
            unreachable!()
        }

        fn check_key(&mut self, _: &CancelToken) -> Result<(), String> {
            Ok(())
        }

        fn open(
            &mut self,
            _: &Path,
            _: Option<&str>,
            _: &[PathBuf],
            _: Over,
            _: &CancelToken,
        ) -> Result<Session, Refusal> {
            Err(Refusal::Failed("There are no sessions here".into()))
        }

        fn list(&mut self, _: Option<&Path>) -> Result<Vec<Listed>, Refusal> {
            Ok(Vec::new())
        }
    }

    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_that_was_taken_back_is_not_answered() {
        let written = Arc::default();
        let output = Output::start(Written(Arc::clone(&written)), false, CancelToken::new()).unwrap();
        let output = Arc::new(output);
        let peer = Peer::new(output.clone());
        let (requests, waiting) = bounded(3);
        for id in [json!(1), json!("two"), json!(3)] {
            requests.send((Request::List { cwd: None, after: None }, peer.reply(id))).unwrap();
        }
        peer.cancel(&json!("two"));
        peer.cancel(&json!(4));
        drop(requests);
        let opener = Opener { host: Empty, peer, sessions: Sessions::default(), cancel: CancelToken::new() };
        opener.work(&waiting);
        output.flush().unwrap();
        let lines = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<(&Value, &Value)> =
            answers.iter().map(|answer| (&answer["id"], &answer["error"]["code"])).collect();
        let none = &Value::Null;
        assert_eq!(told, [(&json!(1), none), (&json!("two"), &json!(CANCELLED)), (&json!(3), none)]);
    }
}
