//! `pi jobs`: jobs that outlived their pi.

use super::say::{BAD_USAGE, say};
use crate::base::json::json;
use crate::mode::{exit, report};
use crate::resources::dirs::Dirs;
use crate::runtime::CancelToken;
use crate::tools::kept_job::{self, Keeper, SOCKET};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;

const USAGE: &str = "\
Usage: pi jobs [list]
       pi jobs tail <id> [lines]
       pi jobs stop <id>
       pi jobs send <id> <text>

The jobs of this folder that outlived their pi (--keep-jobs). send writes a line to the
job's input.

More: pi docs jobs
";

/// Runs a command. Gives the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let asked = match words.as_slice() {
        [] | ["list"] => json!({"op": "list"}),
        ["tail", id] => json!({"op": "tail", "job": id}),
        ["tail", id, lines] => json!({"op": "tail", "job": id, "lines": lines.parse::<u64>().ok()}),
        ["stop", id] => json!({"op": "stop", "job": id}),
        ["send", id, text @ ..] if !text.is_empty() => {
            json!({"op": "send", "job": id, "text": text.join(" ")})
        }
        ["help" | "--help" | "-h", ..] => return say(USAGE),
        _ => {
            report::error(USAGE.trim_end());
            return BAD_USAGE;
        }
    };
    match ask(&asked) {
        Ok(texts) if texts.is_empty() => say("There are no jobs\n"),
        Ok(texts) => say(&format!("{}\n", texts.join("\n"))),
        Err(error) => {
            report::error(error);
            exit::FAILED
        }
    }
}

/// Puts a request to the keepers of this folder: to the one that has the job, otherwise to all.
fn ask(asked: &Value) -> Result<Vec<String>, String> {
    let dirs = Dirs::find().map_err(|error| error.to_string())?;
    let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
    let entries = fs::read_dir(kept_job::folder(dirs.agent(), &cwd)).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path());
    let sockets = sockets.filter(|path| path.extension().is_some_and(|name| name == SOCKET));
    let keepers: Vec<Keeper> = sockets.filter_map(|path| Keeper::attach(&path, None).ok()).collect();
    let wanted = &asked["job"];
    let mut texts = Vec::new();
    for keeper in keepers {
        let jobs = keeper.jobs();
        if jobs.is_empty() || !(wanted.is_null() || jobs.iter().any(|job| job["id"] == *wanted)) {
            continue;
        }
        let answer = keeper.ask(asked, &CancelToken::new())?;
        texts.push(answer["text"].as_str().unwrap_or_default().to_owned());
    }
    match wanted.as_str() {
        Some(id) if texts.is_empty() => Err(format!("There is no job {id:?} of this folder. See: pi jobs")),
        _ => Ok(texts),
    }
}
