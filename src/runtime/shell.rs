//! Shell commands of the user. Several may run at once, also during a run of the agent.

use super::control::Control;
use super::hook::Flow;
use crate::agent::message::{AgentMessage, BashExecution};
use crate::agent::run::Fatal;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::now_ms;
use crate::tools::bash::{self, Request};
use crate::tools::plain::{Decoder, Sink};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum number of the user's commands that run at once.
const SHELLS_MAX: usize = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellResult {
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default)]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// A command of the user that is about to run. [`Control::abort_shells`] cancels it.
pub struct Shell {
    control: Control,
    cancel: CancelToken,
}

impl Control {
    pub fn begin_shell(&self) -> Result<Shell, String> {
        let mut state = self.state();
        if state.shells.len() >= SHELLS_MAX {
            return Err(format!("{SHELLS_MAX} commands are running already"));
        }
        let cancel = CancelToken::new();
        state.shells.push(cancel.clone());
        Ok(Shell { control: self.clone(), cancel })
    }

    pub fn abort_shells(&self) {
        let shells = self.state().shells.clone();
        shells.iter().for_each(CancelToken::cancel);
    }

    /// Appends a command and its output to the conversation, or holds the message back until a run has ended.
    fn record(&self, message: AgentMessage) -> Result<(), Fatal> {
        let mut log = self.log();
        {
            let mut state = self.state();
            if state.is_running() {
                state.held_back.push(message);
                return Ok(());
            }
        }
        log.append_message(&message)?;
        Ok(())
    }
}

impl Shell {
    /// Runs the command. `told` receives its output as plain text in pieces, while the command runs.
    pub fn run(
        self,
        command: &str,
        exclude_from_context: Option<bool>,
        told: &mut dyn FnMut(&str),
    ) -> Result<(ShellResult, AgentMessage), Fatal> {
        let workspace = self.control.state().config.workspace.clone();
        let mut asked = Ok(None);
        let mut changed = None;
        let fields = || {
            json!({"command": command, "excludeFromContext": exclude_from_context == Some(true),
                "cwd": workspace.cwd.to_string_lossy()})
        };
        self.control.hooked().ask("user_bash", fields, &self.cancel, &mut |_, result| {
            asked = result.and_then(|mut result| {
                changed = result["command"].as_str().map(str::to_owned);
                let given = result.get_mut("result").filter(|given| !given.is_null()).map(Value::take);
                given
                    .map(serde_json::from_value::<ShellResult>)
                    .transpose()
                    .map_err(|error| error.to_string())
            });
            match (&asked, &changed) {
                (Ok(None), None) => Flow::Next,
                _ => Flow::Stop,
            }
        });
        if let Some(result) = asked.map_err(Fatal)? {
            told(&result.output);
            return self.end(command, result, exclude_from_context);
        }
        let command = changed.as_deref().unwrap_or(command);
        let live = RefCell::new((Live::default(), told));
        let on_output = |bytes: &[u8]| {
            let (live, told) = &mut *live.borrow_mut();
            let text = live.text(bytes);
            if !text.is_empty() {
                told(text);
            }
        };
        let request = Request {
            call: "",
            command,
            timeout_seconds: None,
            session_variables: false,
            on_output: Some(&on_output),
        };
        let run = bash::execute(&workspace, &request, &|_, _| {}, &self.cancel)
            .map_err(|error| Fatal(error.to_string()))?;
        let result = ShellResult {
            output: run.output().to_owned(),
            exit_code: run.exit_code().map(i64::from),
            cancelled: run.is_cancelled(),
            truncated: run.is_truncated(),
            full_output_path: run.full_output_path().map(|path| path.to_string_lossy().into_owned()),
        };
        self.end(command, result, exclude_from_context)
    }

    fn end(
        &self,
        command: &str,
        result: ShellResult,
        exclude_from_context: Option<bool>,
    ) -> Result<(ShellResult, AgentMessage), Fatal> {
        let vault = self.control.state().config.workspace.vault.clone();
        let message = AgentMessage::BashExecution(Arc::new(BashExecution {
            command: vault.hide(command).into_owned(),
            output: result.output.clone(),
            exit_code: result.exit_code,
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output_path: result.full_output_path.clone(),
            timestamp: now_ms(),
            exclude_from_context,
            ..BashExecution::default()
        }));
        self.control.record(message.clone())?;
        Ok((result, message))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let mut state = self.control.state();
        // Tokens have no identity: cancelling this one makes it recognizable.
        self.cancel.cancel();
        state.shells.retain(|shell| !shell.is_cancelled());
    }
}

/// Converts a command's output to plain text, piece by piece.
#[derive(Default)]
struct Live {
    decoder: Decoder,
    text: Text,
}

#[derive(Default)]
struct Text(String);

impl Live {
    fn text(&mut self, bytes: &[u8]) -> &str {
        self.text.0.clear();
        self.decoder.push(bytes, &mut self.text);
        &self.text.0
    }
}

impl Sink for Text {
    fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }

    // Text that was already passed on cannot be changed.
    fn restart_line(&mut self) {}

    fn back(&mut self) {}
}
