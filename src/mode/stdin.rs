//! Stdin of RPC and ACP mode. Each line is a message.

use super::report;
use crate::jsonrpc::line::{self, Frame, Frames};
use crate::runtime::CancelToken;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use std::io::{self, BufReader, Read};
use std::thread;

/// Parses a line; `None` stands for a line that is too long.
pub type Parse<T> = fn(Option<&[u8]>) -> T;

/// Reads messages of stdin on a separate thread, one ahead.
pub fn messages<T: Send + 'static>(parse: Parse<T>) -> io::Result<Receiver<T>> {
    let (sender, messages) = bounded(1);
    thread::Builder::new().name("stdin".into()).spawn(move || read(io::stdin(), parse, &sender))?;
    Ok(messages)
}

fn read<T>(stdin: impl Read, parse: Parse<T>, messages: &Sender<T>) {
    let mut frames = Frames::new(BufReader::with_capacity(64 << 10, stdin), line::LINE_MAX);
    loop {
        let message = match frames.next_frame() {
            Ok(Some(Frame::Line(line))) => parse(Some(line)),
            Ok(Some(Frame::TooLong)) => parse(None),
            Ok(None) => return,
            Err(error) => {
                report::error(format_args!("Cannot read stdin: {error}"));
                return;
            }
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

/// Handles messages until there are no more, or `cancel` is cancelled.
pub fn serve<T>(messages: &Receiver<T>, cancel: &CancelToken, mut answer: impl FnMut(T)) {
    while !cancel.is_cancelled() {
        select! {
            recv(messages) -> message => match message {
                Ok(message) => answer(message),
                Err(_) => return,
            },
            recv(cancel.receiver()) -> _ => return,
        }
    }
}
