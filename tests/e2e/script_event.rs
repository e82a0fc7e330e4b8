//! Events of TypeScript extensions: what handlers see, and what they change.

use crate::agent::World;
use crate::script_extension::{install, path_with_node};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::Value;
use std::fs;

/// Runs prompts of print mode with an extension whose function has this body, which may `log` values. Gives what it
/// has logged; none where no Node is.
pub fn run(
    body: &str,
    replies: impl IntoIterator<Item = Reply>,
    words: &str,
) -> Option<(World, Server, Vec<Value>)> {
    let path = path_with_node("an event of a script")?;
    let (world, server) = world(replies);
    let text = format!(
        r#"import {{ appendFileSync }} from "node:fs";
import {{ Type }} from "typebox";
const log = (value: unknown) => appendFileSync(process.env.HOME + "/log", JSON.stringify(value ?? null) + "\n");
export default function (pi: any) {{
{body}
}}
"#
    );
    install(&world, "x.ts", &text);
    let ran = world.pi().words("--model mock/m1").words(words).env("PATH", &path).run();
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let text = fs::read_to_string(world.home().join("log")).unwrap_or_default();
    let logged = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Some((world, server, logged))
}

/// The types and roles of the entries behind the first answer.
fn stored(world: &World) -> Vec<String> {
    let entries =
        world.session().into_iter().skip_while(|entry| entry["message"]["role"] != "assistant").skip(1);
    entries
        .map(|entry| entry["message"]["role"].as_str().or(entry["type"].as_str()).unwrap().to_owned())
        .collect()
}

