//! The command line: flags, subcommands, and the way from both to a run.

#[cfg_attr(not(feature = "acp"), path = "absent/acp.rs")]
mod acp;
mod argv;
mod ask;
mod auth;
mod config;
mod docs;
mod export;
pub mod flags;
pub mod help;
mod input;
mod migrate;
mod model;
mod open;
mod resource;
mod sandbox;
mod say;
mod sessions;
mod start;
mod stranger;
pub mod table;
mod trust;
mod undo;
mod update;

use crate::base::cancel::CancelToken;
use crate::base::{feature, memory};
use crate::mode::REFERENCE_VERSION;
use crate::mode::interactive;
use crate::mode::print::{self, Form, Prompts};
use crate::mode::report;
use crate::mode::rpc;
use crate::mode::signal;
use crate::models::list::list_models;
use crate::tools::process::{core_file, descriptor, lifeline};
use flags::{Args, Mode, UsageError};
use input::Attach;
use say::{BAD_USAGE, say};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// What a first word can stand for, other than a prompt.
const SUBCOMMANDS: &[(&str, Subcommand)] = &[
    ("auth", auth::run),
    ("config", config::run),
    ("docs", docs::run),
    ("export", export::run),
    ("prompts", resource::prompts),
    ("sandbox", sandbox::run),
    ("sessions", sessions::run),
    ("skills", resource::skills),
    ("update", update::run),
    ("undo", undo::run),
];

/// Takes the words after its name; gives the exit code.
type Subcommand = fn(&[OsString]) -> u8;

/// Runs the program. Errors are printed here and nowhere else.
pub fn main() -> ExitCode {
    if lifeline::watch_if_asked() {
        return ExitCode::SUCCESS;
    }
    memory::give_back_large_blocks();
    core_file::forbid();
    descriptor::keep_inherited();
    lifeline::enable();
    signal::outlive_file_limits();
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    argv::hide_key();
    let subcommand = SUBCOMMANDS.iter().find(|(name, _)| words.first().is_some_and(|word| word == name));
    let code = if let Some((_, run)) = subcommand {
        words.remove(0);
        run(&words)
    } else {
        match flags::parse(words) {
            Ok(args) => run(&args),
            Err(UsageError(text)) => {
                report::error(format_args!("{text}\nTry pi --help."));
                BAD_USAGE
            }
        }
    };
    ExitCode::from(code)
}

fn run(args: &Args) -> u8 {
    if args.version {
        return say(&version(io::stdout().is_terminal()));
    }
    if args.help {
        return say(&help::text());
    }
    args.warnings.iter().for_each(report::warning);
    if args.export.is_some() && args.dash {
        report::error("Unknown option: -\nTo write a session to stdout: pi export SESSION -");
        return BAD_USAGE;
    }
    if let Some(file) = &args.export {
        return export::page(file, args.messages.first().map(String::as_str));
    }
    match start_and_ask(args) {
        Ok(code) => code,
        Err(text) => {
            report::error(format_args!("{text}"));
            print::FAILED
        }
    }
}

