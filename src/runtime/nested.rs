//! Work that a part of the session asks for on its own: a tool inside a tool call, an answer of a model outside the
//! conversation, messages that no user typed.

use super::conductor::note;
use super::control::{Begin, Control, Streaming, Taken};
use super::event::{Event, Listener};
use super::hook::InputSource;
use super::session::Session;
use super::task::{Ask, Delivery, Task};
use super::tree::Move;
use crate::agent::event::AgentEvent;
use crate::agent::message::{self, AgentMessage};
use crate::agent::run::{Fatal, Refusal};
use crate::agent::schema;
use crate::agent::tool::{Invocation, ToolError, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::context::Context;
use crate::llm::message::{
    AssistantMessage, Block, Content, Message, SystemMessage, ToolCall, ToolSpec, now_ms,
};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::stream::StreamHandle;
use crate::session::entry::Custom;
use crate::wire;
use crossbeam_channel::{bounded, select};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;

/// A request outside the conversation.
pub struct Nested {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub max_tokens: Option<u64>,
    pub system_prompt: Option<String>,
    pub tools: Vec<ToolSpec>,
    pub messages: Vec<AgentMessage>,
}

impl Control {
    /// Begins a call of a tool of the session. If the call with the id `parent` makes it, there are events of it, which
    /// precede the end of that call.
    pub fn begin_call(
        &self,
        id: String,
        parent: Option<&str>,
        name: &str,
        arguments: Map<String, Value>,
        cancel: &CancelToken,
    ) -> NestedCall {
        let call = ToolCall { id, name: name.to_owned(), arguments, ..ToolCall::default() };
        let (parent_id, cancel) = (parent.map(str::to_owned), cancel.clone());
        let begun = NestedCall { control: self.clone(), parent: parent_id, call, cancel };
        let ToolCall { id, name, arguments, .. } = &begun.call;
        begun.tell(AgentEvent::ToolStart { id, name, arguments, parent });
        begun
    }

    /// Runs a built-in tool for a tool that has taken its place. Nobody is asked and no hook runs: both were for the
    /// call that this one is a part of.
    pub fn execute_builtin(
        &self,
        id: &str,
        name: &str,
        arguments: &Map<String, Value>,
        update: &(dyn Fn(ToolOutput) + Sync),
        cancel: &CancelToken,
    ) -> (ToolOutput, bool) {
        let run = || {
            let tool = self.builtin(name).ok_or_else(|| ToolError::new(format!("Tool {name} not found")))?;
            let spec = &tool.info().spec;
            let shaped = tool.prepare(arguments.clone());
            let arguments = schema::validate(&spec.name, &spec.parameters, &shaped)?;
            let model = self.models().current();
            tool.run(&Invocation { id, arguments: &arguments, cancel, model: &model, update })
        };
        ToolOutput::of(run())
    }

    /// Asks a model outside the conversation.
    pub fn complete(&self, nested: Nested, cancel: &CancelToken) -> AssistantMessage {
        let Nested { model, thinking, max_tokens, system_prompt, tools, messages } = nested;
        let session = self.log().header().id.clone();
        let services = self.config().services.clone();
        let mut all: Vec<Message> = Vec::new();
        if system_prompt.is_some() || !tools.is_empty() {
            let system = SystemMessage {
                content: Content::Text(system_prompt.unwrap_or_default()),
                tools_added: tools,
                timestamp: now_ms(),
                ..SystemMessage::default()
            };
            all.push(Message::System(Arc::new(system)));
        }
        all.extend(message::to_llm(&messages));
        let request = services.route_direct(&model, model.clamp_thinking(thinking), &all, cancel);
        let request =
            request.and_then(|(model, thinking)| services.request(&model, thinking, &session, cancel));
        let mut stream = match request {
            Ok(mut request) => {
                let most = Some(request.model.max_tokens).filter(|most| *most > 0 && model.is_virtual());
                request.options.max_tokens =
                    max_tokens.map(|asked| most.map_or(asked, |most| asked.min(most)));
                wire::stream(&request.model, Context { messages: all }, request.options, cancel)
            }
            Err(error) => StreamHandle::failed(&model, error),
        };
        while stream.next_event().is_some() {}
        stream.finish().0
    }

    /// Gives a message to the session: queued or held during a run; else it starts one if `triggers`, or joins
    /// the conversation.
    pub fn send(&self, message: AgentMessage, delivery: Delivery, triggers: bool) -> Result<(), String> {
        let is_running = {
            let mut state = self.state();
            let is_running = state.is_running();
            match delivery {
                Delivery::NextTurn => {
                    state.next_turn.push(message);
                    return Ok(());
                }
                // No message may stand between a call and its result.
                Delivery::AfterTurn if is_running => {
                    state.after_turn.push(message);
                    return Ok(());
                }
                Delivery::AfterTurn | Delivery::Now(_) => is_running,
            }
        };
        if let Delivery::Now(streaming) = delivery {
            if is_running {
                let ui = self.ui();
                let mut emit = |event: &Event<'_>| {
                    if let Some(ui) = &ui {
                        ui.event(event);
                    }
                };
                match streaming {
                    Streaming::Steer => self.queue().steer(message, &mut emit),
                    Streaming::FollowUp => self.queue().follow_up(message, &mut emit),
                }
                return Ok(());
            }
            if triggers {
                return self.hand_over(Task::Prompt(message, streaming));
            }
        }
        // At once, so that what the sender appends next comes after it.
        self.log().append_message(&message).map_err(|error| error.to_string())?;
        if let Some(ui) = self.ui() {
            ui.event(&Event::Agent(AgentEvent::MessageStart { message: &message }));
            ui.event(&Event::Agent(AgentEvent::MessageEnd { message: &message }));
        }
        Ok(())
    }

    /// Tells the model, and the user, what has ended in the background. Starts a run if there is none.
    pub fn wake(&self, kind: &str, text: String) {
        // A session with too much to do is not told.
        let _ = self.send(note(kind, text), Delivery::Now(Streaming::FollowUp), true);
    }

    /// Tells the model something with the next prompt.
    pub fn mention(&self, kind: &str, text: String) {
        // It cannot fail: nothing is handed over.
        let _ = self.send(note(kind, text), Delivery::NextTurn, false);
    }

    /// Appends state of a part of the session, which the model does not see. Gives the id of the entry.
    pub fn append_custom(&self, custom_type: String, data: Option<Value>) -> Result<String, String> {
        let entry = self.log().append(Custom { custom_type, data, ..Custom::default() });
        let entry = entry.map_err(|error| error.to_string())?;
        if let Some(ui) = self.ui() {
            ui.event(&Event::EntryAppended { entry: &entry });
        }
        Ok(entry.id)
    }
}

