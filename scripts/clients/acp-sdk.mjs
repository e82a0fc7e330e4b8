// Scenarios of scripts/acp-clients with the official TypeScript SDK. Runs where its packages are installed.
import * as acp from "@agentclientprotocol/sdk";
import Ajv from "ajv/dist/2020.js";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";

const schema = JSON.parse(readFileSync(join(process.env.PACKAGES, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json")));
const within = (low, high) => ({ type: "number", validate: (n) => Number.isInteger(n) && n >= low && n <= high });
const ajv = new Ajv({ strict: false, allErrors: true, formats: {
    uint16: within(0, 65535), uint32: within(0, 2 ** 32 - 1), uint64: within(0, Infinity),
    int32: within(-(2 ** 31), 2 ** 31 - 1), int64: within(-Infinity, Infinity), double: true, uri: true } });
ajv.addSchema({ ...schema, $id: "acp" });
const asked = { "session/request_permission": "RequestPermissionRequest", "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest", "session/update": "SessionNotification", "elicitation/create": "CreateElicitationRequest" };
const answered = { initialize: "InitializeResponse", authenticate: "AuthenticateResponse", "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse", "session/resume": "ResumeSessionResponse", "session/list": "ListSessionsResponse",
    "session/prompt": "PromptResponse", "session/set_mode": "SetSessionModeResponse", "session/close": "CloseSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse", "session/delete": "DeleteSessionResponse",
    logout: "LogoutResponse" };
let checked = 0;

function check(type, value) {
    const valid = ajv.getSchema(`acp#/$defs/${type}`);
    assert.ok(valid, `no schema for ${type}`);
    assert.ok(valid(value), `${type}: ${ajv.errorsText(valid.errors)}: ${JSON.stringify(value).slice(0, 400)}`);
    checked += 1;
}

// A pi with its own folder; `use` gets the connection and what is to be known of it.
async function editor({ args = ["--model", "faux/echo"], script, able = {}, buffers, permission, project, settings }, use) {
    project ??= mkdtempSync(join(tmpdir(), "project-"));
    const home = mkdtempSync(join(tmpdir(), "home-"));
    mkdirSync(join(home, ".pi/agent"), { recursive: true });
    writeFileSync(join(home, ".pi/agent/settings.json"), JSON.stringify(settings ?? { retry: { baseDelayMs: 1 }, permissions: { mode: "free" } }));
    const env = { PATH: process.env.PATH, HOME: home };
    if (script) {
        writeFileSync(join(home, "script.json"), JSON.stringify(script));
        env.PI_FAUX_SCRIPT = join(home, "script.json");
        args = ["--model", "faux/script", ...args.filter((arg) => !arg.startsWith("faux/") && arg !== "--model")];
    }
    const start = async (use) => {
        const child = spawn(process.env.PI_BIN, ["--mode", "acp", ...args], { cwd: project, env, stdio: ["pipe", "pipe", "pipe"] });
        let stderr = "";
        child.stderr.on("data", (data) => (stderr += data));
        const ended = new Promise((done) => child.on("exit", (code, signal) => done(signal ?? code)));
        const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
        const wrong = [];
        const methods = new Map();
        const seen = { updates: [], questions: [], stderr: () => stderr };
        const out = new TransformStream({ transform(message, to) {
            if (message.method && message.id !== undefined) methods.set(message.id, message.method);
            to.enqueue(message);
        } });
        out.readable.pipeTo(stream.writable).catch(() => {});
        const tap = new TransformStream({ transform(message, to) {
            try {
                if (message.method) check(asked[message.method], message.params);
                else if (message.error) check("Error", message.error);
                else check(answered[methods.get(message.id)], message.result);
            } catch (error) {
                wrong.push(error.message);
            }
            if (message.method === "session/update") seen.updates.push(message.params.update);
            to.enqueue(message);
        } });
        const app = acp.client({ name: "scenarios" })
            .onNotification(acp.methods.client.session.update, () => {})
            .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
                seen.questions.push(params);
                return { outcome: { outcome: "selected", optionId: permission } };
            })
            .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
                if (!(params.path in buffers)) throw new acp.RequestError(-32603, "not open");
                return { content: buffers[params.path] };
            })
            .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
                buffers[params.path] = params.content;
                return {};
            });
        const result = await app.connectWith({ writable: out.writable, readable: stream.readable.pipeThrough(tap) }, async (agent) => {
            const hello = await agent.request("initialize", { protocolVersion: 1, clientCapabilities: able });
            const open = { cwd: project, mcpServers: [] };
            const say = (sessionId, ...prompt) => agent.request("session/prompt", { sessionId,
                prompt: prompt.map((part) => (typeof part === "string" ? { type: "text", text: part } : part)) });
            return use({ agent, hello, open, say, project, home, seen, start });
        });
        child.stdin.end();
        assert.equal(await ended, 0, stderr);
        assert.deepEqual(wrong, []);
        return result;
    };
    return start(use);
}

