//! The command line: flags, subcommands, and starting a run.

#[cfg_attr(not(feature = "acp"), path = "absent/acp.rs")]
mod acp;
mod agents;
mod argv;
mod ask;
mod auth;
mod bug;
mod command;
mod completion;
mod config;
mod docs;
mod doctor;
mod export;
mod extension;
mod extension_schema;
mod extensions;
pub mod flags;
pub mod help;
mod input;
mod jobs;
mod man;
#[cfg_attr(not(feature = "mcp"), path = "absent/mcp.rs")]
mod mcp;
mod migrate;
mod model;
mod open;
#[cfg(any(feature = "acp", feature = "mcp"))]
mod opener;
mod package;
mod resource;
mod sandbox;
mod say;
mod schema;
#[cfg_attr(not(feature = "mcp"), path = "absent/serve.rs")]
mod serve;
mod sessions;
mod start;
mod stranger;
mod subcommand;
mod switch;
pub mod table;
mod trust;
mod undo;
mod update;
mod version;

use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::base::memory;
use crate::mode::exit;
use crate::mode::interactive;
use crate::mode::print::{self, Form, Prompts};
use crate::mode::report;
use crate::mode::rpc;
use crate::mode::signal::{self, Watch};
use crate::models::list::list_models;
use crate::models::local;
use crate::resources::dirs::Dirs;
use crate::runtime::config::Inputs;
use crate::runtime::session::Session;
use crate::session::Store;
use crate::tools::process::{core_file, descriptor, lifeline};
use command::{Command, Refused};
use flags::{Args, Mode};
use input::Attach;
use open::Opened;
use say::{BAD_USAGE, say};
use start::Launch;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Runs the program. All errors are printed here.
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
    argv::hide_key(&words);
    let code = if let Some(row) = words.first().and_then(|word| subcommand::find(word)) {
        words.remove(0);
        (row.run)(&words)
    } else {
        match flags::parse_open(words) {
            Ok(args) => run(args),
            Err(error) => {
                report::error(format_args!("{error}\nTry pi --help."));
                BAD_USAGE
            }
        }
    };
    file::remove_passing();
    ExitCode::from(code)
}

fn run(args: Args) -> u8 {
    let command = Command::of(&args);
    if !matches!(command, Ok(Command::Version { .. } | Command::Help)) {
        args.warnings.iter().for_each(report::warning);
    }
    let done = match command {
        Err(Refused { text, code }) => {
            report::error(text);
            return code;
        }
        Ok(Command::Version { json: true }) => return say(&format!("{}\n", version::object())),
        Ok(Command::Version { json: false }) => return say(&version::text(io::stdout().is_terminal())),
        Ok(Command::Help) => return say(&help::text()),
        Ok(Command::Export { file, out }) => return export::page(&file, out.as_deref()),
        Ok(Command::Auth(words)) => return auth::run(&words),
        Ok(Command::ListModels(search)) => list(args, &search),
        Ok(Command::Acp) => Launch::unasked(&args).and_then(|launch| acp::serve(launch.hearing_extensions())),
        Ok(Command::Mcp) => {
            Launch::unasked(&args).and_then(|launch| serve::serve(launch, args.run.listen.as_deref()))
        }
        Ok(Command::Rpc) => serve(args),
        Ok(Command::Jobs) => keep_jobs(&args),
        Ok(Command::Prompt) => prompt(args),
    };
    done.unwrap_or_else(|text| {
        report::error(text);
        exit::FAILED
    })
}

fn list(mut args: Args, search: &str) -> Result<u8, String> {
    let mut launch = Launch::new(&args)?.hearing_extensions();
    let mut inputs = launch.inputs()?;
    if let Err(Refused { text, code }) = launch.start_extensions(&mut inputs, &mut args) {
        report::error(text);
        return Ok(code);
    }
    launch.lend_all_models(&mut inputs);
    let services = &mut inputs.services;
    if local::is_configured(&services.credentials.local_env()) || search.starts_with("local") {
        model::find_local(services, true);
    }
    let usable = |provider: &str| services.usable(provider);
    Ok(say(&list_models(&services.registry, &usable, Some(search).filter(|search| !search.is_empty()))))
}

