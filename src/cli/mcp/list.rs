//! `pi mcp list` and `pi mcp test`: what servers offer, after connecting to them.

use super::{Place, Words};
use crate::base::json::json;
use crate::cli::say::say_plain;
use crate::mcp::config::{Entry, Exposure, Servers};
use crate::mcp::server::{Context, END, Offer, Server, State, sign_in_hint};
use crate::mcp::session::tokens;
use crate::mode::exit::{DONE, FAILED};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// A server, after an attempt to connect.
struct Report {
    entry: Entry,
    state: State,
    offer: Arc<Offer>,
}

pub(super) fn list(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("list", args, &[("--json", false)], usize::MAX)?;
    if !words.words.is_empty() {
        return Err("list takes no names: pi mcp list [--json]. For one server: pi mcp test <server>".into());
    }
    let place = Place::find()?;
    let Servers { entries, errors, .. } = place.servers();
    let (note, is_json) = (place.untrusted(), words.has("--json"));
    place.connect(|context, _| {
        let reports = connect_all(entries, &context);
        let has_failed = !errors.is_empty() || reports.iter().any(Report::has_failed);
        let text = match is_json {
            true => {
                let servers: Vec<Value> = reports.iter().map(Report::to_json).collect();
                let mut all = json!({"servers": servers, "errors": errors});
                if let Some(note) = &note {
                    all["note"] = note.as_str().into();
                }
                format!("{all:#}\n")
            }
            false => plain(&reports, &errors, note.as_deref(), &place),
        };
        let code = say_plain(&text);
        Ok(if code == DONE && has_failed { FAILED } else { code })
    })
}

pub(super) fn test(args: &[String]) -> Result<u8, String> {
    let words = Words::parse("test", args, &[("--json", false)], usize::MAX)?;
    let [name] = words.words.as_slice() else {
        return Err("test takes the name of one server: pi mcp test <server> [--json]".into());
    };
    let place = Place::find()?;
    let mut entry = place.entry(name)?;
    // A server that is off can be tried before it is switched on.
    entry.fields.shift_remove("enabled");
    place.connect(|context, _| {
        let reports = connect_all(vec![entry], &context);
        let has_failed = reports.iter().any(Report::has_failed);
        let text: String = match words.has("--json") {
            true => reports.iter().map(|report| format!("{:#}\n", report.to_json())).collect(),
            false => {
                reports.iter().map(|report| format!("{}{}", report.to_text(), report.tool_lines())).collect()
            }
        };
        let code = say_plain(&text);
        Ok(if code == DONE && has_failed { FAILED } else { code })
    })
}

