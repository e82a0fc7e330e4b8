//! `--mode acp`: opens the sessions that an editor asks for, with the flags of the command line.

use super::start::{self, Launch, NotStarted};
use crate::base::cancel::CancelToken;
use crate::mode::acp::{self, Host, Listed, Refusal};
use crate::mode::signal;
use crate::runtime::config::Inputs;
use crate::runtime::session::Session;
use crate::session::id::is_session_id;
use crate::session::{Log, SessionError, upkeep};
use crate::tools::backend::Over;
use std::path::Path;

/// Serves an editor until stdin ends. Returns the exit code.
pub fn serve(launch: Launch) -> Result<u8, String> {
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    acp::run(Opener { launch }, &cancel, &watch)
}

struct Opener {
    launch: Launch,
}

impl Opener {
    fn inputs(&self, cwd: &Path) -> Result<Inputs, String> {
        start::work_in(&cwd.to_string_lossy())?;
        self.launch.inputs()
    }

    fn log(&self, inputs: &Inputs, stored: Option<&str>) -> Result<Log, Refusal> {
        let cwd = inputs.cwd.as_path();
        let store = self.launch.store(inputs);
        let failed = |error: SessionError| {
            Refusal::Failed(match error {
                SessionError::Held { pid, .. } => {
                    let holder = pid.map_or("another process".into(), |pid| format!("process {pid}"));
                    format!("This session is in use by {holder}. Close it there, then open it again.")
                }
                error => error.to_string(),
            })
        };
        let new = |id: Option<&str>| match self.launch.no_session {
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
        // A draft: the process was killed before the prompt got an answer.
        if let Some(draft) = store.drafts(cwd).into_iter().find(|stored| stored.header.id == id) {
            return store.open(&draft.path, cwd).map_err(failed);
        }
        if store.list_all().iter().any(|stored| stored.header.id == id) {
            return Err(not_found(cwd, id));
        }
        // A session is stored from its first prompt on, but an editor keeps the ids of all sessions.
        new(Some(id))
    }
}

fn not_found(cwd: &Path, id: &str) -> Refusal {
    Refusal::NotFound(format!("No session \"{id}\" of {}", cwd.display()))
}

impl Host for Opener {
    fn check_key(&mut self, cancel: &CancelToken) -> Result<(), String> {
        let inputs = self.inputs(&self.launch.started_in)?;
        self.launch.check_key(inputs, cancel)
    }

    fn open(
        &mut self,
        cwd: &Path,
        stored: Option<&str>,
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal> {
        let inputs = self.inputs(cwd).map_err(Refusal::Failed)?;
        let log = self.log(&inputs, stored)?;
        let session = self.launch.session_of_editor(inputs, log, &files, cancel);
        session.map_err(|error| match error {
            NotStarted::NoModel(reason) => Refusal::NoModel(reason),
            NotStarted::Failed(reason) => Refusal::Failed(reason),
        })
    }

    fn delete(&mut self, id: &str) -> Result<(), Refusal> {
        let inputs = self.inputs(&self.launch.started_in).map_err(Refusal::Failed)?;
        let stored = self.launch.store(&inputs).list_all().into_iter().find(|stored| stored.header.id == id);
        // One that was never prompted is not stored.
        let Some(stored) = stored else {
            return Ok(());
        };
        upkeep::remove(&stored.path).map_err(|error| Refusal::Failed(error.to_string()))
    }

    fn sign_out(&mut self, cancel: &CancelToken) -> Result<(), String> {
        let inputs = self.inputs(&self.launch.started_in)?;
        self.launch.sign_out(inputs, cancel)
    }

    fn list(&mut self, cwd: Option<&Path>) -> Result<Vec<Listed>, Refusal> {
        let inputs = self.inputs(cwd.unwrap_or(&self.launch.started_in)).map_err(Refusal::Failed)?;
        let store = self.launch.store(&inputs);
        let infos = match cwd {
            Some(_) => store.infos(&inputs.cwd),
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
