// The part of scripts/wire-compare that runs the TypeScript pi: `ask PACKAGE FOLDER [API]` writes the cases and its
// requests, `compare FOLDER` compares these with ours.
import { createReadStream, createWriteStream } from "node:fs";
import { registerHooks } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { zstdDecompressSync } from "node:zlib";

// Packages of 1.5.2 that the registry does not have, as far as requests need them: nothing is measured, and schemas of
// configuration are not checked.
const ABSENT = {
    "@earendil-works/pi-telemetry": `
        const none = () => {};
        const span = { startSpan: async (_, run) => run(span), addEvent: none, setAttributes: none, setStatus: none };
        const metric = { add: none, record: none };
        export const NOOP_TELEMETRY_CONTEXT = span, NOOP_TELEMETRY_METRICS = {};
        export const defineTelemetrySchema = (schema) => schema;
        export const createTypedMetrics = () => ({ histogram: () => metric, counter: () => metric });
        export const createTypedSpanStarter = (context) => (name, attributes, run) => context.startSpan({ name, attributes }, (span) => run(span));`,
    "@earendil-works/pi-schema": ["arr", "bool", "int", "nul", "num", "obj", "oneOf", "opt", "str", "union", "compile"]
        .map((name) => `export const ${name} = () => ({});`).join("\n"),
    "@earendil-works/pi-schema/formats": "export const formats = {};",
};
registerHooks({
    resolve: (name, context, next) => ABSENT[name] === undefined ? next(name, context)
        : { url: `data:text/javascript,${encodeURIComponent(ABSENT[name])}`, shortCircuit: true },
});

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
// A token with the account that the Codex protocol wants to know.
const JWT = `e30.${Buffer.from('{"https://api.openai.com/auth":{"chatgpt_account_id":"acc"}}').toString("base64url")}.x`;
const ENV = {
    AZURE_OPENAI_RESOURCE_NAME: "res", CLOUDFLARE_ACCOUNT_ID: "acc", CLOUDFLARE_GATEWAY_ID: "gate",
    GOOGLE_CLOUD_PROJECT: "proj", GOOGLE_CLOUD_LOCATION: "us-east5", AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret",
};

const tool = (name, properties, required) =>
    ({ name, description: `${name} it`, parameters: { type: "object", properties, required } });
const READ = tool("read", { path: { type: "string", description: "File" }, limit: { type: "number" } }, ["path"]);
const BASH = tool("bash", { command: { type: "string" } }, ["command"]);
const system = (tools, more) => ({ role: "system", content: "Be brief.", toolsAdded: tools, timestamp: 1, ...more });
const user = (content) => ({ role: "user", content, timestamp: 2 });
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const answer = (model, content, stopReason = "stop") =>
    ({ role: "assistant", content, api: model.api, provider: model.provider, model: model.id, usage, stopReason, timestamp: 3 });
const call = (id, name, args) => ({ type: "toolCall", id, name, arguments: args });
const result = (toolCallId, toolName, content, isError = false) =>
    ({ role: "toolResult", toolCallId, toolName, content, isError, timestamp: 4 });

// What signs a thought differs by protocol.
function thought(model) {
    const block = { type: "thinking", thinking: "Let me look." };
    if (/responses/.test(model.api)) {
        const item = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Let me look." }], encrypted_content: "enc" };
        return { ...block, thinkingSignature: JSON.stringify(item) };
    }
    if (model.api === "openai-completions") return { ...block, thinkingSignature: "reasoning_content" };
    if (model.api === "mistral-conversations") return block;
    return { ...block, thinkingSignature: "c2lnbmVkIGJ5IHRoZSBtb2RlbA==" };
}
const id = (model, n) => /responses/.test(model.api) ? `call_${n}|fc_${n}` : model.api === "mistral-conversations" ? `abcdefgh${n}` : `call_${n}`;

