//! Events of a session: those of the agent, and those beyond a single run.

use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::llm::model::ThinkingLevel;
use crate::session::compaction::CompactionResult;
use crate::session::entry::Entry;
use serde_json::Value;

/// Receives every event of a run, on the thread that runs the prompt. An error ends the run.
pub type Listener<'a> = &'a mut dyn FnMut(&Event<'_>) -> Result<(), Fatal>;

/// Receives the events of a command.
pub type Emit<'a> = &'a mut dyn FnMut(&Event<'_>);

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user asked for it.
    Manual,
    /// Less than the reserve of the context window was free.
    Threshold,
    /// The model refused the context, or cut its answer short for want of room.
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
    /// The prompt is finished: nothing more happens without a new command. Emitted once for each prompt.
    AgentSettled {
        /// True if the run was aborted.
        aborted: bool,
    },
    /// The run failed, for instance because the log cannot be written. Emitted after `agent_end`.
    Failed {
        reason: &'a str,
    },
    /// A limit ended the run before the model was finished.
    LimitReached {
        reason: &'a str,
    },
    /// The JSON value at the end of a run, or why there is none. Emitted only if a value was wanted.
    Output {
        outcome: &'a Result<Value, String>,
    },
    /// A request failed and is retried after `delay_ms`.
    AutoRetryStart {
        attempt: u64,
        max_attempts: u64,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// Retries ended with an answer, or with the error in `final_error`.
    AutoRetryEnd {
        success: bool,
        attempt: u64,
        final_error: Option<&'a str>,
    },
    /// An entry that is not a message was appended to the log.
    EntryAppended {
        entry: &'a Entry,
    },
    /// A helper has begun, ended, or does something else.
    HelperUpdate {
        helper: &'a Value,
    },
    /// The session was renamed; `None` if its name was removed.
    SessionInfoChanged {
        name: Option<&'a str>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    /// A shell command of the user printed `delta`. `id` is the id of the client's request.
    BashUpdate {
        id: Option<&'a Value>,
        delta: &'a str,
    },
    /// The full contents of both queues after a change.
    QueueUpdate {
        steering: &'a [AgentMessage],
        follow_up: &'a [AgentMessage],
    },
    CompactionStart {
        reason: Reason,
    },
    /// A compaction ended with `result`, or was aborted, or failed with `error_message`. `will_retry` is true
    /// if the run continues with a new request.
    CompactionEnd {
        reason: Reason,
        result: Option<&'a CompactionResult>,
        aborted: bool,
        will_retry: bool,
        error_message: Option<&'a str>,
    },
    /// A request for a summary failed and is retried after `delay_ms`.
    SummaryRetryScheduled {
        attempt: u64,
        max_attempts: u64,
        delay_ms: u64,
        error_message: &'a str,
    },
    /// A request for a summary is retried. `reason` is the compaction's; `None` for the summary of a branch.
    SummaryRetryStart {
        reason: Option<Reason>,
    },
    SummaryRetryFinished,
}