fn start_and_ask(args: &Args) -> Result<u8, String> {
    if args.mode == Some(Mode::Acp) && args.list_models.is_none() {
        return acp::serve(args);
    }
    if ask::is_drawn(args) {
        interactive::is_there()?;
    }
    let mut world = start::World::load(args)?;
    if let Some(search) = &args.list_models {
        if world.services.credentials.env().get("PI_LOCAL_URL").is_some() || search.starts_with("local") {
            world.find_local(true);
        }
        let services = &world.services;
        let usable = |provider: &str| services.usable(provider);
        let search = Some(search.as_str()).filter(|search| !search.is_empty());
        return Ok(say(&list_models(&services.registry, &usable, search)));
    }
    if args.mode == Some(Mode::Rpc) {
        return serve(args, world);
    }
    let has_prompt = !args.messages.is_empty() || !args.files.is_empty();
    let piped = input::piped(has_prompt)?;
    let is_print = args.print || args.mode.is_some() || piped.is_some();
    if !is_print && io::stdin().is_terminal() && io::stdout().is_terminal() {
        return talk(args, world);
    }
    if piped.is_none() && args.files.is_empty() && args.messages.iter().all(String::is_empty) {
        return Ok(nothing_to_ask());
    }
    // Questions are asked before signals are watched: there Ctrl-C simply ends the program.
    let log = open::log(args, &mut world)?;
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let from = world.started_in.clone();
    let session = start::session(args, world, log, &cancel)?;
    let mut messages = args.messages.clone().into_iter();
    let model = session.control().model();
    let attach = Attach { from: &from, workspace: session.workspace(), model: &model, cancel: &cancel };
    let prompt = input::assemble(piped, &args.files, messages.next(), &attach)?;
    let is_empty = prompt.text.is_empty() && prompt.images.is_empty();
    let first = (!is_empty).then_some((prompt.text, prompt.images));
    let prompts = Prompts { first, rest: messages.collect() };
    if prompts.first.is_none() && prompts.rest.is_empty() {
        return session.close().map_or_else(|fatal| Err(fatal.to_string()), |()| Ok(nothing_to_ask()));
    }
    let form = match args.mode {
        Some(Mode::Json) => Form::Json { cumulative: args.cumulative_events },
        _ => Form::Text,
    };
    Ok(print::run(session, prompts, form, &cancel, &watch))
}

/// A script whose input is empty by mistake learns of it.
fn nothing_to_ask() -> u8 {
    report::error(
        "There is nothing to ask: no message, no text on stdin, no file with content.\nUsage: pi -p \"message\", or: command | pi -p",
    );
    BAD_USAGE
}

/// Serves the user at the terminal. Gives the exit code.
fn talk(args: &Args, mut world: start::World) -> Result<u8, String> {
    let log = open::log(args, &mut world)?;
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let (from, dirs) = (world.started_in.clone(), world.dirs.clone());
    let draft = world.draft.take();
    let dir = args.session_dir.as_deref();
    let store = open::store(&dirs, &world.settings, dir, &world.cwd);
    let session = start::session(args, world, log, &cancel)?;
    let mut messages = args.messages.clone().into_iter();
    let model = session.control().model();
    let attach = Attach { from: &from, workspace: session.workspace(), model: &model, cancel: &cancel };
    let prompt = input::assemble(None, &args.files, messages.next(), &attach)?;
    let is_empty = prompt.text.is_empty() && prompt.images.is_empty();
    let options = interactive::Options {
        dirs,
        store,
        first: (!is_empty).then_some((prompt.text, prompt.images)),
        prompts: messages.collect(),
        draft,
        verbose: args.verbose,
        fullscreen: args.fullscreen,
    };
    interactive::run(session, options, &cancel, &watch)
}

/// The version of the TypeScript pi that is followed, since programs that drive pi compare it with what they
/// need. Many take all of stdout for the number, so this program's own version is told to people only.
fn version(is_terminal: bool) -> String {
    match is_terminal {
        true => {
            let without: String = feature::left_out().map(|name| format!(", without {name}")).collect();
            format!("{REFERENCE_VERSION} (native pi {}{without})\n", env!("CARGO_PKG_VERSION"))
        }
        false => format!("{REFERENCE_VERSION}\n"),
    }
}

/// Takes commands from stdin until it ends. Gives the exit code.
fn serve(args: &Args, mut world: start::World) -> Result<u8, String> {
    if !args.files.is_empty() {
        return Err("@file arguments are not supported in RPC mode".into());
    }
    let log = open::log(args, &mut world)?;
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let session = start::session(args, world, log, &cancel)?;
    let options = rpc::Options { cumulative: args.cumulative_events, ready: args.ready };
    rpc::run(session, options, &cancel, &watch)
}
