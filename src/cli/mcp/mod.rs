//! `pi mcp`: configures servers, and shows what they offer, without a session.

mod add;
mod import;
mod list;
mod sign_in;
mod toml;

use super::say::say;
use super::start::Launch;
use crate::base::distance::{self, Compare};
use crate::base::env::Env;
use crate::codemode;
use crate::mcp::access;
use crate::mcp::config::{self, Entry, Servers, project_file};
use crate::mcp::log::Log;
use crate::mcp::server::Context;
use crate::mcp::session::{Mcp, Options};
use crate::mode::exit::FAILED;
use crate::mode::report;
use crate::mode::signal;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::resources::trust::{Project, Store};
use crate::runtime::config::Inputs;
use crate::runtime::lent::{Lend, LentServer};
use crate::runtime::service::Services;
use crate::runtime::session::Session;
use crate::runtime::ui::{Change, Severity};
use crate::runtime::{CancelToken, end_children};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "\
Usage:
  pi mcp add <server> [options] -- <command> [args...]
  pi mcp add <server> [options] --url <url>
  pi mcp remove <server> [-l]
  pi mcp list [--json]
  pi mcp test <server> [--json]
  pi mcp import [<file>|<program>] [-l] [--force]
  pi mcp login <server> [-l] [--scope <scopes>] [--timeout <seconds>]
  pi mcp logout <server> [-l]

Servers are kept in mcp.json of the agent folder, with -l (--local) in .pi/mcp.json
of the project, which is read once the project is trusted.

add writes an entry, or replaces the one of this name. list connects to every server
that is enabled, and shows state, tools, and what their declarations cost in tokens;
test does so for one, with a line for each tool. Both exit with 1 when an entry is
wrong or a server that is enabled cannot be reached.

import takes servers over that other programs have configured: from a file (.json,
.toml), or those of project (.mcp.json), claude, claude-desktop, cursor, vscode, codex.
Without a name it lists what is there. Servers of a name that is taken are left alone,
unless --force is given.

login signs in to a server over HTTP that asks for it (OAuth): it shows an address to
open, and takes the address that the browser ends at where the browser is elsewhere;
the limit is 300 seconds. --scope asks for scopes beside those granted before. logout forgets the sign-in.

Options of add:
  --env KEY=VALUE                Variable for the program (repeatable)
  --cwd <dir>                    Folder of the program
  --header KEY=VALUE             HTTP header (repeatable)
  --bearer-token-env-var NAME    Sends \"Authorization: Bearer ${NAME}\"
  --oauth-client-id <id>         Client that is registered already
  --oauth-client-secret <secret> Its secret: ${NAME} or !command keep it out of the file
  --oauth-callback-port <port>   Port that the browser comes back to
  --oauth-client-name <name>     Name to register under
  --oauth-client-registration auto|cimd|dcr
  --exposure codemode|deferred|direct|hidden
  --description <text>           What the server offers, for the model
  -l, --local                    In .pi/mcp.json of this folder

More: pi docs mcp
";

/// Runs a command. Gives the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let Some((command, rest)) = words.split_first().filter(|(command, _)| *command != "help") else {
        return say(USAGE);
    };
    if own.iter().any(|word| word == "--help" || word == "-h") {
        return say(USAGE);
    }
    let result = match command.as_str() {
        "add" => add::add(rest),
        "remove" => add::remove(rest),
        "list" => list::list(rest),
        "test" => list::test(rest),
        "import" => import::import(rest),
        "login" => sign_in::login(rest),
        "logout" => sign_in::logout(rest),
        _ => Err(format!("Unknown mcp command \"{command}\". See: pi mcp --help")),
    };
    result.unwrap_or_else(|text| {
        report::error(text);
        FAILED
    })
}

/// The time that the first prompt waits for servers with declared tools: in the terminal, and elsewhere.
const PATIENCE: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(10)];

/// True, since this build has servers.
pub const IS_THERE: bool = true;

/// Offers scripts, and starts the servers of a session in the background: those of the configuration, and those that
/// a client lends. Gives what replaces the latter, none if there are to be no servers.
pub fn start(
    session: &Session,
    launch: &Launch,
    dirs: &Dirs,
    lent: Vec<LentServer>,
    cancel: &CancelToken,
) -> Option<Lend> {
    let control = session.control();
    let settings = &control.config().settings;
    if launch.has_part("codemode", settings) {
        codemode::start(control, report::warning);
    }
    if launch.no_mcp || !launch.has_part("mcp", settings) {
        return None;
    }
    let is_terminal = launch.mode == "tui";
    let has_client = matches!(launch.mode, "rpc" | "acp");
    let client = has_client.then(|| control.downgrade());
    let options = Options {
        dirs: dirs.clone(),
        patience: PATIENCE[usize::from(!is_terminal)],
        tell: Box::new(move |is_problem, text| {
            let ui = client.as_ref().and_then(|control| control.upgrade()?.ui());
            match (ui, is_problem) {
                (Some(ui), _) => {
                    let severity = if is_problem { Severity::Warning } else { Severity::Info };
                    ui.show(Change::Notify { message: text, severity });
                }
                (None, true) => report::warning(text),
                (None, false) => report::note(text),
            }
        }),
        may_ask: is_terminal || has_client,
        has_lists: is_terminal,
        lent,
        cancel: cancel.clone(),
    };
    let mcp = Arc::downgrade(&Mcp::start(control, options));
    Some(Arc::new(move |lent| {
        if let Some(mcp) = mcp.upgrade() {
            mcp.lend(lent);
        }
    }))
}

