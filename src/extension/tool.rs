//! Tools and slash commands that run in an extension.

use super::limit::HANDLER_MAX;
use super::registration::{CommandEntry, ShortcutEntry, ToolEntry};
use super::render::completions;
use super::request::Failed;
use super::{Extensions, Instance};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::runtime::addition::{Completion, SlashCommand};
use crossbeam_channel::{at, bounded, never, select};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Updates that wait for the thread of a call.
const UPDATES_MAX: usize = 16;
/// Time for proposals while somebody types.
const COMPLETE_MAX: Duration = Duration::from_secs(5);

struct RemoteTool {
    extensions: Arc<Extensions>,
    instance: Arc<Instance>,
    entry: ToolEntry,
}

pub fn tool(extensions: &Arc<Extensions>, instance: &Arc<Instance>, entry: &ToolEntry) -> Arc<dyn Tool> {
    Arc::new(RemoteTool { extensions: extensions.clone(), instance: instance.clone(), entry: entry.clone() })
}

impl RemoteTool {
    fn name(&self) -> &str {
        &self.entry.info.spec.name
    }

    fn failed(&self, failed: &Failed) -> ToolError {
        match failed {
            Failed::Cancelled => ToolError::aborted(),
            Failed::Late(limit) => {
                ToolError::new(format!("The tool {} gave no result within {limit:?}", self.name()))
            }
            Failed::Over(_) | Failed::Hung { .. } => ToolError::new(format!(
                "The tool {} cannot be used: its extension {} {failed}",
                self.name(),
                self.instance.found.name
            )),
            Failed::Refused(why) => ToolError::new(why.clone()),
        }
    }
}

impl Tool for RemoteTool {
    fn info(&self) -> &ToolInfo {
        &self.entry.info
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        if !self.entry.prepares {
            return arguments;
        }
        let params = json!({"extension": self.instance.id, "name": self.name(), "arguments": arguments});
        let asked = self.extensions.connection(&self.instance).and_then(|connection| {
            let pulse = &self.instance.pulse;
            connection.ask_handler(pulse, "tool.prepare", params, HANDLER_MAX, &CancelToken::new())
        });
        match asked.map(|mut answer| answer["arguments"].take()) {
            Ok(Value::Object(prepared)) => prepared,
            _ => arguments,
        }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let connection = self.extensions.connection(&self.instance).map_err(|failed| self.failed(&failed))?;
        let limit = self.entry.timeout;
        let late = limit.and_then(|limit| Instant::now().checked_add(limit)).map_or_else(never, at);
        let (sender, updates) = bounded(UPDATES_MAX);
        self.instance.follow(call.id, sender);
        let params = json!({
            "extension": self.instance.id,
            "toolCallId": call.id,
            "name": self.name(),
            "arguments": call.arguments,
            "model": {"provider": call.model.provider, "id": call.model.id},
        });
        let show = |fields: &Map<String, Value>| {
            if let Ok((output, _)) = ToolOutput::read(fields) {
                (call.update)(output);
            }
        };
        let ended = connection.begin("tool.call", params, limit, call.cancel).and_then(|open| {
            loop {
                select! {
                    recv(open.answer) -> answer => {
                        updates.try_iter().for_each(|update| show(&update));
                        return connection.answered(answer.ok());
                    }
                    recv(updates) -> update => if let Ok(update) = update {
                        show(&update);
                    },
                    recv(call.cancel.receiver()) -> _ => {
                        connection.give_up(&open);
                        return Err(Failed::Cancelled);
                    }
                    recv(late) -> _ => {
                        connection.give_up(&open);
                        return Err(Failed::Late(limit.unwrap_or_default()));
                    }
                    recv(connection.over().receiver()) -> _ => return connection.at_end(&open),
                }
            }
        });
        let made = self.instance.forget(call.id);
        let result = ended.map_err(|failed| self.failed(&failed)).and_then(|result| self.read(result));
        let Some((made, record)) = made.and_then(|made| made.record().map(|record| (made, record))) else {
            return result;
        };
        // A failure keeps the record, too.
        let (mut output, is_error) = ToolOutput::of(result);
        output.is_error = is_error;
        output.nested_calls = Some(record);
        output.usage = made.usage_with(output.usage);
        Ok(output)
    }
}

