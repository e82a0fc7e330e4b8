//! A queue of events from the worker threads to the drawing thread.
//!
//! An event is put into a mailbox, and the drawing thread is woken. Waiting pieces of one text are joined,
//! and only the last state of a running tool is kept: however far drawing is behind, the mailbox holds little
//! more than the text itself.
//!
//! Putting never blocks: some news is put while locks are held that the drawing thread takes too.

use super::card::Weight;
use super::effect::Effect;
use crate::runtime::cache_warming;
use crate::runtime::event::{Event, RETRY_CANCELLED, Reason};
use crate::runtime::{AgentEvent, AgentMessage, AssistantEvent, ToolOutput, Usage};
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The kind of text that a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Thinking,
    /// Arguments of a call, as JSON.
    Arguments,
}

/// An event for the screen.
pub enum News {
    RunStarted,
    RunEnded,
    /// Nothing runs any more.
    Settled,
    /// A message begins; a model's message is still empty.
    MessageStarted(AgentMessage),
    MessageEnded(AgentMessage),
    BlockStarted {
        index: usize,
        kind: Kind,
        /// Id of a tool call; otherwise empty.
        id: String,
        name: String,
    },
    Piece {
        index: usize,
        kind: Kind,
        text: String,
    },
    BlockEnded {
        index: usize,
    },
    /// Prompt tokens that the model has processed, and their total.
    PromptProgress(u64, u64),
    /// A call with complete arguments.
    ToolWritten {
        id: String,
        name: String,
        arguments: Map<String, Value>,
    },
    ToolStarted {
        id: String,
        name: String,
        arguments: Map<String, Value>,
    },
    ToolUpdated {
        id: String,
        output: ToolOutput,
    },
    ToolEnded {
        id: String,
        output: ToolOutput,
        is_error: bool,
    },
    LimitReached(String),
    RetryStarted {
        attempt: u64,
        max_attempts: u64,
        delay: Duration,
        error: String,
    },
    RetryEnded,
    /// A retry got an answer; the number of retries.
    RetrySucceeded {
        attempts: u64,
    },
    /// No retry got an answer; their number.
    RetriesFailed {
        attempts: u64,
        /// True if the user has ended the wait for another one.
        is_cancelled: bool,
    },
    /// The complete content of both queues.
    Queues {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    CompactionStarted(Reason),
    CompactionEnded {
        /// The summary, and the number of tokens that it replaces.
        summary: Option<(String, u64)>,
        /// What the summary cost.
        usage: Option<Box<Usage>>,
        aborted: bool,
        error: Option<String>,
    },
    /// Something about a helper has changed.
    Helpers,
    Renamed,
    ThinkingChanged,
    /// An extension has added an entry of its own to the log.
    EntryAppended(Value),
    CacheWarmed(Box<Usage>),
    /// Output of a user's command.
    ShellPrinted(String),
    /// An effect to apply on the drawing thread.
    Effect(Box<Effect>),
}

pub struct Feed {
    waiting: Mutex<VecDeque<News>>,
    wake: (Sender<()>, Receiver<()>),
}

impl Feed {
    pub fn new() -> Self {
        Self { waiting: Mutex::default(), wake: bounded(1) }
    }

    /// Receives when news was put in.
    pub fn woken(&self) -> &Receiver<()> {
        &self.wake.1
    }

    pub fn take(&self) -> VecDeque<News> {
        std::mem::take(&mut *self.waiting())
    }

    pub fn put(&self, news: News) {
        let mut waiting = self.waiting();
        // One is enough for everything that waits.
        if is_draw(&news) && waiting.iter().any(is_draw) {
            return;
        }
        let news = match news {
            News::ToolUpdated { id, output } => match replaced(&mut waiting, &id, output) {
                Some(output) => News::ToolUpdated { id, output },
                None => return,
            },
            news => news,
        };
        match (waiting.back_mut(), news) {
            (Some(News::Piece { index, kind, text }), News::Piece { index: at, kind: same, text: more })
                if (*index, *kind) == (at, same) =>
            {
                text.push_str(&more)
            }
            (Some(News::ShellPrinted(text)), News::ShellPrinted(more)) => text.push_str(&more),
            (Some(News::Helpers), News::Helpers) => {}
            (_, news) => waiting.push_back(news),
        }
        drop(waiting);
        // A wake-up that waits already is enough.
        let _ = self.wake.0.try_send(());
    }

