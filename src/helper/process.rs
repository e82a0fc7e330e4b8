//! One helper: its process, from the task to the report.

use super::command;
use super::place::Slot;
use super::task::{self, Task};
use super::team::{DEPTH_MAX, Orders, Original, Row, Team};
use super::r#yield::{self, Yielded};
use crate::agent::tool::ToolInfo;
use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::client::{Client, ClientError};
use crate::llm::message::{ToolSpec, Usage};
use crate::resources::agent::Agent;
use crate::runtime::approval::{DENIED, Decision, Question};
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use crate::runtime::helpers::{Report, Status};
use crate::runtime::outcome::Wanted;
use crate::session::compaction::add_usage;
use crate::tools::artifact;
use crate::tools::plain;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{PipeReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// How often a helper that stops without a result is reminded.
const REMINDERS_MAX: usize = 3;

/// Time for a helper to store what it has when it is to end; it is killed afterwards.
const END_MAX: Duration = Duration::from_secs(2);

/// Bytes kept of what a helper says on stderr.
const ERRORS_MAX: usize = 2048;

const REMINDER: &str =
    "You stopped without a result. Call yield with it now; if work is left, do that first.";
const SOFT_LIMIT: &str = "You have used most of your turns. Finish now, and call yield with what you have.";

/// A task on its way to a helper.
pub struct Helper<'a> {
    pub team: &'a Team,
    pub control: &'a Control,
    pub config: &'a Config,
    pub agent: &'a Agent,
    pub name: &'a str,
    pub task: &'a str,
    /// JSON schema of the result.
    pub schema: Option<&'a Value>,
    /// The working folder.
    pub cwd: &'a Path,
    /// The copies that the helper works in.
    pub copies: &'a [Original],
    /// 1 for helpers of the session.
    pub depth: usize,
    pub slot: &'a Slot<'a>,
    pub row: Row<'a>,
    /// Ends the call that the task belongs to.
    pub cancel: &'a CancelToken,
}

/// How the talk with a helper ended.
enum End {
    /// It stopped: with a result, an error, or at a limit.
    Settled,
    Aborted,
    Failed(String),
    /// Its process has ended.
    Gone,
}

/// Runs a helper to its end. The report is in its row.
pub fn run(helper: &Helper<'_>) {
    let soft = helper.config.settings.count("helpers.turns").max(1);
    match start(helper, soft) {
        Ok((mut client, errors, notes)) => {
            client.set_patience(END_MAX);
            let ended = helper.cancel.child();
            let (outbox, replies) = bounded(16);
            let mut talk = Talk {
                helper,
                client,
                soft,
                outbox,
                nested: HashMap::new(),
                ended: ended.clone(),
                reminders: 0,
                yielded: None,
                last: Last::default(),
            };
            let end = thread::scope(|scope| {
                let end = talk.run(&replies, scope);
                ended.cancel();
                // What still wants to reply is let go.
                while replies.try_recv().is_ok() {}
                drop(replies);
                end
            });
            talk.conclude(end, &errors, notes);
        }
        Err(reason) => helper.row.end(Status::Failed, &format!("The helper could not start: {reason}")),
    }
}

type Errors = Arc<Mutex<Vec<u8>>>;

