//! The loop against a scripted model and tools made for the occasion.

use super::*;
use crate::agent::queue::{Queue, QueueMode};
use crate::agent::tool::{Invocation, ToolError, ToolInfo, ToolOutput};
use crate::llm::event::ErrorKind;
use crate::llm::message::{Content, Message, ToolSpec, UserMessage};
use crate::llm::protocol::{Api, Call, Gone, Source};
use crate::llm::stream;
use crossbeam_channel::{Receiver, Sender, bounded};
use proptest::prelude::*;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;

/// One answer of the scripted model.
#[derive(Clone, Debug)]
enum Reply {
    Text(&'static str),
    /// Calls of these tools; a call's id is the tool's name and its place.
    Calls(Vec<&'static str>),
    /// Calls as in `Calls`, in an answer that the output limit cut.
    Cut(Vec<&'static str>),
    Fail,
    /// Half a word, then nothing until the abort.
    Hang,
}

#[derive(Default)]
struct Script(Mutex<VecDeque<Reply>>);

impl Source for Script {
    fn run(&self, call: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>) {
        assert_legal(&call.context.messages);
        let mut say = |event| drop(emit(event));
        let text = |text: &str| {
            [
                AssistantEvent::TextStart { index: 0 },
                AssistantEvent::TextDelta { index: 0, delta: text.to_owned() },
                AssistantEvent::TextEnd { index: 0, signature: None },
            ]
        };
        let calls = |names: &[&str]| -> Vec<AssistantEvent> {
            let each = names.iter().enumerate().flat_map(|(index, name)| {
                let (id, name) = (format!("{name}{index}"), (*name).to_owned());
                [
                    AssistantEvent::ToolCallStart { index, id, name },
                    AssistantEvent::ToolCallDelta { index, delta: "{\"x\":\"1\"}".to_owned() },
                    AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature: None },
                ]
            });
            each.collect()
        };
        let reply = self.0.lock().unwrap().pop_front().unwrap_or(Reply::Text("end"));
        say(AssistantEvent::Start);
        let end = match &reply {
            Reply::Text(said) => {
                text(said).into_iter().for_each(&mut say);
                AssistantEvent::Done { reason: StopReason::Stop }
            }
            Reply::Calls(names) => {
                calls(names).into_iter().for_each(&mut say);
                AssistantEvent::Done { reason: StopReason::ToolUse }
            }
            Reply::Cut(names) => {
                calls(names).into_iter().for_each(&mut say);
                AssistantEvent::Done { reason: StopReason::Length }
            }
            Reply::Fail => AssistantEvent::Error(StreamError::new(ErrorKind::Provider, "no")),
            Reply::Hang => {
                text("half").into_iter().take(2).for_each(&mut say);
                let _ = call.cancel.receiver().recv();
                AssistantEvent::Error(StreamError::aborted())
            }
        };
        say(end);
    }
}

/// Every call answered exactly once, before anything else is said.
fn assert_legal(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::ToolResult(result) => {
                let at = open.iter().position(|id| *id == result.tool_call_id);
                open.remove(at.unwrap_or_else(|| panic!("a result without a call: {messages:#?}")));
            }
            Message::Assistant(answer) => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                open.extend(answer.tool_calls().map(|call| call.id.clone()));
            }
            _ => assert!(open.is_empty(), "calls without results: {open:?}"),
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

type Work = Box<dyn Fn(&Invocation<'_>) -> Result<ToolOutput, ToolError> + Send + Sync>;

struct TestTool {
    info: ToolInfo,
    work: Work,
}

impl Tool for TestTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        (self.work)(call)
    }
}

fn tool(
    name: &str,
    work: impl Fn(&Invocation<'_>) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> TestTool {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    let spec = ToolSpec { name: name.to_owned(), parameters, ..ToolSpec::default() };
    TestTool { info: ToolInfo { spec, ..ToolInfo::default() }, work: Box::new(work) }
}

/// The tools that most tests use.
fn tools() -> Vec<Arc<dyn Tool>> {
    let stop = |_: &Invocation<'_>| Ok(ToolOutput { terminate: true, ..ToolOutput::text("stop") });
    let wait = |call: &Invocation<'_>| {
        let _ = call.cancel.receiver().recv();
        Err(ToolError::aborted())
    };
    let mut alone = tool("alone", |_| Ok(ToolOutput::text("alone")));
    alone.info.sequential = true;
    vec![
        Arc::new(tool("ok", |call| Ok(ToolOutput::text(format!("x={}", call.arguments["x"]))))),
        Arc::new(tool("bad", |_| Err(ToolError::new("broken")))),
        Arc::new(tool("panic", |_| panic!("inside a tool"))),
        Arc::new(tool("stop", stop)),
        Arc::new(tool("wait", wait)),
        Arc::new(alone),
    ]
}

/// A host that writes down what happens, in short words.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    messages: Arc<Vec<AgentMessage>>,
    steering: Queue,
    follow_up: Queue,
    /// Cancels this token when a line begins so.
    cancel_at: Option<(&'static str, CancelToken)>,
    fail_at: Option<&'static str>,
    /// What the model says.
    script: Arc<Script>,
}

impl Host for Notes {
    fn messages(&self) -> Arc<Vec<AgentMessage>> {
        self.messages.clone()
    }

    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal> {
        if let AgentEvent::MessageEnd { message } = event {
            Arc::make_mut(&mut self.messages).push((*message).clone());
        }
        let line = match event {
            AgentEvent::AgentStart => "run".to_owned(),
            AgentEvent::AgentEnd { messages, .. } => format!("/run {}", messages.len()),
            AgentEvent::TurnStart => "turn".to_owned(),
            AgentEvent::TurnEnd { tool_results, .. } => format!("/turn {}", tool_results.len()),
            AgentEvent::MessageStart { .. } | AgentEvent::PromptProgress { .. } => return Ok(()),
            AgentEvent::MessageUpdate { event: AssistantEvent::TextDelta { delta, .. }, .. } => {
                format!("+{delta}")
            }
            AgentEvent::MessageUpdate { .. } => return Ok(()),
            AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } => {
                format!("answer {:?}", answer.stop_reason)
            }
            AgentEvent::MessageEnd { message } => format!("{} {}", message.role(), message.text()),
            AgentEvent::ToolStart { id, .. } => format!("start {id}"),
            AgentEvent::ToolUpdate { id, .. } => format!("update {id}"),
            AgentEvent::ToolEnd { id, is_error, .. } => {
                format!("end {id}{}", if *is_error { " !" } else { "" })
            }
        };
        let begins = |part: &str| line.starts_with(part);
        if let Some((part, token)) = &self.cancel_at
            && begins(part)
        {
            token.cancel();
        }
        let fails = self.fail_at.is_some_and(begins);
        self.lines.push(line);
        if fails { Err(Fatal("the disk is full".into())) } else { Ok(()) }
    }

