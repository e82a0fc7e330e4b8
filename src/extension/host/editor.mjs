// The editor of pi-tui for components, and CustomEditor, which stands for pi's own editor.

import { clusters, CURSOR_MARKER, renderFakeCursor, sliceByColumn, truncateToWidth, visibleWidth } from "./text.mjs";
import { getKeybindings, matchesKey, printable } from "./keys.mjs";

/** The pieces of a line that each fit into `width` columns: `text`, and where it begins in the line. */
export function wordWrapLine(line, width) {
	const chunks = [];
	let start = 0;
	let columns = 0;
	let breakAt = 0;
	let index = 0;
	for (const cluster of clusters(line)) {
		const size = visibleWidth(cluster);
		if (columns + size > width) {
			const end = breakAt > start && cluster !== " " ? breakAt : index;
			chunks.push({ text: line.slice(start, end), startIndex: start, endIndex: end });
			start = end;
			columns = visibleWidth(line.slice(start, index));
		}
		index += cluster.length;
		columns += size;
		if (cluster === " ") breakAt = index;
	}
	chunks.push({ text: line.slice(start), startIndex: start, endIndex: line.length });
	return chunks;
}

/** Text of several lines that can be edited, between two borders. */
export class Editor {
	focused = false;
	disableSubmit = false;
	lines = [""];
	line = 0;
	col = 0;
	history = [];
	historyAt = -1;
	undone = [];
	killed = "";

	constructor(tui, theme, options = {}) {
		this.tui = tui;
		this.theme = theme;
		this.borderColor = theme?.borderColor ?? ((text) => text);
		this.paddingX = options.paddingX ?? 0;
		this.autocompleteMaxVisible = options.autocompleteMaxVisible ?? 5;
	}

	getPaddingX() {
		return this.paddingX;
	}

	setPaddingX(padding) {
		this.paddingX = padding;
	}

	getAutocompleteMaxVisible() {
		return this.autocompleteMaxVisible;
	}

	setAutocompleteMaxVisible(count) {
		this.autocompleteMaxVisible = count;
	}

	setAutocompleteProvider(provider) {
		this.provider = provider;
	}

	isShowingAutocomplete() {
		return false;
	}

	addToHistory(text) {
		if (text.trim() && this.history[0] !== text) this.history.unshift(text);
		this.history.length = Math.min(this.history.length, 100);
	}

	getText() {
		return this.lines.join("\n");
	}

	getExpandedText() {
		return this.getText();
	}

	getLines() {
		return [...this.lines];
	}

	getCursor() {
		return { line: this.line, col: this.col };
	}

	setText(text) {
		this.put(text);
		this.historyAt = -1;
	}

	put(text) {
		this.lines = text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n");
		this.line = this.lines.length - 1;
		this.col = this.lines[this.line].length;
		this.onChange?.(this.getText());
	}

	insertTextAtCursor(text) {
		this.splice(this.line, this.col, this.line, this.col, text);
	}

	/** Puts `text` in place of what lies between two places, and the cursor behind it. */
	splice(line, col, endLine, endCol, text) {
		this.undone.push({ lines: [...this.lines], line: this.line, col: this.col });
		if (this.undone.length > 100) this.undone.shift();
		const added = text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n");
		const tail = this.lines[endLine].slice(endCol);
		added[0] = this.lines[line].slice(0, col) + added[0];
		this.line = line + added.length - 1;
		this.col = added.at(-1).length;
		added[added.length - 1] += tail;
		this.lines.splice(line, endLine - line + 1, ...added);
		this.historyAt = -1;
		this.onChange?.(this.getText());
	}

	undo() {
		const last = this.undone.pop();
		if (!last) return;
		Object.assign(this, last);
		this.onChange?.(this.getText());
	}

