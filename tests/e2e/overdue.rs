//! Tests that take too long: named, their processes shown and ended; if that does not end them, the run fails.
//!
//! Without it a test that waits for ever holds up the whole run, and nobody learns which it was.

use super::agent::processes_with;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

/// Several times what the longest test takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Tests that run: their mark, their name, and when they count as overdue.
static RUNNING: Mutex<Vec<(String, String, Instant)>> = Mutex::new(Vec::new());

/// Begins to watch over the test of this thread, whose processes carry `mark`.
pub fn watch(mark: &str) {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| drop(thread::spawn(end_what_is_overdue)));
    let name = thread::current().name().unwrap_or("a thread of a test").to_owned();
    RUNNING.lock().unwrap().push((mark.to_owned(), name, Instant::now() + LIMIT));
}

pub fn has_ended(mark: &str) {
    RUNNING.lock().unwrap().retain(|(known, ..)| known != mark);
}

fn end_what_is_overdue() {
    loop {
        thread::sleep(Duration::from_secs(5));
        let now = Instant::now();
        for (mark, name, limit) in RUNNING.lock().unwrap().iter_mut().filter(|(.., limit)| *limit < now) {
            let processes = processes_with(mark);
            let mut report = format!("\n{name} is overdue; its processes:\n");
            processes.iter().for_each(|pid| describe(*pid, &mut report));
            // The streams of the process, not the ones that are kept for each test.
            drop(std::io::stderr().write_all(report.as_bytes()));
            if processes.is_empty() {
                drop(writeln!(std::io::stderr(), "{name} waits for itself"));
                std::process::exit(101);
            }
            for pid in processes {
                drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
            }
            *limit = now + LIMIT / 5;
        }
    }
}

/// Its command line, and for each thread its name and where it waits in the kernel.
fn describe(pid: u32, report: &mut String) {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let words = read(format!("/proc/{pid}/cmdline")).replace('\0', " ");
    *report += &format!("  {pid} {words}\n");
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let task = task.path();
        let of = |file: &str| read(task.join(file).to_string_lossy().into_owned());
        let (name, place, call) = (of("comm"), of("wchan"), of("syscall"));
        *report += &format!("    {} {place} {}\n", name.trim_end(), call.trim_end());
    }
}
