// What extensions use of pi-ai: event streams, transcripts, costs, ids.

import { randomFillSync } from "node:crypto";
import { Type } from "./typebox.mjs";

export { Type };
export * from "./provider-object.mjs";

/** A string schema with `enum`, the form that every provider takes. */
export function StringEnum(values, options = {}) {
	return Type.Unsafe({ type: "string", enum: [...values], ...options });
}

/** A UUID of version 7: ordered by time. */
export function uuidv7() {
	const bytes = randomFillSync(Buffer.alloc(16));
	bytes.writeUIntBE(Date.now(), 0, 6);
	bytes[6] = 0x70 | (bytes[6] & 0x0f);
	bytes[8] = 0x80 | (bytes[8] & 0x3f);
	return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Events that are pushed at one side and iterated at the other, with a result at the end. */
export class EventStream {
	#queue = [];
	#waiting = [];
	#ended = false;
	#final = Promise.withResolvers();

	constructor(isComplete, extractResult) {
		Object.assign(this, { isComplete, extractResult });
	}

	push(event) {
		if (this.#ended) return;
		if (this.isComplete(event)) {
			this.#ended = true;
			this.#final.resolve(this.extractResult(event));
		}
		const next = this.#waiting.shift();
		next ? next({ value: event, done: false }) : this.#queue.push(event);
		if (this.#ended) this.#release();
	}

	end(result) {
		this.#ended = true;
		if (result !== undefined) this.#final.resolve(result);
		this.#release();
	}

	#release() {
		for (const next of this.#waiting.splice(0)) next({ value: undefined, done: true });
	}

	async *[Symbol.asyncIterator]() {
		for (;;) {
			if (this.#queue.length > 0) yield this.#queue.shift();
			else if (this.#ended) return;
			else {
				const { value, done } = await new Promise((resolve) => this.#waiting.push(resolve));
				if (done) return;
				yield value;
			}
		}
	}

	result() {
		return this.#final.promise;
	}
}

export class AssistantMessageEventStream extends EventStream {
	constructor() {
		super(
			(event) => event.type === "done" || event.type === "error",
			(event) => (event.type === "done" ? event.message : event.error),
		);
	}
}

export const createAssistantMessageEventStream = () => new AssistantMessageEventStream();

/** The text of a message's content. */
export function contentText(content, separator = "\n") {
	if (typeof content === "string") return content;
	return content.filter((block) => block.type === "text").map((block) => block.text).join(separator);
}

/** Puts `systemPrompt` and `tools` of a context into a leading system message. */
export function normalizeContext({ systemPrompt, tools, messages }) {
	if (!systemPrompt && !tools?.length) return { messages };
	const lead = { role: "system", content: systemPrompt ?? "", ...(tools?.length && { toolsAdded: tools }), timestamp: 0 };
	return { messages: [lead, ...messages] };
}

const systemMessages = (messages) => messages.filter((message) => message.role === "system");

/** The tools that hold after every system message. */
export function getCurrentTools(messages) {
	const tools = new Map();
	for (const { toolsAdded = [], toolsRemoved = [] } of systemMessages(messages)) {
		for (const { name } of toolsRemoved) tools.delete(name);
		for (const tool of toolsAdded) tools.set(tool.name, tool);
	}
	return [...tools.values()];
}

/** The system prompt that holds after every system message: its texts, then its sections. */
export function getCurrentSystemPrompt(messages) {
	const texts = [];
	const sections = new Map();
	for (const message of systemMessages(messages)) {
		const text = contentText(message.content);
		if (text) texts.push(text);
		for (const [name, value] of Object.entries(message.sections ?? {})) {
			value === null ? sections.delete(name) : sections.set(name, value);
		}
	}
	return [...texts, ...sections.values()].join("\n\n");
}

/** A transcript whose system messages are folded into the leading one. */
export function collapseSystemMessages({ messages }) {
	return normalizeContext({
		systemPrompt: getCurrentSystemPrompt(messages),
		tools: getCurrentTools(messages),
		messages: messages.filter((message) => message.role !== "system"),
	});
}

/** Fills in `usage.cost` from the prices of `model`, which are in dollars for a million tokens. */
export function calculateCost(model, usage) {
	const cost = Object.fromEntries(
		["input", "output", "cacheRead", "cacheWrite"].map((part) => [part, ((model.cost?.[part] ?? 0) / 1e6) * (usage[part] ?? 0)]),
	);
	usage.cost = { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite };
	return usage.cost;
}

/** The value of JSON that may end anywhere. */
export function parseStreamingJson(text) {
	const source = text?.trim() ?? "";
	if (source === "") return {};
	const open = [];
	let inText = false;
	let escaped = false;
	// Places where the text could be cut, with what would have to follow.
	const ends = [];
	for (let i = 0; i < source.length; i++) {
		const character = source[i];
		if (inText) {
			if (escaped) escaped = false;
			else if (character === "\\") escaped = true;
			else if (character === '"') inText = false;
		} else if (character === '"') inText = true;
		else if (character === "{" || character === "[") open.push(character === "{" ? "}" : "]");
		else if (character === "}" || character === "]") open.pop();
		else if (character === ",") ends.push([i, [...open].reverse().join("")]);
		if (!inText && (character === "{" || character === "[")) ends.push([i + 1, [...open].reverse().join("")]);
	}
	const closing = [...open].reverse().join("");
	const body = inText ? `${escaped ? source.slice(0, -1) : source}"` : source;
	for (const candidate of [body + closing, ...ends.reverse().map(([at, rest]) => source.slice(0, at) + rest)]) {
		try {
			return JSON.parse(candidate);
		} catch {
			// An earlier place to cut follows.
		}
	}
	return {};
}

/** Arguments of a tool call that arrive in fragments. */
export class ToolCallArgumentsStream {
	text = "";

	append(delta) {
		this.text += delta;
		return parseStreamingJson(this.text);
	}

	finish() {
		if (this.text.trim() === "") return { arguments: {} };
		try {
			return { arguments: JSON.parse(this.text) };
		} catch (error) {
			return { arguments: {}, argumentsError: `The arguments are no JSON: ${error.message}` };
		}
	}
}

export function isContextOverflow(message) {
	return message.stopReason === "error" && /context|too (long|many tokens)|maximum.*tokens/i.test(message.errorMessage ?? "");
}
