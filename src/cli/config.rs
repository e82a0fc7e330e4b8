//! `pi config`: shows and changes settings, and lists the prompt files of a session. Without words, `switch` runs.

use super::flags;
use super::start::Launch;
use crate::base::distance::{Compare, between, letters};
use crate::base::executable;
use crate::mode::{exit, report};
use crate::resources::context_file;
use crate::resources::prompt::prompt_file;
use crate::resources::settings::table::{self, GROUPS, Key, Preset};
use crate::resources::settings::{self, Settings};
use crate::runtime::config::Inputs;
use crate::runtime::overrides::ResourceOverrides;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

const USAGE: &str = "\
Usage: pi config [-l]                switch extensions, skills, prompts and themes on and off
       pi config list                all settings, with values and where they come from
       pi config get KEY             one value
       pi config set KEY VALUE [-l]  change a setting; lists and objects as JSON
       pi config unset KEY [-l]      back to the default
       pi config path [-l]           the settings file
       pi config edit [-l]           open it in your editor
       pi config context             prompt files, context files, skills and templates in use

-l, --local       the project's .pi/settings.json instead of your own
-a, --approve     trust the project in this run
-na, --no-approve do not
";

/// Runs `pi config`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let is_local = |word: &&OsString| *word == "-l" || *word == "--local";
    let local = words.iter().any(|word| is_local(&word));
    let rest = words.iter().filter(|word| !is_local(word)).cloned();
    let args = match flags::parse(rest) {
        Ok(args) if args.run.help => return super::say::say(USAGE),
        Ok(args) => args,
        Err(error) => return usage(&error.to_string()),
    };
    let words: Vec<&str> = args.messages.iter().map(String::as_str).collect();
    let inputs = Launch::unasked(&args).and_then(|launch| launch.inputs());
    let outcome = inputs.and_then(|inputs| match words.as_slice() {
        [] => super::switch::run(inputs, local),
        ["list"] => Ok(super::say::say(&list(&inputs.settings))),
        ["get", key] => get(&inputs.settings, key),
        ["set", key, value] => set(&inputs, key, Some(value), local),
        ["unset", key] => set(&inputs, key, None, local),
        ["path"] => Ok(super::say::say(&format!("{}\n", path(&inputs, local).display()))),
        ["edit"] => edit(&inputs, local),
        ["context"] => Ok(crate::cli::say::say_plain(&context(&args.over.resources, &inputs))),
        _ => Ok(usage("This is not a use of pi config.")),
    });
    outcome.unwrap_or_else(|text| {
        report::error(text);
        exit::FAILED
    })
}

fn usage(problem: &str) -> u8 {
    report::error(format_args!("{problem}\n{USAGE}"));
    crate::cli::say::BAD_USAGE
}

fn path(inputs: &Inputs, local: bool) -> PathBuf {
    if local { settings::project_path(&inputs.cwd) } else { inputs.settings.path().to_owned() }
}

fn list(settings: &Settings) -> String {
    let mut text = String::new();
    for group in GROUPS {
        let _ = writeln!(text, "{}", group.title);
        for key in group.keys {
            let value = match (settings.get(key.path), key.preset) {
                (Some(value), _) => settings::without_password(value).to_string(),
                (None, Preset::Told("")) => "not set".into(),
                (None, Preset::Told(words)) => words.into(),
                (None, preset) => preset.value().unwrap_or_default().to_string(),
            };
            let (path, origin) = (key.path, settings.origin(key.path).name());
            let _ = writeln!(text, "  {path} = {value} ({origin}): {}", key.help);
        }
    }
    text
}

fn find(name: &str) -> Result<&'static Key, String> {
    table::find(name).ok_or_else(|| {
        let near =
            table::keys().map(|key| (between(&letters(name), &letters(key.path), Compare::Whole), key.path));
        match near.min().filter(|(distance, _)| *distance <= 3) {
            Some((_, near)) => format!("There is no setting {name}. Did you mean {near}?"),
            None => format!("There is no setting {name}. pi config lists all."),
        }
    })
}

