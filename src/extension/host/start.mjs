// The entry of the host. A Node that is too old for the other files is refused here, in an answer that pi shows.

import { spawnSync } from "node:child_process";
import { readSync, writeSync } from "node:fs";
import * as modules from "node:module";

if (process.versions.bun || (modules.registerHooks && modules.stripTypeScriptTypes)) await import("./main.mjs");
else {
	const bun = spawnSync("bun", process.argv.slice(1), { stdio: [0, 1, 2, 3, 4] });
	if (bun.error) refuse(`needs Node 22.18 or newer, or bun, and ${process.execPath} is ${process.version}`);
	else process.exitCode = bun.status ?? 1;
}

/** Answers the first message, which is `initialize`, with an error for every extension. */
function refuse(error) {
	const bytes = Buffer.alloc(1 << 16);
	let text = "";
	while (!text.includes("\n")) {
		const count = readSync(3, bytes, 0, bytes.length, null);
		if (count === 0) return;
		text += bytes.toString("utf8", 0, count);
	}
	const { id, params } = JSON.parse(text.slice(0, text.indexOf("\n")));
	const extensions = params.extensions.map((instance) => ({ id: instance.id, error }));
	writeSync(4, `${JSON.stringify({ jsonrpc: "2.0", id, result: { protocolVersion: 1, name: "typescript", extensions } })}\n`);
}
