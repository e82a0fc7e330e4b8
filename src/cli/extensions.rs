//! `pi extensions`: starts all extensions, and lists what each is and has registered.

use super::flags;
use super::say::{BAD_USAGE, say, say_plain};
use super::start::Launch;
use crate::base::cancel::CancelToken;
use crate::extension::{About, Extensions, find};
use crate::mode::{REFERENCE_VERSION, exit, report};
use std::ffi::OsString;

const USAGE: &str = "\
Usage: pi extensions [list]  what is loaded, from where, what it registered, its start time and memory
Flags: -e PATH, -ne, --approve, --no-approve, as in: pi --help
";

/// Runs `pi extensions`. Gives the exit code: 1 if an extension could not be used.
pub fn run(words: &[OsString]) -> u8 {
    let args = match flags::parse(words.iter().cloned()) {
        Ok(args) if args.run.help => return say(USAGE),
        Ok(args) if args.messages.is_empty() || args.messages == ["list"] => args,
        Ok(_) => {
            report::error(format_args!("These words make no sense here.\n{USAGE}"));
            return BAD_USAGE;
        }
        Err(error) => {
            report::error(format_args!("{error}\n{USAGE}"));
            return BAD_USAGE;
        }
    };
    let inputs = match Launch::unasked(&args).and_then(|launch| launch.inputs()) {
        Ok(inputs) => inputs,
        Err(text) => {
            report::error(text);
            return exit::FAILED;
        }
    };
    let (found, mut problems) = find::find(&inputs, args.over.resources.no_extensions);
    let extensions = Extensions::start(About::new(&inputs, "print", REFERENCE_VERSION), found);
    extensions.await_all_started(&CancelToken::new(), |text| report::note(text));
    let text = extensions.list();
    let failed = extensions.take_problems();
    problems.extend(failed.iter().map(|problem| format!("Extension {}: {}", problem.source, problem.error)));
    extensions.end();
    crate::tools::process::shut_down();
    problems.iter().for_each(report::error);
    let code = match (text.is_empty(), problems.is_empty()) {
        (true, true) => say("No extensions. pi docs extensions says where they are looked for.\n"),
        _ => say_plain(&text),
    };
    if problems.is_empty() { code } else { exit::FAILED }
}
