//! Model servers that other users of this machine run: the user is asked about each once, and the answer is
//! kept in `local-servers.json` of the agent folder.

use super::ask;
use super::start::World;
use crate::base::file;
use crate::mode::report::warning as warn;
use crate::models::local::{Allowed, Stranger};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The servers that the user agreed to.
pub fn allowed(agent: &Path) -> Allowed {
    let answers = std::fs::read(path(agent)).ok().map(|bytes| parse(&bytes)).unwrap_or_default();
    let agreed = answers.into_iter().filter(|(_, answer)| *answer == true);
    Allowed::Only(agreed.map(|(key, _)| key).collect())
}

/// Asks about the first server that nothing is known about, where questions are drawn. True: it may be used
/// from now on.
pub fn ask(world: &mut World, strangers: &[Stranger]) -> bool {
    let Some(ground) = world.ground() else { return false };
    let path = path(world.dirs.agent());
    let known = std::fs::read(&path).ok().map(|bytes| parse(&bytes)).unwrap_or_default();
    let Some(stranger) = strangers.iter().find(|stranger| !known.contains_key(&stranger.key())) else {
        return false;
    };
    let text = format!(
        "{stranger}.\n\nIt would get your prompts and what tools read, and the tool calls that it answers with \
         run as you."
    );
    let answers = ["Do not use it".to_owned(), "Use it, now and later".to_owned()];
    let answer = match ask::choose_drawn(ground, "Use a model server of another user?", &text, &answers) {
        Some(answer) => answer == 1,
        None => return false,
    };
    let stored = file::update(&path, |old| {
        let mut answers = parse(&old.unwrap_or_default());
        answers.insert(stranger.key(), answer.into());
        let text = serde_json::to_string_pretty(&answers).map_err(|error| error.to_string())?;
        Ok(Some(text + "\n"))
    });
    if let Err(reason) = stored {
        warn(reason);
    }
    if answer {
        world.services.local_servers.add(stranger);
    }
    answer
}

/// What is said of servers that were left out, below another text.
pub fn told(strangers: &[Stranger]) -> String {
    let tell = |stranger: &Stranger| {
        format!(
            "\n\nFound, and not used: {stranger}. It would get your prompts, and the tool calls that it answers \
             with run as you.\nTo use it all the same: --model local, or PI_LOCAL_URL={}",
            stranger.server.root
        )
    };
    strangers.iter().map(tell).collect()
}

fn path(agent: &Path) -> PathBuf {
    agent.join("local-servers.json")
}

/// The answers so far. A damaged file has none: then it is asked again.
fn parse(bytes: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(bytes).unwrap_or_default()
}
