//! The interface of TypeScript extensions: what its functions give.

use crate::script_event::run;
use crate::server::Reply;
use serde_json::{Value, json};

#[test]
fn programs_are_run_with_limits() {
    let body = r#"
	pi.on("session_start", async () => {
		const sh = (script: string, options = {}) => pi.exec("sh", ["-c", script], options);
		log(await sh("echo out; echo err >&2; exit 3"));
		log(await sh("printf 123456789; sleep 9", { maxBuffer: 4 }));
		log(await sh("echo x; sleep 9", { timeout: 100 }));
		log(await sh("sleep 9", { signal: AbortSignal.abort() }));
		log(await pi.exec("no-such-program", []));
	});"#;
    let Some((_world, _server, logged)) = run(body, [Reply::text("one")], "-p hi") else { return };
    let ran = |stdout: &str, stderr: &str, code: u32, killed: bool, truncated: bool| json!({"stdout": stdout, "stderr": stderr, "code": code, "killed": killed, "truncated": truncated});
    assert_eq!(
        logged,
        [
            ran("out\n", "err\n", 3, false, false),
            ran("1234", "", 1, true, true),
            ran("x\n", "", 0, true, false),
            ran("", "", 0, true, false),
            ran("", "spawn no-such-program ENOENT", 1, false, false),
        ]
    );
}

#[test]
fn a_tool_has_a_context_of_its_own_and_calls_others() {
    let body = r#"
	pi.registerFlag("hop", { type: "string", default: "usual" });
	log(pi.getFlag("hop"));
	pi.registerTool({ name: "outer", label: "Outer", description: "Calls", parameters: Type.Object({}), reachesTools: () => ["bash"],
		namespace: { name: "out", description: "Outer ones" },
		execute: async (_id: string, _args: unknown, _signal: unknown, _update: unknown, ctx: any) => {
			log(pi.getFlag("hop"));
			const { cwd, sessionManager, isIdle } = { ...ctx };
			log([cwd === process.cwd(), sessionManager.buildSessionProjection().messages.map((one: any) => one.role), isIdle()]);
			const { durationMs, ...outcome } = await ctx.executeTool("bash", { command: "echo inner" });
			log([typeof durationMs, outcome.toolCall, outcome.isError]);
			const tool = pi.getAllTools().find((one: any) => one.name === "outer");
			log([Object.keys(tool), tool.namespace.name]);
			return { content: [{ type: "text", text: "done" }] };
		} });"#;
    let replies = [Reply::tool("t1", "outer", &json!({})), Reply::text("two")];
    let Some((_world, _server, logged)) = run(body, replies, "--hop far -p hi") else { return };
    let call =
        json!({"type": "toolCall", "id": "t1/1", "name": "bash", "arguments": {"command": "echo inner"}});
    let keys = [
        "name",
        "description",
        "parameters",
        "promptGuidelines",
        "reachesTools",
        "exposure",
        "namespace",
        "annotations",
        "sourceInfo",
    ];
    let expected: [Value; 5] = [
        json!("usual"),
        json!("far"),
        json!([true, ["system", "user", "assistant"], false]),
        json!(["number", call, false]),
        json!([keys, "out"]),
    ];
    assert_eq!(logged, expected);
}
