//! Draws logged messages by passing them through a transcript.

use super::super::card::Call;
use super::super::feed::{Kind, News};
use super::super::look::Look;
use super::Transcript;
use super::part::Body;
use crate::runtime::{AgentMessage, Block, ToolResult};
use crate::tui::line::Line;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// The lines of logged messages with the results of their calls, as printed if they were received now.
/// `unfinished` draws a call without a result, if it can.
pub fn stored_lines(
    messages: impl IntoIterator<Item = (AgentMessage, Vec<Arc<ToolResult>>)>,
    look: &Look<'_>,
    unfinished: &mut dyn FnMut(&mut Call) -> Option<Vec<Line>>,
) -> Vec<Line> {
    let (mut transcript, now) = (Transcript { is_replay: true, ..Transcript::default() }, Instant::now());
    let mut drawn = HashMap::new();
    for (message, results) in messages {
        for mut news in replayed(message, results) {
            transcript.take(&mut news, look, now);
        }
        transcript.tell_failure();
        for part in &mut transcript.parts {
            if let Body::Call(call) = &mut part.body
                && !call.is_done()
                && let Some(lines) = unfinished(call)
            {
                drawn.insert(call.id.clone(), lines);
            }
        }
    }
    transcript.lines(look, usize::MAX, &mut |part| {
        let known = match &part.body {
            Body::Call(call) => drawn.remove(&call.id),
            _ => None,
        };
        known.unwrap_or_else(|| part.lines(look, None, None))
    })
}

/// The news of a complete message with the results of its calls.
fn replayed(message: AgentMessage, results: Vec<Arc<ToolResult>>) -> Vec<News> {
    let AgentMessage::Assistant(answer) = &message else {
        return vec![News::MessageStarted(message)];
    };
    let mut news = Vec::new();
    for (index, block) in answer.content.iter().enumerate() {
        let (kind, text) = match block {
            Block::Text(block) => (Kind::Text, block.text.trim().to_owned()),
            Block::Thinking(block) => (Kind::Thinking, block.thinking.trim().to_owned()),
            Block::ToolCall(call) => {
                let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
                news.push(News::ToolWritten { id, name, arguments });
                continue;
            }
            _ => continue,
        };
        news.push(News::BlockStarted { index, kind, id: String::new(), name: String::new() });
        news.push(News::Piece { index, kind, text });
        news.push(News::BlockEnded { index });
    }
    news.extend(results.into_iter().map(|result| News::MessageEnded(AgentMessage::ToolResult(result))));
    news.push(News::MessageEnded(message));
    news
}