    fn announce(&mut self, _: &Agent, _: &mut Vec<AgentMessage>) -> Result<(), Fatal> {
        Ok(())
    }

    fn request(&mut self, target: &Target) -> Result<Request, StreamError> {
        Ok(Request { model: target.model.clone(), options: StreamOptions::default() })
    }

    fn stream(&mut self, request: Request, context: Context, cancel: &CancelToken) -> StreamHandle {
        stream::start(Api::Source(self.script.clone()), &request.model, context, request.options, cancel)
    }

    fn steering(&mut self) -> Vec<AgentMessage> {
        self.steering.take()
    }

    fn follow_up(&mut self) -> Vec<AgentMessage> {
        self.follow_up.take()
    }
}

fn said(text: &str) -> AgentMessage {
    AgentMessage::User(Arc::new(UserMessage::new(Content::Text(text.into()))))
}

/// An agent whose model plays `replies`, which `notes` hold.
fn agent(notes: &mut Notes, replies: impl IntoIterator<Item = Reply>) -> Agent {
    notes.script = Arc::new(Script(Mutex::new(replies.into_iter().collect())));
    Agent { model: Arc::default(), thinking: ThinkingLevel::Off, tools: tools(), sequential: false }
}

/// Runs "hi" and checks what was noted.
#[track_caller]
fn check(replies: impl IntoIterator<Item = Reply>, mut notes: Notes, expected: &[&str]) {
    let mut agent = agent(&mut notes, replies);
    let cancel = notes.cancel_at.as_ref().map_or_else(CancelToken::new, |(_, token)| token.clone());
    run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &cancel).unwrap();
    assert_eq!(notes.lines, expected);
}

#[test]
fn an_answer_without_calls_ends_the_run() {
    check(
        [Reply::Text("hello")],
        Notes::default(),
        &["run", "turn", "user hi", "+hello", "answer Stop", "/turn 0", "/run 2"],
    );
}

#[test]
fn results_go_back_to_the_model() {
    check(
        [Reply::Calls(vec!["ok"]), Reply::Text("done")],
        Notes::default(),
        &[
            "run",
            "turn",
            "user hi",
            "answer ToolUse",
            "start ok0",
            "end ok0",
            "toolResult x=1",
            "/turn 1",
            "turn",
            "+done",
            "answer Stop",
            "/turn 0",
            "/run 4",
        ],
    );
}

#[test]
fn calls_that_cannot_run_are_answered_too() {
    let mut notes = Notes::default();
    let mut agent = agent(&mut notes, [Reply::Calls(vec!["nope", "bad", "panic"])]);
    run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &CancelToken::new()).unwrap();
    let results: Vec<&str> = notes.lines.iter().filter_map(|line| line.strip_prefix("toolResult ")).collect();
    assert_eq!(results[0], "Tool nope not found");
    assert_eq!(results[1], "broken");
    assert!(results[2].contains("panic"), "{results:?}");
    assert_eq!(notes.lines.iter().filter(|line| line.ends_with(" !")).count(), 3);
}

