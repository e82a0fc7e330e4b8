//! Shows an entry on the exported page.

use super::call;
use super::html::{Html, anchor, brief};
use super::markup::{self, Lines};
use super::source::Source;
use super::survey::{Survey, spent, thousands};
use crate::agent::call::Describe;
use crate::agent::message::{AgentMessage, BashExecution};
use crate::llm::message::{
    AssistantMessage, Block, Content, StopReason, SystemMessage, ThinkingContent, ToolResultMessage, Usage,
};
use crate::session::CalledSkill;
use crate::session::entry::{Body, Entry};
use crate::session::index::Kind;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// An entry, with the results of its tool calls if they follow directly.
pub struct Turn {
    position: u32,
    entry: Option<Entry>,
    pub results: Results,
}

/// Tool results by call id, each with the id of its entry.
pub type Results = HashMap<String, (String, Arc<ToolResultMessage>)>;

impl Turn {
    /// Takes the next turn from the front of `rest`, which must not be empty.
    pub fn take(source: &Source<'_>, rest: &mut &[u32]) -> Self {
        let (position, after) = rest.split_first().map_or((0, &[][..]), |(first, after)| (*first, after));
        *rest = after;
        let mut turn = Self { position, entry: source.entry(position), results: Results::new() };
        let Some(calls) = turn.answer().map(|answer| {
            let calls = answer.content.iter().filter_map(Block::as_tool_call);
            calls.map(|call| call.id.clone()).collect::<Vec<_>>()
        }) else {
            return turn;
        };
        while let Some((next, after)) = rest.split_first()
            && turn.results.len() < calls.len()
            && source.kind(*next) == Kind::ToolResult
        {
            let Some(Entry { id, body: Body::Message(body), .. }) = source.entry(*next) else {
                break;
            };
            let AgentMessage::ToolResult(result) = body.message else {
                break;
            };
            if !calls.contains(&result.tool_call_id) || turn.results.contains_key(&result.tool_call_id) {
                break;
            }
            turn.results.insert(result.tool_call_id.clone(), (id, result));
            *rest = after;
        }
        turn
    }