/// A call of a tool that is no part of the conversation.
pub struct NestedCall {
    control: Control,
    parent: Option<String>,
    call: ToolCall,
    cancel: CancelToken,
}

impl NestedCall {
    /// Runs the tool: checked, asked about and hooked as the calls of the model are. A failure is a result, too; gives
    /// whether it is one.
    pub fn run(self, update: &(dyn Fn(ToolOutput) + Sync)) -> (ToolOutput, bool) {
        let parent = self.parent.as_deref();
        let ToolCall { id, name, arguments, .. } = &self.call;
        let update = |output: ToolOutput| {
            self.tell(AgentEvent::ToolUpdate { id, name, arguments, output: &output, parent });
            update(output);
        };
        let mut begun = None;
        let (mut output, mut is_error) = ToolOutput::of(self.run_checked(&mut begun, &update));
        let duration_ms = begun.map(|(begun, arguments): (Instant, _)| {
            let taken = begun.elapsed();
            let hooked = self.control.hooked();
            hooked.tool_result(&self.call, parent, &arguments, &mut output, &mut is_error, &self.cancel);
            u64::try_from(taken.as_millis()).unwrap_or(u64::MAX)
        });
        self.tell(AgentEvent::ToolEnd { id, name, output: &output, is_error, duration_ms, parent });
        (output, is_error)
    }

    /// Sets `begun`, with the arguments, as soon as nothing keeps the tool from running.
    fn run_checked(
        &self,
        begun: &mut Option<(Instant, Map<String, Value>)>,
        update: &(dyn Fn(ToolOutput) + Sync),
    ) -> Result<ToolOutput, ToolError> {
        let Self { control, parent, call, cancel } = self;
        if cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        let tool = control
            .callable(&call.name)
            .ok_or_else(|| ToolError::new(format!("Tool {} not found", call.name)))?;
        if let Some(reason) = control.refusal_while_planning(tool.info()) {
            return Err(ToolError::new(reason));
        }
        let shaped = tool.prepare(call.arguments.clone());
        let spec = &tool.info().spec;
        let arguments = schema::validate(&spec.name, &spec.parameters, &shaped)?;
        let arguments = control
            .hooked()
            .tool_call(call, parent.as_deref(), arguments, cancel)
            .map_err(|Refusal { reason, .. }| ToolError::new(reason))?;
        let model = control.models().current();
        *begun = Some((Instant::now(), arguments.clone()));
        tool.run(&Invocation { id: &call.id, arguments: &arguments, cancel, model: &model, update })
    }

