//! What goes wrong: a clear message, nothing lost, the right exit code.

use crate::agent::World;
use crate::server::{Reply, Server, Step};
use crate::world;
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const PRINT: [&str; 4] = ["--model", "mock/m1", "-p", "hi"];

#[track_caller]
fn fails(reply: Reply, parts: &[&str]) {
    let (world, _server) = world([reply]);
    let outcome = world.pi().args(PRINT).run().fails_with(1).stdout_is("");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part:?} is not in: {}", outcome.stderr);
    }
    assert!(
        !outcome.stderr.contains("test-key") && !outcome.stderr.contains("panicked"),
        "{}",
        outcome.stderr
    );
    // A refused request leaves a session that can be opened again.
    let session = world.session();
    assert_eq!(session.last().unwrap()["message"]["stopReason"], "error", "{session:#?}");
}

#[test]
fn answers_that_are_errors() {
    fails(Reply::error(401, "Incorrect API key provided: test-key"), &["401", "Incorrect API key"]);
    fails(Reply::error(404, "model not found"), &["404", "model not found"]);
    fails(
        Reply::status(404, "text/html", "<html><title>Nothing here</title><body>long</body></html>"),
        &["404", "Nothing here"],
    );
    fails(Reply::status(502, "text/plain", "bad gateway"), &["502"]);
    fails(Reply::status(200, "text/html", "<html><title>Sign in</title></html>"), &["Sign in"]);
    fails(Reply::status(500, "application/json", ""), &["500"]);
}

#[test]
fn streams_that_are_not_answers() {
    fails(Reply::text("half").cut(), &["ended"]);
    fails(Reply::stream().cut(), &["ended"]);
    fails(Reply::stream().then_bytes("data: {broken\n\n").cut(), &[]);
    fails(
        Reply::stream().then_bytes("data: {\"error\":{\"message\":\"overloaded now\"}}\n\n").cut(),
        &["overloaded now"],
    );
    fails(Reply::raw(""), &[]);
    fails(
        Reply::raw(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\ndata: ",
        ),
        &[],
    );
    fails(Reply::raw("not http at all\r\n\r\n"), &[]);
    fails(Reply::text("half").then(Step::Reset), &[]);
}

#[test]
fn an_empty_answer_is_an_answer_without_text() {
    let (world, _server) = world([Reply::stream()]);
    world.pi().args(PRINT).run().success().stdout_is("");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let world = World::new();
    let server = Server::start([]);
    world.use_server(&server);
    let port = server.port();
    drop(server);
    let outcome = world.pi().args(PRINT).run().fails_with(1);
    outcome.stderr_has(&format!("127.0.0.1:{port}"));
}

#[test]
fn a_missing_key_names_the_variable() {
    let world = World::new();
    let outcome = world.pi().args(["--model", "anthropic/claude-opus-4-8", "-p", "hi"]).run().fails_with(1);
    outcome.stderr_has("ANTHROPIC_API_KEY");
    assert_eq!(world.session_files(), [] as [std::path::PathBuf; 0], "there was no conversation");
}

#[test]
fn an_unknown_model_names_near_ones() {
    let world = World::new();
    let outcome = world.pi().args(["--model", "clade-opus-4-8", "-p", "hi"]).run().fails_with(1);
    outcome.stderr_has("claude-opus-4-8");
}

#[test]
fn without_any_model_the_ways_to_one_are_shown() {
    let world = World::new();
    // No local server either: every probe is sent where nothing listens.
    let outcome = world.pi().args(["-p", "hi"]).env("PI_LOCAL_URL", "http://127.0.0.1:1").run();
    outcome.fails_with(1).stdout_is("").stderr_has("No models available.");
}

