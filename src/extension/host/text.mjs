// Columns of text in a terminal: widths, wrapping and cutting, with SGR and OSC 8 sequences kept.

const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** CSI, OSC (ended by BEL or ST) and the other string sequences. */
const SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_P^X][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/y;
const INVISIBLE = /^[\p{Cc}\p{Cf}\p{M}\p{Cs}\p{Default_Ignorable_Code_Point}]+$/u;
const EMOJI = /\p{RGI_Emoji}|^\p{Emoji_Presentation}|\ufe0f/v;
/** Ranges of East Asian width W and F, outside of emoji. */
const WIDE = [
	[0x1100, 0x115f], [0x2329, 0x232a], [0x2e80, 0x303e], [0x3041, 0x33ff], [0x3400, 0x4dbf], [0x4e00, 0xa4cf],
	[0xa960, 0xa97f], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe10, 0xfe19], [0xfe30, 0xfe6f], [0xff00, 0xff60],
	[0xffe0, 0xffe6], [0x16fe0, 0x18cff], [0x1aff0, 0x1b2ff], [0x1f200, 0x1f202], [0x1f210, 0x1f23b],
	[0x1f240, 0x1f248], [0x1f250, 0x1f251], [0x20000, 0x3fffd],
];
/** Columns of a tab, which has no fixed place in a line that is moved about. */
const TAB = 3;

export const CURSOR_MARKER = "\x1b_pi:c\x07";

