// Markdown as lines of styled text: what messages of extensions use of it.

import { frame } from "./components.mjs";
import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./text.mjs";

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const FENCE = /^(\s*)(```+|~~~+)\s*([^\s`]*)/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;

/** Blocks of `lines`: an object with `kind` each. */
function parse(lines) {
	const blocks = [];
	for (let i = 0; i < lines.length; ) {
		const line = lines[i];
		const fence = FENCE.exec(line);
		if (line.trim() === "") {
			i++;
		} else if (fence) {
			const body = [];
			for (i++; i < lines.length && !lines[i].trim().startsWith(fence[2]); i++) body.push(lines[i].slice(indentOf(lines[i], fence[1].length)));
			i++;
			blocks.push({ kind: "code", language: fence[3], body });
		} else if (/^#{1,6}\s/.test(line)) {
			const [, marks, text] = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
			blocks.push({ kind: "heading", level: marks.length, text });
			i++;
		} else if (RULE.test(line)) {
			blocks.push({ kind: "rule" });
			i++;
		} else if (/^\s{0,3}>/.test(line)) {
			const body = [];
			for (; i < lines.length && lines[i].trim() !== ""; i++) body.push(lines[i].replace(/^\s{0,3}>\s?/, ""));
			blocks.push({ kind: "quote", blocks: parse(body) });
		} else if (ITEM.test(line)) {
			const list = takeList(lines, i);
			blocks.push(list.block);
			i = list.next;
		} else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1] ?? "")) {
			const rows = [cells(line)];
			for (i += 2; i < lines.length && lines[i].includes("|"); i++) rows.push(cells(lines[i]));
			blocks.push({ kind: "table", rows });
		} else {
			const body = [];
			for (; i < lines.length && lines[i].trim() !== "" && (body.length === 0 || !begins(lines[i])); i++) body.push(lines[i].trim());
			blocks.push({ kind: "paragraph", text: body.join("\n") });
		}
	}
	return blocks;
}

const indentOf = (line, most) => Math.min(most, /^\s*/.exec(line)[0].length);
const begins = (line) => FENCE.test(line) || /^#{1,6}\s/.test(line) || ITEM.test(line) || /^\s{0,3}>/.test(line) || RULE.test(line);
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());

function takeList(lines, from) {
	const [, indent, first] = ITEM.exec(lines[from]);
	const ordered = /\d/.test(first);
	const items = [];
	let number = ordered ? Number.parseInt(first, 10) : 0;
	let i = from;
	while (i < lines.length) {
		const match = ITEM.exec(lines[i]);
		if (!match || match[1].length !== indent.length || /\d/.test(match[2]) !== ordered) break;
		const depth = match[1].length + match[2].length + 1;
		const body = [match[4]];
		for (i++; i < lines.length; i++) {
			const blank = lines[i].trim() === "";
			const inner = /^\s*/.exec(lines[i])[0].length > indent.length;
			if (blank ? !/^\s+\S/.test(lines[i + 1] ?? "") : !inner && begins(lines[i])) break;
			if (!blank && !inner && lines[i - 1].trim() === "") break;
			body.push(lines[i].slice(indentOf(lines[i], depth)));
		}
		while (lines[i]?.trim() === "" && ITEM.test(lines[i + 1] ?? "")) i++;
		items.push({ mark: ordered ? `${number++}. ` : "- ", blocks: parse(body) });
	}
	return { block: { kind: "list", items }, next: i };
}

/** Styles of inline text: code, bold, italic, struck, links. */
function inline(text, theme, base) {
	const plain = (part) => (part ? base(part) : "");
	const token = /(`+)([\s\S]+?)\1|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|~~([\s\S]+?)~~|\*([^\s*](?:[\s\S]*?[^\s*])?)\*|(?<![\w])_([^\s_](?:[\s\S]*?[^\s_])?)_(?![\w])|\[([^\]]+)\]\(([^)\s]+)[^)]*\)|\\([!-/:-@[-`{-~])/g;
	let out = "";
	let last = 0;
	for (const match of text.matchAll(token)) {
		const [all, , code, strong, strong2, struck, italic, italic2, label, url, escaped] = match;
		out += plain(text.slice(last, match.index));
		last = match.index + all.length;
		const within = (part, style) => style(inline(part, theme, base));
		if (code !== undefined) out += theme.code(code);
		else if (strong ?? strong2) out += within(strong ?? strong2, theme.bold);
		else if (struck) out += within(struck, theme.strikethrough);
		else if (italic ?? italic2) out += within(italic ?? italic2, theme.italic);
		else if (label) out += theme.link(theme.underline(label)) + (label === url ? "" : theme.linkUrl(` (${url})`));
		else out += plain(escaped);
	}
	return out + plain(text.slice(last));
}

