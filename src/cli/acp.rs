//! `--mode acp`: sessions as an editor asks for them, made as the command line would make them.

use super::auth;
use super::flags::Args;
use super::model;
use super::open;
use super::start::{self, World};
use crate::base::cancel::CancelToken;
use crate::mode::acp::{self, Host, Listed, Refusal};
use crate::mode::signal;
use crate::runtime::session::Session;
use crate::session::id::is_session_id;
use crate::session::{Log, SessionError};
use crate::tools::backend::Over;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Answers an editor until stdin ends. Gives the exit code.
pub fn serve(args: &Args) -> Result<u8, String> {
    // To sign in, an editor starts the command of the agent with these words added.
    if let Some((first, words)) = args.messages.split_first()
        && first == "auth"
    {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        return Ok(auth::run(&words));
    }
    if !args.files.is_empty() || !args.messages.is_empty() {
        return Err(
            "Prompts and @file arguments are not supported in ACP mode: the editor sends the prompts".into(),
        );
    }
    if args.resume
        || args.continue_last
        || args.session.is_some()
        || args.session_id.is_some()
        || args.fork.is_some()
    {
        return Err("In ACP mode the editor opens sessions; leave out --continue, --resume, --session, --session-id and --fork".into());
    }
    if let Some(dir) = &args.cwd {
        std::env::set_current_dir(dir).map_err(|error| format!("Cannot work in {dir}: {error}"))?;
    }
    let started_in =
        std::env::current_dir().map_err(|error| format!("The current folder cannot be used: {error}"))?;
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let host = Opener { args: args.clone(), started_in };
    acp::run(host, &cancel, &watch)
}

struct Opener {
    args: Args,
    /// Paths of the command line begin here.
    started_in: PathBuf,
}

impl Opener {
    fn world(&self, cwd: &Path) -> Result<(Args, World), String> {
        let args = Args { cwd: Some(cwd.to_string_lossy().into_owned()), ..self.args.clone() };
        let mut world = World::load_unasked(&args)?;
        world.started_in.clone_from(&self.started_in);
        Ok((args, world))
    }

    fn log(&self, world: &World, stored: Option<&str>) -> Result<Log, Refusal> {
        let cwd = world.cwd.as_path();
        let dir = self.args.session_dir.as_deref();
        let store = open::store(&world.dirs, &world.settings, dir, cwd);
        let failed = |error: SessionError| {
            Refusal::Failed(match error {
                SessionError::Held { pid, .. } => {
                    let holder = pid.map_or("another process".into(), |pid| format!("process {pid}"));
                    format!("This session is in use by {holder}. Close it there, then open it again.")
                }
                error => error.to_string(),
            })
        };
        let new = |id: Option<&str>| match self.args.no_session {
            true => Log::in_memory(cwd, id).map_err(failed),
            false => store.create(cwd, id).map_err(failed),
        };
        let Some(id) = stored else {
            return new(None);
        };
        match store.open_id(cwd, id) {
            Ok(Some(log)) => return Ok(log),
            Ok(None) if is_session_id(id) => {}
            Ok(None) | Err(SessionError::InvalidId { .. }) => return Err(not_found(cwd, id)),
            Err(error) => return Err(failed(error)),
        }
        // A prompt that got no answer, from a process that was killed.
        if let Some(draft) = store.drafts(cwd).into_iter().find(|stored| stored.header.id == id) {
            return store.open(&draft.path, cwd).map_err(failed);
        }
        if store.list_all().iter().any(|stored| stored.header.id == id) {
            return Err(not_found(cwd, id));
        }
        // Sessions are stored from their first prompt on, but an editor keeps the ids of all.
        new(Some(id))
    }
}

fn not_found(cwd: &Path, id: &str) -> Refusal {
    Refusal::NotFound(format!("No session \"{id}\" of {}", cwd.display()))
}

impl Host for Opener {
    fn check_key(&mut self, cancel: &CancelToken) -> Result<(), String> {
        let started_in = self.started_in.clone();
        let (args, world) = self.world(&started_in)?;
        start::check_key(&args, world, cancel)
    }

    fn open(
        &mut self,
        cwd: &Path,
        stored: Option<&str>,
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal> {
        let (args, mut world) = self.world(cwd).map_err(Refusal::Failed)?;
        world.files = Some(files);
        let log = self.log(&world, stored)?;
        start::session_of(&args, world, log, cancel).map_err(|reason| {
            if model::is_missing(&reason) { Refusal::NoModel(reason) } else { Refusal::Failed(reason) }
        })
    }

    fn list(&mut self, cwd: Option<&Path>) -> Result<Vec<Listed>, Refusal> {
        let (_, world) = self.world(cwd.unwrap_or(&self.started_in)).map_err(Refusal::Failed)?;
        let dir = self.args.session_dir.as_deref();
        let store = open::store(&world.dirs, &world.settings, dir, &world.cwd);
        let infos = match cwd {
            Some(_) => store.infos(&world.cwd),
            None => store.infos_all(),
        };
        let listed = infos.into_iter().map(|info| Listed {
            session_id: info.id,
            cwd: info.cwd,
            title: acp::title(info.name.as_ref().unwrap_or(&info.first_message)),
            updated_at: info.modified,
        });
        Ok(listed.collect())
    }
}
