//! Opens the session that a run continues, or makes a new one.
//!
//! The user decides about a session of another folder, a session in use, and a session whose folder is gone.
//! On a terminal the user is asked; elsewhere an error names the flags that decide.

use super::ask;
use super::flags::SessionArgs;
use super::sessions::row;
use super::start::Launch;
use crate::mode::interactive::question;
use crate::mode::report::{self, warning as warn};
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::ago;
use crate::runtime::config::Inputs;
use crate::runtime::succession::Folder;
use crate::session::store::{Found, Store, Stored};
use crate::session::{Log, SessionError, SyncMode, upkeep};
use std::path::{Path, PathBuf};

/// Maximum number of sessions that `--resume` offers.
const OFFERED_MAX: usize = 50;

/// Advice for `--continue` if the newest session is in use.
const NAME_ANOTHER: &str = "\nIt is the newest session of this folder. Name another one with --session: pi sessions list shows them.";

/// Returns the store that flags, environment and settings choose.
pub fn store(dirs: &Dirs, settings: &Settings, session_dir: Option<&str>, cwd: &Path) -> Store {
    let sync = SyncMode::parse(settings.word("session.sync")).unwrap_or_default();
    let named = dirs.sessions(session_dir, settings.text("sessionDir"), cwd);
    Store::new(dirs.agent(), named, sync)
}

/// An opened session, with a draft if the user chose one.
pub struct Opened {
    pub log: Log,
    /// A prompt that got no answer, to be edited.
    pub draft: Option<String>,
}

/// Opens the session that the command line asks for, and changes to its folder. No draft is offered if
/// `has_prompt` is set.
pub fn log(
    launch: &Launch,
    args: &SessionArgs,
    has_prompt: bool,
    inputs: &mut Inputs,
) -> Result<Opened, String> {
    let opening = Opening { launch, args, store: launch.store(inputs), has_prompt };
    let mut opened = opening.find(inputs)?;
    // A session works in its own folder, even if it was opened from another one.
    if args.cwd.is_none()
        && !enter_home(launch, inputs, &opened.log)?
        && is_to_be_forked(&opened.log, launch, inputs)?
    {
        let source = opened.log.path().map(Path::to_owned).unwrap_or_default();
        let forked = opening.store.fork_from(&source, &inputs.cwd, None);
        opened.log = forked.map_err(|error| error.to_string())?;
    }
    Ok(opened)
}

/// Changes to the folder of a session that is opened while the program runs. Asks nothing: the mode has asked
/// before.
pub fn follow(launch: &Launch, inputs: &mut Inputs, log: &Log, folder: Folder) -> Result<(), String> {
    if folder == Folder::Here || enter_home(launch, inputs, log)? {
        return Ok(());
    }
    Err(gone(log))
}

/// Changes to the session's folder. False if the folder is gone.
fn enter_home(launch: &Launch, inputs: &mut Inputs, log: &Log) -> Result<bool, String> {
    let home = PathBuf::from(&log.header().cwd);
    if home == inputs.cwd || log.header().cwd.is_empty() {
        return Ok(true);
    }
    if std::env::set_current_dir(&home).is_err() {
        return Ok(false);
    }
    launch.enter(inputs, home)?;
    Ok(true)
}

fn gone(log: &Log) -> String {
    let home = &log.header().cwd;
    format!("Stored session working directory does not exist: {home}")
}

/// Asks how to continue a session whose folder is gone. True for a fork; false to continue the session itself
/// in the current folder.
fn is_to_be_forked(log: &Log, launch: &Launch, inputs: &Inputs) -> Result<bool, String> {
    const NO_FOLDER: &str = "No folder to work in";
    let here = inputs.cwd.display();
    let problem = gone(log);
    let mut answers = vec![
        format!("Continue in {here} (asks again next time)"),
        format!("Fork into {here} (new session ID, original kept)"),
    ];
    if let Some(screen) = launch.screen(inputs) {
        answers.push("Cancel".to_owned());
        let home = &log.header().cwd;
        return match ask::choose_drawn(screen, "Session cwd does not exist", home, &answers) {
            Some(answer @ (0 | 1)) => Ok(answer == 1),
            _ => ask::leave(NO_FOLDER),
        };
    }
    if ask::possible() {
        return match ask::choose(&problem, &answers) {
            Some(answer) => Ok(answer == 1),
            None => Err(NO_FOLDER.into()),
        };
    }
    let file = log.path().unwrap_or(Path::new("")).display();
    Err(format!(
        "{problem}\nSession file: {file}\nCurrent working directory: {here}\nName a folder with --cwd to go on there."
    ))
}

