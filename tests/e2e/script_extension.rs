//! Extensions in TypeScript and JavaScript. What needs a Node that can run them is left out where there is none.

use crate::agent::{World, let_go};
use crate::server::{PATIENCE, Reply};
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// `PATH` with a Node that runs the host, or nothing and a line that says so.
pub fn path_with_node(test: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let check =
        "import * as m from 'node:module'; process.exit(m.registerHooks && m.stripTypeScriptTypes ? 0 : 1)";
    let fits = |folder: &PathBuf| {
        let mut node = Command::new(folder.join("node"));
        node.args(["--input-type=module", "-e", check]).stdout(Stdio::null()).stderr(Stdio::null());
        node.status().is_ok_and(|status| status.success())
    };
    let folder = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).find(fits);
    let Some(folder) = folder else {
        eprintln!("{test} is left out: no Node 22.18 or newer in PATH");
        return None;
    };
    let folders = [folder].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).ok()
}

pub fn install(world: &World, name: &str, text: &str) {
    let path = world.agent_dir().join("extensions").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn client(world: &World, path: &OsString) -> Client {
    let mut pi = world.pi().words("--mode rpc --model mock/m1").env("PATH", path);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    client
}

pub fn until(client: &mut Client, kind: &str) -> Value {
    let events = client.events_until(kind).unwrap_or_else(|error| panic!("no {kind}: {error}"));
    events.last().unwrap().clone()
}

const TOOL: &str = r#"
import { ExtensionAPI } from "@earendil-works/pi-coding-agent"; import { Type, Static } from "typebox";
import { greet, Greeting } from "./words.js";

enum Mark { Loud = "!" }
const Parameters = Type.Object({ name: Type.String(), twice: Type.Optional(Type.Boolean()) });

class Greeter {
	constructor(private readonly mark: Mark) {}
	greet(greeting: Greeting) { return greet(greeting) + this.mark; }
}

export default function (pi: ExtensionAPI) {
	console.log("what is printed is no message");
	pi.registerTool({
		name: "hello", label: "Hello", description: "Greets", parameters: Parameters,
		async execute(_id, args: Static<typeof Parameters>, _signal, _onUpdate, ctx) {
			const count = ctx.sessionManager.getBranch().length;
			return { content: [{ type: "text", text: new Greeter(Mark.Loud).greet({ name: args.name }) }], details: { known: count > 0 } };
		},
	});
	pi.on("session_start", (_event, ctx) => ctx.ui.notify("ready"));
	pi.on("tool_call", (event) => { if (event.input.name === "Ada") event.input.name = "Bob"; });
}
"#;

const WORDS: &str =
    "export interface Greeting { name: string }\nexport const greet = (g: Greeting) => `Hello ${g.name}`;\n";

#[test]
fn a_typescript_tool_is_called_and_its_handlers_are_asked() {
    let Some(path) = path_with_node("a_typescript_tool") else { return };
    let (world, server) = world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
    install(&world, "greeter/index.ts", TOOL);
    install(&world, "greeter/words.ts", WORDS);
    let mut client = client(&world, &path);
    // A prompt waits 250 ms for extensions at most, and this one may take longer.
    assert_eq!(until(&mut client, "extension_ui_request")["message"], "ready");
    client.prompt("hi").unwrap();
    let events = client.wait_until_settled().unwrap();
    let ended = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    assert_eq!(ended["result"]["details"], json!({"known": true}), "{ended}");
    let requests = server.requests();
    let told = requests[1].messages().iter().find(|message| message["role"] == "tool").unwrap().clone();
    assert_eq!(told["content"], "Hello Bob!");
    client.close().unwrap();
}

#[test]
fn extensions_of_one_host_answer_for_themselves() {
    let Some(path) = path_with_node("extensions_of_one_host") else { return };
    let (world, _server) = world([]);
    for (name, word) in [("a.ts", "one"), ("b.mjs", "two")] {
        let text = format!(
            "export default (pi) => {{ pi.registerCommand('{word}', {{ handler: async (args, ctx) => ctx.ui.notify('{word} ' + args + ' ' + ctx.sessionManager.getSessionId().length) }}); }};"
        );
        install(&world, name, &text);
    }
    install(&world, "bad.ts", "export default 42;");
    let mut client = client(&world, &path);
    let error = until(&mut client, "extension_error");
    assert!(error["extensionPath"].as_str().unwrap().ends_with("bad.ts"), "{error}");
    assert!(error["error"].as_str().unwrap().contains("no default export"), "{error}");
    for word in ["one", "two"] {
        client.request("prompt", json!({"message": format!("/{word} x")})).unwrap();
        let shown = until(&mut client, "extension_ui_request");
        assert_eq!(shown["message"], format!("{word} x 36"));
    }
    client.close().unwrap();
    assert!(world.processes_left().is_empty());
}

/// A file that waits for a pipe in its function, and registers a command.
const WAITS: &str = r#"
import { readFile } from "node:fs/promises";
export default async function (pi) {
	await readFile(process.env.HOME + "/pipe");
	pi.registerCommand("late", { handler: async (_args, ctx) => ctx.ui.notify("here") });
	pi.on("session_start", (_event, ctx) => ctx.ui.notify("came late"));
}
"#;

#[test]
fn a_script_that_waits_holds_up_neither_the_prompt_nor_its_neighbours() {
    let Some(path) = path_with_node("a_script_that_waits") else { return };
    let (world, server) = world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
    assert!(Command::new("mkfifo").arg(world.home().join("pipe")).status().unwrap().success());
    install(&world, "a.ts", WAITS);
    install(&world, "greeter/index.ts", TOOL);
    install(&world, "greeter/words.ts", WORDS);
    let mut client = client(&world, &path);
    let id = client.send("prompt", json!({"message": "hi"})).unwrap();
    let error = until(&mut client, "extension_error");
    assert!(error["extensionPath"].as_str().unwrap().ends_with("a.ts"), "{error}");
    assert!(error["error"].as_str().unwrap().contains("joins later"), "{error}");
    client.answer(id).unwrap();
    // The tool call waits for the late one, which may be a gate.
    until(&mut client, "tool_execution_start");
    let_go(&world.home().join("pipe"));
    client.wait_until_settled().unwrap();
    assert!(server.requests()[0].body.to_string().contains("\"hello\""));
    client.request("prompt", json!({"message": "/late"})).unwrap();
    assert_eq!(until(&mut client, "extension_ui_request")["message"], "here");
    client.close().unwrap();
    assert!(world.processes_left().is_empty());
}

#[test]
fn a_script_that_never_yields_holds_up_a_prompt_for_a_while_only() {
    let Some(path) = path_with_node("a_script_that_never_yields") else { return };
    let (world, _server) = world([Reply::text("done")]);
    install(&world, "a.ts", "for (;;);");
    let pi = world.pi().words("--model mock/m1 -p hi").env("PATH", &path).env("PI_PATIENCE", "1");
    let ran = pi.run().success();
    assert!(ran.stderr.contains("a.ts") && ran.stderr.contains("joins later"), "{}", ran.stderr);
    ran.stdout_is("done\n");
    assert!(world.processes_left().is_empty());
}

#[test]
fn a_provider_finds_out_its_models() {
    let Some(path) = path_with_node("a_provider_finds_out") else { return };
    let (world, server) = world([Reply::text("from the new one")]);
    let text = r#"
export default (pi) => pi.registerProvider("fresh", {
	baseUrl: process.env.SERVER, api: "openai-completions", apiKey: "k",
	async refreshModels({ signal, allowNetwork }) {
		if (signal.aborted || !allowNetwork) return [];
		await new Promise((done) => setTimeout(done, 1300));
		return [{ id: "new", name: "New", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 9000, maxTokens: 900 }];
	},
});
"#;
    install(&world, "fresh.ts", text);
    let pi = world.pi().words("--model fresh/new -p hi").env("PATH", &path).env("SERVER", server.url());
    pi.run().success().stdout_is("from the new one\n");
    assert_eq!(server.requests()[0].body["model"], "new");
}

/// Two provider objects: one whose requests pi makes, and one that answers by itself.
const OBJECTS: &str = r#"
import { createAssistantMessageEventStream, createProvider, openAICompletionsApi } from "@earendil-works/pi-ai/compat";
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const model = (provider, id, api) => ({ provider, id, name: id, api, baseUrl: process.env.NEAR_URL, reasoning: false, input: ["text"], cost, contextWindow: 1000, maxTokens: 100 });
export default function (pi) {
	pi.registerProvider(createProvider({
		id: "near", name: "Near", models: [],
		auth: { apiKey: { name: "Near", resolve: async () => ({ auth: { apiKey: "$key", headers: { "X-Near": "1" } } }) } },
		fetchModels: async () => [model("near", "m", "openai-completions")],
		api: openAICompletionsApi(),
	}));
	pi.registerProvider({
		id: "own", name: "Own", getModels: () => [model("own", "o", "own-api")],
		auth: { apiKey: { name: "Own", resolve: async () => ({ auth: { apiKey: "k" } }) } },
		streamSimple(model, _context, { apiKey }) {
			const stream = createAssistantMessageEventStream();
			const text = `own ${apiKey}`;
			const partial = { role: "assistant", content: [{ type: "text", text }], api: model.api, provider: "own", model: model.id, stopReason: "stop", timestamp: 1,
				usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { ...cost, total: 0 } } };
			stream.push({ type: "text_start", contentIndex: 0, partial });
			stream.push({ type: "text_delta", contentIndex: 0, delta: text, partial });
			stream.push({ type: "text_end", contentIndex: 0, content: text, partial });
			stream.push({ type: "done", reason: "stop", message: partial });
			return stream;
		},
	});
}
"#;

