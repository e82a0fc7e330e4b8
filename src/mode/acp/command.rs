//! Slash commands of pi itself that make sense in an editor.

use super::option;
use super::update::Updates;
use crate::base::json::json;
use crate::runtime::CancelToken;
use crate::runtime::control::Control;
use crate::runtime::session::Session;
use serde_json::Value;
use std::path::Path;

/// A command, with its argument.
pub struct Command<'a> {
    row: &'static Row,
    argument: &'a str,
}

struct Row {
    name: &'static str,
    description: &'static str,
    /// What the argument is; empty if there is none.
    hint: &'static str,
    run: fn(&mut Work<'_>, &str) -> Result<String, String>,
}

/// What a command works on.
pub struct Work<'a> {
    pub session: &'a mut Session,
    pub updates: &'a mut Updates,
    pub cancel: &'a CancelToken,
}

const ROWS: &[Row] = &[
    Row {
        name: "compact",
        description: "Summarize the conversation to make room",
        hint: "what the summary should keep",
        run: compact,
    },
    Row { name: "model", description: "Change the model", hint: "provider/model", run: model },
    Row { name: "name", description: "Name the session", hint: "name", run: name },
    Row { name: "session", description: "Show tokens, cost and file of the session", hint: "", run: show },
    Row { name: "export", description: "Write the session to an HTML file", hint: "file", run: export },
];

/// The commands, for `available_commands_update`.
pub fn list() -> impl Iterator<Item = Value> {
    ROWS.iter().map(|row| {
        let mut command = json!({"name": row.name, "description": row.description});
        if !row.hint.is_empty() {
            command["input"] = json!({"hint": row.hint});
        }
        command
    })
}

impl<'a> Command<'a> {
    /// The command that `text` calls.
    pub fn of(text: &'a str) -> Option<Self> {
        let call = text.trim().strip_prefix('/')?;
        let (name, argument) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let row = ROWS.iter().find(|row| row.name == name)?;
        Some(Self { row, argument: argument.trim() })
    }

    /// Runs the command. Returns text for the user.
    pub fn run(&self, mut work: Work<'_>) -> String {
        let done = (self.row.run)(&mut work, self.argument);
        done.unwrap_or_else(|error| format!("/{}: {error}", self.row.name))
    }
}

fn compact(work: &mut Work<'_>, instructions: &str) -> Result<String, String> {
    let instructions = Some(instructions).filter(|text| !text.is_empty());
    let Work { session, updates, cancel } = work;
    let compacted = session.compact(
        instructions,
        &mut |event| {
            updates.event(event);
            Ok(())
        },
        cancel,
    );
    let result = compacted.map_err(|error| error.to_string())?;
    Ok(format!("The conversation was compacted: it had about {} tokens.", result.tokens_before))
}

fn model(work: &mut Work<'_>, name: &str) -> Result<String, String> {
    let control = work.session.control();
    if !name.is_empty() {
        let found = control.models().first_of(&[name.to_owned()]);
        let model = found.ok_or_else(|| format!("no model with a key matches \"{name}\""))?.model;
        option::set_model(control, &model.provider, &model.id)?;
    }
    let model = control.models().current();
    Ok(format!("The model is {}/{}.", model.provider, model.id))
}

fn name(work: &mut Work<'_>, name: &str) -> Result<String, String> {
    let control = work.session.control();
    if name.is_empty() {
        return match control.snapshot().session_name {
            Some(name) => Ok(format!("The session is named {name}.")),
            None => Err("give a name".into()),
        };
    }
    let updates = &mut *work.updates;
    control.set_name(name, &mut |event| updates.event(event)).map_err(|error| error.0)?;
    Ok(format!("The session is named {name}."))
}

fn show(work: &mut Work<'_>, _: &str) -> Result<String, String> {
    let stats = work.session.control().stats();
    let tokens = &stats.tokens;
    let mut lines = vec![
        format!("Session {}", stats.session_id),
        format!(
            "{} prompts, {} answers, {} tool calls",
            stats.user_messages, stats.assistant_messages, stats.tool_calls
        ),
        format!("{} tokens in, {} out, {} from the cache", tokens.input, tokens.output, tokens.cache_read),
        format!("${:.4}", stats.cost),
    ];
    lines.extend(stats.session_file.map(|file| format!("File: {file}")));
    // Two spaces end a line in Markdown.
    Ok(lines.join("  \n"))
}

fn export(work: &mut Work<'_>, path: &str) -> Result<String, String> {
    let control: &Control = work.session.control();
    let cwd = control.config().workspace.cwd.clone();
    let path = (!path.is_empty()).then(|| cwd.join(Path::new(path)));
    let written = control.export(path.as_deref()).map_err(|error| error.to_string())?;
    Ok(format!("The session was written to {}.", written.display()))
}
