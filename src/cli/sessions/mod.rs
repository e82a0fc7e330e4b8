//! `pi sessions`: lists, searches, shows, removes and imports stored sessions.
//!
//! A row for people has an age, a short id for `--session`, and one line of text. With `--json`, each row is
//! an object on a line of its own.

mod remove;
pub mod row;

use super::open;
use crate::base::json::json;
use crate::mode::exit;
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::plain_text;
use crate::session::SessionError;
use crate::session::info::{self, Info};
use crate::session::search::{Query, search};
use crate::session::store::Store;
use crate::session::upkeep::{self, ImportedCopy};
use lexopt::{Arg, Parser, ValueExt};
use row::{json_line, one_line, row, rows, short_ids};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const USAGE: &str = "\
pi sessions [list] [--all] [--limit <n>]      the sessions of this folder, or all
pi sessions search [--all] <words>...         those in which all words occur; re:<pattern>
pi sessions show <path|id>                    one session, and what was said
pi sessions rm <path|id>... [--yes]           remove sessions, with what belongs to them
pi sessions prune [--older-than <days>] [--keep <n>] [--all] [--yes]
                                              remove old sessions, and what belongs to none
pi sessions export [<path|id>] [<file>]       what pi export does, with its options
pi sessions import <file>                     copy a session file to this folder's sessions
With --json: an object on each line. Also: --cwd <dir>, --session-dir <dir>.";

/// Why a command failed.
enum Failure {
    /// Invalid arguments.
    Usage(String),
    Failed(String),
    /// Writing to stdout failed.
    Output(io::Error),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs `pi sessions`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    // `export` parses its own options.
    if let Some((first, words)) = words.split_first()
        && first == "export"
    {
        return super::export::run(words);
    }
    match try_run(words) {
        Ok(code) => code,
        Err(Failure::Usage(text)) => {
            report::error(format_args!("{text}\n\n{USAGE}"));
            crate::cli::say::BAD_USAGE
        }
        Err(Failure::Failed(text)) => {
            report::error(text);
            exit::FAILED
        }
        Err(Failure::Output(error)) => exit::code(Err(error), Ok(())),
    }
}

/// The parsed arguments.
#[derive(Default)]
struct Options {
    command: Option<String>,
    words: Vec<String>,
    all: bool,
    json: bool,
    yes: bool,
    help: bool,
    limit: Option<usize>,
    keep: Option<usize>,
    older_than_days: Option<u64>,
    cwd: Option<String>,
    session_dir: Option<String>,
}

impl Options {
    fn parse(words: &[OsString]) -> Result<Self, lexopt::Error> {
        let mut options = Self::default();
        let mut parser = Parser::from_args(words.iter().cloned());
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("all") | Arg::Short('a') => options.all = true,
                Arg::Long("json") => options.json = true,
                Arg::Long("yes") | Arg::Short('y') => options.yes = true,
                Arg::Long("help") | Arg::Short('h') => options.help = true,
                Arg::Long("limit") => options.limit = Some(parser.value()?.parse()?),
                Arg::Long("keep") => options.keep = Some(parser.value()?.parse()?),
                Arg::Long("older-than") => {
                    let text = parser.value()?.string()?;
                    let days = text.strip_suffix('d').unwrap_or(&text);
                    let days = days.parse().map_err(|_| lexopt::Error::ParsingFailed {
                        value: text.clone(),
                        error: "a number of days is needed".into(),
                    })?;
                    options.older_than_days = Some(days);
                }
                Arg::Long("cwd") => options.cwd = Some(parser.value()?.string()?),
                Arg::Long("session-dir") => options.session_dir = Some(parser.value()?.string()?),
                Arg::Value(word) if options.command.is_none() => {
                    options.command = Some(word.string()?);
                }
                Arg::Value(word) => options.words.push(word.string()?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }
}

fn try_run(words: &[OsString]) -> Result<u8, Failure> {
    let options = Options::parse(words).map_err(|error| Failure::Usage(error.to_string()))?;
    if options.help {
        return Ok(super::say::say(&format!("{USAGE}\n")));
    }
    if let Some(dir) = &options.cwd {
        std::env::set_current_dir(dir).map_err(|error| format!("Cannot work in {dir}: {error}"))?;
    }
    let cwd =
        std::env::current_dir().map_err(|error| format!("The current folder cannot be used: {error}"))?;
    let dirs = Dirs::find().map_err(|error| error.to_string())?;
    let (settings, _) = Settings::load(dirs.agent());
    let store = open::store(&dirs, &settings, options.session_dir.as_deref(), &cwd);
    let sessions = Sessions { dirs, store, cwd, options };
    match (sessions.options.command.as_deref(), sessions.options.words.as_slice()) {
        (None | Some("list" | "ls"), []) => sessions.list(),
        (Some("search"), words) => sessions.search(words),
        (Some("show"), [wanted]) => sessions.show(wanted),
        (Some("rm"), [_, ..]) => sessions.remove(),
        (Some("prune"), []) => sessions.prune(),
        (Some("import"), [file]) => sessions.import(file),
        (Some("list" | "ls" | "prune"), [word, ..]) => {
            Err(Failure::Usage(format!("Unexpected argument: {word}")))
        }
        (Some(command @ ("show" | "rm")), _) => {
            Err(Failure::Usage(format!("pi sessions {command} needs a session")))
        }
        (Some("import"), _) => Err(Failure::Usage("pi sessions import needs a file".into())),
        (Some(other), _) => Err(Failure::Usage(format!("Unknown command: sessions {other}"))),
        (None, _) => Err(Failure::Usage("There is nothing to do".into())),
    }
}

/// The store of sessions, and the options of the command.
struct Sessions {
    dirs: Dirs,
    store: Store,
    cwd: PathBuf,
    options: Options,
}

impl Sessions {
    fn infos(&self) -> Vec<Info> {
        if self.options.all { self.store.infos_all() } else { self.store.infos(&self.cwd) }
    }

