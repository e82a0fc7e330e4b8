// Names of keys, as terminals send them: legacy sequences, the Kitty protocol (CSI u) and xterm's modifyOtherKeys.

const NAMES = ["escape", "esc", "enter", "return", "tab", "space", "backspace", "delete", "insert", "clear", "home",
	"end", "pageUp", "pageDown", "up", "down", "left", "right", ...Array.from({ length: 12 }, (_, i) => `f${i + 1}`)];
const SYMBOLS = { backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\",
	semicolon: ";", quote: "'", comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$",
	percent: "%", caret: "^", ampersand: "&", asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+",
	pipe: "|", tilde: "~", leftbrace: "{", rightbrace: "}", colon: ":", lessthan: "<", greaterthan: ">", question: "?" };

const combine = (...modifiers) => (key) => [...modifiers, key].join("+");

/** Key ids by name, and `Key.ctrl("x")` and its like. */
export const Key = { ...Object.fromEntries(NAMES.map((name) => [name, name])), ...SYMBOLS };
for (const names of [["ctrl"], ["shift"], ["alt"], ["super"], ["ctrl", "shift"], ["shift", "ctrl"], ["ctrl", "alt"],
	["alt", "ctrl"], ["shift", "alt"], ["alt", "shift"], ["ctrl", "super"], ["super", "ctrl"], ["shift", "super"],
	["super", "shift"], ["alt", "super"], ["super", "alt"], ["ctrl", "shift", "alt"], ["ctrl", "shift", "super"]]) {
	const [first, ...rest] = names;
	Key[first + rest.map((name) => name[0].toUpperCase() + name.slice(1)).join("")] = combine(...names);
}

