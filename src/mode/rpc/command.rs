//! The commands that a client can send: a row each, from which parsing, dispatch and the schema follow.
//!
//! A row has the command's name, its fields, the shape of its response, and the function that handles it. A
//! new command is a row here and a line in `docs/rpc.md`.

use super::field::{
    All, Args, Fields, PromptIn, count, host_tools, interrupt_mode, optional, queue_mode, streaming, switch,
    text, texts, thinking_level,
};
use super::reply::Reply;
use super::server::Server;
use super::{query, run, session, setting};
use crate::base::lenient;
use serde_json::{Map, Value};

/// The response to a successful command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// No data.
    Done,
    /// Data with this shape.
    Data(&'static str),
    /// A separate line with this `type`, as in the first protocol.
    Line(&'static str),
    /// No line: the command is itself a response to a request of the program.
    Silent,
}

use Response::{Data, Done, Line, Silent};

struct Row<A: Args> {
    name: &'static str,
    args: A,
    response: Response,
    run: fn(&Server, A::Values, Reply),
}

/// A row of the table, for any type of fields.
pub trait Command: Sync {
    fn name(&self) -> &'static str;

    /// The fields in the notation of `shape`.
    fn fields(&self) -> String;

    fn response(&self) -> Response;

    /// Reads the command's fields. The error describes the invalid field.
    fn read(&self, fields: &mut Fields) -> Result<Action, String>;
}

/// Runs a command whose fields have been read.
pub type Action = Box<dyn FnOnce(&Server, Reply) + Send>;

impl<A: Args> Command for Row<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn fields(&self) -> String {
        self.args.shape()
    }

    fn response(&self) -> Response {
        self.response
    }

    fn read(&self, fields: &mut Fields) -> Result<Action, String> {
        let (values, run) = (self.args.read(fields)?, self.run);
        Ok(Box::new(move |server, reply| run(server, values, reply)))
    }
}

const fn row<A: Args>(
    name: &'static str,
    args: A,
    response: Response,
    run: fn(&Server, A::Values, Reply),
) -> Row<A> {
    Row { name, args, response, run }
}