/// The arguments and the store for opening a session.
struct Opening<'a> {
    launch: &'a Launch,
    args: &'a SessionArgs,
    store: Store,
    has_prompt: bool,
}

impl Opening<'_> {
    fn find(&self, inputs: &Inputs) -> Result<Opened, String> {
        let say = |error: SessionError| error.to_string();
        let (args, store, cwd) = (self.args, &self.store, inputs.cwd.as_path());
        let id = args.session_id.as_deref();
        let parent = args.parent_session.as_deref().map(|file| resolved(inputs, file));
        let opened = |log: Log| Opened { log, draft: None };
        if args.no_session {
            return Log::in_memory(cwd, id).map(opened).map_err(say);
        }
        if let Some(source) = &args.fork {
            let source = path_of(store.find(cwd, &resolved(inputs, source)).map_err(say)?);
            return store.fork_from(&source, cwd, id).map(opened).map_err(say);
        }
        if let Some(wanted) = &args.session {
            let log = match store.find(cwd, &resolved(inputs, wanted)).map_err(say)? {
                Found::Path(path) => self.open(&path, inputs, ""),
                Found::Here(stored) => self.open(&stored.path, inputs, ""),
                Found::Elsewhere(stored) => self.elsewhere(&stored, inputs),
            };
            return log.map(opened);
        }
        if args.resume {
            return self.open(&self.pick(inputs)?, inputs, "").map(opened);
        }
        if let Some(id) = id {
            if let Some(log) = store.open_id(cwd, id).map_err(say)? {
                return Ok(opened(log));
            }
            warn(format_args!(
                "No project session found with id '{id}'; creating a new session with that id."
            ));
            return store.create_child(cwd, Some(id), parent).map(opened).map_err(say);
        }
        let draft = self.offer_drafts(inputs);
        let newest = args.continue_last.then(|| store.list(cwd).into_iter().next()).flatten();
        // If the newest session is in use, an older one is not opened in its place: the user could confuse them.
        let log = match newest {
            Some(newest) => self.open(&newest.path, inputs, NAME_ANOTHER)?,
            None => store.create_child(cwd, None, parent).map_err(say)?,
        };
        Ok(Opened { log, draft })
    }

    /// Opens a session. If it is in use, the user may fork it or read it only. `advice` is added to the error
    /// if nobody can be asked.
    fn open(&self, path: &Path, inputs: &Inputs, advice: &str) -> Result<Log, String> {
        let cwd = inputs.cwd.as_path();
        let error = match self.store.open(path, cwd) {
            Err(error @ SessionError::Held { .. }) => error,
            opened => return opened.map_err(|error| error.to_string()),
        };
        let answers =
            ["Fork it: go on in a copy".to_owned(), "Read it only: what follows is not stored".to_owned()];
        let chosen = match self.choose(inputs, "Session in use", &error.to_string(), &answers) {
            Asked::Chosen(at) => at,
            Asked::Nothing => return Err("No session selected".into()),
            Asked::Nobody => return Err(format!("{error}{advice}")),
        };
        let opened = match chosen {
            0 => self.store.fork_from(path, cwd, None),
            _ => Log::open_detached(path),
        };
        opened.map_err(|error| error.to_string())
    }

    /// Forks a session of another folder into this one, or opens it there, as the user decides.
    fn elsewhere(&self, stored: &Stored, inputs: &Inputs) -> Result<Log, String> {
        let cwd = inputs.cwd.as_path();
        let (id, home) = (&stored.header.id, &stored.header.cwd);
        let problem = format!("Session found in different project: {home}");
        let answers = ["Fork it into this folder".to_owned(), "Open it in its own folder".to_owned()];
        match self.choose(inputs, "Session of another folder", &problem, &answers) {
            Asked::Chosen(0) => {
                self.store.fork_from(&stored.path, cwd, None).map_err(|error| error.to_string())
            }
            Asked::Chosen(_) => self.open(&stored.path, inputs, ""),
            Asked::Nothing => Err("No session selected".into()),
            Asked::Nobody => Err(format!(
                "{problem}\nFork it into this folder with --fork {id}, or open it there with --cwd '{home}' --session {id}."
            )),
        }
    }

    /// Asks what to do with a session. Only a drawn question shows the title.
    fn choose(&self, inputs: &Inputs, title: &str, text: &str, answers: &[String]) -> Asked {
        if let Some(screen) = self.launch.screen(inputs) {
            return match ask::choose_drawn(screen, title, text, answers) {
                Some(at) => Asked::Chosen(at),
                None => ask::leave("No session selected"),
            };
        }
        if !ask::possible() {
            return Asked::Nobody;
        }
        ask::choose(text, answers).map_or(Asked::Nothing, Asked::Chosen)
    }

    /// Lets the user choose a session of this folder; a drawn list offers sessions of other folders, too.
    fn pick(&self, inputs: &Inputs) -> Result<PathBuf, String> {
        if let Some(screen) = self.launch.screen(inputs) {
            return match ask::given(question::pick(screen, &self.store)) {
                Some(path) => Ok(path),
                None => ask::leave("No session selected"),
            };
        }
        if !ask::possible() {
            return Err(
                "--resume asks which session to open, and there is no terminal to ask on. Name one with --session (pi sessions list shows them), or take the newest with --continue."
                    .into(),
            );
        }
        let mut infos = self.store.infos(&inputs.cwd);
        if infos.is_empty() {
            return Err(
                "There is no session of this folder. Look for others with: pi sessions list --all".into()
            );
        }
        infos.truncate(OFFERED_MAX);
        let rows = row::rows(&infos, false);
        let chosen = ask::choose("Sessions of this folder:", &rows);
        chosen
            .and_then(|at| infos.into_iter().nth(at))
            .map(|info| info.path)
            .ok_or_else(|| "No session selected".into())
    }

    /// Offers prompts whose process was killed before the answer.
    fn offer_drafts(&self, inputs: &Inputs) -> Option<String> {
        let drafts = self.store.drafts(&inputs.cwd);
        if let Some(draft) = drafts.first()
            && !self.has_prompt
            && let Some(screen) = self.launch.screen(inputs)
        {
            return offer_draft(screen, draft);
        }
        for draft in drafts.into_iter().filter(|draft| upkeep::tell_once(&draft.path)).take(3) {
            let (time, path) = (ago(&draft.header.timestamp), draft.path.display());
            report::note(format_args!(
                "A prompt of {time} got no answer. Go on with it: pi --session '{path}' -p \"...\"; or delete the file"
            ));
        }
        None
    }
}

