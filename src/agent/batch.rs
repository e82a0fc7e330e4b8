//! Runs the tool calls of one answer.
//!
//! Calls are prepared one after another, in source order. Each starts as soon as it is prepared, on a small
//! pool of threads that ends with the batch. End events are emitted as calls end; result messages follow in
//! source order. If one tool of the batch or the agent is sequential, the calls run one at a time.

use super::event::AgentEvent;
use super::message::AgentMessage;
use super::run::{Agent, Fatal, Host, Refusal};
use super::schema;
use super::tool::{Invocation, Tool, ToolError, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crate::llm::message::{AssistantMessage, Block, StopReason, ToolCall, ToolResultMessage, now_ms};
use crate::llm::model::Model;
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::{Map, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of calls that run at once. Further calls wait for a free thread.
const THREADS_MAX: usize = 16;

const SKIPPED: &str = "Skipped: the user sent a new message before this call began";

pub(super) struct Batch {
    pub results: Vec<AgentMessage>,
    /// True if the model must be sent the results.
    pub wants_answer: bool,
}

/// A call that passed its checks.
struct Prepared {
    index: usize,
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
}

struct Finished {
    output: ToolOutput,
    is_error: bool,
    /// Duration in milliseconds; `None` for a call that did not run.
    duration_ms: Option<u64>,
}

enum Note {
    Update(usize, ToolOutput),
    /// The result of a call, and its duration; `None` if the call did not run.
    End {
        index: usize,
        arguments: Map<String, Value>,
        result: Result<ToolOutput, ToolError>,
        took: Option<Duration>,
    },
}

pub(super) fn run(
    agent: &Agent,
    message: &AssistantMessage,
    host: &mut dyn Host,
    cancel: &CancelToken,
) -> Result<Batch, Fatal> {
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let sequential = agent.sequential
        || calls.iter().any(|call| find(agent, &call.name).is_some_and(|tool| tool.info().sequential));
    let mut batch = Batch { results: Vec::new(), wants_answer: false };
    let mut all_terminate = true;
    let mut keep = |host: &mut dyn Host, call: &ToolCall, finished: Finished| {
        all_terminate &= finished.output.terminate;
        super::run::add(host, &mut batch.results, result_message(call, finished))
    };
    if message.stop_reason == StopReason::Length {
        for call in &calls {
            emit_start(host, call)?;
            let finished = failed(format!(
                "Tool call \"{}\" was not executed: the response hit the output token limit, so its arguments may \
                 be truncated. Re-issue the tool call with complete arguments.",
                call.name
            ));
            emit_end(host, call, &finished)?;
            keep(host, call, finished)?;
        }
    } else if sequential {
        for (index, call) in calls.iter().enumerate() {
            let finished = if index > 0 && !cancel.is_cancelled() && host.is_interrupted() {
                emit_start(host, call)?;
                let finished = failed(SKIPPED.to_owned());
                emit_end(host, call, &finished)?;
                finished
            } else {
                run_calls(agent, &[call], host, cancel)?.remove(0)
            };
            keep(host, call, finished)?;
        }
    } else {
        let finished = run_calls(agent, &calls, host, cancel)?;
        for (call, finished) in calls.iter().zip(finished) {
            keep(host, call, finished)?;
        }
    }
    batch.wants_answer = !calls.is_empty() && !all_terminate;
    Ok(batch)
}

/// Runs `calls` in parallel. Returns one result for each, in the order of `calls`.
fn run_calls(
    agent: &Agent,
    calls: &[&ToolCall],
    host: &mut dyn Host,
    cancel: &CancelToken,
) -> Result<Vec<Finished>, Fatal> {
    // Cancels running calls if the host fails or panics.
    let ends_with_us = Ends(cancel.child());
    let cancel = &ends_with_us.0;
    let (jobs, waiting) = bounded::<Prepared>(calls.len().max(1));
    let (notes, notices) = bounded::<Note>(64);
    let model = &*agent.model;
    thread::scope(|scope| {
        let mut finished: Vec<Option<Finished>> = Vec::new();
        finished.resize_with(calls.len(), || None);
        let mut conduct = || {
            let mut threads = 0;
            for (index, call) in calls.iter().enumerate() {
                emit_start(host, call)?;
                match prepare(agent, index, call, host, cancel) {
                    Ok(prepared) => {
                        if jobs.send(prepared).is_ok() && threads < THREADS_MAX {
                            let (waiting, notes) = (waiting.clone(), notes.clone());
                            let worker = move || work(&waiting, &notes, calls, model, cancel);
                            match Thread::named("tool").start_in(scope, worker) {
                                Ok(_) => threads += 1,
                                // A running thread takes the call.
                                Err(_) if threads > 0 => {}
                                Err(error) => {
                                    let text = format!("Cannot start a thread for the tool: {error}");
                                    let immediate = failed(text);
                                    emit_end(host, call, &immediate)?;
                                    finished[index] = Some(immediate);
                                }
                            }
                        }
                    }
                    Err(immediate) => {
                        emit_end(host, call, &immediate)?;
                        finished[index] = Some(*immediate);
                    }
                }
            }
            Ok(())
        };
        let mut outcome = conduct();
        drop((jobs, waiting, notes));
        while outcome.is_ok()
            && let Ok(note) = notices.recv()
        {
            outcome = match note {
                Note::Update(index, output) => {
                    let call = calls[index];
                    let (id, name, arguments) = (call.id.as_str(), call.name.as_str(), &call.arguments);
                    host.event(&AgentEvent::ToolUpdate { id, name, arguments, output: &output, parent: None })
                }
                Note::End { index, arguments, result, took } => {
                    let mut ended = Finished { duration_ms: took.map(milliseconds), ..conclude(result) };
                    // A call that did not run has no result to look at.
                    if took.is_some() {
                        host.after_call(calls[index], &arguments, &mut ended.output, &mut ended.is_error);
                    }
                    let told = emit_end(host, calls[index], &ended);
                    finished[index] = Some(ended);
                    told
                }
            };
        }
        if outcome.is_err() {
            cancel.cancel();
            drop(notices);
        }
        outcome.map(|()| {
            finished
                .into_iter()
                .map(|ended| ended.unwrap_or_else(|| conclude(Err(ToolError::aborted()))))
                .collect()
        })
    })
}

/// Cancels a token if dropped by a panic.
struct Ends(CancelToken);

impl Drop for Ends {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.cancel();
        }
    }
}

