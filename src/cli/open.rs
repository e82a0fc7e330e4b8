//! Which session a run goes on with, or begins.
//!
//! Where a decision is the user's (a session of another folder, one that is in use, a folder that is
//! gone) he is asked on a terminal; elsewhere it is an error that says how to decide by a flag.

use super::ask;
use super::flags::Args;
use super::sessions;
use super::start::World;
use crate::mode::report::{self, warning as warn};
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::succession::Folder;
use crate::session::store::{Found, Store, Stored};
use crate::session::{Log, SessionError, SyncMode};
use std::path::{Path, PathBuf};

/// Sessions that `--resume` offers at most.
const OFFERED_MAX: usize = 50;

/// The store that flags, environment and settings lead to.
pub fn store(dirs: &Dirs, settings: &Settings, session_dir: Option<&str>, cwd: &Path) -> Store {
    let sync = SyncMode::parse(settings.session_sync()).unwrap_or_default();
    let named = dirs.sessions(session_dir, settings.session_dir(), cwd);
    Store::new(dirs.agent(), named, sync)
}

/// Opens the session that the command line asks for, and goes to its folder.
pub fn log(args: &Args, world: &mut World) -> Result<Log, String> {
    let log = find(args, world)?;
    if args.cwd.is_none() {
        go_home(args, world, &log)?;
    }
    Ok(log)
}

/// A session is at home in its own folder, wherever it was opened from.
fn go_home(args: &Args, world: &mut World, log: &Log) -> Result<(), String> {
    match enter_home(args, world, log)? {
        true => Ok(()),
        false => stay_here(log, world),
    }
}

/// The same for one that is opened later: whether it may stay where the program is was asked before.
pub fn follow(args: &Args, world: &mut World, log: &Log, folder: Folder) -> Result<(), String> {
    if folder == Folder::Here || enter_home(args, world, log)? {
        return Ok(());
    }
    Err(gone(log))
}

/// Goes to the session's folder; false when it is gone.
fn enter_home(args: &Args, world: &mut World, log: &Log) -> Result<bool, String> {
    let home = PathBuf::from(&log.header().cwd);
    if home == world.cwd || log.header().cwd.is_empty() {
        return Ok(true);
    }
    if std::env::set_current_dir(&home).is_err() {
        return Ok(false);
    }
    world.cwd = home;
    world.enter(args)?;
    Ok(true)
}

fn gone(log: &Log) -> String {
    let home = &log.header().cwd;
    format!("Stored session working directory does not exist: {home}")
}

/// The folder of a session is gone: asks whether this one will do.
fn stay_here(log: &Log, world: &World) -> Result<(), String> {
    let here = world.cwd.display();
    let problem = gone(log);
    if ask::possible() {
        let options = [format!("Go on in the current folder, {here}")];
        return match ask::choose(&problem, &options) {
            Some(_) => Ok(()),
            None => Err("No folder to work in".into()),
        };
    }
    let file = log.path().unwrap_or(Path::new("")).display();
    Err(format!(
        "{problem}\nSession file: {file}\nCurrent working directory: {here}\nName a folder with --cwd to go on there."
    ))
}

