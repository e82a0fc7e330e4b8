//! The calls that a tool makes while it runs: what people see of them, and what the session keeps.

use crate::agent::tool::ToolOutput;
use crate::base::json::json;
use crate::llm::message::Usage;
use crate::session::compaction::add_usage;
use serde_json::{Map, Value};
use std::time::Instant;

/// Characters of arguments and errors that people see.
const ARGUMENTS_SHOWN: usize = 200;
const ERROR_MAX: usize = 500;
/// Limits of what the session keeps: calls, bytes of one call's arguments, and of all.
const CALLS_MAX: usize = 256;
const ARGUMENTS_MAX: usize = 8 << 10;
const ARGUMENTS_SUM: usize = 32 << 10;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    Ok,
    Error,
    Cancelled,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

struct Call {
    id: String,
    name: String,
    /// As JSON.
    arguments: String,
    status: Status,
    begun: Instant,
    duration_ms: u64,
    error: String,
    /// For a question to a model: what it cost in US dollars, once that is known.
    cost: Option<Value>,
    is_tool: bool,
}

/// The calls of one tool call, in the order in which they began.
pub struct Calls {
    /// The id of the call that makes them.
    id: String,
    /// Calls of tools.
    begun: usize,
    /// Questions to models.
    asked: usize,
    all: Vec<Call>,
    /// Records of the calls that they made in turn.
    inner: Vec<Value>,
    /// What models cost that they asked.
    pub usage: Option<Usage>,
}

impl Calls {
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), begun: 0, asked: 0, all: Vec::new(), inner: Vec::new(), usage: None }
    }

    /// Gives the id of a new call, and its place.
    pub fn begin(&mut self, name: &str, arguments: &Value) -> (String, usize) {
        self.begun += 1;
        let id = format!("{}/{}", self.id, self.begun);
        let at = self.add(&id, name, arguments.to_string(), true);
        (id, at)
    }

    /// Notes a question to a model, which people see and the session does not keep. Gives its place.
    pub fn ask(&mut self, name: &str, model: String) -> usize {
        self.asked += 1;
        let id = format!("{}/{name}/{}", self.id, self.asked);
        self.add(&id, name, model, false)
    }

    fn add(&mut self, id: &str, name: &str, arguments: String, is_tool: bool) -> usize {
        let at = self.all.len();
        if at == CALLS_MAX {
            return usize::MAX;
        }
        self.all.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
            status: Status::Running,
            begun: Instant::now(),
            duration_ms: 0,
            error: String::new(),
            cost: None,
            is_tool,
        });
        at
    }

    /// Counts what a question to a model cost.
    pub fn pay(&mut self, at: usize, usage: Usage) {
        if let Some(call) = self.all.get_mut(at) {
            call.cost = serde_json::to_value(&usage.cost).ok().and_then(|cost| cost.get("total").cloned());
        }
        self.usage = self.usage_with(Some(usage));
    }

    pub fn end(&mut self, at: usize, status: Status, error: &str) {
        if let Some(call) = self.all.get_mut(at) {
            call.status = status;
            call.duration_ms = u64::try_from(call.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            error.chars().take(ERROR_MAX).collect::<String>().clone_into(&mut call.error);
        }
    }

    /// Takes in what a call that has ended tells of its own calls and costs.
    pub fn absorb(&mut self, output: &ToolOutput) {
        let room = CALLS_MAX.saturating_sub(self.inner.len());
        self.inner.extend(output.nested_calls.iter().take(room).cloned());
        self.usage = self.usage_with(output.usage.clone());
    }

    /// What all cost together with the tool's own.
    pub fn usage_with(&self, own: Option<Usage>) -> Option<Usage> {
        match (&self.usage, own) {
            (Some(sum), Some(own)) => Some(add_usage(sum, &own)),
            (sum, own) => own.or_else(|| sum.clone()),
        }
    }

    /// The tool is done: what still runs was cut off.
    pub fn close(&mut self) {
        for call in self.all.iter_mut().filter(|call| call.status == Status::Running) {
            call.status = Status::Cancelled;
        }
    }

    /// The details of the result: a row for each call.
    pub fn details(&self) -> Value {
        let row = |call: &Call| {
            let mut row = json!({"id": call.id, "name": call.name,
                "args": shown(&call.arguments), "status": call.status.name()});
            if matches!(call.status, Status::Ok | Status::Error) {
                row["durationMs"] = call.duration_ms.into();
            }
            if !call.error.is_empty() {
                row["error"] = call.error.as_str().into();
            }
            if let Some(cost) = &call.cost {
                row["cost"] = cost.clone();
            }
            row
        };
        json!({"calls": self.all.iter().map(row).collect::<Vec<_>>()})
    }

    /// What the session keeps with the result: `nestedCalls`; none if there was no call.
    pub fn record(&self) -> Option<Value> {
        let calls: Vec<&Call> = self.all.iter().filter(|call| call.is_tool).collect();
        if calls.is_empty() {
            return None;
        }
        let (mut sum, mut is_complete) = (0, self.begun == calls.len());
        let mut rows: Vec<Value> = calls
            .into_iter()
            .map(|call| {
                let is_over = matches!(call.status, Status::Ok | Status::Error);
                let status = if is_over { call.status.name() } else { "unfinished" };
                let mut row = Map::new();
                row.insert("id".into(), call.id.as_str().into());
                row.insert("name".into(), call.name.as_str().into());
                row.insert("status".into(), status.into());
                let bytes = call.arguments.len();
                if bytes > ARGUMENTS_MAX || sum + bytes > ARGUMENTS_SUM {
                    row.insert("argumentsBytes".into(), bytes.into());
                    is_complete = false;
                } else {
                    sum += bytes;
                    row.insert("arguments".into(), serde_json::from_str(&call.arguments).unwrap_or_default());
                }
                if is_over {
                    row.insert("durationMs".into(), call.duration_ms.into());
                }
                if !call.error.is_empty() {
                    row.insert("error".into(), call.error.as_str().into());
                }
                is_complete &= is_over;
                row.into()
            })
            .collect();
        for record in &self.inner {
            is_complete &= record["complete"] == true;
            rows.extend(record["calls"].as_array().into_iter().flatten().cloned());
        }
        is_complete &= rows.len() <= CALLS_MAX;
        rows.truncate(CALLS_MAX);
        Some(json!({"calls": rows, "complete": is_complete}))
    }

    /// What was done before a script failed, for the model.
    pub fn summary(&self) -> String {
        if self.all.is_empty() {
            return "No tool was called.".to_owned();
        }
        let calls: Vec<String> =
            self.all.iter().map(|call| format!("{} ({})", call.name, call.status.name())).collect();
        let dropped = self.begun + self.asked - self.all.len();
        let more = if dropped > 0 { format!(" and {dropped} more") } else { String::new() };
        format!("Called before that, and not undone: {}{more}", calls.join(", "))
    }
}

