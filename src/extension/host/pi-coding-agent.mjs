// What `@earendil-works/pi-coding-agent` answers with.

import { existsSync } from "node:fs";
import { Container, CancellableLoader, Loader } from "./components.mjs";
import { environment } from "./environment.mjs";
import { getKeybindings } from "./keys.mjs";
import { theme } from "./theme.mjs";
import { wrapTextWithAnsi } from "./text.mjs";

export {
	buildContextEntries, buildSessionContext, buildSessionProjection, convertToLlm, estimateTokens, getLatestCompactionEntry, parseFrontmatter, serializeConversation,
	sessionEntryToContextMessages, stripFrontmatter,
} from "./conversation.mjs";
export { CustomEditor } from "./editor.mjs";
export { getLanguageFromPath, getMarkdownTheme, getSelectListTheme, getSettingsListTheme, highlightCode, Theme } from "./theme.mjs";
export * from "./tools.mjs";
export { DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, formatSize, truncateHead, truncateLine, truncateTail } from "./truncate.mjs";

export const CONFIG_DIR_NAME = ".pi";
export const getAgentDir = () => environment.agentDir;
/** The version of the TypeScript pi whose interface this is. */
export const VERSION = environment.referenceVersion;

export const defineTool = (tool) => tool;

export const isToolCallEventType = (name, event) => event.toolName === name;
const ofTool = (name) => (event) => event.toolName === name;
export const [isBashToolResult, isEditToolResult, isFindToolResult, isGrepToolResult, isLsToolResult, isReadToolResult, isWriteToolResult] = [
	"bash", "edit", "find", "grep", "ls", "read", "write"].map(ofTool);

/** A rule over the whole width. */
export class DynamicBorder {
	constructor(color = (text) => theme.fg("border", text)) {
		this.color = color;
	}

	invalidate() {}

	render(width) {
		return [this.color("─".repeat(Math.max(1, width)))];
	}
}

/** A loader between two rules; Escape aborts its `signal`. */
export class BorderedLoader extends Container {
	constructor(tui, colors, message, { cancellable = true } = {}) {
		super();
		const kind = cancellable ? CancellableLoader : Loader;
		this.loader = new kind(tui, (text) => colors.fg("accent", text), (text) => colors.fg("muted", text), message);
		const rule = () => new DynamicBorder((text) => colors.fg("border", text));
		this.addChild(rule());
		this.addChild(this.loader);
		if (cancellable) this.addChild({ render: () => ["", ` ${colors.fg("dim", `${keyText("tui.select.cancel")} cancel`)}`], invalidate() {} });
		this.addChild(rule());
	}

	get signal() {
		return this.loader.signal ?? new AbortController().signal;
	}

	set onAbort(handler) {
		this.loader.onAbort = handler;
	}

	handleInput(data) {
		this.loader.handleInput?.(data);
	}

	dispose() {
		this.loader.stop();
	}
}

/** The keys of an action, as `ctrl+o`. */
export const keyText = (id) => getKeybindings().getKeys(id).join("/");
export const rawKeyHint = (key, description) => `${theme.fg("dim", key)}${theme.fg("muted", ` ${description}`)}`;
export const keyHint = (id, description) => rawKeyHint(keyText(id), description);

/** The last lines of a text at a width, and how many are left out before. */
export function truncateToVisualLines(text, maxLines, width) {
	const lines = text ? wrapTextWithAnsi(text, width) : [];
	return { visualLines: lines.slice(-maxLines), skippedCount: Math.max(0, lines.length - maxLines) };
}

/** A diff with its lines in the colours of the theme. */
export function renderDiff(diff) {
	const role = (line) => (line[0] === "+" ? "toolDiffAdded" : line[0] === "-" ? "toolDiffRemoved" : "toolDiffContext");
	return diff.split("\n").map((line) => theme.fg(role(line), line)).join("\n");
}

export function getShellConfig(shellPath) {
	const shell = shellPath ?? (existsSync("/bin/bash") ? "/bin/bash" : "sh");
	return { shell, args: ["-c"] };
}

export function createEventBus() {
	const handlers = new Map();
	return {
		emit: (channel, data) => handlers.get(channel)?.forEach((handler) => handler(data)),
		on(channel, handler) {
			if (!handlers.has(channel)) handlers.set(channel, new Set());
			handlers.get(channel).add(handler);
			return () => handlers.get(channel).delete(handler);
		},
		clear: () => handlers.clear(),
	};
}

export function createSyntheticSourceInfo(path, { source, scope = "temporary", origin = "top-level", baseDir }) {
	return { path, source, scope, origin, baseDir };
}
