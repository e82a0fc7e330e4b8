//! Finds leaks of tests with processes: descriptors, threads, processes.
//!
//! Other tests run in the same process meanwhile, so only what can be told apart counts: pipes and
//! output files among the descriptors, threads by their names, processes by their mark or as children.
//! A pipe or a child of another test comes and goes; a leak is what stays.

use crate::tools::process;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

/// Must be created first in a test with processes: serialises these tests, kills remaining processes at the
/// end, and fails on leaks.
pub struct LeakGuard {
    before: BTreeSet<String>,
    _alone: MutexGuard<'static, ()>,
}

impl LeakGuard {
    #[allow(clippy::new_without_default)] // a default would hide that it waits
    pub fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { before: traces(), _alone: alone }
    }

    /// Waits until no leak is left.
    #[track_caller]
    pub fn check(&self) {
        let started = Instant::now();
        let mut suspects = &traces() - &self.before;
        while !suspects.is_empty() {
            assert!(started.elapsed() < PATIENCE, "left behind: {suspects:#?}");
            std::thread::sleep(Duration::from_millis(10));
            suspects = &suspects & &traces();
        }
    }
}

impl Drop for LeakGuard {
    fn drop(&mut self) {
        process::kill_all();
        if !std::thread::panicking() {
            self.check();
        }
    }
}

/// Processes started by this test run that are alive or zombies, found by their mark.
pub fn processes() -> BTreeSet<String> {
    let mark = format!("{}={}-", process::MARKER, std::process::id());
    let is_ours = |pid: &String| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        memchr::memmem::find(&environ, mark.as_bytes()).is_some()
    };
    names("/proc")
        .into_iter()
        .filter(|name| name.parse::<u32>().is_ok())
        .filter(is_ours)
        .map(|pid| format!("process {pid}"))
        .collect()
}

fn traces() -> BTreeSet<String> {
    let mut all = processes();
    for fd in names("/proc/self/fd") {
        let link = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        let link = link.to_string_lossy();
        if link.starts_with("pipe:") || link.contains("pi-bash-") {
            all.insert(format!("descriptor {fd}: {link}"));
        }
    }
    for task in names("/proc/self/task") {
        let folder = format!("/proc/self/task/{task}");
        let name = fs::read_to_string(format!("{folder}/comm")).unwrap_or_default();
        if matches!(name.trim_end(), "pi-wait" | "pi-drain") {
            all.insert(format!("thread {task}: {name}"));
        }
        let children = fs::read_to_string(format!("{folder}/children")).unwrap_or_default();
        for child in children.split_ascii_whitespace() {
            all.insert(format!("child {child}"));
        }
    }
    all
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
