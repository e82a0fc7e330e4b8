//! Flags, subcommands and what they print.

use crate::agent::World;
use crate::screen::Screen;
use crate::server::Reply;
use crate::world;

#[test]
fn the_version_is_a_bare_number() {
    let world = World::new();
    let outcome = world.pi().words("--version").run().success();
    let number = outcome.stdout.strip_suffix('\n').unwrap();
    let parts: Vec<&str> = number.split('.').collect();
    assert!(parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok()), "{number}");
}

#[test]
fn help_names_every_group() {
    let world = World::new();
    let help = world.pi().words("--help").run().success().stdout;
    for part in
        ["Usage:", "--model <pattern>", "--tools, -t <list>", "--continue, -c", "pi docs", "faux/demo"]
    {
        assert!(help.contains(part), "{part} is not in:\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
}

#[test]
fn bad_usage_is_exit_code_2() {
    let world = World::new();
    world.pi().words("--bogus").run().fails_with(2).stdout_is("").stderr_has("Unknown option: --bogus");
    world.pi().words("--mode foo").run().fails_with(2).stderr_has("Invalid mode \"foo\"");
    world.pi().words("--session-id a --session b -p x").run().fails_with(2);
}

#[test]
fn the_manual_is_inside() {
    let world = World::new();
    let topics = world.pi().words("docs").run().success().stdout;
    assert!(topics.contains("cli") && topics.contains("models"), "{topics}");
    let page = world.pi().words("docs cli").run().success().stdout;
    assert!(page.starts_with("# "), "{page}");
    for name in ["settings", "models", "rpc"] {
        let schema = world.pi().args(["docs", "schema", name]).run().success().stdout;
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert!(schema["$schema"].is_string(), "{schema}");
    }
    world.pi().words("docs schema nonsense").run().fails_with(2).stderr_has("keybindings");
    world.pi().words("docs schema").run().fails_with(2).stderr_has("settings");
    world.pi().words("docs nonsense").run().fails_with(2).stderr_has("nonsense");
}

#[test]
fn the_demo_runs_without_a_key() {
    let world = World::new();
    world.write("README.md", "# A small project\n\nIt does nothing.\n");
    let outcome = world.pi().args(["--model", "faux/demo", "-p", "What is this project?"]).run().success();
    assert!(outcome.stdout.to_lowercase().contains("script"), "it says what it is: {}", outcome.stdout);
    assert_eq!(world.read("README.md"), "# A small project\n\nIt does nothing.\n");
}

#[test]
fn a_script_of_the_user_plays() {
    let world = World::new();
    let script = world.write("script.json", r#"["Hello from the script"]"#);
    let pi = || {
        world.pi().args(["--model", "faux/script", "--no-session", "-p", "hi"]).env("PI_FAUX_SCRIPT", &script)
    };
    pi().run().success().stdout_is("Hello from the script\n");
    pi().args(["second"]).run().fails_with(1);
}

#[test]
fn models_can_be_listed() {
    let (world, _server) = world([]);
    let list = world.pi().words("--list-models m1").run().success().stdout;
    let first = list.lines().next().unwrap();
    for column in ["provider", "model", "context", "max-out", "thinking", "images"] {
        assert!(first.contains(column), "{list}");
    }
    assert!(list.contains("mock") && list.contains("128K"), "{list}");
    world.pi().words("--list-models zzz").run().success().stdout_is("No models matching \"zzz\"\n");
}

#[test]
fn the_system_prompt_can_be_replaced_and_added_to() {
    let (world, server) = world([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    world.write("AGENTS.md", "Speak like a pirate.");
    world.write("more.md", "From a file.");
    let system = |n: usize| server.requests()[n].messages()[0]["content"].to_string();
    let pi = || world.pi().args(["--model", "mock/m1", "--no-session", "-p", "x"]);
    pi().run().success();
    assert!(system(0).contains("Speak like a pirate.") && system(0).contains("AGENTS.md"), "{}", system(0));
    pi().args(["--system-prompt", "You are a poet.", "--append-system-prompt", "more.md", "-nc"])
        .run()
        .success();
    assert!(system(1).contains("You are a poet.") && system(1).contains("From a file."), "{}", system(1));
    assert!(!system(1).contains("pirate") && !system(1).contains("<tools>"), "{}", system(1));
    std::fs::write(world.agent_dir().join("SYSTEM.md"), "You are a clerk.").unwrap();
    pi().run().success();
    assert!(system(2).contains("You are a clerk."), "{}", system(2));
}

#[test]
fn nothing_of_an_untrusted_project_is_used() {
    let (world, server) = world([Reply::text("a")]);
    world.write(
        ".pi/settings.json",
        r#"{"defaultModel": "canary", "shellCommandPrefix": "touch canary", "sessionDir": "canary"}"#,
    );
    world.write(".pi/SYSTEM.md", "canary prompt");
    world.pi().args(["--model", "mock/m1", "-p", "x"]).run().success();
    assert!(!server.requests()[0].body.to_string().contains("canary"));
    assert!(!world.work().join("canary").exists());
}

#[test]
fn the_first_request_is_small() {
    let (world, server) = world([Reply::text("a")]);
    world.pi().args(["--model", "mock/m1", "-p", "x"]).run().success();
    let body = &server.requests()[0].body;
    let letters = body["messages"].to_string().len() + body["tools"].to_string().len();
    assert!(letters / 4 < 1500, "{} tokens", letters / 4);
}

/// The program's own version is told where a person looks.
#[test]
#[cfg_attr(not(feature = "interactive"), ignore)]
fn the_version_on_a_terminal_names_the_program_itself() {
    let world = World::new();
    let screen = Screen::start(world.pi().words("--version"));
    screen.wait_for(concat!("(native pi ", env!("CARGO_PKG_VERSION"), ")"));
    screen.wait();
}

#[test]
fn a_home_that_is_no_absolute_path_is_refused() {
    let world = World::new();
    let outcome = world.pi().env("HOME", "rel").words("--model faux/echo -p hi").run().fails_with(1);
    outcome.stderr_has("HOME is not an absolute path (rel)");
    assert!(!world.work().join("rel").exists());
}

#[test]
fn a_base_url_in_the_environment_that_is_not_used_is_told_once() {
    let world = World::new();
    let pi = world.pi().words("--model openai/gpt-4o -p hi --timeout 1 --api-key none");
    let pi = pi.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1").env("HTTPS_PROXY", "http://127.0.0.1:9");
    let outcome = pi.run().fails_with(1).stderr_has("OPENAI_BASE_URL is set, but not used");
    assert_eq!(outcome.stderr.matches("OPENAI_BASE_URL").count(), 1);
}

#[test]
fn words_of_the_reference_are_never_sent_as_a_prompt() {
    let (world, server) = world([]);
    for words in ["install", "uninstall", "remove"] {
        world.pi().words(words).run().fails_with(1).stderr_has("source.");
    }
    world.pi().words("list").run().success().stdout_is("No packages installed.\n");
    world.pi().words("update").run().fails_with(1).stderr_has("pi does not replace itself");
    world.pi().words("--provider mock -p x").run().fails_with(1).stderr_has("--provider requires --model");
    world.pi().words("auth logout anthropic").run().success().stdout_is(
        "No stored credentials for anthropic. The environment and models.json stay as they are.\n",
    );
    assert!(server.requests().is_empty());
}

/// The words of a command line, of several forms of it the first, up to where the shell takes over.
fn first_form(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('"').enumerate() {
        match number % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    let is_of_shell = |word: &String| matches!(word.as_bytes()[0], b'|' | b'<' | b'>' | b'#' | b'\\');
    let end = words.iter().position(is_of_shell).unwrap_or(words.len());
    let form = |word: &String| {
        let word = word.trim_matches(['[', ']']);
        word.split('|').next().unwrap_or_default().to_owned()
    };
    words[..end].iter().map(form).collect()
}

#[test]
fn commands_of_the_manual_are_understood() {
    let world = World::new();
    let topics = world.pi().words("docs").run().success().stdout;
    let topics = topics.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(':'));
    let mut text = include_str!("../../README.md").to_owned();
    for (topic, _) in topics {
        text.push_str(&world.pi().args(["docs", topic]).run().success().stdout);
    }
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let lines = text.lines().map(|line| line.trim_start_matches("$ "));
    let mut commands: Vec<&str> = spans.chain(lines).filter_map(|text| text.strip_prefix("pi ")).collect();
    commands.retain(|command| !command.starts_with('='));
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 80, "{commands:?}");
    for command in commands {
        let outcome = world.pi().env("PI_OFFLINE", "1").args(first_form(command)).run();
        assert!(!outcome.stderr.contains("Unknown"), "pi {command}\n{}", outcome.stderr);
    }
}