#[test]
fn one_sequential_tool_makes_the_batch_run_call_by_call() {
    check(
        [Reply::Calls(vec!["ok", "alone"])],
        Notes::default(),
        &[
            "run",
            "turn",
            "user hi",
            "answer ToolUse",
            "start ok0",
            "end ok0",
            "toolResult x=1",
            "start alone1",
            "end alone1",
            "toolResult alone",
            "/turn 2",
            "turn",
            "+end",
            "answer Stop",
            "/turn 0",
            "/run 5",
        ],
    );
}

#[test]
fn ends_come_as_they_happen_and_results_in_the_order_of_the_calls() {
    let (open, gate): (Sender<()>, Receiver<()>) = bounded(1);
    let mut notes = Notes::default();
    let mut agent = agent(&mut notes, [Reply::Calls(vec!["slow", "fast"])]);
    agent.tools.push(Arc::new(tool("slow", move |_| {
        let _ = gate.recv();
        Ok(ToolOutput::text("slow"))
    })));
    agent.tools.push(Arc::new(tool("fast", move |call| {
        (call.update)(ToolOutput::text("soon"));
        Ok(ToolOutput::text("fast"))
    })));
    struct Opens(Notes, Option<Sender<()>>);
    impl Host for Opens {
        fn messages(&self) -> Arc<Vec<AgentMessage>> {
            self.0.messages()
        }
        fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal> {
            if matches!(event, AgentEvent::ToolEnd { name: "fast", .. }) {
                self.1.take();
            }
            self.0.event(event)
        }
        fn announce(&mut self, _: &Agent, _: &mut Vec<AgentMessage>) -> Result<(), Fatal> {
            Ok(())
        }
        fn request(&mut self, target: &Target) -> Result<Request, StreamError> {
            self.0.request(target)
        }
        fn stream(&mut self, request: Request, context: Context, cancel: &CancelToken) -> StreamHandle {
            self.0.stream(request, context, cancel)
        }
        fn steering(&mut self) -> Vec<AgentMessage> {
            Vec::new()
        }
        fn follow_up(&mut self) -> Vec<AgentMessage> {
            Vec::new()
        }
    }
    let mut host = Opens(notes, Some(open));
    run(&mut agent, Input::Prompt(vec![said("hi")]), &mut host, &CancelToken::new()).unwrap();
    assert_eq!(
        host.0.lines[4..11],
        [
            "start slow0",
            "start fast1",
            "update fast1",
            "end fast1",
            "end slow0",
            "toolResult slow",
            "toolResult fast"
        ]
    );
}

#[test]
fn a_batch_ends_the_run_only_when_every_result_asks_for_it() {
    let turns = |calls: Vec<&'static str>| {
        let mut notes = Notes::default();
        let mut agent = agent(&mut notes, [Reply::Calls(calls)]);
        run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &CancelToken::new()).unwrap();
        notes.lines.iter().filter(|line| *line == "turn").count()
    };
    assert_eq!(turns(vec!["stop", "stop"]), 1);
    assert_eq!(turns(vec!["stop", "ok"]), 2);
}

#[test]
fn an_answer_that_was_cut_runs_nothing() {
    let mut notes = Notes::default();
    let mut agent = agent(&mut notes, [Reply::Cut(vec!["panic"])]);
    run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &CancelToken::new()).unwrap();
    assert!(notes.lines.iter().any(|line| line.contains("hit the output token limit")), "{:?}", notes.lines);
}

#[test]
fn a_failed_answer_ends_the_run() {
    let mut notes = Notes::default();
    let mut agent = agent(&mut notes, [Reply::Fail, Reply::Text("never")]);
    let failure = run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &CancelToken::new()).unwrap();
    assert_eq!(notes.lines, ["run", "turn", "user hi", "answer Error", "/turn 0", "/run 2"]);
    assert_eq!(failure.unwrap().kind, ErrorKind::Provider);
}

#[test]
fn an_abort_while_the_answer_streams_keeps_what_came() {
    let notes = Notes { cancel_at: Some(("+half", CancelToken::new())), ..Notes::default() };
    check([Reply::Hang], notes, &["run", "turn", "user hi", "+half", "answer Aborted", "/turn 0", "/run 2"]);
}

