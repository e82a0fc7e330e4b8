//! `pi bug FILE`: writes what helps to find a fault into a file, without secrets. Nothing is sent.
//!
//! The report says how the newest session of this folder went (kinds of messages, tools, sizes, errors), but
//! nothing of what was said in it.

use super::doctor::Report;
use super::say::{BAD_USAGE, say};
use super::{export, open, version};
use crate::agent::message::AgentMessage;
use crate::base::file;
use crate::base::json;
use crate::mode::exit::FAILED;
use crate::mode::report;
use crate::resources::dirs::Dirs;
use crate::resources::settings::{Settings, without_password};
use crate::runtime::plain_text;
use crate::session::export as stored;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const USAGE: &str = "\
Usage: pi bug <file>

Writes a report into a new file, to go with a complaint about pi: version, the
checks of pi doctor, your settings, and how the newest session of this folder
went. Keys and other secrets are taken out; what was said in the session is not in
it. Nothing is sent. Read it before you pass it on.
";

/// Messages of the session that the report tells of.
const MESSAGES_MAX: usize = 40;

/// Runs `pi bug`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    match words {
        [word] if word == "--help" || word == "-h" => say(USAGE),
        [path] if !path.as_encoded_bytes().starts_with(b"-") => match write(Path::new(path)) {
            Ok(()) => {
                say(&format!("Written: {}\nRead it before you pass it on.\n", Path::new(path).display()))
            }
            Err(text) => {
                report::error(text);
                FAILED
            }
        },
        _ => {
            report::error(format_args!("{USAGE}\nTo send such words to a model: pi -- WORDS"));
            BAD_USAGE
        }
    }
}

fn write(path: &Path) -> Result<(), String> {
    let text = redacted(&text())?;
    let failed = |error| format!("Cannot write {}: {error}", path.display());
    let mut file = file::create_private(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // Half a report would pass for a whole one.
        let _ = std::fs::remove_file(path);
        failed(error)
    })
}

/// Returns the report without secrets, and without the path of the home folder.
fn redacted(text: &str) -> Result<String, String> {
    let dirs = Dirs::find().ok();
    let agent = dirs.as_ref().map(Dirs::agent);
    let hidden =
        export::redactor(agent.unwrap_or(Path::new("/")))?.hide(&plain_text(text.as_bytes())).into_owned();
    let home = dirs.as_ref().and_then(Dirs::home).and_then(Path::to_str);
    Ok(match home.filter(|home| home.len() > 1) {
        Some(home) => hidden.replace(home, "~"),
        None => hidden,
    })
}

fn text() -> String {
    let mut text = format!(
        "# Report of a problem with pi\n\nWhat I did, what I expected, what happened:\n\n\n## Version\n\n```json\n{:#}\n```\n\n## Checks\n\n```\n{}```\n",
        version::object(),
        Report::make(false).text()
    );
    let Ok(dirs) = Dirs::find() else { return text };
    let (settings, _) = Settings::load(dirs.agent());
    let own: Value =
        std::fs::read(settings.path()).ok().and_then(|bytes| json::parse(&bytes).ok()).unwrap_or_default();
    if let Some(own) = own.as_object() {
        text.push_str("\n## Settings\n\n```\n");
        for (name, value) in own {
            let _ = writeln!(text, "{name}: {}", without_password(value));
        }
        text.push_str("```\n");
    }
    if let Some(session) = session(&dirs, &settings) {
        let _ = write!(text, "\n## Newest session of this folder\n\n```\n{session}```\n");
    }
    text
}

/// Describes the newest session of this folder, a line for each of its last messages.
fn session(dirs: &Dirs, settings: &Settings) -> Option<String> {
    let cwd = std::env::current_dir().ok()?;
    let newest = open::store(dirs, settings, None, &cwd).list(&cwd).into_iter().next()?;
    let mut log = match stored::open(&newest.path) {
        Ok(log) => log,
        Err(error) => return Some(format!("{error}\n")),
    };
    let messages = log.context().messages;
    let left_out = messages.len().saturating_sub(MESSAGES_MAX);
    let mut text = format!("{} messages\n", messages.len());
    for notice in log.take_notices() {
        let _ = writeln!(text, "{notice}");
    }
    for known in &messages[left_out..] {
        let message = &known.message;
        let _ = write!(text, "{}, {} bytes", message.role(), message.text().len());
        let _ = match message {
            AgentMessage::Assistant(answer) => {
                let error =
                    answer.error_message.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                writeln!(
                    text,
                    ", {}/{} ({}), {:?}{error}",
                    answer.provider, answer.model, answer.api, answer.stop_reason
                )
            }
            AgentMessage::ToolResult(result) => {
                writeln!(text, ", {}{}", result.tool_name, if result.is_error { ", failed" } else { "" })
            }
            _ => writeln!(text),
        };
    }
    Some(text)
}
