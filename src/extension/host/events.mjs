// How the handlers of one extension make one answer to an event: each sees what the ones before changed.

const last = (event, handled) => handled.at(-1) ?? {};
const stopAtCancel = { until: (result) => result.cancel, answer: (event, handled) => handled.find((result) => result.cancel) ?? last(event, handled) };

/** Copies the named fields of each result into the event; the answer is what was changed. */
const chain = (...fields) => ({
	apply: (event, result) => {
		for (const field of fields) if (result[field] !== undefined) event[field] = result[field];
	},
	answer: (event, handled) =>
		Object.fromEntries(fields.filter((field) => handled.some((result) => result[field] !== undefined)).map((field) => [field, event[field]])),
});

/** A field that handlers change in place. */
const inPlace = (field, rest = () => ({})) => ({
	before: (event) => JSON.stringify(event[field]),
	answer: (event, handled, before) => ({ ...rest(event, handled), ...(JSON.stringify(event[field]) !== before && { [field]: event[field] }) }),
});

/** Entries that handlers propose, by a result or in place, and whether a request follows. */
const BOUNDARY = { apply: chain("entries", "continue").apply, ...inPlace("entries", chain("continue").answer) };

const lists = (...fields) => ({
	answer: (event, handled) => Object.fromEntries(fields.map((field) => [field, handled.flatMap((result) => result[field] ?? [])]).filter(([, list]) => list.length > 0)),
});

/** Per event: `until` ends the walk, `apply` takes a result over, `answer` makes the result. Others give nothing back. */
const RULES = {
	project_trust: { until: (result) => result.trusted === "yes" || result.trusted === "no", answer: last },
	resources_discover: lists("skillPaths", "promptPaths", "themePaths"),
	session_before_switch: stopAtCancel,
	session_before_fork: stopAtCancel,
	session_before_compact: stopAtCancel,
	session_before_tree: stopAtCancel,
	input: {
		until: (result) => result.action === "handled",
		apply: (event, result) => result.action === "transform" && Object.assign(event, { text: result.text }, result.images && { images: result.images }),
		answer: (event, handled) => {
			if (handled.some((result) => result.action === "handled")) return { action: "handled" };
			return handled.some((result) => result.action === "transform") ? { action: "transform", text: event.text, images: event.images } : {};
		},
	},
	before_agent_start: {
		apply: (event, result) => result.systemPrompt !== undefined && (event.systemPromptOptions.forceSystemPrompt = result.systemPrompt),
		...inPlace("systemPromptOptions", (event, handled) => {
			const messages = handled.flatMap((result) => result.message ?? []);
			return messages.length > 0 ? { messages } : {};
		}),
	},
	turn_end: BOUNDARY,
	agent_before_settle: BOUNDARY,
	message_end: {
		...chain("message"),
		apply: (event, { message }) => {
			if (!message) return;
			if (message.role !== event.message.role) throw new Error("the message has another role than the one whose place it takes");
			event.message = message;
		},
	},
	context: chain("messages"),
	context_with_system: chain("messages"),
	before_provider_request: {
		raw: true,
		apply: (event, result) => (event.payload = result),
		answer: (event, handled) => (handled.length > 0 ? { payload: event.payload } : {}),
	},
	before_provider_headers: inPlace("headers"),
	tool_call: {
		until: (result) => result.block,
		...inPlace("input", (event, handled) => last(event, handled)),
	},
	tool_result: chain("content", "details", "structuredContent", "isError", "usage"),
	user_bash: { until: () => true, answer: last },
	cache_warming_decision: { answer: last },
};

/**
 * Runs `handlers` one after the other and gives the answer to the event.
 *
 * One that throws does not keep the others from running; `failed(error)` is told, except for
 * `tool_call`, where a gate that fails must not stand open.
 */
export async function runHandlers(event, handlers, context, failed) {
	const rule = RULES[event.type] ?? {};
	const before = rule.before?.(event);
	const handled = [];
	for (const handler of [...handlers]) {
		let result;
		try {
			result = await handler(event, context);
			if (result === undefined || result === null || (typeof result !== "object" && !rule.raw)) continue;
			rule.apply?.(event, result);
		} catch (error) {
			if (event.type === "tool_call" || event.type === "user_bash") throw error;
			failed(error);
			continue;
		}
		handled.push(result);
		if (rule.until?.(result)) break;
	}
	return rule.answer?.(event, handled, before) ?? null;
}

/** The message that streamed deltas build, for handlers of `message_update`. */
export class Streaming {
	start(message) {
		this.message = message.role === "assistant" ? structuredClone(message) : undefined;
		this.json = new Map();
	}

	/** Takes one step and gives the event with `message` and `partial` as the reference has them. */
	update(event, parse) {
		const step = event.assistantMessageEvent;
		this.message ??= { role: "assistant", content: [], stopReason: "pending" };
		if (event.usage) this.message.usage = event.usage;
		const at = step.contentIndex;
		const block = this.message.content[at];
		if (step.type === "text_start") this.message.content[at] ??= { type: "text", text: "" };
		else if (step.type === "thinking_start") this.message.content[at] ??= { type: "thinking", thinking: "" };
		else if (step.type === "toolcall_start") this.message.content[at] ??= { type: "toolCall", id: step.id, name: step.toolName, arguments: {} };
		else if (step.type === "text_delta" && block) block.text += step.delta;
		else if (step.type === "thinking_delta" && block) block.thinking += step.delta;
		else if (step.type === "toolcall_delta" && block) {
			this.json.set(at, (this.json.get(at) ?? "") + step.delta);
			block.arguments = parse(this.json.get(at));
		} else if (step.type === "text_end" && block) block.text = step.content;
		else if (step.type === "thinking_end" && block) block.thinking = step.content;
		else if (step.type === "toolcall_end") this.message.content[at] = { type: "toolCall", ...step.toolCall };
		return { ...event, message: this.message, assistantMessageEvent: { ...step, partial: this.message } };
	}
}
