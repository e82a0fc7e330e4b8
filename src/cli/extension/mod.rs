//! `pi extension new`: writes an extension that works, with a test.

use super::say::{BAD_USAGE, say};
use crate::base::json::json;
use crate::mode::{exit, report};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const USAGE: &str = "\
Usage: pi extension new NAME [--lang python|node|sh|rust]

Writes an extension with a tool and a command, and a test for it, into the new folder NAME.
";

/// A language that extensions are written in.
struct Language {
    name: &'static str,
    /// Path, text, and whether the file is a program.
    files: &'static [(&'static str, &'static str, bool)],
    /// The command of the manifest.
    command: &'static str,
    /// What is to be done before the first use.
    build: &'static str,
    test: &'static str,
}

const CARGO: &str = "[package]\nname = \"@NAME@\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nserde_json = \"1\"\n\n[workspace]\n";

#[rustfmt::skip]
const LANGUAGES: &[Language] = &[
    Language {
        name: "python",
        files: &[("@NAME@", include_str!("template/python.py"), true), ("test.py", include_str!("template/python_test.py"), false)],
        command: "./@NAME@", build: "", test: "python3 test.py",
    },
    Language {
        name: "node",
        files: &[("@NAME@", include_str!("template/node.mjs"), true), ("test.mjs", include_str!("template/node_test.mjs"), false), ("package.json", "{\"name\": \"@NAME@\", \"private\": true, \"type\": \"module\"}\n", false)],
        command: "./@NAME@", build: "", test: "node test.mjs",
    },
    Language {
        name: "sh",
        files: &[("@NAME@", include_str!("template/shell.sh"), true), ("test.sh", include_str!("template/shell_test.sh"), false)],
        command: "./@NAME@", build: "", test: "sh test.sh",
    },
    Language {
        name: "rust",
        files: &[("src/main.rs", include_str!("template/main.rs"), false), ("Cargo.toml", CARGO, false), (".gitignore", "/target\n", false)],
        command: "./target/release/@NAME@", build: "cargo build --release", test: "cargo test",
    },
];

/// Runs `pi extension`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words
        .iter()
        .flat_map(|word| match word.strip_prefix("--lang=") {
            Some(value) => vec!["--lang", value],
            None => vec![&**word],
        })
        .collect();
    let (name, language) = match words.as_slice() {
        ["--help" | "-h"] | ["new", "--help" | "-h"] => return say(USAGE),
        ["new", name] => (*name, "python"),
        ["new", name, "--lang", language] | ["new", "--lang", language, name] => (*name, *language),
        _ => {
            report::error(format_args!("This is not a use of pi extension.\n{USAGE}"));
            return BAD_USAGE;
        }
    };
    let Some(language) = LANGUAGES.iter().find(|known| known.name == language) else {
        let known: Vec<&str> = LANGUAGES.iter().map(|known| known.name).collect();
        report::error(format_args!("There is no template in {language}. Known: {}", known.join(", ")));
        return BAD_USAGE;
    };
    // The name is that of a program, a tool and a command.
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
        && name.len() <= 40;
    if !is_name || ["test", "src"].contains(&name) {
        report::error(format_args!(
            "{name} cannot be the name: a letter, then letters, digits, - and _, all small, at most 40"
        ));
        return BAD_USAGE;
    }
    match write(Path::new(name), name, language) {
        Ok(()) => say(&told(name, language)),
        Err(error) => {
            report::error(format_args!("{name}: could not be made: {error}"));
            exit::FAILED
        }
    }
}

fn told(name: &str, language: &Language) -> String {
    let mut text = format!("Made {name}/\n");
    let mut line = |what: &str, command: &str| {
        let _ = writeln!(text, "  {what:<9}{command}");
    };
    if !language.build.is_empty() {
        line("build", &format!("(cd {name} && {})", language.build));
    }
    line("test", &format!("(cd {name} && {})", language.test));
    line("try", &format!("pi -e ./{name}"));
    line("install", &format!("pi install ./{name}"));
    line("read", "pi docs extensions");
    text
}

/// Writes the files of an extension into the folder, which must not exist.
fn write(folder: &Path, name: &str, language: &Language) -> io::Result<()> {
    fs::create_dir(folder)?;
    let manifest = json!({"name": name, "command": language.command.replace("@NAME@", name)});
    let manifest = format!("{manifest:#}\n");
    let manifest = [("pi-extension.json", manifest.as_str(), false)];
    for (path, text, is_program) in language.files.iter().copied().chain(manifest) {
        let path = folder.join(path.replace("@NAME@", name));
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, text.replace("@NAME@", name))?;
        if is_program {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}
