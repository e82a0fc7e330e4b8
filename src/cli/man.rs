//! `pi man`: a page for man(1), made from the tables of flags and subcommands and from tables of the manual.

use super::help;
use super::say::{BAD_USAGE, say};
use super::subcommand;
use super::table::GROUPS;
use crate::docs;
use crate::mode::report;
use std::ffi::OsString;
use std::fmt::Write;

/// Runs `pi man`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    if !words.is_empty() {
        report::error("pi man takes no arguments.\nTo send such words to a model: pi -- WORDS");
        return BAD_USAGE;
    }
    say(&page())
}

fn page() -> String {
    let mut text = format!(
        ".TH PI 1 \"\" \"pi {}\"\n\
         .SH NAME\n\
         pi \\- {}\n\
         .SH SYNOPSIS\n\
         .B pi\n\
         [options] [\\-\\-] [@files...] [messages...]\n",
        env!("CARGO_PKG_VERSION"),
        roff(help::ABOUT)
    );
    for row in subcommand::all() {
        let _ = write!(text, ".br\n.B pi {}\n{}\n", row.name, roff(row.arguments));
    }
    let _ = write!(text, ".SH DESCRIPTION\n{}\n.SH COMMANDS\n", roff(help::DESCRIPTION));
    for row in subcommand::all() {
        item(&mut text, &format!("pi {}", row.usage()), row.about);
    }
    text.push_str(".SH OPTIONS\n");
    for group in GROUPS.iter().filter(|group| !group.title.is_empty()) {
        let _ = writeln!(text, ".SS {}", roff(group.title));
        for flag in group.flags {
            item(&mut text, &flag.usage(), flag.help);
        }
    }
    let cli = docs::page("cli").unwrap_or_default();
    for (title, heading) in [("EXIT STATUS", "Exit codes"), ("ENVIRONMENT", "Environment")] {
        let _ = writeln!(text, ".SH {title}");
        for (name, about) in rows(&cli, heading) {
            item(&mut text, name, about);
        }
    }
    text.push_str(".SH SEE ALSO\n.B pi docs\nprints the whole manual; it needs no network.\n");
    text
}

/// Adds a tagged paragraph.
fn item(text: &mut String, tag: &str, about: &str) {
    let _ = write!(text, ".TP\n.B {}\n{}\n", roff(tag), roff(about));
}

/// Returns the first two cells of each row of the table below a heading, without the table's head.
fn rows<'a>(page: &'a str, heading: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let section = page.split("\n## ").find(|section| section.lines().next() == Some(heading));
    let lines = section.unwrap_or_default().lines().filter(|line| line.starts_with("| ")).skip(1);
    lines.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        cells.next().zip(cells.next())
    })
}

/// Escapes text for roff, and removes Markdown's code marks.
fn roff(text: &str) -> String {
    let text = text.replace('`', "").replace('\\', r"\e").replace('-', r"\-");
    match text.starts_with(['.', '\'']) {
        true => format!(r"\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_read_as_a_request() {
        for (text, expected) in
            [("a-b", r"a\-b"), (".pi", r"\&.pi"), ("'x", r"\&'x"), (r"a\b", r"a\eb"), ("`A`, B", "A, B")]
        {
            assert_eq!(roff(text), expected);
        }
    }

    #[test]
    fn tables_of_the_manual_are_in_the_page() {
        let page = page();
        for part in
            ["\n.B PI_CODING_AGENT_DIR\n", "\n.B 141\n", "\n.B pi docs [topic]\n", "\n.B \\-\\-offline\n"]
        {
            assert!(page.contains(part), "{part}");
        }
    }
}