const OTHER = { api: "faux", provider: "elsewhere", id: "other" };
const CONVERSATIONS = {
    plain: () => [system([]), user("Hello é")],
    bare: () => [user("Hello")],
    tools: () => [system([READ, BASH]), user([text("Read a.txt")])],
    results: (m) => [system([READ, BASH]), user("Read both"),
        answer(m, [text("I read."), call(id(m, 1), "read", { path: "a.txt" }), call(id(m, 2), "bash", { command: "ls" })], "toolUse"),
        result(id(m, 1), "read", [text("one"), text("two")]), result(id(m, 2), "bash", [text("no such file")], true)],
    answered: (m) => [system([READ]), user("Read"), answer(m, [call(id(m, 1), "read", { path: "a" })], "toolUse"),
        result(id(m, 1), "read", [text("content")]), answer(m, [text("Done.")]), user("And now?")],
    interrupted: (m) => [system([READ]), user("Read"), answer(m, [call(id(m, 1), "read", { path: "a" })], "toolUse"), user("Stop")],
    steered: (m) => [system([READ]), user("Read"), answer(m, [call(id(m, 1), "read", { path: "a" })], "toolUse"),
        result(id(m, 1), "read", [text("content")]), user("Also b")],
    images: (m) => [system([READ]), user([text("What is it?"), image]), answer(m, [call(id(m, 1), "read", { path: "a.png" })], "toolUse"),
        result(id(m, 1), "read", [text("An image"), image])],
    imageonly: (m) => [system([READ]), user([image]), answer(m, [call(id(m, 1), "read", { path: "a.png" })], "toolUse"), result(id(m, 1), "read", [image])],
    imageerror: (m) => [system([READ]), user("Look"), answer(m, [call(id(m, 1), "read", { path: "a.png" })], "toolUse"), result(id(m, 1), "read", [text("broken"), image], true)],
    thinking: (m) => [system([READ]), user("Read"), answer(m, [thought(m), text("I read."), call(id(m, 1), "read", { path: "a" })], "toolUse"),
        result(id(m, 1), "read", [text("content")])],
    thought: (m) => [system([READ]), user("Think"), answer(m, [thought(m), text("Thought.")]), user("More")],
    elsewhere: () => [system([READ]), user("Read"),
        answer(OTHER, [{ type: "thinking", thinking: "Hm.", thinkingSignature: "sig" }, text("I read."), call("toolu_01/x|y", "read", { path: "a" })], "toolUse"),
        result("toolu_01/x|y", "read", [text("content")])],
    failed: (m) => [system([READ]), user("One"), { ...answer(m, [text("Half an ans")], "error"), errorMessage: "overloaded" }, user("Two"),
        { ...answer(m, [text("cut")], "aborted") }, user("Three")],
    empty: (m) => [system([READ]), user("One"), answer(m, [text(" ")]), user("Two"), answer(m, [text("")]), user([text("")]), user("Three"),
        answer(m, [call(id(m, 1), "read", {})], "toolUse"), result(id(m, 1), "read", [])],
    update: (m) => [system([READ], { sections: { cwd: "In /a" } }), user("One"), answer(m, [text("First.")]),
        system([BASH], { content: "", sections: { cwd: "In /b" } }), user("Two")],
    removed: (m) => [system([READ, BASH]), user("One"), answer(m, [text("First.")]),
        { role: "system", content: "Less now.", toolsRemoved: [{ name: "bash" }], timestamp: 5 }, user("Two")],
};

const AT_ALL_LEVELS = ["plain", "thinking"];

