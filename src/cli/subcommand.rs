//! The table of subcommands. Dispatch, `--help`, the manual, the man page and completions follow it.

use super::{
    agents, auth, bug, completion, config, docs, doctor, export, extension, extensions, jobs, man, mcp,
    package, resource, sandbox, sessions, undo, update,
};
use std::ffi::OsString;

/// A subcommand: one row of the table.
pub struct Subcommand {
    pub name: &'static str,
    /// The arguments, as `--help` shows them.
    pub arguments: &'static str,
    /// What the subcommand is for. Empty for another name of a subcommand, which is shown nowhere.
    pub about: &'static str,
    /// The words that may follow the name, for completions.
    pub words: fn() -> Vec<&'static str>,
    /// Takes the words after the name; returns the exit code.
    pub run: fn(&[OsString]) -> u8,
}

impl Subcommand {
    /// The name with its arguments, such as `docs [topic]`.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

type Words = fn() -> Vec<&'static str>;
type Run = fn(&[OsString]) -> u8;

const fn row(
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    words: Words,
    run: Run,
) -> Subcommand {
    Subcommand { name, arguments, about, words, run }
}

const fn alias(name: &'static str, run: Run) -> Subcommand {
    Subcommand { name, arguments: "", about: "", words: Vec::new, run }
}

#[rustfmt::skip]
const SUBCOMMANDS: &[Subcommand] = &[
    row("docs", "[topic]", "the manual", topics, docs::run),
    row("auth", "<command>", "sign in, keys", || vec!["login", "logout", "list", "check", "print-api-key", "print-bearer-token"], auth::run),
    row("config", "[command]", "settings, and what a session is configured by", || vec!["list", "get", "set", "unset", "path", "edit", "context"], config::run),
    row("skills", "[command]", "skills", || vec!["list", "check"], resource::skills),
    row("prompts", "[command]", "prompt templates", || vec!["list", "show"], resource::prompts),
    row("agents", "[command]", "definitions of agents, for helpers", || vec!["list", "show", "import"], agents::run),
    row("extension", "new <name>", "write an extension that works, with a test", || vec!["new", "--lang", "python", "node", "sh", "rust"], extension::run),
    row("extensions", "", "programs that extend pi, as they are loaded", || vec!["--json"], extensions::run),
    row("install", "<source>", "add a package: npm:name, git:host/owner/name", || vec!["--local", "--approve", "--no-approve", "--scripts", "--offline"], package::install),
    row("remove", "<source>", "take a package away", || vec!["--local", "--approve", "--no-approve"], package::remove),
    row("list", "", "the packages", || vec!["--approve", "--no-approve"], package::list),
    row("mcp", "<command>", "servers of tools (Model Context Protocol)", || vec!["add", "list", "login", "logout", "remove", "test"], mcp::run),
    row("jobs", "[command]", "background jobs that outlived their pi", || vec!["list", "tail", "stop", "send"], jobs::run),
    row("sessions", "<command>", "list, search, show, import, remove", || vec!["list", "search", "show", "rm", "prune", "export", "import"], sessions::run),
    row("export", "[session] [file]", "as a page, Markdown or JSON lines", || vec!["--format", "--all", "--redact", "--continue", "--session-dir"], export::run),
    row("undo", "[n] [--list]", "take back what tools did to files", || vec!["--list", "--to", "--dry-run", "--force", "--yes", "--session"], undo::run),
    row("sandbox", "-- <command>", "try a command in the sandbox", || vec!["--sandbox", "--sandbox-net", "--sandbox-write", "--"], sandbox::run),
    row("update", "[source]", "newer packages, or the newest catalogue of models", || vec!["--extensions", "--extension", "--models", "--all", "--scripts", "--offline"], update::run),
    row("doctor", "[--online]", "what works here, and what to do where it does not", || vec!["--online", "--json"], doctor::run),
    row("bug", "<file>", "a report without secrets, to go with a complaint", Vec::new, bug::run),
    row("completions", "<shell>", "completions for bash, zsh or fish", completion::shells, completion::run),
    row("man", "", "this help as a page for man(1)", Vec::new, man::run),
    alias("uninstall", package::remove),
];

/// The subcommand of this name, other names included.
pub fn find(name: &std::ffi::OsStr) -> Option<&'static Subcommand> {
    SUBCOMMANDS.iter().find(|row| name == row.name)
}

/// The subcommands that are shown.
pub fn all() -> impl Iterator<Item = &'static Subcommand> {
    SUBCOMMANDS.iter().filter(|row| !row.about.is_empty())
}

fn topics() -> Vec<&'static str> {
    crate::docs::PAGES.iter().map(|(topic, ..)| *topic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<_> = SUBCOMMANDS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SUBCOMMANDS.len());
    }
}