#[test]
fn an_abort_while_tools_run_answers_every_call() {
    for calls in [vec!["wait", "wait", "ok"], vec!["wait", "alone", "ok"]] {
        let token = CancelToken::new();
        let mut notes = Notes { cancel_at: Some(("start wait0", token.clone())), ..Notes::default() };
        let mut agent = agent(&mut notes, [Reply::Calls(calls.clone())]);
        run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &token).unwrap();
        let results = notes.lines.iter().filter(|line| line.starts_with("toolResult")).count();
        assert_eq!(results, 3, "{calls:?}: {:?}", notes.lines);
        assert_eq!(notes.lines.iter().filter(|line| *line == "answer Aborted").count(), 1);
        assert_legal(&message::to_llm(&notes.messages));
    }
}

#[test]
fn waiting_messages_have_their_moments() {
    let waiting = |mode, texts: &[&str]| {
        let mut queue = Queue::new(mode);
        texts.iter().for_each(|text| queue.push(said(text)));
        queue
    };
    let notes = Notes {
        steering: waiting(QueueMode::OneAtATime, &["s1", "s2"]),
        follow_up: waiting(QueueMode::All, &["f1", "f2"]),
        ..Notes::default()
    };
    check(
        [Reply::Calls(vec!["ok"]), Reply::Text("a"), Reply::Text("b")],
        notes,
        &[
            "run",
            "turn",
            "user hi",
            "user s1",
            "answer ToolUse",
            "start ok0",
            "end ok0",
            "toolResult x=1",
            "/turn 1",
            "turn",
            "user s2",
            "+a",
            "answer Stop",
            "/turn 0",
            "turn",
            "user f1",
            "user f2",
            "+b",
            "answer Stop",
            "/turn 0",
            "/run 9",
        ],
    );
}

#[test]
fn a_run_can_go_on_without_a_prompt() {
    let mut notes = Notes::default();
    let mut agent = agent(&mut notes, [Reply::Text("a"), Reply::Text("b")]);
    let token = CancelToken::new();
    let error = run(&mut agent, Input::Continue, &mut notes, &token).unwrap_err();
    assert_eq!(error.0, "Cannot continue: no messages in context");
    Arc::make_mut(&mut notes.messages).push(said("hi"));
    run(&mut agent, Input::Continue, &mut notes, &token).unwrap();
    assert_eq!(notes.lines, ["run", "turn", "+a", "answer Stop", "/turn 0", "/run 1"]);
    let error = run(&mut agent, Input::Continue, &mut notes, &token).unwrap_err();
    assert_eq!(error.0, "Cannot continue from message role: assistant");
    notes.follow_up.push(said("more"));
    run(&mut agent, Input::Continue, &mut notes, &token).unwrap();
    assert!(notes.lines.contains(&"user more".to_owned()));
}

#[test]
fn a_host_that_fails_ends_the_run_and_its_tools() {
    for part in ["start wait0", "answer", "user", "end ok1"] {
        let mut notes = Notes { fail_at: Some(part), ..Notes::default() };
        let mut agent = agent(&mut notes, [Reply::Calls(vec!["wait", "ok"])]);
        let error = run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &CancelToken::new());
        assert_eq!(error.unwrap_err().0, "the disk is full", "{part}");
        assert!(notes.lines.last().unwrap().starts_with(part), "{part}: {:?}", notes.lines);
    }
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let name = prop::sample::select(vec!["ok", "bad", "panic", "stop", "alone", "nope"]);
    let names = || prop::collection::vec(name.clone(), 1..5);
    prop_oneof![
        Just(Reply::Text("text")),
        names().prop_map(Reply::Calls),
        names().prop_map(Reply::Cut),
        Just(Reply::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the model does, and whenever the user aborts, starts and ends are balanced and the
    /// conversation is one that a provider takes.
    #[test]
    fn every_script_ends_in_order(
        replies in prop::collection::vec(any_reply(), 0..6),
        steering in 0usize..3,
        abort in prop::option::of(prop::sample::select(vec!["user", "+", "start ok", "end", "toolResult", "/turn", "turn"])),
    ) {
        let token = CancelToken::new();
        let mut notes = Notes { cancel_at: abort.map(|at| (at, token.clone())), ..Notes::default() };
        (0..steering).for_each(|n| notes.steering.push(said(&n.to_string())));
        let mut agent = agent(&mut notes, replies);
        run(&mut agent, Input::Prompt(vec![said("hi")]), &mut notes, &token).unwrap();
        assert_legal(&message::to_llm(&notes.messages));
        let count = |part: &str| notes.lines.iter().filter(|line| line.split(' ').next() == Some(part)).count();
        prop_assert_eq!(count("run"), 1);
        prop_assert_eq!(count("/run"), 1);
        prop_assert!(notes.lines.last().unwrap().starts_with("/run"));
        prop_assert_eq!(count("turn"), count("/turn"));
        prop_assert_eq!(count("turn"), count("answer"));
        prop_assert_eq!(count("start"), count("end"));
        prop_assert_eq!(count("start"), count("toolResult"));
    }
}