function clusterWidth(cluster) {
	if (cluster === "\t") return TAB;
	const code = cluster.codePointAt(0);
	if (code >= 0x20 && code < 0x7f && cluster.length === 1) return 1;
	if (INVISIBLE.test(cluster)) return 0;
	if (code > 0xa8 && EMOJI.test(cluster)) return 2;
	return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** The sequence at `index`, or an empty string. */
function sequenceAt(text, index) {
	SEQUENCE.lastIndex = index;
	return SEQUENCE.exec(text)?.[0] ?? "";
}

/** Yields `{ sequence }` and `{ cluster, width }` in order. */
export function* pieces(text) {
	for (let index = 0; index < text.length; ) {
		if (text[index] === "\x1b") {
			const sequence = sequenceAt(text, index) || "\x1b";
			yield { sequence };
			index += sequence.length;
			continue;
		}
		let end = text.indexOf("\x1b", index);
		if (end < 0) end = text.length;
		for (const { segment } of GRAPHEMES.segment(text.slice(index, end))) {
			yield { cluster: segment, width: clusterWidth(segment) };
		}
		index = end;
	}
}

export function visibleWidth(text) {
	if (/^[\x20-\x7e]*$/.test(text)) return text.length;
	let width = 0;
	for (const piece of pieces(text)) width += piece.width ?? 0;
	return width;
}

export function stripTerminalSequences(text) {
	let plain = "";
	for (const { cluster } of pieces(text)) plain += cluster ?? "";
	return plain;
}

/** The styles that a run of SGR sequences has left on, so that a new line can begin with them. */
class Styles {
	constructor() {
		this.on = new Map();
	}

	take(sequence) {
		const codes = /^\x1b\[([\d;:]*)m$/.exec(sequence)?.[1];
		if (codes === undefined) return;
		const list = codes === "" ? ["0"] : codes.split(";");
		for (let i = 0; i < list.length; i++) {
			const code = Number.parseInt(list[i] || "0", 10);
			let whole = list[i];
			if ((code === 38 || code === 48 || code === 58) && !whole.includes(":")) {
				const length = list[i + 1] === "2" ? 5 : 3;
				whole = list.slice(i, i + length).join(";");
				i += length - 1;
			}
			this.set(code, whole);
		}
	}

	set(code, whole) {
		if (code === 0) this.on.clear();
		else if (code === 22) ["1", "2"].forEach((kind) => this.on.delete(kind));
		else if (code >= 23 && code <= 29) this.on.delete(String(code - 20));
		else if (code === 39) this.on.delete("38");
		else if (code === 49) this.on.delete("48");
		else if (code === 59) this.on.delete("58");
		else if ((code >= 30 && code <= 38) || (code >= 90 && code <= 97)) this.on.set("38", whole);
		else if ((code >= 40 && code <= 48) || (code >= 100 && code <= 107)) this.on.set("48", whole);
		else this.on.set(String(code === 21 ? 4 : code), whole);
	}

	get sequence() {
		return this.on.size === 0 ? "" : `\x1b[${[...this.on.values()].join(";")}m`;
	}
}

/** Breaks text into lines of at most `width` columns, at spaces where there are some. */
export function wrapTextWithAnsi(text, width) {
	const limit = Math.max(1, width);
	const styles = new Styles();
	return text.split("\n").flatMap((line) => wrapLine(line, limit, styles));
}

function wrapLine(text, limit, styles) {
	const lines = [];
	let line = styles.sequence;
	let columns = 0;
	let word = "";
	let wordColumns = 0;
	const flush = () => {
		line += word;
		columns += wordColumns;
		word = "";
		wordColumns = 0;
	};
	const feed = () => {
		lines.push(line.replace(/[ \t]+$/, ""));
		columns = 0;
	};
	for (const { sequence, cluster, width } of pieces(text)) {
		if (sequence !== undefined) {
			styles.take(sequence);
			word += sequence;
			continue;
		}
		if (cluster === " " || cluster === "\t") {
			flush();
			if (columns + width > limit) {
				feed();
				line = styles.sequence;
				continue;
			}
			line += cluster;
			columns += width;
			continue;
		}
		if (columns + wordColumns + width > limit) {
			if (columns > 0) {
				feed();
				line = styles.sequence;
			}
			if (wordColumns + width > limit) {
				flush();
				feed();
				line = styles.sequence;
			}
		}
		word += cluster;
		wordColumns += width;
	}
	flush();
	lines.push(line);
	return lines;
}

/** Cuts to `maxWidth` columns, with `ellipsis` where something is left out; `pad` fills up with spaces. */
export function truncateToWidth(text, maxWidth, ellipsis = "...", pad = false) {
	const width = visibleWidth(text);
	if (width <= maxWidth) return pad ? text + " ".repeat(maxWidth - width) : text;
	const mark = visibleWidth(ellipsis) <= maxWidth ? ellipsis : sliceByColumn(ellipsis, 0, Math.max(0, maxWidth));
	const room = Math.max(0, maxWidth - visibleWidth(mark));
	const cut = takeColumns(text, room);
	const styled = cut.text.includes("\x1b") ? "\x1b[0m" : "";
	return cut.text + styled + mark + (pad ? " ".repeat(Math.max(0, room - cut.width)) : "");
}

function takeColumns(text, room) {
	let out = "";
	let width = 0;
	for (const piece of pieces(text)) {
		if (piece.sequence !== undefined) {
			out += piece.sequence;
			continue;
		}
		if (width + piece.width > room) break;
		out += piece.cluster;
		width += piece.width;
	}
	return { text: out, width };
}

/** `length` columns from column `start`, with the styles that hold there. */
export function sliceByColumn(text, start, length) {
	const styles = new Styles();
	let out = "";
	let begun = false;
	let column = 0;
	for (const { sequence, cluster, width } of pieces(text)) {
		if (sequence !== undefined) {
			styles.take(sequence);
			if (begun) out += sequence;
			continue;
		}
		if (column + width > start + length) break;
		if (column >= start) {
			if (!begun) out += styles.sequence;
			begun = true;
			out += cluster;
		}
		column += width;
	}
	return out;
}

/** The line filled up to `width` columns and drawn by `background`. */
export function fill(line, width, background) {
	const full = line + " ".repeat(Math.max(0, width - visibleWidth(line)));
	return background ? background(full) : full;
}

/** Grapheme clusters of plain text. */
export function clusters(text) {
	return Array.from(GRAPHEMES.segment(text), ({ segment }) => segment);
}

/** A cell that looks like the cursor. */
export function renderFakeCursor(character = " ") {
	return `\x1b[7m${character}\x1b[27m`;
}

/** Takes the cursor's mark out of `lines`; the place as `{ row, column }`. */
export function takeCursor(lines) {
	let cursor;
	const plain = lines.map((line, row) => {
		const at = line.indexOf(CURSOR_MARKER);
		if (at < 0) return line;
		cursor ??= { row, column: visibleWidth(line.slice(0, at)) };
		return line.replaceAll(CURSOR_MARKER, "");
	});
	return { lines: plain, cursor };
}
