//! Calls of a program that wait for somebody. Some run at once, each on a thread; the others wait for their turn.

use crate::base::cancel::CancelToken;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// Calls that run at once.
const RUNNING_MAX: usize = 64;
/// Bytes of calls that wait for their turn, each counted with [`OVERHEAD`].
const WAITING_MAX: usize = 16 << 20;
/// Bytes that a call of a few words takes.
const OVERHEAD: usize = 1 << 10;

pub type Run = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Calls {
    /// By the ids of their requests.
    tokens: HashMap<String, CancelToken>,
    running: usize,
    waiting: VecDeque<(usize, Run)>,
    bytes: usize,
    is_over: bool,
}

/// When a call runs.
pub enum Turn {
    /// On a new thread, which then runs those that [`Calls::next`] gives.
    Now(Run),
    Later,
    Refused,
}

impl Calls {
    /// Adds a call of `size` bytes that `token` cancels.
    pub fn add(&mut self, id: Option<&Value>, token: &CancelToken, size: usize, run: Run) -> Turn {
        let size = size + OVERHEAD;
        let turn = match self.running < RUNNING_MAX {
            _ if self.is_over => return Turn::Refused,
            true => {
                self.running += 1;
                Turn::Now(run)
            }
            false if self.bytes + size > WAITING_MAX => return Turn::Refused,
            false => {
                self.bytes += size;
                self.waiting.push_back((size, run));
                Turn::Later
            }
        };
        self.tokens.extend(id.map(|id| (id.to_string(), token.clone())));
        turn
    }

    /// The call that runs on a thread whose call has ended.
    pub fn next(&mut self) -> Option<Run> {
        let next = self.waiting.pop_front();
        match &next {
            Some((size, _)) => self.bytes -= size,
            None => self.running -= 1,
        }
        next.map(|(_, run)| run)
    }

    pub fn find(&self, id: &Value) -> Option<CancelToken> {
        self.tokens.get(&id.to_string()).cloned()
    }

    /// Forgets a call that has ended.
    pub fn forget(&mut self, id: &Value) {
        self.tokens.remove(&id.to_string());
    }

    /// Cancels all calls, and takes no more. Gives those that have not begun.
    pub fn end(&mut self) -> impl Sized + use<> {
        self.is_over = true;
        self.tokens.values().for_each(CancelToken::cancel);
        std::mem::take(&mut self.waiting)
    }
}
