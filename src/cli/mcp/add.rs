//! `pi mcp add` and `pi mcp remove`.

use super::{Known, Place, Words};
use crate::cli::say::say;
use crate::mcp::config::{self, Scope, edit};
use crate::mode::exit::FAILED;
use crate::mode::report;
use serde_json::{Map, Value};

/// Options of add for programs, and for servers over HTTP.
const STDIO: &[Known] = &[("--env", true), ("--cwd", true)];
const HTTP: &[Known] = &[
    ("--header", true),
    ("--bearer-token-env-var", true),
    ("--oauth-client-id", true),
    ("--oauth-client-secret", true),
    ("--oauth-callback-port", true),
    ("--oauth-client-name", true),
    ("--oauth-client-registration", true),
];
const ANY: &[Known] = &[("--url", true), ("--exposure", true), ("--description", true), ("--local", false)];

pub(super) fn add(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("add", args, &[STDIO, HTTP, ANY].concat(), 2)?;
    let url = words.value("--url");
    let (name, command) = match words.words.split_first() {
        Some((name, command)) if url.is_some() == command.is_empty() => (name, command),
        _ => {
            let usage = "pi mcp add <server> [options] -- <command> [args...], or with --url <url>";
            return Err(format!("add needs a name, and a command or an address: {usage}"));
        }
    };
    let (others, kind) =
        if url.is_some() { (STDIO, "programs") } else { (HTTP, "servers over HTTP (--url)") };
    if let Some((option, _)) = others.iter().find(|(option, _)| words.has(option)) {
        return Err(format!("{option} is for {kind} only"));
    }
    let mut entry = match url {
        Some(url) => http_entry(url, &words)?,
        None => stdio_entry(command, &words)?,
    };
    for (option, field) in [("--exposure", "exposure"), ("--description", "description")] {
        if let Some(value) = words.value(option) {
            entry.insert(field.to_owned(), value.into());
        }
    }
    config::check(name, &mut entry).map_err(|reason| format!("MCP server \"{name}\": {reason}"))?;
    let place = Place::find()?;
    let is_local = words.has("--local");
    let path = place.file(is_local);
    let replaced = edit::add(&path, name, entry)?;
    let scope = scope(is_local).name();
    let done = if replaced { "Replaced" } else { "Added" };
    let mut text = format!("{done} the {scope} MCP server \"{name}\" in {}\n", path.display());
    if is_local && !place.is_trusted {
        text.push_str(
            "The project is not trusted: its file is read once you have started pi here and trusted it\n",
        );
    }
    text.push_str("To see whether it works: pi mcp list\n");
    Ok(say(&text))
}

fn scope(is_local: bool) -> Scope {
    if is_local { Scope::Project } else { Scope::User }
}

fn stdio_entry(command: &[String], words: &Words) -> Result<Map<String, Value>, String> {
    let mut entry = Map::new();
    let (program, args) = command.split_first().ok_or("the command is missing")?;
    entry.insert("command".into(), program.as_str().into());
    if !args.is_empty() {
        entry.insert("args".into(), args.into());
    }
    insert_pairs(&mut entry, "env", pairs(words, "--env")?);
    if let Some(cwd) = words.value("--cwd") {
        entry.insert("cwd".into(), cwd.into());
    }
    Ok(entry)
}

fn http_entry(url: &str, words: &Words) -> Result<Map<String, Value>, String> {
    let mut entry = Map::new();
    entry.insert("url".into(), url.into());
    let mut headers = pairs(words, "--header")?;
    if let Some(variable) = words.value("--bearer-token-env-var") {
        headers.insert("Authorization".into(), format!("Bearer ${{{variable}}}").into());
    }
    insert_pairs(&mut entry, "headers", headers);
    let mut oauth = Map::new();
    for (option, field) in [
        ("--oauth-client-id", "clientId"),
        ("--oauth-client-secret", "clientSecret"),
        ("--oauth-client-name", "clientName"),
        ("--oauth-client-registration", "clientRegistration"),
    ] {
        if let Some(value) = words.value(option) {
            oauth.insert(field.to_owned(), value.into());
        }
    }
    if let Some(port) = words.value("--oauth-callback-port") {
        let number =
            port.parse::<u64>().map_err(|_| format!("--oauth-callback-port {port} is not a number"))?;
        oauth.insert("callbackPort".into(), number.into());
    }
    insert_pairs(&mut entry, "oauth", oauth);
    Ok(entry)
}

fn insert_pairs(entry: &mut Map<String, Value>, field: &str, pairs: Map<String, Value>) {
    if !pairs.is_empty() {
        entry.insert(field.to_owned(), pairs.into());
    }
}

fn pairs(words: &Words, option: &str) -> Result<Map<String, Value>, String> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Value::from(value))),
        _ => Err(format!("{option} takes KEY=VALUE, not \"{text}\"")),
    };
    words.values(option).iter().map(pair).collect()
}

pub(super) fn remove(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("remove", args, &[("--local", false)], usize::MAX)?;
    let [name] = words.words.as_slice() else {
        return Err("remove takes the name of one server: pi mcp remove <server> [-l]".into());
    };
    let place = Place::find()?;
    let is_local = words.has("--local");
    let (path, scope) = (place.file(is_local), scope(is_local));
    if edit::remove(&path, name)? {
        return Ok(say(&format!(
            "Removed the {} MCP server \"{name}\" from {}\n",
            scope.name(),
            path.display()
        )));
    }
    let all = config::load(place.dirs.agent(), Some(&place.cwd));
    let elsewhere = all.find(name).filter(|entry| entry.scope != scope).map(|entry| {
        let flag = if is_local { "without --local" } else { "with --local" };
        format!(". It stands in {}: try {flag}", entry.source.display())
    });
    let elsewhere = elsewhere.unwrap_or_default();
    report::error(format_args!(
        "There is no {} MCP server \"{name}\" in {}{elsewhere}",
        scope.name(),
        path.display()
    ));
    Ok(FAILED)
}