async function ask(home, folder, only) {
    const url = (path) => pathToFileURL(`${home}/dist/${path}`).href;
    const { builtinProviders } = await import(url("providers/all.js"));
    const { clampThinkingLevel } = await import(url("models.js"));
    let seen;
    const take = async (input, init) => {
        const request = input instanceof Request ? input : new Request(input, init);
        let bytes = Buffer.from(await request.arrayBuffer());
        if (request.headers.get("content-encoding") === "zstd") bytes = zstdDecompressSync(bytes);
        seen ??= { url: request.url, headers: Object.fromEntries(request.headers), body: JSON.parse(bytes.toString()) };
        return new Response('{"error":{"message":"stop"}}', { status: 400, headers: { "content-type": "application/json" } });
    };
    globalThis.fetch = take;
    console.debug = console.warn = () => {};
    Object.assign(process.env, ENV);
    const cases = createWriteStream(`${folder}/cases`);
    const theirs = createWriteStream(`${folder}/theirs`);
    const write = (stream, value) => stream.write(JSON.stringify(value) + "\n") || new Promise((done) => stream.once("drain", done));
    for (const provider of builtinProviders()) {
        for (const model of provider.getModels()) {
            if (only && model.api !== only) continue;
            for (const [name, make] of Object.entries(CONVERSATIONS)) {
                const levels = AT_ALL_LEVELS.includes(name) ? LEVELS : ["medium"];
                // As agents do. Given a level that the model lacks, our protocols take the nearest one by themselves.
                for (const level of new Set(levels.map((level) => clampThinkingLevel(model, level)))) {
                    const messages = make(model);
                    const key = model.api === "openai-codex-responses" ? JWT : "key";
                    const wanted = { api: model.api, provider: provider.id, id: model.id, conversation: name, level, key,
                        session: "0197b7a0-0000-7000-8000-000000000001", env: ENV, messages };
                    seen = undefined;
                    const options = { apiKey: key, env: ENV, sessionId: wanted.session, maxRetries: 0, transport: "sse",
                        reasoning: level === "off" ? undefined : level };
                    if (model.api === "bedrock-converse-stream") {
                        options.onPayload = ({ modelId, ...body }) => {
                            const bytes = (_, value) => value instanceof Uint8Array || value?.type === "Buffer" ? Buffer.from(value).toString("base64") : value;
                            seen = { url: modelId, headers: {}, body: JSON.parse(JSON.stringify(body, bytes)) };
                            throw new Error("stop");
                        };
                    }
                    const last = await provider.streamSimple(model, structuredClone({ messages }), options).result();
                    await write(cases, wanted);
                    await write(theirs, seen ?? { error: last.errorMessage });
                }
            }
        }
    }
    await Promise.all([cases, theirs].map((stream) => new Promise((done) => stream.end(done))));
}

// Headers that name a program or its library, or that the connection adds.
const OWN = new RegExp("^(user-agent|x-stainless-.*|content-length|content-encoding|host|accept|accept-encoding|accept-language|connection" +
    "|sec-fetch-.*|x-goog-api-client|http-referer|referer|x-title|x-openrouter-.*|originator|x-client-request-id|authorization" +
    "|copilot-integration-id|editor-version|editor-plugin-version|x-opencode-client|x-billing-invoke-origin|anthropic-dangerous-.*)$");

// Forms that a server takes alike: one text as text or as a block, neighbours with one role as one message or as two.
// What is empty is left out, as ours leaves it out: several servers refuse it.
function normal(api, body) {
    const blank = (part) => ["", " ", "<empty>"].includes(part.text) && Object.keys(part).every((name) => /^(type|text|annotations)$/.test(name));
    const joined = (messages, field) => messages.reduce((all, message) => {
        const list = message[field];
        const parts = typeof list === "string" ? [{ type: "text", text: list }] : list.filter((part) => !blank(part));
        const last = all.at(-1);
        if (last?.role === message.role) last[field].push(...parts);
        else if (parts.length > 0) all.push({ ...message, [field]: parts });
        return all;
    }, []);
    if (api === "anthropic-messages" || api.startsWith("bedrock")) return { ...body, messages: joined(body.messages, "content") };
    if (api.startsWith("google")) return { ...body, contents: joined(body.contents, "parts") };
    if (api === "openai-completions" && /^anthropic\/|\/anthropic\//.test(body.model)) {
        const parts = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
        return { ...body, messages: body.messages.map((message) => ({ ...message, content: parts(message.content) })) };
    }
    if (!api.includes("responses")) return body;
    const empty = (item) => Array.isArray(item.content) && item.content.length > 0 && item.content.every(blank);
    // The number in an id made for an answer without one counts the answers.
    const named = (item) => item.id?.startsWith("msg_pi_") ? { ...item, id: "msg_pi_" } : item;
    return { ...body, input: body.input.filter((item) => !empty(item)).map(named) };
}

// Differences that are meant: the reason, and which they are.
const MEANT = [
    ["texts of its own (a section or tools that changed, pictures of a failed call, a tool that holds a place)",
        ({ conversation }, path) => /^(update|removed|imageerror)$/.test(conversation) && /\.(messages|input|contents|system).*(text|content)$/.test(path) || /\.tools\[\d+\]\.description$/.test(path)],
    ["instructions of its own where there is no prompt", ({ conversation }, path) => conversation === "bare" && path === "body.instructions"],
    ["Mistral refuses a user right after a tool (code 3230): an answer stands between",
        ({ api, conversation }, path, a, b) => api.startsWith("mistral") && path === "body.messages[]" && /^(interrupted|steered)$/.test(conversation) && b.length === a.length + 1],
    ["an empty message is left out", ({ api, conversation }, path, a, b) => api.startsWith("mistral") && path === "body.messages[]" && conversation === "empty" && b.length === a.length - 1],
    ["Gemini 3 refuses calls without a signature: Google's placeholder stands for it",
        ({ api }, path, a) => api.startsWith("google") && path.endsWith(".thoughtSignature") && a === undefined],
    ["thinking budgets below what Gemini 2.5 takes (Pro 128, Flash-Lite 512)", (_, path, a, b) => path.endsWith(".thinkingBudget") && a < b && [128, 512].includes(b)],
    ["more than one token is left for an answer where the window is small", (_, path, a, b) => /\.max_\w*tokens$/.test(path) && a < b && b < 4096],
    ["an empty list of tools is left out", (_, path, a, b) => path.endsWith(".toolsAdded") && a.length === 0 && b === undefined],
];

