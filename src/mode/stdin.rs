//! Stdin of RPC and ACP mode. Each line is a message.

use super::report;
use crate::base::poll;
use crate::jsonrpc::line::{self, Frame, Frames};
use crate::runtime::CancelToken;
use std::fs::File;
use std::io::{self, BufReader, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd};

/// Parses a line; `None` stands for a line that is too long.
pub type Parse<T> = fn(Option<&[u8]>) -> T;

/// Reads messages on the calling thread and passes each to `answer`, until stdin ends or `cancel` is cancelled.
/// An error of stdin is reported, and counts as its end.
pub fn serve<T>(parse: Parse<T>, cancel: &CancelToken, answer: impl FnMut(T)) {
    if let Err(error) = read(parse, cancel, answer) {
        report::error(format_args!("Cannot read stdin: {error}"));
    }
}

fn read<T>(parse: Parse<T>, cancel: &CancelToken, mut answer: impl FnMut(T)) -> io::Result<()> {
    let (cancelled, sender) = io::pipe()?;
    // A pipe without a sender wakes whoever polls it.
    let _guard = cancel.on_cancel(move || drop(sender));
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let source = BufReader::with_capacity(64 << 10, UntilCancelled { stdin, cancelled });
    let mut frames = Frames::new(source, line::LINE_MAX);
    while let Some(frame) = frames.next_frame()? {
        // A cancellation may have cut the line.
        if cancel.is_cancelled() {
            break;
        }
        answer(match frame {
            Frame::Line(line) => parse(Some(line)),
            Frame::TooLong(_) => parse(None),
        });
    }
    Ok(())
}

/// Stdin, which ends when `cancelled` can be read.
struct UntilCancelled {
    stdin: File,
    cancelled: PipeReader,
}

impl Read for UntilCancelled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match poll::poll([self.cancelled.as_raw_fd(), self.stdin.as_raw_fd()], None)? {
            [true, _] => Ok(0),
            [_, true] => self.stdin.read(buffer),
            _ => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}
