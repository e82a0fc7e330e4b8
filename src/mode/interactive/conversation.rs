//! The items of the conversation: logged messages, and notices of the program between them.
//!
//! Only positions in the log are held; a message is read when shown, and passes through the transcript like a
//! new one. A call is shown together with its result, which is a separate entry.

use super::card::{self, Weight};
use super::look::Look;
use super::transcript::stored_lines;
use crate::runtime::control::Control;
use crate::runtime::reading::{Part, Place};
use crate::runtime::{AgentMessage, Block, ToolResult};
use crate::tui::line::Line;
use crate::tui::wrap::wrap;
use std::ops::Range;
use std::sync::Arc;

/// Rows above which a turn that is shown again does not begin with its prompt.
const TURN_ROWS: usize = 400;

#[derive(Clone, Default)]
pub struct Conversation {
    items: Vec<Item>,
    /// Id of the last entry taken from the log.
    leaf: Option<Arc<str>>,
    /// True once the log has been read. Earlier notices stand above it.
    has_begun: bool,
}

#[derive(Clone)]
pub enum Item {
    Stored(Place),
    Notice(Weight, Arc<str>),
    /// Lines that are already laid out.
    Printed(Arc<[Line]>),
}

impl Conversation {
    /// Adds new entries of the log. True if the log is another conversation's, which is then read completely.
    pub fn follow(&mut self, control: &Control) -> bool {
        if !self.has_begun {
            return false;
        }
        if let Some((new, leaf)) = control.tree().places(self.leaf.as_deref())
            && (leaf.is_some() || self.leaf.is_none())
        {
            self.items.extend(new.into_iter().map(Item::Stored));
            self.leaf = leaf;
            return false;
        }
        self.begin(control);
        true
    }

    /// Reads the log of another conversation or branch. Returns its first item.
    pub fn begin(&mut self, control: &Control) -> usize {
        let (places, leaf) = control.tree().places(None).unwrap_or_default();
        if std::mem::replace(&mut self.has_begun, true) {
            self.items.clear();
        }
        let first = self.items.len();
        self.items.extend(places.into_iter().map(Item::Stored));
        self.leaf = leaf;
        first
    }

    pub fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub fn is_prompt(&self, at: usize) -> bool {
        let item = self.items.get(at);
        matches!(item, Some(Item::Stored(place)) if place.part == Part::Prompt)
    }

    /// The last item that is not the result of a call: only it and those behind it may yet change.
    pub fn last_message(&self) -> usize {
        let is_result = |item: &Item| matches!(item, Item::Stored(place) if matches!(place.part, Part::Result | Part::Entry));
        self.items.iter().rposition(|item| !is_result(item)).unwrap_or(0)
    }

    /// The text of an item: for an answer, its text and calls.
    pub fn text(&self, at: usize, control: &Control) -> Option<String> {
        let message = match self.items.get(at)? {
            Item::Stored(place) => control.tree().shown(&place.entry)?,
            Item::Notice(_, text) => return Some(text.to_string()),
            Item::Printed(lines) => {
                let texts: Vec<&str> = lines.iter().map(|line| line.text().trim_end()).collect();
                return Some(texts.join("\n"));
            }
        };
        let AgentMessage::Assistant(answer) = &message else {
            return Some(message.text());
        };
        let mut texts = Vec::new();
        for block in &answer.content {
            match block {
                Block::Text(block) => texts.push(block.text.trim().to_owned()),
                Block::ToolCall(call) => {
                    let arguments = serde_json::to_string_pretty(&call.arguments);
                    texts.push(format!("{} {}", call.name, arguments.unwrap_or_default()));
                }
                _ => {}
            }
        }
        texts.extend(self.results(at, control).iter().map(|result| {
            let content = result.content.iter().filter_map(Block::as_text);
            content.collect::<Vec<_>>().join("\n")
        }));
        Some(texts.join("\n\n"))
    }