fn find(args: &Args, world: &World) -> Result<Log, String> {
    let say = |error: SessionError| error.to_string();
    let cwd = world.cwd.as_path();
    let store = store(
        &world.dirs,
        &world.settings,
        args.session_dir.as_deref(),
        cwd,
    );
    let id = args.session_id.as_deref();
    if args.no_session {
        return Log::in_memory(cwd, id).map_err(say);
    }
    if let Some(source) = &args.fork {
        let source = path_of(store.find(cwd, &resolved(world, source)).map_err(say)?);
        return store.fork_from(&source, cwd, id).map_err(say);
    }
    if let Some(wanted) = &args.session {
        return match store.find(cwd, &resolved(world, wanted)).map_err(say)? {
            Found::Path(path) => open(&store, &path, cwd),
            Found::Here(stored) => open(&store, &stored.path, cwd),
            Found::Elsewhere(stored) => elsewhere(&store, &stored, cwd),
        };
    }
    if args.resume {
        return open(&store, &pick(&store, cwd)?, cwd);
    }
    if args.continue_last {
        return match store.open_latest(cwd).map_err(say)? {
            Some(log) => Ok(log),
            None => store.create(cwd, None).map_err(say),
        };
    }
    if let Some(id) = id {
        if let Some(log) = store.open_id(cwd, id).map_err(say)? {
            return Ok(log);
        }
        warn(format_args!(
            "No project session found with id '{id}'; creating a new session with that id."
        ));
    } else {
        offer_drafts(&store, cwd);
    }
    store.create(cwd, id).map_err(say)
}

/// What the user wrote, with a `~` at its start resolved.
fn resolved(world: &World, wanted: &str) -> String {
    if wanted.starts_with('~') {
        let path = world.dirs.resolve(wanted, &world.cwd);
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

/// Opens a session; one that is in use can be forked.
fn open(store: &Store, path: &Path, cwd: &Path) -> Result<Log, String> {
    match store.open(path, cwd) {
        Err(error @ SessionError::Held { .. }) if ask::possible() => {
            let options = [
                "Fork it: go on in a copy".to_owned(),
                "Read it only: what follows is not stored".to_owned(),
            ];
            let opened = match ask::choose(&error.to_string(), &options) {
                Some(0) => store.fork_from(path, cwd, None),
                Some(_) => Log::open_detached(path),
                None => return Err("No session selected".into()),
            };
            opened.map_err(|error| error.to_string())
        }
        opened => opened.map_err(|error| error.to_string()),
    }
}

/// A session of another folder is forked into this one, or opened there, but not unasked.
fn elsewhere(store: &Store, stored: &Stored, cwd: &Path) -> Result<Log, String> {
    let (id, home) = (&stored.header.id, &stored.header.cwd);
    let problem = format!("Session found in different project: {home}");
    if !ask::possible() {
        return Err(format!(
            "{problem}\nFork it into this folder with --fork {id}, or open it there with --cwd '{home}' --session {id}."
        ));
    }
    let options = [
        "Fork it into this folder".to_owned(),
        "Open it in its own folder".to_owned(),
    ];
    match ask::choose(&problem, &options) {
        Some(0) => store
            .fork_from(&stored.path, cwd, None)
            .map_err(|error| error.to_string()),
        Some(_) => open(store, &stored.path, cwd),
        None => Err("No session selected".into()),
    }
}

/// Lets the user pick one of this folder's sessions.
fn pick(store: &Store, cwd: &Path) -> Result<PathBuf, String> {
    if !ask::possible() {
        return Err(
            "--resume asks which session to open, and there is no terminal to ask on. Name one with --session (pi sessions list shows them), or take the newest with --continue."
                .into(),
        );
    }
    let mut infos = store.infos(cwd);
    if infos.is_empty() {
        return Err(
            "There is no session of this folder. Look for others with: pi sessions list --all"
                .into(),
        );
    }
    infos.truncate(OFFERED_MAX);
    let rows = sessions::rows(&infos, false);
    let chosen = ask::choose("Sessions of this folder:", &rows);
    chosen
        .and_then(|at| infos.into_iter().nth(at))
        .map(|info| info.path)
        .ok_or_else(|| "No session selected".into())
}

/// Names prompts that never got an answer because their process was killed.
fn offer_drafts(store: &Store, cwd: &Path) {
    for draft in store.drafts(cwd).into_iter().take(3) {
        let (time, path) = (&draft.header.timestamp, draft.path.display());
        report::note(format_args!(
            "A prompt from {time} got no answer. Go on with it: pi --session '{path}' -p \"...\"; or delete the file"
        ));
    }
}