// Paths at which two values differ, with items of lists named by their place.
function* differences(a, b, path = "") {
    if (a === b) return;
    const plain = (value) => value !== null && typeof value === "object";
    if (!plain(a) || !plain(b) || Array.isArray(a) !== Array.isArray(b)) {
        yield [path, a, b];
        return;
    }
    if (Array.isArray(a) && a.length !== b.length) {
        yield [`${path}[]`, a, b];
        return;
    }
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        yield* differences(a[name], b[name], Array.isArray(a) ? `${path}[${name}]` : `${path}.${name}`);
    }
}

async function compare(folder) {
    const lines = (name) => createInterface({ input: createReadStream(`${folder}/${name}`) })[Symbol.asyncIterator]();
    const [cases, theirs, ours] = [lines("cases"), lines("theirs"), lines("ours")];
    const counts = new Map();
    const kinds = new Map();
    const meant = new Map();
    for await (const line of cases) {
        const wanted = JSON.parse(line);
        const their = JSON.parse((await theirs.next()).value);
        const our = JSON.parse((await ours.next()).value);
        const count = counts.get(wanted.api) ?? { all: 0, same: 0, bodies: 0 };
        counts.set(wanted.api, count);
        count.all += 1;
        let found = [];
        if (their.error || our.error) {
            if (!their.error !== !our.error) found.push(["error", their.error ?? "(sent)", our.error ?? "(sent)"]);
        } else {
            found.push(...differences(normal(wanted.api, their.body), normal(wanted.api, our.body), "body"));
            found = found.filter(([path, a, b]) => {
                const rule = MEANT.find(([_, is]) => is(wanted, path, a, b));
                if (rule) meant.set(rule[0], (meant.get(rule[0]) ?? 0) + 1);
                return !rule;
            });
            if (found.length === 0) count.bodies += 1;
            if (wanted.api !== "bedrock-converse-stream") {
                const shown = (headers) => Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN.test(name)));
                found.push(...differences(shown(their.headers), shown(our.headers), "headers"));
                if (their.url !== our.url) found.push(["url", their.url, our.url]);
            }
        }
        if (found.length === 0) count.same += 1;
        for (const [path, a, b] of found) {
            const kind = `${wanted.api} ${path.replace(/\[\d+\]/g, "[n]")}`;
            const known = kinds.get(kind) ?? { count: 0, models: new Set(), conversations: new Set(), first: [wanted, path, a, b] };
            kinds.set(kind, known);
            known.conversations.add(wanted.conversation);
            known.count += 1;
            known.models.add(`${wanted.provider}/${wanted.id}`);
        }
    }
    for (const [api, { all, same, bodies }] of counts) console.log(`${api}: ${all} requests, ${bodies} bodies the same, ${same} with address and headers`);
    for (const [reason, count] of meant) console.log(`meant, ${count} times: ${reason}`);
    const short = (value) => (JSON.stringify(value) ?? "(absent)").slice(0, 400);
    for (const [kind, { count, models, conversations, first: [wanted, path, a, b] }] of kinds) {
        console.log(`\n${kind}: ${count} times, ${models.size} models; ${[...conversations].join(" ")}`);
        console.log(`  first ${wanted.provider}/${wanted.id}, ${wanted.conversation} at ${wanted.level}, ${path}`);
        console.log(`  theirs ${short(a)}\n  ours   ${short(b)}`);
    }
    process.exitCode = kinds.size === 0 ? 0 : 1;
}

const [what, ...rest] = process.argv.slice(2);
await (what === "ask" ? ask(...rest) : compare(...rest));
