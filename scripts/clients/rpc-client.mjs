// Scenarios of scripts/rpc-clients with the RpcClient of the TypeScript pi. Runs where its packages are installed.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { RpcClient } = await import(
    join(process.env.PACKAGES, "node_modules/@earendil-works/pi-coding-agent/dist/modes/rpc/rpc-client.js"));

// RpcClient starts a script with Node: this one hands everything on.
const entry = join(mkdtempSync(join(tmpdir(), "entry-")), "entry.mjs");
writeFileSync(entry, `
import { spawn } from "node:child_process";
const child = spawn(process.env.PI_BIN, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal ? 1 : code));
`);

async function conversation(script, use, project = mkdtempSync(join(tmpdir(), "project-")), args = []) {
    writeFileSync(join(project, "script.json"), JSON.stringify(script));
    const client = new RpcClient({ cliPath: entry, cwd: project, args,
        env: { PI_FAUX_SCRIPT: join(project, "script.json") }, provider: "faux", model: "script" });
    await client.start();
    const events = [];
    client.onEvent((event) => events.push(event));
    try {
        await use(client, events, project);
    } finally {
        await client.stop();
    }
    assert.equal(client.getStderr(), "");
}

const of = (events, type) => events.filter((event) => event.type === type);
const asked = async (client) => (await client.getMessages()).filter((message) => message.role === "user")
    .map((message) => message.content.map((block) => block.text).join(""));
const until = async (holds) => {
    while (!holds()) await new Promise((done) => setTimeout(done, 5));
};
const begun = (events) => until(() => of(events, "message_update").length > 0);
const slow = { text: "word ".repeat(40), chunkDelayMs: 20 };

const scenarios = {
    "prompt": () => conversation(["Hello."], async (client) => {
        const events = await client.promptAndWait("hi");
        assert.equal(of(events, "agent_end").length, 1);
        assert.equal(await client.getLastAssistantText(), "Hello.");
    }),
    "a tool": () => conversation([{ content: [{ type: "toolCall", name: "bash", arguments: { command: "echo out" } }] }, "Done."],
        async (client) => {
            const events = await client.promptAndWait("go");
            const [end] = of(events, "tool_execution_end");
            assert.equal(end.isError, false);
            assert.equal(end.result.content[0].text.trim(), "out");
        }),
    "steer and follow_up": () => conversation([slow, "After the steer.", "After the follow-up."], async (client, events) => {
        await client.prompt("one");
        await begun(events);
        await client.steer("two");
        await client.followUp("three");
        await client.waitForIdle();
        await until(() => of(events, "agent_settled").length > 0);
        assert.deepEqual(await asked(client), ["one", "two", "three"]);
        assert.equal(await client.getLastAssistantText(), "After the follow-up.");
    }),
    "clear_queue": () => conversation([slow], async (client, events) => {
        await client.prompt("one");
        await begun(events);
        await client.steer("two");
        await client.followUp("three");
        assert.deepEqual(await client.clearQueue(), { steering: ["two"], followUp: ["three"] });
        await until(() => of(events, "agent_settled").length > 0);
        assert.deepEqual(await asked(client), ["one"]);
    }),
    "abort": () => conversation([slow, "Again."], async (client, events) => {
        await client.prompt("one");
        await begun(events);
        await client.abort();
        await until(() => of(events, "agent_settled").length > 0);
        assert.equal((await client.getState()).isStreaming, false);
        assert.equal((await client.getMessages()).at(-1).stopReason, "aborted");
        await client.promptAndWait("two");
        assert.equal(await client.getLastAssistantText(), "Again.");
    }),
    "a retry": () => conversation([{ error: { message: "overloaded", status: 529, retryAfterMs: 10 } }, "Whole."],
        async (client, events) => {
            await client.prompt("one");
            await until(() => of(events, "agent_settled").length > 0);
            assert.equal(of(events, "auto_retry_start").length, 1);
            assert.equal(await client.getLastAssistantText(), "Whole.");
        }),
    "session load": () => conversation(["First."], async (client, _, project) => {
        await client.promptAndWait("one");
        const { sessionFile, sessionId } = await client.getState();
        await client.stop();
        await conversation(["First.", "Second."], async (client) => {
            assert.equal((await client.getState()).sessionId, sessionId);
            assert.deepEqual(await asked(client), ["one"]);
            await client.promptAndWait("two");
            assert.equal(await client.getLastAssistantText(), "Second.");
            await client.newSession();
            assert.deepEqual(await asked(client), []);
            await client.switchSession(sessionFile);
            assert.deepEqual(await asked(client), ["one", "two"]);
        }, project, ["--session", sessionFile]);
    }),
};

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no end within 60 s")), 60_000).unref());
    const problem = await Promise.race([run(), late]).then(() => null, (error) => error);
    console.log(`${problem ? "FAILED" : "ok"}`.padEnd(7), "RpcClient".padEnd(22), name);
    if (problem) {
        failed = 1;
        console.log(String(problem.stack ?? problem).replace(/^/gm, "        "));
    }
}
process.exit(failed);
