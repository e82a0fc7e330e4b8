//! Signals that ask the program to end.
//!
//! The first cancels the run, which then ends in order: the answer so far is stored, children are
//! killed. The second, or two seconds without an end, leaves at once; children are killed even then.

use crate::runtime::{self, CancelToken};
use crossbeam_channel::{Sender, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an ordered end may take.
const GRACE: Duration = Duration::from_secs(2);

pub struct Watch {
    received: Arc<AtomicI32>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Cancels `run` when a signal asks for the end.
pub fn watch(run: CancelToken) -> io::Result<Watch> {
    // A file at its size limit is an error to write to, not a reason to die.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    let received = Arc::new(AtomicI32::new(0));
    let (handle, seen) = (signals.handle(), received.clone());
    let thread = std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            // Kept to the thread's end: its drop tells the deadline that all went well.
            let mut ended: Option<Sender<()>> = None;
            for signal in signals.forever() {
                if ended.is_some() {
                    leave(signal);
                }
                seen.store(signal, Ordering::SeqCst);
                run.cancel();
                let (sender, over) = bounded::<()>(0);
                ended = Some(sender);
                let deadline = move || {
                    if over.recv_timeout(GRACE) == Err(crossbeam_channel::RecvTimeoutError::Timeout)
                    {
                        leave(signal);
                    }
                };
                if std::thread::Builder::new()
                    .name("deadline".into())
                    .spawn(deadline)
                    .is_err()
                {
                    leave(signal);
                }
            }
        })?;
    Ok(Watch {
        received,
        handle,
        thread: Some(thread),
    })
}

fn leave(signal: i32) -> ! {
    runtime::end_children();
    std::process::exit(128 + signal)
}

impl Watch {
    /// The exit code that a received signal asks for.
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
