//! The command line of a helper: what its agent asks for, within what binds its session.

use super::process::Helper;
use super::r#yield;
use crate::resources::agent::{Agent, tools_of};
use crate::runtime::Scoped;
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use crate::tools::process::{lifeline, set_apart};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Name of a model in an agent's head that is quick and costs little.
const FAST: &str = "fast";

/// Small models, by provider.
const FAST_MODELS: [(&str, &str); 3] =
    [("anthropic", "claude-haiku-5-5"), ("google", "gemini-3.8-flash"), ("openai", "gpt-5.4-mini")];

/// Makes the command of a helper, and notes for its report. `folder` keeps its session; without one nothing is stored.
pub fn command(
    helper: &Helper<'_>,
    folder: Option<&Path>,
    turns_max: u64,
) -> io::Result<(Command, Vec<String>)> {
    let mut notes = Vec::new();
    let words = words(helper, folder, turns_max, &mut notes).map_err(io::Error::other)?;
    let mut command = Command::new(lifeline::program()?);
    command.arg0("pi").args(words).current_dir(helper.cwd);
    // The session looks at what its helpers change.
    command.env("PI_CODING_AGENT", "true");
    set_apart(&mut command);
    Ok((command, notes))
}

/// The pattern for the name of a model in an agent's head. `fast` stands for the model of the setting, otherwise for a
/// small one of the session's provider, if one is known.
fn pattern(control: &Control, config: &Config, name: &str) -> Option<String> {
    if name != FAST {
        return Some(name.to_owned());
    }
    if let Some(pattern) = config.settings.text("helpers.fastModel") {
        return Some(pattern.to_owned());
    }
    let provider = &control.models().current().provider;
    // Another address may not have the models of the provider.
    let known = FAST_MODELS.iter().find(|(of, _)| of == provider && config.over.model.base_url.is_none());
    known.map(|(provider, model)| format!("{provider}/{model}"))
}

/// Returns the first model of an agent's head that can be used.
pub fn model(control: &Control, config: &Config, agent: &Agent) -> Option<Scoped> {
    let patterns: Vec<String> = agent.models.iter().flat_map(|name| pattern(control, config, name)).collect();
    control.models().first_of(&patterns)
}

