//! Reports what the program does to the terminal: OSC 7501, the program status protocol.
//!
//! A report is written once the terminal has answered a query, or at once with `PI_PROGRAM_STATUS=1`. It holds the
//! name of the session, the title of a dialog or the first line of an error; never a prompt or an answer.

use crate::runtime::ui::Awaited;
pub use crate::runtime::ui::AwaitedKind as Kind;
use crate::runtime::{AgentMessage, StopReason, plain_text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Asks the terminal whether it knows the protocol.
const QUERY: &str = "\x1b]7501;?\x1b\\";

/// Maximum length of a message in bytes.
const MESSAGE_MAX: usize = 2048;

/// What the user is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub kind: Kind,
    /// Title of the dialog.
    pub title: String,
}

impl From<&Awaited> for Blocked {
    fn from(Awaited { kind, message }: &Awaited) -> Self {
        Self { kind: *kind, title: message.clone() }
    }
}

/// How the last run has ended.
#[derive(Debug, Default)]
enum Ended {
    /// There was none, or the user has stopped it.
    #[default]
    Idle,
    Done,
    Error(String),
}

#[derive(Debug, Default)]
pub struct ProgramStatus {
    /// True if reports are written.
    is_on: bool,
    ended: Ended,
    /// The last report.
    told: String,
}

impl ProgramStatus {
    /// Switches reports on or off as `PI_PROGRAM_STATUS` says. Without it, returns a query for the terminal.
    pub fn start(&mut self, wish: Option<&str>) -> &'static str {
        match wish {
            Some("1") => self.is_on = true,
            Some("0") => {}
            _ => return QUERY,
        }
        ""
    }

    /// Takes the terminal's answer to the query.
    pub fn answered(&mut self) {
        self.is_on = true;
    }

    /// Takes an answer that has ended.
    pub fn take(&mut self, message: &AgentMessage) {
        if let AgentMessage::Assistant(answer) = message {
            self.ended = match answer.stop_reason {
                StopReason::Aborted => Ended::Idle,
                StopReason::Error => Ended::Error(answer.error_message.clone().unwrap_or_default()),
                _ => Ended::Done,
            };
        }
    }

    /// The sequence that leaves the terminal without a state that would no longer hold.
    pub fn ending(&self) -> String {
        if self.told.is_empty() { String::new() } else { sequence("idle", None, "") }
    }

    /// The sequence for the present state, if it is to be reported and differs from the last report. `name` is the
    /// session's.
    pub fn update(&mut self, is_busy: bool, blocked: Option<Blocked>, name: Option<&str>) -> String {
        if !self.is_on {
            return String::new();
        }
        let name = name.unwrap_or_default();
        let (state, kind, message) = match (&blocked, is_busy, &self.ended) {
            (Some(blocked), ..) => ("blocked", Some(blocked.kind), blocked.title.as_str()),
            (None, true, _) => ("working", None, name),
            (None, false, Ended::Done) => ("done", None, name),
            (None, false, Ended::Error(text)) => ("error", None, text.lines().next().unwrap_or_default()),
            (None, false, Ended::Idle) => ("idle", None, ""),
        };
        let report = sequence(state, kind, message);
        match report == self.told {
            true => String::new(),
            false => {
                self.told.clone_from(&report);
                report
            }
        }
    }
}

fn sequence(state: &str, kind: Option<Kind>, message: &str) -> String {
    let mut report = format!("\x1b]7501;state={state}:app=pi");
    if let Some(kind) = kind {
        let kind = match kind {
            Kind::Permission => "permission",
            Kind::Question => "question",
            Kind::Auth => "auth",
        };
        report.push_str(&format!(":kind={kind}"));
    }
    let message = plain_text(message.as_bytes()).replace('\n', " ");
    let message = message.trim();
    let starts = message.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let end = starts.take_while(|end| *end <= MESSAGE_MAX).last();
    if let Some(message) = end.and_then(|end| message.get(..end)) {
        let encoded = BASE64_STANDARD.encode(message);
        report.push_str(&format!(":msg={encoded}"));
    }
    report + "\x1b\\"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn answer(reason: &str) -> AgentMessage {
        serde_json::from_value(json!({"role": "assistant", "content": [], "api": "x", "provider": "x", "model": "x",
            "usage": {}, "stopReason": reason, "errorMessage": "429: slow\u{1b}[31m down\nmore", "timestamp": 1}))
        .unwrap()
    }

    #[test]
    fn each_state_is_told_once_and_only_to_who_knows_it() {
        let mut status = ProgramStatus::default();
        assert_eq!(status.start(None), QUERY);
        assert_eq!(status.update(true, None, Some("x")), "");
        status.answered();
        let mut check = |ended: Option<&str>, is_busy, blocked: Option<(Kind, &str)>, expected: &str| {
            if let Some(reason) = ended {
                status.take(&answer(reason));
            }
            let blocked = blocked.map(|(kind, title)| Blocked { kind, title: title.to_owned() });
            let told = status.update(is_busy, blocked.clone(), Some("name"));
            assert_eq!(told, format!("\x1b]7501;{expected}\x1b\\"));
            assert_eq!(status.update(is_busy, blocked, Some("name")), "");
        };
        check(None, false, None, "state=idle:app=pi");
        check(None, true, None, "state=working:app=pi:msg=bmFtZQ==");
        check(
            None,
            true,
            Some((Kind::Permission, "bash")),
            "state=blocked:app=pi:kind=permission:msg=YmFzaA==",
        );
        check(None, true, None, "state=working:app=pi:msg=bmFtZQ==");
        check(Some("stop"), false, None, "state=done:app=pi:msg=bmFtZQ==");
        check(None, false, Some((Kind::Auth, "")), "state=blocked:app=pi:kind=auth");
        check(Some("error"), false, None, "state=error:app=pi:msg=NDI5OiBzbG93IGRvd24=");
        check(Some("aborted"), false, None, "state=idle:app=pi");
    }

    #[test]
    fn the_variable_decides_without_a_query() {
        for (wish, expected) in [("1", "\x1b]7501;state=idle:app=pi\x1b\\"), ("0", "")] {
            let mut status = ProgramStatus::default();
            assert_eq!(status.start(Some(wish)), "");
            assert_eq!(status.update(false, None, None), expected);
        }
    }

    #[test]
    fn a_long_message_is_cut_between_letters() {
        let report = sequence("working", None, &"é".repeat(2000));
        let encoded = report.split_once("msg=").unwrap().1.trim_end_matches("\x1b\\");
        let message = String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap();
        assert_eq!(message.len(), MESSAGE_MAX);
    }
}