    pub fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    fn answer(&self) -> Option<&AssistantMessage> {
        match &self.entry.as_ref()?.body {
            Body::Message(body) => match &body.message {
                AgentMessage::Assistant(answer) => Some(answer),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Formats an ISO 8601 time as `2024-12-03 14:00`.
pub fn minute(iso: &str) -> String {
    let (date, time) = iso.split_once('T').unwrap_or((iso, ""));
    let minute: String = time.chars().take(5).collect();
    format!("{date} {minute}").trim_end().to_owned()
}

pub fn show(html: &mut Html, source: &Source<'_>, survey: &Survey, turn: Turn) {
    let Some(entry) = turn.entry else {
        let id = source.id(turn.position);
        let text = format!("Entry {} is damaged: it cannot be shown.", brief(id, 64));
        html.element("p", &[("class", "mark damaged"), ("id", id)], &text);
        return;
    };
    let frame = Frame { entry: &entry, survey, describe: source.describe };
    match &entry.body {
        Body::Message(body) => message(html, &frame, &body.message, &turn.results),
        Body::Compaction(compaction) => {
            let before = thousands(compaction.tokens_before);
            let usage = compaction.usage.as_ref();
            frame.summary(
                html,
                &format!("Context compacted, {before} tokens before"),
                &compaction.summary,
                usage,
            );
        }
        Body::BranchSummary(summary) => {
            frame.summary(
                html,
                "Summary of a branch that was left",
                &summary.summary,
                summary.usage.as_ref(),
            );
        }
        Body::CustomMessage(custom) => {
            let content = custom.content.clone().unwrap_or_default();
            frame.custom(html, &custom.custom_type, &content, custom.display);
        }
        Body::ModelChange(change) => {
            frame.mark(html, &format!("Model: {}/{}", change.provider, change.model_id));
        }
        Body::ThinkingLevelChange(change) => {
            frame.mark(html, &format!("Thinking: {}", change.thinking_level));
        }
        Body::Usage(record) => {
            frame.mark(html, &format!("{}: {} {}", record.kind, record.model, spent(&record.usage)));
        }
        Body::SessionInfo(info) => frame.mark(html, &format!("Session name: {}", info.name)),
        Body::Label(label) => {
            let text =
                label.label.as_deref().map_or("Label removed".to_owned(), |text| format!("Label: {text}"));
            frame.mark_with_target(html, &text, &label.target_id);
        }
        Body::ContextEdit(edit) => {
            let text = match &edit.replacement {
                None => "Left out of the model's context",
                Some(_) => "Replaced in the model's context",
            };
            frame.mark_with_target(html, text, &edit.target_id);
        }
        Body::Custom(custom) => {
            let data = custom.data.clone().unwrap_or(Value::Null);
            frame.data(html, &format!("State of {}", custom.custom_type), &data);
        }
        Body::Unknown(unknown) => {
            let kind = brief(&unknown.kind, 64);
            frame.data(html, &format!("Entry of type {kind}"), &Value::Object(unknown.fields.clone()));
        }
    }
}

fn message(html: &mut Html, frame: &Frame<'_>, message: &AgentMessage, results: &Results) {
    match message {
        AgentMessage::User(message) => {
            frame.begin(html, "entry user", "You");
            prompt(html, frame, &message.content);
            frame.end(html);
        }
        AgentMessage::Assistant(message) => answer(html, frame, message, results),
        AgentMessage::ToolResult(result) => {
            frame.begin(html, "entry tool-result", "Tool result");
            call::result(html, &frame.entry.id, result, false);
            frame.end(html);
        }
        AgentMessage::System(system) => self::system(html, frame, system),
        AgentMessage::BashExecution(bash) => self::bash(html, frame, bash),
        AgentMessage::Custom(custom) => {
            frame.custom(html, &custom.custom_type, &custom.content, custom.display);
        }
        AgentMessage::BranchSummary(summary) => {
            frame.summary(html, "Summary of a branch that was left", &summary.summary, None);
        }
        AgentMessage::CompactionSummary(summary) => {
            let before = thousands(summary.tokens_before);
            frame.summary(
                html,
                &format!("Context compacted, {before} tokens before"),
                &summary.summary,
                None,
            );
        }
        AgentMessage::Unknown(value) => {
            let role = brief(message.role(), 64);
            frame.data(html, &format!("Message of role {role}"), value);
        }
    }
}

/// Adds a user message. The text of a called skill is folded.
fn prompt(html: &mut Html, frame: &Frame<'_>, said: &Content) {
    let text = |html: &mut Html, text: &str| {
        let Some(skill) = CalledSkill::parse(text) else {
            return markup::markdown(html, text, Lines::Kept);
        };
        html.open("details", &[("class", "tool")]);
        html.open("summary", &[]);
        html.element("span", &[("class", "state")], "skill");
        html.element("code", &[("class", "gist")], &brief(skill.name, 100));
        html.close("summary");
        markup::markdown(html, skill.content, Lines::Joined);
        html.close("details");
        markup::markdown(html, skill.said, Lines::Kept);
    };
    match said {
        Content::Text(said) => text(html, said),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| match block {
            Block::Text(said) => text(html, &said.text),
            block => self::block(html, frame, block, Lines::Kept),
        }),
    }
}

fn answer(html: &mut Html, frame: &Frame<'_>, answer: &AssistantMessage, results: &Results) {
    frame.begin(html, "entry assistant", "Assistant");
    for block in &answer.content {
        match block {
            Block::Thinking(thinking) => self::thinking(html, thinking),
            Block::ToolCall(call) => call::show(html, call, frame.describe, results.get(&call.id)),
            block => self::block(html, frame, block, Lines::Joined),
        }
    }
    let end = match answer.stop_reason {
        StopReason::Stop | StopReason::ToolUse | StopReason::Pending => None,
        StopReason::Length => Some("Cut off: the limit for the answer's length was reached"),
        StopReason::Error => Some("The request failed"),
        StopReason::Aborted => Some("Aborted"),
        StopReason::Deferred => Some("Deferred"),
    };
    if let Some(end) = end {
        html.open("p", &[("class", "failure")]);
        html.element("strong", &[], end);
        if let Some(error) = &answer.error_message {
            html.text(": ");
            html.text(error);
        }
        html.close("p");
    }
    let model = answer.response_model.as_deref().unwrap_or(&answer.model);
    frame.spent(html, model, Some(&answer.usage));
    frame.end(html);
}

fn thinking(html: &mut Html, thinking: &ThinkingContent) {
    if thinking.thinking.trim().is_empty() {
        let text = match thinking.redacted {
            Some(true) => "Thinking (withheld by the provider)",
            _ => "Thinking (empty)",
        };
        return html.element("p", &[("class", "quiet")], text);
    }
    html.open("details", &[("class", "thinking")]);
    html.open("summary", &[]);
    html.text("Thinking ");
    let first = thinking.thinking.trim().lines().next().unwrap_or_default();
    html.element("span", &[("class", "gist")], &brief(first, 100));
    html.close("summary");
    markup::markdown(html, &thinking.thinking, Lines::Joined);
    html.close("details");
}

fn content(html: &mut Html, frame: &Frame<'_>, content: &Content, lines: Lines) {
    match content {
        Content::Text(text) => markup::markdown(html, text, lines),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| self::block(html, frame, block, lines)),
    }
}

/// Adds a content block. A tool call is shown without its result.
fn block(html: &mut Html, frame: &Frame<'_>, block: &Block, lines: Lines) {
    match block {
        Block::Text(text) => markup::markdown(html, &text.text, lines),
        Block::Thinking(thinking) => self::thinking(html, thinking),
        Block::Image(_) => call::image(html, block),
        Block::ToolCall(call) => call::show(html, call, frame.describe, None),
        Block::Other(value) => folded_json(html, "Content of a kind that is not known here", value),
    }
}

fn system(html: &mut Html, frame: &Frame<'_>, system: &SystemMessage) {
    frame.begin(html, "entry system", "System");
    let text = system.content.text();
    let sections = system.sections.iter().flatten();
    let count = system.sections.as_ref().map_or(0, |sections| sections.len());
    if count > 0 || !text.is_empty() {
        html.open("details", &[]);
        html.element("summary", &[], "System prompt");
        if !text.is_empty() {
            html.element("pre", &[], &text);
        }
        for (name, section) in sections {
            html.element("h3", &[], name);
            match section {
                Value::String(text) => html.element("pre", &[], text),
                Value::Null => html.element("p", &[("class", "quiet")], "Removed"),
                other => json(html, other),
            }
        }
        html.close("details");
    }
    if !system.tools_added.is_empty() {
        let names: Vec<&str> = system.tools_added.iter().map(|tool| tool.name.as_str()).collect();
        html.open("details", &[]);
        html.open("summary", &[]);
        html.text("Tools ");
        html.element("span", &[("class", "gist")], &brief(&names.join(", "), 200));
        html.close("summary");
        for tool in &system.tools_added {
            html.element("h3", &[], &tool.name);
            html.element("p", &[("class", "plain")], &tool.description);
            folded_json(html, "Parameters", &tool.parameters);
        }
        html.close("details");
    }
    if !system.tools_removed.is_empty() {
        let names: Vec<&str> = system.tools_removed.iter().map(|tool| tool.name.as_str()).collect();
        html.element("p", &[("class", "quiet")], &format!("Tools removed: {}", names.join(", ")));
    }
    frame.end(html);
}

fn bash(html: &mut Html, frame: &Frame<'_>, bash: &BashExecution) {
    frame.begin(html, "entry user", "You ran");
    html.open("details", &[("class", "tool")]);
    html.open("summary", &[]);
    if bash.cancelled {
        html.element("span", &[("class", "state bad")], "cancelled");
    } else if let Some(code) = bash.exit_code.filter(|code| *code != 0) {
        html.element("span", &[("class", "state bad")], &format!("exit {code}"));
    }
    html.element("code", &[("class", "gist")], &brief(&format!("$ {}", bash.command), 120));
    html.close("summary");
    html.element("pre", &[], &bash.command);
    call::output(html, &bash.output);
    if let Some(path) = bash.full_output_path.as_deref().filter(|_| bash.truncated) {
        html.element("p", &[("class", "quiet")], &format!("Shortened; the whole output was in {path}"));
    }
    if bash.exclude_from_context == Some(true) {
        html.element("p", &[("class", "quiet")], "The model was not told of it");
    }
    html.close("details");
    frame.end(html);
}

/// An entry, and the context to show it.
struct Frame<'a> {
    entry: &'a Entry,
    survey: &'a Survey,
    describe: Describe<'a>,
}

impl Frame<'_> {
    fn begin(&self, html: &mut Html, class: &'static str, title: &str) {
        let id = &self.entry.id;
        html.open("article", &[("class", class), ("id", id)]);
        html.open("header", &[]);
        html.element("h2", &[], title);
        self.label(html);
        html.open("a", &[("class", "at"), ("href", &anchor(id)), ("title", "Link to this entry")]);
        let time = &self.entry.timestamp;
        html.element("time", &[("datetime", time)], &minute(time));
        html.close("a");
        html.close("header");
    }

