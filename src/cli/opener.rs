//! Opens the sessions that a client asks for, with the flags of the command line.

use super::export::redactor;
use super::mcp;
use super::model;
use super::start::{self, Launch, NotStarted};
use crate::base::cancel::CancelToken;
use crate::mode::host::{Host, Listed, Refusal};
use crate::mode::signal::{self, Watch};
use crate::resources::dirs::Dirs;
use crate::runtime::config::Inputs;
use crate::runtime::lent::{Lend, LentServer};
use crate::runtime::session::Session;
use crate::session::export::{self, Format, Options};
use crate::session::id::is_session_id;
use crate::session::store::Stored;
use crate::session::{Log, SessionError, upkeep};
use crate::tools;
use crate::tools::backend::Over;
use std::path::{Path, PathBuf};

pub struct Opener {
    launch: Launch,
}

/// Runs a mode that opens sessions for a client. Returns the exit code.
pub fn serve(
    launch: Launch,
    run: impl FnOnce(Opener, &CancelToken, &Watch) -> Result<u8, String>,
) -> Result<u8, String> {
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    run(Opener { launch }, &cancel, &watch)
}

impl Opener {
    fn inputs(&self, cwd: &Path) -> Result<Inputs, String> {
        start::work_in(&cwd.to_string_lossy())?;
        self.launch.inputs()
    }

    fn find(&self, id: &str) -> Result<Option<Stored>, Refusal> {
        let inputs = self.inputs(&self.launch.started_in).map_err(Refusal::Failed)?;
        Ok(self.launch.store(&inputs).list_all().into_iter().find(|stored| stored.header.id == id))
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
        folders: &[PathBuf],
        files: Over,
        cancel: &CancelToken,
    ) -> Result<Session, Refusal> {
        let inputs = self.inputs(cwd).map_err(Refusal::Failed)?;
        let log = self.log(&inputs, stored)?;
        let session = self.launch.session_of_editor(inputs, log, folders, &files, cancel);
        session.map_err(|error| match error {
            NotStarted::NoModel(reason) => Refusal::NoModel(reason),
            NotStarted::Failed(reason) => Refusal::Failed(reason),
        })
    }

    fn takes_servers(&self) -> bool {
        mcp::IS_THERE && !self.launch.no_mcp && self.launch.may_have_part("mcp")
    }

    fn start_servers(
        &mut self,
        session: &Session,
        lent: Vec<LentServer>,
        cancel: &CancelToken,
    ) -> Result<Option<Lend>, Refusal> {
        let dirs = Dirs::find().map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(mcp::start(session, &self.launch, &dirs, lent, cancel))
    }

    fn open_tools(&mut self, cancel: &CancelToken) -> Result<Session, Refusal> {
        let cwd = self.launch.started_in.clone();
        let open = |opener: &mut Self| opener.open(&cwd, None, &[], Box::new(|files| files), cancel);
        match open(self) {
            Err(Refusal::NoModel(_)) => {}
            opened => return opened,
        }
        let chosen = self.launch.over.model.model.replace(model::NO_MODEL.into());
        let opened = open(self);
        self.launch.over.model.model = chosen;
        opened
    }

    fn read(&mut self, id: &str) -> Result<String, Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::Failed(error.to_string());
        let log = export::open(&self.place(id)?).map_err(|error| failed(&error))?;
        let inputs = self.inputs(&self.launch.started_in).map_err(Refusal::Failed)?;
        let redactor = redactor(inputs.dirs.agent()).map_err(Refusal::Failed)?;
        let options = Options { format: Format::Markdown, redactor: Some(redactor), ..Options::default() };
        let mut text = Vec::new();
        export::write(&log, &options, &tools::describe, &mut text).map_err(|error| failed(&error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn place(&mut self, id: &str) -> Result<PathBuf, Refusal> {
        let stored = self.find(id)?.ok_or_else(|| Refusal::NotFound(format!("No session \"{id}\"")))?;
        Ok(stored.path)
    }

    fn delete(&mut self, id: &str) -> Result<(), Refusal> {
        // One that was never prompted is not stored.
        let Some(stored) = self.find(id)? else {
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
            title: info.name.unwrap_or(info.first_message),
            updated_at: info.modified,
        });
        Ok(listed.collect())
    }
}
