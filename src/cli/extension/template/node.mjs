#!/usr/bin/env node
// An extension of pi: a tool for the model and a command for you. pi docs extensions is the protocol.

import { createInterface } from "node:readline";

const registration = {
  protocolVersion: 1,
  tools: [{
    name: "@NAME@",
    description: "Greets somebody",
    parameters: {
      type: "object",
      properties: { who: { type: "string", description: "Who is greeted" } },
      required: ["who"],
    },
  }],
  commands: [{ name: "@NAME@", description: "Greets you" }],
};

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

/** Answers a request of pi. What is thrown here is told as an error. */
async function handle(method, params) {
  switch (method) {
    case "initialize":
      return registration;
    case "tool.call":
      return { content: `Hello, ${params.arguments.who}.` };
    case "command.run":
      send({ id: "note", method: "ui.notify", params: { message: "Hello.", type: "info" } });
      return null;
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  // An answer to a call of ours, or a notification.
  if (method === undefined || id === undefined) continue;
  try {
    send({ id, result: await handle(method, params ?? {}) });
  } catch (error) {
    send({ id, error: { code: -32000, message: String(error.message ?? error) } });
  }
  if (method === "shutdown") break;
}
