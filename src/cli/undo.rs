//! `pi undo`: undoes file changes that the write and edit tools made in a session.

use super::{ask, open, sandbox};
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::resources::settings::Settings;
use crate::runtime::config::SandboxOverrides;
use crate::runtime::plain_text;
use crate::runtime::undo::{self, Action, Journal, Plan, Step};
use crate::session::{Log, SessionError, Store, SyncMode};
use lexopt::{Arg, Parser, ValueExt};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const USAGE: &str = "\
pi undo [<n>]            take back the last change of a file by a tool, or the last n
pi undo --to <entry>     all changes since this entry of the session (a message's id)
pi undo --list           show what can be taken back, and change nothing
With --dry-run: show what would happen. --force: also where a file was changed
since. --yes: also files outside the session's folder, and with a session file
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
    let all = journal.steps().map_err(|error| format!("Could not read what can be undone: {error}"))?;
    if options.list {
        return Ok(super::say::say(&list(&all, options.json)));
    }
    let steps = select(options, &session, &all)?;
    if steps.is_empty() {
        report::note(format_args!("There is nothing to undo in session {}", session.display()));
        return Ok(exit::DONE);
    }
    if options.dry_run {
        let plans = undo::plan(&journal, &steps);
        let lines = plans.iter().map(|plan| (plan, plan.conflict.clone()));
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
    let plans = undo::plan(&journal, &steps);
    let conflicts: Vec<String> = plans
        .iter()
        .filter_map(|plan| Some(format!("\n  {} {}", plan.path.display(), plan.conflict.as_ref()?)))
        .collect();
    if !conflicts.is_empty() && !options.force {
        return Err(format!(
            "Nothing was undone, since that would lose changes of others:{}\nWith --force they are lost.",
            conflicts.concat()
        ));
    }
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

fn select(options: &Options, session: &Path, all: &[Step]) -> Result<Vec<Step>, String> {
    let Some(id) = &options.to else {
        let first = all.len().saturating_sub(options.count.unwrap_or(1));
        return Ok(all.iter().skip(first).cloned().collect());
    };
    let log = Log::open_to_read(session).map_err(|error| error.to_string())?;
    let entry = log.entry(id);
    let entry = entry.ok_or_else(|| format!("There is no entry '{id}' in {}", session.display()))?;
    Ok(undo::since(all, &entry.timestamp))
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
        let action = match plan.action {
            Action::Restore => "restore",
            Action::Remove => "remove",
            Action::Nothing | Action::Impossible(_) => "none",
        };
        if json {
            let numbers: Vec<u64> = plan.steps.iter().map(|step| step.number).collect();
            let line: Value = json!({"path": plan.path, "action": action, "steps": numbers,
                "done": !would && problem.is_none(), "problem": problem});
            let _ = writeln!(out, "{line}");
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