/// What became of a prompt.
const BEGUN: Response = Data(r#"{disposition: "started"|"queued"|"handled"}"#);
const QUEUED: Response = Data(r#"{disposition: "queued"|"handled"}"#);
const CANCELLED: Response = Data("{cancelled: boolean}");
const FORKED: Response = Data("{text: string, cancelled: boolean}");
const FORK_POINTS: Response = Data("{messages: {entryId: string, text: string}[]}");
const ACTIVE: Response = Data("{toolNames: string[]}");
const TOOLS: Response = Data(
    "{tools: {name: string, label: string, description: string, parameters: object, active: boolean, \
    readOnly: boolean}[]}",
);
const SLASH_COMMANDS: Response = Data(
    r#"{commands: {name: string, description?: string|null, source: "extension"|"prompt"|"skill", sourceInfo: {path: string, source: "local"|"auto"|"builtin", scope: "project"|"user"|"temporary", origin: string, baseDir?: string}}[]}"#,
);
const STATS: Response = Data(
    "{sessionFile?: string, sessionId: string, userMessages: integer, assistantMessages: integer, \
    toolCalls: integer, toolResults: integer, totalMessages: integer, \
    tokens: {input: integer, output: integer, cacheRead: integer, cacheWrite: integer, total: integer}, \
    cost: number, \
    contextUsage?: {tokens: integer|null, contextWindow: integer, percent: number|null}}",
);
const UNDONE: Response = Data(
    r#"{files: {path: string, action: "restore"|"remove"|"none", steps: integer[], done: boolean, problem: string|null, diff?: string}[], notes: string[]}"#,
);
/// A final or partial result of a tool that the client runs.
const RESULT: All =
    All("content?: string|(Block.text|Block.image)[], details?: any, isError?: boolean, terminate?: boolean");

/// Every command, in the order of `ready`.
#[rustfmt::skip]
pub static COMMANDS: &[&dyn Command] = &[
    &row("prompt", (PromptIn("message"), optional(streaming("streamingBehavior"))), BEGUN, run::prompt),
    &row("message", PromptIn("content"), BEGUN, run::message),
    &row("steer", PromptIn("message"), QUEUED, run::steer),
    &row("follow_up", PromptIn("message"), QUEUED, run::follow_up),
    &row("abort", (), Done, run::abort),
    &row("interrupt", (), Line("interrupted"), run::interrupt),
    &row("abort_and_prompt", PromptIn("message"), BEGUN, run::abort_and_prompt),
    &row("clear_queue", (), Data("{steering: string[], followUp: string[]}"), run::clear_queue),
    &row("new_session", optional(text("parentSession")), CANCELLED, session::new_session),
    &row("get_state", (), Data("State"), query::state),
    &row("get_messages", (optional(count("offset")), optional(count("limit"))),
        Data("{messages: Message[], total?: integer, nextOffset?: integer|null}"), query::messages),
    &row("get_entries", optional(text("since")), Data("{entries: Entry[], leafId: string|null}"), query::entries),
    &row("get_tree", (), Data("{tree: Node[], leafId: string|null}"), query::tree),
    &row("navigate_tree",
        (text("targetId"), optional(switch("summarize")), optional(text("customInstructions")),
            optional(switch("replaceInstructions")), optional(text("label"))),
        Data("{cancelled: boolean, aborted?: boolean, editorText?: string, summaryEntry?: Entry}"),
        session::navigate_tree),
    &row("set_plan_mode", switch("enabled"), Done, setting::plan_mode),
    &row("btw", text("question"), Data("{answer: string}"), query::btw),
    &row("handoff", text("goal"), FORKED, session::handoff),
    &row("undo", (optional(text("to")), optional(count("count")), optional(switch("force")), optional(switch("dryRun"))),
        UNDONE, session::undo),
    &row("set_model", (text("provider"), text("modelId")), Data("Model"), setting::model),
    &row("cycle_model", (), Data("{model: Model, thinkingLevel: Thinking, isScoped: boolean}|null"),
        setting::cycle_model),
    &row("get_available_models", (), Data("{models: Model[]}"), query::available_models),
    &row("set_thinking_level", thinking_level("level"), Done, setting::thinking_level),
    &row("cycle_thinking_level", (), Data("{level: Thinking}|null"), setting::cycle_thinking_level),
    &row("get_available_thinking_levels", (), Data("{levels: Thinking[]}"), query::thinking_levels),
    &row("set_steering_mode", queue_mode("mode"), Done, setting::steering_mode),
    &row("set_follow_up_mode", queue_mode("mode"), Done, setting::follow_up_mode),
    &row("set_interrupt_mode", interrupt_mode("mode"), Done, setting::interrupt_mode),
    &row("compact", optional(text("customInstructions")), Data("Compacted"), session::compact),
    &row("set_auto_compaction", switch("enabled"), Done, setting::auto_compaction),
    &row("set_auto_retry", switch("enabled"), Done, setting::auto_retry),
    &row("abort_retry", (), Done, run::abort_retry),
    &row("bash", (text("command"), optional(switch("excludeFromContext"))),
        Data("{output: string, exitCode?: integer, cancelled: boolean, truncated: boolean, fullOutputPath?: string}"),
        run::bash),
    &row("job",
        All(r#"op: "list"|"start"|"tail"|"wait"|"send"|"stop", job?: string, command?: string, pattern?: string, port?: integer, timeout?: number, text?: string, lines?: integer"#),
        Data("{text: string, jobs: {id: string, command: string, running: boolean, exitCode: integer|null, log: string}[]}"),
        run::job),
    &row("helper", All(r#"op: "list"|"steer"|"stop", helper?: string, text?: string"#),
        Data("{helpers: any[]}"), run::helper),
    &row("abort_bash", (), Done, run::abort_bash),
    &row("get_session_stats", (), STATS, query::session_stats),
    &row("export_html", optional(text("outputPath")), Data("{path: string}"), query::export_html),
    &row("switch_session", text("sessionPath"), CANCELLED, session::switch_session),
    &row("fork", text("entryId"), FORKED, session::fork),
    &row("branch", text("entryId"), FORKED, session::fork),
    &row("clone", (), CANCELLED, session::clone),
    &row("get_fork_messages", (), FORK_POINTS, query::fork_messages),
    &row("get_branch_messages", (), FORK_POINTS, query::fork_messages),
    &row("get_last_assistant_text", (), Data("{text: string|null}"), query::last_assistant_text),
    &row("set_session_name", text("name"), Done, setting::session_name),
    &row("get_commands", (), SLASH_COMMANDS, query::commands),
    &row("get_tools", (), TOOLS, query::tools),
    &row("set_active_tools", texts("toolNames"), ACTIVE, setting::active_tools),
    &row("register_tools", host_tools("tools"), ACTIVE, setting::register_tools),
    &row("unregister_tools", texts("toolNames"), ACTIVE, setting::unregister_tools),
    &row("reload", (), Done, session::reload),
    &row("ping", (), Done, |_, (), reply| reply.done()),
    &row("set_cumulative_events", switch("enabled"), Done, setting::cumulative_events),
    &row("extension_ui_response",
        All("value?: string, confirmed?: boolean, cancelled?: boolean, reason?: string, arguments?: object"), Silent, run::answered),
    &row("tool_call_update", RESULT, Silent, run::tool_updated),
    &row("tool_call_response", RESULT, Silent, run::tool_ended),
];

/// The names of the commands that have a response.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter(|command| command.response() != Silent).map(|command| command.name())
}

/// A command line of the client, with the data for its response.
pub struct Request {
    /// Echoed in the response.
    pub id: Option<Value>,
    /// The `type`; `None` if it is missing or not a string.
    pub name: Option<String>,
    /// The action; the error describes what is invalid in the command.
    pub action: Result<Action, String>,
}

/// Parses one line. The error describes why it is not JSON.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    let value: Value = lenient::read(line).map_err(|error| error.to_string())?;
    // What is no object has no fields, and so is no known command.
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let id = fields.remove("id").filter(|id| !id.is_null());
    let name = match fields.remove("type") {
        Some(Value::String(name)) => Some(name),
        _ => None,
    };
    let wanted = name.as_deref().unwrap_or("undefined");
    let action = match COMMANDS.iter().find(|command| name.is_some() && command.name() == wanted) {
        Some(command) => command.read(&mut Fields(fields)),
        None => Err(format!("Unknown command: {wanted}")),
    };
    Ok(Request { id, name, action })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use std::collections::BTreeSet;

    #[track_caller]
    fn check(line: &str, expected: Result<(), &str>) {
        let request = parse(line.as_bytes()).unwrap();
        assert_eq!(request.id, None);
        assert_eq!(request.action.map(drop), expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn what_is_no_command_is_named() {
        check(r#"{"type":"teleport"}"#, Err("Unknown command: teleport"));
        for line in [r#"{"type":7}"#, "{}", "null", "[]", "5", "\"prompt\""] {
            check(line, Err("Unknown command: undefined"));
        }
        for line in ["", "x", "{", "{\"type\":\"\\ud8\"}"] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn what_no_string_can_hold_is_replaced() {
        let lines: [&[u8]; 2] = [
            br#"{"id":"1","type":"set_thinking_level","level":"x \ud83d"}"#,
            b"{\"id\":\"1\",\"type\":\"set_thinking_level\",\"level\":\"x \xff\"}",
        ];
        for line in lines {
            let request = parse(line).unwrap();
            assert_eq!(request.id, Some(json!("1")));
            assert_eq!(request.action.map(drop), Err("Unknown level \"x \u{fffd}\"".to_owned()));
        }
    }

    #[test]
    fn ids_are_kept_as_they_are() {
        for id in [json!("a"), json!(7), json!({"x": [1]})] {
            let line = json!({"id": id, "type": "ping"}).to_string();
            assert_eq!(parse(line.as_bytes()).unwrap().id, Some(id));
        }
    }

    #[test]
    fn the_manual_has_every_command_and_no_other() {
        let page = include_str!("../../docs/rpc.md");
        let word = regex::Regex::new(r#"[`"]([a-z]+(?:_[a-z]+)*)[`"]"#).unwrap();
        let words = |text: &str| -> BTreeSet<String> {
            word.captures_iter(text).map(|found| found[1].to_owned()).collect()
        };
        // The tables of commands have the commands in their first column.
        let (mut in_tables, mut is_table) = (BTreeSet::new(), false);
        for line in page.lines() {
            is_table = line.starts_with("| command |") || is_table && line.starts_with('|');
            if is_table {
                in_tables.append(&mut words(line.split('|').nth(1).unwrap()));
            }
        }
        let declared: BTreeSet<String> = COMMANDS.iter().map(|command| command.name().to_owned()).collect();
        assert_eq!(declared.len(), COMMANDS.len(), "a name is declared twice");
        let unknown: Vec<_> = in_tables.difference(&declared).collect();
        assert!(unknown.is_empty(), "the manual has commands that are not there: {unknown:?}");
        let everywhere = words(page);
        let missing: Vec<_> = declared.difference(&everywhere).collect();
        assert!(missing.is_empty(), "the manual is without {missing:?}");
    }
}
