//! The servers that `mcp.json` of the user and of a trusted project name.
//!
//! The format is the reference's. An entry of the project replaces the user's of the same name; one without `command`,
//! `url` and `type` changes `enabled`, `exposure` and `toolExposure` of the user's. An entry that cannot be used costs
//! that entry.

pub mod edit;
pub mod exposure;
mod field;
#[cfg(test)]
mod tests;

pub use exposure::Exposure;
pub use field::schema;

use crate::auth::oauth::resource::{Registration, Settings};
use crate::base::file;
use crate::base::json;
use crate::runtime::lent::{LentServer, RegisteredServer};
use crate::runtime::trust::Consent;
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file in the agent folder and in a project's `.pi`.
pub const FILE: &str = "mcp.json";

/// Maximum bytes of the file.
const BYTES_MAX: u64 = 4 << 20;

/// Time limit of a request to a server that sets none.
const TIMEOUT: Duration = Duration::from_secs(60);

/// All servers, and what is wrong with the files.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// In the order of the files: the user's, then those that only the project has.
    pub entries: Vec<Entry>,
    /// What the user should know: an entry that cannot be used, or is another's.
    pub errors: Vec<String>,
    /// Servers do not switch the tool codemode on: `"autoEnableCodemode": false`.
    pub leaves_codemode: bool,
}

/// A server of `mcp.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    pub scope: Scope,
    /// The file that defines the server.
    pub source: PathBuf,
    /// The project's file, if it changes a server of the user.
    pub changed_by: Option<PathBuf>,
    /// The entry as it is written, with the project's changes.
    pub fields: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
    /// Lent to one session by the client of pi; in no file.
    Client,
    /// Brought to one session by an extension; in no file.
    Extension,
}

impl Scope {
    /// The reference's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "global",
            Self::Project => "project",
            Self::Client => "client",
            Self::Extension => "extension",
        }
    }

    /// True for servers that a file defines.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::User | Self::Project)
    }
}

/// Reads the servers of the user, and those of the project in `project`.
pub fn load(agent: &Path, project: Option<&Path>) -> Servers {
    let mut servers = Servers::default();
    let user = agent.join(FILE);
    servers.add_file(&user, Scope::User, read(&user));
    if let Some(file) = project.map(project_file) {
        servers.add_file(&file, Scope::Project, read(&file));
    }
    servers
}

/// Reads the servers of the user, and adds those of the project in `cwd` that the user agreed to.
pub fn load_trusted(agent: &Path, cwd: &Path, consent: Option<&Consent>) -> Servers {
    let mut servers = load(agent, None);
    let file = project_file(cwd);
    match consent.map(|consent| &consent.snapshot.servers) {
        Some(Ok(Some(bytes))) => {
            servers.add_file(&file, Scope::Project, parse(&file, bytes).map(Some));
        }
        Some(Err(error)) => servers.errors.push(format!("{}: {error}", file.display())),
        Some(Ok(None)) | None => {}
    }
    servers
}

/// The `mcp.json` of the project in `cwd`.
pub fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(".pi").join(FILE)
}

/// The object in `mcp.json`, none if there is no file.
fn read(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    match file::read(path, BYTES_MAX) {
        Ok(bytes) => parse(path, &bytes).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: cannot be read: {error}", path.display())),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let content = json::parse(bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    match content {
        Value::Object(fields) if fields.get("mcpServers").is_none_or(Value::is_object) => Ok(fields),
        _ => Err(format!("{}: must be an object whose \"mcpServers\" is an object", path.display())),
    }
}

impl Servers {
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Adds servers that a client lends, by their names. Each takes the place of one of the files with its name.
    pub fn lend(&mut self, lent: &[LentServer]) {
        for (name, fields) in lent {
            if let Err(reason) = self.lend_one(name, fields.clone()) {
                self.errors.push(format!("MCP server \"{name}\" of the client: {reason}"));
            }
        }
    }

