//! Hooks without code: commands of the settings that run at events of a session. `docs/hooks.md` describes them.
//!
//! The commands of an event run at the same time, without keys of providers, and end with pi. They are one of the
//! parts that handle events ([`Hooks`]), before extensions.

pub mod rule;
mod verdict;

use super::control::{Control, WeakControl, user_message};
use super::hook::{Fold, Hooks};
use super::service;
use super::ui::{Dialog, Problem, Severity, YES};
use crate::base::cancel::CancelToken;
use crate::base::executable;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::tools::process::peer::{self, Program, STACK};
use rule::{HookCommand, HookEvent};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use verdict::Verdict;

/// Maximum output of a command.
const OUTPUT_MAX: usize = 1 << 20;
/// Time for the commands at the end of a session.
const END_MAX: Duration = Duration::from_secs(5);
/// How often in a row commands of `Stop` may keep the model going.
const STOPS_MAX: u32 = 10;

/// Names of tools that hooks of other agents know, by the names that they have here.
const KNOWN: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("read", "Read"),
    ("edit", "Edit"),
    ("write", "Write"),
    ("grep", "Grep"),
    ("find", "Glob"),
    ("ls", "LS"),
    ("task", "Task"),
    ("todo", "TodoWrite"),
    ("ask", "AskUserQuestion"),
];

/// Runs the commands of a session's settings.
pub struct CommandHooks {
    control: WeakControl,
    /// Texts that the model is told at the begin of the next run.
    context: Mutex<Vec<String>>,
    /// How often commands of `Stop` have kept the present run going.
    stops: AtomicU32,
}

/// Runs the commands of the settings at events of the session of `control`.
pub fn offer(control: &Control) {
    let hooks =
        CommandHooks { control: control.downgrade(), context: Mutex::default(), stops: AtomicU32::new(0) };
    control.add_hooks(Arc::new(hooks));
}

impl Hooks for CommandHooks {
    fn wants(&self, event: &str) -> bool {
        let hooks: &[HookEvent] = match event {
            "tool_call" => &[HookEvent::PreToolUse],
            // What was said before a call is told with its result.
            "tool_result" => &[HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::PostToolUseFailure],
            "input" => &[HookEvent::UserPromptSubmit],
            "before_agent_start" => &[HookEvent::UserPromptSubmit, HookEvent::SessionStart],
            "session_start" | "session_compact" => &[HookEvent::SessionStart],
            "session_shutdown" => &[HookEvent::SessionEnd],
            "agent_start" | "turn_end" => &[HookEvent::Stop],
            "session_before_compact" => &[HookEvent::PreCompact],
            "ui_prompt_start" | "agent_settled" => &[HookEvent::Notification],
            // Each delta of an answer comes by here.
            _ => return false,
        };
        let Some(control) = self.control.upgrade() else { return false };
        let config = control.config();
        hooks.iter().any(|&hook| config.hooks.has(hook))
    }

    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        let Some(control) = self.control.upgrade() else { return };
        let asked = Asked { hooks: self, control: &control, cancel };
        if let Some(result) = asked.answer(event) {
            let _ = fold(event, Ok(result));
        }
    }
}

/// One event.
struct Asked<'a> {
    hooks: &'a CommandHooks,
    control: &'a Control,
    cancel: &'a CancelToken,
}