	/** The place one step before or behind the cursor. */
	step(back, word) {
		const text = this.lines[this.line];
		if (back && this.col === 0) return this.line > 0 ? [this.line - 1, this.lines[this.line - 1].length] : [0, 0];
		if (!back && this.col === text.length) {
			return this.line < this.lines.length - 1 ? [this.line + 1, 0] : [this.line, this.col];
		}
		const side = back ? text.slice(0, this.col) : text.slice(this.col);
		if (word) {
			const length = /* a run of one kind */ back
				? (/(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)?\s*$/u.exec(side)?.[0].length ?? 0)
				: (/^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)?/u.exec(side)?.[0].length ?? 0);
			return [this.line, this.col + (back ? -length : length)];
		}
		const parts = clusters(side);
		return [this.line, this.col + (back ? -parts.at(-1).length : parts[0].length)];
	}

	moveTo([line, col]) {
		this.line = line;
		this.col = col;
	}

	remove([line, col], keep) {
		const backward = line < this.line || (line === this.line && col < this.col);
		const [from, to] = backward ? [[line, col], [this.line, this.col]] : [[this.line, this.col], [line, col]];
		if (keep && from[0] === to[0]) this.killed = this.lines[from[0]].slice(from[1], to[1]);
		this.splice(...from, ...to, "");
	}

	/** Moves by rows as they are on screen. */
	vertical(rows) {
		const layout = this.layout(this.width ?? 80);
		const at = layout.findIndex((row) => row.cursor !== undefined);
		const target = layout[at + rows];
		if (!target) return false;
		const wanted = visibleWidth(layout[at].text.slice(0, layout[at].cursor));
		let col = 0;
		for (const cluster of clusters(target.text)) {
			if (visibleWidth(target.text.slice(0, col + cluster.length)) > wanted) break;
			col += cluster.length;
		}
		this.moveTo([target.line, target.start + col]);
		return true;
	}

	browse(step) {
		const next = this.historyAt + step;
		if (next < -1 || next >= this.history.length) return;
		if (this.historyAt === -1) this.draft = this.getText();
		this.put(next === -1 ? (this.draft ?? "") : this.history[next]);
		this.historyAt = next;
	}

	submit() {
		if (this.disableSubmit) return;
		const text = this.getText().trim();
		this.put("");
		this.undone = [];
		this.historyAt = -1;
		this.onSubmit?.(text);
	}

	handleMouse() {
		return undefined;
	}

	handleInput(data) {
		const is = (id) => getKeybindings().matches(data, `tui.editor.${id}`);
		const pasted = /^\x1b\[200~([\s\S]*)\x1b\[201~$/.exec(data)?.[1];
		const typed = printable(data);
		const text = this.lines[this.line];
		if (pasted !== undefined) this.insertTextAtCursor(pasted);
		else if (data === "\x1b\r" || data === "\x1b[13;2~" || getKeybindings().matches(data, "tui.input.newLine")) {
			this.insertTextAtCursor("\n");
		} else if (getKeybindings().matches(data, "tui.input.submit")) {
			if (text.slice(0, this.col).endsWith("\\")) this.splice(this.line, this.col - 1, this.line, this.col, "\n");
			else this.submit();
		} else if (is("undo")) this.undo();
		else if (is("deleteCharBackward") || matchesKey(data, "shift+backspace")) this.remove(this.step(true));
		else if (is("deleteCharForward")) this.remove(this.step(false));
		else if (is("deleteWordBackward")) this.remove(this.step(true, true), true);
		else if (is("deleteWordForward")) this.remove(this.step(false, true), true);
		else if (is("deleteToLineStart")) this.remove(this.col === 0 ? this.step(true) : [this.line, 0], true);
		else if (is("deleteToLineEnd")) this.remove(this.col === text.length ? this.step(false) : [this.line, text.length], true);
		else if (is("yank")) this.insertTextAtCursor(this.killed);
		else if (is("cursorUp")) {
			if (!this.vertical(-1)) this.getText() === "" || this.historyAt >= 0 ? this.browse(1) : (this.col = 0);
		} else if (is("cursorDown")) {
			if (!this.vertical(1)) this.historyAt >= 0 ? this.browse(-1) : (this.col = text.length);
		} else if (is("cursorLeft")) this.moveTo(this.step(true));
		else if (is("cursorRight")) this.moveTo(this.step(false));
		else if (is("cursorWordLeft")) this.moveTo(this.step(true, true));
		else if (is("cursorWordRight")) this.moveTo(this.step(false, true));
		else if (is("cursorLineStart")) this.col = 0;
		else if (is("cursorLineEnd")) this.col = text.length;
		else if (is("pageUp")) this.vertical(-5);
		else if (is("pageDown")) this.vertical(5);
		else if (typed) this.insertTextAtCursor(typed);
		this.tui?.requestRender();
	}

	/** Rows as on screen: `text`, `line` and `start` in the text, `cursor` where the cursor is. */
	layout(width) {
		const rows = [];
		this.lines.forEach((text, line) => {
			const chunks = wordWrapLine(text, width);
			chunks.forEach((chunk, index) => {
				const last = index === chunks.length - 1;
				const here = line === this.line && this.col >= chunk.startIndex && (last || this.col < chunk.endIndex);
				rows.push({ text: chunk.text, line, start: chunk.startIndex, cursor: here ? this.col - chunk.startIndex : undefined });
			});
		});
		return rows;
	}

	renderTopBorder(width, hidden) {
		return this.border(width, hidden > 0 ? `─── ↑ ${hidden} more ` : "");
	}

	renderBottomBorder(width, hidden) {
		return this.border(width, hidden > 0 ? `─── ↓ ${hidden} more ` : "");
	}

	border(width, label) {
		return this.borderColor(truncateToWidth(label, width, "") + "─".repeat(Math.max(0, width - visibleWidth(label))));
	}

	invalidate() {}

	render(width) {
		const padding = Math.min(this.paddingX, Math.max(0, Math.floor((width - 1) / 2)));
		// Without padding the last column stays free for a cursor behind the text.
		this.width = Math.max(1, width - 2 * padding - (padding > 0 ? 0 : 1));
		const rows = this.layout(this.width);
		const visible = Math.max(5, Math.floor((this.tui?.terminal?.rows ?? 24) * 0.3));
		const at = rows.findIndex((row) => row.cursor !== undefined);
		this.top = Math.min(Math.max(this.top ?? 0, at - visible + 1), at, Math.max(0, rows.length - visible));
		const shown = rows.slice(this.top, this.top + visible).map(({ text, cursor }) => {
			let line = text;
			if (cursor !== undefined) {
				const [cell = " ", ...rest] = clusters(text.slice(cursor));
				line = text.slice(0, cursor) + (this.focused ? CURSOR_MARKER : "") + renderFakeCursor(cell) + rest.join("");
			}
			return " ".repeat(padding) + line + " ".repeat(Math.max(0, width - padding - visibleWidth(line)));
		});
		return [
			this.renderTopBorder(width, this.top),
			...shown,
			this.renderBottomBorder(width, Math.max(0, rows.length - this.top - visible)),
		];
	}
}

/**
 * The editor of the prompt, for subclasses that change keys or repaint lines.
 *
 * What it edits stays in pi: keys go there and lines come from there, so that completion, history
 * and the application's keys work as without an extension. `tui.editor` is the connection.
 */
export class CustomEditor extends Editor {
	actionHandlers = new Map();

	constructor(tui, theme, keybindings, options = {}) {
		super(tui, theme, options);
		this.keybindings = keybindings;
		this.embedWorkingStatus = options.embedWorkingStatus ?? false;
	}

	onAction(action, handler) {
		this.actionHandlers.set(action, handler);
	}

	setWorkingStatusIndicator() {}

	getText() {
		return this.tui.editor.text();
	}

	getExpandedText() {
		return this.getText();
	}

	getLines() {
		return this.getText().split("\n");
	}

	setText(text) {
		this.tui.editor.setText(text);
		this.onChange?.(text);
	}

	insertTextAtCursor(text) {
		this.tui.editor.insert(text);
	}

	handleInput(data) {
		if (this.onExtensionShortcut?.(data)) return;
		for (const [action, handler] of this.actionHandlers) {
			if (this.keybindings?.matches(data, action)) {
				handler();
				return;
			}
		}
		this.tui.editor.input(data);
	}

	render(width) {
		const { lines, cursor } = this.tui.editor.render(width);
		if (!cursor || lines[cursor.row] === undefined) return [...lines];
		const line = lines[cursor.row];
		const marked = [...lines];
		marked[cursor.row] = sliceByColumn(line, 0, cursor.column) + CURSOR_MARKER + sliceByColumn(line, cursor.column, visibleWidth(line));
		return marked;
	}
}
