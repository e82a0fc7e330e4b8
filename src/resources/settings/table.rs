//! All settings, one row each. The table checks types, holds the defaults, and generates `pi config` and the
//! manual.

use super::form::{Form, LEVELS};
use crate::base::json::json;
use serde_json::Value;

/// A row of the table: one setting.
#[derive(Debug)]
pub struct Key {
    /// The names of nested objects and of the setting, separated by dots.
    pub path: &'static str,
    pub form: Form,
    pub preset: Preset,
    /// True if a project cannot set the value.
    pub is_global: bool,
    pub help: &'static str,
}

/// The default of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// No value. The text describes the behavior, and may be empty.
    Told(&'static str),
    Flag(bool),
    Count(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
}

#[derive(Debug)]
pub struct Group {
    pub title: &'static str,
    pub keys: &'static [Key],
}

const fn key(path: &'static str, form: Form, preset: Preset, help: &'static str) -> Key {
    Key { path, form, preset, is_global: false, help }
}

const fn global(path: &'static str, form: Form, preset: Preset, help: &'static str) -> Key {
    Key { is_global: true, ..key(path, form, preset, help) }
}

impl Preset {
    /// Returns the default as a JSON value; `None` if there is none.
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Told(_) => None,
            Self::Flag(flag) => Some(flag.into()),
            Self::Count(count) => Some(count.into()),
            Self::Text(text) => Some(text.into()),
            Self::Texts(texts) => Some(json!(texts)),
        }
    }
}

/// Returns the row of the setting `path`.
pub fn find(path: &str) -> Option<&'static Key> {
    keys().find(|key| key.path == path)
}

pub fn keys() -> impl Iterator<Item = &'static Key> {
    GROUPS.iter().flat_map(|group| group.keys)
}

const QUEUE_MODES: &[&str] = &["all", "one-at-a-time"];
const AUTO: &[&str] = &["auto"];
const TOKENS: &[&str] = &["reserveTokens", "keepRecentTokens"];
const BUDGETS: &[&str] = &["minimal", "low", "medium", "high"];

use Form::{
    Amount, Count, CountOr, Counts, Flag, FlagOr, Hooks, Levels, List, ModelCounts, OneOf, Range, Seconds,
    Text, TextLists, Texts, Timeout,
};
use Preset::Told;

