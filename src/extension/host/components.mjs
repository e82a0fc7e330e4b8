// The plain components of pi-tui: a component gives its lines at a width.

import { clusters, CURSOR_MARKER, fill, renderFakeCursor, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./text.mjs";
import { getKeybindings, printable } from "./keys.mjs";

export const isFocusable = (component) => component != null && "focused" in component;

/** Lines kept until the width or what they are made of changes. */
class Cached {
	invalidate() {
		this.kept = undefined;
	}

	render(width) {
		if (this.kept?.width !== width) this.kept = { width, lines: this.draw(Math.max(1, width)) };
		return this.kept.lines;
	}
}

/** `lines` with blank columns and rows around them, over a background. */
export function frame(lines, width, paddingX, paddingY, background) {
	const blank = fill("", width, background);
	const body = lines.map((line) => fill(" ".repeat(paddingX) + line, width, background));
	const rows = Array(paddingY).fill(blank);
	return [...rows, ...body, ...rows];
}

export class Text extends Cached {
	constructor(text = "", paddingX = 1, paddingY = 1, background) {
		super();
		Object.assign(this, { text, paddingX, paddingY, background });
	}

	setText(text) {
		this.text = text;
		this.invalidate();
	}

	setCustomBgFn(background) {
		this.background = background;
		this.invalidate();
	}

	draw(width) {
		if (!this.text || this.text.trim() === "") return [];
		const inner = Math.max(1, width - 2 * this.paddingX);
		const lines = wrapTextWithAnsi(this.text.replaceAll("\t", "   "), inner);
		return frame(lines, width, this.paddingX, this.paddingY, this.background);
	}
}

export class TruncatedText extends Cached {
	constructor(text, paddingX = 0, paddingY = 0) {
		super();
		Object.assign(this, { text, paddingX, paddingY });
	}

	draw(width) {
		const first = this.text.split("\n", 1)[0];
		const line = truncateToWidth(first, Math.max(1, width - 2 * this.paddingX));
		return frame([line], width, this.paddingX, this.paddingY);
	}
}

export class Spacer {
	constructor(lines = 1) {
		this.lines = lines;
	}

	setLines(lines) {
		this.lines = lines;
	}

	invalidate() {}

	render() {
		return Array(this.lines).fill("");
	}
}

export class Container {
	constructor() {
		this.children = [];
	}

	addChild(child) {
		this.children.push(child);
	}

	removeChild(child) {
		this.children = this.children.filter((other) => other !== child);
	}

	clear() {
		this.children = [];
	}

	invalidate() {
		for (const child of this.children) child.invalidate?.();
	}

	handleMouse() {
		return undefined;
	}

	render(width) {
		return this.children.flatMap((child) => child.render(width));
	}
}

export class Box extends Container {
	constructor(paddingX = 1, paddingY = 1, background) {
		super();
		Object.assign(this, { paddingX, paddingY, background });
	}

	setBgFn(background) {
		this.background = background;
	}

	render(width) {
		const lines = super.render(Math.max(1, width - 2 * this.paddingX));
		return lines.length === 0 ? [] : frame(lines, width, this.paddingX, this.paddingY, this.background);
	}
}

/** Children one below the other. */
export class VStack extends Container {
	constructor(children = []) {
		super();
		for (const child of children) this.addChild(child?.component ?? child);
	}
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

export class Loader extends Text {
	constructor(tui, spinnerColor, messageColor, message = "Loading...", indicator) {
		super("", 1, 0);
		Object.assign(this, { tui, spinnerColor, messageColor, message, indicator, step: 0 });
		this.start();
	}

	start() {
		this.stop();
		this.show();
		const interval = this.indicator?.intervalMs ?? 80;
		if (this.frames.length > 1) {
			this.timer = setInterval(() => {
				this.step++;
				this.show();
			}, interval);
		}
	}

	stop() {
		clearInterval(this.timer);
		this.timer = undefined;
	}

	get frames() {
		return this.indicator?.frames ?? SPINNER;
	}

	setIndicator(indicator) {
		this.indicator = indicator;
		this.start();
	}

	setMessage(message) {
		this.message = message;
		this.show();
	}

	getRenderedIndicator() {
		const symbol = this.frames[this.step % Math.max(1, this.frames.length)];
		return symbol ? `${this.spinnerColor(symbol)} ` : "";
	}

	show() {
		this.setText(this.getRenderedIndicator() + this.messageColor(this.message));
		this.tui?.requestRender();
	}

	draw(width) {
		return ["", ...super.draw(width)];
	}
}

export class CancellableLoader extends Loader {
	controller = new AbortController();

	get signal() {
		return this.controller.signal;
	}

	get aborted() {
		return this.signal.aborted;
	}

	handleInput(data) {
		if (!getKeybindings().matches(data, "tui.select.cancel")) return;
		this.controller.abort();
		this.onAbort?.();
	}

	dispose() {
		this.stop();
	}
}

/** Images cross no process boundary as lines: their name and size stand for them. */
export class Image {
	constructor(data, mimeType, theme, options = {}) {
		Object.assign(this, { data, mimeType, theme, options });
	}

	getImageId() {
		return this.options.imageId;
	}

	invalidate() {}

	render(width) {
		const name = this.options.filename ? `${this.options.filename} ` : "";
		const line = `[Image: ${name}${this.mimeType}]`;
		return [truncateToWidth(this.theme?.fallbackColor?.(line) ?? line, width)];
	}
}

/** A line of text that can be edited. */
export class Input {
	focused = false;
	value = "";
	cursor = 0;

	constructor({ prompt = "> ", placeholder, placeholderStyle = (text) => text } = {}) {
		Object.assign(this, { prompt, placeholder, placeholderStyle });
	}

	getValue() {
		return this.value;
	}

	setValue(value) {
		this.value = value;
		this.cursor = value.length;
	}

	invalidate() {}

	handleMouse() {
		return undefined;
	}

	replace(from, to, text) {
		this.value = this.value.slice(0, from) + text + this.value.slice(to);
		this.cursor = from + text.length;
	}

	handleInput(data) {
		const keys = getKeybindings();
		const before = clusters(this.value.slice(0, this.cursor));
		const after = clusters(this.value.slice(this.cursor));
		const left = this.cursor - (before.at(-1)?.length ?? 0);
		const right = this.cursor + (after[0]?.length ?? 0);
		const wordLeft = this.value.slice(0, this.cursor).replace(/\S+\s*$|\s+$/, "").length;
		const wordRight = this.cursor + (/^\s*\S*/.exec(this.value.slice(this.cursor))?.[0].length ?? 0);
		const pasted = /^\x1b\[200~([\s\S]*)\x1b\[201~$/.exec(data)?.[1];
		const typed = pasted?.replace(/[\r\n]+/g, " ") ?? printable(data);
		const is = (id) => keys.matches(data, id);
		if (is("tui.select.cancel")) this.onEscape?.();
		else if (is("tui.input.submit") || data === "\n") this.onSubmit?.(this.value);
		else if (is("tui.editor.cursorLeft")) this.cursor = left;
		else if (is("tui.editor.cursorRight")) this.cursor = right;
		else if (is("tui.editor.cursorLineStart")) this.cursor = 0;
		else if (is("tui.editor.cursorLineEnd")) this.cursor = this.value.length;
		else if (is("tui.editor.cursorWordLeft")) this.cursor = wordLeft;
		else if (is("tui.editor.cursorWordRight")) this.cursor = wordRight;
		else if (is("tui.editor.deleteCharBackward")) this.replace(left, this.cursor, "");
		else if (is("tui.editor.deleteCharForward")) this.replace(this.cursor, right, "");
		else if (is("tui.editor.deleteWordBackward")) this.replace(wordLeft, this.cursor, "");
		else if (is("tui.editor.deleteWordForward")) this.replace(this.cursor, wordRight, "");
		else if (is("tui.editor.deleteToLineStart")) this.replace(0, this.cursor, "");
		else if (is("tui.editor.deleteToLineEnd")) this.replace(this.cursor, this.value.length, "");
		else if (typed) this.replace(this.cursor, this.cursor, typed);
	}

	render(width) {
		const room = Math.max(2, width - visibleWidth(this.prompt));
		const mark = this.focused ? CURSOR_MARKER : "";
		if (this.value === "" && this.placeholder) {
			const [first = " ", ...rest] = clusters(this.placeholder);
			const shown = mark + renderFakeCursor(first) + this.placeholderStyle(rest.join(""));
			return [this.prompt + truncateToWidth(shown, room, "")];
		}
		// The part that is shown ends with the cursor's cell when the text is too long.
		let before = this.value.slice(0, this.cursor);
		while (visibleWidth(before) > room - 1) before = before.slice(clusters(before)[0].length);
		const [at = " ", ...after] = clusters(this.value.slice(this.cursor));
		const line = truncateToWidth(before + mark + renderFakeCursor(at) + after.join(""), room, "");
		return [this.prompt + fill(line, room)];
	}
}