/// The JSON Schema of `mcp.json`.
pub fn schema() -> Option<Value> {
    Some(config::schema())
}

/// What a command is about, and its options.
struct Words {
    words: Vec<String>,
    options: BTreeMap<&'static str, Vec<String>>,
}

/// An option, and whether it has a value.
type Known = (&'static str, bool);

impl Words {
    /// Takes `args` apart. `--` ends the options, and so does the word after `words_max` of them: what follows belongs
    /// to a program.
    fn parse(command: &str, args: &[String], known: &[Known], words_max: usize) -> Result<Self, String> {
        let mut parsed = Self { words: Vec::new(), options: BTreeMap::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                parsed.words.extend(args.by_ref().cloned());
                break;
            }
            if !arg.starts_with('-') || arg == "-" {
                parsed.words.push(arg.clone());
                if parsed.words.len() >= words_max {
                    let rest = args.as_slice();
                    let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
                    parsed.words.extend(rest.iter().cloned());
                    break;
                }
                continue;
            }
            let flag = if arg == "-l" { "--local" } else { arg };
            let (name, joined) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let known = known.iter().find(|(known, _)| *known == name);
            let &(known, has_value) = known
                .ok_or_else(|| format!("Unknown option {name} for \"mcp {command}\". See: pi mcp --help"))?;
            let value = match (has_value, joined) {
                (true, Some(value)) => value,
                (true, None) => args.next().cloned().ok_or_else(|| format!("{name} needs a value"))?,
                (false, None) => String::new(),
                (false, Some(_)) => return Err(format!("{name} takes no value")),
            };
            parsed.options.entry(known).or_default().push(value);
        }
        Ok(parsed)
    }

    fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    /// The last value of an option.
    fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option)?.last().map(String::as_str)
    }

    fn values(&self, option: &str) -> &[String] {
        self.options.get(option).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The folders that servers are configured in.
struct Place {
    dirs: Dirs,
    cwd: PathBuf,
    is_trusted: bool,
}

impl Place {
    fn find() -> Result<Self, String> {
        let dirs = Dirs::find().map_err(|error| error.to_string())?;
        let cwd =
            std::env::current_dir().map_err(|error| format!("Cannot find the current folder: {error}"))?;
        let project = Project::new(&cwd, dirs.home());
        let store = Store::new(dirs.agent());
        // Nobody is asked here: what the project runs must be what the user has trusted.
        let is_trusted = store.find(&project)?.is_some_and(|entry| entry.is_trusted)
            && store.changes(&project, &store.snapshot(&project)?)?.is_empty();
        Ok(Self { dirs, cwd, is_trusted })
    }

    fn file(&self, is_local: bool) -> PathBuf {
        match is_local {
            true => project_file(&self.cwd),
            false => self.dirs.agent().join(config::FILE),
        }
    }

    fn servers(&self) -> Servers {
        config::load(self.dirs.agent(), self.is_trusted.then_some(&self.cwd))
    }

    /// Why the file of the project is not read, if there is one.
    fn untrusted(&self) -> Option<String> {
        let file = project_file(&self.cwd);
        (!self.is_trusted && file.exists()).then(|| {
            format!(
                "{} is not read, since the project is not trusted: start pi there to look at it",
                file.display()
            )
        })
    }

    /// The server with this name.
    fn entry(&self, name: &str) -> Result<Entry, String> {
        let servers = self.servers();
        if let Some(entry) = servers.find(name) {
            return Ok(entry.clone());
        }
        let wanted = distance::letters(name);
        let names: Vec<&str> = servers.entries.iter().map(|entry| entry.name.as_str()).collect();
        let near = names
            .iter()
            .find(|other| distance::between(&wanted, &distance::letters(other), Compare::Whole) <= 2);
        let mut text = format!("There is no MCP server \"{name}\".");
        if let Some(near) = near {
            text.push_str(&format!(" Did you mean \"{near}\"?"));
        }
        text.push_str(&format!(
            " Configured: {}",
            if names.is_empty() { "none".into() } else { names.join(", ") }
        ));
        if let Some(note) = self.untrusted() {
            text.push_str(&format!("\n{note}"));
        }
        Err(text)
    }

    /// Connects to servers: `work` gets what they share, and the credentials. Nothing that was started is left behind.
    fn connect(
        &self,
        work: impl FnOnce(Arc<Context>, &Services) -> Result<u8, String>,
    ) -> Result<u8, String> {
        let (settings, _) = Settings::load(self.dirs.agent());
        let inputs =
            Inputs::load(self.dirs.clone(), self.cwd.clone(), self.cwd.clone(), settings, &mut |_| {});
        let vault = inputs.services.vault().clone();
        let cancel = CancelToken::new();
        let watch =
            signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
        let context = Arc::new(Context {
            cwd: self.cwd.clone(),
            home: self.dirs.home().map(ToOwned::to_owned),
            env: Env::process(),
            log: Arc::new(Log::new(self.dirs.agent(), vault.clone())),
            vault,
            cancel,
            authority: Box::new(access::authorities(inputs.services.clone(), self.dirs.agent())),
            widen: None,
            questions: None,
        });
        let result = work(context, &inputs.services);
        end_children();
        watch.exit_code().map_or(result, Ok)
    }
}
