//! TypeScript extensions and the session: each session has its own run of the factory.

use crate::agent::{World, wait_until};
use crate::script_extension::{client, install, path_with_node};
use crate::server::{Reply, Server};
use crate::world;
use pi::client::Client;
use serde_json::json;
use std::fs;

const COUNTER: &str = r#"
import { appendFileSync } from "node:fs";
let runs = 0;
const log = (text: string) => appendFileSync(process.env.HOME + "/log", text + "\n");
const stale = (name: string, use: () => unknown) => {
	try {
		use();
		log(`${name} works`);
	} catch (error: any) {
		log(`${name} ${/replaced or reloaded/.test(error.message)}`);
	}
};
export default function (pi: any) {
	const run = ++runs;
	let starts = 0;
	pi.on("session_start", (event: any) => log(`${run}: ${event.reason} ${++starts}`));
	pi.on("tool_call", () => ({ block: true, reason: `gate ${run}` }));
	if (run === 1) pi.registerCommand("first", { handler: async () => {} });
	if (run === 3) throw new Error("no third time");
	pi.registerCommand("next", { handler: async (_args: string, ctx: any) => {
		const withSession = async (next: any) => log(`with ${next.sessionManager.getEntries().length}`);
		const { cancelled } = await ctx.newSession({ withSession });
		log(`after ${cancelled}`);
		stale("pi", () => pi.getActiveTools());
		stale("send", () => pi.sendMessage({ customType: "x", content: "y" }));
		stale("ctx", () => ctx.sessionManager.getEntries());
		stale("ui", () => ctx.ui.notify("x"));
	} });
	pi.registerCommand("again", { handler: async (_args: string, ctx: any) => {
		await ctx.reload();
		log("reloaded");
		stale("ctx", () => ctx.cwd);
	} });
}
"#;

fn start(replies: impl IntoIterator<Item = Reply>) -> Option<(World, Server, Client)> {
    let path = path_with_node("a session of a script")?;
    let (world, server) = world(replies);
    install(&world, "counter.ts", COUNTER);
    let mut client = client(&world, &path);
    client.request("get_commands", json!({})).unwrap();
    Some((world, server, client))
}

fn log(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.home().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn commands(client: &mut Client) -> Vec<String> {
    let commands = client.request("get_commands", json!({})).unwrap()["commands"].take();
    let names = commands.as_array().unwrap().iter().filter(|command| command["source"] == "extension");
    let names = names.map(|command| command["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "mcp").collect()
}

#[test]
fn each_session_has_its_own_run_of_the_factory() {
    let call = || Reply::tool("t", "bash", &json!({"command": "echo x"}));
    let Some((world, server, mut client)) = start([call(), Reply::text("one"), call(), Reply::text("two")])
    else {
        return;
    };
    assert_eq!(commands(&mut client), ["first", "next", "again"]);
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    client.request("prompt", json!({"message": "/next"})).unwrap();
    assert_eq!(commands(&mut client), ["next", "again"]);
    client.prompt("hi").unwrap();
    client.wait_until_settled().unwrap();
    let told =
        ["1: startup 1", "2: new 1", "with 2", "after false", "pi true", "send true", "ctx true", "ui true"];
    assert_eq!(log(&world), told);
    let gates: Vec<String> = [1, 3].map(|at| server.requests()[at].last_text()).into();
    assert!(gates[0].contains("gate 1") && gates[1].contains("gate 2"), "{gates:?}");
    // A factory that fails leaves nothing of it in the session.
    client.request("new_session", json!({})).unwrap();
    assert_eq!(commands(&mut client), [""; 0]);
    client.close().unwrap();
    assert!(world.processes_left().is_empty());
}

#[test]
fn a_command_that_reloads_goes_on_without_its_context() {
    let Some((world, _server, mut client)) = start([]) else { return };
    client.request("prompt", json!({"message": "/again"})).unwrap();
    wait_until("it is loaded anew", || log(&world).len() == 4);
    client.close().unwrap();
    assert_eq!(log(&world), ["1: startup 1", "reloaded", "ctx true", "1: reload 1"]);
}