const FINALS = { A: "up", B: "down", C: "right", D: "left", E: "clear", F: "end", H: "home", P: "f1", Q: "f2", R: "f3", S: "f4" };
const NUMBERS = { 1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end",
	11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12" };
const CODES = { 9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter",
	57417: "left", 57418: "right", 57419: "up", 57420: "down", 57421: "pageUp", 57422: "pageDown", 57423: "home",
	57424: "end", 57425: "insert", 57426: "delete" };
const MODIFIERS = [["ctrl", 4], ["alt", 2], ["shift", 1], ["super", 8]];
const EVENTS = { 1: "press", 2: "repeat", 3: "release" };

function identify(key, bits) {
	const prefix = MODIFIERS.filter(([, bit]) => bits & bit).map(([name]) => `${name}+`).join("");
	return prefix + key;
}

function codeName(code) {
	if (CODES[code]) return CODES[code];
	if (code >= 57399 && code <= 57408) return String(code - 57399);
	return code >= 33 ? String.fromCodePoint(code).toLowerCase() : undefined;
}

/** All ids that `data` may stand for, the likeliest first, and the kind of event. */
function decode(data) {
	let match = /^\x1b\[(\d+)(?::\d*)*(?:;(\d*)(?::(\d))?)?(?:;[\d:]*)?u$/.exec(data);
	if (match) return enhanced(codeName(Number(match[1])), match[2], match[3]);
	match = /^\x1b\[27;(\d+);(\d+)~$/.exec(data);
	if (match) return enhanced(codeName(Number(match[2])), match[1]);
	match = /^\x1b\[(?:1;(\d+)(?::(\d))?)?([A-FHPQRS])$/.exec(data);
	if (match) return enhanced(FINALS[match[3]], match[1], match[2]);
	match = /^\x1b\[(\d+)(?:;(\d+)(?::(\d))?)?~$/.exec(data);
	if (match) return enhanced(NUMBERS[match[1]], match[2], match[3]);
	match = /^\x1bO([A-FHPQRS])$/.exec(data);
	if (match) return enhanced(FINALS[match[1]]);
	if (data === "\x1b[Z") return { ids: ["shift+tab"], event: "press" };
	if (data.length > 1 && data[0] === "\x1b" && [...data].length === 2) {
		return { ids: plain(data.slice(1)).map((id) => withAlt(id)), event: "press" };
	}
	return { ids: plain(data), event: "press" };
}

function withAlt(id) {
	return canonical(`alt+${id}`);
}

function enhanced(key, modifiers, event) {
	const bits = modifiers ? Number(modifiers) - 1 : 0;
	// Caps lock (64) and num lock (128) are no part of a key.
	return { ids: key === undefined ? [] : [identify(key, bits & 15)], event: EVENTS[event] ?? "press" };
}

function plain(data) {
	const code = data.codePointAt(0);
	if (code === undefined || [...data].length !== 1) return [];
	if (data === "\r") return ["enter", "ctrl+m"];
	if (data === "\n") return ["ctrl+j", "shift+enter", "enter"];
	if (data === "\t") return ["tab", "ctrl+i"];
	if (data === "\x1b") return ["escape", "ctrl+["];
	if (data === " ") return ["space"];
	if (data === "\x7f") return ["backspace"];
	if (data === "\b") return ["backspace", "ctrl+h", "ctrl+backspace"];
	if (code === 0) return ["ctrl+space", "ctrl+@"];
	if (code < 27) return [`ctrl+${String.fromCharCode(code + 96)}`];
	if (code === 28) return ["ctrl+\\"];
	if (code === 29) return ["ctrl+]"];
	if (code === 30) return ["ctrl+^", "ctrl+6"];
	if (code === 31) return ["ctrl+-", "ctrl+_", "ctrl+/"];
	const lower = data.toLowerCase();
	return lower === data ? [data] : [`shift+${lower}`, data];
}

const ALIASES = { esc: "escape", return: "enter", pageup: "pageUp", pagedown: "pageDown", del: "delete" };

/** The id with its modifiers in the order of `parseKey`. */
function canonical(id) {
	const parts = id.split("+");
	let key = parts.pop();
	if (key === "" && parts.length > 0) {
		key = "+";
		parts.pop();
	}
	const lower = key.toLowerCase();
	key = ALIASES[lower] ?? (key.length > 1 && !NAMES.includes(key) ? lower : key);
	const held = new Set(parts.map((part) => part.toLowerCase()));
	return MODIFIERS.filter(([name]) => held.has(name)).map(([name]) => `${name}+`).join("") + key;
}

/** True if `data`, as the terminal sent it, is the key `id`, whether pressed, held or released. */
export function matchesKey(data, id) {
	const wanted = canonical(id);
	return decode(data).ids.some((candidate) => canonical(candidate) === wanted);
}

/** The id of the key that `data` stands for. */
export function parseKey(data) {
	return decode(data).ids[0];
}

export function isKeyRelease(data) {
	return decode(data).event === "release";
}

export function isKeyRepeat(data) {
	return decode(data).event === "repeat";
}

/** The text that a key types, if it types one. */
export function printable(data) {
	const match = /^\x1b\[(\d+)(?::(\d*))?[\d:]*(?:;(\d*)(?::\d)?)?(?:;([\d:]+))?u$/.exec(data);
	if (match) {
		const bits = (Number(match[3] || 1) - 1) & 15;
		if (match[4]) return String.fromCodePoint(...match[4].split(":").map(Number));
		if (bits & ~1 || Number(match[1]) < 32 || Number(match[1]) === 127 || Number(match[1]) >= 57344) return undefined;
		return String.fromCodePoint(Number((bits & 1 && match[2]) || match[1]));
	}
	return data.length > 0 && !/[\x00-\x1f\x7f]/.test(data) ? data : undefined;
}

export const decodeKittyPrintable = (data) => (data.startsWith("\x1b[") ? printable(data) : undefined);

let kitty = false;
export const setKittyProtocolActive = (active) => (kitty = active);
export const isKittyProtocolActive = () => kitty;

const EDITOR = { cursorUp: "up", cursorDown: "down", cursorLeft: ["left", "ctrl+b"], cursorRight: ["right", "ctrl+f"],
	historyPrevious: [], historyNext: [],
	cursorWordLeft: ["alt+left", "ctrl+left", "alt+b"], cursorWordRight: ["alt+right", "ctrl+right", "alt+f"],
	cursorLineStart: ["home", "ctrl+home", "ctrl+a"], cursorLineEnd: ["end", "ctrl+end", "ctrl+e"],
	jumpForward: "ctrl+]", jumpBackward: "ctrl+alt+]", pageUp: ["pageUp", "ctrl+pageUp"],
	pageDown: ["pageDown", "ctrl+pageDown"], deleteCharBackward: "backspace", deleteCharForward: ["delete", "ctrl+d"],
	deleteWordBackward: ["ctrl+w", "alt+backspace"], deleteWordForward: ["alt+d", "alt+delete"],
	deleteToLineStart: "ctrl+u", deleteToLineEnd: "ctrl+k", yank: "ctrl+y", yankPop: "alt+y", undo: "ctrl+-" };
const GROUPS = {
	"tui.editor": EDITOR,
	"tui.input": { newLine: ["shift+enter", "ctrl+j"], submit: "enter", tab: "tab", copy: "ctrl+c" },
	"tui.select": { up: "up", down: "down", pageUp: "pageUp", pageDown: "pageDown", confirm: "enter", cancel: ["escape", "ctrl+c"] },
};

export const TUI_KEYBINDINGS = {};
for (const [group, actions] of Object.entries(GROUPS)) {
	for (const [action, defaultKeys] of Object.entries(actions)) TUI_KEYBINDINGS[`${group}.${action}`] = { defaultKeys };
}

const list = (keys) => (keys === undefined ? [] : Array.isArray(keys) ? keys : [keys]);

/** Keys by the id of what they do. */
export class KeybindingsManager {
	constructor(definitions = TUI_KEYBINDINGS, user = {}) {
		this.definitions = definitions;
		this.user = user;
	}

	getKeys(id) {
		return list(this.user[id] ?? this.definitions[id]?.defaultKeys);
	}

	matches(data, id) {
		return this.getKeys(id).some((key) => matchesKey(data, key));
	}

	getDefinition(id) {
		return this.definitions[id];
	}

	getConflicts() {
		return [];
	}

	setUserBindings(user) {
		this.user = user;
	}

	getUserBindings() {
		return this.user;
	}

	getResolvedBindings() {
		const ids = new Set([...Object.keys(this.definitions), ...Object.keys(this.user)]);
		return Object.fromEntries(Array.from(ids, (id) => [id, this.getKeys(id)]));
	}
}

let keybindings = new KeybindingsManager();
export const getKeybindings = () => keybindings;
export const setKeybindings = (manager) => (keybindings = manager);
