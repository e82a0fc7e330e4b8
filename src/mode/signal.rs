//! Signals that request the end of the program.
//!
//! The first signal cancels the run, which then ends in order: the answer so far is stored, children are
//! killed. A second signal, or two seconds without an end, ends the process immediately; children are killed
//! even then.

use crate::base::file;
use crate::base::patience::patience;
use crate::base::thread::Thread;
use crate::runtime::{self, CancelToken};
use crossbeam_channel::{Sender, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit of an orderly end.
const GRACE: Duration = Duration::from_secs(2);

/// Time within which a second signal counts as a repetition of the first.
const TWICE: Duration = Duration::from_millis(300);

/// True while SIGINT of the keyboard is meant for another program.
static HELD: AtomicBool = AtomicBool::new(false);

/// Makes this program ignore SIGINT until dropped, for another program that uses the terminal.
pub struct Held(());

pub fn hold_interrupts() -> Held {
    HELD.store(true, Ordering::SeqCst);
    Held(())
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.store(false, Ordering::SeqCst);
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action the call only writes the present one, to a place that is large enough;
    // all zeros are a valid value for it.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0
            && present.sa_sigaction == libc::SIG_IGN
    }
}

pub struct Watch {
    received: Arc<AtomicI32>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Makes writing to a file at its size limit an error instead of a fatal signal.
pub fn outlive_file_limits() {
    // Where it cannot be done, all is as without it.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Cancels `run` when a signal requests the end.
pub fn watch(run: CancelToken) -> io::Result<Watch> {
    // `nohup`, and a shell that starts a job in the background, ask not to be disturbed by some.
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal));
    let mut signals = Signals::new(wanted)?;
    let received = Arc::new(AtomicI32::new(0));
    let (handle, seen) = (signals.handle(), received.clone());
    let thread = Thread::named("signals").start(move || {
        // Kept to the thread's end: its drop tells the deadline that all went well.
        let mut ended: Option<(Sender<()>, Instant)> = None;
        for signal in signals.forever() {
            if signal == SIGINT && HELD.load(Ordering::SeqCst) {
                continue;
            }
            match &ended {
                // A closing terminal, or a wrapper, may send the same twice.
                Some((_, first)) if first.elapsed() < TWICE => continue,
                Some(_) => leave(signal),
                None => {}
            }
            seen.store(signal, Ordering::SeqCst);
            run.cancel();
            let (sender, over) = bounded::<()>(0);
            ended = Some((sender, Instant::now()));
            let deadline = move || {
                if over.recv_timeout(patience(GRACE)) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
                    leave(signal);
                }
            };
            if Thread::named("deadline").start(deadline).is_err() {
                leave(signal);
            }
        }
    })?;
    Ok(Watch { received, handle, thread: Some(thread) })
}

fn leave(signal: i32) -> ! {
    runtime::end_children();
    file::remove_passing();
    std::process::exit(128 + signal)
}

impl Watch {
    /// The exit code for a received signal.
    pub fn exit_code(&self) -> Option<u8> {
        let signal = self.received.load(Ordering::SeqCst);
        u8::try_from(128 + signal).ok().filter(|_| signal != 0)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
