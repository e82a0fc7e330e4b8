//! Checks of the terminal, the sandbox and the programs of this machine.

use super::{Finding, Place};
use crate::base::executable;
use crate::mode::interactive;
use crate::resources::git;
use crate::resources::settings::Settings;
use crate::tools::sandbox::{Mode, Policy, Sandbox};
use std::io::{self, IsTerminal};
use std::path::Path;

/// Checks the terminal, its colours and the clipboard.
pub fn terminal(place: Option<&Place>) -> Vec<Finding> {
    let none = Settings::default();
    let settings = place.map_or(&none, |place| &place.inputs.settings);
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let term = variable("TERM");
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let mut findings = Vec::new();
    findings.push(match &*term {
        _ if !is_terminal => {
            Finding::ok("terminal", "stdin or stdout is not a terminal: pi answers once, and exits")
        }
        "" => Finding::warning(
            "terminal",
            "TERM is not set",
            "set TERM to the name of the terminal, such as xterm-256color",
        ),
        "dumb" => Finding::warning(
            "terminal",
            "TERM is dumb: the conversation is shown without colours and without redrawing",
            "use another terminal, or pi -p",
        ),
        term => {
            Finding::ok("terminal", format_args!("{term} {}", variable("TERM_PROGRAM")).to_string().trim())
        }
    });
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default();
    if !locale.to_ascii_lowercase().replace('-', "").contains("utf8")
        && is_terminal
        && !cfg!(target_os = "macos")
    {
        findings.push(Finding::warning(
            "terminal",
            format_args!(
                "the locale ({}) does not say UTF-8, which pi writes",
                if locale.is_empty() { "C" } else { &locale }
            ),
            "set LANG to a UTF-8 locale, such as C.UTF-8",
        ));
    }
    match interactive::survey(settings) {
        None => findings.push(Finding::ok("colours", "this build has no conversation on a terminal")),
        Some(survey) => {
            findings.push(Finding::ok("colours", survey.look));
            findings.push(match survey.clipboard {
                Ok(way) => Finding::ok("clipboard", way),
                Err(advice) => Finding::warning("clipboard", "no program reaches the clipboard", advice),
            });
        }
    }
    findings
}

/// Checks whether the sandbox can be enforced here.
pub fn sandbox(place: &Place) -> Finding {
    let policy = Policy {
        mode: Mode::Workspace,
        cwd: place.inputs.cwd.clone(),
        writable: Vec::new(),
        network: false,
        terminal: false,
    };
    match Sandbox::new(policy) {
        Ok(sandbox) if sandbox.gaps().is_empty() => {
            let mode = place.inputs.settings.word("sandbox.mode");
            Finding::ok("sandbox", format_args!("can be enforced; the setting is {mode}"))
        }
        Ok(sandbox) => Finding::warning(
            "sandbox",
            format_args!("has gaps on this system: {}", sandbox.gaps().join(", ")),
            "a newer kernel has none; see pi docs sandbox",
        ),
        Err(reason) => Finding::warning("sandbox", reason, "see pi docs sandbox"),
    }
}

/// Checks the programs that tools and their commands need.
pub fn programs(place: Option<&Place>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let chosen = place.and_then(|place| {
        let path = place.inputs.settings.text("shellPath")?;
        Some(place.inputs.dirs.resolve(path, Path::new("/")))
    });
    findings.push(match chosen {
        Some(path) if path.exists() => Finding::ok("shell", path.display()),
        Some(path) => Finding::bad(
            "shell",
            format_args!("shellPath is {}, which does not exist", path.display()),
            "change it with pi config set shellPath, or remove it with pi config unset shellPath",
        ),
        None => match executable::find("bash")
            .or_else(|| Some("/bin/bash".into()).filter(|path: &std::path::PathBuf| path.exists()))
        {
            Some(path) => Finding::ok("shell", path.display()),
            None if Path::new(executable::SHELL).exists() => Finding::warning(
                "shell",
                format_args!("there is no bash; commands run in {}", executable::SHELL),
                "install bash: models write commands for it",
            ),
            None => Finding::bad("shell", "there is no shell, so the bash tool cannot run", "install bash"),
        },
    });
    findings.push(match executable::find("git") {
        None => Finding::warning("git", "not found", "install git: models use it to look at changes"),
        Some(path) => {
            let branch = place.and_then(|place| git::branch(&place.inputs.cwd));
            let here = branch.map_or_else(
                || "this folder is in no repository".to_owned(),
                |branch| format!("on {branch} here"),
            );
            Finding::ok("git", format_args!("{}, {here}", path.display()))
        }
    });
    findings.push(match executable::find("node") {
        None => Finding::ok("node", "not found; only extensions in JavaScript and TypeScript need it"),
        Some(path) => Finding::ok("node", path.display()),
    });
    findings
}
