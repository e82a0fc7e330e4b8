//! A bounded queue of events from the provider thread to the stream's handle; the reader takes all events at
//! once.
//!
//! The reader is woken when an event enters an empty queue; a channel would wake it for each event.

use crate::llm::event::AssistantEvent;
use crate::llm::protocol::Gone;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of queued events; then the writer waits.
const LIMIT: usize = 1024;

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    has_room: Condvar,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<AssistantEvent>,
    reader_has_gone: bool,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    ready: Sender<()>,
}

pub(super) struct Reader {
    shared: Arc<Shared>,
    ready: Receiver<()>,
}

pub(super) fn mailbox() -> (Writer, Reader) {
    let shared = Arc::<Shared>::default();
    let (sender, receiver) = bounded(1);
    let writer = Writer { shared: shared.clone(), ready: sender };
    let reader = Reader { shared, ready: receiver };
    (writer, reader)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Moves `events` into the queue. Waits while the queue is full.
    pub(super) fn put(&self, events: &mut Vec<AssistantEvent>) -> Result<(), Gone> {
        if events.is_empty() {
            return Ok(());
        }
        let mut queue = self.shared.lock();
        while queue.events.len() >= LIMIT && !queue.reader_has_gone {
            let woken = self.shared.has_room.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if queue.reader_has_gone {
            return Err(Gone);
        }
        let was_empty = queue.events.is_empty();
        queue.events.extend(events.drain(..));
        drop(queue);
        if was_empty {
            let _ = self.ready.try_send(()); // full: the reader is being woken already
        }
        Ok(())
    }
}

impl Reader {
    /// Receives a signal when there may be events; disconnects when the writer is dropped.
    pub(super) fn ready(&self) -> &Receiver<()> {
        &self.ready
    }

    /// Takes all events, in exchange for an empty queue. False if there are none.
    pub(super) fn take(&self, events: &mut VecDeque<AssistantEvent>) -> bool {
        events.clear();
        let mut queue = self.shared.lock();
        std::mem::swap(&mut queue.events, events);
        drop(queue);
        self.shared.has_room.notify_one();
        !events.is_empty()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.reader_has_gone = true;
        queue.events.clear();
        drop(queue);
        self.shared.has_room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: usize) -> AssistantEvent {
        AssistantEvent::TextStart { index }
    }

    #[test]
    fn events_come_in_order_and_the_writer_waits_for_room() {
        const COUNT: usize = 20 * LIMIT;
        let (writer, reader) = mailbox();
        let thread = std::thread::spawn(move || {
            for index in 0..COUNT {
                writer.put(&mut vec![event(index)]).unwrap();
            }
        });
        let mut expected = 0;
        let mut events = VecDeque::new();
        loop {
            let ended = reader.ready().recv().is_err();
            reader.take(&mut events);
            assert!(events.len() <= LIMIT);
            for got in events.drain(..) {
                assert_eq!(got, event(expected));
                expected += 1;
            }
            if ended {
                break;
            }
        }
        thread.join().unwrap();
        assert_eq!(expected, COUNT);
    }

    #[test]
    fn a_writer_that_waits_learns_that_the_reader_has_gone() {
        let (writer, reader) = mailbox();
        let thread = std::thread::spawn(move || while writer.put(&mut vec![event(0)]).is_ok() {});
        reader.ready().recv().unwrap();
        drop(reader);
        thread.join().unwrap();
    }
}
