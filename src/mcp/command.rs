//! `/mcp`: shows the servers of a session, and changes them.

use super::config::edit::Patch;
use super::config::{Exposure, Transport};
use super::server::State;
use super::session::{Mcp, Status, tokens};
use crate::base::cancel::CancelToken;
use crate::runtime::addition::{Completion, SlashCommand};
use crate::runtime::ui::{Dialog, Ui};
use std::sync::Weak;

const ACTIONS: [(&str, &str); 6] = [
    ("login", "Sign in to a server"),
    ("logout", "Forget the sign-in to a server"),
    ("reconnect", "Connect to a server anew"),
    ("enable", "Start a server, and keep it enabled"),
    ("disable", "End a server, and keep it disabled"),
    ("exposure", "Choose how tools of a server reach the model"),
];

const USAGE: &str = "/mcp, /mcp login|logout SERVER, /mcp reconnect SERVER, /mcp enable|disable SERVER [-l], /mcp exposure SERVER \
    codemode|deferred|direct|hidden [-l]. -l writes a change into the project's file";

const NONE: &str = "There are no MCP servers: pi mcp add";

pub struct Slash {
    mcp: Weak<Mcp>,
}

impl Slash {
    pub fn new(mcp: Weak<Mcp>) -> Self {
        Self { mcp }
    }
}

impl SlashCommand for Slash {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn description(&self) -> Option<&str> {
        Some("MCP servers: list, sign in, reconnect, enable, disable, exposure")
    }

    fn run(&self, arguments: &str, cancel: &CancelToken) -> Result<(), String> {
        let mcp = self.mcp.upgrade().ok_or("The MCP servers are closed")?;
        carry_out(&mcp, arguments, cancel)
    }

    fn complete(&self, prefix: &str, _: &CancelToken) -> Vec<Completion> {
        let proposal = |value: String, label: &str, about: Option<&str>| Completion {
            value,
            label: label.to_owned(),
            description: about.map(str::to_owned),
        };
        let Some((action, start)) = prefix.split_once(' ') else {
            let fitting = ACTIONS.iter().filter(|(action, _)| action.starts_with(prefix));
            return fitting
                .map(|(action, about)| proposal(format!("{action} "), action, Some(about)))
                .collect();
        };
        let (Some(mcp), true) = (self.mcp.upgrade(), ACTIONS.iter().any(|(known, _)| *known == action))
        else {
            return Vec::new();
        };
        let all = mcp.statuses();
        let fitting = all.iter().filter(|status| status.entry.name.starts_with(start));
        let of = |status: &Status| {
            let name = &status.entry.name;
            proposal(format!("{action} {name}"), name, Some(status.state.name()))
        };
        fitting.map(of).collect()
    }
}

/// Does what the words of the command say.
fn carry_out(mcp: &Mcp, arguments: &str, cancel: &CancelToken) -> Result<(), String> {
    let (in_project, words): (Vec<&str>, Vec<&str>) =
        arguments.split_whitespace().partition(|word| matches!(*word, "-l" | "--local"));
    let patch = |name: &str, patch: Patch| mcp.patch(name, patch, !in_project.is_empty());
    match words.as_slice() {
        [] => {
            if let Some(ui) = mcp.lists_on() {
                choose(mcp, &*ui, cancel);
                return Ok(());
            }
        }
        ["login", name] => mcp.login(name, cancel)?,
        ["logout", name] => mcp.logout(name, cancel)?,
        ["reconnect", name] => mcp.reconnect(name, cancel)?,
        ["enable", name] => patch(name, Patch { enabled: Some(true), ..Patch::default() })?,
        ["disable", name] => patch(name, Patch { enabled: Some(false), ..Patch::default() })?,
        ["exposure", name, exposure] => {
            let exposure = Exposure::parse(exposure).ok_or_else(|| format!("Usage: {USAGE}"))?;
            patch(name, Patch { exposure: Some(exposure), ..Patch::default() })?;
        }
        _ => return Err(format!("Usage: {USAGE}")),
    }
    let all = mcp.statuses();
    let of = |status: &&Status| words.get(1).is_none_or(|name| status.entry.name == *name);
    let lines: Vec<String> = all.iter().filter(of).map(line).collect();
    let text = if lines.is_empty() { NONE.to_owned() } else { lines.join("\n") };
    mcp.show(text);
    Ok(())
}

/// Lets the user choose servers, and what to do with them.
fn choose(mcp: &Mcp, ui: &dyn Ui, cancel: &CancelToken) {
    let ask = |title: &str, rows: &[String]| {
        let chosen = ui.ask(&Dialog::Select { title, options: rows }, None, cancel)?;
        rows.iter().position(|row| *row == chosen)
    };
    loop {
        let statuses = mcp.statuses();
        if statuses.is_empty() {
            return mcp.show(NONE.to_owned());
        }
        let rows: Vec<String> = statuses.iter().map(line).collect();
        let Some(status) = ask("MCP servers", &rows).and_then(|at| statuses.get(at)) else { return };
        let actions = actions(status);
        let rows: Vec<String> = actions.iter().map(|(label, _)| label.clone()).collect();
        let Some((_, words)) = ask(&line(status), &rows).and_then(|at| actions.get(at)) else { continue };
        if let Err(error) = carry_out(mcp, words, cancel) {
            mcp.show(error);
        }
        if cancel.is_cancelled() {
            return;
        }
    }
}

/// What can be done with a server, and the words of the command for it.
fn actions(status: &Status) -> Vec<(String, String)> {
    let entry = &status.entry;
    let action = |label: &str, words: &str| (label.to_owned(), format!("{words} {}", entry.name));
    if status.state == State::Disabled {
        return vec![action("Enable", "enable")];
    }
    let mut actions = vec![action("Reconnect", "reconnect")];
    if matches!(entry.transport(), Transport::Http { .. })
        && !entry.has_authorization()
        && entry.provider().is_none()
    {
        actions.push(action("Sign in", "login"));
        actions.push(action("Forget the sign-in", "logout"));
    }
    actions.push(action("Disable", "disable"));
    let others = Exposure::NAMES.iter().filter(|(_, exposure)| *exposure != entry.exposure());
    actions.extend(others.map(|(name, _)| {
        (format!("Let tools reach the model as {name}"), format!("exposure {} {name}", entry.name))
    }));
    actions
}

/// A line about a server.
fn line(status: &Status) -> String {
    let Status { entry, state, offer } = status;
    let cost: u64 = offer.tools.iter().map(tokens).sum();
    let tools = match offer.tools.len() {
        1 => format!(", 1 tool of {cost} tokens"),
        0 => String::new(),
        count => format!(", {count} tools of {cost} tokens"),
    };
    let resources = if offer.has_resources { ", resources" } else { "" };
    let state = match state {
        State::Waiting => "starts when it is called".to_owned(),
        State::NeedsSignIn(_) => "needs a sign-in".to_owned(),
        state => match state.error() {
            Some(error) => format!("{}: {}", state.name(), error.lines().next().unwrap_or_default()),
            None => state.name().to_owned(),
        },
    };
    let exposure = entry.exposure().name();
    format!("{}: {state}{tools}{resources} ({exposure}, {})", entry.name, entry.scope.name())
}