/// Connects to all enabled servers at once, and closes them again.
fn connect_all(entries: Vec<Entry>, context: &Arc<Context>) -> Vec<Report> {
    let servers: Vec<Arc<Server>> =
        entries.into_iter().map(|entry| Server::new(entry, context.clone(), None)).collect();
    servers.iter().for_each(|server| server.start());
    let connect = |server: &Arc<Server>| {
        // The outcome is in the state.
        if server.entry().is_enabled() {
            let _ = server.client(&context.cancel);
        }
        let report =
            Report { entry: Entry::clone(&server.entry()), state: server.state(), offer: server.offer() };
        server.close(Instant::now() + END);
        report
    };
    thread::scope(|scope| {
        let threads: Vec<_> = servers.iter().map(|server| scope.spawn(|| connect(server))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

impl Report {
    fn has_failed(&self) -> bool {
        !matches!(self.state, State::Connected | State::Disabled)
    }

    fn tools(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.offer.tools.iter().filter_map(|tool| Some((tool.get("name")?.as_str()?, tool)))
    }

    /// The reference's object, and what the declarations of the tools cost.
    fn to_json(&self) -> Value {
        let (entry, own) = (&self.entry, self.entry.exposure());
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("name", entry.name.as_str().into());
        set("scope", entry.scope.name().into());
        set("source", entry.source.to_string_lossy().into());
        if let Some(changed) = &entry.changed_by {
            set("override", changed.to_string_lossy().into());
        }
        set("enabled", entry.is_enabled().into());
        set("exposure", own.name().into());
        set("transport", entry.address().into());
        if let Some(provider) = entry.provider() {
            set("authProvider", provider.into());
        }
        set("state", self.state.name().into());
        set("tools", self.tools().map(|(name, _)| name).collect());
        let others = self.tools().map(|(name, _)| (name, entry.exposure_of(name)));
        let others = others.filter(|(_, exposure)| *exposure != own);
        let others: Map<String, Value> =
            others.map(|(name, exposure)| (name.to_owned(), exposure.name().into())).collect();
        if !others.is_empty() {
            set("toolExposure", others.into());
        }
        if self.offer.has_resources {
            set("resources", true.into());
        }
        if let Some(error) = self.state.error() {
            set("error", error.into());
        }
        if self.state == State::Connected {
            set("tokens", json!({"all": self.tokens(|_| true), "declared": self.tokens(is_declared)}));
        }
        fields.into()
    }

    /// Tokens of the declarations of the tools with an exposure.
    fn tokens(&self, wanted: fn(Exposure) -> bool) -> u64 {
        let tools = self.tools().filter(|(name, _)| wanted(self.entry.exposure_of(name)));
        tools.map(|(_, tool)| tokens(tool)).sum()
    }

    fn to_text(&self) -> String {
        let Self { entry, offer, .. } = self;
        let state = match &self.state {
            State::Connected => format!("connected, {}", count(offer.tools.len(), "tool")),
            State::NeedsSignIn(_) => "needs a sign-in".to_owned(),
            state => state.name().to_owned(),
        };
        let mut text = format!(
            "{}: {state} ({}, {})\n  {}\n",
            entry.name,
            entry.exposure().name(),
            entry.scope.name(),
            entry.address()
        );
        if let Some(changed) = &entry.changed_by {
            text.push_str(&format!("  changed by {}\n", changed.display()));
        }
        if let State::NeedsSignIn(_) = self.state {
            text.push_str(&format!("  {}\n", sign_in_hint(entry)));
        }
        if !offer.tools.is_empty() {
            let own = entry.exposure();
            let tools = self.tools().map(|(name, _)| match entry.exposure_of(name) {
                exposure if exposure == own => name.to_owned(),
                exposure => format!("{name} [{}]", exposure.name()),
            });
            text.push_str(&format!("  tools: {}\n", tools.collect::<Vec<_>>().join(", ")));
            let (all, declared) = (self.tokens(|_| true), self.tokens(is_declared));
            text.push_str(&format!("  tokens: {declared} declared from the start, {all} if all were\n"));
        }
        if offer.has_resources {
            text.push_str("  offers resources\n");
        }
        if let Some(error) = self.state.error() {
            text.push_str(&format!("  {}\n", error.replace('\n', "\n  ")));
        }
        text
    }

    /// A line for each tool: what it costs, and what it does.
    fn tool_lines(&self) -> String {
        let line = |(name, tool): (&str, &Value)| {
            let about = tool.get("description").and_then(Value::as_str).unwrap_or_default();
            let about = about.trim().lines().next().unwrap_or_default();
            format!("  {:>6}  {name}: {about}\n", tokens(tool))
        };
        self.tools().map(line).collect()
    }
}

fn is_declared(exposure: Exposure) -> bool {
    exposure == Exposure::Direct
}

fn count(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

fn plain(reports: &[Report], errors: &[String], note: Option<&str>, place: &Place) -> String {
    let mut text: String = reports.iter().map(Report::to_text).collect();
    if reports.is_empty() && errors.is_empty() {
        let (user, project) = (place.file(false), place.file(true));
        text.push_str(&format!(
            "There is no MCP server in {} or {}. To add one: pi mcp add\n",
            user.display(),
            project.display()
        ));
    }
    errors.iter().for_each(|error| text.push_str(&format!("error: {error}\n")));
    note.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    text
}
