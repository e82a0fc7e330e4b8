//! What parts of the program add to a session while it lives: tools, slash commands, sections of the prompt.
//!
//! An owner states its whole addition, as often as it likes; what appeared and what went is found here. Tools of an
//! addition obey `--tools`, `--exclude-tools` and the setting `defaultTools` as built-in ones do, and what the
//! conversation has recorded.

use super::config::Config;
use super::lent::{LentModels, RegisteredServer};
use super::selection::ToolOverrides;
use super::selection::{self, Selection};
use crate::agent::tool::{Exposure, Tool, ToolInfo};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What one owner adds.
#[derive(Clone, Default)]
pub struct Addition {
    /// A tool named like a built-in one takes its place.
    pub tools: Vec<Arc<dyn Tool>>,
    pub commands: Vec<Arc<dyn SlashCommand>>,
    /// Actions of keys, by the names of the keys as in `keybindings.json`.
    pub shortcuts: Vec<(String, Arc<dyn SlashCommand>)>,
    /// Sections of the system prompt: name and text.
    pub sections: Vec<(String, String)>,
    pub renderer: Option<Arc<dyn Renderer>>,
    pub completers: Vec<Arc<dyn Completer>>,
    pub arranger: Option<Arc<dyn Arranger>>,
    pub models: LentModels,
    pub servers: Vec<RegisteredServer>,
    /// The `sourceInfo` that other programs are told.
    pub source: Value,
}

/// The rank of additions that belong to the program itself. A tool of another owner takes the place of theirs.
pub const OWN: usize = usize::MAX;

/// The owner of an addition. Additions are ordered by rank, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub rank: usize,
    /// Name for people: a path, a server.
    pub name: String,
}

/// A slash command that a part of the program adds.
pub trait SlashCommand: Send + Sync {
    fn name(&self) -> &str;

    fn description(&self) -> Option<&str>;

    /// Runs the command on the calling thread, which must not be the session's. `arguments` is all that follows the
    /// name.
    fn run(&self, arguments: &str, cancel: &CancelToken) -> Result<(), String>;

    /// Proposals for the arguments, of which `prefix` is typed.
    fn complete(&self, prefix: &str, cancel: &CancelToken) -> Vec<Completion> {
        let _ = (prefix, cancel);
        Vec::new()
    }
}

/// Changes what the model is told of the active tools.
pub trait Arranger: Send + Sync {
    /// Replaces tools of `active` by ones that are declared otherwise. `all` are the tools of the session. Gives the
    /// names of active tools that no request declares. Called while the session is locked.
    fn arrange(&self, active: &mut [Arc<dyn Tool>], all: &[Arc<dyn Tool>], config: &Config) -> Vec<String>;
}

/// Draws parts of the conversation in place of the program.
pub trait Renderer: Send + Sync {
    /// True if it draws such a part: a `message` or an `entry` of the custom type `name`, a call (`toolCall`) or
    /// a result (`toolResult`) of the tool `name`, or changes the Markdown (`markdown`) of the surface `name`.
    fn draws(&self, kind: &str, name: &str) -> bool;

    /// The lines of a part, which has the form of the request `render` of extensions, or the text of a `markdown`; none
    /// for the program's own form. Waits for others.
    fn draw(&self, part: Value, cancel: &CancelToken) -> Option<Vec<String>>;
}

/// Changes a Markdown text by several parts, one after another.
struct Chain(Vec<Arc<dyn Renderer>>);

impl Renderer for Chain {
    fn draws(&self, kind: &str, name: &str) -> bool {
        self.0.iter().any(|renderer| renderer.draws(kind, name))
    }

    fn draw(&self, mut part: Value, cancel: &CancelToken) -> Option<Vec<String>> {
        for renderer in &self.0 {
            // One that fails leaves the text as it is.
            if let Some(text) = renderer.draw(part.clone(), cancel) {
                part["text"] = text.concat().into();
            }
        }
        part["text"].as_str().map(|text| vec![text.to_owned()])
    }
}

/// The text around the cursor of the editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub lines: Vec<String>,
    /// Line of the cursor, and its UTF-16 unit in there.
    pub line: usize,
    pub column: usize,
    /// True if the user has asked for proposals.
    pub is_asked: bool,
}

