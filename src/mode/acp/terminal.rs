//! Commands in a terminal of the editor, which draws their output.
//!
//! The protocol gives no output as it arrives: the output for the model is read once, when the command has ended. A
//! terminal is always released, also one that is created late: up to five minutes after it was asked for.

use super::peer::Peer;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::runtime::CancelToken;
use crate::runtime::backend::{Child, End, Progress, ShellCommand};
use crossbeam_channel::{Receiver, Sender, after, at, bounded, never, select};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of output that the editor is asked to keep.
const OUTPUT_MAX: usize = 1 << 20;
/// Time limit for a response of the editor.
const LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the output of a command that was killed: an abort waits for it.
const LAST_LIMIT: Duration = Duration::from_millis(30);

/// Ids of the tool calls that the editor knows of, each with true if it draws their output. Cheap to clone.
#[derive(Clone, Default)]
pub struct Drawn(Arc<Mutex<HashMap<String, bool>>>);

impl Drawn {
    fn calls(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn announce(&self, call: &str) {
        self.calls().entry(call.to_owned()).or_default();
    }

    /// False for the calls that scripts make.
    pub fn is_announced(&self, call: &str) -> bool {
        self.calls().contains_key(call)
    }

    pub fn add(&self, call: &str) {
        self.calls().insert(call.to_owned(), true);
    }

    pub fn has(&self, call: &str) -> bool {
        self.calls().get(call).is_some_and(|is_drawn| *is_drawn)
    }

    /// Forgets a call that ends. True if the editor draws its output.
    pub fn end(&self, call: &str) -> bool {
        self.calls().remove(call).unwrap_or_default()
    }
}

/// A command in a terminal of the editor.
pub struct Terminal {
    peer: Peer,
    /// The ids of session and terminal, as parameters of requests.
    named: Value,
    /// Cancelled when the command was killed, or nobody waits for it any more.
    gone: CancelToken,
    ended: Receiver<End>,
    /// When a command that was told to end is no longer waited for.
    until: Option<Instant>,
    /// What is left of the output, once the command has ended.
    rest: Option<(End, Vec<u8>)>,
}

impl Terminal {
    /// Runs `command` in a new terminal. `Ok(None)` if the editor makes none.
    pub fn start(
        peer: &Peer,
        session: &str,
        command: &ShellCommand,
        cancel: &CancelToken,
    ) -> io::Result<Option<Self>> {
        let params = json!({
            "sessionId": session,
            "command": command.shell.as_ref().map_or_else(|| "bash".into(), |shell| shell.to_string_lossy()),
            "args": ["-c", command.text],
            "env": changes(command),
            "cwd": command.cwd.to_string_lossy(),
            "outputByteLimit": OUTPUT_MAX,
        });
        // Whoever takes the id of the terminal releases it.
        let (hand_over, made) = bounded(0);
        let (end, ended) = bounded(1);
        let gone = CancelToken::new();
        let work = {
            let (peer, session, gone) = (peer.clone(), session.to_owned(), gone.clone());
            move || follow(&peer, &session, &params, &hand_over, &end, &gone)
        };
        Thread::named("terminal").stack(256 << 10).start(work)?;
        let late = || format!("the editor made no terminal within {LIMIT:?}");
        let made = select! {
            recv(made) -> made => made.unwrap_or_else(|_| Err(late())),
            recv(after(LIMIT)) -> _ => Err(late()),
            recv(cancel.receiver()) -> _ => Err("Operation aborted".into()),
        };
        let named = made.map_err(io::Error::other)?;
        let terminal = |named| Self { peer: peer.clone(), named, gone, ended, until: None, rest: None };
        Ok(named.map(terminal))
    }

    /// The terminal as content of a tool call.
    pub fn content(&self) -> Value {
        json!({"type": "terminal", "terminalId": self.named["terminalId"]})
    }

    fn output(&self) -> Vec<u8> {
        // Once the command was told to end, the output is waited for a moment only.
        let (cancel, limit) = match self.gone.is_cancelled() || self.until.is_some() {
            true => (CancelToken::new(), LAST_LIMIT),
            false => (self.gone.clone(), LIMIT),
        };
        let answer = self.peer.ask("terminal/output", &self.named, &cancel, Some(limit));
        let Some(Ok(answer)) = answer else { return Vec::new() };
        let text = answer["output"].as_str().unwrap_or_default();
        match answer["truncated"] == true {
            true => format!("[The editor kept the end of the output only]\n{text}").into_bytes(),
            false => text.as_bytes().to_vec(),
        }
    }