fn get(settings: &Settings, name: &str) -> Result<u8, String> {
    let key = find(name)?;
    let value = settings.get(key.path).cloned().or_else(|| key.preset.value());
    match value {
        Some(Value::String(text)) => Ok(crate::cli::say::say_plain(&format!("{text}\n"))),
        Some(value) => Ok(super::say::say(&format!("{value}\n"))),
        None => Err(format!("{name} is not set")),
    }
}

fn set(inputs: &Inputs, name: &str, word: Option<&str>, local: bool) -> Result<u8, String> {
    let key = find(name)?;
    if local && !inputs.is_trusted {
        return Err("Project is not trusted. Use --approve to modify its settings.".into());
    }
    if local && key.is_global {
        return Err(format!("{name} can only be set in the agent folder, without --local"));
    }
    let value = match word {
        None => None,
        Some(word) => {
            let value = key.form.read(word);
            Some(value.ok_or_else(|| format!("{name} must be {}", key.form.describe()))?)
        }
    };
    settings::write(&path(inputs, local), &[(key.path, value)])?;
    Ok(exit::DONE)
}

fn edit(inputs: &Inputs, local: bool) -> Result<u8, String> {
    let path = path(inputs, local);
    let set = |name: &str| std::env::var(name).ok().filter(|editor| !editor.is_empty());
    let own = inputs.settings.get("externalEditor").and_then(Value::as_str);
    let editor = own
        .map(str::to_owned)
        .or_else(|| set("VISUAL"))
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| "vi".into());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: could not be made: {error}", folder.display()))?;
    }
    // A shell splits the command, since `VISUAL` and `EDITOR` may contain arguments.
    let status = Command::new(executable::SHELL)
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .env("PATH", executable::path())
        .arg(&path)
        .status()
        .map_err(|error| format!("Cannot run {editor}: {error}"))?;
    if !status.success() {
        return Err(format!("{editor} ended with {status}"));
    }
    let (mut now, mut diagnostics) = Settings::load(inputs.dirs.agent());
    if inputs.is_trusted {
        diagnostics.extend(now.add_project(&inputs.cwd));
    }
    diagnostics.iter().for_each(report::warning);
    Ok(if diagnostics.is_empty() { exit::DONE } else { exit::FAILED })
}

/// Lists the files of the system prompt of a session in this folder.
fn context(over: &ResourceOverrides, inputs: &Inputs) -> String {
    let mut text = String::new();
    let trust = if inputs.is_trusted {
        "its .pi and .agents folders are used"
    } else {
        "its .pi and .agents folders are not used"
    };
    let _ = writeln!(text, "Project: {} ({trust})", inputs.cwd.display());
    let project = inputs.is_trusted.then_some(inputs.cwd.as_path());
    for (title, name) in [("System prompt", "SYSTEM.md"), ("Added to it", "APPEND_SYSTEM.md")] {
        if let Some(path) = prompt_file(&inputs.dirs, project, name) {
            let _ = writeln!(text, "{title}: {}", path.display());
        }
    }
    if !over.no_context_files {
        let (files, diagnostics) = context_file::load(inputs.dirs.agent(), &inputs.cwd, inputs.dirs.home());
        diagnostics.iter().for_each(report::warning);
        for file in files {
            let _ = writeln!(text, "Context: {} ({} bytes)", file.path.display(), file.content.len());
            for import in file.imports {
                let _ = writeln!(text, "  imports {}", import.display());
            }
        }
    }
    let (commands, diagnostics) = inputs.commands(over);
    diagnostics.iter().for_each(report::warning);
    for skill in &commands.skills {
        let _ = writeln!(text, "Skill: {} ({})", skill.name, skill.source.path.display());
    }
    for template in &commands.templates {
        let _ = writeln!(text, "Prompt template: /{} ({})", template.name, template.source.path.display());
    }
    text
}