/// Proposes texts for the editor.
pub trait Completer: Send + Sync {
    /// The text before the cursor that a proposal replaces, and the proposals; none if it knows nothing here. Waits
    /// for others.
    fn complete(&self, typed: &Typed, cancel: &CancelToken) -> Option<(String, Vec<Completion>)>;
}

/// A proposal for the arguments of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub value: String,
    pub label: String,
    pub description: Option<String>,
}

/// A command under the name that it is called by.
#[derive(Clone)]
pub struct NamedCommand {
    /// Its own name, with `:1`, `:2` where several owners have one.
    pub name: String,
    pub command: Arc<dyn SlashCommand>,
    pub source: Value,
}

/// The additions of a session.
#[derive(Clone, Default)]
pub(super) struct Additions(Vec<(Owner, Addition)>);

impl Additions {
    /// Replaces what `owner` adds. Gives the names of the tools that are new.
    pub fn set(&mut self, owner: Owner, addition: Addition) -> Vec<String> {
        let before: Vec<String> = self.of(&owner).map(names).unwrap_or_default();
        self.remove(&owner);
        let new = names(&addition).into_iter().filter(|name| !before.contains(name)).collect();
        let at = self.0.partition_point(|(known, _)| *known < owner);
        self.0.insert(at, (owner, addition));
        new
    }

    pub fn remove(&mut self, owner: &Owner) {
        self.0.retain(|(known, _)| known != owner);
    }

    pub fn of(&self, owner: &Owner) -> Option<&Addition> {
        self.0.iter().find(|(known, _)| known == owner).map(|(_, addition)| addition)
    }

    /// Every tool that can be reached. The first of several with one name counts.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let tools = self.0.iter().enumerate().flat_map(move |(at, (_, addition))| {
            addition.tools.iter().filter(move |tool| {
                let earlier = self.0.get(..at).unwrap_or_default();
                !earlier.iter().any(|(_, other)| names(other).contains(&tool.info().spec.name))
            })
        });
        tools.filter(|tool| tool.info().exposure != Exposure::Hidden)
    }

    /// The `sourceInfo` of the tool with this name.
    pub fn source(&self, name: &str) -> Option<&Value> {
        let has = |addition: &Addition| names(addition).iter().any(|known| known == name);
        self.0.iter().find(|(_, addition)| has(addition)).map(|(_, addition)| &addition.source)
    }

    /// Actions of keys. The last one of a key counts.
    pub fn shortcuts(&self) -> impl Iterator<Item = (&str, &Arc<dyn SlashCommand>)> {
        let all = self.0.iter().rev().flat_map(|(_, addition)| &addition.shortcuts);
        all.map(|(key, action)| (key.as_str(), action))
    }

    pub fn completers(&self) -> Vec<Arc<dyn Completer>> {
        self.0.iter().flat_map(|(_, addition)| addition.completers.iter().cloned()).collect()
    }

    /// Arranges the active tools. Gives the names of those that no request declares.
    pub fn arrange(
        &self,
        active: &mut [Arc<dyn Tool>],
        all: &[Arc<dyn Tool>],
        config: &Config,
    ) -> Vec<String> {
        let arrangers = self.0.iter().filter_map(|(_, addition)| addition.arranger.as_ref());
        arrangers.flat_map(|arranger| arranger.arrange(active, all, config)).collect()
    }

    pub fn models(&self) -> LentModels {
        let mut all = LentModels::default();
        self.0.iter().for_each(|(_, addition)| all.add(addition.models.clone()));
        all
    }

    /// The first of several MCP servers with one name counts.
    pub fn servers(&self) -> Vec<&RegisteredServer> {
        let mut servers: Vec<&RegisteredServer> = Vec::new();
        for server in self.0.iter().flat_map(|(_, addition)| &addition.servers) {
            if servers.iter().all(|known| known.name != server.name) {
                servers.push(server);
            }
        }
        servers
    }

    pub fn renderer(&self, kind: &str, name: &str) -> Option<Arc<dyn Renderer>> {
        let renderers = self.0.iter().filter_map(|(_, addition)| addition.renderer.as_ref());
        let mut renderers = renderers.filter(|renderer| renderer.draws(kind, name)).cloned();
        match kind {
            "markdown" => {
                let all: Vec<Arc<dyn Renderer>> = renderers.collect();
                (!all.is_empty()).then(|| Arc::new(Chain(all)) as Arc<dyn Renderer>)
            }
            _ => renderers.next(),
        }
    }

    pub fn add_sections(&self, sections: &mut Map<String, Value>) {
        for (name, text) in self.0.iter().flat_map(|(_, addition)| &addition.sections) {
            sections.insert(name.clone(), text.as_str().into());
        }
    }

    pub fn commands(&self) -> Vec<NamedCommand> {
        let all: Vec<(&Arc<dyn SlashCommand>, &Value)> = self
            .0
            .iter()
            .flat_map(|(_, addition)| addition.commands.iter().map(|command| (command, &addition.source)))
            .collect();
        let count = |name: &str, among: &[(&Arc<dyn SlashCommand>, &Value)]| {
            among.iter().filter(|(command, _)| command.name() == name).count()
        };
        let named = all.iter().enumerate().map(|(at, (command, source))| {
            let name = command.name();
            let name = match count(name, &all) {
                1 => name.to_owned(),
                _ => format!("{name}:{}", count(name, all.get(..=at).unwrap_or_default())),
            };
            NamedCommand { name, command: Arc::clone(command), source: Value::clone(source) }
        });
        named.collect()
    }
}