    fn list(&self) -> Result<u8, Failure> {
        let mut infos = self.infos();
        infos.truncate(self.options.limit.unwrap_or(usize::MAX));
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.options.json {
            for info in &infos {
                writeln!(out, "{}", json_line(&json!(info)))?;
            }
        } else {
            for row in rows(&infos, self.options.all) {
                writeln!(out, "{row}")?;
            }
        }
        out.flush()?;
        if infos.is_empty()
            && let Some((folder, source)) = self.store.unreadable(&self.cwd)
        {
            return Err(SessionError::Io { doing: "read the session folder", path: folder, source }.into());
        }
        if infos.is_empty() && !self.options.json {
            let whose = if self.options.all { "" } else { " of this folder; --all shows those of others" };
            report::note(format_args!("There are no sessions{whose}"));
        }
        Ok(exit::DONE)
    }

    fn search(&self, words: &[String]) -> Result<u8, Failure> {
        let query = Query::parse(words).map_err(Failure::Usage)?;
        let infos = self.infos();
        let paths = infos.iter().map(|info| info.path.as_path());
        let ids: HashMap<&Path, String> = paths.zip(short_ids(&infos)).collect();
        let mut out = io::stdout().lock();
        let mut result = Ok(());
        let mut left = self.options.limit.unwrap_or(usize::MAX);
        search(&infos, &query, |hit| {
            if result.is_err() || left == 0 {
                return;
            }
            left -= 1;
            let text = if self.options.json {
                let mut row = json!(hit.info);
                row["match"] = json!(hit.place);
                json_line(&row)
            } else {
                let id = ids.get(hit.info.path.as_path());
                let id = id.unwrap_or(&hit.info.id);
                let place = hit.place.map(|place| format!("\n    {}", one_line(&place, 100)));
                let row = row(&hit.info, id, self.options.all);
                format!("{row}{}", place.unwrap_or_default())
            };
            result = writeln!(out, "{text}").and_then(|()| out.flush());
        });
        result?;
        Ok(exit::DONE)
    }

    fn find(&self, wanted: &str) -> Result<PathBuf, Failure> {
        let wanted = match wanted.strip_prefix('~') {
            Some(_) => self.dirs.resolve(wanted, &self.cwd).to_string_lossy().into_owned(),
            None => wanted.to_owned(),
        };
        Ok(open::path_of(self.store.find(&self.cwd, &wanted)?))
    }

    fn show(&self, wanted: &str) -> Result<u8, Failure> {
        let path = self.find(wanted)?;
        let Some(info) = self.store.info(&path) else {
            return Err(Failure::Failed(format!("{} is not a session", path.display())));
        };
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.options.json {
            let mut row = json!(info);
            let text = info::all_messages_text(&path).unwrap_or_default();
            row["allMessagesText"] = json!(text);
            writeln!(out, "{}", json_line(&row))?;
            out.flush()?;
            return Ok(exit::DONE);
        }
        let none = "-".to_owned();
        let facts = [
            ("Session", &info.id),
            ("Name", info.name.as_ref().unwrap_or(&none)),
            ("File", &info.path.to_string_lossy().into_owned()),
            ("Folder", &info.cwd),
            ("Parent", info.parent_session_path.as_ref().unwrap_or(&none)),
            ("Created", info.created.as_ref().unwrap_or(&none)),
            ("Modified", &info.modified),
            ("Messages", &info.message_count.to_string()),
        ];
        for (name, fact) in facts {
            writeln!(out, "{name:<9} {}", one_line(fact, usize::MAX))?;
        }
        let mut result = Ok(());
        let read = info::each_text(&path, |text| {
            let text = plain_text(text.as_bytes());
            result = writeln!(out, "\n{}", text.trim_end());
            result.is_ok()
        });
        result?;
        out.flush()?;
        read.map_err(|error| format!("Could not read {}: {error}", path.display()))?;
        Ok(exit::DONE)
    }

    fn import(&self, file: &str) -> Result<u8, Failure> {
        let source = self.dirs.resolve(file, &self.cwd);
        if !source.exists() {
            return Err(Failure::Failed(format!("File not found: {}", source.display())));
        }
        let imported = upkeep::import(&source, &self.store.folder(&self.cwd))?;
        imported.notices.iter().for_each(report::warning);
        imported.copy.iter().for_each(ImportedCopy::keep);
        let path = imported.path;
        let text = if self.options.json {
            json_line(&json!({ "path": path }))
        } else {
            format!("Session imported to: {}", one_line(&path.to_string_lossy(), usize::MAX))
        };
        Ok(super::say::say(&format!("{text}\n")))
    }
}
