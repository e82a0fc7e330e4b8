// The colours of the theme in use, by role, and what pi-coding-agent derives from them.

/** Colours 0 to 5 of each channel in the 256-colour cube. */
const STEPS = [0, 95, 135, 175, 215, 255];

function to256([r, g, b]) {
	const near = (value) => STEPS.reduce((best, step, at) => (Math.abs(step - value) < Math.abs(STEPS[best] - value) ? at : best), 0);
	const cube = [near(r), near(g), near(b)];
	const grey = Math.max(0, Math.min(23, Math.round(((r + g + b) / 3 - 8) / 10)));
	const distance = (parts) => parts.reduce((sum, part, at) => sum + (part - [r, g, b][at]) ** 2, 0);
	const level = 8 + 10 * grey;
	if (distance([level, level, level]) < distance(cube.map((at) => STEPS[at]))) return 232 + grey;
	return 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
}

function channels(color) {
	const hex = /^#([0-9a-f]{6})$/i.exec(color)?.[1];
	return hex && [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** The SGR sequence that sets `color` (`#rrggbb`, a number, or "" for the terminal's own). */
function sequence(color, layer, mode) {
	if (typeof color === "number") return `\x1b[${layer}8;5;${color}m`;
	const rgb = channels(color);
	if (!rgb) return `\x1b[${layer}9m`;
	return mode === "truecolor" ? `\x1b[${layer}8;2;${rgb.join(";")}m` : `\x1b[${layer}8;5;${to256(rgb)}m`;
}

/** A theme; the one of the interface follows changes, since components keep it. */
export class Theme {
	/** `source` gives `{ name, path, colors, colorMode }` when asked. */
	constructor(source) {
		this.source = source;
	}

	get name() {
		return this.source().name;
	}

	get sourcePath() {
		return this.source().path;
	}

	get colors() {
		return this.source().colors;
	}

	get appearance() {
		const [r, g, b] = channels(this.colors.userMessageBg ?? "") ?? [0, 0, 0];
		return 0.299 * r + 0.587 * g + 0.114 * b > 128 ? "light" : "dark";
	}

	color(role, layer) {
		const { colors, colorMode } = this.source();
		// A theme that is not known (no terminal to draw on) has no roles at all.
		if (colors[role] === undefined && Object.keys(colors).length > 0) throw new Error(`Unknown theme color: ${role}`);
		return sequence(colors[role] ?? "", layer, colorMode);
	}

	getFgAnsi(role) {
		return this.color(role, 3);
	}

	getBgAnsi(role) {
		return this.color(role, 4);
	}

	getColorMode() {
		return this.source().colorMode;
	}

	fg(role, text) {
		return `${this.getFgAnsi(role)}${text}\x1b[39m`;
	}

	bg(role, text) {
		return `${this.getBgAnsi(role)}${text}\x1b[49m`;
	}

	style(text, { fg, bg, ...attributes }) {
		let styled = text;
		for (const name of Object.keys(attributes)) if (attributes[name] && this[name]) styled = this[name](styled);
		const direct = (value) => typeof value === "number" || value === "" || value.startsWith("#");
		const layer = (value, number) => (direct(value) ? sequence(value, number, this.getColorMode()) : this.color(value, number));
		if (fg !== undefined) styled = `${layer(fg, 3)}${styled}\x1b[39m`;
		return bg === undefined ? styled : `${layer(bg, 4)}${styled}\x1b[49m`;
	}

	bold = (text) => `\x1b[1m${text}\x1b[22m`;
	dim = (text) => `\x1b[2m${text}\x1b[22m`;
	italic = (text) => `\x1b[3m${text}\x1b[23m`;
	underline = (text) => `\x1b[4m${text}\x1b[24m`;
	inverse = (text) => `\x1b[7m${text}\x1b[27m`;
	strikethrough = (text) => `\x1b[9m${text}\x1b[29m`;

	getThinkingBorderColor(level) {
		const role = `thinking${level[0].toUpperCase()}${level.slice(1)}`;
		return (text) => this.fg(role, text);
	}

	getBashModeBorderColor() {
		return (text) => this.fg("bashMode", text);
	}
}

const NONE = { name: "system", colors: {}, colorMode: "truecolor" };
let current = () => NONE;

/** The theme of the interface. */
export const theme = new Theme(() => current() ?? NONE);

/** Names where the colours of the interface come from. */
export function setThemeSource(source) {
	current = source;
}

const role = (name) => (text) => theme.fg(name, text);

export function getMarkdownTheme() {
	const styles = { heading: "mdHeading", link: "mdLink", linkUrl: "mdLinkUrl", code: "mdCode", codeBlock: "mdCodeBlock",
		codeBlockBorder: "mdCodeBlockBorder", quote: "mdQuote", quoteBorder: "mdQuoteBorder", hr: "mdHr", listBullet: "mdListBullet" };
	const { bold, italic, underline, strikethrough } = theme;
	return { ...Object.fromEntries(Object.entries(styles).map(([key, name]) => [key, role(name)])), bold, italic, underline,
		strikethrough, highlightCode };
}

export function getSelectListTheme() {
	return { selectedPrefix: role("accent"), selectedText: role("accent"), description: role("muted"), scrollInfo: role("muted"), noMatch: role("muted") };
}

export function getEditorTheme() {
	return { borderColor: role("borderMuted"), selectList: getSelectListTheme() };
}

export function getSettingsListTheme() {
	return {
		label: (text, selected) => (selected ? theme.fg("accent", text) : text),
		value: (text, selected) => theme.fg(selected ? "accent" : "muted", text),
		description: role("dim"),
		cursor: theme.fg("accent", "→ "),
		hint: role("dim"),
	};
}

/** Lines of code in the colour of code blocks. */
export function highlightCode(code) {
	return code.split("\n").map(role("mdCodeBlock"));
}

const LANGUAGES = { ts: "typescript", tsx: "typescript", mts: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript",
	cjs: "javascript", py: "python", rs: "rust", go: "go", rb: "ruby", java: "java", c: "c", h: "c", cpp: "cpp", cs: "csharp", php: "php",
	sh: "bash", bash: "bash", zsh: "bash", json: "json", yaml: "yaml", yml: "yaml", toml: "toml", md: "markdown", html: "html", css: "css",
	sql: "sql", xml: "xml", kt: "kotlin", swift: "swift", lua: "lua" };

export function getLanguageFromPath(path) {
	return LANGUAGES[/\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase()];
}