fn names(addition: &Addition) -> Vec<String> {
    addition.tools.iter().map(|tool| tool.info().spec.name.clone()).collect()
}

impl ToolOverrides {
    /// True if a tool that is added is active at first; none if it cannot be used at all. `settings` are the entries
    /// of `defaultTools`.
    pub(super) fn admit(&self, tool: &ToolInfo, settings: Option<&[String]>) -> Option<bool> {
        let name = &tool.spec.name;
        let is_excluded = self.excluded.iter().any(|pattern| selection::matches(pattern, name));
        if is_excluded || self.none || (self.read_only && !tool.reads_only) {
            return None;
        }
        let usual = tool.exposure.is_declared() && !tool.starts_inactive;
        let changed = |entries: &[String], usual: bool| {
            let mut names: Vec<String> = if usual { vec![name.clone()] } else { Vec::new() };
            selection::change(&mut names, entries);
            names.contains(name) || entries.contains(name)
        };
        let by_settings = changed(settings.unwrap_or_default(), usual);
        match &self.selection {
            Some(Selection::Only(entries)) if entries.contains(name) => Some(true),
            Some(Selection::Only(entries)) if !selection::is_mcp(name) => {
                entries.iter().any(|entry| selection::matches(entry, name)).then_some(true)
            }
            Some(Selection::Only(entries)) => {
                let is_matched = entries.iter().any(|entry| selection::matches(entry, name));
                // Tools of MCP servers stay within reach of other tools, unless the list speaks of such tools.
                let stays =
                    selection::is_mcp(name) && !entries.iter().any(|entry| entry.starts_with("mcp__"));
                (is_matched || stays).then_some(is_matched && usual)
            }
            Some(Selection::Change(entries)) => Some(changed(entries, by_settings)),
            None => Some(by_settings),
        }
    }
}

impl Config {
    /// True if an added tool is active at first; none if it cannot be used at all.
    pub fn admits(&self, tool: &ToolInfo) -> Option<bool> {
        let settings = self.settings.texts("defaultTools");
        self.over.tools.admit(tool, settings.as_deref())
    }
}

