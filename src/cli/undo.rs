//! `pi undo`: undoes changes of files that tools and commands made in a session.

use super::{ask, open, sandbox};
use crate::base::json::json;
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::overrides::SandboxOverrides;
use crate::runtime::plain_text;
use crate::runtime::undo::{self, Action, Journal, Plan, Step, Wanted};
use crate::session::{Log, SessionError, Store, SyncMode};
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const USAGE: &str = "\
pi undo                  take back what tools and commands did to files since the last prompt
pi undo <n>              the last n changes of a file
pi undo --to <entry>     all changes since this entry of the session (a message's id)
pi undo --list           show what can be taken back, and change nothing
With --dry-run: show what would happen. --force: also files that somebody else has
changed since. --yes: also files outside the session's folder, and with a session file
that is not in pi's folder of sessions; a terminal is asked. --session <path|id>:
another session than the newest of this folder. Also: --json, --cwd <dir>, --session-dir <dir>.";

#[derive(Default)]
struct Options {
    count: Option<usize>,
    to: Option<String>,
    list: bool,
    dry_run: bool,
    force: bool,
    yes: bool,
    json: bool,
    help: bool,
    session: Option<String>,
    cwd: Option<String>,
    session_dir: Option<String>,
}

impl Options {
    fn parse(words: &[OsString]) -> Result<Self, lexopt::Error> {
        let mut options = Self::default();
        let mut parser = Parser::from_args(words.iter().cloned());
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Long("to") => options.to = Some(parser.value()?.string()?),
                Arg::Long("list") => options.list = true,
                Arg::Long("dry-run") | Arg::Short('n') => options.dry_run = true,
                Arg::Long("force") => options.force = true,
                Arg::Long("yes") | Arg::Short('y') => options.yes = true,
                Arg::Long("json") => options.json = true,
                Arg::Long("help") | Arg::Short('h') => options.help = true,
                Arg::Long("session") => options.session = Some(parser.value()?.string()?),
                Arg::Long("cwd") => options.cwd = Some(parser.value()?.string()?),
                Arg::Long("session-dir") => options.session_dir = Some(parser.value()?.string()?),
                Arg::Value(count) if options.count.is_none() && options.to.is_none() => {
                    options.count = Some(count.parse()?);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }
}

/// Runs `pi undo`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let options = match Options::parse(words) {
        Ok(options) if options.help => return super::say::say(&format!("{USAGE}\n")),
        Ok(options) => options,
        Err(error) => {
            report::error(format_args!("{error}\n\n{USAGE}"));
            return crate::cli::say::BAD_USAGE;
        }
    };
    match try_run(&options) {
        Ok(code) => code,
        Err(text) => {
            report::error(text);
            exit::FAILED
        }
    }
}

fn try_run(options: &Options) -> Result<u8, String> {
    let found = find(options)?;
    let session = found.session;
    let journal = Journal::new(&session);
    if options.list {
        let all = journal.steps().map_err(|error| format!("Could not read what can be undone: {error}"))?;
        return Ok(super::say::say(&list(&all, options.json)));
    }
    let wanted = match (&options.to, options.count) {
        (Some(id), _) => Wanted::Since(id.clone()),
        (None, Some(count)) => Wanted::Steps(count),
        (None, None) => Wanted::LastPrompt,
    };
    let chosen = {
        let log = Log::open_to_read(&session);
        let log = match (&wanted, log) {
            (Wanted::Since(_), log) => Some(log.map_err(|error| error.to_string())?),
            (_, log) => log.ok(),
        };
        undo::choose(&journal, log.as_ref(), &wanted)?
    };
    chosen.unseen.iter().for_each(report::note);
    if chosen.plans.is_empty() {
        report::note(format_args!("There is nothing to undo in session {}", session.display()));
        return Ok(exit::DONE);
    }
    if options.dry_run {
        let lines = chosen.plans.iter().map(|plan| (plan, plan.conflict.clone()));
        return Ok(super::say::say(&lines_of(lines, true, options.json)));
    }
    // A run that uses the session would not know of the undo, so a session in use is an error. Other errors
    // do not prevent the undo.
    let cwd = session.parent().unwrap_or(Path::new("/"));
    let written = match Log::open(&session, cwd, SyncMode::Turn) {
        Err(error @ SessionError::Held { .. }) => return Err(error.to_string()),
        opened => opened.ok(),
    };
    let home = match &written {
        Some(log) => log.header().cwd.clone(),
        None => Log::open_to_read(&session).map(|log| log.header().cwd.clone()).unwrap_or_default(),
    };
    // Once more, since nobody else writes the session from now on.
    let log = Log::open_to_read(&session).ok();
    let plans = undo::choose(&journal, written.as_ref().or(log.as_ref()), &wanted)?.plans;
    let doubts = undo::doubts(&session, &home, &found.store, &plans);
    if !options.yes && !doubts.is_empty() {
        agree(&doubts, &plans)?;
    }
    let sandbox =
        sandbox::choose(&SandboxOverrides::default(), &found.settings, &found.dirs, Path::new(&home))?;
    let done = undo::carry_out(&journal, plans, options.force, sandbox.as_deref());
    if let (Some(note), Some(mut log)) = (undo::note(&done), written) {
        match log.append(note) {
            Ok(_) => log.turn_ended(),
            Err(error) => report::warning(format_args!("The model is not told: {error}")),
        }
        log.take_notices().iter().for_each(report::warning);
    }
    let failed = done.iter().any(|file| file.error.is_some());
    let lines = done.iter().map(|file| (&file.plan, file.error.clone()));
    let code = super::say::say(&lines_of(lines, false, options.json));
    Ok(if failed { exit::FAILED } else { code })
}

