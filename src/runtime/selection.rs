//! Chooses the active tools by name from the settings, `--tools` and `--exclude-tools`.
//!
//! A list either names tools or changes the default choice: `+name` adds a tool, `-name` removes one. Names
//! of tools that only other programs with these settings have, such as `codemode` and `mcp__server__tool`,
//! are accepted and ignored.

use crate::agent::tool::Tool;
use crate::resources::settings::{Settings, is_tool_change};
use crate::tools::{self, Workspace};
use std::fmt::Display;
use std::sync::Arc;

/// The tools of a new session unless settings or options name others.
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// Tools that parts of the program add to a session. None is active before it is chosen by name.
pub const ADDED: [&str; 7] = ["ask", "checkpoint", "job", "plan", "rewind", "task", "todo"];

/// The parsed value of `--tools`.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// Names of tools, and patterns with `*`.
    Only(Vec<String>),
    /// Changes of the default choice: `+name` and `-name`.
    Change(Vec<String>),
}

impl Selection {
    /// Parses the entries of `--tools`. A mix of names and changes is an error, as is a pattern in a change.
    pub fn parse(entries: Vec<String>) -> Result<Self, String> {
        match entries.iter().filter(|entry| is_tool_change(entry)).count() {
            0 => return Ok(Self::Only(entries)),
            changes if changes < entries.len() => {
                return Err("tool names cannot be mixed with +name or -name entries".into());
            }
            _ => {}
        }
        match entries.iter().find(|entry| entry.contains('*')) {
            Some(pattern) => {
                Err(format!("+name and -name entries take exact tool names, not patterns: {pattern}"))
            }
            None => Ok(Self::Change(entries)),
        }
    }
}

/// Returns the names that the setting `defaultTools` chooses, unknown names included.
pub fn of_settings(entries: Option<Vec<String>>) -> Vec<String> {
    let entries = entries.unwrap_or_else(|| DEFAULT_TOOLS.map(str::to_owned).to_vec());
    let mut names: Vec<String> = entries.iter().filter(|entry| !is_tool_change(entry)).cloned().collect();
    if names.is_empty() && !entries.is_empty() {
        names = DEFAULT_TOOLS.map(str::to_owned).to_vec();
    }
    change(&mut names, &entries);
    names
}

/// Applies the entries `+name` and `-name` in order.
pub fn change(names: &mut Vec<String>, entries: &[String]) {
    for entry in entries {
        if let Some(name) = entry.strip_prefix('-') {
            names.retain(|known| known != name);
        } else if let Some(name) = entry.strip_prefix('+')
            && !name.is_empty()
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
}

/// Returns the names in `known` that `entries` name or match, each once, in the order of `entries`.
pub fn expand(entries: &[String], known: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        for name in known.iter().filter(|name| matches(entry, name)) {
            if !names.iter().any(|chosen| chosen == name) {
                names.push((*name).to_owned());
            }
        }
    }
    names
}

/// True if `name` matches `pattern`, in which `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        match name.split_once(part) {
            Some((_, rest)) => name = rest,
            None => return false,
        }
    }
    name.ends_with(end)
}

/// True for the names of tools that MCP servers offer.
pub fn is_mcp(name: &str) -> bool {
    name.starts_with("mcp__")
        || ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"].contains(&name)
}

/// True if `entry` names a tool of another program that shares pi's settings.
pub fn is_foreign(entry: &str) -> bool {
    const NAMES: [&str; 6] = [
        "codemode",
        "tool_search",
        "powershell",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ];
    entry.starts_with("mcp__") || NAMES.contains(&entry)
}

/// Options about tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverrides {
    pub selection: Option<Selection>,
    /// Tools to remove: names, and patterns with `*`.
    pub excluded: Vec<String>,
    pub none: bool,
    pub no_builtin: bool,
    /// True to allow only tools that change nothing.
    pub read_only: bool,
}

impl ToolOverrides {
    /// True if a resumed conversation keeps its recorded active tools.
    pub fn leave_recorded(&self) -> bool {
        !matches!(self.selection, Some(Selection::Only(_)))
            && !self.none
            && !self.no_builtin
            && !self.read_only
    }

    /// True if `--exclude-tools` names the tool.
    pub fn is_excluded(&self, name: &str) -> bool {
        self.excluded.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns the `+name` and `-name` entries of `--tools`.
    pub fn changes(&self) -> &[String] {
        match &self.selection {
            Some(Selection::Change(entries)) => entries,
            _ => &[],
        }
    }

    /// True unless the options disable all tools.
    pub fn any(&self) -> bool {
        self.selection.is_some() || !(self.none || self.no_builtin)
    }
}

/// Returns the tools of `all` with these names, each once, in the order of `names`.
pub fn tools_named(all: &[Arc<dyn Tool>], names: &[String]) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for name in names {
        let is_meant = |tool: &&Arc<dyn Tool>| tool.info().spec.name == *name;
        if let Some(tool) = all.iter().find(is_meant)
            && !tools.iter().any(|known| Arc::ptr_eq(known, tool))
        {
            tools.push(tool.clone());
        }
    }
    tools
}