    /// Tells of a call that another one has made.
    fn tell(&self, event: AgentEvent<'_>) {
        if self.parent.is_some() {
            let event = Event::Agent(event);
            self.control.ui().iter().for_each(|ui| ui.event(&event));
            self.control.hooked().event(&event, || Value::Null, &self.cancel);
        }
    }
}

impl Session {
    /// Runs the tasks that were handed over, until there is none.
    pub fn run_tasks(&mut self, listener: Listener<'_>) {
        while let Ok(task) = self.control().tasks().try_recv() {
            self.carry_out(task, listener);
        }
    }

    /// Does what was handed over.
    pub fn carry_out(&mut self, task: Task, listener: Listener<'_>) {
        let done = match task {
            Task::Prompt(message, streaming) => self.ask_again(message, streaming, listener),
            Task::Discover => self.discover("startup"),
            Task::Ask(ask, reply) => {
                // Who asked may have gone.
                let _ = reply.try_send(self.answer(ask, listener));
                return;
            }
        };
        if let Err(Fatal(reason)) = done {
            let _ = listener(&Event::Failed { reason: &reason });
        }
    }

    fn answer(&mut self, ask: Ask, listener: Listener<'_>) -> Result<Value, String> {
        let fault = |error: &dyn std::fmt::Display| error.to_string();
        let happened = |done: bool| json!({"cancelled": !done});
        match ask {
            Ask::New { parent, entries } => {
                self.start_with(parent, entries).map(happened).map_err(|error| fault(&error))
            }
            Ask::Switch(path) => self.open_other(&path).map(happened).map_err(|error| fault(&error)),
            Ask::ForkAt(entry) => self.fork_at(&entry).map(happened).map_err(|error| fault(&error)),
            Ask::ForkBefore(entry) => {
                let text = self.fork_before(&entry).map_err(|error| fault(&error))?;
                Ok(match text {
                    Some(text) => json!({"cancelled": false, "text": text}),
                    None => json!({"cancelled": true}),
                })
            }
            Ask::Wait => Ok(Value::Null),
            Ask::Reload => self.reload().map(|()| Value::Null).map_err(|error| fault(&error)),
            Ask::Compact { instructions } => {
                let ticket = self.control().begin_compaction()?;
                let done = self.compact(instructions.as_deref(), listener, &ticket.cancel);
                let done = done.map_err(|error| fault(&error))?;
                serde_json::to_value(done).map_err(|error| fault(&error))
            }
            Ask::Navigate { target, summarize, instructions, replace_instructions, label } => {
                let ticket = self.control().begin_compaction()?;
                let how = Move {
                    summarize,
                    instructions: instructions.as_deref(),
                    replace_instructions,
                    label: label.as_deref(),
                };
                let moved = self.navigate(&target, how, listener, &ticket.cancel);
                let moved = moved.map_err(|error| fault(&error))?;
                Ok(json!({"cancelled": moved.cancelled, "editorText": moved.editor_text}))
            }
        }
    }

    /// As [`Control::take_input`], for the session's own thread: tasks are run while others are waited for.
    pub fn take_input(
        &mut self,
        text: String,
        images: Vec<Block>,
        source: InputSource,
        listener: Listener<'_>,
    ) -> Result<Taken, Fatal> {
        if !self.control().is_looked_at(&text) {
            return Ok(Taken::Goes(text, images));
        }
        let control = self.control().clone();
        let (tasks, root) = (control.tasks().clone(), control.root().clone());
        let (tell, told) = bounded(1);
        let look = move || {
            let _ = tell.send(control.take_input(text, images, source, None, control.root()));
        };
        Thread::named("input")
            .start(look)
            .map_err(|error| Fatal(format!("Cannot start a thread: {error}")))?;
        loop {
            select! {
                recv(told) -> taken => {
                    // What was asked for while the command ran comes first.
                    self.run_tasks(listener);
                    return Ok(taken.unwrap_or(Taken::Handled));
                }
                recv(tasks) -> task => if let Ok(task) = task {
                    self.carry_out(task, listener);
                },
                recv(root.receiver()) -> _ => return Ok(Taken::Aborted),
            }
        }
    }

    /// Runs `message` as a prompt; if a run has begun meanwhile it is queued.
    fn ask_again(
        &mut self,
        message: AgentMessage,
        streaming: Streaming,
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        let taken =
            self.control().begin(Some(streaming), || message.clone(), &mut |event| drop(listener(event)));
        match taken.map_err(Fatal)? {
            Begin::Run(ticket) => self.ask(ticket, message, &mut || {}, listener),
            Begin::Queued => Ok(()),
        }
    }
}
