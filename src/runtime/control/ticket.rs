//! Exclusive use of a session: one run at a time, or one compaction.

use super::{Control, Emit};
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::base::cancel::CancelToken;
use crate::runtime::task::Streaming;

/// The outcome of [`Control::begin`].
pub enum Begin {
    /// The prompt may run: pass the ticket to `Session::ask`.
    Run(Ticket),
    /// The prompt was queued for the run under way.
    Queued,
}

/// The right to run a prompt or a compaction. The session is busy while the ticket lives.
pub struct Ticket {
    control: Control,
    pub cancel: CancelToken,
    kind: Work,
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Run,
    Compaction,
    Over,
}

impl Control {
    /// Starts a run for a prompt. During a run, the prompt is queued as `streaming` says; without `streaming`
    /// it is an error.
    pub fn begin(
        &self,
        streaming: Option<Streaming>,
        message: impl FnOnce() -> AgentMessage,
        emit: Emit<'_>,
    ) -> Result<Begin, String> {
        let mut queues = self.queues();
        {
            let mut state = self.state();
            if state.compaction.is_some() {
                return Err(
                    "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
                        .into(),
                );
            }
            if state.run.is_none() {
                let cancel = self.0.root.child();
                state.run = Some(cancel.clone());
                queues.steering.mark();
                return Ok(Begin::Run(self.ticket(cancel, Work::Run)));
            }
        }
        let streaming = streaming.ok_or(
            "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.",
        )?;
        queues.push(self.hidden(message()), streaming, emit);
        Ok(Begin::Queued)
    }

    /// Starts a manual compaction or a move in the tree. A run under way continues.
    pub fn begin_compaction(&self) -> Result<Ticket, String> {
        let mut state = self.state();
        if state.compaction.is_some() {
            return Err("A compaction is already in progress".into());
        }
        let cancel = self.0.root.child();
        state.compaction = Some(cancel.clone());
        Ok(self.ticket(cancel, Work::Compaction))
    }

    fn ticket(&self, cancel: CancelToken, kind: Work) -> Ticket {
        Ticket { control: self.clone(), cancel, kind }
    }
}

impl Ticket {
    /// Ends the run, appends held-back messages and returns true. If a message is queued and `leave_queue` is
    /// not set, returns false: the run then continues with that message.
    pub(crate) fn finish(&mut self, leave_queue: bool) -> Result<bool, Fatal> {
        let control = self.control.clone();
        // Held, so that nothing is queued for a run that is over.
        let queues = control.queues();
        let is_empty = queues.steering.is_empty() && queues.follow_up.is_empty();
        if !is_empty && !leave_queue {
            return Ok(false);
        }
        control.write_held_back()?;
        self.kind = Work::Over;
        control.state().run = None;
        Ok(true)
    }

    /// Calls the callbacks of [`Control::when_idle`] if the session is idle. Must be called after listeners
    /// are notified.
    pub fn wake_idle(&self) {
        let waiting = {
            let mut state = self.control.state();
            if !state.is_idle() {
                return;
            }
            std::mem::take(&mut state.when_idle)
        };
        waiting.into_iter().for_each(|then| then());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.kind {
            Work::Run => self.control.state().run = None,
            Work::Compaction => {
                let mut state = self.control.state();
                // A listener of this compaction may have started another one already.
                if state.compaction.as_ref().is_some_and(|of| of.is(&self.cancel)) {
                    state.compaction = None;
                }
            }
            Work::Over => {}
        }
        self.wake_idle();
    }
}
