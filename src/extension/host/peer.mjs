// A JSON-RPC 2.0 peer: one message a line, read from descriptor 3 and written to descriptor 4.
//
// The reference's extension API answers many questions at once (`getEntries`, `getActiveTools`),
// while here the answers lie in another process. `ask` therefore blocks this thread until the
// answer is there. Lines are read on a thread of their own, so that they arrive meanwhile;
// requests that come in during a blocking call wait in order until it is over.
//
// Descriptors 0 and 1 stay free for the code of extensions and for their children.

import { closeSync, writeSync } from "node:fs";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";

const READER = `
const { Socket } = require("node:net");
const { workerData: { port, flag } } = require("node:worker_threads");
let pending = [];
const tell = (line) => { port.postMessage(line); Atomics.add(flag, 0, 1); Atomics.notify(flag, 0); };
const take = (chunk) => {
  let from = 0;
  for (let end; (end = chunk.indexOf(10, from)) >= 0; from = end + 1) {
    pending.push(chunk.subarray(from, end));
    const line = pending.length === 1 ? pending[0] : Buffer.concat(pending);
    pending = [];
    if (line.length > 0) tell(line.toString("utf8"));
  }
  if (from < chunk.length) pending.push(chunk.subarray(from));
};
// A socket, since a thread that is blocked in a read keeps Node from ending; bun has none for a descriptor.
const input = process.versions.bun ? require("node:fs").createReadStream(null, { fd: 3 }) : new Socket({ fd: 3, readable: true, writable: false });
input.on("data", take);
input.on("error", () => {});
input.on("close", () => tell(null));
`;

/** An error that pi answered with; `code` is JSON-RPC's. */
export class RemoteError extends Error {
	constructor(method, { code, message }) {
		super(message ?? `${method} failed`);
		this.code = code;
	}
}

export class Peer {
	/** `handle(method, params, signal, id)` answers requests, `answered(method)` is called behind each answer, `notify(method, params)` takes notifications. */
	constructor({ handle, answered, notify, closed }) {
		Object.assign(this, { handle, answered, notify, closed });
		this.nextId = 1;
		this.calls = new Map();
		this.running = new Map();
		this.backlog = [];
		this.flag = new Int32Array(new SharedArrayBuffer(4));
		const { port1, port2 } = new MessageChannel();
		this.port = port1;
		this.reader = new Worker(READER, {
			eval: true,
			workerData: { port: port2, flag: this.flag },
			transferList: [port2],
			execArgv: [],
			stdin: false,
		});
		port1.on("message", (line) => {
			this.take(line);
			this.drain();
		});
	}

	send(message) {
		const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
		for (let sent = 0; sent < bytes.length; ) {
			try {
				sent += writeSync(4, bytes, sent);
			} catch (error) {
				if (error.code === "EPIPE") return;
				if (error.code !== "EAGAIN") throw error;
				Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
			}
		}
	}

	/** Calls `method`. Aborting `signal` cancels the call, which is answered nevertheless. */
	call(method, params, signal) {
		const id = this.nextId++;
		return new Promise((resolve, reject) => {
			const cancel = () => this.send({ method: "$/cancelRequest", params: { id } });
			this.calls.set(id, {
				method,
				settle: (answer) => {
					signal?.removeEventListener("abort", cancel);
					answer.error ? reject(new RemoteError(method, answer.error)) : resolve(answer.result);
				},
			});
			this.send({ id, method, params });
			if (signal?.aborted) cancel();
			else signal?.addEventListener("abort", cancel, { once: true });
		});
	}

	/** Calls `method` and blocks this thread until it is answered. */
	ask(method, params) {
		const id = this.nextId++;
		let answer;
		this.calls.set(id, { method, settle: (message) => (answer = message) });
		this.send({ id, method, params });
		while (answer === undefined) {
			const seen = Atomics.load(this.flag, 0);
			const next = receiveMessageOnPort(this.port);
			if (next) this.take(next.message);
			else Atomics.wait(this.flag, 0, seen);
		}
		if (this.backlog.length > 0) setImmediate(() => this.drain());
		if (answer.error) throw new RemoteError(method, answer.error);
		return answer.result;
	}

	/** Ends the waiting for answers to `method`, as if they had come empty. Gives how many there were. */
	release(method) {
		const calls = [...this.calls].filter(([, call]) => call.method === method);
		for (const [id, call] of calls) {
			this.calls.delete(id);
			call.settle({ result: null });
		}
		return calls.length;
	}

	/** Settles an answer at once; a request or notification joins the backlog. */
	take(line) {
		if (line === null) {
			this.closed();
			return;
		}
		let message;
		try {
			message = JSON.parse(line);
		} catch {
			this.send({ id: null, error: { code: -32700, message: "a line that is no JSON" } });
			return;
		}
		if (message.method !== undefined) {
			this.backlog.push(message);
			return;
		}
		const call = this.calls.get(message.id);
		this.calls.delete(message.id);
		call?.settle(message);
	}

	drain() {
		for (let message; (message = this.backlog.shift()); ) {
			if (message.method === "$/cancelRequest") this.running.get(message.params?.id)?.abort();
			else if (message.id === undefined) this.notify(message.method, message.params ?? {});
			else this.answer(message);
		}
	}

	async answer({ id, method, params }) {
		const controller = new AbortController();
		this.running.set(id, controller);
		try {
			const result = await this.handle(method, params ?? {}, controller.signal, id);
			this.send({ id, result: result ?? null });
		} catch (error) {
			const code = controller.signal.aborted ? -32800 : (error?.rpcCode ?? -32000);
			this.send({ id, error: { code, message: describe(error) } });
		} finally {
			this.running.delete(id);
			this.answered(method);
		}
	}

	close() {
		closeSync(4);
	}
}

/** The text of an error that an extension threw, which may be anything. */
export function describe(error) {
	if (error instanceof Error) return error.message || error.name;
	return typeof error === "string" ? error : `an error without a message (${JSON.stringify(error) ?? typeof error})`;
}