    /// The lines of an item, and whether they are final; none for a result, which is shown with its call.
    /// `live` returns the lines of calls that are running.
    pub fn lines(
        &self,
        at: usize,
        control: &Control,
        look: &Look<'_>,
        is_busy: bool,
        live: &mut dyn FnMut(&str) -> Option<Vec<Line>>,
    ) -> (Vec<Line>, bool) {
        let lines = match self.items.get(at) {
            None => Vec::new(),
            Some(Item::Notice(weight, text)) => card::notice(*weight, text, look),
            Some(Item::Printed(lines)) => lines.iter().flat_map(|line| wrap(line, look.width)).collect(),
            Some(Item::Stored(place)) if place.part == Part::Result => Vec::new(),
            Some(Item::Stored(place)) if place.part == Part::Entry => {
                control.tree().entry(&place.entry).map_or_else(Vec::new, |entry| card::entry(&entry, look))
            }
            Some(Item::Stored(place)) => match control.tree().shown(&place.entry) {
                Some(message) => {
                    let mut is_final = true;
                    let message = [(message, self.results(at, control))];
                    let lines = stored_lines(message, look, &mut |call| {
                        let lines = live(&call.id);
                        is_final &= lines.is_none() && !is_busy;
                        if lines.is_none() && !is_busy {
                            call.fail("No result", None);
                        }
                        lines
                    });
                    return (lines, is_final);
                }
                None => card::notice(Weight::Warning, "A damaged entry is not shown", look),
            },
        };
        (lines, true)
    }

    /// The results of the calls in an answer.
    fn results(&self, at: usize, control: &Control) -> Vec<Arc<ToolResult>> {
        let mut results = Vec::new();
        for item in self.items.iter().skip(at + 1) {
            let Item::Stored(place) = item else { continue };
            match place.part {
                Part::Result => {}
                Part::Entry => continue,
                _ => break,
            }
            if let Some(AgentMessage::ToolResult(result)) = control.tree().shown(&place.entry) {
                results.push(result);
            }
        }
        results
    }

    /// The end of a range of items: at least `rows` lines if there are as many, and the number of prompts and answers
    /// above.
    pub fn end(
        &self,
        items: Range<usize>,
        rows: usize,
        control: &Control,
        look: &Look<'_>,
    ) -> (Vec<Line>, usize) {
        let Range { start: from, end } = items;
        let mut count = 0;
        let mut first = end;
        // A turn is shown from its prompt on, unless that is far away.
        while first > from && (count < rows || (count < TURN_ROWS.max(rows) && !self.is_prompt(first))) {
            first -= 1;
            if !matches!(self.items.get(first), Some(Item::Printed(_))) {
                count += self.lines(first, control, look, false, &mut |_| None).0.len();
            }
        }
        let mut lines = Vec::new();
        let mut messages = Vec::new();
        for at in first..end {
            let message = match self.items.get(at) {
                // What the program said is on screen already.
                Some(Item::Printed(_)) | None => continue,
                Some(Item::Stored(place)) if place.part == Part::Result => continue,
                Some(Item::Stored(place)) if place.part == Part::Entry => None,
                Some(Item::Stored(place)) => control.tree().shown(&place.entry),
                Some(Item::Notice(..)) => None,
            };
            match message {
                Some(message) => messages.push((message, self.results(at, control))),
                None => {
                    let own = self.lines(at, control, look, false, &mut |_| None).0;
                    if !own.is_empty() {
                        lines.extend(whole(std::mem::take(&mut messages), look));
                        lines.extend(own);
                    }
                }
            }
        }
        lines.extend(whole(messages, look));
        let is_message = |item: &&Item| matches!(item, Item::Stored(place) if matches!(place.part, Part::Prompt | Part::Answer));
        let above = self.items.iter().take(first).filter(is_message).count();
        (lines, above)
    }
}