/// Runs print, JSON or interactive mode. Returns the exit code.
fn prompt(mut args: Args) -> Result<u8, String> {
    if ask::is_drawn(&args.run) {
        interactive::is_there()?;
    }
    let mut launch = Launch::new(&args)?.hearing_extensions();
    let mut inputs = launch.inputs()?;
    if let Err(Refused { text, code }) = launch.start_extensions(&mut inputs, &mut args) {
        report::error(text);
        return Ok(code);
    }
    let has_prompt = !args.messages.is_empty() || !args.files.is_empty();
    let piped = input::piped(has_prompt)?;
    let is_print = args.run.print || args.run.mode.is_some() || piped.is_some();
    let is_talk = !is_print && io::stdin().is_terminal() && io::stdout().is_terminal();
    if !is_talk && piped.is_none() && args.files.is_empty() && args.messages.iter().all(String::is_empty) {
        return Ok(nothing_to_ask());
    }
    let from = launch.started_in.clone();
    let Begun { session, store, dirs, draft, cancel, watch } = begin(launch, inputs, &args)?;
    let mut messages = args.messages.into_iter();
    let model = session.control().models().current();
    let attach = Attach { from: &from, workspace: session.workspace(), model: &model, cancel: &cancel };
    let prompt = input::assemble(piped, &args.files, messages.next(), &attach)?;
    let is_empty = prompt.text.is_empty() && prompt.images.is_empty();
    let first = (!is_empty).then_some((prompt.text, prompt.images));
    let rest: Vec<String> = messages.collect();
    if is_talk {
        let (verbose, fullscreen) = (args.run.verbose, args.run.fullscreen);
        let options = interactive::Options { dirs, store, first, prompts: rest, draft, verbose, fullscreen };
        return interactive::run(session, options, &cancel, &watch);
    }
    if first.is_none() && rest.is_empty() {
        return session.close().map_or_else(|fatal| Err(fatal.to_string()), |()| Ok(nothing_to_ask()));
    }
    let form = match args.run.mode {
        Some(Mode::Json) => Form::Json { cumulative: args.run.cumulative_events },
        _ => Form::Text,
    };
    Ok(print::run(session, Prompts { first, rest }, form, &cancel, &watch))
}

/// Runs RPC mode until stdin ends. Returns the exit code.
fn serve(mut args: Args) -> Result<u8, String> {
    let mut launch = Launch::new(&args)?.hearing_extensions();
    let mut inputs = launch.inputs()?;
    if let Err(Refused { text, code }) = launch.start_extensions(&mut inputs, &mut args) {
        report::error(text);
        return Ok(code);
    }
    let Begun { session, cancel, watch, .. } = begin(launch, inputs, &args)?;
    let options = rpc::Options { cumulative: args.run.cumulative_events, ready: args.run.ready };
    rpc::run(session, options, &cancel, &watch)
}

/// Runs jobs that outlive their pi. Returns the exit code.
fn keep_jobs(args: &Args) -> Result<u8, String> {
    let mut launch = Launch::new(args)?;
    launch.over.model.model = Some(model::NO_MODEL.into());
    let inputs = launch.inputs()?;
    let Begun { session, cancel, watch, .. } = begin(launch, inputs, args)?;
    crate::mode::jobs::run(session, &cancel, &watch)
}

/// An opened session, with its cancel token and signal watch.
struct Begun {
    session: Session,
    store: Store,
    dirs: Dirs,
    /// A prompt that got no answer, to be edited.
    draft: Option<String>,
    cancel: CancelToken,
    watch: Watch,
}

/// Opens the session that the command line asks for, and watches for signals.
fn begin(launch: Launch, mut inputs: Inputs, args: &Args) -> Result<Begun, String> {
    // Questions come before signals are watched, so that Ctrl-C ends the program at once.
    let has_prompt = !args.messages.is_empty() || !args.files.is_empty();
    let folder = inputs.cwd.clone();
    let Opened { log, draft } = open::log(&launch, &args.session, has_prompt, &mut inputs)?;
    if inputs.cwd != folder {
        launch.next_extensions(&mut inputs, false)();
    }
    let cancel = CancelToken::new();
    let watch =
        signal::watch(cancel.clone()).map_err(|error| format!("Cannot watch for signals: {error}"))?;
    let (store, dirs) = (launch.store(&inputs), inputs.dirs.clone());
    let session = launch.clone().session(inputs, log, args.session.name.as_deref(), &cancel)?;
    // No client lends servers here.
    let _ = mcp::start(&session, &launch, &dirs, Vec::new(), &cancel);
    Ok(Begun { session, store, dirs, draft, cancel, watch })
}

/// Refuses an empty prompt, since a script may have an empty input by mistake. Returns the exit code.
fn nothing_to_ask() -> u8 {
    report::error(
        "There is nothing to ask: no message, no text on stdin, no file with content.\nUsage: pi -p \"message\", or: command | pi -p",
    );
    BAD_USAGE
}