const kinds = (seen, kind) => seen.updates.filter((update) => update.sessionUpdate === kind);
const said = (seen) => kinds(seen, "agent_message_chunk").map((chunk) => chunk.content.text).join("");
const link = (uri) => ({ type: "resource_link", uri, name: uri.split("/").pop() });
const resource = (uri, text) => ({ type: "resource", resource: { uri, text } });
const fails = async (code, promise) => {
    const error = await promise.then(() => assert.fail("it was no error"), (error) => error);
    assert.equal(error.code, code, error.message);
    return error;
};

const scenarios = {
    "sign-in, with a key": () => editor({}, async ({ agent, hello }) => {
        assert.deepEqual(hello.authMethods, []);
        assert.deepEqual(await agent.request("authenticate", { methodId: "pi-auth-login" }), {});
    }),
    "sign-in, without a key": () => editor({ args: ["--model", "anthropic/claude-sonnet-4-5"] }, async ({ agent, hello, open }) => {
        assert.equal(hello.authMethods.length, 1);
        await fails(-32000, agent.request("authenticate", { methodId: hello.authMethods[0].id }));
        const { sessionId } = await agent.request("session/new", open);
        await fails(-32000, agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "x" }] }));
    }),
    "sign-in, in a terminal": () => editor({ able: { auth: { terminal: true } } }, async ({ hello }) => {
        assert.equal(hello.authMethods[0].type, "terminal");
        assert.deepEqual(hello.authMethods[0].args, ["auth", "login"]);
    }),
    "blocks of a prompt": () => editor({}, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        const { stopReason } = await say(sessionId, "Compare these files:", link("file:///p/a.rs"), link("file:///p/b.rs"),
            "Be short.", "Second block.");
        assert.equal(stopReason, "end_turn");
        assert.match(said(seen), /Compare these files: \/p\/a\.rs \/p\/b\.rs Be short\.\nSecond block\./);
    }),
    "selections": () => editor({}, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        await say(sessionId, "Explain ", resource("file:///p/big.rs#L10:12", "ten"),
            resource("file:///p/big.rs?symbol=foo#L20:30", "twenty"));
        assert.match(said(seen), /Explain \/p\/big\.rs \(lines 10-12\) \/p\/big\.rs \(symbol foo, lines 20-30\)\n/);
        assert.match(said(seen), /<file name="\/p\/big\.rs" lines="10-12">\nten\n<\/file>/);
        assert.match(said(seen), /<file name="\/p\/big\.rs" lines="20-30" symbol="foo">/);
    }),
    "a retry, with notices": () => retry({ session: { notices: {} } }, (seen) => {
        assert.equal(kinds(seen, "notice")[0].severity, "warning");
    }),
    "a retry, without notices": () => retry({}, (seen) => {
        assert.equal(kinds(seen, "notice").length, 0);
        assert.match(kinds(seen, "agent_thought_chunk")[0].content.text, /Attempt 1 of 3/);
    }),
    "a compaction": () => editor({
        script: ["a ".repeat(2000), { text: "b ".repeat(2000), usage: { input: 10_000_000, output: 10 } }, "THE SUMMARY", "THE TURN"],
        able: { session: { compaction: {}, notices: {} } },
        settings: { compaction: { keepRecentTokens: 100 } },
    }, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        await say(sessionId, "one");
        await say(sessionId, "two");
        const told = kinds(seen, "compaction_update");
        assert.deepEqual(told.map((update) => update.status), ["in_progress", "completed"]);
        assert.equal(told[0].compactionId, told[1].compactionId);
    }),
    "write and edit over unsaved text": () => {
        const project = mkdtempSync(join(tmpdir(), "project-"));
        const path = join(project, "a.txt");
        writeFileSync(path, "on disk\n");
        const buffers = { [path]: "# one\nunsaved\n" };
        const call = (name, fields) => ({ content: [{ type: "toolCall", name, arguments: fields }] });
        return editor({
            args: ["--ask-tools", "writes"], project, buffers, permission: "allow",
            able: { fs: { readTextFile: true, writeTextFile: true } },
            script: [call("edit", { path: "a.txt", edits: [{ oldText: "unsaved", newText: "edited" }] }),
                call("write", { path: "a.txt", content: "# one\nwritten\n" }), "Done."],
        }, async ({ agent, open, say, seen }) => {
            const { sessionId } = await agent.request("session/new", open);
            await say(sessionId, "go");
            const diffs = seen.questions.map(({ toolCall }) => toolCall.content[0]);
            assert.deepEqual(diffs.map(({ oldText, newText }) => [oldText, newText]), [
                ["# one\nunsaved\n", "# one\nedited\n"], ["# one\nedited\n", "# one\nwritten\n"]]);
            assert.deepEqual(seen.questions.map(({ toolCall }) => toolCall.locations), [[{ path, line: 2 }], [{ path, line: 2 }]]);
            assert.equal(buffers[path], "# one\nwritten\n");
            assert.equal(readFileSync(path, "utf8"), "on disk\n");
        });
    },
    "permission that is refused": () => editor({
        args: ["--ask-tools", "all"], permission: "deny",
        script: [{ content: [{ type: "toolCall", name: "bash", arguments: { command: "touch made" } }] }, "Well."],
    }, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        assert.equal((await say(sessionId, "go")).stopReason, "end_turn");
        assert.equal(kinds(seen, "tool_call_update").at(-1).status, "failed");
    }),
    "a request that is cancelled": () => editor({ script: [{ text: "slow ".repeat(200), chunkDelayMs: 50 }, "quick"] },
        async ({ agent, open, say, seen }) => {
            const { sessionId } = await agent.request("session/new", open);
            const cancel = new AbortController();
            const prompt = agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "x" }] },
                { cancellationSignal: cancel.signal });
            while (!said(seen)) await new Promise((done) => setTimeout(done, 5));
            cancel.abort();
            assert.equal((await prompt).stopReason, "cancelled");
            assert.equal((await say(sessionId, "again")).stopReason, "end_turn");
        }),
    "a turn that is cancelled": () => editor({ script: [{ text: "slow ".repeat(200), chunkDelayMs: 50 }] },
        async ({ agent, open, say, seen }) => {
            const { sessionId } = await agent.request("session/new", open);
            const prompt = say(sessionId, "x");
            while (!said(seen)) await new Promise((done) => setTimeout(done, 5));
            await agent.notify("session/cancel", { sessionId });
            assert.equal((await prompt).stopReason, "cancelled");
        }),
    "list, load, resume": () => editor({}, async ({ agent, open, say, seen, start }) => {
        const { sessionId } = await agent.request("session/new", open);
        await say(sessionId, "A title\nand more", resource("file:///p/a.rs", "fn a() {}"));
        assert.equal(kinds(seen, "session_info_update")[0].title, "A title");
        await agent.request("session/close", { sessionId });
        await start(async ({ agent, open, say, seen }) => {
            const { sessions } = await agent.request("session/list", { cwd: open.cwd });
            assert.deepEqual(sessions.map(({ sessionId, title }) => [sessionId, title]), [[sessionId, "A title"]]);
            await agent.request("session/load", { ...open, sessionId });
            const typed = kinds(seen, "user_message_chunk").map(({ content }) => content);
            assert.deepEqual(typed, [{ type: "text", text: "A title\nand more" },
                { type: "resource_link", uri: "file:///p/a.rs", name: "a.rs" }]);
            await agent.request("session/resume", { ...open, sessionId });
            assert.equal((await say(sessionId, "more")).stopReason, "end_turn");
        });
    }),
    "load, never prompted": () => editor({}, async ({ agent, open, start }) => {
        const { sessionId } = await agent.request("session/new", open);
        await start(async ({ agent, open, say }) => {
            await agent.request("session/load", { ...open, sessionId });
            assert.equal((await say(sessionId, "x")).stopReason, "end_turn");
            await fails(-32002, agent.request("session/load", { ...open, sessionId: "nope" }));
        });
    }),
    "an MCP server of the editor": () => editor({
        script: [{ content: [{ type: "toolCall", name: "codemode", arguments: { code: 'text(await tools.mcp__every_thing__echo({ message: "hello" }))' } }] }, "Done."],
    }, async ({ agent, open, say, seen }) => {
        const server = join(process.env.PACKAGES, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        const mcpServers = [{ name: "every thing", command: process.execPath, args: [server], env: [] }];
        const { sessionId } = await agent.request("session/new", { ...open, mcpServers });
        await say(sessionId, "x");
        assert.match(JSON.stringify(kinds(seen, "tool_call_update").at(-1)), /Echo: hello/);
        await agent.request("session/close", { sessionId });
    }),
    "modes and commands": () => editor({ settings: {} }, async ({ agent, open, seen, project }) => {
        const { sessionId, modes } = await agent.request("session/new", open);
        assert.equal(modes.currentModeId, "writes");
        await agent.request("session/set_mode", { sessionId, modeId: "read-only" });
        while (!kinds(seen, "current_mode_update").length) await new Promise((done) => setTimeout(done, 5));
        await fails(-32602, agent.request("session/new", { ...open, cwd: join(project, "gone") }));
    }),
    "pickers, usage, commands": () => editor({ script: ["Yes."] }, async ({ agent, open, say, seen }) => {
        const { sessionId, configOptions } = await agent.request("session/new", open);
        const picker = configOptions.find((option) => option.category === "model");
        const set = { sessionId, configId: picker.id, value: picker.currentValue };
        const answer = await agent.request("session/set_config_option", set);
        assert.equal(answer.configOptions.length, configOptions.length);
        await fails(-32602, agent.request("session/set_config_option", { ...set, value: "no/such" }));
        await say(sessionId, "x");
        assert.ok(kinds(seen, "usage_update").at(-1).used > 0);
        await say(sessionId, "/session");
        assert.match(said(seen), /1 prompts, 1 answers/);
        await agent.request("session/delete", { sessionId });
        assert.deepEqual((await agent.request("session/list", {})).sessions.filter((one) => one.sessionId === sessionId), []);
    }),
    "output of a command": () => editor({
        script: [{ content: [{ type: "toolCall", name: "bash", arguments: { command: "for i in $(seq 40); do seq 200; sleep 0.05; done" } }] }, "Done."],
    }, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        await say(sessionId, "go");
        const sizes = kinds(seen, "tool_call_update").map((update) => JSON.stringify(update).length);
        assert.ok(sizes.at(-1) > 5000 && sizes.slice(0, -1).every((size) => size < 4000), `sizes of updates: ${sizes}`);
    }),
};

function retry(able, more) {
    const script = [{ text: "First half of an ans", error: { message: "overloaded", status: 529 } }, "Full answer."];
    return editor({ script, able }, async ({ agent, open, say, seen }) => {
        const { sessionId } = await agent.request("session/new", open);
        assert.equal((await say(sessionId, "x")).stopReason, "end_turn");
        assert.equal(said(seen), "First half of an ans\n\nFull answer.");
        assert.equal(new Set(kinds(seen, "agent_message_chunk").map((chunk) => chunk.messageId)).size, 2);
        more(seen);
    });
}

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no end within 60 s")), 60_000).unref());
    const problem = await Promise.race([run(), late]).then(() => null, (error) => error);
    console.log(`${problem ? "FAILED" : "ok"}`.padEnd(7), "TypeScript SDK".padEnd(22), name);
    if (problem) {
        failed = 1;
        console.log(String(problem.stack ?? problem).replace(/^/gm, "        "));
    }
}
console.log("".padEnd(30), `${checked} messages checked against the schema`);
process.exit(failed);