/// Asks before unexpected files are changed.
fn agree(doubts: &[String], plans: &[Plan]) -> Result<(), String> {
    let doubts: String = doubts.iter().map(|doubt| format!("\n  {doubt}")).collect();
    if !ask::possible() {
        return Err(format!("Nothing was undone:{doubts}\nWith --yes it is undone all the same."));
    }
    let would = lines_of(plans.iter().map(|plan| (plan, plan.conflict.clone())), true, false);
    match ask::confirm(&format!("{}\n{would}Undo this?", doubts.trim_start_matches('\n'))) {
        true => Ok(()),
        false => Err("Nothing was undone".into()),
    }
}

/// The session whose changes are undone, with its store, settings and folders.
struct Target {
    session: PathBuf,
    /// The store that settings and environment choose; flags are ignored.
    store: Store,
    settings: Settings,
    dirs: Dirs,
}

fn find(options: &Options) -> Result<Target, String> {
    if let Some(dir) = &options.cwd {
        std::env::set_current_dir(dir).map_err(|error| format!("Cannot work in {dir}: {error}"))?;
    }
    let cwd =
        std::env::current_dir().map_err(|error| format!("The current folder cannot be used: {error}"))?;
    let dirs = Dirs::find().map_err(|error| error.to_string())?;
    let (settings, _) = Settings::load(dirs.agent());
    let store = open::store(&dirs, &settings, options.session_dir.as_deref(), &cwd);
    let session = if let Some(wanted) = &options.session {
        let path = dirs.resolve(wanted, &cwd);
        let wanted = if wanted.starts_with('~') { path.to_string_lossy() } else { wanted.into() };
        open::path_of(store.find(&cwd, &wanted).map_err(|error| error.to_string())?)
    } else {
        let newest = store.list(&cwd).into_iter().next();
        newest.ok_or("There is no session of this folder. Name one with --session.")?.path
    };
    let store = open::store(&dirs, &settings, None, &cwd);
    Ok(Target { session, store, settings, dirs })
}

/// Returns a line for each step that can be undone, newest first.
fn list(steps: &[Step], json: bool) -> String {
    let mut out = String::new();
    for (step, back) in steps.iter().rev().zip(1..) {
        if json {
            let mut line = json!(step);
            line["back"] = json!(back);
            let _ = writeln!(out, "{line}");
        } else {
            let (time, tool, path) = (&step.time, &step.tool, step.path.display());
            let note = step.not_kept.as_ref().map(|why| format!("  (not kept: {why})"));
            let note = note.unwrap_or_default();
            let line = format!("{back:>4}  {time}  {tool:<5}  {path}{note}");
            let _ = writeln!(out, "{}", plain_text(line.as_bytes()));
        }
    }
    if steps.is_empty() && !json {
        report::note("There is nothing to undo");
    }
    out
}

/// Returns a line for each file: the action, or what prevents it.
fn lines_of<'a>(files: impl Iterator<Item = (&'a Plan, Option<String>)>, would: bool, json: bool) -> String {
    let mut out = String::new();
    for (plan, problem) in files {
        let problem = problem.or_else(|| match &plan.action {
            Action::Impossible(why) => Some(why.clone()),
            _ => None,
        });
        if json {
            let _ = writeln!(out, "{}", plan.json(!would, problem.as_deref()));
            continue;
        }
        let words = match (&problem, &plan.action, would) {
            (Some(_), ..) => "Not undone",
            (None, Action::Restore, true) => "Would restore",
            (None, Action::Remove, true) => "Would remove",
            (None, Action::Restore, false) => "Restored",
            (None, Action::Remove, false) => "Removed",
            (None, ..) => "As it was",
        };
        let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        let line = format!("{words} {}{problem}", plan.path.display());
        let _ = writeln!(out, "{}", plain_text(line.as_bytes()));
    }
    out
}
