//! Limits of a run: turns, tokens, cost, time, and repetition.
//!
//! Limits other than time are checked after each turn, so that the log holds whole turns: the last turn may
//! exceed a limit. A run that repeats itself is warned once, and ended if it goes on.

use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crate::llm::message::{AssistantMessage, Block, Usage, text_of};
use crate::resources::settings::Settings;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

/// Limits of a session's runs; `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Maximum number of answers to one prompt.
    pub turns: Option<u64>,
    /// Maximum US dollars for all requests while the program runs.
    pub cost: Option<f64>,
    /// Maximum tokens for all requests while the program runs, cached input included.
    pub tokens: Option<u64>,
    /// Maximum US dollars for the whole session, earlier runs of the program included.
    pub session_cost: Option<f64>,
    /// Maximum tokens for the whole session, earlier runs of the program included.
    pub session_tokens: Option<u64>,
    /// Maximum duration of one prompt.
    pub time: Option<Duration>,
    /// True to end runs that repeat themselves.
    pub loops: bool,
}

impl Limits {
    /// Fills limits that are not set from the settings.
    pub fn or(self, settings: &Settings) -> Self {
        let seconds = || Duration::try_from_secs_f64(settings.number("limits.seconds")?).ok();
        Self {
            turns: self.turns.or_else(|| settings.whole("limits.turns")),
            cost: self.cost.or_else(|| settings.number("limits.cost")),
            tokens: self.tokens.or_else(|| settings.whole("limits.tokens")),
            session_cost: self.session_cost.or_else(|| settings.number("limits.sessionCost")),
            session_tokens: self.session_tokens.or_else(|| settings.whole("limits.sessionTokens")),
            time: self.time.or_else(seconds),
            loops: self.loops || settings.flag("limits.loops"),
        }
    }

    /// True if nothing more may be spent.
    pub fn is_spent(&self) -> bool {
        self.tokens == Some(0) || self.cost.is_some_and(|cost| cost <= 0.0)
    }
}

/// Number of recent turns in which repetition is looked for.
const WINDOW: usize = 10;
/// Maximum number of equal turns in the window.
const SAME_MAX: usize = 5;

/// Checks the limits of a session's runs.
#[derive(Debug, Default)]
pub struct Guard {
    pub limits: Limits,
    turns: u64,
    spent: Spent,
    /// Spent in this conversation before it was opened.
    earlier: Spent,
    /// Spent by the program before it changed to this conversation.
    before: Spent,
    recent: VecDeque<u64>,
    warned: Option<u64>,
}

/// Spending: tokens and US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub tokens: u64,
    pub cost: f64,
}

impl Spent {
    pub fn add(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.total_tokens);
        self.cost += usage.cost.total;
    }
}

/// What the run does after a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Go,
    /// Continue, with this text as a message to the model.
    Warn(String),
    /// End the run; the text tells the user why.
    End(String),
}

impl Guard {
    pub fn new(limits: Limits, earlier: Spent) -> Self {
        Self { limits, earlier, ..Self::default() }
    }

    /// Resets the counters of one prompt.
    pub fn begin(&mut self) {
        self.turns = 0;
        self.recent.clear();
        self.warned = None;
    }

    /// Counts a turn. `goes_on` is true if another turn would follow.
    pub fn turn_ended(
        &mut self,
        answer: &AssistantMessage,
        results: &[AgentMessage],
        goes_on: bool,
    ) -> Verdict {
        self.turns += 1;
        self.spent.add(&answer.usage);
        let repeats = self.repeats(answer, results);
        if !goes_on {
            return Verdict::Go;
        }
        match self.passed() {
            Some(reason) => Verdict::End(reason),
            None => repeats,
        }
    }

    /// Counts a turn of a helper. Returns why the run must end, if a limit is reached.
    pub fn helper_turn_ended(&mut self, usage: &Usage) -> Option<String> {
        self.turns += 1;
        self.spent.add(usage);
        self.passed()
    }

    /// Counts a request that is not a turn.
    pub fn spend(&mut self, usage: &Usage) {
        self.spent.add(usage);
    }