/// Lines of messages that nothing will be added to.
fn whole(messages: Vec<(AgentMessage, Vec<Arc<ToolResult>>)>, look: &Look<'_>) -> Vec<Line> {
    stored_lines(messages, look, &mut |call| {
        call.fail("No result", None);
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::mode::interactive::testing::Bench;

    /// A conversation with calls that succeeded, failed and never ran, cut by a compaction.
    fn bench() -> Bench {
        let bench = Bench::new();
        let answer = |content: serde_json::Value, stop: &str| {
            json!({"role": "assistant", "api": "", "provider": "", "model": "", "content": content,
                "stopReason": stop})
        };
        let call = |id: &str, name: &str, arguments: serde_json::Value| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
        let result = |id: &str, text: &str, is_error: bool| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "x", "isError": is_error,
                "content": [{"type": "text", "text": text}]})
        };
        let mut log = bench.app.control.log();
        for message in [
            json!({"role": "user", "content": "look **around**"}),
            answer(
                json!([
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "text", "text": "I will."},
                    call("1", "ls", json!({"path": "src"})),
                    call("2", "read", json!({"path": "none"})),
                    call("3", "bash", json!({"command": "true"})),
                ]),
                "toolUse",
            ),
            // In another order than the calls.
            result("2", "ENOENT: none", true),
            result("1", "a.rs\nb.rs", false),
            answer(json!([call("4", "bash", json!({"command": "sleep 9"}))]), "aborted"),
            json!({"role": "bashExecution", "command": "pwd", "output": "/x", "exitCode": 0,
                "excludeFromContext": true}),
            json!({"role": "hologram"}),
            answer(json!([{"type": "text", "text": "Done."}]), "stop"),
        ] {
            log.append_message(&serde_json::from_value(message).unwrap()).unwrap();
        }
        drop(log);
        bench
    }

    fn end(bench: &Bench, rows: usize, look: &Look<'_>) -> (Vec<Line>, usize) {
        let conversation = bench.app.view.conversation();
        conversation.end(0..conversation.items().len(), rows, &bench.app.control, look)
    }

    #[test]
    fn a_stored_conversation_is_drawn_as_it_was() {
        let mut bench = bench();
        bench.app.view.begin();
        let look = bench.app.config.look().within(40);
        let (lines, above) = end(&bench, 1000, &look);
        assert_eq!(above, 0);
        assert!(lines.iter().all(|line| line.width() <= 40));
        let texts: Vec<&str> = lines.iter().map(|line| line.text().trim()).collect();
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let rule = "─".repeat(40);
        assert_eq!(
            texts,
            [
                "look around",
                "Hm.",
                "I will.",
                "✓ ls src",
                "✗ read none",
                "ENOENT: none",
                "✗ $ true",
                "No result",
                "✗ $ sleep 9",
                "Operation aborted",
                &rule,
                "$ pwd",
                "Not sent to the model",
                "/x",
                &rule,
                "Done.",
            ]
        );
    }

    #[test]
    fn only_the_end_is_laid_out_and_the_rest_is_counted() {
        let mut bench = bench();
        for message in [
            json!({"role": "user", "content": "more"}),
            json!({"role": "assistant", "api": "", "provider": "", "model": "", "stopReason": "stop",
                "content": [{"type": "text", "text": "Yes."}]}),
        ] {
            bench.app.control.log().append_message(&serde_json::from_value(message).unwrap()).unwrap();
        }
        bench.app.view.begin();
        let look = bench.app.config.look().within(40);
        // A turn begins with its prompt.
        let (lines, above) = end(&bench, 1, &look);
        let texts: Vec<&str> = lines.iter().map(|line| line.text().trim()).collect();
        assert_eq!((texts, above), (vec!["", "more", "", "Yes."], 4));
        assert_eq!(end(&bench, 5, &look).1, 0);
    }

    #[test]
    fn the_words_of_an_item_can_be_taken_away() {
        let mut bench = bench();
        bench.app.view.begin();
        bench.app.say(Weight::Info, "noted");
        let text = |at| bench.app.view.conversation().text(at, &bench.app.control);
        assert_eq!(text(0).as_deref(), Some("look **around**"));
        let answer = text(1).unwrap();
        assert!(answer.starts_with("I will.\n\nls {"), "{answer}");
        assert!(answer.ends_with("ENOENT: none\n\na.rs\nb.rs"), "{answer}");
        let last = bench.app.view.conversation().items().len() - 1;
        assert_eq!(text(last).as_deref(), Some("noted"));
        assert_eq!(text(last + 1), None);
    }
}
