// Scenarios of scripts/mcp-clients with the official TypeScript SDK. Runs where its packages are installed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

// With PI_URL, pi listens there and the flags are its own.
async function connect(flags, capabilities = {}) {
    const client = new Client({ name: "check", version: "1" }, { capabilities });
    const transport = process.env.PI_URL ? new StreamableHTTPClientTransport(new URL(process.env.PI_URL), {
        requestInit: { headers: { Authorization: `Bearer ${process.env.PI_MCP_TOKEN}` } } }) : over_stdio(flags);
    if (capabilities.elicitation) {
        client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { answer: "Allow" } }));
    }
    await client.connect(transport);
    return client;
}

const over_stdio = (flags) => new StdioClientTransport({
    command: process.env.PI_BIN, args: ["--mode", "mcp", "--model", "faux/script", ...flags], env: process.env, stderr: "ignore" });

const text = (result) => result.content[0].text;

const scenarios = {
    "tools and their calls": async () => {
        writeFileSync("a.txt", "one\n");
        const client = await connect(["--tools", "+ls"]);
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map((tool) => tool.name).sort(), ["agent", "bash", "edit", "ls", "read", "write"]);
        assert.match(text(await client.callTool({ name: "read", arguments: { path: "a.txt" } })), /one/);
        assert.equal((await client.callTool({ name: "read", arguments: { path: "no" } })).isError, true);
        await assert.rejects(client.callTool({ name: "no", arguments: {} }));
        await client.ping();
        await client.close();
    },
    "an agent, with progress": async () => {
        const client = await connect(["--tools", "+ls"]);
        await client.listTools();
        const seen = [];
        const result = await client.callTool({ name: "agent", arguments: { prompt: "look" } }, undefined,
            { onprogress: (progress) => seen.push(progress.message) });
        assert.equal(text(result), "All seen.");
        assert.equal(result.structuredContent.text, "All seen.");
        assert.equal(seen.length, 1);
        const { resources } = await client.listResources();
        const found = resources.find((one) => one.uri.endsWith(result.structuredContent.session));
        assert.match((await client.readResource({ uri: found.uri })).contents[0].text, /All seen/);
        await client.close();
    },
    "a call that is aborted": async () => {
        const client = await connect([]);
        const abort = new AbortController();
        const call = client.callTool({ name: "bash", arguments: { command: "sleep 100" } }, undefined, { signal: abort.signal });
        setTimeout(() => abort.abort("enough"), 100);
        await assert.rejects(call);
        assert.equal(text(await client.callTool({ name: "bash", arguments: { command: "echo hi" } })).trim(), "hi");
        await client.close();
    },
    "approval by a form": async () => {
        const client = await connect(["--ask-tools", "all"], { elicitation: {} });
        assert.equal(text(await client.callTool({ name: "bash", arguments: { command: "echo hi" } })).trim(), "hi");
        await client.close();
    },
};

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no end within 60 s")), 60_000).unref());
    const problem = await Promise.race([run(), late]).then(() => null, (error) => error);
    console.log(`${problem ? "FAILED" : "ok"}`.padEnd(7), (process.env.PI_URL ? "TypeScript SDK, HTTP" : "TypeScript SDK").padEnd(22), name);
    if (problem) {
        failed = 1;
        console.log(String(problem.stack ?? problem).replace(/^/gm, "        "));
    }
}
process.exit(failed);
