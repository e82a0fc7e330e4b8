//! The models of this provider, seen from a stream.

use super::*;
use crate::base::cancel::CancelToken;
use crate::llm::context::Context;
use crate::llm::event::{Fold, StreamError};
use crate::llm::message::{
    AssistantMessage, StopReason, SystemMessage, ToolResultMessage, ToolSpec, UserMessage, text_of,
};
use crate::llm::options::{CacheRetention, StreamOptions};

/// A conversation with one of the models.
pub(super) struct Run {
    model: Model,
    pub context: Context,
    pub options: StreamOptions,
    pub cancel: CancelToken,
}

/// What came of a request.
pub(super) struct Played {
    pub message: AssistantMessage,
    pub deltas: Vec<String>,
    pub error: Option<StreamError>,
}

pub(super) fn text(message: &AssistantMessage) -> String {
    text_of(&message.content)
}

impl Run {
    pub fn new(id: &str) -> Self {
        let model = models().into_iter().find(|model| model.id == id).unwrap();
        Self {
            model,
            context: Context::default(),
            options: StreamOptions::default(),
            cancel: CancelToken::new(),
        }
    }

    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.options.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn with_session(mut self, id: &str) -> Self {
        self.options.session_id = Some(id.to_owned());
        self
    }

    fn with_tools(mut self, names: &[&str]) -> Self {
        let spec = |name: &&str| ToolSpec { name: (*name).to_owned(), ..ToolSpec::default() };
        let system =
            SystemMessage { tools_added: names.iter().map(spec).collect(), ..SystemMessage::default() };
        self.context.messages.push(Message::System(Arc::new(system)));
        self
    }

    pub fn said(mut self, text: &str) -> Self {
        let message = UserMessage::new(Content::Text(text.to_owned()));
        self.context.messages.push(Message::User(Arc::new(message)));
        self
    }

    pub fn answered(mut self, text: &str) -> Self {
        let content = vec![Block::text(text)];
        self.push(AssistantMessage { content, ..AssistantMessage::default() });
        self
    }

    fn push(&mut self, message: AssistantMessage) {
        self.context.messages.push(Message::Assistant(Arc::new(message)));
    }

    fn result(&mut self, tool: &str, text: &str, is_error: bool) {
        let result = ToolResultMessage {
            tool_name: tool.to_owned(),
            content: vec![Block::text(text)],
            is_error,
            ..ToolResultMessage::default()
        };
        self.context.messages.push(Message::ToolResult(Arc::new(result)));
    }

    /// Sends the conversation, and holds the order of events against the contract.
    #[track_caller]
    pub fn play(&self) -> Played {
        let call =
            Call { model: &self.model, context: &self.context, options: &self.options, cancel: &self.cancel };
        let mut events = Vec::new();
        Faux.run(&call, &mut |event| {
            events.push(event);
            Ok(())
        });
        let last =
            |event: &AssistantEvent| matches!(event, AssistantEvent::Done { .. } | AssistantEvent::Error(_));
        assert_eq!(events.iter().filter(|event| last(event)).count(), 1, "{events:?}");
        assert!(last(events.last().unwrap()));
        assert!(events[0] == AssistantEvent::Start || events.len() == 1);
        let mut fold = Fold::new(AssistantMessage::default());
        let (mut deltas, mut error) = (Vec::new(), None);
        for event in &events {
            fold.apply(event);
            match event {
                AssistantEvent::TextDelta { delta, .. } => deltas.push(delta.clone()),
                AssistantEvent::Error(why) => error = Some(why.clone()),
                _ => {}
            }
        }
        Played { message: fold.into_message(), deltas, error }
    }
}

#[test]
fn the_models_are_what_is_promised() {
    for model in models() {
        assert_eq!(
            (model.api.as_str(), model.provider.as_str(), model.context_window),
            ("faux", "faux", 200_000)
        );
        assert!(model.reasoning && model.takes_images());
        let mut usage = crate::llm::message::Usage { input: 1000, output: 1000, ..Default::default() };
        model.price(&mut usage);
        assert_eq!(usage.cost.total, 0.0);
    }
}

#[test]
fn echo_says_what_was_said_in_pieces() {
    let said = "twelve chars and äöü some more";
    let played = Run::new("echo").said("first").answered("x").said(said).play();
    assert_eq!(text(&played.message), said);
    assert_eq!(played.deltas.len(), 3);
    assert_eq!(played.message.stop_reason, StopReason::Stop);
    assert_eq!(played.message.usage.output, 8);
    assert!(played.message.usage.input > 0);
    assert_eq!(text(&Run::new("echo").play().message), "");

    let mut run = Run::new("echo");
    run.options.thinking = ThinkingLevel::Low;
    let content = Content::Blocks(vec![Block::text("see"), Block::image("QUJD", "image/png")]);
    run.context.messages.push(Message::User(Arc::new(UserMessage::new(content))));
    let played = run.play();
    assert_eq!(text(&played.message), "see\n[image/png, about 3 bytes]");
    assert!(matches!(played.message.content[0], Block::Thinking(_)));
}

#[test]
fn a_request_that_extends_the_last_one_reads_it_from_the_cache() {
    let run = Run::new("echo").with_session("cache-a").said("a question");
    let first = run.play().message.usage;
    assert_eq!(first.cache_read, 0);
    let mut run = run.answered("an answer").said("and another question");
    let second = run.play().message.usage;
    assert_eq!(second.cache_read, first.input);
    assert!(second.input > 0);
    assert_eq!(second.total_tokens, second.input + second.cache_read + second.output);
    // Another conversation, or no cache, reads nothing.
    run.options.session_id = Some("cache-b".to_owned());
    assert_eq!(run.play().message.usage.cache_read, 0);
    run.options.cache = CacheRetention::None;
    assert_eq!(run.play().message.usage.cache_read, 0);
    // A change at the start loses all of it.
    let changed = Run::new("echo").with_session("cache-a").with_tools(&["ls"]).said("a question");
    assert!(changed.play().message.usage.cache_read < 10);
}