#[test]
fn boundaries_are_those_of_the_reference() {
    let reminder = r#"
	let added = false;
	pi.on("agent_before_settle", (event) => {
		log([event.outcome, event.entries, event.continue, event.context.canContinue, event.context.llmMessages.map((m) => m.role)]);
		if (added) return;
		added = true;
		return { entries: [...event.entries, { type: "custom_message", customType: "review", content: "Review it.", display: false }], continue: true };
	});"#;
    let replies = || [Reply::text("one"), Reply::text("two")];
    let Some((world, server, logged)) = run(reminder, replies(), "-p hi") else { return };
    assert_eq!(stored(&world), ["custom_message", "assistant"]);
    assert!(server.requests()[1].body.to_string().contains("Review it."));
    assert_eq!(logged[0].to_string(), r#"["completed",[],false,false,["system","user","assistant"]]"#);
    assert_eq!(logged.len(), 2);

    let replacement = r#"
	let replaced = false;
	pi.on("turn_end", (event) => {
		if (replaced || event.outcome !== "completed" || event.toolResults.length > 0) return;
		replaced = true;
		// In place, and by a result of the next handler.
		event.entries.push({ type: "context_edit", targetId: event.messageEntryId, replacement: null });
	});
	pi.on("turn_end", (event) => {
		log(event.entries.map((entry) => entry.type));
		if (event.entries.length === 0) return;
		return { entries: [...event.entries, { type: "custom_message", customType: "again", content: "Answer again.", display: false }], continue: true };
	});"#;
    let (world, server, logged) = run(replacement, replies(), "-p hi").unwrap();
    assert_eq!(stored(&world), ["context_edit", "custom_message", "assistant"]);
    let last = server.requests()[1].body["messages"].to_string();
    assert!(last.contains("Answer again.") && !last.contains("\"one\""), "{last}");
    assert_eq!(logged[0].to_string(), r#"["context_edit"]"#);
}

#[test]
fn a_handler_changes_the_prompt_in_place() {
    let body = r#"
	pi.registerTool({ name: "mine", label: "Mine", description: "d", promptSnippet: "does it", promptGuidelines: ["With care."], parameters: Type.Object({}), execute: async () => ({ content: [] }) });
	pi.on("before_agent_start", (event) => {
		const { systemPromptOptions: options } = event;
		log([options.selectedTools, options.toolSnippets.mine, options.toolGuidelines.mine, options.sections, options.promptGuidelines, Array.isArray(options.skills)]);
		options.sections.mine = "further text";
		options.promptGuidelines.push("Rule nine.");
		options.selectedTools = ["read", "mine"];
		return { message: { customType: "a", content: null, display: true } };
	});
	pi.on("before_agent_start", (event, ctx) => {
		log([event.systemPrompt.includes("further text"), ctx.getSystemPrompt() === event.systemPrompt, event.systemPrompt.includes("- bash: ")]);
		return { systemPrompt: event.systemPrompt + "\nat the end", message: { customType: "b", content: "told", display: true } };
	});
	pi.on("agent_start", (_event, ctx) => log(ctx.getSystemPrompt().endsWith("at the end")));
	pi.registerCommand("options", { handler: async (_args, ctx) => log([ctx.getSystemPromptOptions().toolSnippets.mine, ctx.getSystemPromptOptions().sections]) });"#;
    let Some((world, server, logged)) = run(body, [Reply::text("one")], "-p hi /options") else { return };
    let logged: Vec<String> = logged.iter().map(Value::to_string).collect();
    assert_eq!(
        logged,
        [
            r#"[["read","bash","edit","write","mine"],"does it",["With care."],{},[],true]"#,
            "[true,true,false]",
            "true",
            r#"["does it",{}]"#
        ]
    );
    let sent = server.requests();
    let head = sent[0].messages()[0]["content"].as_str().unwrap();
    for part in ["<mine>\nfurther text\n</mine>", "- Rule nine.", "- With care.", "at the end"] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert_eq!(sent[0].body["tools"].as_array().unwrap().len(), 2);
    let session = world.session();
    let added = session.iter().filter(|entry| entry["type"] == "custom_message");
    let added: Vec<&Value> = added.map(|entry| &entry["customType"]).collect();
    assert_eq!(added, ["a", "b"]);
    // The sections are recorded, the text in their place is not.
    let text = session.iter().map(Value::to_string).collect::<String>();
    assert!(text.contains("further text") && !text.contains("at the end"));
}

#[test]
fn a_context_has_a_signal_during_a_run_alone() {
    let body = r#"
	for (const event of ["session_start", "input", "before_agent_start", "agent_start", "message_end", "tool_call", "turn_end", "agent_end", "agent_before_settle", "agent_settled"])
		pi.on(event, (_event, ctx) => log([event, ctx.signal instanceof AbortSignal]));
	pi.registerCommand("idle", { handler: async (_args, ctx) => log(["command", ctx.signal !== undefined]) });"#;
    let Some((_, _, logged)) = run(body, [Reply::text("one")], "-p hi /idle") else { return };
    let with: Vec<&str> =
        logged.iter().filter(|row| row[1] == true).map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(with, ["agent_start", "message_end", "message_end", "message_end", "turn_end", "agent_end"]);
    assert_eq!(logged.len(), 12, "{logged:?}");
}

#[test]
fn a_new_session_with_a_setup_begins_with_its_model_and_waits_for_its_run() {
    let body = r#"
	pi.registerCommand("new", { handler: async (_args, ctx) => {
		await ctx.newSession({
			setup: async (session) => session.appendMessage({ role: "user", content: [{ type: "text", text: "from the setup" }], timestamp: 1 }),
			withSession: async (next) => {
				await next.sendUserMessage("go");
				log(next.sessionManager.getEntries().map((entry) => entry.message?.role ?? entry.type));
			},
		});
	} });"#;
    let Some((_, server, logged)) = run(body, [Reply::text("one"), Reply::text("two")], "-p hi /new") else {
        return;
    };
    let expected = r#"[["model_change","thinking_level_change","user","system","user","assistant"]]"#;
    assert_eq!(Value::from(logged).to_string(), expected);
    assert!(server.requests()[1].body.to_string().contains("from the setup"));
}
