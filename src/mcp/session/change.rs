//! What the user changes in a session: sign-ins, connections, and entries of servers.

use super::Mcp;
use crate::auth::oauth::resource::Resource;
use crate::base::cancel::CancelToken;
use crate::mcp::access;
use crate::mcp::ask::SignIn;
use crate::mcp::config::{self, Entry, Exposure, Scope, edit};
use crate::mcp::fault::Fault;
use crate::mcp::server::{END, Server, State};
use std::path::PathBuf;
use std::time::Instant;

impl Mcp {
    /// Connects anew.
    pub fn reconnect(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        self.find(name)?.reconnect(cancel)
    }

    /// Signs in to a server, and connects to it.
    pub fn login(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let resource = self.resource(&server)?;
        let challenge = match server.state() {
            State::NeedsSignIn(challenge) => challenge,
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
        let signed_in = resource.sign_in(challenge.as_deref(), &asker, cancel);
        signed_in.map_err(|error| server.error(format_args!("cannot sign in: {}", error.message)))?;
        server.reconnect(cancel)
    }

    /// Forgets the sign-in to a server, and closes the connection.
    pub fn logout(&self, name: &str, cancel: &CancelToken) -> Result<(), String> {
        let server = self.find(name)?;
        let removed = self.resource(&server)?.sign_out(cancel).map_err(|error| error.message)?;
        if !removed {
            self.show(format!("There is no sign-in to the MCP server \"{name}\""));
        }
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
        if entry.scope == Scope::Client && in_project {
            return Err(server.error("the client lends it to this session only: leave out -l"));
        }
        if entry.scope != Scope::Client {
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
        server.set_entry(entry);
        if starts {
            server.start();
        }
        self.describe();
        self.update();
        Ok(())
    }
}
