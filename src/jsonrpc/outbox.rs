//! Messages that wait to be written to a peer, bounded by their bytes.
//!
//! The thread that reads a peer answers it, too. Were it to wait until the peer reads, a peer that writes many
//! requests before it reads would wait for us, and we for it. So an answer waits only past the bound, and only as
//! long as the peer reads something meanwhile.

use crate::base::cancel::CancelToken;
use crossbeam_channel::{Receiver, Sender, after, select, unbounded};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer did not read enough in time.
    Late,
    Cancelled,
    /// The connection is over.
    Over,
}

pub struct Outbox {
    /// Requests and notifications. They come before answers: a peer that asks for much has not to read all of that
    /// before it is asked something.
    own: Lane,
    answers: Lane,
    /// Bytes that were written.
    written: AtomicU64,
    over: CancelToken,
}

/// Messages that are written in their order.
struct Lane {
    /// Holds no more than the bound, and one message.
    lines: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes that are not written yet.
    waiting: usize,
    /// Cancelled, and replaced, when there is room again.
    room: CancelToken,
}

impl Outbox {
    /// An outbox that takes answers while less than `max` bytes of them wait, and other messages likewise, until `over`
    /// is cancelled.
    pub fn new(max: usize, over: CancelToken) -> Self {
        let lane = || Lane { lines: unbounded(), max, state: Mutex::default() };
        Self { own: lane(), answers: lane(), written: AtomicU64::new(0), over }
    }

    /// Takes a request or a notification as soon as there is room, within `limit`.
    pub fn push(&self, line: Vec<u8>, limit: Duration, cancel: &CancelToken) -> Result<(), Refused> {
        let late = after(limit);
        let mut line = Some(line);
        while let Some(room) = self.own.enter(&mut line) {
            select! {
                recv(room.receiver()) -> _ => {}
                recv(self.over.receiver()) -> _ => return Err(Refused::Over),
                recv(cancel.receiver()) -> _ => return Err(Refused::Cancelled),
                recv(late) -> _ => return Err(Refused::Late),
            }
        }
        Ok(())
    }

    /// Takes a request or a notification if there is room.
    pub fn offer(&self, line: Vec<u8>) {
        self.own.enter(&mut Some(line));
    }

    /// Takes an answer as soon as there is room. Late if the peer reads nothing for `limit` meanwhile.
    pub fn answer(&self, line: Vec<u8>, limit: Duration) -> Result<(), Refused> {
        let mut line = Some(line);
        let mut written = self.written.load(Ordering::Relaxed);
        while let Some(room) = self.answers.enter(&mut line) {
            select! {
                recv(room.receiver()) -> _ => {}
                recv(self.over.receiver()) -> _ => return Err(Refused::Over),
                default(limit) => {
                    let before = std::mem::replace(&mut written, self.written.load(Ordering::Relaxed));
                    if before == written {
                        return Err(Refused::Late);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what comes until the connection is over. The error is that of a write.
    pub fn write_to(&self, mut peer: impl Write) -> io::Result<()> {
        loop {
            let own = self.own.lines.1.try_recv().ok().map(|line| (&self.own, line));
            let (lane, line) = match own {
                Some(own) => own,
                None => select! {
                    recv(self.own.lines.1) -> line => (&self.own, line.unwrap_or_default()),
                    recv(self.answers.lines.1) -> line => (&self.answers, line.unwrap_or_default()),
                    recv(self.over.receiver()) -> _ => return Ok(()),
                },
            };
            for piece in line.chunks(PIECE) {
                peer.write_all(piece)?;
                self.written.fetch_add(piece.len() as u64, Ordering::Relaxed);
                lane.leave(piece.len());
            }
        }
    }
}

impl Lane {
    /// Takes `line`, or gives the token that says when to try again.
    fn enter(&self, line: &mut Option<Vec<u8>>) -> Option<CancelToken> {
        let mut state = self.state();
        if state.waiting >= self.max {
            return Some(state.room.clone());
        }
        if let Some(line) = line.take() {
            state.waiting += line.len();
            let _ = self.lines.0.send(line);
        }
        None
    }

    fn leave(&self, count: usize) {
        let mut state = self.state();
        state.waiting -= count;
        if state.waiting < self.max {
            std::mem::take(&mut state.room).cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::thread;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_message_is_taken_while_there_is_room_whatever_its_size() {
        let over = CancelToken::new();
        let outbox = Outbox::new(3, over.clone());
        let never = CancelToken::new();
        assert_eq!(outbox.push(b"ab".to_vec(), SOON, &never), Ok(()));
        assert_eq!(outbox.push(b"cdefgh".to_vec(), SOON, &never), Ok(()));
        assert_eq!(outbox.push(b"i".to_vec(), SOON, &never), Err(Refused::Late));
        outbox.offer(b"j".to_vec());
        // Answers have room of their own.
        assert_eq!(outbox.answer(b"1234".to_vec(), SOON), Ok(()));
        assert_eq!(outbox.answer(b"5".to_vec(), SOON), Err(Refused::Late));
        let cancelled = CancelToken::new();
        cancelled.cancel();
        assert_eq!(outbox.push(b"i".to_vec(), LONG, &cancelled), Err(Refused::Cancelled));
        over.cancel();
        assert_eq!(outbox.push(b"i".to_vec(), LONG, &never), Err(Refused::Over));
        let taken = |lane: &Lane| lane.lines.1.try_iter().collect::<Vec<_>>().concat();
        assert_eq!((taken(&outbox.own), taken(&outbox.answers)), (b"abcdefgh".to_vec(), b"1234".to_vec()));
    }

    #[test]
    fn answers_come_behind_what_the_peer_is_asked() {
        let over = CancelToken::new();
        let outbox = Outbox::new(100, over.clone());
        outbox.answer(b"answer\n".to_vec(), SOON).unwrap();
        outbox.offer(b"first\n".to_vec());
        outbox.offer(b"second\n".to_vec());
        let (mut ours, theirs) = io::pipe().unwrap();
        let mut text = [0; 20];
        thread::scope(|scope| {
            scope.spawn(|| outbox.write_to(theirs).unwrap());
            ours.read_exact(&mut text).unwrap();
            over.cancel();
        });
        assert_eq!(&text, b"first\nsecond\nanswer\n");
    }

    #[test]
    fn those_that_wait_go_on_when_the_peer_reads() {
        let over = CancelToken::new();
        let outbox = Outbox::new(1, over.clone());
        let (mut ours, theirs) = io::pipe().unwrap();
        let text = thread::scope(|scope| {
            scope.spawn(|| outbox.write_to(theirs).unwrap());
            let senders: Vec<_> = (0..8)
                .map(|number| {
                    let outbox = &outbox;
                    scope.spawn(move || match number % 2 {
                        0 => outbox.push(vec![b'x'; 200_000], LONG, &CancelToken::new()),
                        _ => outbox.answer(vec![b'x'; 200_000], LONG),
                    })
                })
                .collect();
            let mut bytes = vec![0; 8 * 200_000];
            ours.read_exact(&mut bytes).unwrap();
            senders.into_iter().for_each(|sender| assert_eq!(sender.join().unwrap(), Ok(())));
            over.cancel();
            bytes
        });
        assert!(text.iter().all(|&byte| byte == b'x'));
    }
}