#[test]
fn provider_objects_have_models_and_answer() {
    let Some(path) = path_with_node("provider_objects") else { return };
    let (world, server) = world([Reply::text("from near")]);
    install(&world, "objects.ts", OBJECTS);
    for (model, answer) in [("near/m", "from near\n"), ("own/o", "own k\n")] {
        let pi = world.pi().words("-p hi --model").args([model]).env("PATH", &path);
        pi.env("NEAR_URL", server.url()).run().success().stdout_is(answer);
    }
    let request = &server.requests()[0];
    assert_eq!((request.header("authorization"), request.header("x-near")), (Some("Bearer $key"), Some("1")));
}

const ROUTER: &str = r#"
export default function (pi) {
	pi.registerVirtualModel({ provider: "router", id: "auto", name: "Auto", route: (request, ctx) => ({
		model: ctx.modelRegistry.find("mock", "m1"), thinkingLevel: "off", state: request.state ?? { reason: request.reason } }) });
	pi.registerMcpServer("near", { command: "sh", args: ["-c", "exit 1"], enabled: false });
	pi.on("mcp_servers_change", (event, ctx) => ctx.ui.notify(`changed: ${event.servers.map((one) => one.name)}`));
	pi.registerCommand("bring", { handler: async (name, ctx) => {
		try {
			pi.registerMcpServer(name, { command: "sh", args: ["-c", "exit 1"], enabled: false });
		} catch (error) {
			ctx.ui.notify(`refused: ${error.message}`);
		}
	} });
	pi.registerCommand("choose", { handler: async (id, ctx) => {
		try {
			pi.registerVirtualModel({ provider: "mock", id, name: "New", route: () => ({}) });
		} catch (error) {
			ctx.ui.notify(`refused: ${error.message}`);
		}
	} });
	pi.on("session_start", (_event, ctx) => ctx.ui.notify(`ready with ${pi.getMcpServers().map((one) => one.name)}`));
}
"#;