/// Starts the process, and sends the first commands.
fn start(helper: &Helper<'_>, soft: u64) -> Result<(Client, Errors, Vec<String>), String> {
    let folder = match helper.control.snapshot().session_file {
        Some(_) => Some(folder(helper).map_err(|error| format!("cannot keep its session: {error}"))?),
        None => None,
    };
    let turns_max = soft.saturating_add(soft.div_ceil(2));
    let (mut command, notes) =
        command::command(helper, folder.as_deref(), turns_max).map_err(|error| error.to_string())?;
    let (errors, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    command.stderr(writer);
    let mut client = Client::spawn(&mut command).map_err(|error| error.to_string())?;
    // Our end for writing goes, else the pipe would never be over.
    drop(command);
    let kept = Errors::default();
    let keeps = kept.clone();
    // Without the thread only a reason would be missing.
    let _ = Thread::named("helper-stderr").start(move || keep_end(errors, &keeps));
    let mut tools = vec![r#yield::declaration(helper.schema)];
    if helper.depth < DEPTH_MAX && !helper.agent.spawns.is_empty() {
        let ToolSpec { name, description, parameters, .. } =
            task::spec(&helper.config.agents, |name| helper.agent.may_spawn(name));
        tools.push(json!({"name": name, "label": name, "readOnly": true, "description": description,
            "snippet": "Give tasks to helpers", "parameters": parameters}));
    }
    let about_copy = match helper.copies {
        [] => "",
        _ => "\n\nYour folder is a copy of the user's: what you change in there is merged when you are done.",
    };
    let prompt = format!("{}{about_copy}\n\nWhen you are done, call yield with the result.", helper.task);
    let sent = client.send("get_state", Value::Null).and_then(|_| {
        client.send("register_tools", json!({"tools": tools}))?;
        client.send("prompt", json!({"message": prompt}))
    });
    // A helper that could not start says why on stderr.
    match sent {
        Ok(_) | Err(ClientError::Write(_)) => Ok((client, kept, notes)),
        Err(error) => Err(error.to_string()),
    }
}

/// The folder of helpers' sessions and answers, beside the session's file.
pub fn folder(helper: &Helper<'_>) -> std::io::Result<PathBuf> {
    let path = artifact::answer_path(&helper.config.workspace.outputs.path()?, helper.name);
    let folder = path.parent().map(ToOwned::to_owned).unwrap_or_default();
    file::make_private_folder(&folder)?;
    Ok(folder)
}

fn keep_end(mut errors: PipeReader, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let surplus = kept.len().saturating_sub(ERRORS_MAX);
        kept.drain(..surplus);
    }
}

/// The last answer of a helper.
#[derive(Default)]
struct Last {
    text: String,
    /// Why the run failed, or was ended.
    failure: Option<String>,
}

struct Talk<'h> {
    helper: &'h Helper<'h>,
    client: Client,
    /// Turns after which the helper is told to finish.
    soft: u64,
    /// Replies of other threads to the helper.
    outbox: Sender<Value>,
    /// Calls of `task` under way, by their ids.
    nested: HashMap<String, CancelToken>,
    /// Cancelled when the talk is over.
    ended: CancelToken,
    reminders: usize,
    yielded: Option<Yielded>,
    last: Last,
}