fn words(
    helper: &Helper<'_>,
    folder: Option<&Path>,
    turns_max: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<OsString>, String> {
    let Helper { control, config, agent, .. } = helper;
    let over = &config.over;
    let mut words: Vec<OsString> = vec!["--mode".into(), "rpc".into()];
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);

    match folder {
        Some(folder) => {
            add("--session-dir", folder.into());
            add("--session-id", helper.name.into());
            if let Some(parent) = control.snapshot().session_file {
                add("--parent-session", parent.into());
            }
        }
        None => words.push("--no-session".into()),
    }
    let mut add = |flag: &str, value: OsString| words.extend([flag.into(), value]);

    let own = control.models().current();
    let chosen = model(control, config, agent);
    // A fast model is a wish.
    let named: Vec<&str> = agent.models.iter().map(String::as_str).filter(|name| *name != FAST).collect();
    if chosen.is_none() && !named.is_empty() {
        let models = named.join(", ");
        notes.push(format!("No model of {models} can be used; {}/{} was", own.provider, own.id));
    }
    let (model, level) = chosen.map_or((own.clone(), None), |chosen| (chosen.model, chosen.thinking));
    let level = agent.thinking.or(level).unwrap_or_else(|| control.snapshot().thinking);
    add("--provider", model.provider.as_str().into());
    add("--model", model.id.as_str().into());
    add("--thinking", level.name().into());
    if model.provider == own.provider {
        if let Some(key) = &over.model.api_key {
            add("--api-key", key.into());
        }
        if let Some(url) = &over.model.base_url {
            add("--base-url", url.into());
        }
    }

    let all = control.tools().all();
    let is_there = |name: &str| all.iter().any(|(tool, _)| tool.info().spec.name == name);
    // The tools that names in the agent's head mean: one, several, or those with a beginning.
    let named = |name: &String| -> Vec<String> {
        if let Some(start) = name.strip_suffix('*') {
            let names = all.iter().map(|(tool, _)| &tool.info().spec.name);
            return names.filter(|name| name.starts_with(start)).cloned().collect();
        }
        tools_of(name, &is_there).into_iter().filter(|name| is_there(name)).map(str::to_owned).collect()
    };
    let mut tools: Vec<String> = match &agent.tools {
        Some(names) => {
            let missing: Vec<&str> =
                names.iter().filter(|name| named(name).is_empty()).map(String::as_str).collect();
            if !missing.is_empty() {
                notes.push(format!("This session has no tool {}", missing.join(", ")));
            }
            names.iter().flat_map(named).collect()
        }
        None => {
            let active = all.iter().filter(|(_, is_active)| *is_active);
            active.map(|(tool, _)| tool.info().spec.name.clone()).collect()
        }
    };
    let forbidden: Vec<String> = agent.excluded.iter().flat_map(named).collect();
    tools.retain(|name| !forbidden.contains(name));
    // Nobody answers a helper, and only some may give tasks.
    let withheld = ["ask", super::task::NAME];
    tools.retain(|name| !withheld.contains(&name.as_str()));
    add("--tools", tools.join(",").into());
    // Its own tools of these names are free for those that are registered.
    let excluded: Vec<String> =
        over.tools.excluded.iter().cloned().chain(withheld.map(str::to_owned)).collect();
    add("--exclude-tools", excluded.join(",").into());

    // The session decides on each call by its mode and rules, which may change while the helper works.
    add("--ask-tools", "every".into());
    add("--allow-tools", [r#yield::NAME, super::task::NAME].join(",").into());
    let absolute = |path: &String| config.started_in.join(path).into_os_string();
    // Nothing else ends a helper that outlives the prompt which started it.
    if let Some(time) = config.limits.time.filter(|_| helper.row.member().report().is_background) {
        add("--timeout", time.as_secs_f64().to_string().into());
    }
    add("--max-turns", turns_max.to_string().into());
    // The session counts what all helpers spend; this ends a helper that is faster than its events.
    let left = control.limits_left();
    if let Some(tokens) = left.tokens {
        add("--max-tokens-total", tokens.max(1).to_string().into());
    }
    if let Some(cost) = left.cost {
        add("--max-cost", cost.max(1e-6).to_string().into());
    }
    if !agent.prompt.is_empty() {
        add("--append-system-prompt", (&agent.prompt).into());
    }
    let (skills, only_named) = match &agent.skills {
        Some(names) => {
            let known = |name: &String| config.commands.skills.iter().find(|skill| skill.name == *name);
            let missing: Vec<&str> =
                names.iter().filter(|name| known(name).is_none()).map(String::as_str).collect();
            if !missing.is_empty() {
                notes.push(format!("There is no skill {}", missing.join(", ")));
            }
            let found = names.iter().filter_map(known);
            (found.map(|skill| skill.source.path.clone().into_os_string()).collect(), true)
        }
        None => {
            let named: Vec<OsString> = over.resources.skills.iter().map(absolute).collect();
            (named, over.resources.no_skills)
        }
    };
    for skill in skills {
        add("--skill", skill);
    }
    for extension in &over.resources.extensions {
        add("--extension", absolute(extension));
    }
    let switches = [
        ("--no-extensions", over.resources.no_extensions),
        // Servers are started only for a helper that may call them.
        ("--no-mcp", !tools.iter().any(|name| name.starts_with("mcp__"))),
        ("--no-skills", only_named),
        ("--no-context-files", over.resources.no_context_files),
        ("--read-only", over.tools.read_only || control.is_planning() || agent.is_read_only),
    ];
    words.extend(switches.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| OsString::from(flag)));
    words.extend(config.confinement(helper.cwd, notes)?);
    Ok(words)
}