#[rustfmt::skip]
pub const GROUPS: &[Group] = &[
    Group { title: "Model", keys: &[
        key("defaultProvider", Text, Told(""), "provider of the model when none is named"),
        key("defaultModel", Text, Told(""), "the model when none is named"),
        key("defaultThinkingLevel", OneOf(LEVELS), Preset::Text("medium"), "how long the model thinks"),
        key("modelThinkingLevels", Levels, Told(""), "a level for each of `provider/model`"),
        key("thinkingBudgets", Counts(BUDGETS), Told("as built in"), "tokens for `minimal`, `low`, `medium`, `high`"),
        key("enabledModels", Texts, Told("all"), "patterns of models to choose from, as in `--models`"),
        global("cacheWarming", OneOf(&["off", "streaming", "idle"]), Preset::Text("idle"), "keep the prompt cache of a model with a `promptCache` lifetime warm where that is expected to save $0.05: never; during runs; also for 30 minutes after a run. Never in print mode"),
        key("showCacheMissNotices", Flag, Preset::Flag(false), "a line for each answer that paid again for 20,000 tokens or $0.10 which the prompt cache should have had, for each request that keeps the cache warm, and for what a summary cost"),
        key("hideThinkingBlock", Flag, Preset::Flag(false), "do not show what the model thinks"),
    ]},
    Group { title: "Interaction", keys: &[
        key("steeringMode", OneOf(QUEUE_MODES), Preset::Text("one-at-a-time"), "how many waiting steering messages are handed over at once"),
        key("followUpMode", OneOf(QUEUE_MODES), Preset::Text("one-at-a-time"), "the same for follow-up messages"),
        key("externalEditor", Text, Told("by the environment"), "command that opens an editor; by default that of `$VISUAL` or `$EDITOR`"),
        key("doubleEscapeAction", OneOf(&["tree", "fork", "rewind", "none"]), Preset::Text("tree"), "what two Escapes do in an empty editor"),
        key("treeFilterMode", OneOf(&["default", "no-tools", "user-only", "labeled-only", "all"]), Preset::Text("default"), "what `/tree` shows at first"),
        global("promptHistory", Flag, Preset::Flag(true), "keep prompts for Up and Ctrl+R in later sessions, in `prompt-history.jsonl`"),
        global("hideSecrets", Flag, Preset::Flag(true), "models, sessions and the screen get `‹secret:NAME›` for keys that pi knows"),
        global("defaultProjectTrust", OneOf(&["ask", "always", "never"]), Preset::Text("ask"), "trust in projects that nothing is known about"),
    ]},
    Group { title: "Tools", keys: &[
        key("defaultTools", Texts, Preset::Texts(&["read", "bash", "edit", "write"]), "built-in tools; an empty list for none"),
        key("bash.timeoutSeconds", Seconds, Told("none"), "for commands whose call sets none"),
        key("bash.keepBackground", Flag, Preset::Flag(false), "background processes outlive pi; they need an output of their own: `cmd >log 2>&1 &`"),
        key("bash.outputCapBytes", Count, Preset::Count(1 << 30), "kept of one command's output"),
        global("undo.commands", OneOf(&["auto", "on", "off"]), Preset::Text("auto"), "what commands change can be undone: in folders of at most 10000 files and 64 MB, but not in print mode; always; never"),
        global("undo.maxBytes", Count, Preset::Count(1 << 30), "contents of a folder, where `undo.commands` is `on`"),
        key("codemode.mode", OneOf(&["on", "only"]), Preset::Text("on"), "while `codemode` is active the model calls other tools itself, too, or only by scripts"),
        key("codemode.inlineBudget", Count, Preset::Count(3000), "tokens of tools that the description of `codemode` declares"),
        key("mcp.directTokens", Count, Preset::Count(1500), "of declared tools of MCP servers; at most a tenth of the model's window. More are found by `tool_search`"),
        key("ask.timeoutSeconds", Seconds, Told("none"), "after which a question of the model gets the recommended answer"),
        key("jobs.wake", Flag, Preset::Flag(true), "the end of a background job is told to the model, also when it is idle"),
        key("shellPath", Text, Told("`/bin/bash`"), "the shell; may begin with `~`"),
        key("shellCommandPrefix", Text, Told(""), "put before every command, on a line of its own"),
    ]},
    Group { title: "Permissions", keys: &[
        global("permissions.mode", OneOf(&["writes", "all", "free", "read-only"]), Preset::Text("free"), "calls about which no rule says anything: those that may change something are asked about, all are, none is, or those that may change something are refused"),
        global("permissions.allow", Texts, Told(""), "calls that run without asking, such as `bash(cargo test *)`; see `pi docs permissions`"),
        key("permissions.ask", Texts, Told(""), "calls that are asked about whatever is allowed; a project adds to the user's"),
        key("permissions.deny", Texts, Told(""), "calls that are refused; a project adds to the user's"),
        global("permissions.folders", TextLists, Told(""), "further rules that allow, for each path of a project's folder"),
    ]},
    Group { title: "Limits", keys: &[
        global("sandbox.mode", OneOf(&["off", "workspace", "read-only"]), Preset::Text("off"), "what tools may write: all, this folder and temporary files, or nothing"),
        global("sandbox.network", Flag, Preset::Flag(false), "commands in the sandbox may use the network"),
        global("sandbox.writable", Texts, Told(""), "other folders that the workspace sandbox may write"),
        global("limits.turns", Count, Told("none"), "answers to one prompt"),
        global("limits.cost", Amount, Told("none"), "US dollars that the answers of one start of pi may cost"),
        global("limits.tokens", Count, Told("none"), "tokens that the answers of one start of pi may use"),
        global("limits.seconds", Seconds, Told("none"), "time for one prompt"),
        global("limits.sessionCost", Amount, Told("none"), "US dollars for a whole session"),
        global("limits.sessionTokens", Count, Told("none"), "tokens for a whole session"),
        global("helpers.concurrency", Count, Preset::Count(4), "helpers that ask models at once"),
        global("helpers.copyBytes", Count, Preset::Count(256 << 20), "bytes of files unknown to git that are copied at most for a helper with isolated"),
        global("helpers.fastModel", Text, Told("a small one of the session's provider, if one is known"), "the model `fast` of agents, such as `explore`"),
        global("helpers.turns", Count, Preset::Count(100), "answers of a helper after which it is told to finish; half as many later it is ended"),
        global("limits.loops", Flag, Preset::Flag(true), "end runs that repeat the same tool calls with the same results"),
    ]},
    Group { title: "Sessions and context", keys: &[
        key("sessionDir", Text, Told("in the agent folder"), "where sessions are kept"),
        key("session.sync", OneOf(&["always", "turn", "never"]), Preset::Text("turn"), "when the log is synced to disk"),
        key("compaction.enabled", Flag, Preset::Flag(true), "compact a conversation that grows too long"),
        key("compaction.reserveTokens", Count, Told("16,384 tokens; a quarter of a small window"), "tokens kept free of the window: compaction starts when less is left"),
        key("compaction.keepRecentTokens", Count, Told("20,000 tokens; less in a small window"), "tokens at the end that are not summarized"),
        key("compaction.modelOverrides", ModelCounts(TOKENS), Told(""), "the two numbers for each of `provider/model`"),
        key("compaction.model", Text, Told("the session's"), "`provider/model` that writes the summaries"),
        key("branchSummary.reserveTokens", Count, Preset::Count(16_384), "tokens kept free when a branch is summarized"),
        key("branchSummary.skipPrompt", Flag, Preset::Flag(false), "leave a branch without asking for a summary"),
    ]},
    Group { title: "Terminal", keys: &[
        key("theme", Text, Preset::Text("system"), "name of a theme, `light/dark`, or `system`: the terminal's own colours"),
        key("quietStartup", FlagOr(&["header"]), Preset::Flag(false), "no header at the start; `header`: only its first lines, without what was loaded"),
        key("tuiMode", OneOf(&["regular", "fullscreen"]), Preset::Text("regular"), "how the terminal is used"),
        key("fullscreenExitOutput", OneOf(&["transcript", "resume-hint"]), Preset::Text("transcript"), "what stays on screen after fullscreen mode"),
        key("fullscreenScrollbar", OneOf(&["auto", "always", "hidden"]), Preset::Text("auto"), "scrollbar in fullscreen mode"),
        key("fullscreenWheelScrollLines", CountOr("auto", 1, 100), Preset::Text("auto"), "lines for a step of the mouse wheel in fullscreen mode; `auto` is 3; five times as many with Alt"),
        key("fullscreenCopyOnSelect", Flag, Preset::Flag(true), "copy what is selected with the mouse in fullscreen mode at once"),
        key("editorMode", OneOf(&["plain", "vim"]), Preset::Text("plain"), "keys of the editor: as everywhere, or those of vim"),
        key("editorPaddingX", Range(0, 3), Preset::Count(0), "cells left and right in the editor"),
        key("outputPad", Range(0, 1), Preset::Count(1), "cells left and right of the transcript"),
        key("statusLine", Text, Told("built in"), "a footer of your own: a text with `{model}`, `{context}` and the like, or `!command` that prints a line"),
        key("display.density", OneOf(&["compact", "roomy"]), Preset::Text("compact"), "rows of calls: one where it says enough, or a card each"),
        key("autocompleteMaxVisible", Range(3, 20), Preset::Count(5), "rows of the completion list"),
        key("terminal.showImages", Flag, Preset::Flag(true), "show images where the terminal can"),
        key("terminal.imageWidthCells", Count, Preset::Count(60), "width of an image"),
        key("terminal.showTerminalProgress", Flag, Preset::Flag(false), "progress in the terminal's tab"),
        key("terminal.notify", Flag, Preset::Flag(false), "tell the desktop when a long run ends, or a question waits, in a window that is not looked at"),
        key("terminal.bell", Flag, Preset::Flag(false), "ring the bell when a run ends, or a question waits, in a window that is not looked at"),
        key("terminal.hyperlinks", FlagOr(AUTO), Preset::Text("auto"), "links that can be clicked"),
        key("terminal.images", FlagOr(&["kitty", "iterm2", "auto"]), Preset::Text("auto"), "how images are sent to the terminal"),
        key("terminal.trueColor", FlagOr(AUTO), Preset::Text("auto"), "24-bit colours"),
        key("terminal.bidi", FlagOr(AUTO), Preset::Text("auto"), "put right-to-left text into its order, for terminals that do not"),
        key("markdown.codeBlockIndent", Text, Preset::Text("  "), "put before each line of code"),
        key("markdown.mermaid", OneOf(&["off", "final", "streaming"]), Preset::Text("final"), "draw Mermaid diagrams: never; when they are complete; also while they arrive"),
    ]},
    Group { title: "Images", keys: &[
        key("images.autoResize", Flag, Preset::Flag(true), "make images small enough for the model"),
        key("images.blockImages", Flag, Preset::Flag(false), "send no image"),
    ]},
    Group { title: "Network", keys: &[
        key("enableInstallTelemetry", Flag, Preset::Flag(true), "tell OpenRouter and NVIDIA that pi asks, as `PI_TELEMETRY` does"),
        global("deviceId", Text, Told("made when it is needed"), "id of this installation, for the sign-in with ChatGPT"),
        global("httpProxy", Text, Told(""), "proxy where the environment names none"),
        key("httpIdleTimeoutMs", Timeout, Preset::Count(300_000), "milliseconds that a server may be silent; 0 waits for ever"),
        key("retry.enabled", Flag, Preset::Flag(true), "ask again after an answer that failed"),
        key("retry.maxRetries", Count, Preset::Count(3), "how often"),
        key("retry.baseDelayMs", Count, Preset::Count(2000), "first wait in milliseconds; each next is twice as long"),
        key("retry.maxAgentDelayMs", Count, Preset::Count(60_000), "longest wait in milliseconds"),
        key("retry.provider.timeoutMs", Timeout, Told("that of the HTTP idle timeout"), "milliseconds for one request"),
        key("retry.provider.maxRetries", Count, Preset::Count(0), "attempts inside one request"),
        key("retry.provider.maxRetryDelayMs", Count, Preset::Count(60_000), "longest wait in milliseconds that a server may ask for; 0 for any"),
    ]},
    Group { title: "Resources", keys: &[
        key("packages", List, Told(""), "sources of packages"),
        key("extensions", Texts, Told(""), "files and folders of extensions"),
        key("skills", Texts, Told(""), "files and folders of skills"),
        key("agents", Texts, Told(""), "files and folders of agents"),
        key("prompts", Texts, Told(""), "files and folders of prompt templates"),
        key("themes", Texts, Told(""), "files and folders of themes"),
        key("enableSkillCommands", Flag, Preset::Flag(true), "offer skills as `/skill:name` in completion"),
        key("npmCommand", Texts, Preset::Texts(&["npm"]), "command that installs packages"),
    ]},
    Group { title: "Hooks", keys: &[
        key("hooks", Hooks, Told(""), "commands that run at events: `pi docs hooks`"),
    ]},
    Group { title: "Notices", keys: &[
        key("warnings.anthropicExtraUsage", Flag, Preset::Flag(true), "warn where a subscription may cost extra"),
    ]},
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_sound() {
        let mut seen = Vec::new();
        for key in keys() {
            assert!(!seen.contains(&key.path), "{} is there twice", key.path);
            seen.push(key.path);
            assert!(!key.help.is_empty() && !key.help.ends_with('.'), "{}", key.path);
            if let Some(value) = key.preset.value() {
                assert!(key.form.fits(&value), "{}", key.path);
            }
            // No key lies inside the value of another.
            let inside = |other: &Key| key.path.starts_with(&format!("{}.", other.path));
            assert!(!keys().any(inside), "{}", key.path);
        }
    }

    #[test]
    fn words_of_the_command_line_are_read_by_the_form() {
        let rows: &[(&str, &str, Option<Value>)] = &[
            ("quietStartup", "true", Some(json!(true))),
            ("quietStartup", "yes", None),
            ("quietStartup", "header", Some(json!("header"))),
            ("defaultModel", "true", Some(json!("true"))),
            ("defaultTools", "read", Some(json!(["read"]))),
            ("defaultTools", "[\"read\", \"ls\"]", Some(json!(["read", "ls"]))),
            ("defaultTools", "[]", Some(json!([]))),
            ("editorPaddingX", "3", Some(json!(3))),
            ("editorPaddingX", "4", None),
            ("httpIdleTimeoutMs", "disabled", Some(json!("disabled"))),
            ("terminal.images", "false", Some(json!(false))),
            ("terminal.images", "kitty", Some(json!("kitty"))),
            ("terminal.images", "sixel", None),
            ("thinkingBudgets", "{\"low\": 5}", Some(json!({"low": 5}))),
            ("thinkingBudgets", "5", None),
        ];
        for (path, word, expected) in rows {
            let read = find(path).unwrap().form.read(word);
            assert_eq!(&read, expected, "{path} {word}");
        }
    }
}
