//! `pi docs [topic]`: prints the manual, completed from tables of the code.
//!
//! `pi docs schema NAME` is a JSON Schema; `pi docs rpc --schema` is `pi docs schema rpc`.

use super::subcommand;
use super::table::GROUPS;
use crate::auth::provider;
use crate::docs;
use crate::mode::{interactive, report};
use crate::resources::settings::table::{self, Preset};
use crate::wire;
use std::ffi::OsString;
use std::fmt::Write;

/// Prints the table of contents, or a page. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    match words {
        [] => super::say::say(&docs::contents()),
        [topic, names @ ..] if topic == "schema" => super::schema::run(names),
        [topic] => match topic.to_str().and_then(page) {
            Some(page) => super::say::say(&page),
            None => {
                report::error(format_args!(
                    "There is no page on \"{}\".\n\n{}",
                    topic.to_string_lossy(),
                    docs::contents()
                ));
                crate::cli::say::BAD_USAGE
            }
        },
        [topic, flag] if topic == "rpc" && flag == "--schema" => super::schema::run(&["rpc".into()]),
        _ => {
            report::error(format_args!("pi docs takes one topic.\n\n{}", docs::contents()));
            crate::cli::say::BAD_USAGE
        }
    }
}

fn page(topic: &str) -> Option<String> {
    let page = docs::page(topic)?;
    Some(
        page.replace("{{subcommands}}", subcommands().trim_end())
            .replace("{{flags}}", flags().trim_end())
            .replace("{{providers}}", providers().trim_end())
            .replace("{{protocols}}", &protocols())
            .replace("{{settings}}", settings().trim_end())
            .replace("{{commands}}", commands().trim_end())
            .replace("{{theme-colors}}", &theme_colors())
            .replace("{{keys}}", interactive::keys().trim_end()),
    )
}

fn subcommands() -> String {
    let rows = subcommand::all().map(|row| format!("    pi {:<25}{}\n", row.usage(), row.about));
    rows.collect()
}

fn flags() -> String {
    let mut text = String::new();
    for group in GROUPS {
        let _ = write!(text, "## {}\n\n| flag | meaning |\n|---|---|\n", group.title);
        for flag in group.flags {
            let _ = writeln!(text, "| `{}` | {} |", cell(&flag.usage()), cell(flag.help));
        }
        text.push('\n');
    }
    text
}

fn commands() -> String {
    let mut text = String::from("| command | does |\n|---|---|\n");
    for (name, hint, about) in interactive::commands() {
        let hint = hint.map_or_else(String::new, |hint| format!(" {hint}"));
        let _ = writeln!(text, "| `/{name}{}` | {} |", cell(&hint), cell(about));
    }
    text
}

fn theme_colors() -> String {
    let color = |(name, fallback): (&str, Option<&str>)| match fallback {
        Some(fallback) => format!("`{name}` (else as `{fallback}`)"),
        None => format!("`{name}`"),
    };
    let colors: Vec<String> = interactive::theme_colors().map(color).collect();
    format!("{}.", colors.join(", "))
}

fn protocols() -> String {
    let names = wire::names().filter(|name| *name != "faux");
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn settings() -> String {
    let mut text = String::new();
    for group in table::GROUPS {
        let _ =
            write!(text, "## {}\n\n| key | value | default | meaning |\n|---|---|---|---|\n", group.title);
        for key in group.keys {
            let preset = match key.preset {
                Preset::Told(words) => words.to_owned(),
                preset => format!("`{}`", preset.value().unwrap_or_default()),
            };
            let mark = if key.is_global { " *" } else { "" };
            let _ = writeln!(
                text,
                "| `{}`{mark} | {} | {} | {} |",
                key.path,
                cell(&key.form.describe()),
                cell(&preset),
                cell(key.help)
            );
        }
        text.push('\n');
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn providers() -> String {
    let mut text =
        String::from("| provider | name | key | also needed | also looked at |\n|---|---|---|---|---|\n");
    let names = |names: &[&str]| {
        let each = names.iter().map(|name| format!("`{}`", name.replace('|', "` or `")));
        each.collect::<Vec<_>>().join(", ")
    };
    for provider in provider::PROVIDERS {
        let (keys, required, optional) =
            (names(provider.keys), names(provider.required), names(provider.optional));
        let _ =
            writeln!(text, "| `{}` | {} | {keys} | {required} | {optional} |", provider.id, provider.name);
    }
    text
}
