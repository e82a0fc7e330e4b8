//! The table of flags: names, values, help, and the field that each value sets.

use super::flags::{Args, Mode, list};
use super::sandbox;
use crate::llm::model::ThinkingLevel;
use crate::runtime::permission;
use crate::runtime::selection::Selection;
use std::time::Duration;

/// A flag: one row of the table.
pub struct Flag {
    pub long: &'static str,
    /// The short name without its dash. It may have several letters.
    pub short: Option<&'static str>,
    pub value: Value,
    pub help: &'static str,
    pub(super) set: Set,
}

/// The value of a flag, with its name in `--help`.
#[derive(Clone, Copy, PartialEq)]
pub enum Value {
    None,
    Required(&'static str),
    /// The next word, unless it looks like a flag or an `@file`.
    Optional(&'static str),
}

pub(super) enum Set {
    Switch(fn(&mut Args) -> &mut bool),
    Text(fn(&mut Args) -> &mut Option<String>),
    /// Sets a list, whose items are separated by commas.
    List(fn(&mut Args) -> &mut Option<Vec<String>>),
    /// Adds a value to those of earlier flags.
    Push(fn(&mut Args) -> &mut Vec<String>),
    With(fn(&mut Args, String) -> Result<(), String>),
}

impl Flag {
    /// The names with the value, such as `--model <pattern>` or `--print, -p [prompt]`.
    pub fn usage(&self) -> String {
        let short = self.short.map(|short| format!(", -{short}")).unwrap_or_default();
        let value = match self.value {
            Value::None => String::new(),
            Value::Required(value) => format!(" <{value}>"),
            Value::Optional(value) => format!(" [{value}]"),
        };
        format!("--{}{short}{value}", self.long)
    }
}

pub struct Group {
    pub title: &'static str,
    pub flags: &'static [Flag],
}

type Short = Option<&'static str>;

const fn row(long: &'static str, short: Short, value: Value, set: Set, help: &'static str) -> Flag {
    Flag { long, short, value, help, set }
}

use Set::{List, Push, Switch, Text, With};
use Value::{None as No, Optional, Required};

#[rustfmt::skip]
pub const GROUPS: &[Group] = &[
    Group { title: "Run", flags: &[
        row("print", Some("p"), Optional("prompt"), Switch(|args| &mut args.run.print), "Answer on stdout, then exit"),
        row("mode", None, Required("text|json|rpc|acp|mcp"), With(set_mode), "Answer as text, events as JSON lines, commands on stdin (pi docs rpc), an editor's agent (pi docs acp), or a server of tools (pi docs mcp-server)"),
        row("json", None, No, With(|args, _| set_mode(args, "json".into())), "Short for --mode json"),
        row("cumulative-events", None, No, Switch(|args| &mut args.run.cumulative_events), "JSON events carry the whole message so far, as older clients expect"),
        row("ready", None, No, Switch(|args| &mut args.run.ready), "With --mode rpc: say so when commands can be sent"),
        row("listen", None, Required("address"), Text(|args| &mut args.run.listen), "With --mode mcp: serve HTTP at 127.0.0.1:PORT or unix:PATH in place of stdin and stdout"),
        row("output-schema", None, Required("file"), Text(|args| &mut args.run.output_schema), "End with one JSON value that satisfies the JSON schema in this file"),
        row("tui-mode", None, Required("regular|fullscreen"), With(set_tui_mode), "How the terminal is used; fullscreen has a scrollback of its own"),
        row("cwd", None, Required("dir"), Text(|args| &mut args.session.cwd), "Work in this folder"),
    ]},
    Group { title: "Model", flags: &[
        row("model", None, Required("pattern"), Text(|args| &mut args.over.model.model), "Model: id, provider/id or part of a name; :level sets the thinking level"),
        row("provider", None, Required("name"), Text(|args| &mut args.over.model.provider), "Look for --model at this provider only"),
        row("models", None, Required("patterns"), List(|args| &mut args.over.model.models), "Models to choose from: ids, names, globs, separated by commas"),
        row("api-key", None, Required("key"), Text(|args| &mut args.over.model.api_key), "Key for this run; never stored"),
        row("base-url", None, Required("url"), Text(|args| &mut args.over.model.base_url), "Send this run's requests to this server"),
        row("thinking", None, Required("off|minimal|low|medium|high|xhigh|max"), With(set_thinking), "How long the model thinks before it answers"),
        row("list-models", None, Optional("search"), With(|args, search| put(&mut args.run.list_models, Some(search))), "List the models that can be used, then exit"),
    ]},
    Group { title: "Session", flags: &[
        row("continue", Some("c"), No, Switch(|args| &mut args.session.continue_last), "Go on with the newest session of this folder"),
        row("resume", Some("r"), No, Switch(|args| &mut args.session.resume), "Choose one of this folder's sessions"),
        row("session", None, Required("path|id"), Text(|args| &mut args.session.session), "Open a session by file, id or beginning of an id"),
        row("fork", None, Required("path|id"), Text(|args| &mut args.session.fork), "Go on in a copy of a session, in this folder"),
        row("session-id", None, Required("id"), Text(|args| &mut args.session.session_id), "Open the session with this id, or make it"),
        row("parent-session", None, Required("file"), Text(|args| &mut args.session.parent_session), "Name this session file as the origin of the new session"),
        row("session-dir", None, Required("dir"), Text(|args| &mut args.session.session_dir), "Keep sessions in this folder"),
        row("no-session", None, No, Switch(|args| &mut args.session.no_session), "Store nothing"),
        row("export", None, Required("file"), Text(|args| &mut args.run.export), "Write a session file as an HTML page (to the file named next), then exit"),
        row("name", Some("n"), Required("name"), With(set_name), "Name of the session"),
    ]},
    Group { title: "Tools", flags: &[
        row("tools", Some("t"), Required("list"), With(set_tools), "Use exactly these, by name or pattern (*): read, bash, edit, write, grep, find, ls, task, todo, ask; or change the default ones: +grep,-write"),
        row("exclude-tools", Some("xt"), Required("list"), With(|args, text| put(&mut args.over.tools.excluded, list(&text))), "Take these away, by name or pattern (*)"),
        row("no-builtin-tools", Some("nbt"), No, Switch(|args| &mut args.over.tools.no_builtin), "Without the built-in tools"),
        row("no-tools", Some("nt"), No, Switch(|args| &mut args.over.tools.none), "Without any tool"),
        row("keep-jobs", None, No, Switch(|args| &mut args.run.keep_jobs), "Background jobs outlive pi (pi docs jobs)"),
        row("no-mcp", None, No, Switch(|args| &mut args.run.no_mcp), "Without MCP servers"),
    ]},
    Group { title: "Confinement", flags: &[
        row("plan", None, No, Switch(|args| &mut args.run.plan), "Begin in plan mode: look around, change nothing, propose a plan (pi docs plan)"),
        row("yes", None, No, Switch(|args| &mut args.run.yes), "With --plan: accept the plan and carry it out"),
        row("read-only", None, No, Switch(|args| &mut args.over.tools.read_only), "Only tools that change nothing, whatever --tools says"),
        row("ask-tools", None, Required("all|writes|list"), With(|args, text| put(&mut args.over.approval.mode, Some(permission::Mode::parse(&text)))), "Ask before these tools run: all, those that may change something, or the named ones (pi docs permissions)"),
        row("allow-tools", None, Required("list"), With(|args, text| put(&mut args.over.approval.allowed, list(&text))), "Do not ask about these"),
        row("sandbox", None, Required("off|workspace|read-only"), With(set_sandbox), "What tools may write: all, this folder and temporary files, or nothing"),
        row("sandbox-net", None, No, Switch(|args| &mut args.over.sandbox.network), "Let commands in the sandbox use the network"),
        row("sandbox-write", None, Required("dir"), Push(|args| &mut args.over.sandbox.writable), "Another folder that the workspace sandbox may write; may be given again"),
    ]},
    Group { title: "Limits", flags: &[
        row("max-turns", None, Required("n"), With(|args, text| count(&mut args.over.limits.turns, "--max-turns", &text)), "End the run after so many answers to a prompt"),
        row("max-cost", None, Required("dollars"), With(|args, text| amount(&mut args.over.limits.cost, "--max-cost", &text)), "End the run when its answers have cost so much"),
        row("max-tokens-total", None, Required("n"), With(|args, text| count(&mut args.over.limits.tokens, "--max-tokens-total", &text)), "End the run when its answers have used so many tokens"),
        row("timeout", None, Required("seconds"), With(set_timeout), "End the run of a prompt after so long"),
    ]},
    Group { title: "Prompt", flags: &[
        row("system-prompt", None, Required("text|file"), Text(|args| &mut args.over.resources.system_prompt), "Replace the system prompt"),
        row("append-system-prompt", None, Required("text|file"), Push(|args| &mut args.over.resources.append_system_prompt), "Add to the system prompt; may be given again"),
        row("no-context-files", Some("nc"), No, Switch(|args| &mut args.over.resources.no_context_files), "Do not read AGENTS.md and CLAUDE.md"),
    ]},
    Group { title: "Project and resources", flags: &[
        row("approve", Some("a"), No, With(|args, _| put(&mut args.approve, Some(true))), "Trust the project's .pi and .agents folders in this run"),
        row("approve-state", None, Required("hash"), Text(|args| &mut args.agreed_state), "Trust them in this state only (helpers are started so)"),
        row("no-approve", Some("na"), No, With(|args, _| put(&mut args.approve, Some(false))), "Do not use them in this run"),
        row("extension", Some("e"), Required("source"), With(extension), "A program that extends pi, or a package of them: a path, npm:name or git:host/owner/name; may be given again (pi docs extensions)"),
        row("no-extensions", Some("ne"), No, Switch(|args| &mut args.over.resources.no_extensions), "No extensions but those of --extension"),
        row("skill", None, Required("path"), Push(|args| &mut args.over.resources.skills), "A skill, or a folder of them; may be given again"),
        row("no-skills", Some("ns"), No, Switch(|args| &mut args.over.resources.no_skills), "No skills but those of --skill"),
        row("prompt-template", None, Required("path"), Push(|args| &mut args.over.resources.prompt_templates), "A prompt template, or a folder of them; may be given again"),
        row("no-prompt-templates", Some("np"), No, Switch(|args| &mut args.over.resources.no_prompt_templates), "No prompt templates but those of --prompt-template"),
        row("theme", None, Required("path"), Push(|args| &mut args.over.resources.themes), "A theme, or a folder of them; may be given again"),
        row("no-themes", None, No, Switch(|args| &mut args.over.resources.no_themes), "No themes but those of --theme and the built-in ones"),
        row("use-theme", None, Required("name"), Text(|args| &mut args.over.resources.use_theme), "The theme of this run, as in the setting"),
    ]},
    Group { title: "Other", flags: &[
        row("offline", None, No, Switch(|args| &mut args.run.offline), "No network but the model's own: packages of --extension are used as they are"),
        row("verbose", None, No, Switch(|args| &mut args.run.verbose), "Say more on stderr"),
        row("help", Some("h"), No, Switch(|args| &mut args.run.help), "Show this help"),
        row("version", Some("v"), No, Switch(|args| &mut args.run.version), "Show the version"),
    ]},
];

/// The flags that `--help` shows.
pub fn shown() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().filter(|group| !group.title.is_empty()).flat_map(|group| group.flags)
}

fn put<T>(field: &mut T, value: T) -> Result<(), String> {
    *field = value;
    Ok(())
}

fn set_tools(args: &mut Args, text: String) -> Result<(), String> {
    let selection = Selection::parse(list(&text)).map_err(|why| format!("--tools: {why}"))?;
    put(&mut args.over.tools.selection, Some(selection))
}

/// Handles the name of a part of the program that other programs know as a built-in extension.
fn extension(args: &mut Args, source: String) -> Result<(), String> {
    match source.strip_prefix("builtin:") {
        Some(name @ ("llama.cpp" | "mcp" | "tool-search" | "codemode")) => {
            args.run.builtins.push(name.to_owned());
            Ok(())
        }
        Some(_) => Err(format!("Unknown built-in extension: {source}")),
        None => {
            args.over.resources.extensions.push(source);
            Ok(())
        }
    }
}

fn count(place: &mut Option<u64>, flag: &str, text: &str) -> Result<(), String> {
    let number = text.parse().ok().filter(|&number: &u64| number > 0);
    *place = Some(number.ok_or_else(|| format!("{flag} takes a whole number, 1 or more"))?);
    Ok(())
}

fn amount(place: &mut Option<f64>, flag: &str, text: &str) -> Result<(), String> {
    // A century in seconds, which clock arithmetic can represent.
    let number = text.parse().ok().filter(|number| (0.0..=3e9).contains(number) && *number > 0.0);
    *place = Some(number.ok_or_else(|| format!("{flag} takes a number, more than 0"))?);
    Ok(())
}

fn set_timeout(args: &mut Args, text: String) -> Result<(), String> {
    let mut seconds = None;
    amount(&mut seconds, "--timeout", &text)?;
    args.over.limits.time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(())
}

fn set_sandbox(args: &mut Args, mode: String) -> Result<(), String> {
    sandbox::mode(&mode)?;
    put(&mut args.over.sandbox.mode, Some(mode))
}

fn set_mode(args: &mut Args, mode: String) -> Result<(), String> {
    args.run.mode = Some(match mode.as_str() {
        "text" => Mode::Text,
        "json" => Mode::Json,
        "rpc" => Mode::Rpc,
        "acp" => Mode::Acp,
        "mcp" => Mode::Mcp,
        "jobs" => Mode::Jobs,
        _ => {
            return Err(format!("Invalid mode \"{mode}\". Valid values: text, json, rpc, acp, mcp"));
        }
    });
    Ok(())
}

fn set_thinking(args: &mut Args, level: String) -> Result<(), String> {
    args.over.model.thinking = ThinkingLevel::parse(&level);
    if args.over.model.thinking.is_none() {
        let valid = ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
        args.warnings.push(format!("Invalid thinking level \"{level}\". Valid values: {valid}"));
    }
    Ok(())
}

fn set_tui_mode(args: &mut Args, mode: String) -> Result<(), String> {
    args.run.fullscreen = Some(match &*mode {
        "regular" => false,
        "fullscreen" => true,
        _ => {
            return Err(format!("Invalid TUI mode \"{mode}\". Valid values: regular, fullscreen"));
        }
    });
    Ok(())
}

fn set_name(args: &mut Args, name: String) -> Result<(), String> {
    let name = name.trim();
    if name.is_empty() {
        return Err("--name requires a non-empty value".into());
    }
    args.session.name = Some(name.to_owned());
    Ok(())
}
