//! Asks about model servers of other users of this machine, once for each server.

use super::ask;
use super::start::Launch;
use crate::mode::report::warning as warn;
use crate::models::local::Stranger;
use crate::runtime::config::Inputs;

/// Asks about the first server without an answer, if questions are drawn. True if the server may be used.
pub fn ask(launch: &Launch, inputs: &mut Inputs, strangers: &[Stranger]) -> bool {
    let Some(screen) = launch.screen(inputs) else { return false };
    let known = &inputs.services.local_servers;
    let Some(stranger) = strangers.iter().find(|stranger| !known.knows(stranger)) else {
        return false;
    };
    let text = format!(
        "{stranger}.\n\nIt would get your prompts and what tools read, and the tool calls that it answers with \
         run as you."
    );
    let answers = ["Do not use it".to_owned(), "Use it, now and later".to_owned()];
    let answer = match ask::choose_drawn(screen, "Use a model server of another user?", &text, &answers) {
        Some(answer) => answer == 1,
        None => return false,
    };
    if let Err(reason) = inputs.services.local_servers.answer(stranger, answer) {
        warn(reason);
    }
    answer
}

/// Returns paragraphs about unused servers, to follow an error.
pub fn describe_unused(strangers: &[Stranger]) -> String {
    let tell = |stranger: &Stranger| {
        format!(
            "\n\nFound, and not used: {stranger}. It would get your prompts, and the tool calls that it answers \
             with run as you.\nTo use it all the same: --model local, or PI_LOCAL_URL={}",
            stranger.server.root
        )
    };
    strangers.iter().map(tell).collect()
}
