//! `pi mcp import`: servers that other programs have configured, read when asked.

use super::{Place, Words, toml};
use crate::base::file;
use crate::cli::say::say_plain;
use crate::mcp::config::{self, edit};
use crate::mode::exit::{DONE, FAILED};
use crate::models::jsonc;
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

const BYTES_MAX: u64 = 16 << 20;

/// Where a program keeps its servers: `~` is the home folder, `.` the current one.
const SOURCES: &[(&str, &[&str])] = &[
    ("project", &["./.mcp.json"]),
    ("claude", &["~/.claude.json"]),
    (
        "claude-desktop",
        &[
            "~/.config/Claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
        ],
    ),
    ("cursor", &["./.cursor/mcp.json", "~/.cursor/mcp.json"]),
    (
        "vscode",
        &[
            "./.vscode/mcp.json",
            "~/.config/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
        ],
    ),
    ("codex", &["~/.codex/config.toml", "./.codex/config.toml"]),
];

pub(super) fn import(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("import", args, &[("--local", false), ("--force", false)], usize::MAX)?;
    let place = Place::find()?;
    match words.words.as_slice() {
        [] => Ok(say_plain(&listed(&place))),
        [source] => {
            let files = files(&place, source);
            let found: Vec<PathBuf> = files.iter().filter(|file| file.exists()).cloned().collect();
            if found.is_empty() {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                let known: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "There is no {}. Import takes a file, or one of {}",
                    names.join(" and no "),
                    known.join(", ")
                ));
            }
            take(&place, &found, words.has("--local"), words.has("--force"))
        }
        _ => Err("import takes one file or program: pi mcp import [file|program] [-l] [--force]".into()),
    }
}

/// The files that a program, or a path, stands for.
fn files(place: &Place, source: &str) -> Vec<PathBuf> {
    let known = SOURCES.iter().find(|(name, _)| *name == source);
    let path = |text: &&str| match (text.strip_prefix("~/"), place.dirs.home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => place.cwd.join(text.trim_start_matches("./")),
    };
    known.map_or_else(|| vec![place.cwd.join(source)], |(_, files)| files.iter().map(path).collect())
}

fn listed(place: &Place) -> String {
    let mut text = String::new();
    for (source, _) in SOURCES {
        for file in files(place, source).iter().filter(|file| file.exists()) {
            let about = match read(file, &place.cwd) {
                Ok(servers) if servers.is_empty() => "no servers".to_owned(),
                Ok(servers) => servers.keys().cloned().collect::<Vec<_>>().join(", "),
                Err(error) => error,
            };
            text.push_str(&format!("{source}: {}\n  {about}\n", file.display()));
        }
    }
    match text.is_empty() {
        true => "No other program's servers were found here. To read a file: pi mcp import FILE\n".to_owned(),
        false => format!("{text}To take them: pi mcp import NAME\n"),
    }
}

/// Adds the servers of files, those with a new name, or all with `force`.
fn take(place: &Place, files: &[PathBuf], is_local: bool, force: bool) -> Result<u8, String> {
    let target = place.file(is_local);
    let known = config::load(place.dirs.agent(), Some(&place.cwd));
    let (mut text, mut code) = (String::new(), DONE);
    for file in files {
        for (name, value) in read(file, &place.cwd)? {
            let name: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' })
                .collect();
            if known.find(&name).is_some() && !force {
                text.push_str(&format!("{name}: there is one of this name; --force replaces it\n"));
                continue;
            }
            let (mut entry, notes) = convert(&value);
            let added = config::check(&name, &mut entry)
                .map_err(|reason| format!("was not taken: {reason}"))
                .and_then(|()| edit::add(&target, &name, entry));
            match added {
                Ok(_) => text.push_str(&format!("{name}: added to {}\n", target.display())),
                Err(reason) => {
                    code = FAILED;
                    text.push_str(&format!("{name}: {reason}\n"));
                }
            }
            notes.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
        }
    }
    if text.is_empty() {
        text.push_str("There are no servers in it\n");
    }
    let said = say_plain(&text);
    Ok(if said == DONE { code } else { said })
}

