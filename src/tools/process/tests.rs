//! A shell as seen by its reader, with real processes.

use super::*;
use crate::tools::testing::leak::LeakGuard;
use std::thread;

fn start(text: &str) -> LocalChild {
    let command = ShellCommand {
        call: String::new(),
        shell: None,
        text: text.to_owned(),
        cwd: "/".into(),
        env: std::env::vars_os().collect(),
        keep_background: false,
        input: None,
    };
    spawn(&command, None).unwrap()
}

/// Reads to the end in pieces of `size` bytes, and calls `after` for each.
fn read(child: &mut LocalChild, size: usize, mut after: impl FnMut()) -> (Vec<u8>, End) {
    let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
    loop {
        match child.next(&mut buffer, None).unwrap() {
            Progress::Output(count) => all.extend_from_slice(&buffer[..count]),
            Progress::Ended(end) => return (all, end),
            Progress::Waited => panic!("nobody said until when"),
        }
        after();
    }
}

#[test]
fn a_slow_reader_loses_nothing() {
    let _guard = LeakGuard::new();
    // A survivor holds the pipe, so that only silence tells the end.
    let mut child = start("seq 2000; sleep 300 &");
    let (output, end) = read(&mut child, 3000, || thread::sleep(SILENCE + SILENCE / 2));
    assert_eq!(output.len(), 8893);
    assert_eq!(end.exit_code, Some(0));

    // Nor when the time for what survivors print is over, and one prints without end.
    let mut child = start("seq 20000; yes &");
    let mut pauses = [DRAIN_MAX; 2].into_iter();
    let (output, _) = read(&mut child, 16 << 10, || {
        thread::sleep(pauses.next().unwrap_or_default());
    });
    assert!(memchr::memmem::find(&output, b"\n20000\n").is_some());
}

#[test]
fn waiting_ends_in_time_and_can_go_on() {
    let _guard = LeakGuard::new();
    let mut child = start("sleep 0.1; echo x");
    let soon = Some(Instant::now());
    assert_eq!(child.next(&mut [0; 8], soon).unwrap(), Progress::Waited);
    let (output, end) = read(&mut child, 8, || {});
    assert_eq!((output.as_slice(), end.exit_code), (b"x\n".as_slice(), Some(0)));
}

#[test]
fn a_child_that_is_dropped_is_killed() {
    let _guard = LeakGuard::new();
    let child = start("(setsid sleep 300 &); sleep 300");
    let family = child.family.clone();
    drop(child);
    assert_eq!(family.members(), []);
    assert_eq!(survivors(), []);
}

#[test]
fn after_the_end_nothing_is_stopped() {
    let _guard = LeakGuard::new();
    let mut child = start("sleep 300 &");
    let (_, end) = read(&mut child, 8, || {});
    assert!(!child.terminate(Duration::ZERO));
    drop(child);
    assert_eq!(survivors(), end.survivors);
    assert_eq!(end.survivors.len(), 1);
}

#[test]
fn all_ways_out_kill_what_runs() {
    let _guard = LeakGuard::new();
    let mut children = [start("sleep 300"), start("sleep 300 & wait"), start("(setsid sleep 300); true")];
    kill_all();
    for child in &mut children {
        let (_, end) = read(child, 8, || {});
        assert_eq!((end.exit_code, end.survivors), (Some(137), Vec::new()));
    }
}
