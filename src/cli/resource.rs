//! `pi skills` and `pi prompts`: list and check skills and prompt templates.

use super::flags::{self, Args};
use super::start::Launch;
use crate::mode::{exit, report};
use crate::resources::Diagnostic;
use crate::runtime::config::Inputs;
use crate::runtime::expand::Commands;
use std::ffi::OsString;
use std::fmt::Write;

const SKILLS: &str = "\
Usage: pi skills [list]  all skills
       pi skills check   what is wrong with them; exit code 1 if anything is
";

const PROMPTS: &str = "\
Usage: pi prompts [list]     all prompt templates
       pi prompts show NAME  the text of one
";

/// Runs `pi skills`. Returns the exit code.
pub fn skills(words: &[OsString]) -> u8 {
    with_commands(words, SKILLS, |words, commands, diagnostics| {
        let skills = &commands.skills;
        diagnostics.iter().for_each(report::warning);
        match words {
            [] | ["list"] => {
                let mut text = String::new();
                for skill in skills {
                    let hidden = if skill.is_hidden { ", called by you alone" } else { "" };
                    let (scope, path) = (skill.source.scope.name(), skill.source.path.display());
                    let _ = writeln!(
                        text,
                        "{} ({scope}{hidden}): {}\n  {path}",
                        skill.name,
                        skill.description.trim()
                    );
                }
                Some(crate::cli::say::say_plain(&text))
            }
            ["check"] if diagnostics.is_empty() => {
                Some(super::say::say(&format!("{} skills, nothing wrong\n", skills.len())))
            }
            ["check"] => Some(exit::FAILED),
            _ => None,
        }
    })
}

/// Runs `pi prompts`. Returns the exit code.
pub fn prompts(words: &[OsString]) -> u8 {
    with_commands(words, PROMPTS, |words, commands, diagnostics| match words {
        [] | ["list"] => {
            diagnostics.iter().for_each(report::warning);
            let mut text = String::new();
            for template in &commands.templates {
                let hint = template.hint.iter().map(|hint| format!(" {hint}")).collect::<String>();
                let (scope, path) = (template.source.scope.name(), template.source.path.display());
                let _ = writeln!(
                    text,
                    "/{}{hint} ({scope}): {}\n  {path}",
                    template.name,
                    template.description.trim()
                );
            }
            Some(crate::cli::say::say_plain(&text))
        }
        ["show", name] => {
            let name = name.strip_prefix('/').unwrap_or(name);
            match commands.templates.iter().find(|template| template.name == name) {
                Some(template) => {
                    Some(crate::cli::say::say_plain(&format!("{}\n", template.content.trim_end())))
                }
                None => {
                    report::error(format_args!("There is no prompt template /{name}. pi prompts lists all."));
                    Some(exit::FAILED)
                }
            }
        }
        _ => None,
    })
}

/// Calls `run` with the user's words, all skills and templates, and their diagnostics. `run` returns `None`
/// for invalid words.
fn with_commands(
    words: &[OsString],
    usage: &str,
    run: impl FnOnce(&[&str], &Commands, &[Diagnostic]) -> Option<u8>,
) -> u8 {
    with_inputs(words, usage, |words, args, inputs| {
        let (commands, diagnostics) = inputs.commands(&args.over.resources);
        run(words, &commands, &diagnostics)
    })
}

/// Calls `run` with the user's words, all arguments, and what they choose. `run` returns `None` for invalid words.
pub fn with_inputs(
    words: &[OsString],
    usage: &str,
    run: impl FnOnce(&[&str], &Args, &Inputs) -> Option<u8>,
) -> u8 {
    let bad = |problem: &str| {
        report::error(format_args!("{problem}\n{usage}"));
        crate::cli::say::BAD_USAGE
    };
    let args = match flags::parse(words.iter().cloned()) {
        Ok(args) if args.run.help => return super::say::say(usage),
        Ok(args) => args,
        Err(error) => return bad(&error.to_string()),
    };
    match Launch::unasked(&args).and_then(|launch| launch.inputs()) {
        Ok(inputs) => {
            let words: Vec<&str> = args.messages.iter().map(String::as_str).collect();
            run(&words, &args, &inputs).unwrap_or_else(|| bad("These words make no sense here."))
        }
        Err(text) => {
            report::error(text);
            exit::FAILED
        }
    }
}
