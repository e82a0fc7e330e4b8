//! `-p`: the answer on stdout, and nothing else.

use crate::server::{Reply, gate};
use crate::world;
use serde_json::json;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

const MODEL: [&str; 2] = ["--model", "mock/m1"];

#[test]
fn the_answer_is_all_that_stdout_carries() {
    let (world, server) = world([Reply::text("Hello ").then_text("there")]);
    world.pi().args(MODEL).args(["-p", "hi"]).run().success().stdout_is("Hello there\n");
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer test-key"));
    assert!(request.header("user-agent").unwrap().starts_with("pi/"), "{}", request.head);
    assert_eq!(request.last_text(), "hi");
    assert_eq!(request.body["stream"], json!(true));
}

#[test]
fn thinking_and_tool_output_stay_off_stdout() {
    let (world, server) = world([
        Reply::stream().then_thinking("hmm").then_text("looking").then_tool(
            0,
            "t1",
            "read",
            &json!({"path": "a.txt"}),
        ),
        Reply::stream().then_thinking("so").then_text("It says: hello"),
    ]);
    world.write("a.txt", "hello\n");
    world.pi().args(MODEL).args(["-p", "what is in a.txt?"]).run().success().stdout_is("It says: hello\n");
    let second = &server.requests()[1];
    let result = second.messages().last().unwrap();
    assert_eq!(result["role"], "tool");
    assert_eq!(result["tool_call_id"], "t1");
    assert_eq!(second.last_text(), "hello\n");
}

#[test]
fn stdin_that_is_not_a_terminal_means_print() {
    let (world, server) = world([Reply::text("ok")]);
    world.pi().args(MODEL).args(["Review"]).stdin("  line1\nline2\n\n").run().success().stdout_is("ok\n");
    assert_eq!(server.requests()[0].last_text(), "line1\nline2\nReview");
}

#[test]
fn several_messages_are_asked_in_turn_and_the_last_answer_is_printed() {
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    world.pi().args(MODEL).args(["-p", "first", "second"]).run().success().stdout_is("two\n");
    let requests = server.requests();
    assert_eq!(requests[0].last_text(), "first");
    assert_eq!(requests[1].last_text(), "second");
    let before = requests[0].messages();
    assert_eq!(&requests[1].messages()[..before.len()], before, "the second request extends the first");
}

#[test]
fn files_are_put_before_the_message() {
    let (world, server) = world([Reply::text("ok")]);
    let path = world.write("notes.txt", "\u{feff}some notes\n");
    world.write("empty.txt", "");
    world.pi().args(MODEL).args(["-p", "@notes.txt", "@empty.txt", "sum up"]).run().success();
    let expected = format!("<file name=\"{}\">\nsome notes\n\n</file>\nsum up", path.display());
    assert_eq!(server.requests()[0].last_text(), expected);
}

#[test]
fn an_image_file_is_attached() {
    let (world, server) = world([Reply::text("a dot")]);
    // One red pixel.
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
    world.write("dot.png", base64::Engine::decode(&base64::engine::general_purpose::STANDARD, png).unwrap());
    world.pi().args(MODEL).args(["-p", "@dot.png", "what is this?"]).run().success();
    let content = server.requests()[0].messages().last().unwrap()["content"].clone();
    let kinds: Vec<&str> =
        content.as_array().unwrap().iter().filter_map(|part| part["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "image_url"]);
}

#[test]
fn a_missing_file_is_named_before_anything_is_sent() {
    let (world, server) = world([]);
    let missing = world.work().join("nope.txt");
    let outcome = world.pi().args(MODEL).args(["-p", "@nope.txt", "x"]).run().fails_with(1).stdout_is("");
    outcome.stderr_has(&format!("File not found: {}", missing.display()));
    assert!(server.requests().is_empty());
}

#[test]
fn nothing_to_ask_is_bad_usage() {
    let (world, server) = world([]);
    world.write("empty.txt", "");
    for words in ["-p", "--mode json", "-p @empty.txt", "-p -c"] {
        for stdin in ["", " \n"] {
            let outcome = world.pi().args(MODEL).words(words).stdin(stdin).run().fails_with(2);
            outcome.stdout_is("").stderr_has("Usage: pi -p");
        }
    }
    world.pi().args(MODEL).args(["-p", ""]).run().fails_with(2).stderr_has("nothing to ask");
    assert!(server.requests().is_empty());
    assert_eq!(world.session_files(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_pipe_that_never_says_anything_is_given_up_on() {
    let (world, server) = world([Reply::text("ok")]);
    let (silent, _held) = std::io::pipe().unwrap();
    let mut pi = world.pi().args(MODEL).args(["-p", "hi"]);
    let mut child = pi.command().stdin(silent).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(pi);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.contains("Nothing came on stdin for 3 s"), "{said}");
    assert_eq!(server.requests()[0].last_text(), "hi");
}

#[test]
fn a_closed_stdout_is_no_success() {
    let (world, server) = world([Reply::text("lost"), Reply::text("lost")]);
    for (words, requests) in [("-p hi", 1), ("--mode json hi", 1)] {
        let mut pi = world.pi().args(MODEL).words(words);
        // SAFETY: the call is safe between fork and exec.
        unsafe {
            pi.command().pre_exec(|| {
                libc::close(1);
                Ok(())
            });
        }
        pi.run().fails_with(1).stderr_has("Cannot write to stdout: it is closed");
        // JSON mode has nothing to do without its header.
        assert_eq!(server.requests().len(), requests, "{words}");
    }
    assert!(world.session().iter().any(|line| line.to_string().contains("lost")));
}

#[test]
fn names_and_prompts_that_are_not_utf8_can_be_given() {
    use std::os::unix::ffi::OsStrExt;
    let (world, server) = world([Reply::text("ok")]);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(world.work().join(name), "inside").unwrap();
    let file = std::ffi::OsStr::from_bytes(b"@caf\xe9.txt");
    let prompt = std::ffi::OsStr::from_bytes(b"d\xe9j\xe0");
    let pi = world.pi().args(MODEL).args(["-p"]).args([file, prompt]);
    pi.run().success().stderr_has("not valid UTF-8");
    let text = server.requests()[0].last_text();
    assert!(text.contains("\ninside\n") && text.ends_with("d\u{fffd}j\u{fffd}"), "{text}");
}

#[test]
fn a_prompt_may_begin_with_a_dash() {
    let (world, server) = world([Reply::text("ok")]);
    world.pi().args(MODEL).args(["-p", "--", "- a", "-c"]).run().fails_with(1);
    assert_eq!(server.requests()[0].last_text(), "- a");
}

#[test]
fn text_blocks_end_in_one_newline_each() {
    let (world, _server) = world([Reply::text("with newline\n")]);
    world.pi().args(MODEL).args(["-p", "x"]).run().success().stdout_is("with newline\n\n");
}

#[test]
fn a_slow_answer_is_waited_for() {
    let (open, held) = gate();
    let (world, server) = world([Reply::text("first ").then_wait(held).then_text("second")]);
    let running = world.pi().args(MODEL).args(["-p", "x"]).spawn();
    server.wait_for(1);
    open.send(()).unwrap();
    running.wait().success().stdout_is("first second\n");
}

#[test]
fn base_url_and_key_can_be_given_for_one_run() {
    let (world, server) = world([Reply::text("ok")]);
    world
        .pi()
        .args([
            "--model",
            "groq/openai/gpt-oss-120b",
            "--base-url",
            &server.url(),
            "--api-key",
            "one-run-key",
            "-p",
            "x",
        ])
        .env("GROQ_API_KEY", "from-the-environment")
        .run();
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer one-run-key"));
}