    fn end(&self, html: &mut Html) {
        html.close("article");
    }

    fn label(&self, html: &mut Html) {
        if let Some(label) = self.survey.labels.get(&self.entry.id) {
            html.element("span", &[("class", "label")], label);
        }
    }

    fn spent(&self, html: &mut Html, model: &str, usage: Option<&Usage>) {
        let spent = usage.map(spent).unwrap_or_default();
        let parts = [model, &spent];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            html.element("p", &[("class", "spent")], &parts.join(" · "));
        }
    }

    fn summary(&self, html: &mut Html, title: &str, text: &str, usage: Option<&Usage>) {
        self.begin(html, "entry summary", title);
        html.open("details", &[]);
        html.element("summary", &[], "Summary");
        markup::markdown(html, text, Lines::Joined);
        html.close("details");
        self.spent(html, "", usage);
        self.end(html);
    }

    fn custom(&self, html: &mut Html, kind: &str, content: &Content, display: bool) {
        self.begin(html, "entry custom", &brief(kind, 64));
        if display {
            self::content(html, self, content, Lines::Kept);
        } else {
            html.open("details", &[("class", "silent")]);
            html.element("summary", &[], "For the model only");
            self::content(html, self, content, Lines::Kept);
            html.close("details");
        }
        self.end(html);
    }

    /// Adds a line of text for an entry that is not a message.
    fn mark(&self, html: &mut Html, text: &str) {
        html.open("p", &[("class", "mark"), ("id", &self.entry.id)]);
        html.text(text);
        self.label(html);
        html.close("p");
    }

    fn mark_with_target(&self, html: &mut Html, text: &str, target: &str) {
        html.open("p", &[("class", "mark"), ("id", &self.entry.id)]);
        html.text(text);
        html.text(": ");
        html.element("a", &[("href", &anchor(target))], &brief(target, 64));
        self.label(html);
        html.close("p");
    }

    fn data(&self, html: &mut Html, title: &str, data: &Value) {
        html.open("div", &[("class", "mark"), ("id", &self.entry.id)]);
        folded_json(html, title, data);
        self.label(html);
        html.close("div");
    }
}

fn folded_json(html: &mut Html, title: &str, value: &Value) {
    html.open("details", &[]);
    html.element("summary", &[], title);
    json(html, value);
    html.close("details");
}

pub fn json(html: &mut Html, value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    html.element("pre", &[], &text);
}
