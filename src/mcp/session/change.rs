//! What the user changes in a session: sign-ins, connections, and entries of servers.

use super::Mcp;
use crate::auth::oauth::resource::{Resource, asked_scope};
use crate::base::cancel::CancelToken;
use crate::llm::http::one_line;
use crate::mcp::access;
use crate::mcp::ask::SignIn;
use crate::mcp::config::{self, Entry, Exposure, Scope, edit};
use crate::mcp::fault::Fault;
use crate::mcp::server::{END, Server, State};
use crate::runtime::ui::{Dialog, YES};
use std::path::PathBuf;
use std::time::Instant;

/// Characters of scopes that the user is shown.
const SCOPE_CHARS: usize = 500;

impl Mcp {
    /// Connects anew.
    pub fn reconnect(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        self.find(name)?.reconnect(cancel)
    }

    /// Signs in to a server, and connects to it.
    pub fn login(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let resource = self.resource(&server)?;
        let challenge = match (server.wants(), server.state()) {
            (Some(challenge), _) => Some(challenge),
            (None, State::NeedsSignIn(challenge)) => challenge,
            _ => match server.client(cancel) {
                Ok(_) => {
                    self.show(format!("Already signed in to the MCP server \"{name}\""));
                    return Ok(());
                }
                Err(Fault::SignIn(challenge)) => challenge,
                Err(fault) => return Err(server.error(fault)),
            },
        };
        let ui = self.control.ui().ok_or("Nobody can be asked here: use pi mcp login in a shell")?;
        let asker = SignIn { server: name.to_owned(), ui };
        let signed_in = resource.sign_in(challenge.as_deref(), None, &asker, cancel);
        signed_in.map_err(|error| server.error(format_args!("cannot sign in: {}", error.message)))?;
        server.wants_nothing();
        server.reconnect(cancel)
    }

    /// Asks the user whether to sign in for what `challenge` asks, and does so. False if he does not want that, or it
    /// fails, which he is told.
    pub(super) fn widen(&self, entry: &Entry, challenge: &str, cancel: &CancelToken) -> bool {
        let config = self.control.config();
        let resource = access::sign_in(entry, &config.services, self.dirs.agent());
        let ui = self.control.ui().filter(|ui| ui.is_attended());
        let (Some(resource), Some(ui)) = (resource, ui) else { return false };
        let title = format!("MCP server \"{}\": it wants more scopes for a request", entry.name);
        let scope = asked_scope(challenge).unwrap_or_else(|| "It does not say which.".into());
        let message =
            format!("{}\n\nSign in for that, and send the request again?", one_line(&scope, SCOPE_CHARS));
        if ui.ask(&Dialog::Confirm { title: &title, message: &message }, None, cancel).as_deref() != Some(YES)
        {
            return false;
        }
        let asker = SignIn { server: entry.name.clone(), ui };
        let signed_in = resource.sign_in(Some(challenge), None, &asker, cancel);
        signed_in
            .map_err(|error| {
                (self.tell)(
                    true,
                    format!("MCP server \"{}\": cannot sign in: {}", entry.name, error.message),
                );
            })
            .is_ok()
    }

    /// Forgets the sign-in to a server, and closes the connection.
    pub fn logout(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let removed = self.resource(&server)?.sign_out(cancel).map_err(|error| error.message)?;
        if !removed {
            self.show(format!("There is no sign-in to the MCP server \"{name}\""));
        }
        server.wants_nothing();
        server.close(Instant::now() + END);
        Ok(())
    }

    fn resource(&self, server: &Server) -> Result<Resource, String> {
        let config = self.control.config();
        access::sign_in(&server.entry(), &config.services, self.dirs.agent())
            .ok_or_else(|| server.error("it has no sign-in of its own"))
    }

    /// Changes a server, here and in the file that defines it; in the project's own file with `in_project`.
    pub fn patch(&self, name: &str, patch: edit::Patch, in_project: bool) -> Result<(), String> {
        let server = self.find(name)?;
        let mut entry = Entry::clone(&server.entry());
        let config = self.control.config();
        let file: PathBuf = match (&entry.changed_by, in_project) {
            (Some(file), _) => file.clone(),
            (None, true) => config::project_file(&config.workspace.cwd),
            (None, false) => entry.source.clone(),
        };
        if !entry.scope.is_stored() && in_project {
            return Err(server.error("it is of this session only: leave out -l"));
        }
        if entry.scope.is_stored() {
            edit::patch(&file, name, patch, in_project || entry.changed_by.is_some())?;
        }
        if in_project && entry.scope == Scope::User {
            entry.changed_by = Some(file);
        }
        if let Some(enabled) = patch.enabled {
            match enabled && entry.changed_by.is_none() {
                true => drop(entry.fields.shift_remove("enabled")),
                false => drop(entry.fields.insert("enabled".into(), enabled.into())),
            }
        }
        if let Some(exposure) = patch.exposure {
            match exposure == Exposure::default() && entry.changed_by.is_none() {
                true => drop(entry.fields.shift_remove("exposure")),
                false => drop(entry.fields.insert("exposure".into(), exposure.name().into())),
            }
        }
        let starts = patch.enabled == Some(true);
        if entry.scope == Scope::Client {
            let mut inside = self.inside();
            let mut lent = inside.lent.iter_mut();
            if let Some((_, fields)) = lent.find(|(given, _)| config::name_of_lent(given) == entry.name) {
                fields.clone_from(&entry.fields);
            }
        }
        if entry.scope == Scope::Extension {
            let mut inside = self.inside();
            if let Some(server) = inside.registered.iter_mut().find(|server| server.name == entry.name) {
                server.config.clone_from(&entry.fields);
            }
        }
        server.set_entry(entry);
        if starts {
            server.start();
        }
        self.describe();
        self.update();
        Ok(())
    }
}