enum Asked {
    Chosen(usize),
    Nothing,
    /// There is no terminal to ask on.
    Nobody,
}

/// Expands a leading `~` in the user's word.
fn resolved(inputs: &Inputs, wanted: &str) -> String {
    if wanted.starts_with('~') {
        let path = inputs.dirs.resolve(wanted, &inputs.cwd);
        return path.to_string_lossy().into_owned();
    }
    wanted.to_owned()
}

pub fn path_of(found: Found) -> PathBuf {
    match found {
        Found::Path(path) => path,
        Found::Here(stored) | Found::Elsewhere(stored) => stored.path,
    }
}

/// Asks about a draft. Returns its prompt if the user wants to edit it. The draft is removed unless the user
/// keeps it.
fn offer_draft(screen: question::Context<'_>, draft: &Stored) -> Option<String> {
    const SHOWN: usize = 400;
    let log = Log::open_to_read(&draft.path).ok()?;
    let prompt = log.fork_points().pop()?.text;
    let mut text = format!("Typed {}:\n\n", ago(&draft.header.timestamp));
    text.extend(prompt.chars().take(SHOWN));
    let answers =
        ["Put it into the editor".to_owned(), "Keep it for later".to_owned(), "Delete it".to_owned()];
    let chosen = ask::choose_drawn(screen, "A prompt got no answer", &text, &answers);
    let is_taken = match chosen {
        Some(0) => true,
        Some(2) => false,
        _ => return None,
    };
    if let Err(error) = upkeep::remove(&draft.path) {
        warn(error);
    }
    is_taken.then_some(prompt)
}