/// The servers of a file, by name.
fn read(path: &Path, cwd: &Path) -> Result<Map<String, Value>, String> {
    let bytes =
        file::read(path, BYTES_MAX).map_err(|error: io::Error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut fields = match path.extension().is_some_and(|extension| extension == "toml") {
        true => toml::read(text).map_err(|error| wrong(&error))?,
        false => match serde_json::from_str(&jsonc::strip(text)).map_err(|error| wrong(&error))? {
            Value::Object(fields) => fields,
            _ => return Err(wrong(&"it is no object")),
        },
    };
    // Claude Code keeps servers of a project beside those of the user.
    let own = fields
        .get("projects")
        .and_then(|all| all.get(&*cwd.to_string_lossy())?.get("mcpServers")?.as_object());
    let mut servers = own.cloned().unwrap_or_default();
    for name in ["mcpServers", "servers", "mcp_servers", "mcp"] {
        if let Some(Value::Object(more)) = fields.get_mut(name).map(Value::take) {
            servers.extend(more);
        }
    }
    Ok(servers)
}

/// An entry of another program as one of pi's, and what the user should know.
fn convert(value: &Value) -> (Map<String, Value>, Vec<String>) {
    let (mut entry, mut notes) = (Map::new(), Vec::new());
    for (name, value) in value.as_object().into_iter().flatten() {
        let value = replaced(value, &mut notes);
        match (name.as_str(), &value) {
            ("command", Value::Array(words)) => {
                let mut words = words.iter().cloned();
                entry.insert("command".into(), words.next().unwrap_or_default());
                entry.insert("args".into(), words.collect());
            }
            ("type", Value::String(kind)) => {
                if matches!(kind.as_str(), "stdio" | "http" | "sse" | "streamable-http") {
                    entry.insert(name.clone(), value);
                }
            }
            ("command" | "args" | "env" | "cwd" | "url" | "headers" | "oauth" | "description", _) => {
                entry.insert(name.clone(), value);
            }
            ("environment", _) => drop(entry.insert("env".into(), value)),
            ("http_headers", _) => add_headers(&mut entry, &value, &|text| text.to_owned()),
            ("env_http_headers", _) => add_headers(&mut entry, &value, &|text| format!("${{{text}}}")),
            ("bearer_token_env_var", Value::String(variable)) => {
                let bearer = Value::from(format!("Bearer ${{{variable}}}"));
                let headers = entry.entry("headers").or_insert_with(|| Value::Object(Map::new()));
                headers["Authorization"] = bearer;
            }
            ("tool_timeout_sec", _) => drop(entry.insert("timeout".into(), value)),
            ("disabled", Value::Bool(true)) | ("enabled", Value::Bool(false)) => {
                entry.insert("enabled".into(), false.into());
            }
            ("disabled" | "enabled", _) => {}
            _ => notes.push(format!("\"{name}\" was left out: pi has no such field")),
        }
    }
    (entry, notes)
}

fn add_headers(entry: &mut Map<String, Value>, pairs: &Value, form: &dyn Fn(&str) -> String) {
    let headers = entry.entry("headers").or_insert_with(|| Value::Object(Map::new()));
    for (name, value) in pairs.as_object().into_iter().flatten() {
        headers[name.as_str()] = form(value.as_str().unwrap_or_default()).into();
    }
}

/// A value with other programs' placeholders as pi's.
fn replaced(value: &Value, notes: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => placeholders(text, notes).into(),
        Value::Array(items) => items.iter().map(|item| replaced(item, notes)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), replaced(value, notes)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn placeholders(text: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (before, is_shell) = match before.strip_suffix('$') {
            Some(before) => (before, true),
            None => (before, false),
        };
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push_str(if is_shell { "${" } else { "{" });
            rest = after;
            continue;
        };
        rest = after;
        match (name.split_once(':'), is_shell) {
            (Some(("env", variable)), _) => out.push_str(&format!("${{{variable}}}")),
            (Some(("input", input)), true) => {
                let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
                let variable: String = input.chars().map(plain).collect();
                notes.push(format!("set the variable {variable}: the other program asks for it"));
                out.push_str(&format!("${{{variable}}}"));
            }
            _ if is_shell && name == "workspaceFolder" => out.push('.'),
            _ if is_shell && name == "userHome" => out.push('~'),
            (_, true) => out.push_str(&format!("${{{name}}}")),
            (_, false) => out.push_str(&format!("{{{name}}}")),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn entries_of_other_programs_become_ours() {
        for (value, expected, notes) in [
            (
                json!({"command": "npx", "args": ["-y", "${workspaceFolder}/x"], "env": {"K": "${input:api-key}"}}),
                json!({"command": "npx", "args": ["-y", "./x"], "env": {"K": "${API_KEY}"}}),
                1,
            ),
            (
                json!({"type": "local", "command": ["bun", "x"], "environment": {"A": "{env:B}"}, "enabled": true}),
                json!({"command": "bun", "args": ["x"], "env": {"A": "${B}"}}),
                0,
            ),
            (
                json!({"url": "https://a", "bearer_token_env_var": "T", "http_headers": {"X": "1"},
                    "env_http_headers": {"Y": "V"}, "tool_timeout_sec": 9, "enabled": false, "startup": 1}),
                json!({"url": "https://a", "headers": {"Authorization": "Bearer ${T}", "X": "1", "Y": "${V}"},
                    "timeout": 9, "enabled": false}),
                1,
            ),
            (json!({"command": "a {b} ${c} {"}), json!({"command": "a {b} ${c} {"}), 0),
        ] {
            let (entry, said) = convert(&value);
            assert_eq!((Value::from(entry), said.len()), (expected, notes), "{value}");
        }
    }
}