/// The beginning of a text.
fn shown(text: &str) -> String {
    match text.chars().count() {
        ..=ARGUMENTS_SHOWN => text.to_owned(),
        _ => text.chars().take(ARGUMENTS_SHOWN - 3).chain("...".chars()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_limits_and_says_so() {
        let mut calls = Calls::new("c1");
        assert_eq!(calls.record(), None);
        let (id, at) = calls.begin("read", &json!({"path": "a"}));
        assert_eq!((id.as_str(), at), ("c1/1", 0));
        calls.end(at, Status::Ok, "");
        let mut record = calls.record().unwrap();
        record["calls"][0].as_object_mut().unwrap().shift_remove("durationMs");
        let row = json!({"id": "c1/1", "name": "read", "status": "ok", "arguments": {"path": "a"}});
        assert_eq!(record, json!({"calls": [row], "complete": true}));
        // Arguments over the limit are left out.
        calls.begin("write", &json!({"content": "x".repeat(ARGUMENTS_MAX)}));
        let (_, at) = calls.begin("bash", &json!({}));
        calls.end(at, Status::Error, &"e".repeat(600));
        let record = calls.record().unwrap();
        assert_eq!(
            (&record["complete"], &record["calls"][1]["status"]),
            (&json!(false), &json!("unfinished"))
        );
        assert!(record["calls"][1]["argumentsBytes"].as_u64().unwrap() > 8192);
        assert_eq!(record["calls"][2]["error"].as_str().unwrap().len(), ERROR_MAX);
        calls.close();
        assert_eq!(calls.details()["calls"][1]["status"], "cancelled");
        assert_eq!(
            calls.summary(),
            "Called before that, and not undone: read (ok), write (cancelled), bash (error)"
        );
        for _ in 0..CALLS_MAX {
            calls.begin("ls", &json!({}));
        }
        assert_eq!(calls.record().unwrap()["calls"].as_array().unwrap().len(), CALLS_MAX);
        assert!(calls.summary().ends_with(" and 3 more"), "{}", calls.summary());
    }
}