    /// Sends an effect to the drawing thread.
    pub fn effect(&self, effect: Effect) {
        self.put(News::Effect(Box::new(effect)));
    }

    pub fn say(&self, weight: Weight, text: String) {
        self.effect(Effect::Say(weight, text));
    }

    pub fn event(&self, event: &Event<'_>) {
        if let Some(news) = news(event) {
            self.put(news);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<News>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_draw(news: &News) -> bool {
    matches!(news, News::Effect(effect) if matches!(**effect, Effect::Draw))
}

/// Replaces the last waiting state of a running tool, if only states of tools follow it; otherwise returns
/// `new`.
fn replaced(waiting: &mut VecDeque<News>, id: &str, new: ToolOutput) -> Option<ToolOutput> {
    for news in waiting.iter_mut().rev() {
        match news {
            News::ToolUpdated { id: same, output } if same == id => {
                *output = new;
                return None;
            }
            News::ToolUpdated { .. } => {}
            _ => break,
        }
    }
    Some(new)
}

/// Converts an event to news, if the screen shows it.
fn news(event: &Event<'_>) -> Option<News> {
    Some(match event {
        Event::Agent(event) => return of_agent(event),
        Event::AgentSettled { .. } => News::Settled,
        Event::HelperUpdate { .. } => News::Helpers,
        Event::LimitReached { reason } => News::LimitReached((*reason).to_owned()),
        Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => News::RetryStarted {
            attempt: *attempt,
            max_attempts: *max_attempts,
            delay: Duration::from_millis(*delay_ms),
            error: (*error_message).to_owned(),
        },
        Event::AutoRetryEnd { success: false, attempt, final_error } => {
            News::RetriesFailed { attempts: *attempt, is_cancelled: *final_error == Some(RETRY_CANCELLED) }
        }
        Event::AutoRetryEnd { attempt, .. } => News::RetrySucceeded { attempts: *attempt },
        Event::SessionInfoChanged { .. } => News::Renamed,
        Event::ThinkingLevelChanged { .. } => News::ThinkingChanged,
        Event::BashUpdate { delta, .. } => News::ShellPrinted((*delta).to_owned()),
        Event::QueueUpdate { steering, follow_up } => News::Queues {
            steering: steering.iter().map(AgentMessage::text).collect(),
            follow_up: follow_up.iter().map(AgentMessage::text).collect(),
        },
        Event::CompactionStart { reason } => News::CompactionStarted(*reason),
        Event::CompactionEnd { result, aborted, error_message, .. } => News::CompactionEnded {
            summary: result.map(|result| (result.summary.clone(), result.tokens_before)),
            usage: result.and_then(|result| result.usage.clone()).map(Box::new),
            aborted: *aborted,
            error: error_message.map(str::to_owned),
        },
        Event::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
            News::RetryStarted {
                attempt: *attempt,
                max_attempts: *max_attempts,
                delay: Duration::from_millis(*delay_ms),
                error: (*error_message).to_owned(),
            }
        }
        Event::SummaryRetryStart { .. } | Event::SummaryRetryFinished => News::RetryEnded,
        // A failed answer tells why.
        Event::EntryAppended { entry } => {
            let mut entry = serde_json::to_value(entry).ok()?;
            match entry["type"].as_str()? {
                "custom" => News::EntryAppended(entry),
                // The end of a turn appends messages and compactions that no other event tells of.
                "custom_message" => {
                    entry["role"] = "custom".into();
                    // That of an entry is a text, and nobody sees it.
                    entry["timestamp"] = 0.into();
                    News::MessageStarted(serde_json::from_value(entry).ok()?)
                }
                "compaction" => News::CompactionEnded {
                    summary: Some((entry["summary"].as_str()?.to_owned(), entry["tokensBefore"].as_u64()?)),
                    usage: None,
                    aborted: false,
                    error: None,
                },
                "usage" if entry["kind"] == cache_warming::KIND => {
                    News::CacheWarmed(serde_json::from_value(entry["usage"].take()).ok()?)
                }
                _ => return None,
            }
        }
        Event::Failed { .. } | Event::Output { .. } => return None,
    })
}

fn of_agent(event: &AgentEvent<'_>) -> Option<News> {
    Some(match event {
        AgentEvent::AgentStart => News::RunStarted,
        AgentEvent::AgentEnd { .. } => News::RunEnded,
        AgentEvent::TurnStart | AgentEvent::TurnEnd { .. } => return None,
        AgentEvent::PromptProgress { processed, total } => News::PromptProgress(*processed, *total),
        AgentEvent::MessageStart { message } => News::MessageStarted((*message).clone()),
        AgentEvent::MessageEnd { message } => News::MessageEnded((*message).clone()),
        AgentEvent::MessageUpdate { event, .. } => return of_answer(event),
        // The card of the call that made them tells of such calls.
        AgentEvent::ToolStart { parent: Some(_), .. }
        | AgentEvent::ToolUpdate { parent: Some(_), .. }
        | AgentEvent::ToolEnd { parent: Some(_), .. } => return None,
        AgentEvent::ToolStart { id, name, arguments, .. } => News::ToolStarted {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).clone(),
        },
        AgentEvent::ToolUpdate { id, output, .. } => {
            News::ToolUpdated { id: (*id).to_owned(), output: (*output).clone() }
        }
        AgentEvent::ToolEnd { id, output, is_error, .. } => {
            News::ToolEnded { id: (*id).to_owned(), output: (*output).clone(), is_error: *is_error }
        }
    })
}

fn of_answer(event: &AssistantEvent) -> Option<News> {
    let started = |index: &usize, kind| News::BlockStarted {
        index: *index,
        kind,
        id: String::new(),
        name: String::new(),
    };
    let piece = |index: &usize, kind, text: &str| News::Piece { index: *index, kind, text: text.to_owned() };
    Some(match event {
        AssistantEvent::TextStart { index } => started(index, Kind::Text),
        AssistantEvent::ThinkingStart { index } => started(index, Kind::Thinking),
        AssistantEvent::ToolCallStart { index, id, name } => {
            News::BlockStarted { index: *index, kind: Kind::Arguments, id: id.clone(), name: name.clone() }
        }
        AssistantEvent::TextDelta { index, delta } => piece(index, Kind::Text, delta),
        AssistantEvent::ThinkingDelta { index, delta } => piece(index, Kind::Thinking, delta),
        AssistantEvent::ToolCallDelta { index, delta } => piece(index, Kind::Arguments, delta),
        AssistantEvent::TextEnd { index, .. }
        | AssistantEvent::ThinkingEnd { index, .. }
        | AssistantEvent::ToolCallEnd { index, .. } => News::BlockEnded { index: *index },
        AssistantEvent::Start
        | AssistantEvent::Info(_)
        | AssistantEvent::Done { .. }
        | AssistantEvent::Error(_) => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(feed: &Feed) -> Vec<String> {
        let text = |news| match news {
            News::Piece { text, .. } | News::ShellPrinted(text) => text,
            News::ToolUpdated { id, output } => {
                let texts: String = output.content.iter().filter_map(|b| b.as_text()).collect();
                format!("{id}: {texts}")
            }
            _ => String::new(),
        };
        feed.take().into_iter().map(text).collect()
    }

    #[test]
    fn what_waits_is_joined_and_of_running_tools_the_last_state_is_kept() {
        let feed = Feed::new();
        let piece = |index, text: &str| News::Piece { index, kind: Kind::Text, text: text.to_owned() };
        let state =
            |id: &str, text: &str| News::ToolUpdated { id: id.to_owned(), output: ToolOutput::text(text) };
        for news in [
            piece(0, "a"),
            piece(0, "b"),
            piece(1, "c"),
            state("x", "1"),
            state("y", "1"),
            state("x", "2"),
            state("y", "2"),
            News::Effect(Box::new(Effect::Draw)),
            News::ShellPrinted("d".into()),
            News::Effect(Box::new(Effect::Draw)),
            News::ShellPrinted("e".into()),
            state("x", "3"),
        ] {
            feed.put(news);
        }
        assert_eq!(feed.woken().len(), 1);
        assert_eq!(texts(&feed), ["ab", "c", "x: 2", "y: 2", "", "de", "x: 3"]);
        assert_eq!(texts(&feed), [] as [&str; 0]);
    }
}