    /// What is left of the limits of tokens and cost: for a helper, which counts for itself, too.
    pub fn left(&self) -> Limits {
        let limits = &self.limits;
        let (all_tokens, all_cost) = self.of_session();
        let tokens = limits.tokens.map(|most| most.saturating_sub(self.spent.tokens));
        let of_session = limits.session_tokens.map(|most| most.saturating_sub(all_tokens));
        let cost = limits.cost.map(|most| most - self.spent.cost);
        let cost_of_session = limits.session_cost.map(|most| most - all_cost);
        Limits {
            tokens: tokens.into_iter().chain(of_session).min(),
            cost: cost.into_iter().chain(cost_of_session).min_by(f64::total_cmp),
            ..Limits::default()
        }
    }

    /// Tokens and cost of the whole conversation.
    fn of_session(&self) -> (u64, f64) {
        let here = self.spent.tokens.saturating_sub(self.before.tokens);
        (self.earlier.tokens.saturating_add(here), self.earlier.cost + self.spent.cost - self.before.cost)
    }

    /// Changes to another conversation, which has spent `earlier` already.
    pub fn go_on_in(&mut self, earlier: Spent) {
        self.earlier = earlier;
        self.before = self.spent;
    }

    /// Describes a limit that is reached; `None` if there is none.
    pub fn passed(&self) -> Option<String> {
        let limits = &self.limits;
        let tokens = self.spent.tokens;
        let cost = self.spent.cost;
        let (all_tokens, all_cost) = self.of_session();
        if let Some(most) = limits.turns.filter(|&most| self.turns >= most) {
            return Some(format!("the limit of {most} turns is reached (--max-turns)"));
        }
        if let Some(most) = limits.cost.filter(|&most| cost >= most) {
            return Some(format!("${cost:.4} are spent, the limit is ${most} (--max-cost)"));
        }
        if let Some(most) = limits.tokens.filter(|&most| tokens >= most) {
            return Some(format!("{tokens} tokens are used, the limit is {most} (--max-tokens-total)"));
        }
        if let Some(most) = limits.session_cost.filter(|&most| all_cost >= most) {
            return Some(format!(
                "${all_cost:.4} are spent in this session, the limit is ${most} (setting limits.sessionCost)"
            ));
        }
        if let Some(most) = limits.session_tokens.filter(|&most| all_tokens >= most) {
            return Some(format!(
                "{all_tokens} tokens are used in this session, the limit is {most} (setting limits.sessionTokens)"
            ));
        }
        None
    }

    fn repeats(&mut self, answer: &AssistantMessage, results: &[AgentMessage]) -> Verdict {
        let Some(turn) = fingerprint(answer, results).filter(|_| self.limits.loops) else {
            return Verdict::Go;
        };
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(turn);
        if self.warned == Some(turn) {
            return Verdict::End("the model repeats the same tool calls, with the same results".into());
        }
        if self.recent.iter().filter(|&&known| known == turn).count() <= SAME_MAX {
            return Verdict::Go;
        }
        self.warned = Some(turn);
        Verdict::Warn(format!(
            "The same tool calls have now been made more than {SAME_MAX} times with the same results. Do something else, or say what keeps you from going on. The run ends if they are made once more."
        ))
    }
}

/// Hashes the tool calls of a turn and their results; `None` for a turn without calls.
fn fingerprint(answer: &AssistantMessage, results: &[AgentMessage]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut calls = 0;
    for block in &answer.content {
        if let Block::ToolCall(call) = block {
            calls += 1;
            call.name.hash(&mut hasher);
            serde_json::to_string(&call.arguments).unwrap_or_default().hash(&mut hasher);
        }
    }
    for result in results {
        if let AgentMessage::ToolResult(result) = result {
            result.is_error.hash(&mut hasher);
            text_of(&result.content).hash(&mut hasher);
        }
    }
    (calls > 0).then(|| hasher.finish())
}

/// A thread that cancels a run after a time limit.
pub struct TimeLimit(Option<Watch>);

struct Watch {
    limit: Duration,
    done: CancelToken,
    /// Thread that returns true if it cancelled the run.
    thread: JoinHandle<bool>,
}

impl TimeLimit {
    pub fn start(limit: Option<Duration>, run: &CancelToken) -> io::Result<Self> {
        let Some(limit) = limit else {
            return Ok(Self(None));
        };
        let (run, done) = (run.clone(), CancelToken::new());
        let watched = done.clone();
        let watch = move || {
            let is_up = !watched.wait_timeout(limit) && !run.is_cancelled();
            if is_up {
                run.cancel();
            }
            is_up
        };
        let thread = Thread::named("time-limit").stack(64 << 10).start(watch)?;
        Ok(Self(Some(Watch { limit, done, thread })))
    }