    fn kill(&self) -> impl Fn() + Send + Sync + 'static {
        let (peer, named, gone) = (self.peer.clone(), self.named.clone(), self.gone.clone());
        move || {
            peer.tell("terminal/kill", &named);
            gone.cancel();
        }
    }
}

/// Variables that are not in the environment of pi, which the editor's is like.
fn changes(command: &ShellCommand) -> Vec<Value> {
    let is_new =
        |name: &std::ffi::OsStr, value: &std::ffi::OsStr| std::env::var_os(name).as_deref() != Some(value);
    let new = command.env.iter().filter(|(name, value)| is_new(name, value));
    new.map(|(name, value)| json!({"name": name.to_string_lossy(), "value": value.to_string_lossy()}))
        .collect()
}

/// Creates a terminal, and waits for the end of its command.
fn follow(
    peer: &Peer,
    session: &str,
    params: &Value,
    hand_over: &Sender<Result<Option<Value>, String>>,
    end: &Sender<End>,
    gone: &CancelToken,
) {
    // One that comes too late is released all the same.
    let Some(answer) = peer.ask("terminal/create", params, &CancelToken::new(), Some(LIMIT * 10)) else {
        return;
    };
    let id = answer.ok().and_then(|answer| Some(answer["terminalId"].as_str()?.to_owned()));
    let Some(id) = id else {
        // Who asked may have gone.
        let _ = hand_over.send(Ok(None));
        return;
    };
    let named = json!({"sessionId": session, "terminalId": id});
    if hand_over.send(Ok(Some(named.clone()))).is_err() {
        return peer.tell("terminal/release", &named);
    }
    let answer = peer.ask("terminal/wait_for_exit", &named, gone, None);
    let exit_code = answer.and_then(Result::ok).and_then(|answer| exit_code(&answer));
    let _ = end.send(End { exit_code, survivors: Vec::new() });
}

/// The exit code in the form of a shell, where a signal is 128 and its number.
fn exit_code(answer: &Value) -> Option<i32> {
    let of_signal = || {
        let name = answer["signal"].as_str()?;
        let number = name.parse().ok().or_else(|| signal_number(name))?;
        128_i32.checked_add(number)
    };
    answer["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()).or_else(of_signal)
}

/// The number of a signal, named with or without `SIG`.
fn signal_number(name: &str) -> Option<i32> {
    let known = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("ABRT", libc::SIGABRT),
        ("KILL", libc::SIGKILL),
        ("SEGV", libc::SIGSEGV),
        ("PIPE", libc::SIGPIPE),
        ("TERM", libc::SIGTERM),
    ];
    let name = name.strip_prefix("SIG").unwrap_or(name);
    known.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

impl Child for Terminal {
    fn next(&mut self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<Progress> {
        if self.rest.is_none() {
            let late = until.into_iter().chain(self.until).min().map_or_else(never, at);
            let end = select! {
                recv(self.ended) -> end => end.unwrap_or_default(),
                recv(late) -> _ => match self.until.is_some_and(|until| until <= Instant::now()) {
                    true => End::default(),
                    false => return Ok(Progress::Waited),
                },
            };
            self.rest = Some((end, self.output()));
        }
        let Some((end, rest)) = &mut self.rest else { return Ok(Progress::Waited) };
        if rest.is_empty() {
            return Ok(Progress::Ended(end.clone()));
        }
        let count = rest.len().min(buffer.len());
        for (to, byte) in buffer.iter_mut().zip(rest.drain(..count)) {
            *to = byte;
        }
        Ok(Progress::Output(count))
    }

    fn terminate(&mut self, grace: Duration) -> bool {
        if self.rest.is_some() {
            return false;
        }
        self.peer.tell("terminal/kill", &self.named);
        self.until = Some(Instant::now() + grace);
        true
    }

    fn killer(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(self.kill())
    }

    fn terminator(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(self.kill())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.gone.cancel();
        self.peer.tell("terminal/release", &self.named);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_an_exit_code() {
        let check = |answer: Value, expected| assert_eq!(exit_code(&answer), expected, "{answer}");
        check(json!({"exitCode": 3}), Some(3));
        check(json!({"exitCode": null, "signal": "SIGKILL"}), Some(137));
        check(json!({"signal": "TERM"}), Some(143));
        check(json!({"signal": "9"}), Some(137));
        check(json!({"exitCode": 0, "signal": null}), Some(0));
        check(json!({"signal": "STRANGE"}), None);
        check(json!({}), None);
    }
}