impl NamedCommand {
    /// The command in the form that other programs are told.
    pub fn to_json(&self) -> Value {
        let mut command = json!({"name": self.name, "source": "extension", "sourceInfo": self.source});
        if let Some(description) = self.command.description() {
            command["description"] = description.into();
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tool::{FnTool, ToolOutput};

    fn tool(name: &str, exposure: Exposure) -> Arc<dyn Tool> {
        let mut tool = FnTool::new(name, "", json!({"type": "object"}), |_| Ok(ToolOutput::default()));
        tool.info.exposure = exposure;
        Arc::new(tool)
    }

    struct Named(&'static str);

    impl SlashCommand for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn description(&self) -> Option<&str> {
            None
        }

        fn run(&self, _: &str, _: &CancelToken) -> Result<(), String> {
            Ok(())
        }
    }

    fn addition(tools: &[&str], commands: &[&'static str]) -> Addition {
        Addition {
            tools: tools.iter().map(|name| tool(name, Exposure::Direct)).collect(),
            commands: commands.iter().map(|name| Arc::new(Named(name)) as Arc<dyn SlashCommand>).collect(),
            sections: tools.iter().map(|name| ((*name).to_owned(), "text".to_owned())).collect(),
            ..Addition::default()
        }
    }

    #[test]
    fn owners_come_by_rank_and_a_name_has_one_owner() {
        let mut additions = Additions::default();
        let owner = |rank: usize, name: &str| Owner { rank, name: name.to_owned() };
        assert_eq!(additions.set(owner(2, "late"), addition(&["a", "b"], &["x", "y"])), ["a", "b"]);
        assert_eq!(additions.set(owner(1, "early"), addition(&["b", "c"], &["x"])), ["b", "c"]);
        let names = |additions: &Additions| -> Vec<String> {
            additions.tools().map(|tool| tool.info().spec.name.clone()).collect()
        };
        assert_eq!(names(&additions), ["b", "c", "a"]);
        let commands = |additions: &Additions| -> Vec<String> {
            additions.commands().into_iter().map(|command| command.name).collect()
        };
        assert_eq!(commands(&additions), ["x:1", "x:2", "y"]);
        // What is stated again replaces what was stated before.
        assert_eq!(additions.set(owner(2, "late"), addition(&["a", "d"], &[])), ["d"]);
        assert_eq!(names(&additions), ["b", "c", "a", "d"]);
        assert_eq!(commands(&additions), ["x"]);
        let mut sections = Map::new();
        additions.add_sections(&mut sections);
        assert_eq!(sections.keys().collect::<Vec<_>>(), ["b", "c", "a", "d"]);
        additions.remove(&owner(1, "early"));
        assert_eq!(names(&additions), ["a", "d"]);
    }

    #[test]
    fn a_tool_of_the_program_itself_gives_way() {
        let mut additions = Additions::default();
        let own = || Owner { rank: OWN, name: "own".into() };
        let other = || Owner { rank: 3, name: "other".into() };
        for order in [[own(), other()], [other(), own()]] {
            for owner in order {
                let name = if owner == own() { ["a", "b"] } else { ["b", "c"] };
                additions.set(owner, addition(&name, &[]));
            }
            let names: Vec<&str> = additions.tools().map(|tool| &*tool.info().spec.name).collect();
            assert_eq!(names, ["b", "c", "a"]);
            additions.remove(&other());
            assert_eq!(additions.tools().count(), 2);
            additions.remove(&own());
        }
    }

    #[test]
    fn the_command_line_and_the_settings_choose_among_added_tools() {
        let list = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let only = |text: &str| Some(Selection::Only(list(text)));
        let change = |text: &str| Some(Selection::Change(list(text)));
        let direct = Exposure::Direct;
        let rows: &[(Option<Selection>, &str, Exposure, Option<bool>)] = &[
            (None, "", direct, Some(true)),
            (None, "", Exposure::Deferred, Some(false)),
            (None, "-t", direct, Some(false)),
            (None, "+t", Exposure::Codemode, Some(true)),
            (None, "read t", Exposure::Codemode, Some(true)),
            (None, "read", direct, Some(true)),
            (only("read"), "", direct, None),
            (only("t*"), "", Exposure::Deferred, Some(true)),
            (change("-t"), "", direct, Some(false)),
            (change("+t"), "-t", direct, Some(true)),
            (change("+read"), "", direct, Some(true)),
        ];
        for (selection, settings, exposure, expected) in rows {
            let over = ToolOverrides { selection: selection.clone(), ..ToolOverrides::default() };
            let admitted = over.admit(tool("t", *exposure).info(), Some(&list(settings)));
            assert_eq!(admitted, *expected, "{selection:?} {settings}");
        }
        let refused = [
            ToolOverrides { none: true, ..ToolOverrides::default() },
            ToolOverrides { read_only: true, ..ToolOverrides::default() },
            ToolOverrides { excluded: list("t*"), ..ToolOverrides::default() },
        ];
        for over in refused {
            assert_eq!(over.admit(tool("t", direct).info(), None), None, "{over:?}");
        }
        let without_builtin = ToolOverrides { no_builtin: true, ..ToolOverrides::default() };
        assert_eq!(without_builtin.admit(tool("t", direct).info(), None), Some(true));
    }
}
