//! `pi completions`, `pi man` and `--version --json`: what packages install and programs ask for.

use crate::agent::World;
use std::io::Write;
use std::process::{Command, Stdio};

/// The output of a program that reads `input`; `None` if it is not installed.
fn filter(program: &str, arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let command = Command::new(program)
        .args(arguments)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = command.ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), said))
}

fn script(world: &World, shell: &str) -> String {
    world.pi().words(&format!("completions {shell}")).run().success().stdout
}

/// The completions of the last word of a line in a folder with the file `notes.md` and the folder `src`.
fn in_bash(script: &str, world: &World, words: &[&str]) -> Option<Vec<String>> {
    world.write("notes.md", "");
    world.write("src/main.rs", "");
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let ask = format!(
        "{script}\ncd '{}'\nCOMP_WORDS=(pi {}); COMP_CWORD={}; _pi\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        world.work().display(),
        words.join(" "),
        words.len()
    );
    let (_, said) = filter("bash", &["--norc"], &ask)?;
    Some(said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

#[test]
fn bash_completes_subcommands_flags_values_and_files() {
    let world = World::new();
    let script = script(&world, "bash");
    for (words, expected) in [
        (&["doc"][..], &["docs", "doctor"][..]),
        (&["docs", "secur"], &["security"]),
        (&["completions", "f"], &["fish"]),
        (&["export", "no"], &["notes.md"]),
        (&["--max-t"], &["--max-turns", "--max-tokens-total"]),
        (&["--mode", ""], &["text", "json", "rpc", "acp", "mcp"]),
        (&["--mode", "=", "r"], &["rpc"]),
        (&["--mode", "="], &["text", "json", "rpc", "acp", "mcp"]),
        (&["-p", "--thinking", "xh"], &["xhigh"]),
        (&["--ask-tools", ""], &["all", "writes"]),
        (&["--cwd", "s"], &["src"]),
        (&["--session", "n"], &["notes.md"]),
        (&["-p", "@n"], &["@notes.md"]),
        (&["--model", ""], &[]),
        (&["-p", "hello"], &[]),
    ] {
        let Some(found) = in_bash(&script, &world, words) else { return };
        assert_eq!(found, expected, "{words:?}");
    }
}

#[test]
fn shells_can_parse_their_scripts() {
    let world = World::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = script(&world, shell);
        if let Some((is_good, said)) = filter(shell, &[check], &script) {
            assert!(is_good && said.is_empty(), "{shell}: {said}");
        }
        for flag in ["sandbox-write", "no-builtin-tools", "nbt", "undo"] {
            assert!(script.contains(flag), "{shell} knows no {flag}");
        }
    }
}

#[test]
fn fish_completes_flags_and_values() {
    let world = World::new();
    let script = script(&world, "fish");
    for (line, expected) in [
        ("pi doc", &["docs", "doctor"][..]),
        ("pi --mode ", &["text", "json", "rpc", "acp", "mcp"]),
        ("pi docs secur", &["security"]),
    ] {
        let ask = format!("{script}\ncomplete -C '{line}'\n");
        let Some((_, said)) = filter("fish", &["--no-config"], &ask) else { return };
        let mut found: Vec<&str> = said.lines().filter_map(|line| line.split('\t').next()).collect();
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn an_unknown_shell_is_bad_usage() {
    let world = World::new();
    for words in
        ["completions", "completions tcsh", "completions bash zsh", "man x", "doctor x", "bug", "bug --x"]
    {
        world.pi().words(words).run().fails_with(2).stdout_is("").stderr_has("pi -- WORDS");
    }
}

#[test]
fn the_manual_page_has_every_flag_and_no_warning() {
    let world = World::new();
    let page = world.pi().words("man").run().success().stdout;
    assert!(page.lines().all(|line| !line.starts_with('\'')), "a line is read as a request");
    for (program, arguments) in
        [("groff", &["-man", "-Tutf8", "-ww", "-z"][..]), ("mandoc", &["-T", "lint", "-W", "warning"])]
    {
        if let Some((is_good, said)) = filter(program, arguments, &page) {
            assert!(is_good && said.is_empty(), "{program}: {said}");
        }
    }
    let help = world.pi().words("--help").run().success().stdout;
    for flag in help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2) {
        let name = flag.trim_end_matches([',', ';', '.']).replace('-', r"\-");
        assert!(page.contains(&name), "{flag}");
    }
}

#[test]
fn the_version_for_programs_is_an_object() {
    let world = World::new();
    for words in ["--version --json", "--json -v", "--mode json --version"] {
        let outcome = world.pi().words(words).run().success();
        let object: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(object["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(outcome.stdout.lines().count(), 1);
        let features = object["features"].as_array().unwrap();
        assert_eq!(features.contains(&"interactive".into()), cfg!(feature = "interactive"));
        let reference = world.pi().words("--version").run().success().stdout;
        assert_eq!(object["referenceVersion"], reference.trim());
    }
}
