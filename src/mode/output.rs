//! The single owner of stdout: a thread that writes queued lines.
//!
//! A reader that is slower than the model costs neither memory nor quadratic time: while lines are queued,
//! deltas of one block are joined, and everything else blocks the caller: a run soon, a response to a command
//! much later. If the reader has gone, a cancel token ends the run.

use super::stdout;
use crate::base::poll::WaitlessPipe;
use crate::base::thread::Thread;
use crate::runtime::event::Event;
use crate::runtime::event_json::{self, Delta};
use crate::runtime::{CancelToken, Fatal};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Queued bytes above which deltas are joined: about the capacity of a pipe.
const JOIN_ABOVE: usize = 64 * 1024;
/// Queued bytes above which a run waits.
const WAIT_ABOVE: usize = 1024 * 1024;
/// Queued bytes above which a response to a command waits. Larger than `WAIT_ABOVE`, so that a run that waits
/// for its reader can still be aborted.
const RESPONSES_WAIT_ABOVE: usize = 16 * 1024 * 1024;

pub struct Output {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The sink, if it is a pipe: takes a short response at once, without a change of threads.
    pipe: Option<Mutex<WaitlessPipe>>,
    cumulative: AtomicBool,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when lines are queued, or the output is closed.
    work: Condvar,
    /// Notified when there is room again, or all lines are written.
    room: Condvar,
}

#[derive(Default)]
struct State {
    ready: Vec<u8>,
    joined: Option<Delta>,
    /// True while the thread writes the lines it took.
    writing: bool,
    /// True while the thread waits for lines. It is notified only then, since that costs more than an event.
    idle: bool,
    /// Number of callers that wait for room.
    waiting: usize,
    closed: bool,
    error: Option<io::ErrorKind>,
}

