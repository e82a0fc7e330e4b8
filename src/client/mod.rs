//! A client of `pi --mode rpc`: starts the program, sends commands, receives responses and events.
//!
//! One thread reads the program's output into a bounded channel; everything else happens in the calls.
//! Responses are matched by their id, in any order; events received meanwhile are queued for
//! [`Client::next_event`]. The program is killed when the client is dropped.
//!
//! ```no_run
//! use pi::client::Client;
//! use std::process::Command;
//!
//! let mut client = Client::spawn(Command::new("pi").args(["--mode", "rpc"]))?;
//! client.prompt("Hello")?;
//! client.wait_until_settled()?;
//! println!("{}", client.last_text()?.unwrap_or_default());
//! # Ok::<(), pi::client::ClientError>(())
//! ```

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum lines that are read ahead.
const AHEAD: usize = 256;

/// Default time limit for a response or an event; see [`Client::set_patience`].
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    answers: HashMap<u64, Value>,
    events: VecDeque<Value>,
    last_id: u64,
    patience: Duration,
}

#[derive(Debug)]
pub enum ClientError {
    Start(io::Error),
    Write(io::Error),
    /// The program refused a command.
    Refused {
        command: String,
        error: String,
    },
    /// The program has ended, or closed its output.
    Gone,
    /// No line was received in time.
    Late {
        waited: Duration,
    },
    /// A response has an unexpected shape.
    Strange(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "Cannot start pi: {error}"),
            Self::Write(error) => write!(f, "Cannot send to pi: {error}"),
            Self::Refused { command, error } => write!(f, "pi refused {command}: {error}"),
            Self::Gone => f.write_str("pi has ended"),
            Self::Late { waited } => write!(f, "pi said nothing for {waited:?}"),
            Self::Strange(what) => write!(f, "pi answered in a way that is not understood: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// The state of the session, as returned by `get_state`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub model: Value,
    pub thinking_level: String,
    pub is_streaming: bool,
    pub is_compacting: bool,
    pub session_file: Option<String>,
    pub session_id: String,
    pub session_name: Option<String>,
    pub message_count: usize,
    pub pending_message_count: usize,
}

impl Client {
    /// Starts `command`, which must be pi in RPC mode. Its stderr is left as configured.
    pub fn spawn(command: &mut Command) -> Result<Self, ClientError> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(ClientError::Start)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = bounded(AHEAD);
        let client = Self {
            child,
            stdin,
            lines,
            answers: HashMap::new(),
            events: VecDeque::new(),
            last_id: 0,
            patience: PATIENCE,
        };
        let Some(stdout) = stdout else {
            return Err(ClientError::Gone);
        };
        std::thread::Builder::new()
            .name("pi-client".into())
            .spawn(move || read(stdout, &sender))
            .map_err(ClientError::Start)?;
        Ok(client)
    }

    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the command `command` with `fields`, an object or null. Returns its id.
    pub fn send(&mut self, command: &str, fields: Value) -> Result<u64, ClientError> {
        self.last_id += 1;
        let mut line = Map::new();
        line.insert("id".into(), self.last_id.into());
        line.insert("type".into(), command.into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        self.send_line(Value::Object(line).to_string().as_bytes())?;
        Ok(self.last_id)
    }

    /// Sends any bytes as a line.
    pub fn send_line(&mut self, line: &[u8]) -> Result<(), ClientError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(ClientError::Gone);
        };
        let sent = stdin.write_all(line).and_then(|()| stdin.write_all(b"\n"));
        sent.and_then(|()| stdin.flush()).map_err(ClientError::Write)
    }

    /// Waits for the response to the command `id`, and returns all of it.
    pub fn answer(&mut self, id: u64) -> Result<Value, ClientError> {
        let end = Instant::now() + self.patience;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            let line = self.receive(end)?;
            self.sort(line);
        }
    }

    /// Sends a command and waits for the data of its response; null if it has none.
    pub fn request(&mut self, command: &str, fields: Value) -> Result<Value, ClientError> {
        let id = self.send(command, fields)?;
        let mut answer = self.answer(id)?;
        if answer["success"] == true {
            return Ok(answer["data"].take());
        }
        Err(ClientError::Refused {
            command: command.to_owned(),
            error: answer["error"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Waits for the next event, or another line that is not a response to this client.
    pub fn next_event(&mut self) -> Result<Value, ClientError> {
        let end = Instant::now() + self.patience;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let line = self.receive(end)?;
            self.sort(line);
        }
    }

    /// Waits for an event of the type `kind`. Returns the events up to and including it.
    pub fn events_until(&mut self, kind: &str) -> Result<Vec<Value>, ClientError> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event()?;
            let is_last = event["type"] == kind;
            events.push(event);
            if is_last {
                return Ok(events);
            }
        }
    }

    /// Waits until the session is settled. Returns the events up to then.
    pub fn wait_until_settled(&mut self) -> Result<Vec<Value>, ClientError> {
        self.events_until("agent_settled")
    }

    /// Sends a prompt. Returns when it is accepted.
    pub fn prompt(&mut self, text: &str) -> Result<(), ClientError> {
        self.request("prompt", json!({"message": text})).map(drop)
    }

    pub fn steer(&mut self, text: &str) -> Result<(), ClientError> {
        self.request("steer", json!({"message": text})).map(drop)
    }

    pub fn follow_up(&mut self, text: &str) -> Result<(), ClientError> {
        self.request("follow_up", json!({"message": text})).map(drop)
    }

    /// Aborts the current run. Returns when the session is idle.
    pub fn abort(&mut self) -> Result<(), ClientError> {
        self.request("abort", Value::Null).map(drop)
    }

    pub fn state(&mut self) -> Result<State, ClientError> {
        let state = self.request("get_state", Value::Null)?;
        State::deserialize(state).map_err(|error| ClientError::Strange(error.to_string()))
    }

    pub fn messages(&mut self) -> Result<Vec<Value>, ClientError> {
        match self.request("get_messages", Value::Null)?["messages"].take() {
            Value::Array(messages) => Ok(messages),
            other => Err(ClientError::Strange(other.to_string())),
        }
    }

    /// The text of the model's last answer.
    pub fn last_text(&mut self) -> Result<Option<String>, ClientError> {
        let answer = self.request("get_last_assistant_text", Value::Null)?;
        Ok(answer["text"].as_str().map(str::to_owned))
    }

    /// The program's lines as they come, responses too, for a caller that waits for other things besides. They bypass
    /// [`Client::answer`] and [`Client::next_event`].
    pub(crate) fn lines(&self) -> &Receiver<Value> {
        &self.lines
    }

    /// Asks the program to end, and waits for it. If it does not end in time, it is killed.
    pub fn close(mut self) -> Result<ExitStatus, ClientError> {
        drop(self.stdin.take());
        // Nobody reads any more: the program must not wait for that.
        let end = Instant::now() + self.patience;
        loop {
            match self.receive(end) {
                Ok(line) => self.sort(line),
                Err(ClientError::Gone) => return self.child.wait().map_err(|_| ClientError::Gone),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive(&mut self, end: Instant) -> Result<Value, ClientError> {
        self.lines.recv_deadline(end).map_err(|error| match error {
            RecvTimeoutError::Timeout => ClientError::Late { waited: self.patience },
            RecvTimeoutError::Disconnected => ClientError::Gone,
        })
    }

    fn sort(&mut self, line: Value) {
        let is_answer = line["type"] == "response";
        match line["id"].as_u64().filter(|_| is_answer) {
            Some(id) => {
                self.answers.insert(id, line);
            }
            None => self.events.push_back(line),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // It may have ended just now, which is as good.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn read(stdout: impl Read, lines: &Sender<Value>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdout.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // What is no JSON was not said by pi.
        let value = serde_json::from_slice(&line).ok();
        let Some(value) = value.or_else(|| too_deep(&line)) else {
            continue;
        };
        if lines.send(value).is_err() {
            return;
        }
    }
}

/// An error for a response that is nested too deeply to parse, such as the tree of a long session.
fn too_deep(line: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<u64>,
        command: String,
        // Passed over, however deep it is.
        #[serde(rename = "data")]
        _data: IgnoredAny,
    }
    let Head { id, command, .. } = serde_json::from_slice(line).ok()?;
    let error = "The answer is nested too deeply for this client";
    Some(json!({"id": id, "type": "response", "command": command, "success": false, "error": error}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_deep_is_an_error() {
        let depth = 1000;
        let tree = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let answer = format!(
            "{{\"id\":7,\"type\":\"response\",\"command\":\"get_tree\",\"success\":true,\"data\":{{\"tree\":{tree}}}}}\n"
        );
        let (sender, lines) = bounded(4);
        read(format!("nonsense\n{answer}").as_bytes(), &sender);
        drop(sender);
        let lines: Vec<Value> = lines.iter().collect();
        assert_eq!(lines.len(), 1);
        assert_eq!((&lines[0]["id"], &lines[0]["success"]), (&json!(7), &json!(false)));
    }
}