impl<'h> Talk<'h> {
    fn run<'s>(&mut self, replies: &Receiver<Value>, scope: &'s Scope<'s, '_>) -> End
    where
        'h: 's,
    {
        self.helper.row.change(|report| report.status = Status::Running);
        let lines = self.client.lines().clone();
        loop {
            let step = select! {
                recv(lines) -> line => match line {
                    Ok(line) => self.take(line, scope),
                    Err(_) => Err(End::Gone),
                },
                recv(replies) -> reply => reply.map_or(Ok(()), |reply| self.send(&reply)),
                recv(self.helper.row.member().inbox()) -> text => {
                    // A helper that has stopped meanwhile takes it as a prompt.
                    let steering = json!({"message": text.unwrap_or_default(), "streamingBehavior": "steer"});
                    let _ = self.client.send("prompt", steering);
                    Ok(())
                }
                recv(self.helper.cancel.receiver()) -> _ => Err(End::Aborted),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    fn send(&mut self, line: &Value) -> Result<(), End> {
        // A process that has gone is noticed by its output, which says more.
        let _ = self.client.send_line(line.to_string().as_bytes());
        Ok(())
    }

    fn take<'s>(&mut self, mut line: Value, scope: &'s Scope<'s, '_>) -> Result<(), End>
    where
        'h: 's,
    {
        let row = &self.helper.row;
        match line["type"].as_str().unwrap_or_default() {
            "response" if line["success"] == false => {
                let error = line["error"].as_str().unwrap_or("it refused a command");
                return Err(End::Failed(error.to_owned()));
            }
            "response" if line["command"] == "get_state" => {
                let file = line["data"]["sessionFile"].as_str().map(PathBuf::from);
                row.change(|report| report.session = file);
            }
            "message_update" => {
                let event = &line["assistantMessageEvent"];
                if event["type"] == "text_delta" {
                    row.member().write(event["delta"].as_str());
                }
            }
            "message_end" => {
                row.member().write(None);
                if line["message"]["role"] == "assistant" {
                    return self.answered(line["message"].take());
                }
            }
            "entry_appended" if line["entry"]["type"] == "usage" => {
                let usage = Usage::deserialize(&line["entry"]["usage"]).unwrap_or_default();
                row.change(|report| report.usage = add_usage(&report.usage, &usage));
                self.helper.control.helper_spent(&usage);
            }
            "tool_execution_start" => {
                let name = line["toolName"].as_str().unwrap_or_default();
                let none = Map::new();
                let arguments = line["args"].as_object().unwrap_or(&none);
                let describer = self.helper.control.tools().describer();
                let title = describer.describe(name, arguments).title.map(|title| title.into_owned());
                let doing = plain::text(title.as_deref().unwrap_or(name).as_bytes());
                row.change(|report| report.doing = doing.lines().next().unwrap_or_default().to_owned());
            }
            "auto_retry_start" => {
                let why = line["errorMessage"].as_str().unwrap_or_default().to_owned();
                row.change(|report| report.doing = format!("trying again: {why}"));
            }
            "limit_reached" => {
                self.last.failure = line["reason"].as_str().map(|reason| format!("It was ended: {reason}"))
            }
            "error" => self.last.failure = line["error"].as_str().map(str::to_owned),
            "agent_settled" => return self.settled(),
            "tool_call_request" => self.called(line, scope),
            "tool_call_cancel" => {
                let call = line["id"].as_str().and_then(|id| self.nested.remove(id));
                call.iter().for_each(CancelToken::cancel);
            }
            "extension_ui_request" => self.asked(line, scope),
            _ => {}
        }
        Ok(())
    }

    /// Counts an answer towards the limits of the session.
    fn answered(&mut self, message: Value) -> Result<(), End> {
        let usage = Usage::deserialize(&message["usage"]).unwrap_or_default();
        let blocks = message["content"].as_array().into_iter().flatten();
        let text: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let text = text.join("\n");
        if !text.trim().is_empty() {
            self.last.text = text;
        }
        let reason = message["stopReason"].as_str().unwrap_or_default();
        self.last.failure = matches!(reason, "error" | "aborted")
            .then(|| message["errorMessage"].as_str().unwrap_or(reason).to_owned());
        let turns = self.helper.row.change(|report| {
            report.spend(&usage);
            report.turns
        });
        if let Some(limit) = self.helper.control.helper_turn_ended(&usage) {
            // It holds for all helpers of the call.
            let reason = format!("A limit of the session was reached: {limit}");
            return Err(End::Failed(reason));
        }
        if turns == self.soft {
            let _ = self.client.send("steer", json!({"message": SOFT_LIMIT}));
        }
        Ok(())
    }

    fn settled(&mut self) -> Result<(), End> {
        if self.yielded.is_some() || self.last.failure.is_some() || self.reminders == REMINDERS_MAX {
            return Err(End::Settled);
        }
        self.reminders += 1;
        let _ = self.client.send("prompt", json!({"message": REMINDER}));
        Ok(())
    }

    /// Handles a call of a tool that the helper has from here.
    fn called<'s>(&mut self, mut line: Value, scope: &'s Scope<'s, '_>)
    where
        'h: 's,
    {
        let Value::Object(arguments) = line["arguments"].take() else {
            return;
        };
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        if line["toolName"] != task::NAME {
            let answer = match r#yield::read(&arguments) {
                Ok(yielded) => {
                    self.yielded = Some(yielded);
                    json!({"content": "Your result was taken.", "terminate": true})
                }
                Err(fault) => json!({"content": fault, "isError": true}),
            };
            let _ = self.send(&response("tool_call_response", &id, answer));
            return;
        }
        let (helper, cancel, outbox) = (self.helper, self.ended.child(), self.outbox.clone());
        self.nested.insert(id.clone(), cancel.clone());
        let work = move || {
            let orders = Orders {
                depth: helper.depth + 1,
                is_allowed: &|name| helper.agent.may_spawn(name),
                update: &|reports| {
                    helper.row.change(|report| report.doing = waits_for(reports));
                },
                cancel: &cancel,
                cwd: helper.cwd,
                copies: helper.copies,
                call: &id,
            };
            let reports = helper.slot.lend(&cancel, || helper.team.run(&Task::all(&arguments), &orders));
            let content = super::report::result(&reports.unwrap_or_default()).content;
            let _ = outbox.send(response("tool_call_response", &id, json!({"content": content})));
        };
        // Without a thread the call is not answered, and ends with the helper.
        let _ = Thread::named("helper-task").start_in(scope, work);
    }

    /// Passes a question of the helper to the session's approver, with the helper's name.
    fn asked<'s>(&mut self, mut line: Value, scope: &'s Scope<'s, '_>)
    where
        'h: 's,
    {
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        let (tool, Value::Object(arguments)) = (line["toolName"].take(), line["arguments"].take()) else {
            let _ = self.send(&response("extension_ui_response", &id, json!({"cancelled": true})));
            return;
        };
        let call = format!("{}/{}", self.helper.name, line["toolCallId"].as_str().unwrap_or_default());
        let (helper, cancel, outbox) = (self.helper, self.ended.clone(), self.outbox.clone());
        let work = move || {
            let name = tool.as_str().unwrap_or_default();
            let all = helper.control.tools().all();
            let known = all.iter().map(|(tool, _)| tool.info()).find(|info| info.spec.name == name).cloned();
            let info = known.unwrap_or_else(|| ToolInfo {
                spec: ToolSpec { name: name.to_owned(), ..ToolSpec::default() },
                ..ToolInfo::default()
            });
            let original = original(&Value::Object(arguments.clone()), helper.copies);
            let question = Question {
                helper: Some(helper.name),
                original: original.as_object(),
                ..Question::new(&call, &info, &arguments)
            };
            let answer = match helper.control.approve(question, &cancel) {
                Decision::Allow | Decision::AllowAlways(_) => json!({"value": "Allow"}),
                Decision::Change(arguments) => {
                    json!({"value": "Change the arguments", "arguments": arguments})
                }
                Decision::Deny(reason) => {
                    // The helper puts these words before the reason itself.
                    let reason = reason.filter(|reason| reason != DENIED);
                    let reason = reason.map(|reason| match reason.strip_prefix(DENIED) {
                        Some(why) => why.trim_start_matches(": ").to_owned(),
                        None => reason,
                    });
                    json!({"value": "Deny", "reason": reason})
                }
            };
            let _ = outbox.send(response("extension_ui_response", &id, answer));
        };
        // Without a thread the question is not answered, and the helper waits until it is aborted.
        let _ = Thread::named("helper-ask").start_in(scope, work);
    }

    /// Ends the process, and writes the report.
    fn conclude(self, end: End, errors: &Mutex<Vec<u8>>, mut notes: Vec<String>) {
        let Self { helper, client, yielded, last, .. } = self;
        let closed = client.close();
        let wanted = helper.schema.and_then(|schema| Wanted::parse(&schema.to_string()).ok());
        let (status, text, data) = match (end, yielded, last.failure) {
            (End::Failed(reason), ..) => {
                notes.push(reason);
                (Status::Failed, last.text, None)
            }
            (_, Some(Yielded::Text(text)), _) => (Status::Done, text, None),
            (_, Some(Yielded::Data(data)), _) => {
                let text = serde_json::to_string_pretty(&data).unwrap_or_default();
                (Status::Done, text, Some(data))
            }
            (_, Some(Yielded::Failure(why)), _) => {
                notes.push("The helper gave up".into());
                (Status::Failed, why, None)
            }
            (End::Aborted, ..) => {
                notes.push("It was aborted; this is its last text".into());
                (Status::Aborted, last.text, None)
            }
            (End::Gone, ..) => {
                let errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
                let said = plain::text(&errors);
                let how = closed.map_or_else(|error| error.to_string(), |status| status.to_string());
                let said = said.trim();
                let colon = if said.is_empty() { "" } else { ": " };
                notes.push(format!("The helper's process ended ({how}){colon}{said}"));
                (Status::Failed, last.text, None)
            }
            (End::Settled, None, Some(failure)) => {
                notes.push(failure);
                (Status::Failed, last.text, None)
            }
            (End::Settled, None, None) => {
                notes.push("The helper gave no result; this is its last text".into());
                let data = wanted.map(|wanted| wanted.check(&last.text));
                match data {
                    None => (Status::Done, last.text, None),
                    Some(Ok(data)) => (Status::Done, last.text, Some(data)),
                    Some(Err(fault)) => {
                        notes.push(fault);
                        (Status::Failed, last.text, None)
                    }
                }
            }
        };
        helper.row.change(|report: &mut Report| {
            report.doing.clear();
            (report.status, report.text, report.data) = (status, text, data);
            report.note = (!notes.is_empty()).then(|| notes.join(". "));
        });
    }
}

/// The arguments of a call, with the paths that those in copies stand for.
fn original(value: &Value, copies: &[Original]) -> Value {
    match value {
        Value::String(text) => copies.iter().fold(text.clone(), |text, copy| copy.text(&text)).into(),
        Value::Array(values) => values.iter().map(|value| original(value, copies)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), original(value, copies))).collect()
        }
        other => other.clone(),
    }
}

fn waits_for(reports: &[Report]) -> String {
    let open = reports.iter().filter(|report| matches!(report.status, Status::Waiting | Status::Running));
    let names: Vec<&str> = open.map(|report| report.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!("waits for {}", names.join(", ")) }
}

fn response(kind: &str, id: &str, mut fields: Value) -> Value {
    fields["type"] = kind.into();
    fields["id"] = id.into();
    fields
}
