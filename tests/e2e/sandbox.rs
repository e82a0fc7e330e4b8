//! What tools may write and reach under `--sandbox` and `--read-only`.

use crate::agent::{Pi, World, terminal};
use crate::server::Reply;
use crate::world;
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;

const PRINT: [&str; 3] = ["--model", "mock/m1", "-p"];

/// Whether this kernel can confine; where it cannot, pi says so and does not run.
pub fn can_confine() -> bool {
    cfg!(target_os = "macos") || {
        let world = World::new();
        world.pi().args(["sandbox", "--", "true"]).run().code() == 0
    }
}

#[test]
fn a_workspace_sandbox_keeps_all_tools_inside() {
    if !can_confine() {
        return;
    }
    let (world, server) = world([
        Reply::stream()
            .then_tool(0, "b", "bash", &json!({"command": "echo x > in; echo x > ~/out"}))
            .then_tool(1, "w", "write", &json!({"path": "~/out", "content": "x"}))
            .then_tool(2, "i", "write", &json!({"path": "in2", "content": "x"}))
            .finish("tool_calls"),
        Reply::text("done"),
    ]);
    let run = world.pi().args(["--sandbox", "workspace"]).args(PRINT).args(["go"]).run();
    run.success();
    let requests = server.requests();
    let text = |id: &str| {
        let mut messages = requests[1].messages().iter();
        let result = messages.find(|message| message["tool_call_id"] == id);
        result.expect("a result")["content"].to_string()
    };
    assert!(
        text("b").contains("Permission denied") && text("b").contains("ran in a sandbox"),
        "{}",
        text("b")
    );
    assert!(text("w").contains("the sandbox forbids it"), "{}", text("w"));
    assert!(text("i").contains("Successfully wrote"), "{}", text("i"));
    assert_eq!(world.read("in"), "x\n");
    assert!(!world.home().join("out").exists());
    let prompt = requests[0].messages()[0]["content"].to_string();
    assert!(prompt.contains("Tools run in a sandbox"), "{prompt}");
}

#[test]
fn a_read_only_run_offers_no_tool_that_changes_anything() {
    let (world, server) = world([Reply::text("done"), Reply::text("done")]);
    let offered = |index: usize| {
        let body = server.requests()[index].body.clone();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    world.pi().args(["--read-only"]).args(PRINT).args(["go"]).run().success();
    assert_eq!(offered(0), ["read", "grep", "find", "ls"]);
    let tools = ["--read-only", "--tools", "bash,read,edit"];
    world.pi().args(tools).args(PRINT).args(["go"]).run().success();
    assert_eq!(offered(1), ["read"]);
}

#[test]
fn a_command_can_be_tried_in_the_sandbox() {
    if !can_confine() {
        return;
    }
    let world = World::new();
    let sandbox = |words: &[&str]| world.pi().args(["sandbox"]).args(words).run();
    sandbox(&["--", "sh", "-c", "echo x > in; exit 3"]).fails_with(3);
    assert_eq!(world.read("in"), "x\n");
    sandbox(&["--", "sh", "-c", "echo x > ~/out"]).fails_with(2);
    sandbox(&["--sandbox", "read-only", "--", "sh", "-c", "echo x > in"]).fails_with(2);
    let home = world.home().display().to_string();
    sandbox(&["--sandbox-write", &home, "--", "sh", "-c", "echo x > ~/out"]).success();
    sandbox(&["--", "sh", "-c", "kill -TERM $$"]).fails_with(143);
    sandbox(&["--", "/no/such/program"]).fails_with(1);
    sandbox(&[]).fails_with(2);
    sandbox(&["--sandbox-write", "/no/such/folder", "--", "true"]).fails_with(1);
}

/// Starts pi with the descriptor 8 open for writing to `file`.
fn with_descriptor<'w>(mut pi: Pi<'w>, file: &File) -> Pi<'w> {
    let fd = file.as_raw_fd();
    // SAFETY: the call is safe between fork and exec, and the file is open until pi has ended.
    unsafe {
        pi.command().pre_exec(move || match libc::dup2(fd, 8) {
            8 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    pi
}

#[test]
fn descriptors_that_pi_was_started_with_reach_no_command() {
    let call = || Reply::tool("t", "bash", &json!({"command": "echo x >&8"}));
    let (world, server) = world([call(), Reply::text("done"), call(), Reply::text("done")]);
    let path = world.home().join("outside");
    let file = File::create(&path).unwrap();
    let can_confine = can_confine();
    if can_confine {
        let words = ["sandbox", "--", "sh", "-c", "echo x >&8"];
        with_descriptor(world.pi().args(words), &file).run().fails_with(2);
    }
    let modes: &[&str] = if can_confine { &["off", "workspace"] } else { &["off"] };
    for (run, mode) in modes.iter().enumerate() {
        let pi = world.pi().args(["--sandbox", mode]).args(PRINT).args(["go"]);
        with_descriptor(pi, &file).run().success();
        let request = &server.requests()[2 * run + 1];
        let result = request.messages().last().unwrap()["content"].to_string();
        assert!(result.contains("Bad file descriptor"), "{result}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_command_that_is_tried_has_its_own_terminal_and_no_other() {
    if !can_confine() {
        return;
    }
    let world = World::new();
    let (_ours, theirs) = terminal().unwrap();
    let other = fs::read_link(format!("/proc/self/fd/{}", theirs.as_raw_fd())).unwrap();
    let own = "echo seen > /dev/tty && echo too > \"$(tty)\" && stty -F \"$(tty)\" > /dev/null && echo well";
    let foreign = format!("! echo x > {0} && ! stty -F {0} > /dev/null && ! head -c1 < {0}", other.display());
    let script = format!("{own} && {foreign}");
    let run = world.pi().args(["sandbox", "--", "sh", "-c", &script]).spawn_on_terminal();
    run.wait_until_shown("too");
    run.wait().success().stdout_is("well\n").stderr_has("seen");
}

#[test]
fn a_sandbox_around_the_settings_of_pi_is_a_warning() {
    if !can_confine() {
        return;
    }
    let world = World::new();
    let sandbox = |folder: &std::path::Path| {
        let mut pi = world.pi().args(["sandbox", "--", "true"]);
        pi.command().current_dir(folder);
        pi.run().success().stderr
    };
    let warning = "The sandbox does not protect";
    assert!(!sandbox(&world.work()).contains(warning));
    for folder in [world.home(), world.agent_dir()] {
        let stderr = sandbox(&folder);
        assert!(stderr.contains(warning), "{stderr}");
        assert!(stderr.contains(&*world.agent_dir().to_string_lossy()), "{stderr}");
    }
}
