// Messages and entries of a session, as extensions read them.

import { contentText } from "./pi-ai.mjs";

const summary = (lead, text) => [{ type: "text", text: `${lead}\n\n<summary>\n${text}\n</summary>` }];

function bashText(message) {
	let text = `Ran \`${message.command}\`\n${message.output ? `\`\`\`\n${message.output}\n\`\`\`` : "(no output)"}`;
	if (message.cancelled) text += "\n\n(command cancelled)";
	else if (message.exitCode) text += `\n\nCommand exited with code ${message.exitCode}`;
	if (message.truncated && message.fullOutputPath) text += `\n\n[Output truncated. Full output: ${message.fullOutputPath}]`;
	return text;
}

const KINDS = {
	system: (message) => message,
	user: (message) => message,
	assistant: (message) => message,
	toolResult: (message) => message,
	bashExecution: (message) => (message.excludeFromContext ? undefined : [{ type: "text", text: bashText(message) }]),
	custom: ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content),
	branchSummary: (message) => summary("Another branch of this conversation was followed and then left. What was done there:", message.summary),
	compactionSummary: (message) => summary("To save space, the conversation up to here was replaced by this summary of it:", message.summary),
};

/** Messages of every kind as those that a model is told. */
export function convertToLlm(messages) {
	return messages.flatMap((message) => {
		const converted = KINDS[message.role]?.(message);
		if (converted === undefined) return [];
		return Array.isArray(converted) ? [{ role: "user", content: converted, timestamp: message.timestamp }] : [converted];
	});
}

/** A conversation as text for a summary; thinking is left out, results of tools are cut. */
export function serializeConversation(messages) {
	const parts = [];
	const add = (label, text) => text && parts.push(`[${label}]: ${text}`);
	for (const message of messages) {
		if (message.role === "user") add("User", contentText(message.content, ""));
		else if (message.role === "assistant") {
			add("Assistant", contentText(message.content));
			const calls = message.content.filter((block) => block.type === "toolCall").map(({ name, arguments: args }) => {
				const list = Object.entries(args).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
				return `${name}(${list.join(", ")})`;
			});
			add("Assistant tool calls", calls.join("; "));
		} else if (message.role === "toolResult") {
			const text = contentText(message.content, "");
			add("Tool result", text.length > 2000 ? `${text.slice(0, 2000)}\n\n[... ${text.length - 2000} more characters truncated]` : text);
		}
	}
	return parts.join("\n\n");
}

const time = (entry) => new Date(entry.timestamp).getTime();

/** The messages that one entry adds to the context. */
export function sessionEntryToContextMessages(entry) {
	const timestamp = time(entry);
	if (entry.type === "message") return [entry.message];
	if (entry.type === "custom_message") {
		const { customType, content, display, details } = entry;
		return [{ role: "custom", customType, content, display, details, timestamp }];
	}
	if (entry.type === "branch_summary" && entry.summary) return [{ role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp }];
	if (entry.type === "compaction") return [{ role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp }];
	return [];
}

/** The entries from the root to `leafId`. */
export function branchOf(entries, leafId) {
	const byId = new Map(entries.map((entry) => [entry.id, entry]));
	const path = [];
	for (let entry = byId.get(leafId); entry && path.length <= entries.length; entry = byId.get(entry.parentId)) path.push(entry);
	return path.reverse();
}

export const getLatestCompactionEntry = (entries) => entries.findLast((entry) => entry.type === "compaction") ?? null;

/** The entries of a branch that the context is made of: from the last compaction on. */
export function buildContextEntries(entries, leafId = entries.at(-1)?.id) {
	const branch = branchOf(entries, leafId);
	const at = branch.findLastIndex((entry) => entry.type === "compaction");
	if (at < 0) return branch;
	const kept = branch.findIndex((entry) => entry.id === branch[at].firstKeptEntryId);
	return [branch[at], ...(kept >= 0 && kept < at ? branch.slice(kept, at) : []), ...branch.slice(at + 1)];
}

/** Roles whose content an edit of the context may replace; the value is true where it is a list of blocks. */
const EDITABLE = new Map([["user", false], ["custom", false], ["assistant", true], ["toolResult", true]]);

/** The messages of an entry, with the edit of the context that is aimed at it. */
function edited(entry, edit) {
	const messages = sessionEntryToContextMessages(entry);
	if (!edit) return messages;
	if (edit.replacement === null) return [];
	const { content } = edit.replacement;
	return messages.map((message) => {
		if (!EDITABLE.has(message.role)) return message;
		return { ...message, content: EDITABLE.get(message.role) && typeof content === "string" ? [{ type: "text", text: content }] : content };
	});
}

/** The entries that the context at `leafId` is made of, each with its messages; model and thinking level that hold there. */
export function buildSessionProjection(entries, leafId = entries.at(-1)?.id) {
	const context = buildContextEntries(entries, leafId);
	const edits = new Map(context.filter((entry) => entry.type === "context_edit").map((entry) => [entry.targetId, entry]));
	// Of several compactions the last one counts, which is the first of these entries.
	const messagesOf = (entry, index) => (entry.type === "compaction" && index > 0 ? [] : edited(entry, edits.get(entry.id)));
	const projected = context.map((sourceEntry, index) => ({ sourceEntry, messages: messagesOf(sourceEntry, index) }));
	return { entries: projected, messages: projected.flatMap((entry) => entry.messages), ...settingsOf(branchOf(entries, leafId)) };
}

/** Thinking level and model at the end of a branch: those that were chosen, or answered, last. */
function settingsOf(branch) {
	let [thinkingLevel, model] = ["off", null];
	for (const entry of branch) {
		if (entry.type === "thinking_level_change") thinkingLevel = entry.thinkingLevel;
		else if (entry.type === "model_change") model = { provider: entry.provider, modelId: entry.modelId };
		else if (entry.type === "message" && entry.message.role === "assistant") model = { provider: entry.message.provider, modelId: entry.message.model };
	}
	return { thinkingLevel, model };
}

/** Messages, model and thinking level that hold at `leafId`. */
export function buildSessionContext(entries, leafId) {
	const { entries: _, ...context } = buildSessionProjection(entries, leafId);
	return context;
}

/** Entries as a tree: `{ entry, children, label }` of every root. */
export function treeOf(entries) {
	const nodes = new Map();
	const labels = new Map(entries.filter((entry) => entry.type === "label").map((entry) => [entry.targetId, entry.label]));
	for (const entry of entries) nodes.set(entry.id, { entry, children: [], label: labels.get(entry.id) });
	const roots = [];
	for (const node of nodes.values()) (nodes.get(node.entry.parentId)?.children ?? roots).push(node);
	return roots;
}

/** Tokens of a message, at about four characters each. */
export function estimateTokens(message) {
	const content = KINDS[message.role] && convertToLlm([message])[0]?.content;
	return Math.ceil((typeof content === "string" ? content : JSON.stringify(content ?? "")).length / 4);
}

/** The head of a Markdown file between two `---`, and what follows: simple YAML only. */
export function parseFrontmatter(content) {
	const unified = content.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
	const match = /^---\n([\s\S]*?)\n?---(?:\n|$)([\s\S]*)$/.exec(unified);
	if (!match) return { frontmatter: {}, body: unified };
	return { frontmatter: parseYaml(match[1]), body: match[2].trim() };
}

export const stripFrontmatter = (content) => parseFrontmatter(content).body;

function scalar(text) {
	const value = text.trim();
	if (/^(["']).*\1$/.test(value)) return value[0] === '"' ? JSON.parse(value) : value.slice(1, -1).replaceAll("''", "'");
	if (/^\[.*\]$/.test(value)) return value.slice(1, -1).split(",").filter((part) => part.trim()).map(scalar);
	const plain = value.replace(/\s+#.*$/, "");
	if (plain === "true" || plain === "false") return plain === "true";
	if (plain === "" || plain === "null" || plain === "~") return null;
	return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : plain;
}

/** Keys with scalars, lists, folded texts and one level of keys below. */
function parseYaml(source) {
	const result = {};
	const lines = source.split("\n");
	for (let i = 0; i < lines.length; i++) {
		const match = /^([\w.-]+):\s*(.*)$/.exec(lines[i]);
		if (!match) continue;
		const [, key, value] = match;
		const block = [];
		while (i + 1 < lines.length && (/^\s+\S/.test(lines[i + 1]) || (/^- /.test(lines[i + 1]) && value === "") || (lines[i + 1].trim() === "" && /^[|>]/.test(value)))) block.push(lines[++i]);
		const inner = block.map((line) => line.trim());
		if (/^[|>]/.test(value)) result[key] = inner.join(value[0] === "|" ? "\n" : " ").trim();
		else if (block.length === 0) result[key] = scalar(value);
		else if (inner[0].startsWith("- ")) result[key] = inner.map((line) => scalar(line.replace(/^- /, "")));
		else if (value !== "") result[key] = scalar([value, ...inner].join(" "));
		else result[key] = parseYaml(inner.join("\n"));
	}
	return result;
}
