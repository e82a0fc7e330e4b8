#!/usr/bin/env node
// A list of things to do that the model keeps, shown above the editor. It is stored in the session: a branch has the
// list that it had. /checklist shows it, /checklist clear empties it.
//
//     pi -e scripts/examples/extensions/checklist.mjs

import { createInterface } from "node:readline";

let items = [];
let next = 0;
const calls = new Map();

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

/** Calls pi; the promise is the answer. */
function call(method, params = {}) {
  const id = `c${next++}`;
  send({ id, method, params });
  return new Promise((resolve) => calls.set(id, resolve));
}

const lines = () => items.map(({ text, done }) => `${done ? "☑" : "☐"} ${text}`);

function show() {
  return call("ui.setWidget", items.length ? { key: "checklist", lines: lines() } : { key: "checklist" });
}

async function change(to) {
  items = to;
  await call("session.appendEntry", { customType: "checklist", data: { items } });
  await show();
}

/** Reads the list as the branch of the session has it. */
async function restore() {
  const { entries = [] } = (await call("session.branch")) ?? {};
  const last = entries.findLast((entry) => entry.type === "custom" && entry.customType === "checklist");
  items = last?.data?.items ?? [];
  await show();
}

const registration = {
  protocolVersion: 1,
  tools: [{
    name: "checklist",
    description: "Keeps a list of steps that the user sees. Give the whole list each time.",
    promptSnippet: "keeps a list of steps that the user sees",
    parameters: {
      type: "object",
      required: ["items"],
      properties: {
        items: {
          type: "array",
          items: {
            type: "object",
            required: ["text"],
            properties: { text: { type: "string" }, done: { type: "boolean" } },
          },
        },
      },
    },
  }],
  commands: [{ name: "checklist", description: "Shows the list of steps; clear empties it" }],
  events: ["session_start", "session_tree"],
};

async function handle(method, params) {
  switch (method) {
    case "initialize":
      return registration;
    case "tool.call": {
      await change(params.arguments.items.map(({ text, done }) => ({ text, done: done === true })));
      const left = items.filter((item) => !item.done).length;
      return { content: `${lines().join("\n")}\n${left} left`, details: { items } };
    }
    case "command.run":
      if (params.arguments.trim() === "clear") await change([]);
      else await call("ui.notify", { message: lines().join("\n") || "The list is empty", type: "info" });
      return null;
    case "event":
      await restore();
      return null;
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) {
    calls.get(id)?.(result);
    calls.delete(id);
  } else if (id !== undefined) {
    // Not awaited: the answers to our own calls come on the same stream.
    handle(method, params ?? {}).then(
      (result) => {
        send({ id, result });
        if (method === "shutdown") process.exit(0);
      },
      (error) => send({ id, error: { code: -32000, message: String(error.message ?? error) } }),
    );
  }
}
