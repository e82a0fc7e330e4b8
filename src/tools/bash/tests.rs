//! The tool with real processes: no case may leave processes behind.

use super::*;
use crate::llm::message::text_of;
use crate::llm::model::Model;
use crate::tools::process;
use crate::tools::testing::leak::{LeakGuard, processes};
use crate::tools::testing::{TempDir, call, call_with, text};
use std::sync::Mutex;
use std::thread;

/// A workspace with options changed by `change`.
fn workspace(dir: &TempDir, change: impl FnOnce(&mut Options)) -> Arc<Workspace> {
    let mut workspace = dir.workspace();
    change(&mut workspace.options);
    Arc::new(workspace)
}

/// Runs a command in a new folder. Returns the text of the result, with errors marked.
fn run(command: &str) -> String {
    run_for(command, None)
}

fn run_for(command: &str, timeout: Option<f64>) -> String {
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |_| {}));
    let arguments = match timeout {
        None => json!({"command": command}),
        Some(seconds) => json!({"command": command, "timeout": seconds}),
    };
    text(&call(&*tool, arguments))
}

/// Waits for an effect of another process.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_result_is_what_was_printed_and_how_it_ended() {
    let _guard = LeakGuard::new();
    for (command, expected) in [
        ("printf 'a\\n\\n'", "a\n\n"),
        ("true", "(no output)"),
        ("echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd\n"),
        ("printf x; exit 3", "error: x\n\nCommand exited with code 3"),
        ("exit 3", "error: (no output)\n\nCommand exited with code 3"),
        ("kill -9 $$", "error: (no output)\n\nCommand exited with code 137"),
        ("kill -TERM $$", "error: (no output)\n\nCommand exited with code 143"),
        ("printf '\\033[31mred\\033[0m \\377\\0.\\n'", "red \u{fffd}.\n"),
        ("printf '1%%\\r2%%\\r3%%\\n'", "3%\n"),
        ("echo \"$0\"", "/bin/bash\n"),
        ("--version || echo none", "/bin/bash: line 1: --version: command not found\nnone\n"),
        ("pwd -P | xargs basename | cut -c1-7", "pi-test\n"),
        ("echo ü | cat", "ü\n"),
    ] {
        assert_eq!(run(command), expected, "{command}");
    }
}

#[test]
fn nothing_can_be_asked_of_anyone() {
    let _guard = LeakGuard::new();
    for (command, expected) in [
        ("cat", "(no output)"),
        ("read x || echo $?", "1\n"),
        ("tty", "error: not a tty\n\n\nCommand exited with code 1"),
        ("(: < /dev/tty) 2>/dev/null || echo none", "none\n"),
        ("[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none", "none\n"),
        ("ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo own session", "own session\n"),
        ("echo $GIT_TERMINAL_PROMPT $PAGER $GIT_PAGER $AI_AGENT", "0 cat cat pi\n"),
        ("echo $SSH_ASKPASS_REQUIRE \"$SSH_ASKPASS\" $GCM_INTERACTIVE", "never never\n"),
    ] {
        assert_eq!(run(command).replace("  ", " "), expected, "{command}");
    }
}

/// Starts an editor like git and others do: by a shell, with the file as an additional argument; or by
/// splitting words.
#[test]
fn an_editor_fails_at_once_and_says_what_to_do() {
    let _guard = LeakGuard::new();
    for name in ["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"] {
        let said = run(&format!("sh -c \"${name} \\\"\\$@\\\"\" \"${name}\" 'a file'"));
        assert!(
            said.contains("No editor can be used here.") && said.contains("exited with code 1"),
            "{said}"
        );
        let split = run(&format!("set -f; ${name} file 2>/dev/null || echo failed"));
        assert!(split.ends_with("failed\n"), "{split}");
    }
}

#[test]
fn commands_of_the_user_keep_the_users_editor() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let editor = std::env::var("EDITOR").unwrap_or_default();
    let shown = execute_quietly(&workspace(&dir, |_| {}), "echo \"$EDITOR|$SSH_ASKPASS_REQUIRE\"");
    assert!(!shown.output().contains("No editor"), "{}", shown.output());
    assert!(shown.output().starts_with(&editor), "{}", shown.output());
}

