//! The table of flags: names, values, help, and where each value goes.

use super::flags::{Args, Mode};
use crate::llm::model::ThinkingLevel;

/// One row of the table.
pub struct Flag {
    pub long: &'static str,
    /// Without the dash; may have several letters.
    pub short: Option<&'static str>,
    pub value: Value,
    pub help: &'static str,
    pub(super) set: Set,
}

/// Whether a flag takes a value, and what it is called in `--help`.
#[derive(Clone, Copy, PartialEq)]
pub enum Value {
    None,
    Required(&'static str),
    /// The next word, unless it looks like a flag or a file.
    Optional(&'static str),
}

pub(super) enum Set {
    Switch(fn(&mut Args) -> &mut bool),
    Text(fn(&mut Args) -> &mut Option<String>),
    /// Parts between commas.
    List(fn(&mut Args) -> &mut Option<Vec<String>>),
    With(fn(&mut Args, String) -> Result<(), String>),
    /// Concerns a part that this version does not have; setting it changes nothing.
    Nothing,
    /// Asks for a part that this version does not have.
    Absent,
}

impl Flag {
    /// Whether giving it is no error.
    pub fn is_accepted(&self) -> bool {
        !matches!(self.set, Set::Absent)
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

use Set::{Absent, List, Nothing, Switch, Text, With};
use Value::{None as No, Optional, Required};

#[rustfmt::skip]
pub const GROUPS: &[Group] = &[
    Group { title: "Run", flags: &[
        row("print", Some("p"), Optional("prompt"), Switch(|args| &mut args.print), "Answer on stdout, then exit"),
        row("mode", None, Required("text|json|rpc|acp"), With(set_mode), "Answer as text, events as JSON lines, commands on stdin (pi docs rpc), or an editor's agent (pi docs acp)"),
        row("json", None, No, With(|args, _| set_mode(args, "json".into())), "Short for --mode json"),
        row("cumulative-events", None, No, Switch(|args| &mut args.cumulative_events), "JSON events carry the whole message so far, as older clients expect"),
        row("ready", None, No, Switch(|args| &mut args.ready), "With --mode rpc: say so when commands can be sent"),
        row("output-schema", None, Required("file"), Text(|args| &mut args.output_schema), "End with one JSON value that satisfies the JSON schema in this file"),
        row("tui-mode", None, Required("mode"), With(set_tui_mode), "How the terminal is used: regular, or fullscreen with a scrollback of its own"),
        row("cwd", None, Required("dir"), Text(|args| &mut args.cwd), "Work in this folder"),
    ]},
    Group { title: "Model", flags: &[
        row("model", None, Required("pattern"), Text(|args| &mut args.model), "Model: id, provider/id or part of a name; :level sets the thinking level"),
        row("provider", None, Required("name"), Text(|args| &mut args.provider), "Look for --model at this provider only"),
        row("models", None, Required("patterns"), List(|args| &mut args.models), "Models to choose from: ids, names, globs, separated by commas"),
        row("api-key", None, Required("key"), Text(|args| &mut args.api_key), "Key for this run; never stored"),
        row("base-url", None, Required("url"), Text(|args| &mut args.base_url), "Send this run's requests to this server"),
        row("thinking", None, Required("level"), With(set_thinking), "off, minimal, low, medium, high, xhigh or max"),
        row("list-models", None, Optional("search"), With(set_list_models), "List the models that can be used, then exit"),
    ]},
    Group { title: "Session", flags: &[
        row("continue", Some("c"), No, Switch(|args| &mut args.continue_last), "Go on with the newest session of this folder"),
        row("resume", Some("r"), No, Switch(|args| &mut args.resume), "Choose one of this folder's sessions"),
        row("session", None, Required("path|id"), Text(|args| &mut args.session), "Open a session by file, id or beginning of an id"),
        row("fork", None, Required("path|id"), Text(|args| &mut args.fork), "Go on in a copy of a session, in this folder"),
        row("session-id", None, Required("id"), Text(|args| &mut args.session_id), "Open the session with this id, or make it"),
        row("session-dir", None, Required("dir"), Text(|args| &mut args.session_dir), "Keep sessions in this folder"),
        row("no-session", None, No, Switch(|args| &mut args.no_session), "Store nothing"),
        row("export", None, Required("file"), Text(|args| &mut args.export), "Write a session file as an HTML page (to the file named next), then exit"),
        row("name", Some("n"), Required("name"), With(set_name), "Name of the session"),
    ]},
    Group { title: "Tools", flags: &[
        row("tools", Some("t"), Required("list"), List(|args| &mut args.tools), "Use exactly these: read, bash, edit, write, grep, find, ls"),
        row("exclude-tools", Some("xt"), Required("list"), List(|args| &mut args.exclude_tools), "Take these away"),
        row("no-builtin-tools", Some("nbt"), No, Switch(|args| &mut args.no_builtin_tools), "Without the built-in tools"),
        row("no-tools", Some("nt"), No, Switch(|args| &mut args.no_tools), "Without any tool"),
    ]},
    Group { title: "Confinement", flags: &[
        row("read-only", None, No, Switch(|args| &mut args.read_only), "Only tools that change nothing, whatever --tools says"),
        row("ask-tools", None, Required("all|writes|list"), Text(|args| &mut args.ask_tools), "Ask before these tools run: all, those that may change something, or the named ones"),
        row("allow-tools", None, Required("list"), List(|args| &mut args.allow_tools), "Never ask about these"),
        row("sandbox", None, Required("mode"), With(set_sandbox), "What tools may write: off (all), workspace (this folder, temporary files) or read-only (nothing)"),
        row("sandbox-net", None, No, Switch(|args| &mut args.sandbox_net), "Let commands in the sandbox use the network"),
        row("sandbox-write", None, Required("dir"), With(add_writable), "Another folder that the workspace sandbox may write; may be given again"),
    ]},
    Group { title: "Limits", flags: &[
        row("max-turns", None, Required("n"), With(|args, text| count(&mut args.max_turns, "--max-turns", &text)), "End the run after so many answers to a prompt"),
        row("max-cost", None, Required("dollars"), With(|args, text| amount(&mut args.max_cost, "--max-cost", &text)), "End the run when its answers have cost so much"),
        row("max-tokens-total", None, Required("n"), With(|args, text| count(&mut args.max_tokens, "--max-tokens-total", &text)), "End the run when its answers have used so many tokens"),
        row("timeout", None, Required("seconds"), With(|args, text| amount(&mut args.timeout, "--timeout", &text)), "End the run of a prompt after so long"),
    ]},
    Group { title: "Prompt", flags: &[
        row("system-prompt", None, Required("text|file"), Text(|args| &mut args.system_prompt), "Replace the system prompt"),
        row("append-system-prompt", None, Required("text|file"), With(add_to_prompt), "Add to the system prompt; may be given again"),
        row("no-context-files", Some("nc"), No, Switch(|args| &mut args.no_context_files), "Do not read AGENTS.md and CLAUDE.md"),
    ]},
    Group { title: "Project and resources", flags: &[
        row("approve", Some("a"), No, With(|args, _| approve(args, true)), "Trust the project's .pi and .agents folders in this run"),
        row("no-approve", Some("na"), No, With(|args, _| approve(args, false)), "Do not use them in this run"),
        row("skill", None, Required("path"), With(add_skill), "A skill, or a folder of them; may be given again"),
        row("no-skills", Some("ns"), No, Switch(|args| &mut args.no_skills), "No skills but those of --skill"),
        row("prompt-template", None, Required("path"), With(add_template), "A prompt template, or a folder of them; may be given again"),
        row("no-prompt-templates", Some("np"), No, Switch(|args| &mut args.no_prompt_templates), "No prompt templates but those of --prompt-template"),
        row("theme", None, Required("path"), With(add_theme), "A theme, or a folder of them; may be given again"),
        row("no-themes", None, No, Switch(|args| &mut args.no_themes), "No themes but those of --theme and the built-in ones"),
        row("use-theme", None, Required("name"), Text(|args| &mut args.use_theme), "The theme of this run, as in the setting"),
    ]},
    Group { title: "Other", flags: &[
        row("offline", None, No, Nothing, "No network but the model's own (this is so anyway)"),
        row("verbose", None, No, Switch(|args| &mut args.verbose), "Say more on stderr"),
        row("help", Some("h"), No, Switch(|args| &mut args.help), "Show this help"),
        row("version", Some("v"), No, Switch(|args| &mut args.version), "Show the version"),
    ]},
    // Names of the reference for parts that this version does not have. Not in `--help`.
    Group { title: "", flags: &[
        row("no-extensions", Some("ne"), No, Nothing, ""),
        row("extension", Some("e"), Required("path"), Absent, ""),
    ]},
];

fn set_list_models(args: &mut Args, search: String) -> Result<(), String> {
    args.list_models = Some(search);
    Ok(())
}

fn add_to_prompt(args: &mut Args, text: String) -> Result<(), String> {
    args.append_system_prompt.push(text);
    Ok(())
}

fn approve(args: &mut Args, approve: bool) -> Result<(), String> {
    args.approve = Some(approve);
    Ok(())
}

fn add_skill(args: &mut Args, path: String) -> Result<(), String> {
    args.skills.push(path);
    Ok(())
}

fn add_template(args: &mut Args, path: String) -> Result<(), String> {
    args.prompt_templates.push(path);
    Ok(())
}

fn add_theme(args: &mut Args, path: String) -> Result<(), String> {
    args.themes.push(path);
    Ok(())
}

fn count(place: &mut Option<u64>, flag: &str, text: &str) -> Result<(), String> {
    let number = text.parse().ok().filter(|&number: &u64| number > 0);
    *place = Some(number.ok_or_else(|| format!("{flag} takes a whole number, 1 or more"))?);
    Ok(())
}

fn amount(place: &mut Option<f64>, flag: &str, text: &str) -> Result<(), String> {
    // A century, in seconds: what a clock can add.
    let number = text.parse().ok().filter(|number| (0.0..=3e9).contains(number) && *number > 0.0);
    *place = Some(number.ok_or_else(|| format!("{flag} takes a number, more than 0"))?);
    Ok(())
}

fn set_sandbox(args: &mut Args, mode: String) -> Result<(), String> {
    if !matches!(mode.as_str(), "off" | "read-only" | "workspace") {
        return Err(format!("Invalid sandbox \"{mode}\". Valid values: off, read-only, workspace"));
    }
    args.sandbox = Some(mode);
    Ok(())
}

fn add_writable(args: &mut Args, path: String) -> Result<(), String> {
    args.sandbox_write.push(path);
    Ok(())
}

fn set_mode(args: &mut Args, mode: String) -> Result<(), String> {
    args.mode = Some(match mode.as_str() {
        "text" => Mode::Text,
        "json" => Mode::Json,
        "rpc" => Mode::Rpc,
        "acp" => Mode::Acp,
        _ => {
            return Err(format!("Invalid mode \"{mode}\". Valid values: text, json, rpc, acp"));
        }
    });
    Ok(())
}

fn set_thinking(args: &mut Args, level: String) -> Result<(), String> {
    args.thinking = ThinkingLevel::parse(&level);
    if args.thinking.is_none() {
        let valid = ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
        args.warnings.push(format!("Invalid thinking level \"{level}\". Valid values: {valid}"));
    }
    Ok(())
}

fn set_tui_mode(args: &mut Args, mode: String) -> Result<(), String> {
    args.fullscreen = Some(match &*mode {
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
    args.name = Some(name.to_owned());
    Ok(())
}