#[test]
fn broken_configuration_is_named_and_left_alone() {
    let (world, server) = world([Reply::text("ok")]);
    world.write_config("settings.json", "{\n  \"defaultModel\": ,\n}");
    world.pi().args(PRINT).run().success().stderr_has("settings.json");
    assert_eq!(
        std::fs::read_to_string(world.agent_dir().join("settings.json")).unwrap(),
        "{\n  \"defaultModel\": ,\n}"
    );
    world.write_config("models.json", "{ \"providers\": ");
    world.pi().args(PRINT).run().fails_with(1).stderr_has("models.json");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_closed_stdout_ends_quietly() {
    for args in [&["-p", "hi"][..], &["--mode", "json", "hi"]] {
        let (world, _server) = world([Reply::text(&"x".repeat(300_000))]);
        let mut pi = world.pi().args(["--model", "mock/m1"]).args(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = pi.command().stdin(Stdio::null()).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let (world, _server) = world([Reply::text("hello")]);
    let mut pi = world.pi().args(PRINT);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = pi.command().stdin(Stdio::null()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stdout"), "{output:?}");
}

#[test]
fn keys_are_in_no_output() {
    let canary = "sk-canary-0123456789";
    let (world, server) = world([Reply::error(401, &format!("bad key {canary}")), Reply::text("ok")]);
    let log = world.work().join("debug.log");
    for mode in ["text", "json"] {
        let outcome = world
            .pi()
            .args(["--model", "mock/m1", "--api-key", canary, "--verbose", "--mode", mode, "-p", "hi"])
            .env("PI_DEBUG_HTTP", &log)
            .run();
        assert!(!outcome.stdout.contains(canary) && !outcome.stderr.contains(canary), "{outcome:?}");
    }
    assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {canary}")));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("chat/completions") && !log.contains(canary), "{log}");
    for file in world.session_files() {
        assert!(!std::fs::read_to_string(&file).unwrap().contains(canary), "{}", file.display());
    }
}

/// The limit holds within a frame, too: what is past it is not kept.
#[test]
fn a_frame_with_thousands_of_tool_calls_is_refused() {
    let call = |index: usize| json!({"index": index, "id": format!("call_{index}"), "function": {"name": "bash", "arguments": "{}"}});
    let calls: Vec<_> = (0..20_000).map(call).collect();
    let frame = json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]});
    let (world, server) = world([Reply::stream().then_bytes(format!("data: {frame}\n\n"))]);
    let refused = world.pi().args(PRINT).run().fails_with(1);
    refused.stderr_has("the answer was refused: it has more than 1000 tool calls");
    assert_eq!(server.requests().len(), 1);
    let session = world.session();
    assert!(session.iter().any(|entry| entry["message"]["role"] == "user"), "the prompt is kept");
    assert!(session.last().unwrap()["message"]["content"].as_array().unwrap().len() <= 1000);
}

#[test]
fn an_answer_with_thousands_of_tool_calls_runs_none_of_them() {
    let call = |reply: Reply, index: usize| {
        reply.then_tool(index, &format!("call_{index}"), "bash", &json!({"command": "touch ran"}))
    };
    let (world, server) = world([(0..5000).fold(Reply::stream(), call)]);
    let refused = world.pi().args(PRINT).run().fails_with(1);
    refused.stderr_has("the answer was refused: it has more than 1000 tool calls");
    assert_eq!(server.requests().len(), 1);
    assert!(!world.work().join("ran").exists());
    let last = world.session().pop().unwrap();
    assert_eq!(last["message"]["stopReason"], "error");
}

#[test]
fn a_crash_of_pi_leaves_no_core_file_and_commands_may_leave_theirs() {
    let command = "ulimit -Sc; grep 'core file' /proc/$PPID/limits";
    let (world, _server) =
        world([Reply::tool("t", "bash", &json!({"command": command})), Reply::text("done")]);
    let mut pi = world.pi().args(PRINT);
    // SAFETY: the call is safe between fork and exec, and the value outlives it.
    unsafe {
        pi.command().pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
            match libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    pi.run().success();
    let session = world.session();
    let result = session.iter().find(|entry| entry["message"]["role"] == "toolResult").unwrap();
    let text = result["message"]["content"][0]["text"].as_str().unwrap();
    let (own, of_pi) = text.split_once('\n').unwrap();
    assert_eq!(own, "4", "in blocks of 1024 bytes: {text}");
    let of_pi: Vec<&str> = of_pi.split_whitespace().collect();
    assert_eq!(of_pi.get(4), Some(&"0"), "{text}");
}

/// Runs with few descriptors: what cannot be opened is an error of the program or of a tool.
#[test]
fn scarce_descriptors_are_errors_and_nothing_stored_is_damaged() {
    let mut is_enough = false;
    for limit in (5..30).step_by(3) {
        let (world, _server) =
            world([Reply::tool("call_1", "bash", &json!({"command": "echo ran"})), Reply::text("done")]);
        let mut pi = world.pi().args(PRINT);
        // SAFETY: the function makes one system call and allocates nothing.
        unsafe {
            pi.command().pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let outcome = pi.run();
        is_enough = outcome.code() == 0;
        assert!(is_enough || outcome.code() == 1, "{limit} descriptors: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{limit} descriptors: {outcome:?}");
        assert!(is_enough || !outcome.stderr.is_empty(), "{limit} descriptors: a failure without a reason");
        assert_sessions_are_whole(&world);
    }
    assert!(is_enough, "the last limit leaves enough");
}

/// As root, which can become a user without other processes: what cannot be started is an error, too.
#[test]
fn scarce_processes_are_errors_and_nothing_stored_is_damaged() {
    /// A user whom nobody has.
    const USER: u32 = 41_234;
    // SAFETY: the call only asks.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("scarce processes are left out: only root can become another user");
        return;
    }
    let mut is_enough = false;
    for limit in 1..=8 {
        let (world, _server) =
            world([Reply::tool("call_1", "bash", &json!({"command": "echo ran"})), Reply::text("done")]);
        // Where the program was built need not be open to others.
        let program = world.work().join("pi");
        std::fs::copy(env!("CARGO_BIN_EXE_pi"), &program).unwrap();
        let folder = world.work().parent().unwrap().to_owned();
        let owner = format!("{USER}:{USER}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(folder).status().unwrap().success());
        let mut pi = world.pi().args(PRINT);
        let own = pi.command();
        let mut command = Command::new(program);
        command.args(own.get_args()).current_dir(world.work()).env_clear().stdin(Stdio::null());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        // SAFETY: the function makes system calls only, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                if libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) != 0
                    || libc::setgid(USER) != 0
                    || libc::setuid(USER) != 0
                {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let output = command.output().expect("start pi");
        let stderr = String::from_utf8_lossy(&output.stderr);
        is_enough = output.status.success();
        assert!(is_enough || output.status.code() == Some(1), "{limit} processes: {output:?}");
        assert!(!stderr.contains("panicked"), "{limit} processes: {stderr}");
        assert!(is_enough || !stderr.is_empty(), "{limit} processes: a failure without a reason");
        assert_sessions_are_whole(&world);
    }
    assert!(is_enough, "the last limit leaves enough");
}

#[track_caller]
fn assert_sessions_are_whole(world: &World) {
    for path in world.session_files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_whole = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert!(text.lines().all(is_whole), "{text}");
    }
}

/// Where a mount can be made: a home that cannot be written is said, with what to do.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_home_is_an_error_that_says_what_to_do() {
    let (world, _server) = world([Reply::text("done")]);
    let in_read_only_home = |words: &str| {
        let mut pi = world.pi().args(PRINT).words(words);
        let own = pi.command();
        let script =
            "mount --bind \"$HOME\" \"$HOME\" && mount -o remount,bind,ro \"$HOME\" || exit 99; exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(own.get_program()).args(own.get_args()).current_dir(world.work()).env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).output().ok()
    };
    let Some(output) = in_read_only_home("").filter(|output| output.status.code() != Some(99)) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare") {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("Read-only file system") && stderr.contains("--session-dir"), "{stderr}");
    let output = in_read_only_home("--no-session").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{output:?}");
}

#[test]
fn a_home_that_is_missing_is_made() {
    let (world, _server) = world([]);
    let home = world.work().join("no/such/home");
    world.pi().env("HOME", &home).words("--model faux/echo -p hi").run().success();
    assert!(home.join(".pi/agent/sessions").is_dir());
}