#[test]
fn a_command_is_told_about_its_session_and_only_that() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let workspace = workspace(&dir, |_| {});
    *workspace.env.lock().unwrap() = vec![("PI_MODEL".into(), "m".into())];
    let show = "env | grep -E '^PI_(SESSION|MODEL|PROVIDER|REASONING)' | sort; true";
    let result = call(&*tool(workspace.clone()), json!({"command": show}));
    assert_eq!(text(&result), "PI_MODEL=m\n");
    let of_user = execute_quietly(&workspace, show);
    assert_eq!(of_user.output(), "");
    assert_eq!(of_user.exit_code(), Some(0));
    assert!(!of_user.is_cancelled() && !of_user.is_truncated());
    assert_eq!(of_user.full_output_path(), None);
}

fn execute_quietly(workspace: &Workspace, command: &str) -> Execution {
    let request =
        Request { call: "", command, timeout_seconds: None, session_variables: false, on_output: None };
    execute(workspace, &request, &|_, _| {}, &CancelToken::new()).unwrap()
}

/// Ways of a shell to leave a process running in the background.
const BACKGROUND: [&str; 8] = [
    "sleep 300 & echo x",
    "(setsid sleep 300 &); echo x",
    "nohup sleep 300 >/dev/null 2>&1 & echo x",
    "setsid nohup sleep 300 >/dev/null 2>&1 & echo x",
    "((sleep 300 &) &); echo x",
    "sh -c 'sleep 300 & exec sleep 300' & echo x",
    "env -i sleep 300 & echo x",
    "sleep 300 & kill -STOP $!; echo x",
];

#[test]
fn a_call_ends_with_its_shell_and_what_runs_on_is_killed_in_the_end() {
    let guard = LeakGuard::new();
    let dir = TempDir::create();
    let workspace = workspace(&dir, |_| {});
    // Found by its parent alone.
    let wiped = r#"sh -c 'setsid env -i sh -c ": > started; exec sleep 300" & exec sleep 300' &
        until [ -e started ]; do sleep 0.01; done; echo x"#;
    for command in BACKGROUND.iter().chain(&[wiped]) {
        let execution = execute_quietly(&workspace, command);
        assert_eq!(execution.output(), "x\n", "{command}");
        let found = process::survivors();
        assert!(!found.is_empty(), "{command}");
        assert!(found.len() == 2 || *command != wiped, "{found:?}");

        process::kill_all();
        for survivor in found {
            let folder = format!("/proc/{}/cwd", survivor.pid);
            eventually(&folder, || std::fs::read_link(&folder).is_err());
        }
        guard.check();
        assert_eq!(process::survivors(), [], "{command}");
    }
}

/// Shell command that waits until the background process runs `program`.
fn until_it_is(program: &str) -> String {
    format!(r#"until [ "$(cat /proc/$!/comm)" = {program} ]; do :; done"#)
}

#[test]
fn what_runs_on_is_named() {
    let _guard = LeakGuard::new();
    let result = run(&format!("sleep 300 & {}; exit 2", until_it_is("sleep")));
    let pid = process::survivors()[0].pid;
    let expected = format!(
        "error: (no output)\n\n[Still running in the background: {pid} (sleep)]\n\n\
         Command exited with code 2"
    );
    assert_eq!(result, expected);
}

#[test]
fn a_call_ends_though_a_survivor_prints_without_end() {
    let _guard = LeakGuard::new();
    let result = run(&format!("yes & {}", until_it_is("yes")));
    assert!(result.ends_with(" (yes)]"), "{result}");
}

#[test]
fn survivors_run_on_whatever_they_print() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |_| {}));
    // More than a pipe holds, after the call is over.
    let command = "(until [ -e go ]; do sleep 0.02; done; head -c 2000000 /dev/zero && touch done) & echo x";
    let result = call(&*tool, json!({"command": command}));
    assert!(text(&result).starts_with("x\n"));
    dir.write("go", "");
    eventually("the survivor is done", || dir.path().join("done").exists());
    eventually("it is no survivor any more", || process::survivors().is_empty());
}