impl RemoteTool {
    /// Reads the result of a call.
    fn read(&self, result: Value) -> Result<ToolOutput, ToolError> {
        let fields = match result {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            text @ Value::String(_) => Map::from_iter([("content".to_owned(), text)]),
            _ => return Err(ToolError::new(format!("The result of {} is no object", self.name()))),
        };
        let (output, is_error) = ToolOutput::read(&fields).map_err(|fault| {
            ToolError::new(format!("The result of {} is not understood: {fault}", self.name()))
        })?;
        if is_error { Err(output.into_error()) } else { Ok(output) }
    }
}

struct RemoteCommand {
    extensions: Arc<Extensions>,
    instance: Arc<Instance>,
    entry: CommandEntry,
}

pub fn command(
    extensions: &Arc<Extensions>,
    instance: &Arc<Instance>,
    entry: &CommandEntry,
) -> Arc<dyn SlashCommand> {
    Arc::new(RemoteCommand {
        extensions: extensions.clone(),
        instance: instance.clone(),
        entry: entry.clone(),
    })
}

impl SlashCommand for RemoteCommand {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn description(&self) -> Option<&str> {
        self.entry.description.as_deref()
    }

    fn run(&self, arguments: &str, cancel: &CancelToken) -> Result<(), String> {
        let params = json!({"extension": self.instance.id, "name": self.entry.name, "arguments": arguments});
        let connection = self.extensions.connection(&self.instance).map_err(|failed| failed.to_string())?;
        match connection.ask("command.run", params, None, cancel) {
            Ok(_) | Err(Failed::Cancelled) => Ok(()),
            // A command that has the session load extensions anew ends with its program.
            Err(Failed::Over(_)) if self.instance.is_shut_down() => Ok(()),
            Err(failed) => Err(failed.to_string()),
        }
    }

    fn complete(&self, prefix: &str, cancel: &CancelToken) -> Vec<Completion> {
        // Nothing is started for a proposal.
        let Some(connection) = self.instance.connection().filter(|_| self.entry.completes) else {
            return Vec::new();
        };
        let params = json!({"extension": self.instance.id, "name": self.entry.name, "prefix": prefix});
        let asked = connection.ask("command.complete", params, Some(COMPLETE_MAX), cancel);
        asked.map(|proposals| completions(&proposals)).unwrap_or_default()
    }
}

struct RemoteShortcut {
    extensions: Arc<Extensions>,
    instance: Arc<Instance>,
    entry: ShortcutEntry,
}

/// The action of a key.
pub fn shortcut(
    extensions: &Arc<Extensions>,
    instance: &Arc<Instance>,
    entry: &ShortcutEntry,
) -> Arc<dyn SlashCommand> {
    Arc::new(RemoteShortcut {
        extensions: extensions.clone(),
        instance: instance.clone(),
        entry: entry.clone(),
    })
}

impl SlashCommand for RemoteShortcut {
    fn name(&self) -> &str {
        &self.entry.key
    }

    fn description(&self) -> Option<&str> {
        self.entry.description.as_deref()
    }

    fn run(&self, _: &str, cancel: &CancelToken) -> Result<(), String> {
        let params = json!({"extension": self.instance.id, "key": self.entry.key});
        let connection = self.extensions.connection(&self.instance).map_err(|failed| failed.to_string())?;
        match connection.ask("shortcut.run", params, None, cancel) {
            Ok(_) | Err(Failed::Cancelled) => Ok(()),
            Err(failed) => Err(failed.to_string()),
        }
    }
}