impl Asked<'_> {
    /// Runs the commands for an event. Gives the result of the handler.
    fn answer(&self, event: &Value) -> Option<Value> {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        match text("type") {
            "tool_call" => self.before_call(event),
            "tool_result" => self.after_call(event),
            "input" => self.input(event),
            "before_agent_start" => {
                let texts = std::mem::take(&mut *self.context());
                (!texts.is_empty()).then(|| {
                    json!({"message": {"customType": "hook", "content": texts.join("\n\n"), "display": true}})
                })
            }
            "session_start" | "session_shutdown" if text("reason") == "reload" => None,
            "session_start" => {
                let source = match text("reason") {
                    "new" => "clear",
                    "resume" | "fork" => "resume",
                    _ => "startup",
                };
                self.session_start(source);
                None
            }
            "session_compact" => {
                self.session_start("compact");
                None
            }
            "session_shutdown" => {
                let reason = match text("reason") {
                    "new" => "clear",
                    "resume" => "resume",
                    _ => "other",
                };
                self.run(HookEvent::SessionEnd, &[reason], &Value::Null, json!({"reason": reason}));
                None
            }
            "agent_start" => {
                self.hooks.stops.store(0, Ordering::Relaxed);
                None
            }
            "turn_end" => {
                self.turn_end(event);
                None
            }
            "session_before_compact" => {
                let trigger = if text("reason") == "manual" { "manual" } else { "auto" };
                let fields = json!({"trigger": trigger, "custom_instructions": text("customInstructions")});
                let verdict = self.run(HookEvent::PreCompact, &[trigger], &Value::Null, fields)?;
                verdict.block.or(verdict.stop).map(|why| {
                    self.tell(Severity::Warning, why);
                    json!({"cancel": true})
                })
            }
            "ui_prompt_start" => {
                let kind = "permission_prompt";
                let fields = json!({"message": text("title"), "notification_type": kind});
                self.run(HookEvent::Notification, &[kind], &Value::Null, fields);
                None
            }
            "agent_settled" => {
                if self.control.ui().is_some_and(|ui| ui.is_attended()) {
                    let kind = "idle_prompt";
                    let fields =
                        json!({"message": "pi is waiting for your input", "notification_type": kind});
                    self.run(HookEvent::Notification, &[kind], &Value::Null, fields);
                }
                None
            }
            _ => None,
        }
    }

    fn before_call(&self, event: &Value) -> Option<Value> {
        if let Some(why) = self.control.config().hooks.broken_gate() {
            let reason = format!(
                "A hook of PreToolUse in the settings cannot be used, so that no tool is called: {why}"
            );
            return Some(json!({"block": true, "reason": reason}));
        }
        let call = Call::of(event, self.control);
        let fields =
            json!({"tool_name": call.known, "tool_input": call.input, "tool_use_id": event["toolCallId"]});
        let verdict = self.run(HookEvent::PreToolUse, &call.names(), &call.input, fields)?;
        if let Some(reason) = verdict.block.or_else(|| self.refused(&call, verdict.ask)) {
            return Some(json!({"block": true, "reason": reason, "terminate": verdict.stop.is_some()}));
        }
        if let Some(reason) = verdict.stop {
            return Some(json!({"block": true, "reason": reason, "terminate": true}));
        }
        self.context().extend(verdict.context);
        verdict.updated_input.map(|input| json!({"input": call.own_input(input)}))
    }

    /// Asks the user about a call. Gives why it may not run.
    fn refused(&self, call: &Call, reason: Option<String>) -> Option<String> {
        let reason = reason?;
        let Some(ui) = self.control.ui().filter(|ui| ui.is_attended()) else {
            return Some(format!("A hook wants the user's approval, and nobody can answer. {reason}"));
        };
        let title = format!("Run {}?", call.name);
        let message = format!("{reason}\n{}", call.input).trim().to_owned();
        let dialog = Dialog::Confirm { title: &title, message: &message };
        let answer = ui.ask(&dialog, None, self.cancel);
        (answer.as_deref() != Some(YES))
            .then(|| format!("The user denied this call. {reason}").trim().to_owned())
    }

    fn after_call(&self, event: &Value) -> Option<Value> {
        let call = Call::of(event, self.control);
        let hook =
            if event["isError"] == true { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
        let response = json!({"content": event["content"], "details": event["details"]});
        let mut fields = json!({"tool_name": call.known, "tool_input": call.input,
            "tool_use_id": event["toolCallId"], "tool_response": response});
        if hook == HookEvent::PostToolUseFailure {
            let texts =
                event["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            fields["error"] = texts.collect::<Vec<_>>().join("\n").into();
        }
        let mut verdict = self.run(hook, &call.names(), &call.input, fields).unwrap_or_default();
        // What was said before the call belongs to its result.
        let mut texts = std::mem::take(&mut *self.context());
        texts.extend(verdict.block.take());
        texts.append(&mut verdict.context);
        if verdict.stop.is_some() {
            self.control.abort_work();
        }
        if texts.is_empty() {
            return None;
        }
        let mut content = event["content"].as_array().cloned().unwrap_or_default();
        content
            .extend(texts.into_iter().map(|text| json!({"type": "text", "text": format!("[hook] {text}")})));
        let mut result = json!({"content": content});
        if let Some(structured) = event.get("structuredContent") {
            result["structuredContent"] = structured.clone();
        }
        Some(result)
    }

    fn input(&self, event: &Value) -> Option<Value> {
        let prompt = event["text"].as_str().unwrap_or_default();
        let verdict = self.run(HookEvent::UserPromptSubmit, &[], &Value::Null, json!({"prompt": prompt}))?;
        if let Some(reason) = verdict.block.or(verdict.stop) {
            self.tell(Severity::Error, format!("The prompt was not sent: {reason}"));
            return Some(json!({"action": "handled"}));
        }
        if verdict.context.is_empty() {
            return None;
        }
        // A message that joins a run has no run of its own to be told at.
        if event.get("streamingBehavior").is_some() {
            let text = format!("{prompt}\n\n{}", verdict.context.join("\n\n"));
            return Some(json!({"action": "transform", "text": text}));
        }
        self.context().extend(verdict.context);
        None
    }

    fn session_start(&self, source: &str) {
        let verdict = self.run(HookEvent::SessionStart, &[source], &Value::Null, json!({"source": source}));
        self.context().extend(verdict.map(|verdict| verdict.context).unwrap_or_default());
    }

    /// Lets commands of `Stop` keep the model going, when a turn is the last of its run.
    fn turn_end(&self, event: &Value) {
        let is_last = event["toolResults"].as_array().is_none_or(Vec::is_empty)
            && !matches!(event["message"]["stopReason"].as_str(), Some("error" | "aborted"));
        if !is_last || self.control.snapshot().pending_message_count > 0 {
            return;
        }
        let stops = self.hooks.stops.load(Ordering::Relaxed);
        let parts = event["message"]["content"].as_array().into_iter().flatten();
        let answer: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        let fields = json!({"stop_hook_active": stops > 0, "last_assistant_message": answer.join("\n")});
        let Some(verdict) = self.run(HookEvent::Stop, &[], &Value::Null, fields) else { return };
        let Some(reason) = verdict.block.filter(|_| verdict.stop.is_none()) else { return };
        if stops >= STOPS_MAX {
            let text =
                format!("Hooks kept the model going {STOPS_MAX} times in a row; it ends now. {reason}");
            return self.tell(Severity::Warning, text);
        }
        self.hooks.stops.store(stops + 1, Ordering::Relaxed);
        self.control.queue().follow_up(user_message(reason, Vec::new()), &mut |_| {});
    }

    /// Runs the commands for an event, all at the same time. None if there are none, or if the run was aborted.
    fn run(&self, hook: HookEvent, names: &[&str], arguments: &Value, fields: Value) -> Option<Verdict> {
        let config = self.control.config();
        let commands = config.hooks.commands(hook, names, arguments);
        if commands.is_empty() {
            return None;
        }
        let snapshot = self.control.snapshot();
        let mut input = json!({"session_id": snapshot.session_id, "transcript_path": snapshot.session_file,
            "cwd": snapshot.cwd, "permission_mode": "default", "hook_event_name": hook.name()});
        if let (Value::Object(input), Value::Object(fields)) = (&mut input, fields) {
            input.extend(fields);
        }
        let input = input.to_string();
        let limit = |command: &HookCommand| match hook {
            HookEvent::SessionEnd => command.timeout.min(END_MAX),
            _ => command.timeout,
        };
        let run = |command: &HookCommand| {
            peer::run_with(
                &self.program(command, &snapshot.cwd),
                input.as_bytes(),
                Some(limit(command)),
                OUTPUT_MAX,
                self.cancel,
            )
        };
        let mut verdict = Verdict::default();
        thread::scope(|scope| {
            let (run, thread) = (&run, || Thread::named("hook").stack(STACK));
            let start = commands.iter().map(|&command| thread().start_in(scope, move || run(command)));
            let threads: Vec<_> = start.collect();
            for (command, thread) in commands.iter().zip(threads) {
                let ran = thread.and_then(|thread| {
                    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("internal error")))
                });
                match ran {
                    Ok(ran) => verdict.add(hook, &command.command, &ran),
                    Err(error) => {
                        verdict.fail(hook, &command.command, &format!("could not be started: {error}"))
                    }
                }
            }
        });
        if self.cancel.is_cancelled() {
            return None;
        }
        for error in verdict.failures.drain(..) {
            self.control.report(&Problem { source: "hooks".into(), event: hook.name().into(), error });
        }
        verdict.messages.drain(..).for_each(|message| self.tell(Severity::Info, message));
        Some(verdict)
    }

    fn program(&self, command: &HookCommand, cwd: &Path) -> Program {
        let mut env = service::environment();
        for name in ["PI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
            env.insert(name.into(), cwd.into());
        }
        Program {
            path: executable::SHELL.into(),
            args: vec!["-c".into(), (&command.command).into()],
            cwd: cwd.to_owned(),
            env,
        }
    }

    fn tell(&self, severity: Severity, message: String) {
        if let Some(ui) = self.control.ui() {
            ui.tell(severity, message);
        }
    }

    fn context(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.hooks.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tool call as hooks know it.
struct Call {
    name: String,
    known: String,
    /// The arguments, with the absolute `file_path` that hooks of other agents read.
    input: Value,
    file: Option<PathBuf>,
}

impl Call {
    fn of(event: &Value, control: &Control) -> Self {
        let name = event["toolName"].as_str().unwrap_or_default().to_owned();
        let known =
            KNOWN.iter().find(|(own, _)| *own == name).map_or(name.as_str(), |(_, known)| known).to_owned();
        let mut input = event["input"].clone();
        let file = input["path"].as_str().filter(|_| matches!(&*name, "read" | "edit" | "write"));
        let file = file.map(|path| control.config().workspace.cwd.join(path));
        if let (Some(file), Some(fields)) = (&file, input.as_object_mut()) {
            fields.entry("file_path").or_insert_with(|| file.to_string_lossy().into());
        }
        Self { name, known, input, file }
    }

    fn names(&self) -> [&str; 2] {
        [&self.known, &self.name]
    }

    /// Changed arguments as the tool takes them.
    fn own_input(&self, mut input: Value) -> Value {
        if let (Some(file), Some(fields)) = (&self.file, input.as_object_mut())
            && let Some(changed) = fields.remove("file_path")
            && (changed.as_str() != file.to_str() || !fields.contains_key("path"))
        {
            fields.insert("path".into(), changed);
        }
        input
    }
}