#[test]
fn survivors_may_be_kept() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let workspace = workspace(&dir, |options| options.bash_keep_background = true);
    let execution = execute_quietly(&workspace, "sleep 300 & echo x");
    let [survivor] = execution.survivors.as_slice() else {
        panic!("{execution:?}");
    };
    process::kill_all();
    assert_eq!(process::survivors(), execution.survivors);
    execute_quietly(&workspace, &format!("kill {}", survivor.pid));
    eventually("the survivor is gone", || process::survivors().is_empty());
}

#[test]
fn a_time_limit_ends_the_whole_tree_and_keeps_the_output() {
    let guard = LeakGuard::new();
    for (command, expected) in [
        ("printf x; sleep 300", "x\n\n"),
        ("sleep 300 & sleep 300", ""),
        ("(setsid sleep 300 &); sleep 300", ""),
        ("sleep 300 & kill -STOP $!; wait", ""),
        ("kill -STOP $$", ""),
        ("trap 'printf bye; exit 0' TERM; sleep 300 & wait", "bye\n\n"),
        // Those that do not listen are killed.
        ("(trap '' TERM; setsid sleep 300 >/dev/null &) ; trap '' TERM; while :; do sleep 300; done", ""),
    ] {
        // Time enough for those that print something first.
        let seconds = if expected.is_empty() { 0.2 } else { 1.5 };
        let result = run_for(command, Some(seconds));
        let expected = format!("error: {expected}Command timed out after {seconds} seconds");
        assert_eq!(result, expected, "{command}");
        guard.check();
    }
}

#[test]
fn a_time_limit_that_makes_no_sense_is_refused() {
    for (seconds, expected) in [
        (0.0, "error: Invalid timeout: must be a finite number of seconds"),
        (-1.0, "error: Invalid timeout: must be a finite number of seconds"),
        (2_147_483.648, "error: Invalid timeout: maximum is 2147483.647 seconds"),
    ] {
        assert_eq!(run_for("echo x", Some(seconds)), expected);
    }
    let nan = timeout(f64::NAN).unwrap_err();
    assert_eq!(nan.message, "Invalid timeout: must be a finite number of seconds");
    assert!(timeout(2_147_483.647).is_ok());
}

#[test]
fn the_setting_is_the_time_limit_of_calls_without_one() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |options| options.bash_timeout_seconds = Some(0.2)));
    let result = call(&*tool, json!({"command": "sleep 300"}));
    assert_eq!(text(&result), "error: Command timed out after 0.2 seconds");
    let result = call(&*tool, json!({"command": "sleep 0.4", "timeout": 60}));
    assert_eq!(text(&result), "(no output)");
}

#[test]
fn an_abort_kills_the_whole_tree_and_keeps_the_output() {
    let guard = LeakGuard::new();
    for command in BACKGROUND.iter().chain(&["echo x", "trap '' TERM INT HUP; echo x"]) {
        let dir = TempDir::create();
        let tool = tool(workspace(&dir, |_| {}));
        let cancel = CancelToken::new();
        let command = format!("{command}; touch ready; while :; do sleep 300; done");
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the command runs", || dir.path().join("ready").exists());
                cancel.cancel();
            });
            call_with(&*tool, json!({"command": command}), &cancel, &Model::default())
        });
        assert_eq!(processes(), [].into(), "{command}");
        assert_eq!(text(&result), "error: x\n\n\nCommand aborted", "{command}");
        guard.check();
    }
}

#[test]
fn a_command_that_was_aborted_before_does_not_start() {
    let dir = TempDir::create();
    let cancel = CancelToken::new();
    cancel.cancel();
    let tool = tool(workspace(&dir, |_| {}));
    let result = call_with(&*tool, json!({"command": "touch x"}), &cancel, &Model::default());
    assert_eq!(text(&result), "error: Command aborted");
    assert!(dir.names().is_empty());
}