    fn lend_one(&mut self, given: &str, mut fields: Map<String, Value>) -> Result<(), String> {
        let name = name_of_lent(given);
        check(&name, &mut fields)?;
        let known = self.entries.iter().position(|entry| namespace(&entry.name) == namespace(&name));
        let entry = Entry { name, scope: Scope::Client, source: PathBuf::new(), changed_by: None, fields };
        match known.and_then(|at| self.entries.get_mut(at)) {
            Some(known) if known.scope == Scope::Client => {
                return Err(format!("is named like \"{}\"", known.name));
            }
            Some(known) => {
                // Approval rules for the tools of one would hold for those of the other.
                if known.address() != entry.address() {
                    let file = known.source.display();
                    let text = format!(
                        "MCP server \"{}\" of the client is used in place of that of {file}",
                        entry.name
                    );
                    self.errors.push(text);
                }
                *known = entry;
            }
            None => self.entries.push(entry),
        }
        Ok(())
    }

    /// Adds servers that extensions bring. Those of the files and of the client come first.
    pub fn register(&mut self, registered: &[RegisteredServer]) {
        for server in registered {
            let RegisteredServer { name, extension_path, .. } = server;
            if let Err(reason) = self.register_one(server) {
                self.errors.push(format!("MCP server \"{name}\" of {extension_path}: {reason}"));
            }
        }
    }

    fn register_one(&mut self, server: &RegisteredServer) -> Result<(), String> {
        let RegisteredServer { name, config, extension_path } = server;
        let mut fields = config.clone();
        check(name, &mut fields)?;
        if let Some(known) = self.entries.iter().find(|entry| namespace(&entry.name) == namespace(name)) {
            let place = match known.scope {
                Scope::Client => "the client".to_owned(),
                _ => known.source.display().to_string(),
            };
            return Err(format!("\"{}\" of {place} is used in its place", known.name));
        }
        let (name, source) = (name.clone(), PathBuf::from(extension_path));
        self.entries.push(Entry { name, scope: Scope::Extension, source, changed_by: None, fields });
        Ok(())
    }

    fn add_file(&mut self, path: &Path, scope: Scope, content: Result<Option<Map<String, Value>>, String>) {
        let content = match content {
            Ok(content) => content.unwrap_or_default(),
            Err(error) => return self.errors.push(error),
        };
        match content.get("autoEnableCodemode") {
            Some(Value::Bool(is_on)) => self.leaves_codemode = !is_on,
            None => {}
            Some(_) => {
                self.errors.push(format!("{}: \"autoEnableCodemode\" must be true or false", path.display()));
            }
        }
        for (name, value) in content.get("mcpServers").and_then(Value::as_object).into_iter().flatten() {
            if let Err(reason) = self.add(path, scope, name, value) {
                self.errors.push(format!("{}: server \"{name}\": {reason}", path.display()));
            }
        }
    }

    fn add(&mut self, path: &Path, scope: Scope, name: &str, value: &Value) -> Result<(), String> {
        let mut fields = value.as_object().cloned().ok_or("must be an object")?;
        if scope == Scope::Project && !["command", "url", "type"].iter().any(|key| fields.contains_key(*key))
        {
            return self.change(path, name, fields);
        }
        check(name, &mut fields)?;
        let clashing = |entry: &&Entry| entry.name != name && namespace(&entry.name) == namespace(name);
        if let Some(other) = self.entries.iter().find(clashing) {
            return Err(format!(
                "is named like \"{}\": names that differ in - and _ only are one name",
                other.name
            ));
        }
        if scope == Scope::Project && fields.contains_key("auth") {
            return Err("\"auth\" may stand in the user's file only".to_owned());
        }
        let entry = Entry { name: name.to_owned(), scope, source: path.to_owned(), changed_by: None, fields };
        match self.entries.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        Ok(())
    }

    /// Applies an entry of the project to the user's server of that name.
    fn change(&mut self, path: &Path, name: &str, fields: Map<String, Value>) -> Result<(), String> {
        let known = self.entries.iter_mut().find(|entry| entry.name == name);
        let known = known.ok_or("needs \"command\" or \"url\", or a server of the user to change")?;
        if let Some(other) = fields.keys().find(|key| !CHANGEABLE.contains(&key.as_str())) {
            let allowed = CHANGEABLE.join(", ");
            return Err(format!("a change of the user's server may set {allowed} only, not {other}"));
        }
        let mut changed = known.fields.clone();
        changed.extend(fields);
        check(name, &mut changed)?;
        known.fields = changed;
        known.changed_by = Some(path.to_owned());
        Ok(())
    }
}

