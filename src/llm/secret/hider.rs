//! Hides secrets in text that arrives in pieces, even if a piece ends inside a secret.

use super::Set;
use super::set::into_text;
use crate::llm::event::AssistantEvent;
use std::borrow::Cow;
use std::sync::Arc;

/// Hides secrets in a stream of text. Holds back only bytes that may begin a secret. The concatenated output
/// equals [`Set::hide`] of the whole text.
pub struct Hider {
    set: Option<Arc<Set>>,
    held: Vec<u8>,
}

impl Hider {
    /// Without a set every piece is returned unchanged.
    pub fn new(set: Option<Arc<Set>>) -> Self {
        Self { set, held: Vec::new() }
    }

    /// Adds a piece, and returns the text that can be released.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(set) = &self.set else {
            return Cow::Borrowed(piece);
        };
        let bytes: Cow<'a, [u8]> = match self.held.is_empty() {
            true => Cow::Borrowed(piece),
            false => {
                self.held.extend_from_slice(piece);
                Cow::Owned(std::mem::take(&mut self.held))
            }
        };
        let mut hidden = Vec::new();
        let mut done = 0;
        let mut open = set.open_end(&bytes, 0);
        // A secret found before the open end is final: no longer one begins at its start, and none before it.
        while let Some(found) = set.automaton.find(&bytes[done..]).filter(|found| done + found.start() < open)
        {
            hidden.extend_from_slice(&bytes[done..done + found.start()]);
            hidden.extend_from_slice(set.shown(found.pattern().as_usize()).as_bytes());
            done += found.end();
            if done > open {
                open = set.open_end(&bytes, done);
            }
        }
        self.held.extend_from_slice(&bytes[open..]);
        match bytes {
            Cow::Borrowed(bytes) if done == 0 => Cow::Borrowed(&bytes[..open]),
            _ => {
                hidden.extend_from_slice(&bytes[done..open]);
                Cow::Owned(hidden)
            }
        }
    }

    /// Returns the text held back, at the end of the stream.
    pub fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        match self.set.as_ref().map(|set| set.hide_bytes(&held)) {
            Some(Cow::Owned(hidden)) => hidden,
            _ => held,
        }
    }
}

impl Set {
    /// The start of the longest suffix of `bytes`, at or after `from`, that may begin a secret; `bytes.len()`
    /// if there is none.
    fn open_end(&self, bytes: &[u8], from: usize) -> usize {
        let earliest = from.max(bytes.len().saturating_sub(self.longest - 1));
        let may_begin = |&at: &usize| {
            let end = &bytes[at..];
            self.first[usize::from(end[0])]
                && self.values.iter().any(|value| value.len() > end.len() && value.starts_with(end))
        };
        (earliest..bytes.len()).find(may_begin).unwrap_or(bytes.len())
    }
}

/// Hides secrets in the events of an answer. Each block is a separate text.
pub struct EventHider {
    set: Option<Arc<Set>>,
    /// Blocks that have begun.
    open: Vec<Open>,
}

struct Open {
    index: usize,
    kind: Kind,
    hider: Hider,
}

enum Kind {
    Text,
    Thinking,
    ToolCall,
}

impl EventHider {
    pub fn new(set: Option<Arc<Set>>) -> Self {
        Self { set, open: Vec::new() }
    }

    /// Hides secrets in the next `events` of the answer.
    pub fn pass(&mut self, events: &mut Vec<AssistantEvent>) {
        if self.set.is_none() {
            return;
        }
        let before = std::mem::take(events);
        events.reserve(before.len());
        for event in before {
            self.event(event, events);
        }
    }

    fn event(&mut self, mut event: AssistantEvent, events: &mut Vec<AssistantEvent>) {
        use AssistantEvent as E;
        match &mut event {
            E::TextDelta { index, delta } => self.delta(*index, Kind::Text, delta),
            E::ThinkingDelta { index, delta } => self.delta(*index, Kind::Thinking, delta),
            E::ToolCallDelta { index, delta } => self.delta(*index, Kind::ToolCall, delta),
            E::TextEnd { index, .. } | E::ThinkingEnd { index, .. } | E::ToolCallEnd { index, .. } => {
                if let Some(at) = self.open.iter().position(|open| open.index == *index) {
                    events.extend(self.open.remove(at).end());
                }
            }
            // Blocks that never ended.
            E::Done { .. } | E::Error(_) => events.extend(self.open.drain(..).filter_map(Open::end)),
            _ => {}
        }
        let is_empty = matches!(&event, E::TextDelta { delta, .. } | E::ThinkingDelta { delta, .. }
            | E::ToolCallDelta { delta, .. } if delta.is_empty());
        if !is_empty {
            events.push(event);
        }
    }

    fn delta(&mut self, index: usize, kind: Kind, delta: &mut String) {
        let at = self.open.iter().position(|open| open.index == index).unwrap_or_else(|| {
            self.open.push(Open { index, kind, hider: Hider::new(self.set.clone()) });
            self.open.len() - 1
        });
        let hidden = match self.open[at].hider.push(delta.as_bytes()) {
            Cow::Borrowed(same) if same.len() == delta.len() => return,
            hidden => hidden.into_owned(),
        };
        *delta = into_text(hidden);
    }
}

impl Open {
    /// The last event of the block: the text held back, if any.
    fn end(mut self) -> Option<AssistantEvent> {
        let (index, delta) = (self.index, into_text(self.hider.end()));
        (!delta.is_empty()).then_some(match self.kind {
            Kind::Text => AssistantEvent::TextDelta { index, delta },
            Kind::Thinking => AssistantEvent::ThinkingDelta { index, delta },
            Kind::ToolCall => AssistantEvent::ToolCallDelta { index, delta },
        })
    }
}
