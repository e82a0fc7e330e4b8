// Scenarios of scripts/rpc-clients with pi-acp, driven by the official TypeScript SDK of the Agent Client Protocol.
import * as acp from "@agentclientprotocol/sdk";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

const root = mkdtempSync(join(tmpdir(), "pi-acp-"));
const home = join(root, "home");
mkdirSync(join(home, ".pi/agent"), { recursive: true });
// pi-acp wants to see a model that has a key.
writeFileSync(join(home, ".pi/agent/models.json"), JSON.stringify({ providers: {
    mock: { baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "openai-completions", models: [{ id: "m1" }] } } }));
writeFileSync(join(home, ".pi/agent/settings.json"), JSON.stringify({ retry: { baseDelayMs: 1 } }));

async function adapter(project, script, use) {
    const bin = mkdtempSync(join(root, "bin-"));
    writeFileSync(join(bin, "script.json"), JSON.stringify(script));
    writeFileSync(join(bin, "pi"), `#!/bin/sh\nexec "${process.env.PI_BIN}" --model faux/script "$@"\n`);
    chmodSync(join(bin, "pi"), 0o755);
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: home, PI_ACP_PI_COMMAND: join(bin, "pi"),
        PI_FAUX_SCRIPT: join(bin, "script.json") };
    const child = spawn(process.execPath, [join(process.env.PACKAGES, "node_modules/pi-acp/dist/index.js")],
        { cwd: project, env, stdio: ["pipe", "pipe", "pipe"] });
    const ended = new Promise((done) => child.on("exit", done));
    const seen = { updates: [], said: (from = 0) => seen.updates.slice(from)
        .filter((update) => update.sessionUpdate === "agent_message_chunk").map((update) => update.content.text).join("") };
    const app = acp.client({ name: "scenarios" })
        .onNotification(acp.methods.client.session.update, ({ params }) => void seen.updates.push(params.update));
    try {
        await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (agent) => {
            await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
            const say = (sessionId, text) => agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
            await use({ agent, say, seen, open: { cwd: project, mcpServers: [] } });
        });
    } finally {
        child.kill();
        await ended;
    }
}

const project = () => mkdtempSync(join(root, "project-"));
const until = async (holds) => {
    while (!holds()) await new Promise((done) => setTimeout(done, 5));
};

const scenarios = {
    "prompt": () => adapter(project(), ["Hello."], async ({ agent, say, seen, open }) => {
        const { sessionId } = await agent.request("session/new", open);
        assert.equal((await say(sessionId, "hi")).stopReason, "end_turn");
        assert.match(seen.said(), /Hello\./);
    }),
    "an edit": () => {
        const folder = project();
        writeFileSync(join(folder, "a.txt"), "one\ntwo\n");
        const fields = { path: "a.txt", edits: [{ oldText: "two", newText: "2" }] };
        const script = [{ content: [{ type: "toolCall", name: "edit", arguments: fields }] }, "Done."];
        return adapter(folder, script, async ({ agent, say, seen, open }) => {
            const { sessionId } = await agent.request("session/new", open);
            await say(sessionId, "go");
            // Whether it shows a diff depends on what it reads first: the event, or the file.
            const ends = seen.updates.filter((update) => update.sessionUpdate === "tool_call_update");
            assert.equal(ends.at(-1).status, "completed");
            assert.equal(readFileSync(join(folder, "a.txt"), "utf8"), "one\n2\n");
        });
    },
    "abort": () => adapter(project(), [{ text: "word ".repeat(100), chunkDelayMs: 30 }, "Again."], async ({ agent, say, seen, open }) => {
        const { sessionId } = await agent.request("session/new", open);
        const prompt = say(sessionId, "one");
        await until(() => seen.said().includes("word"));
        await agent.notify("session/cancel", { sessionId });
        assert.equal((await prompt).stopReason, "cancelled");
        const from = seen.updates.length;
        assert.equal((await say(sessionId, "two")).stopReason, "end_turn");
        assert.match(seen.said(from), /Again\./);
    }),
    "a queued prompt": () => adapter(project(), [{ text: "word ".repeat(20), chunkDelayMs: 20 }, "Second."], async ({ agent, say, seen, open }) => {
        const { sessionId } = await agent.request("session/new", open);
        const first = say(sessionId, "one");
        await until(() => seen.said().includes("word"));
        const second = say(sessionId, "two");
        assert.deepEqual([(await first).stopReason, (await second).stopReason], ["end_turn", "end_turn"]);
        assert.match(seen.said(), /Second\./);
    }),
    "session load": async () => {
        const folder = project();
        let sessionId;
        await adapter(folder, ["First."], async ({ agent, say, open }) => {
            ({ sessionId } = await agent.request("session/new", open));
            await say(sessionId, "one");
        });
        await adapter(folder, ["First.", "Second."], async ({ agent, say, seen, open }) => {
            const { sessions } = await agent.request("session/list", { cwd: folder });
            assert.deepEqual(sessions.map((session) => session.sessionId), [sessionId]);
            await agent.request("session/load", { ...open, sessionId });
            assert.match(seen.said(), /First\./);
            assert.equal((await say(sessionId, "two")).stopReason, "end_turn");
            assert.match(seen.said(), /Second\./);
        });
    },
    // Its pi for the session is told to end, and another one is started on the same file at once. The adapter asks each
    // for its commands a moment later, and ends itself where that one is gone by then: so that is waited for.
    "session load, open before": () => adapter(project(), ["First.", "Second."], async ({ agent, say, seen, open }) => {
        const { sessionId } = await agent.request("session/new", open);
        await say(sessionId, "one");
        const offered = () => seen.updates.filter((update) => update.sessionUpdate === "available_commands_update").length;
        for (let round = 0; round < 5; round += 1) {
            const before = offered();
            await agent.request("session/load", { ...open, sessionId });
            await until(() => offered() > before);
        }
        assert.equal((await say(sessionId, "two")).stopReason, "end_turn");
        assert.match(seen.said(), /Second\./);
    }),
};

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no end within 60 s")), 60_000).unref());
    const problem = await Promise.race([run(), late]).then(() => null, (error) => error);
    console.log(`${problem ? "FAILED" : "ok"}`.padEnd(7), "pi-acp".padEnd(22), name);
    if (problem) {
        failed = 1;
        console.log(String(problem.stack ?? problem).replace(/^/gm, "        "), problem.data ?? "");
    }
}
process.exit(failed);
