//! `pi docs schema extension`: the messages between pi and its extensions, as the page `extensions` of the manual
//! describes them. The shapes are in the notation of RPC mode.

use crate::base::json::json;
use crate::mode::rpc;
use serde_json::{Map, Value};

/// Method, fields of the params besides `extension`, and result.
type Row = (&'static str, &'static str, &'static str);

/// Requests of pi.
const REQUESTS: &[Row] = &[
    (
        "initialize",
        "protocolVersion: integer, version: string, referenceVersion: string, mode: string, hasUI: boolean, cwd: string, agentDir: string, executable?: string|null, isProjectTrusted: boolean, extensions: {id: string, path: string, args: string[], sourceInfo: any}[], flags: object",
        "{protocolVersion: integer, *: any}",
    ),
    ("event", "event: {type: string, *: any}", "object|null"),
    ("tool.prepare", "name: string, arguments: object", "{arguments: object}"),
    (
        "tool.call",
        "toolCallId: string, name: string, arguments: object, model: {provider: string, id: string}",
        "object|string|null",
    ),
    ("command.run", "name: string, arguments: string", "any"),
    ("command.complete", "name: string, prefix: string", "{value: string, *: any}[]|null"),
    ("shortcut.run", "key: string", "any"),
    (
        "component.render",
        "component: string, width: integer, rows: integer, screenColumns: integer",
        "{lines: string[], cursor?: {row: integer, column: integer}, overlayOptions?: object, hidden?: boolean}|null",
    ),
    (
        "render",
        "kind: string, width: integer, expanded: boolean, message?: object, entry?: object, toolCallId?: string, toolName?: string, args?: object, result?: object, isError?: boolean, isPartial?: boolean, durationMs?: integer|null, executionStarted?: boolean, argsComplete?: boolean",
        "{lines: string[]}|null",
    ),
    (
        "markdown.transform",
        "kind: string, width: integer, expanded: boolean, text: string, context: {messageType: string, isStreaming: boolean, availableWidth: integer}",
        "{text: string}",
    ),
    (
        "completer.complete",
        "completer: string, lines: string[], line: integer, column: integer, force: boolean",
        "{prefix: string, items: object[]}|null",
    ),
    (
        "provider.stream",
        "provider: string, stream: string, model: object, messages: object[], thinkingLevel: string, maxTokens?: integer|null, sessionId?: string|null, apiKey?: string|null",
        "{stopReason?: string, usage?: object, errorMessage?: string, responseId?: string}",
    ),
    (
        "provider.login",
        "provider: string",
        "{access: string, refresh?: string, expires: number, *: any}|{type: \"api_key\", key: string, *: any}",
    ),
    (
        "provider.refresh",
        "provider: string, credentials: object",
        "{access: string, refresh?: string, expires: number, *: any}",
    ),
    ("provider.key", "provider: string, credentials: object", "{apiKey: string}"),
    ("provider.models", "provider: string, credentials: object, models: object[]", "{models: object[]}"),
    (
        "model.route",
        "provider: string, id: string, model: object, thinkingLevel: string, reason: string, messages: object[], previous?: {model: object, thinkingLevel: string|null}, failed?: {model: object, thinkingLevel: string|null, message: object}, state?: any",
        "{model: {provider: string, id: string, *: any}, thinkingLevel: string, state?: any}",
    ),
    ("shutdown", "", "any"),
];

/// Notifications of pi.
const TOLD: &[Row] = &[
    ("event", "event: {type: string, *: any}", ""),
    ("component.input", "component: string, data: string, key: string", ""),
    ("component.focus", "component: string, focused: boolean", ""),
    ("component.closed", "component: string", ""),
    ("tool.progress", "id: any, content: any, details?: any", ""),
    ("bus.event", "channel: string, data: any", ""),
    ("$/cancelRequest", "id: integer", ""),
];

/// Notifications of extensions. Each call of an extension may be one, too.
const TELLS: &[Row] = &[
    ("loading", "", ""),
    ("tool.update", "toolCallId: string, content?: any, details?: any", ""),
    ("provider.event", "stream: string, event: {type: string, *: any}", ""),
    ("$/cancelRequest", "id: any", ""),
];

/// Calls of extensions.
const CALLS: &[Row] = &[
    ("loaded", "error?: string, *: any", "null"),
    ("register", "*: any", "null"),
    ("unregister", "*: any", "null"),
    (
        "session.state",
        "",
        "{sessionId: string, cwd: string, leafId: string|null, isIdle: boolean, hasPendingMessages: boolean, model: object, thinkingLevel: string, activeTools: string[], contextUsage: object|null, sessionFile?: string, sessionName?: string}",
    ),
    ("session.header", "", "object"),
    (
        "session.entries",
        "since?: string",
        "{entries: object[], leafId: string|null, sessionId: string, since: string|null}",
    ),
    ("session.branch", "from?: string", "{entries: object[]}"),
    ("session.messages", "", "{messages: object[]}"),
    ("session.tree", "", "{tree: any, leafId: string|null}"),
    ("session.systemPrompt", "options?: object", "{text: string, sections?: object, options?: object}"),
    (
        "session.preview",
        "event: string, entries?: object[]",
        "{contextEntries: object[], contextMessages: object[], llmMessages: object[], pendingMessages: object[], canContinue: boolean}",
    ),
    (
        "session.sendMessage",
        "message: {customType: string, content: any, *: any}, triggerTurn?: boolean, deliverAs?: string, wait?: boolean",
        "null",
    ),
    (
        "session.sendUserMessage",
        "content: any, deliverAs?: string, expandPromptTemplates?: boolean, wait?: boolean",
        "null",
    ),
    ("session.appendEntry", "customType: string, data?: any", "{id: string}"),
    ("session.setName", "name: string", "null"),
    ("session.setLabel", "entryId: string, label?: string|null", "null"),
    ("session.abort", "", "null"),
    ("session.waitForIdle", "", "null"),
    ("session.compact", "customInstructions?: string|null", "object"),
    ("session.new", "parentSession?: string|null, setup?: object[]|null", "{cancelled: boolean}"),
    ("session.fork", "entryId: string, position?: string|null", "{cancelled: boolean, text?: string}"),
    ("session.switch", "sessionPath: string", "{cancelled: boolean}"),
    (
        "session.navigate",
        "targetId: string, summarize?: boolean, customInstructions?: string, replaceInstructions?: boolean, label?: string",
        "{cancelled: boolean, editorText?: string, *: any}",
    ),
    ("session.reload", "", "null"),
    ("session.shutdown", "", "null"),
    ("models.list", "all?: boolean|null, type?: string", "{models: object[]}"),
    ("models.classify", "provider: string, modelId: string, context: object", "object"),
    ("models.generateImages", "provider: string, modelId: string, context: object", "object"),
    ("models.current", "", "object"),
    ("models.scoped", "", "{models: object[]}"),
    ("models.set", "provider: string, modelId: string", "{ok: boolean}"),
    ("models.thinkingLevels", "", "{levels: string[], current: string}"),
    ("models.setThinkingLevel", "level: string", "{level: string}"),
    (
        "models.complete",
        "provider?: string, modelId?: string, messages: object[], systemPrompt?: string, tools?: object[], thinkingLevel?: string, maxTokens?: integer",
        "object",
    ),
    ("tools.list", "", "{tools: object[]}"),
    ("tools.active", "", "{names: string[]}"),
    ("tools.setActive", "names: string[]", "{names: string[]}"),
    (
        "tools.execute",
        "toolCallId?: string, name: string, arguments?: object, builtin?: boolean",
        "{content: any, isError: boolean, details?: any, structuredContent?: any}",
    ),
    ("mcp.servers", "", "{servers: {name: string, config: object, extensionPath: string}[]}"),
    ("commands.list", "", "{commands: object[]}"),
    (
        "exec",
        "command: string, args?: string[], cwd?: string, timeout?: integer, maxBuffer?: integer",
        "{stdout: string, stderr: string, code: integer, killed: boolean, truncated: boolean}",
    ),
    ("settings.get", "", "object"),
    ("flags.get", "name: string", "{value: any}"),
    ("bus.emit", "channel: string, data?: any", "null"),
    ("bus.on", "channel: string", "null"),
    ("bus.off", "channel: string", "null"),
    (
        "auth.open",
        "provider: string, url: string, instructions?: string, userCode?: string, expiresInSeconds?: integer",
        "null",
    ),
    (
        "auth.prompt",
        "provider: string, message: string, type?: string, placeholder?: string, options?: {id: string, label: string, *: any}[]",
        "{value: string|null}",
    ),
    ("auth.progress", "provider: string, message: string", "null"),
    ("log", "level?: string, message: string, event?: string", "null"),
    ("ui.select", "title: string, options: string[], timeout?: integer", "{value: string|null}"),
    ("ui.confirm", "title: string, message?: string, timeout?: integer", "{confirmed: boolean}"),
    ("ui.input", "title: string, placeholder?: string, timeout?: integer", "{value: string|null}"),
    ("ui.editor", "title: string, prefill?: string", "{value: string|null}"),
    ("ui.notify", "message: string, type?: string", "null"),
    ("ui.desktopNotify", "title: string, body?: string", "null"),
    ("ui.setStatus", "key: string, text?: string|null", "null"),
    ("ui.setWidget", "key: string, lines?: string[], component?: string, placement?: string", "null"),
    ("ui.setHeader", "lines?: string[], component?: string", "null"),
    ("ui.setFooter", "lines?: string[], component?: string", "null"),
    ("ui.setTitle", "title: string", "null"),
    ("ui.setWorkingMessage", "message?: string|null", "null"),
    ("ui.setWorkingVisible", "visible: boolean", "null"),
    ("ui.setWorkingIndicator", "frames?: string[], intervalMs?: integer", "null"),
    ("ui.setHiddenThinkingLabel", "label?: string|null", "null"),
    ("ui.setToolsExpanded", "expanded: boolean", "null"),
    ("ui.toolsExpanded", "", "{expanded: boolean}"),
    ("ui.setEditorText", "text: string", "null"),
    ("ui.pasteToEditor", "text: string", "null"),
    ("ui.getEditorText", "", "{text: string}"),
    ("ui.setEditor", "component?: string|null", "null"),
    ("ui.editorRender", "width: integer", "{lines?: string[], cursor?: {row: integer, column: integer}}"),
    ("ui.editorInput", "data: string", "null"),
    (
        "ui.custom",
        "component: string, overlay?: boolean, overlayOptions?: object, blocked?: {kind: string, message: string}, *: any",
        "{result?: any}",
    ),
    ("ui.redraw", "component?: string, toolCallId?: string", "null"),
    ("ui.close", "component: string, result?: any", "null"),
    ("ui.focus", "component: string, focused: boolean", "null"),
    ("ui.setHidden", "component: string, hidden: boolean", "null"),
    ("ui.addCompleter", "completer: string, triggers?: string[]", "null"),
    (
        "ui.theme",
        "name?: string|null",
        "{name?: string, path?: string|null, colors?: object, colorMode?: string}",
    ),
    ("ui.themes", "", "{themes: any}"),
    ("ui.setTheme", "name: string", "{success?: boolean, error?: string}"),
    ("ui.keybindings", "", "object"),
    ("ui.statuses", "", "{statuses: object}"),
];

/// The schema of a line, in either direction. `$defs` has the params and the result of each method.
pub fn schema() -> Value {
    let mut defs = Map::new();
    let mut sides = Vec::new();
    for (side, requests, notifications) in
        [("FromPi", REQUESTS, TOLD.to_vec()), ("FromExtension", CALLS, [TELLS, CALLS].concat())]
    {
        let id = if side == "FromPi" { "id: integer" } else { "id: integer|string" };
        let all = requests.iter().map(|row| (row, id)).chain(notifications.iter().map(|row| (row, "")));
        let mut choices = Vec::new();
        for ((method, params, result), id) in all {
            let params =
                [if side == "FromPi" { "extension?: string" } else { "extension?: string|null" }, params];
            let params = params.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
            let mut shape = rpc::compile(&format!("{{jsonrpc: \"2.0\", params: {{{params}}}}}"));
            shape["properties"]["method"] = json!({ "const": method });
            let mut required = vec!["jsonrpc", "method", "params"];
            if !id.is_empty() {
                let named = rpc::compile(&format!("{{{id}}}"));
                shape["properties"]["id"] = named["properties"]["id"].clone();
                required.push("id");
                defs.insert(format!("{side}.{method}.result"), rpc::compile(result));
            }
            shape["required"] = json!(required);
            let kind = if id.is_empty() { "notification." } else { "" };
            let name = format!("{side}.{kind}{}", method.trim_start_matches("$/"));
            choices.push(json!({"$ref": format!("#/$defs/{name}")}));
            defs.insert(name, shape);
        }
        choices.push(json!({"$ref": "#/$defs/Answer"}));
        defs.insert(side.to_owned(), json!({ "anyOf": choices }));
        sides.push(json!({"$ref": format!("#/$defs/{side}")}));
    }
    let answer = "{jsonrpc: \"2.0\", id: any, result: any}|{jsonrpc: \"2.0\", id: any, error: {code: integer, message: string, data?: any}}";
    defs.insert("Answer".to_owned(), rpc::compile(answer));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A message between pi and an extension, version 1 of the protocol",
        "anyOf": sides,
        "$defs": defs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::schema::faults;
    use std::collections::{BTreeSet, HashMap};

    /// What pi and an extension, written with all that it may leave out, said to each other: `from` and `message`.
    const RECORDED: &str = include_str!("../../tests/data/extension.jsonl");

    fn part(name: &str) -> Value {
        let mut whole = schema();
        whole["$ref"] = format!("#/$defs/{name}").into();
        whole.as_object_mut().unwrap().remove("anyOf");
        whole
    }

    #[test]
    fn a_recorded_session_fits() {
        let (pi, extension) = (part("FromPi"), part("FromExtension"));
        let mut open: HashMap<String, String> = HashMap::new();
        let mut count = 0;
        for line in RECORDED.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (from, message) = (line["from"].as_str().unwrap(), &line["message"]);
            let whole = if from == "FromPi" { &pi } else { &extension };
            assert_eq!(faults(message, whole), [""; 0], "{from} {message}");
            let other = if from == "FromPi" { "FromExtension" } else { "FromPi" };
            if let Some(method) = message["method"].as_str() {
                open.insert(format!("{from} {}", message["id"]), method.to_owned());
            } else if let (Some(result), Some(method)) =
                (message.get("result"), open.get(&format!("{other} {}", message["id"])))
            {
                assert_eq!(
                    faults(result, &part(&format!("{other}.{method}.result"))),
                    [""; 0],
                    "{method} {result}"
                );
                count += 1;
            }
        }
        assert!(count > 20, "{count} answers");
    }

    #[test]
    fn a_wrong_message_does_not_fit() {
        let (pi, extension) = (part("FromPi"), part("FromExtension"));
        for (whole, message) in [
            (&pi, json!({"jsonrpc": "2.0", "id": 1, "method": "ui.notify", "params": {"message": "x"}})),
            (&extension, json!({"jsonrpc": "2.0", "id": 1, "method": "ui.notify", "params": {}})),
            (&extension, json!({"jsonrpc": "2.0", "id": 1, "method": "no.such", "params": {}})),
            (&pi, json!({"id": 1, "result": null})),
        ] {
            assert!(!faults(&message, whole).is_empty(), "{message}");
        }
    }

    #[test]
    fn the_manual_has_all_methods_and_no_others() {
        let manual = include_str!("../docs/extensions.md");
        let rows = manual.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
        let named = rows.flat_map(|(first, _)| {
            let mut room = "";
            let names: Vec<&str> = first.split(", ").map(|name| name.trim_matches('`')).collect();
            let names: Vec<String> = names
                .into_iter()
                .map(|name| match name.split_once('.') {
                    Some((before, _)) => {
                        room = before;
                        name.to_owned()
                    }
                    None if room.is_empty() => name.to_owned(),
                    None => format!("{room}.{name}"),
                })
                .collect();
            names
        });
        let named: BTreeSet<String> = named.collect();
        // It has a chapter of its own.
        let known = REQUESTS.iter().chain(CALLS).map(|row| row.0).filter(|name| *name != "initialize");
        let known: BTreeSet<&str> = known.collect();
        let missing: Vec<&&str> = known.iter().filter(|name| !named.contains(**name)).collect();
        assert_eq!(missing, [] as [&&str; 0]);
        let rooms = ["session.", "models.", "tools.", "ui.", "bus.", "component."];
        let strange: Vec<&String> = named
            .iter()
            .filter(|name| rooms.iter().any(|room| name.starts_with(room)) && !known.contains(&***name))
            .collect();
        assert_eq!(strange, [] as [&String; 0]);
    }
}