function drawTable(rows, width, theme, base) {
	const count = Math.max(...rows.map((row) => row.length));
	const styled = rows.map((row, at) =>
		Array.from({ length: count }, (_, column) => {
			const text = inline(row[column] ?? "", theme, base);
			return at === 0 ? theme.bold(text) : text;
		}),
	);
	const widths = Array.from({ length: count }, (_, column) => Math.max(1, ...styled.map((row) => visibleWidth(row[column]))));
	const room = width - 3 * count - 1;
	while (widths.reduce((sum, size) => sum + size, 0) > room && Math.max(...widths) > 1) widths[widths.indexOf(Math.max(...widths))]--;
	const rule = (left, middle, right) => left + widths.map((size) => "─".repeat(size + 2)).join(middle) + right;
	const lines = [rule("┌", "┬", "┐")];
	styled.forEach((row, at) => {
		const wrapped = row.map((cell, column) => wrapTextWithAnsi(cell, widths[column]));
		for (let i = 0; i < Math.max(...wrapped.map((cell) => cell.length)); i++) {
			const line = wrapped.map((cell, column) => ` ${truncateToWidth(cell[i] ?? "", widths[column], "", true)} `);
			lines.push(`│${line.join("│")}│`);
		}
		lines.push(at === rows.length - 1 ? rule("└", "┴", "┘") : rule("├", "┼", "┤"));
	});
	return lines;
}

function draw(blocks, width, theme, base) {
	const lines = [];
	blocks.forEach((block, index) => {
		if (index > 0) lines.push("");
		const wrap = (text) => wrapTextWithAnsi(text, Math.max(1, width));
		if (block.kind === "heading") {
			const text = inline(block.text, theme, (part) => part);
			const styled = theme.heading(theme.bold(block.level === 1 ? theme.underline(text) : text));
			lines.push(...wrap(block.level >= 3 ? theme.heading(theme.bold(`${"#".repeat(block.level)} `)) + styled : styled));
		} else if (block.kind === "rule") {
			lines.push(theme.hr("─".repeat(Math.min(width, 80))));
		} else if (block.kind === "code") {
			const indent = theme.codeBlockIndent ?? "  ";
			const code = theme.highlightCode?.(block.body.join("\n"), block.language || undefined) ?? block.body.map((line) => theme.codeBlock(line));
			lines.push(theme.codeBlockBorder(`\`\`\`${block.language}`));
			for (const line of code) lines.push(...wrap(indent + line));
			lines.push(theme.codeBlockBorder("```"));
		} else if (block.kind === "quote") {
			const inner = draw(block.blocks, Math.max(1, width - 2), theme, base);
			lines.push(...inner.map((line) => theme.quoteBorder("│ ") + theme.quote(theme.italic(line))));
		} else if (block.kind === "list") {
			for (const { mark, blocks: inner } of block.items) {
				const body = draw(inner, Math.max(1, width - mark.length), theme, base).filter((line, at, all) => line !== "" || all.length > 3);
				lines.push(theme.listBullet(mark) + (body[0] ?? ""), ...body.slice(1).map((line) => " ".repeat(mark.length) + line));
			}
		} else if (block.kind === "table") {
			lines.push(...drawTable(block.rows, width, theme, base));
		} else {
			lines.push(...wrap(inline(block.text, theme, base)));
		}
	});
	return lines;
}

export class Markdown {
	constructor(text, paddingX = 0, paddingY = 0, theme, style = {}, options = {}) {
		Object.assign(this, { text, paddingX, paddingY, theme, style, options });
	}

	setText(text) {
		this.text = text;
		this.invalidate();
	}

	invalidate() {
		this.kept = undefined;
	}

	/** The style of text without marks of its own. */
	base(text) {
		let styled = text;
		for (const name of ["bold", "italic", "strikethrough", "underline"]) if (this.style[name]) styled = this.theme[name](styled);
		return this.style.color?.(styled) ?? styled;
	}

	render(width) {
		if (this.kept?.width === width) return this.kept.lines;
		const inner = Math.max(1, width - 2 * this.paddingX);
		const source = this.options.transform?.(this.text, inner) ?? this.text;
		let lines = [];
		if (source.trim() !== "") {
			const blocks = parse(source.replaceAll("\t", "   ").split(/\r?\n/));
			lines = frame(draw(blocks, inner, this.theme, (part) => this.base(part)), width, this.paddingX, this.paddingY, this.style.bgColor);
		}
		this.kept = { width, lines };
		return lines;
	}
}