impl Output {
    /// Writes to `sink` until the output is dropped. `broken` is cancelled when a write fails.
    pub fn start(
        sink: impl Write + Send + 'static,
        cumulative: bool,
        broken: CancelToken,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new(), room: Condvar::new() });
        let writer = shared.clone();
        let thread = Thread::named("stdout").start(move || writer.write_all(sink, &broken))?;
        Ok(Self { shared, thread: Some(thread), pipe: None, cumulative: cumulative.into() })
    }

    /// Like [`Self::start`], for stdout.
    pub fn to_stdout(cumulative: bool, broken: CancelToken) -> Result<Self, String> {
        let stdout = stdout::open().map_err(|error| format!("Cannot write to stdout: {error}"))?;
        let pipe = WaitlessPipe::of(&stdout).map(Mutex::new);
        let output = Self::start(stdout, cumulative, broken);
        let mut output = output.map_err(|error| format!("Cannot start a thread: {error}"))?;
        output.pipe = pipe;
        Ok(output)
    }

    /// True if events carry snapshots, and the events of older versions are also written.
    pub fn is_cumulative(&self) -> bool {
        self.cumulative.load(Ordering::Relaxed)
    }

    pub fn set_cumulative(&self, on: bool) {
        self.cumulative.store(on, Ordering::Relaxed);
    }

    /// Queues an event of a run. Fails if the reader has gone.
    pub fn event(&self, event: &Event<'_>) -> io::Result<()> {
        self.event_within(WAIT_ABOVE, event)
    }

    /// Returns a listener that queues the events of a run. If the reader has gone, the output's token ends
    /// the program.
    pub fn listener(&self) -> impl FnMut(&Event<'_>) -> Result<(), Fatal> {
        |event| {
            let _ = self.event(event);
            Ok(())
        }
    }

    /// Queues an event that a command caused.
    pub fn event_of_command(&self, event: &Event<'_>) -> io::Result<()> {
        self.event_within(RESPONSES_WAIT_ABOVE, event)
    }

    fn event_within(&self, waiting_max: usize, event: &Event<'_>) -> io::Result<()> {
        let cumulative = self.is_cumulative();
        let mut state = self.shared.lock();
        let delta = Delta::of(event).filter(|_| !cumulative && state.error.is_none());
        let Some((delta, usage)) = delta else {
            let mut state = self.shared.wait_for_room(state, waiting_max)?;
            state.end_joining();
            event_json::write_event(event, cumulative, &mut state.ready);
            self.shared.wake(&mut state);
            return Ok(());
        };
        if state.joined.is_none() && state.ready.len() <= JOIN_ABOVE {
            event_json::write_event(event, cumulative, &mut state.ready);
            self.shared.wake(&mut state);
        } else if !state.joined.as_mut().is_some_and(|joined| joined.join(delta, usage)) {
            // A block after a block is no joining: it waits like everything else.
            state = self.shared.wait_for_room(state, waiting_max)?;
            state.end_joining();
            state.joined = Some(Delta::new(delta, usage));
        }
        Ok(())
    }

    /// Queues any other value as one line of JSON.
    pub fn line(&self, value: &impl serde::Serialize) -> io::Result<()> {
        let state = self.shared.lock();
        let mut state = self.shared.wait_for_room(state, RESPONSES_WAIT_ABOVE)?;
        state.end_joining();
        event_json::write(value, &mut state.ready);
        if !self.write_at_once(&mut state) {
            self.shared.wake(&mut state);
        }
        Ok(())
    }

    /// Writes what is queued, if the thread has nothing to write and the pipe has room. False if it is left to
    /// the thread.
    fn write_at_once(&self, state: &mut State) -> bool {
        let Some(pipe) = self.pipe.as_ref().filter(|_| state.idle) else {
            return false;
        };
        let written = pipe.lock().unwrap_or_else(PoisonError::into_inner).write(&state.ready);
        if written {
            state.ready.clear();
        }
        written
    }

    /// Waits until all lines are written.
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.end_joining();
        self.shared.wake(&mut state);
        while state.error.is_none() && (state.writing || !state.ready.is_empty()) {
            state = self.shared.wait_for_change(state);
        }
        state.check()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.end_joining();
            state.closed = true;
            self.shared.wake(&mut state);
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl State {
    /// Ends joining: queues the joined delta as a line.
    fn end_joining(&mut self) {
        if let Some(delta) = self.joined.take() {
            delta.write(&mut self.ready);
        }
    }

    fn check(&self) -> io::Result<()> {
        self.error.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        waiting_max: usize,
    ) -> io::Result<MutexGuard<'a, State>> {
        while state.ready.len() > waiting_max && state.error.is_none() {
            state = self.wait_for_change(state);
        }
        state.check().map(|()| state)
    }

    /// Waits until the thread takes or writes lines.
    fn wait_for_change<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Notifies the thread of queued lines, if it waits.
    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.idle) {
            self.work.notify_one();
        }
    }

    /// Notifies callers that wait for room.
    fn make_room(&self, state: &State) {
        if state.waiting > 0 {
            self.room.notify_all();
        }
    }

    fn write_all(&self, mut sink: impl Write, broken: &CancelToken) {
        let mut taken = Vec::new();
        loop {
            {
                let mut state = self.lock();
                state.writing = false;
                self.make_room(&state);
                while state.ready.is_empty() && state.joined.is_none() && !state.closed {
                    state.idle = true;
                    state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.idle = false;
                state.end_joining();
                if state.ready.is_empty() {
                    return;
                }
                taken.clear();
                std::mem::swap(&mut taken, &mut state.ready);
                state.writing = true;
                self.make_room(&state);
            }
            if let Err(error) = sink.write_all(&taken).and_then(|()| sink.flush()) {
                let mut state = self.lock();
                state.error = Some(error.kind());
                state.ready = Vec::new();
                state.writing = false;
                self.make_room(&state);
                drop(state);
                broken.cancel();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::event::Fold;
    use crate::runtime::{AgentEvent, AssistantEvent, AssistantMessage};
    use crossbeam_channel::{Receiver, Sender, bounded};
    use serde_json::Value;

    /// A sink that blocks until opened.
    struct Gated {
        /// Receives a message at the start of every write, if set.
        begun: Option<Sender<()>>,
        gate: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(begun) = &self.begun {
                let _ = begun.try_send(());
            }
            let _ = self.gate.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Sender<()>, Arc<Mutex<Vec<u8>>>, Output) {
        let (open, gate) = bounded(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Gated { begun: None, gate, written: written.clone() };
        (open, written, Output::start(sink, false, CancelToken::new()).unwrap())
    }

    fn tell(output: &Output, fold: &mut Fold, event: AssistantEvent) -> io::Result<()> {
        fold.apply(&event);
        output.event(&Event::Agent(AgentEvent::MessageUpdate { event: &event, fold }))
    }

    #[test]
    fn deltas_join_while_nobody_reads() {
        let (open, written, output) = gated();
        let mut fold = Fold::new(AssistantMessage::default());
        tell(&output, &mut fold, AssistantEvent::TextStart { index: 0 }).unwrap();
        let mut said = String::new();
        for n in 0..100_000 {
            let delta = format!("{n} ");
            said.push_str(&delta);
            tell(&output, &mut fold, AssistantEvent::TextDelta { index: 0, delta }).unwrap();
        }
        drop(open);
        tell(&output, &mut fold, AssistantEvent::TextEnd { index: 0, signature: None }).unwrap();
        output.flush().unwrap();
        drop(output);
        let written = written.lock().unwrap();
        let lines: Vec<Value> =
            written.split(|&b| b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert!(lines.len() < 2000, "{} lines", lines.len());
        let deltas: String =
            lines.iter().filter_map(|line| line["assistantMessageEvent"]["delta"].as_str()).collect();
        assert_eq!(deltas, said);
        assert_eq!(lines.last().unwrap()["assistantMessageEvent"]["content"], said.as_str());
    }

    #[test]
    fn commands_are_answered_while_a_run_waits_for_its_reader() {
        let ((open, gate), (begun, first)) = (bounded::<()>(0), bounded(1));
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = Gated { begun: Some(begun), gate, written: written.clone() };
        let output = Arc::new(Output::start(sink, false, CancelToken::new()).unwrap());
        output.event(&Event::AgentSettled { aborted: false }).unwrap();
        // The writer has it, and takes nothing more.
        first.recv().unwrap();
        let name = "x".repeat(JOIN_ABOVE);
        let (waits, waiting) = bounded(WAIT_ABOVE / JOIN_ABOVE + 8);
        let run = {
            let (output, name) = (output.clone(), name.clone());
            std::thread::spawn(move || {
                for _ in 0..WAIT_ABOVE / JOIN_ABOVE + 4 {
                    let event = Event::SessionInfoChanged { name: Some(&name) };
                    output.event(&event).unwrap();
                    waits.send(()).unwrap();
                }
            })
        };
        // So many wait, and the next one's writer does.
        for _ in 0..WAIT_ABOVE / JOIN_ABOVE {
            waiting.recv().unwrap();
        }
        for n in 0..100 {
            output.line(&n).unwrap();
            output.event_of_command(&Event::AgentSettled { aborted: false }).unwrap();
        }
        assert!(!run.is_finished());
        drop(open);
        run.join().unwrap();
        output.flush().unwrap();
        let written = written.lock().unwrap();
        let lines = written.split(|&byte| byte == b'\n');
        let numbers: Vec<u64> =
            lines.filter_map(|line| std::str::from_utf8(line).ok()?.parse().ok()).collect();
        assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
    }

    #[test]
    fn a_reader_that_has_gone_ends_the_run() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let cancel = CancelToken::new();
        let output = Output::start(Broken, false, cancel.clone()).unwrap();
        output.event(&Event::AgentSettled { aborted: false }).unwrap();
        assert_eq!(output.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(cancel.receiver().recv().is_err());
        assert!(output.event(&Event::AgentSettled { aborted: false }).is_err());
    }
}