/// What a project may change of a server of the user.
const CHANGEABLE: [&str; 3] = ["enabled", "exposure", "toolExposure"];

/// Checks an entry, and replaces old names of exposures.
pub fn check(name: &str, fields: &mut Map<String, Value>) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err("the name may have letters, digits, _ and - only".to_owned());
    }
    field::check(fields)
}

/// The name of a server that a client lends. Clients name servers for people.
pub fn name_of_lent(given: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    given.chars().map(plain).collect()
}

/// The name that is common to a server's tools.
pub fn namespace(server: &str) -> String {
    format!("mcp__{}", server.replace('-', "_"))
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport<'a> {
    /// A program that is talked to over its stdin and stdout.
    Stdio { command: &'a str, args: Vec<&'a str>, env: Vec<(&'a str, &'a str)>, cwd: Option<&'a str> },
    /// An address. `is_old`: the protocol's first HTTP transport, with a stream of events beside requests.
    Http { url: &'a str, headers: Vec<(&'a str, &'a str)>, is_old: bool },
}

impl Entry {
    pub fn transport(&self) -> Transport<'_> {
        match self.text("url") {
            Some(url) if self.text("type").is_none_or(|kind| kind != "stdio") => Transport::Http {
                url,
                headers: self.pairs("headers"),
                is_old: self.text("type") == Some("sse"),
            },
            _ => Transport::Stdio {
                command: self.text("command").unwrap_or_default(),
                args: self.list("args"),
                env: self.pairs("env"),
                cwd: self.text("cwd"),
            },
        }
    }

    /// The command line or the address, as it is written.
    pub fn address(&self) -> String {
        match self.transport() {
            Transport::Http { url, .. } => url.to_owned(),
            Transport::Stdio { command, args, .. } => {
                std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ")
            }
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.fields.get("enabled") != Some(&Value::Bool(false))
    }

    /// Time limit of one request.
    pub fn timeout(&self) -> Duration {
        let seconds = self.fields.get("timeout").and_then(Value::as_f64);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(TIMEOUT)
    }

    /// Megabytes of data that a program may have.
    pub fn memory(&self) -> Option<u64> {
        self.fields.get("memory")?.as_u64()
    }

    pub fn description(&self) -> Option<&str> {
        self.text("description").map(str::trim).filter(|text| !text.is_empty())
    }

    /// The provider whose credential is sent to the server.
    pub fn provider(&self) -> Option<&str> {
        self.fields.get("auth")?.get("provider")?.as_str()
    }

    /// What the user says of a sign-in.
    pub fn oauth(&self) -> Settings {
        let fields = self.fields.get("oauth");
        let text = |name: &str| fields?.get(name)?.as_str().map(str::to_owned);
        let port = fields.and_then(|fields| fields.get("callbackPort")?.as_u64());
        Settings {
            client_id: text("clientId"),
            client_secret: text("clientSecret"),
            callback_port: port.and_then(|port| u16::try_from(port).ok()),
            callback_url: text("callbackUrl"),
            scope: text("scope"),
            client_name: text("clientName"),
            registration: match text("clientRegistration").as_deref() {
                Some("cimd") => Registration::Document,
                Some("dcr") => Registration::Register,
                _ => Registration::Auto,
            },
            metadata_url: text("authServerMetadataUrl"),
        }
    }

    /// True if a header of the entry carries a credential.
    pub fn has_authorization(&self) -> bool {
        self.pairs("headers").iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    fn list(&self, name: &str) -> Vec<&str> {
        let items = self.fields.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn pairs(&self, name: &str) -> Vec<(&str, &str)> {
        let items = self.fields.get(name).and_then(Value::as_object);
        items
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect()
    }
}
