// `pi.exec`: runs a program, and keeps its output.

import { spawn } from "node:child_process";
import { environment } from "./environment.mjs";

/** Milliseconds for a program to end by itself when it is asked to. */
const END_MS = 2000;
/** Bytes of output that are kept without another limit. */
const MAX_BUFFER = 256 << 20;

/** Runs a program as a group that ends together. Output over `maxBuffer` bytes, stdout and stderr together, ends it. */
export function exec(command, args = [], { cwd = environment.cwd, timeout, signal, maxBuffer = MAX_BUFFER, env } = {}) {
	return new Promise((done) => {
		const child = spawn(command, args, { cwd, env: env ? { ...process.env, ...env } : process.env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
		const output = { stdout: [], stderr: [] };
		let left = maxBuffer;
		let killed = false;
		const end = () => {
			killed = true;
			try {
				process.kill(-child.pid, "SIGTERM");
				setTimeout(() => {
					if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
				}, END_MS).unref();
			} catch {
				// It has ended already.
			}
		};
		const timer = timeout > 0 ? setTimeout(end, timeout) : undefined;
		if (signal?.aborted) end();
		signal?.addEventListener("abort", end, { once: true });
		for (const name of ["stdout", "stderr"]) {
			child[name].on("data", (chunk) => {
				if (left < 0) return;
				output[name].push(chunk.subarray(0, left));
				left -= chunk.length;
				if (left < 0) end();
			});
		}
		const finish = (code, message = "") => {
			clearTimeout(timer);
			signal?.removeEventListener("abort", end);
			const text = (name) => Buffer.concat(output[name]).toString("utf8");
			const truncated = left < 0;
			done({ stdout: text("stdout"), stderr: text("stderr") + message, code: truncated ? code || 1 : (code ?? 0), killed, truncated });
		};
		child.on("error", (error) => finish(1, error.message));
		child.on("close", (code) => finish(code));
	});
}
