//! `pi sessions`: stored sessions listed, searched, shown, removed, tidied up and taken in.
//!
//! Rows for people have an age, a short id that is enough for `--session`, and one line of text; with
//! `--json` each is an object on a line of its own.

use super::{ask, open};
use crate::base::time;
use crate::mode::print;
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::{age, plain_text};
use crate::session::info::{self, Info};
use crate::session::search::{Query, search};
use crate::session::store::Store;
use crate::session::{SessionError, upkeep};
use lexopt::{Arg, Parser, ValueExt};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// Why a command was not carried out.
enum Failure {
    /// The words make no sense.
    Usage(String),
    Failed(String),
    /// Stdout cannot be written to.
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

/// Carries out `pi sessions …`. Gives the exit code.
pub fn run(words: &[OsString]) -> u8 {
    // It has options of its own.
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
            print::FAILED
        }
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => print::PIPE_CLOSED,
        Err(Failure::Output(error)) => {
            report::error(format_args!("Cannot write to stdout: {error}"));
            print::FAILED
        }
    }
}

/// What the command line asks for.
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
    let desk = Desk { dirs, store, cwd, options };
    match (desk.options.command.as_deref(), desk.options.words.as_slice()) {
        (None | Some("list" | "ls"), []) => desk.list(),
        (Some("search"), words) => desk.search(words),
        (Some("show"), [wanted]) => desk.show(wanted),
        (Some("rm"), [_, ..]) => desk.remove(),
        (Some("prune"), []) => desk.prune(),
        (Some("import"), [file]) => desk.import(file),
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

struct Desk {
    dirs: Dirs,
    store: Store,
    cwd: PathBuf,
    options: Options,
}

impl Desk {
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
        if infos.is_empty() && !self.options.json {
            let whose = if self.options.all { "" } else { " of this folder; --all shows those of others" };
            report::note(format_args!("There are no sessions{whose}"));
        }
        Ok(print::DONE)
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
        Ok(print::DONE)
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
            return Ok(print::DONE);
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
        Ok(print::DONE)
    }

    /// Asks before something is removed; without a terminal `--yes` has to be given.
    fn may_remove(&self, what: &str) -> Result<bool, Failure> {
        if self.options.yes {
            return Ok(true);
        }
        if !ask::possible() {
            return Err(Failure::Failed(format!("{what} would be removed for good. Say --yes to do it.")));
        }
        Ok(ask::confirm(&format!("Remove {what} for good?")))
    }

    fn remove(&self) -> Result<u8, Failure> {
        let words = self.options.words.iter();
        let paths: Vec<PathBuf> = words.map(|word| self.find(word)).collect::<Result<_, _>>()?;
        // A path could name anything.
        if let Some(other) = paths.iter().find(|path| self.store.info(path).is_none()) {
            let other = other.display();
            return Err(Failure::Failed(format!("{other} is not a session")));
        }
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        if !self.may_remove(&names.join(", "))? {
            return Ok(print::FAILED);
        }
        self.remove_all(paths, upkeep::remove)
    }

    fn remove_all(
        &self,
        paths: Vec<PathBuf>,
        remove: impl Fn(&Path) -> Result<(), SessionError>,
    ) -> Result<u8, Failure> {
        let mut code = print::DONE;
        let mut out = io::stdout().lock();
        for path in paths {
            match remove(&path) {
                Ok(()) if self.options.json => {
                    writeln!(out, "{}", json_line(&json!({ "removed": path })))?;
                }
                Ok(()) => writeln!(out, "Removed {}", one_line(&path.to_string_lossy(), usize::MAX))?,
                Err(error) => {
                    report::error(error);
                    code = print::FAILED;
                }
            }
        }
        Ok(code)
    }

    fn prune(&self) -> Result<u8, Failure> {
        let options = &self.options;
        let mut folders = vec![self.store.folder(&self.cwd)];
        if options.all {
            folders = self.store.folders();
        }
        let oldest = options.older_than_days.map(|days| {
            let age = Duration::from_secs(days.saturating_mul(86_400));
            let time = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
            time::iso(millis(time))
        });
        let mut old: Vec<PathBuf> = Vec::new();
        if oldest.is_some() || options.keep.is_some() {
            let infos = self.infos().into_iter().skip(options.keep.unwrap_or(0));
            let is_old = |info: &Info| oldest.as_ref().is_none_or(|oldest| info.modified < *oldest);
            old.extend(infos.filter(is_old).map(|info| info.path));
        }
        let lost = folders.iter().flat_map(|folder| upkeep::leftovers(folder, false));
        let lost: Vec<PathBuf> = lost.collect();
        if old.is_empty() && lost.is_empty() {
            report::note("There is nothing to remove");
            return Ok(print::DONE);
        }
        let what = match (old.len(), lost.len()) {
            (sessions, 0) => counted(sessions, "session"),
            (0, files) => counted(files, "leftover"),
            (sessions, files) => {
                format!("{} and {}", counted(sessions, "session"), counted(files, "leftover"))
            }
        };
        if !self.may_remove(&what)? {
            return Ok(print::FAILED);
        }
        let sessions = self.remove_all(old, upkeep::remove)?;
        let leftovers = self.remove_all(lost, upkeep::remove_leftover)?;
        Ok(sessions.max(leftovers))
    }

    fn import(&self, file: &str) -> Result<u8, Failure> {
        let source = self.dirs.resolve(file, &self.cwd);
        if !source.exists() {
            return Err(Failure::Failed(format!("File not found: {}", source.display())));
        }
        let imported = upkeep::import(&source, &self.store.folder(&self.cwd))?;
        imported.notices.iter().for_each(report::warning);
        let path = imported.path;
        let text = if self.options.json {
            json_line(&json!({ "path": path }))
        } else {
            format!("Session imported to: {}", one_line(&path.to_string_lossy(), usize::MAX))
        };
        Ok(super::say::say(&format!("{text}\n")))
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// JSON for a terminal too: control characters are escaped as JSON escapes them.
fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out
}

/// A line for each session, without its end.
pub fn rows(infos: &[Info], with_folder: bool) -> Vec<String> {
    let ids = short_ids(infos);
    let rows = infos.iter().zip(&ids);
    rows.map(|(info, id)| row(info, id, with_folder)).collect()
}

fn row(info: &Info, id: &str, with_folder: bool) -> String {
    let age = age(&info.modified);
    let said = match &info.name {
        Some(name) => format!("[{name}] {}", info.first_message),
        None => info.first_message.clone(),
    };
    let said = one_line(&said, 80);
    let folder = if with_folder { format!("{}  ", one_line(&info.cwd, usize::MAX)) } else { String::new() };
    let (id, count) = (one_line(id, usize::MAX), info.message_count);
    format!("{id}  {age:>4}  {count:>4}  {folder}{said}")
}

/// The beginning of each id that tells it from the others, of eight characters or more.
fn short_ids(infos: &[Info]) -> Vec<String> {
    const SHORTEST: usize = 8;
    let mut sorted: Vec<&str> = infos.iter().map(|info| info.id.as_str()).collect();
    sorted.sort_unstable();
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let short = |id: &str| {
        let at = sorted.partition_point(|other| *other < id);
        let before = at.checked_sub(1).and_then(|at| sorted.get(at));
        let neighbours = [before, sorted.get(at + 1)];
        let shared = neighbours.iter().flatten().map(|other| common(id, other));
        let needed = shared.max().unwrap_or(0) + 1;
        id.chars().take(needed.max(SHORTEST)).collect()
    };
    infos.iter().map(|info| short(&info.id)).collect()
}

/// On one line, without control characters, at most `width` characters.
fn one_line(text: &str, width: usize) -> String {
    // The first characters are enough to fill a line.
    let end = text.char_indices().nth(width.saturating_mul(4));
    let few = end.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    let plain = plain_text(few.as_bytes());
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str) -> Info {
        Info {
            path: PathBuf::from(id),
            id: id.into(),
            cwd: "/x".into(),
            name: None,
            parent_session_path: None,
            created: None,
            modified: time::iso(0),
            message_count: 2,
            first_message: "one\ntwo\u{1b}[31m".into(),
        }
    }

    #[test]
    fn short_ids_are_enough_to_tell_sessions_apart() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["0123456789"], &["01234567"]),
            (&["abc"], &["abc"]),
            (&["0123456789", "0123456799"], &["012345678", "012345679"]),
            (&["0123456789", "01234567", "x"], &["012345678", "01234567", "x"]),
            (&[], &[]),
        ];
        for (ids, short) in rows {
            let infos: Vec<Info> = ids.iter().map(|id| info(id)).collect();
            assert_eq!(short_ids(&infos), *short);
        }
    }

    #[test]
    fn a_row_is_one_plain_line() {
        assert_eq!(row(&info("a"), "a", true), format!("a  {:>4}     2  /x  one two", age(&time::iso(0))));
        assert_eq!(one_line("é é é", 3), "é é…");
        assert_eq!(one_line("", 3), "");
    }
}
