// Talks to the extension as pi does. Run it: node test.mjs

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("@NAME@", import.meta.url));
const requests = [
  ["initialize", {}],
  ["tool.call", { name: "@NAME@", arguments: { who: "Ada" } }],
  ["shutdown", {}],
];
const input = requests.map(([method, params], id) => JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
const ran = spawnSync(program, { input: input.join(""), encoding: "utf8", timeout: 30_000 });
assert.equal(ran.status, 0, ran.stderr);
const answers = ran.stdout.trim().split("\n").map((line) => JSON.parse(line));
assert.equal(answers.find((answer) => answer.id === 0).result.protocolVersion, 1);
assert.equal(answers.find((answer) => answer.id === 1).result.content, "Hello, Ada.");
console.log("ok");