/// Returns the tools that are active at first.
pub fn active_tools(
    over: &ToolOverrides,
    settings: &Settings,
    workspace: &Arc<Workspace>,
    warn: &mut dyn FnMut(&dyn Display),
) -> Vec<Arc<dyn Tool>> {
    let known: Vec<&str> = tools::names().chain(ADDED).collect();
    let is_excluded = |name: &str| over.is_excluded(name);
    let is_unknown = |entry: &&String| {
        let name = entry.strip_prefix(['+', '-']).unwrap_or(entry);
        !entry.contains('*') && !known.contains(&name) && !is_foreign(name)
    };
    for name in over.excluded.iter().filter(is_unknown) {
        warn(&format_args!("There is no tool \"{name}\" to exclude. Known: {}", known.join(", ")));
    }
    let inherited = || match (over.none || over.no_builtin, over.read_only) {
        (true, _) => Vec::new(),
        // Tools that change something are removed below.
        (false, true) => known.iter().map(|name| (*name).to_owned()).collect(),
        (false, false) => of_settings(settings.texts("defaultTools")),
    };
    let mut names = match &over.selection {
        Some(Selection::Only(entries)) => {
            let missing = entries.iter().filter(is_unknown).cloned();
            expand(entries, &known).into_iter().chain(missing).collect()
        }
        Some(Selection::Change(entries)) => {
            let mut names = inherited();
            change(&mut names, entries);
            names
        }
        None => inherited(),
    };
    for name in names.iter().filter(is_unknown) {
        warn(&format_args!("There is no tool \"{name}\". Known: {}", known.join(", ")));
    }
    let is_chosen_by_settings = !matches!(over.selection, Some(Selection::Only(_)));
    if is_chosen_by_settings && !names.is_empty() && !names.iter().any(|name| known.contains(&&**name)) {
        warn(&format_args!(
            "No tool of {} is part of this version; the default tools are used",
            names.join(", ")
        ));
        names = of_settings(None);
    }
    let chosen = names.iter().filter(|name| !is_excluded(name));
    let chosen = chosen.filter_map(|name| tools::builtin(name, workspace));
    chosen.filter(|tool| !over.read_only || tool.info().reads_only).collect()
}

/// Returns the active tools and those that can be made active.
pub fn all_tools(
    over: &ToolOverrides,
    active: &[Arc<dyn Tool>],
    workspace: &Arc<Workspace>,
) -> Vec<Arc<dyn Tool>> {
    let is_active = |name: &str| active.iter().any(|tool| tool.info().spec.name == name);
    let is_limited = match over.selection {
        Some(Selection::Only(_)) => true,
        Some(Selection::Change(_)) | None => over.none || over.no_builtin,
    };
    let others = tools::names()
        .filter(|_| !is_limited)
        .filter(|name| !is_active(name))
        .filter(|name| !over.is_excluded(name))
        .filter_map(|name| tools::builtin(name, workspace))
        .filter(|tool| !over.read_only || tool.info().reads_only);
    active.iter().cloned().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_setting_names_tools_or_changes_the_defaults() {
        let rows = [
            (None, "read bash edit write"),
            (Some(""), ""),
            (Some("read ls"), "read ls"),
            (Some("+codemode"), "read bash edit write codemode"),
            (Some("+grep -write"), "read bash edit grep"),
            (Some("-write +write"), "read bash edit write"),
            (Some("+ -nonsense +read"), "read bash edit write"),
            (Some("grep +ls -grep"), "ls"),
            (Some("-read grep"), "grep"),
        ];
        for (entries, expected) in rows {
            assert_eq!(of_settings(entries.map(list)), list(expected), "{entries:?}");
        }
    }

    #[test]
    fn a_list_of_the_command_line_is_of_one_kind() {
        let parse = |text: &str| Selection::parse(list(text));
        assert_eq!(parse("read mcp__*"), Ok(Selection::Only(list("read mcp__*"))));
        assert_eq!(parse("+grep -write"), Ok(Selection::Change(list("+grep -write"))));
        assert_eq!(parse(""), Ok(Selection::Only(Vec::new())));
        let mixed = "tool names cannot be mixed with +name or -name entries";
        assert_eq!(parse("read +grep"), Err(mixed.into()));
        let pattern = "+name and -name entries take exact tool names, not patterns: +re*";
        assert_eq!(parse("-ls +re*"), Err(pattern.into()));
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        let rows = [
            ("read", "read", true),
            ("read", "reads", false),
            ("*", "", true),
            ("re*", "read", true),
            ("*d", "read", true),
            ("r*e*d", "read", true),
            ("r**d", "read", true),
            ("*a*", "read", true),
            ("rea*ead", "read", false),
            ("*e*e*", "read", false),
            ("r[e]ad", "read", false),
        ];
        for (pattern, name, expected) in rows {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        let known = ["read", "bash", "grep"];
        assert_eq!(expand(&list("grep * codemode"), &known), list("grep read bash"));
    }
}