/// Runs calls until the channel is closed.
fn work(
    waiting: &Receiver<Prepared>,
    notes: &Sender<Note>,
    calls: &[&ToolCall],
    model: &Model,
    cancel: &CancelToken,
) {
    for Prepared { index, tool, arguments } in waiting {
        // An update that is dropped because the reader is busy is replaced by a later one, which is complete.
        let update = |output| drop(notes.try_send(Note::Update(index, output)));
        let invocation =
            Invocation { id: &calls[index].id, arguments: &arguments, cancel, model, update: &update };
        let begun = (!cancel.is_cancelled()).then(Instant::now);
        let result = if begun.is_none() {
            Err(ToolError::aborted())
        } else {
            catch_unwind(AssertUnwindSafe(|| tool.run(&invocation))).unwrap_or_else(|_| {
                Err(ToolError::new(format!(
                    "The tool {} failed inside; this is a fault of the tool",
                    calls[index].name
                )))
            })
        };
        let took = begun.map(|begun| begun.elapsed());
        if notes.send(Note::End { index, arguments, result, took }).is_err() {
            return;
        }
    }
}

fn find<'a>(agent: &'a Agent, name: &str) -> Option<&'a Arc<dyn Tool>> {
    agent.tools.iter().find(|tool| tool.info().spec.name == name)
}

/// Finds the tool and checks the arguments. `Err` is the result of a call that must not run.
fn prepare(
    agent: &Agent,
    index: usize,
    call: &ToolCall,
    host: &mut dyn Host,
    cancel: &CancelToken,
) -> Result<Prepared, Box<Finished>> {
    if cancel.is_cancelled() {
        return Err(Box::new(conclude(Err(ToolError::aborted()))));
    }
    let tool =
        find(agent, &call.name).ok_or_else(|| refused(format!("Tool {} not found", call.name)))?.clone();
    if let Some(error) = &call.arguments_error {
        return Err(refused(format!("Invalid arguments for tool \"{}\": {error}", call.name)));
    }
    let spec = &tool.info().spec;
    let shaped = tool.prepare(call.arguments.clone());
    let arguments = schema::validate(&spec.name, &spec.parameters, &shaped).map_err(refused)?;
    let arguments = host.before_call(call, arguments).map_err(|Refusal { reason, terminate }| {
        let mut refused = refused(reason);
        refused.output.terminate = terminate;
        refused
    })?;
    if cancel.is_cancelled() {
        return Err(Box::new(conclude(Err(ToolError::aborted()))));
    }
    Ok(Prepared { index, tool, arguments })
}

fn conclude(result: Result<ToolOutput, ToolError>) -> Finished {
    let (output, is_error) = ToolOutput::of(result);
    Finished { output, is_error, duration_ms: None }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn failed(message: String) -> Finished {
    conclude(Err(ToolError::new(message)))
}

/// Makes the result of a call that must not run.
fn refused(message: String) -> Box<Finished> {
    Box::new(failed(message))
}

fn emit_start(host: &mut dyn Host, call: &ToolCall) -> Result<(), Fatal> {
    let ToolCall { id, name, arguments, .. } = call;
    host.event(&AgentEvent::ToolStart { id, name, arguments, parent: None })
}

fn emit_end(host: &mut dyn Host, call: &ToolCall, finished: &Finished) -> Result<(), Fatal> {
    let (id, name) = (call.id.as_str(), call.name.as_str());
    let Finished { output, is_error, duration_ms } = finished;
    let (is_error, duration_ms) = (*is_error, *duration_ms);
    host.event(&AgentEvent::ToolEnd { id, name, output, is_error, duration_ms, parent: None })
}

fn result_message(call: &ToolCall, finished: Finished) -> AgentMessage {
    let Finished { output, is_error, duration_ms } = finished;
    let content: Vec<Block> = output.content;
    let nested = output.nested_calls.map(|calls| ("nestedCalls".to_owned(), calls));
    AgentMessage::ToolResult(Arc::new(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        details: output.details,
        usage: output.usage,
        is_error,
        duration_ms,
        timestamp: now_ms(),
        extra: nested.into_iter().collect(),
    }))
}