#[test]
fn a_long_output_is_cut_from_the_start_and_saved_whole() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |_| {}));
    for (command, notice, bytes) in [
        ("seq 3000", "lines 1001-3000 of 3000", 13_893),
        ("seq 3000; exit 1", "lines 1001-3000 of 3000", 13_893),
        ("seq -f %030.0f 3000", "lines 1350-3000 of 3000 (50.0KB limit)", 93_000),
        ("seq 1000000", "lines 998001-1000000 of 1000000", 6_888_896),
        (
            "head -c 30000000 /dev/zero | tr '\\0' x; echo",
            "last 50.0KB of line 1 (line is 28.6MB)",
            30_000_001,
        ),
        ("head -c 60000 /dev/zero | tr '\\0' x >&2", "last 50.0KB of line 1 (line is 58.6KB)", 60_000),
    ] {
        let result = call(&*tool, json!({"command": command}));
        let details = match &result {
            Ok(output) => output.details.clone(),
            Err(error) => error.details.clone(),
        };
        let details = details.unwrap();
        let path = details["fullOutputPath"].as_str().unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().len(), bytes, "{command}");
        let notice = format!("\n\n[Showing {notice}. Full output: {path}]");
        let text = text(&result);
        assert!(text.contains(&notice), "{command}: {}", &text[text.len() - 300..]);
        assert_eq!(details["truncation"]["truncated"], json!(true));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn any_bytes_may_be_printed() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let workspace = workspace(&dir, |options| options.output_cap_bytes = 100_000);
    for command in ["head -c 1000000 /dev/urandom", "head -c 2000000 /dev/zero", "cat /bin/ls"] {
        let execution = execute_quietly(&workspace, command);
        assert_eq!(execution.exit_code(), Some(0));
        let plain = |char: char| !char.is_control() || char == '\n' || char == '\t';
        assert!(execution.output().chars().all(plain));
        if let Some(path) = execution.full_output_path() {
            assert_eq!(std::fs::metadata(path).unwrap().len(), 100_000);
        }
    }
}

#[test]
fn updates_show_the_output_so_far() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |_| {}));
    let updates = Mutex::new(Vec::new());
    let arguments = json!({"command": "echo 1; until [ -e go ]; do sleep 0.01; done; echo 2"});
    let Value::Object(arguments) = arguments else { unreachable!() };
    let result = tool.run(&Invocation {
        id: "1",
        arguments: &arguments,
        cancel: &CancelToken::new(),
        model: &Model::default(),
        update: &|output| {
            let text = text_of(&output.content);
            if text == "1\n" {
                dir.write("go", "");
            }
            updates.lock().unwrap().push((text, output.details));
        },
    });
    assert_eq!(text(&result), "1\n2\n");
    let expected = [("", None), ("1\n", Some(json!({}))), ("1\n2\n", Some(json!({})))];
    let updates = updates.into_inner().unwrap();
    assert!(updates.iter().map(|(text, details)| (text.as_str(), details.clone())).eq(expected));
}

#[test]
fn a_shell_that_cannot_start_is_a_clear_error() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let fail = |change: &dyn Fn(&mut Options), command: &str| {
        let tool = tool(workspace(&dir, change));
        text(&call(&*tool, json!({"command": command})))
    };
    let with_shell = |path: &str| {
        let path = path.to_owned();
        fail(&move |options| options.shell_path = Some(path.clone()), "true")
    };
    assert_eq!(with_shell("/no/sh"), "error: Custom shell path not found: /no/sh");
    let plain = dir.write("plain", "").to_string_lossy().into_owned();
    let expected = format!("error: Cannot start {plain}: Permission denied (os error 13)");
    assert_eq!(with_shell(&plain), expected);
    let long = fail(&|_| {}, &"x".repeat(3_000_000));
    assert!(long.starts_with("error: Cannot start /bin/bash: Argument list too long"), "{long}");
    let nul = fail(&|_| {}, "echo \0");
    assert!(nul.starts_with("error: Cannot start /bin/bash: "), "{nul}");

    let mut gone = dir.workspace();
    gone.cwd = dir.path().join("gone");
    let result = call(&*tool(Arc::new(gone)), json!({"command": "true"}));
    let expected = format!(
        "error: Working directory does not exist: {}/gone\nCannot execute bash commands.",
        dir.path().display()
    );
    assert_eq!(text(&result), expected);
}

#[test]
fn the_shell_and_a_prefix_are_settings() {
    let _guard = LeakGuard::new();
    let dir = TempDir::create();
    let tool = tool(workspace(&dir, |options| {
        options.shell_path = Some("/bin/sh".into());
        options.shell_command_prefix = Some("x=1".into());
    }));
    let result = call(&*tool, json!({"command": "echo $0 $x"}));
    assert_eq!(text(&result), "/bin/sh 1\n");
}
