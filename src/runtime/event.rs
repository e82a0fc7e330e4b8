//! What happens in a session: the agent's events and those above a single run.

use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::llm::model::ThinkingLevel;
use crate::session::compaction::CompactionResult;
use crate::session::entry::Entry;
use serde_json::Value;

/// Takes every event of a run, on the thread that runs the prompt. An error ends the run.
pub type Listener<'a> = &'a mut dyn FnMut(&Event<'_>) -> Result<(), Fatal>;

/// Takes the events of a command.
pub type Emit<'a> = &'a mut dyn FnMut(&Event<'_>);

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user asked for it.
    Manual,
    /// The context left less room than is to be kept free.
    Threshold,
    /// The model refused the context, or cut its answer for want of room.
    Overflow,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow => "overflow",
        }
    }
}

/// The final error of retries that the user has ended.
pub const RETRY_CANCELLED: &str = "Retry cancelled";

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Agent(AgentEvent<'a>),
    /// Nothing more happens by itself. Once for each prompt.
    AgentSettled {
        /// The run was ended by an abort.
        aborted: bool,
    },
    /// The run cannot go on, for instance because the log cannot be written. After `agent_end`.
    Failed {
        reason: &'a str,
    },
    /// The run was ended by a limit, though the model had more to do.
    LimitReached {
        reason: &'a str,
    },
    /// The value that the run was to end with, or why there is none. Only where one was asked for.
    Output {
        outcome: &'a Result<Value, String>,
    },
    /// An answer failed and is asked for again after `delay_ms`.
    AutoRetryStart {
        attempt: u64,
        max_attempts: u64,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// An answer came, or there will be none: `final_error` says why.
    AutoRetryEnd {
        success: bool,
        attempt: u64,
        final_error: Option<&'a str>,
    },
    /// Something that is no message was written to the log.
    EntryAppended {
        entry: &'a Entry,
    },
    /// The session has another name, or none any more.
    SessionInfoChanged {
        name: Option<&'a str>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    /// A command of the user printed something. `id` is that of the request.
    BashUpdate {
        id: Option<&'a Value>,
        delta: &'a str,
    },
    /// The whole of both queues.
    QueueUpdate {
        steering: &'a [AgentMessage],
        follow_up: &'a [AgentMessage],
    },
    CompactionStart {
        reason: Reason,
    },
    /// A compaction is over, or there will be none: `result` or `aborted` or `error_message`.
    /// `will_retry`: the run goes on by itself.
    CompactionEnd {
        reason: Reason,
        result: Option<&'a CompactionResult>,
        aborted: bool,
        will_retry: bool,
        error_message: Option<&'a str>,
    },
    /// The request for a summary failed and is made again after `delay_ms`.
    SummaryRetryScheduled {
        attempt: u64,
        max_attempts: u64,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// `reason` is that of a compaction; none for the summary of a branch.
    SummaryRetryStart {
        reason: Option<Reason>,
    },
    SummaryRetryFinished,
}