#[test]
fn a_script_chooses_models_and_brings_servers() {
    let Some(path) = path_with_node("a_script_chooses_models") else { return };
    let (world, server) = world([Reply::text("one"), Reply::text("two")]);
    install(&world, "router.ts", ROUTER);
    let mut pi = world.pi().words("--mode rpc --model router/auto").env("PATH", &path);
    let mut client = Client::spawn(pi.command().stderr(Stdio::null())).expect("start pi");
    client.set_patience(PATIENCE);
    assert_eq!(until(&mut client, "extension_ui_request")["message"], "ready with near");
    for (line, said) in [
        ("/bring far", "changed: near,far"),
        ("/bring a b", "refused: "),
        ("/choose m1", "refused: The virtual model mock/m1 has the name of a model that there is"),
    ] {
        client.request("prompt", json!({"message": line})).unwrap();
        let shown = until(&mut client, "extension_ui_request");
        assert!(shown["message"].as_str().unwrap().starts_with(said), "{shown}");
    }
    for _ in 0..2 {
        client.prompt("hi").unwrap();
        client.wait_until_settled().unwrap();
    }
    client.close().unwrap();
    assert_eq!(server.requests().len(), 2);
    // What is given back as it came is not stored again.
    let entries = world.session();
    let states: Vec<&Value> =
        entries.iter().filter(|entry| entry["customType"] == "pi.virtual-model-state").collect();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0]["data"]["state"], json!({"reason": "user"}));
}

#[test]
fn bun_runs_scripts_where_there_is_no_node_or_an_old_one() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(bun) = std::env::split_paths(&path).map(|folder| folder.join("bun")).find(|bun| bun.is_file())
    else {
        return eprintln!("bun_runs_scripts is left out: no bun in PATH");
    };
    // Alone, and behind the Node of the machine, which may be too old.
    for others in [&[][..], &["/usr/bin", "/bin"]] {
        let (world, server) =
            world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
        install(&world, "greeter/index.ts", TOOL);
        install(&world, "greeter/words.ts", WORDS);
        let bin = world.home().join("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(&bun, bin.join("bun")).unwrap();
        let path = std::env::join_paths([bin].into_iter().chain(others.iter().map(PathBuf::from))).unwrap();
        let pi = world.pi().words("--model mock/m1 -p hi").env("PATH", path);
        pi.run().success().stdout_is("done\n");
        let requests = server.requests();
        let told = requests[1].messages().iter().find(|message| message["role"] == "tool").unwrap().clone();
        assert_eq!(told["content"], "Hello Bob!");
        assert!(world.processes_left().is_empty());
    }
}

#[test]
fn what_is_missing_is_named() {
    let world = World::new();
    install(&world, "tool.ts", "export default () => {};");
    let folder = world.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let ran = world.pi().words("extensions").env("PATH", &folder).run().fails_with(1);
    ran.stderr_has("tool.ts needs Node 22.18 or newer, or bun, and neither is in PATH");
}