#[test]
fn a_cancelled_answer_is_aborted_and_a_reader_that_left_is_left_alone() {
    let run = Run::new("echo").said("hello");
    run.cancel.cancel();
    let played = run.play();
    assert_eq!(played.message.stop_reason, StopReason::Aborted);

    let run = Run::new("echo").said("hello");
    let call = Call { model: &run.model, context: &run.context, options: &run.options, cancel: &run.cancel };
    let mut count = 0;
    Faux.run(&call, &mut |_| {
        count += 1;
        Err(Gone)
    });
    assert_eq!(count, 1);
}

/// Plays the demo to its end with results from `tool`; gives the calls and all that was said.
fn demo(
    tools: &[&str],
    thinks: bool,
    tool: impl Fn(&str, &serde_json::Value) -> (String, bool),
) -> (Vec<String>, String) {
    let mut run = Run::new("demo").with_tools(tools).said("What is here?\nSecond line");
    if thinks {
        run.options.thinking = ThinkingLevel::Medium;
    }
    let (mut calls, mut said) = (Vec::new(), String::new());
    for turn in 0..4 {
        let played = run.play();
        assert_eq!(played.error, None);
        said += &text(&played.message);
        said += "\n";
        let thought = played.message.content.iter().any(|block| matches!(block, Block::Thinking(_)));
        assert_eq!(thought, thinks);
        let Some(asked) = played.message.tool_calls().next().cloned() else {
            assert_eq!(played.message.stop_reason, StopReason::Stop);
            break;
        };
        assert_eq!(played.message.stop_reason, StopReason::ToolUse);
        assert!(turn < 3, "the demo does not end");
        assert!(tools.contains(&asked.name.as_str()), "{} is not active", asked.name);
        let arguments = serde_json::Value::from(asked.arguments.clone());
        calls.push(format!("{} {arguments}", asked.name));
        let (result, is_error) = tool(&asked.name, &arguments);
        run.push(played.message);
        run.result(&asked.name, &result, is_error);
    }
    assert!(said.contains("a script, not a model"), "{said}");
    (calls, said)
}

#[test]
fn the_demo_looks_reads_and_tells() {
    let folder = |name: &str, _: &serde_json::Value| match name {
        "read" => ("\n# My Thing\n\nText.".to_owned(), false),
        _ => (".git/\n.gitignore\nCargo.toml\nREADME.md\nsrc/\n\n[5 entries]".to_owned(), false),
    };
    let (calls, said) = demo(&["read", "bash", "edit", "write"], true, folder);
    assert_eq!(calls, [r#"bash {"command":"ls -1p"}"#, r#"read {"path":"README.md","limit":20}"#]);
    for piece in ["“What is here?”", "3 files and 2 folders", "“My Thing”", "no file was changed"] {
        assert!(said.contains(piece), "{piece} is not in: {said}");
    }
    let (calls, _) = demo(&["ls", "bash", "read"], false, folder);
    assert_eq!(calls[0], r#"ls {"path":"."}"#);
}

#[test]
fn the_demo_makes_do_with_what_is_there() {
    let empty = |_: &str, _: &serde_json::Value| (String::new(), false);
    let (calls, said) = demo(&[], false, empty);
    assert!(calls.is_empty() && said.contains("--no-tools"), "{said}");
    let (calls, said) = demo(&["edit", "write"], true, empty);
    assert!(calls.is_empty() && said.contains("--no-tools"), "{said}");

    // An empty folder, as each tool tells it.
    for (tools, told) in [
        (["bash", "read"], ""),
        (["bash", "read"], "(no output)"),
        (["ls", "read"], "(empty directory)"),
        (["find", "read"], "[no matches]"),
    ] {
        let (calls, said) = demo(&tools, false, |_, _| (told.to_owned(), false));
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert!(said.contains("is empty"), "{said}");
    }

    // A shell alone; a name that a shell could misread.
    let (calls, said) = demo(&["bash"], false, |_, arguments| {
        let command = arguments["command"].as_str().unwrap();
        (if command.starts_with("ls") { "it's; rm -rf x\n" } else { "line one\n" }.to_owned(), false)
    });
    assert_eq!(calls[1], r#"bash {"command":"head -n 20 -- 'it'\\''s; rm -rf x'"}"#);
    assert!(said.contains("“line one”"), "{said}");

    // Only a reader, with and without the file that it guesses.
    for (is_error, piece) in [(false, "begins with “hello”"), (true, "did not work")] {
        let (calls, said) = demo(&["read"], false, |_, _| ("hello".to_owned(), is_error));
        assert_eq!((calls.len(), said.contains(piece)), (1, true), "{said}");
    }

    // Tools that fail.
    let (calls, said) = demo(&["ls", "read"], true, |_, _| ("no".to_owned(), true));
    assert_eq!((calls.len(), said.contains("did not work")), (1, true), "{said}");
}

#[test]
fn the_demo_begins_anew_with_each_question() {
    let mut run = Run::new("demo").with_tools(&["ls"]).said("one");
    run.result("ls", "a\nb/", false);
    let told = run.play();
    assert!(text(&told.message).contains("1 file and 1 folder"));
    run.push(told.message);
    let run = run.said("two");
    assert_eq!(run.play().message.tool_calls().count(), 1);
}