    /// Stops the time limit. Returns the reason if the limit cancelled the run.
    pub fn end(mut self) -> Option<String> {
        let Watch { limit, done, thread } = self.0.take()?;
        done.cancel();
        let ended_it = thread.join().unwrap_or(false);
        ended_it.then(|| {
            let seconds = limit.as_secs_f64();
            format!("the time limit of {seconds} s is reached (--timeout)")
        })
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some(watch) = self.0.take() {
            watch.done.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::llm::message::{ToolCall, ToolResultMessage, UsageCost};
    use std::sync::Arc;

    fn guard(limits: Limits) -> Guard {
        Guard::new(limits, Spent { tokens: 1000, cost: 1.0 })
    }

    /// A turn with one call, for 100 tokens and 10 cents.
    fn turn(guard: &mut Guard, command: &str, result: &str) -> Verdict {
        let call = ToolCall {
            name: "bash".into(),
            arguments: json!({"command": command}).as_object().unwrap().clone(),
            ..ToolCall::default()
        };
        let usage = Usage {
            total_tokens: 100,
            cost: UsageCost { total: 0.1, ..UsageCost::default() },
            ..Usage::default()
        };
        let answer = AssistantMessage {
            content: vec![Block::ToolCall(Box::new(call))],
            usage,
            ..AssistantMessage::default()
        };
        let result = ToolResultMessage { content: vec![Block::text(result)], ..ToolResultMessage::default() };
        let results = [AgentMessage::ToolResult(Arc::new(result))];
        guard.turn_ended(&answer, &results, true)
    }

    /// Turns until the end, each another one.
    #[track_caller]
    fn check(limits: Limits, turns: usize, reason: &str) {
        let mut guard = guard(limits);
        for number in 1..turns {
            assert_eq!(turn(&mut guard, &number.to_string(), ""), Verdict::Go, "turn {number}");
        }
        match turn(&mut guard, "last", "") {
            Verdict::End(text) => assert!(text.contains(reason), "{text}"),
            verdict => panic!("{reason}: {verdict:?}"),
        }
    }

    #[test]
    fn each_limit_ends_the_run() {
        let none = Limits::default;
        check(Limits { turns: Some(3), ..none() }, 3, "--max-turns");
        check(Limits { cost: Some(0.2), ..none() }, 2, "--max-cost");
        check(Limits { tokens: Some(250), ..none() }, 3, "--max-tokens-total");
        check(Limits { session_cost: Some(1.1), ..none() }, 1, "limits.sessionCost");
        check(Limits { session_tokens: Some(1200), ..none() }, 2, "limits.sessionTokens");
    }

    #[test]
    fn a_run_that_ends_by_itself_is_not_ended() {
        let mut guard = guard(Limits { turns: Some(1), ..Limits::default() });
        let answer = AssistantMessage::default();
        assert_eq!(guard.turn_ended(&answer, &[], false), Verdict::Go);
        // But there is no other after it, until the next prompt.
        assert!(guard.passed().is_some());
        guard.begin();
        assert_eq!(guard.passed(), None);
    }

    #[test]
    fn a_circle_is_told_to_the_model_and_then_ended() {
        let mut guard = guard(Limits { loops: true, ..Limits::default() });
        for _ in 0..SAME_MAX {
            assert_eq!(turn(&mut guard, "ls", "a"), Verdict::Go);
        }
        assert!(matches!(turn(&mut guard, "ls", "a"), Verdict::Warn(_)));
        assert_eq!(turn(&mut guard, "pwd", "/"), Verdict::Go);
        assert!(matches!(turn(&mut guard, "ls", "a"), Verdict::End(_)));
    }

    #[test]
    fn other_results_and_other_calls_are_no_circle() {
        let mut guard = guard(Limits { loops: true, ..Limits::default() });
        for number in 0..100 {
            assert_eq!(turn(&mut guard, "date", &number.to_string()), Verdict::Go);
        }
        // Half of the turns in the window are the same, which is not more than allowed.
        for number in 0..100 {
            assert_eq!(turn(&mut guard, "ls", "a"), Verdict::Go, "{number}");
            assert_eq!(turn(&mut guard, "edit", &number.to_string()), Verdict::Go);
        }
    }
}
