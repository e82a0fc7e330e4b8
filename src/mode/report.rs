//! Messages on stderr: a few lines at most, without control sequences. Failures to write are ignored.

use crate::runtime::plain_text;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

type Sink = Box<dyn Fn(String) + Send>;

/// Receives messages while stderr is part of a screen.
static SINK: Mutex<Option<Sink>> = Mutex::new(None);

/// Diverts messages from stderr until dropped.
pub struct Diverted(());

/// Sends messages to `sink` until the result is dropped.
pub fn divert(sink: impl Fn(String) + Send + 'static) -> Diverted {
    *SINK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(sink));
    Diverted(())
}

impl Drop for Diverted {
    fn drop(&mut self) {
        *SINK.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub fn error(text: impl Display) {
    note(format_args!("Error: {text}"));
}

pub fn warning(text: impl Display) {
    note(format_args!("Warning: {text}"));
}

pub fn note(text: impl Display) {
    let text = plain_text(text.to_string().as_bytes());
    if let Some(sink) = &*SINK.lock().unwrap_or_else(PoisonError::into_inner) {
        return sink(text);
    }
    // A stderr that nobody reads is no reason to stop.
    let _ = writeln!(io::stderr(), "{text}");
}
