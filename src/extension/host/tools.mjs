// The built-in tools as definitions that an extension changes and registers again.
//
// Without operations of its own a call goes to pi's tool (`tools.execute`), with its sandbox,
// limits and queue of changes. With operations (files of another machine, commands in a
// container) the call runs here, on what the operations give.

import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, realpath, stat, writeFile, access } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, matchesGlob, relative, resolve } from "node:path";
import { Type } from "./typebox.mjs";
import { DEFAULT_MAX_BYTES, formatSize, truncateHead, truncateLine, truncateTail } from "./truncate.mjs";

let execute;
/** Names what runs a built-in tool in pi: `(name, toolCallId, args, signal, onUpdate)`. */
export function setBuiltin(run) {
	execute = run;
}

function absolute(cwd, path = ".") {
	const plain = path.startsWith("@") ? path.slice(1) : path;
	if (plain === "~" || plain.startsWith("~/")) return join(homedir(), plain.slice(1));
	return isAbsolute(plain) ? plain : resolve(cwd, plain);
}

const text = (value, details) => ({ content: [{ type: "text", text: value }], details });

const queues = new Map();

/** Runs `change` after every earlier change of the same file. */
export async function withFileMutationQueue(path, change) {
	const key = await realpath(resolve(path)).catch(() => resolve(path));
	const before = queues.get(key);
	const turn = Promise.withResolvers();
	queues.set(key, turn.promise);
	await before;
	try {
		return await change();
	} finally {
		turn.resolve();
		if (queues.get(key) === turn.promise) queues.delete(key);
	}
}

/** The lines of a file that `read` shows, with a note on how to go on. */
async function read(cwd, { path, offset, limit }, operations) {
	const file = absolute(cwd, path);
	await operations.access(file);
	const mimeType = await operations.detectImageMimeType?.(file);
	const bytes = Buffer.from(await operations.readFile(file));
	if (mimeType) {
		return { content: [{ type: "text", text: `Image ${basename(file)} (${mimeType})` }, { type: "image", data: bytes.toString("base64"), mimeType }], details: undefined };
	}
	const lines = bytes.toString("utf8").split("\n");
	const first = Math.max(0, (offset ?? 1) - 1);
	if (first >= lines.length) throw new Error(`Offset ${offset} is behind the end of ${path}, which has ${lines.length} lines`);
	const wanted = limit === undefined ? lines.slice(first) : lines.slice(first, first + limit);
	const truncation = truncateHead(wanted.join("\n"));
	if (truncation.firstLineExceedsLimit) {
		return text(`[Line ${first + 1} is longer than ${formatSize(DEFAULT_MAX_BYTES)}. Read it with bash in parts.]`, { truncation });
	}
	const next = first + (truncation.truncated ? truncation.outputLines : wanted.length) + 1;
	const more = next <= lines.length && !(next === lines.length && lines.at(-1) === "");
	const note = more ? `\n\n[Lines ${first + 1}-${next - 1} of ${lines.length}. Go on with offset=${next}.]` : "";
	return text(truncation.content + note, truncation.truncated ? { truncation } : undefined);
}

async function write(cwd, { path, content }, operations) {
	const file = absolute(cwd, path);
	await withFileMutationQueue(file, async () => {
		await operations.mkdir(dirname(file));
		await operations.writeFile(file, content);
	});
	return text(`Wrote ${Buffer.byteLength(content)} bytes to ${path}`);
}

async function edit(cwd, { path, edits }, operations) {
	const file = absolute(cwd, path);
	return withFileMutationQueue(file, async () => {
		await operations.access(file);
		const original = Buffer.from(await operations.readFile(file)).toString("utf8");
		const unified = original.replaceAll("\r\n", "\n");
		const places = edits.map(({ oldText, newText }, at) => {
			const wanted = oldText.replaceAll("\r\n", "\n");
			const start = unified.indexOf(wanted);
			const name = edits.length > 1 ? `edits[${at}].oldText` : "oldText";
			if (wanted === "" || start < 0) throw new Error(`${name} is not in ${path}. It must match exactly, blanks and line ends included.`);
			if (unified.indexOf(wanted, start + 1) >= 0) throw new Error(`${name} is in ${path} more than once. Give more of what is around it.`);
			return { start, end: start + wanted.length, newText: newText.replaceAll("\r\n", "\n") };
		});
		places.sort((a, b) => a.start - b.start);
		let changed = "";
		let last = 0;
		for (const { start, end, newText } of places) {
			if (start < last) throw new Error(`Two edits of ${path} overlap. Join them into one.`);
			changed += unified.slice(last, start) + newText;
			last = end;
		}
		changed += unified.slice(last);
		if (changed === unified) throw new Error(`The edits change nothing in ${path}`);
		await operations.writeFile(file, original.includes("\r\n") ? changed.replaceAll("\n", "\r\n") : changed);
		const { diff, firstChangedLine } = generateDiffString(unified, changed);
		return text(`Replaced ${edits.length} block(s) in ${path}.`, { diff, patch: generateUnifiedPatch(path, unified, changed), firstChangedLine });
	});
}

/** What lies between the lines that both texts begin and end with. */
function changedRegion(before, after) {
	const a = before.split("\n");
	const b = after.split("\n");
	let head = 0;
	while (head < a.length && head < b.length && a[head] === b[head]) head++;
	let tail = 0;
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
	return { a, b, head, tail, removed: a.slice(head, a.length - tail), added: b.slice(head, b.length - tail) };
}

/** Numbered lines: `-` removed, `+` added, blank kept. */
export function generateDiffString(before, after, context = 4) {
	const { a, b, head, tail, removed, added } = changedRegion(before, after);
	const digits = String(Math.max(a.length, b.length)).length;
	const line = (mark, number, value) => `${mark}${String(number).padStart(digits)} ${value}`;
	const lead = Math.max(0, head - context);
	const follow = a.slice(a.length - tail, a.length - tail + context);
	return {
		diff: [
			...a.slice(lead, head).map((value, at) => line(" ", lead + at + 1, value)),
			...removed.map((value, at) => line("-", head + at + 1, value)),
			...added.map((value, at) => line("+", head + at + 1, value)),
			...follow.map((value, at) => line(" ", b.length - tail + at + 1, value)),
		].join("\n"),
		firstChangedLine: removed.length + added.length > 0 ? head + 1 : undefined,
	};
}

export function generateUnifiedPatch(path, before, after, context = 4) {
	const { a, head, tail, removed, added } = changedRegion(before, after);
	const lead = a.slice(Math.max(0, head - context), head);
	const follow = a.slice(a.length - tail, a.length - tail + context);
	const length = (list) => lead.length + list.length + follow.length;
	const start = head - lead.length + 1;
	return [
		`--- ${path}`,
		`+++ ${path}`,
		`@@ -${start},${length(removed)} +${start},${length(added)} @@`,
		...lead.map((line) => ` ${line}`),
		...removed.map((line) => `-${line}`),
		...added.map((line) => `+${line}`),
		...follow.map((line) => ` ${line}`),
		"",
	].join("\n");
}

async function bash(cwd, { command, timeout }, operations, { signal, onUpdate, env }) {
	let output = "";
	const note = (truncation) => (truncation.truncated ? `\n\n[Last ${truncation.outputLines} of ${truncation.totalLines} lines]` : "");
	const onData = (data) => {
		output += data.toString("utf8");
		const truncation = truncateTail(output);
		onUpdate?.({ content: [{ type: "text", text: truncation.content }], details: truncation.truncated ? { truncation } : undefined });
	};
	const shown = () => {
		const truncation = truncateTail(output);
		return { body: truncation.content + note(truncation), details: truncation.truncated ? { truncation } : undefined };
	};
	let outcome;
	try {
		outcome = await operations.exec(command, cwd, { onData, signal, timeout, env });
	} catch (error) {
		const { body } = shown();
		const limit = /^timeout:(.*)$/.exec(error?.message ?? "")?.[1];
		const reason = error?.message === "aborted" ? "Command aborted" : limit ? `Command timed out after ${limit} seconds` : undefined;
		throw reason ? new Error(body ? `${body}\n\n${reason}` : reason) : error;
	}
	const { body, details } = shown();
	if (outcome.exitCode !== 0 && outcome.exitCode !== null) throw new Error(`${body || "(no output)"}\n\nCommand exited with code ${outcome.exitCode}`);
	return text(body || "(no output)", details);
}

/** Commands in a shell of this machine, as a group that ends together. */
export function createLocalBashOperations({ shellPath = "/bin/bash" } = {}) {
	return {
		exec: (command, cwd, { onData, signal, timeout, env }) =>
			new Promise((done, failed) => {
				const child = spawn(shellPath, ["-c", command], { cwd, env: env ?? process.env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
				let reason;
				const end = (why) => {
					reason ??= why;
					try {
						process.kill(-child.pid, "SIGKILL");
					} catch {
						// It has ended already.
					}
				};
				const abort = () => end("aborted");
				const timer = timeout ? setTimeout(() => end(`timeout:${timeout}`), timeout * 1000) : undefined;
				if (signal?.aborted) abort();
				signal?.addEventListener("abort", abort, { once: true });
				child.stdout.on("data", onData);
				child.stderr.on("data", onData);
				child.on("error", failed);
				child.on("close", (exitCode) => {
					clearTimeout(timer);
					signal?.removeEventListener("abort", abort);
					reason ? failed(new Error(reason)) : done({ exitCode });
				});
			}),
	};
}

async function ls(cwd, { path, limit = 500 }, operations) {
	const folder = absolute(cwd, path);
	if (!(await operations.exists(folder))) throw new Error(`Path not found: ${folder}`);
	if (!(await operations.stat(folder)).isDirectory()) throw new Error(`Not a directory: ${folder}`);
	const names = [...(await operations.readdir(folder))].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()));
	const entries = [];
	for (const name of names.slice(0, limit)) {
		const kind = await Promise.resolve(operations.stat(join(folder, name))).catch(() => undefined);
		entries.push(name + (kind?.isDirectory() ? "/" : ""));
	}
	const truncation = truncateHead(entries.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
	const details = { ...(truncation.truncated && { truncation }), ...(names.length > limit && { entryLimitReached: limit }) };
	return text(truncation.content || "(empty directory)", Object.keys(details).length > 0 ? details : undefined);
}

async function find(cwd, { pattern, path, limit = 1000 }, operations) {
	const folder = absolute(cwd, path);
	if (!(await operations.exists(folder))) throw new Error(`Path not found: ${folder}`);
	const found = await operations.glob(pattern, folder, { ignore: ["**/node_modules/**", "**/.git/**"], limit });
	const names = found.map((name) => (isAbsolute(name) ? relative(folder, name) : name));
	const truncation = truncateHead(names.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
	const details = { ...(truncation.truncated && { truncation }), ...(names.length >= limit && { resultLimitReached: limit }) };
	return text(truncation.content || "No files found matching pattern", Object.keys(details).length > 0 ? details : undefined);
}

async function* filesBelow(folder) {
	for (const entry of await readdir(folder, { withFileTypes: true })) {
		const path = join(folder, entry.name);
		if (entry.isDirectory()) {
			if (entry.name !== ".git" && entry.name !== "node_modules") yield* filesBelow(path);
		} else if (entry.isFile()) yield path;
	}
}

async function grep(cwd, { pattern, path, glob, ignoreCase, literal, context = 0, limit = 100 }, operations, { signal }) {
	const start = absolute(cwd, path);
	const folder = await operations.isDirectory(start);
	const source = literal ? pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : pattern;
	const wanted = new RegExp(source, ignoreCase ? "iu" : "u");
	const out = [];
	let matches = 0;
	let linesTruncated = false;
	for await (const file of folder ? filesBelow(start) : [start]) {
		const name = folder ? relative(start, file) : basename(file);
		if (glob && !matchesGlob(name, glob.includes("/") ? glob : `**/${glob}`)) continue;
		const lines = (await (operations.readFile ?? ((one) => readFile(one, "utf8")))(file)).split("\n");
		if (lines.some((line) => line.includes("\0"))) continue;
		for (let at = 0; at < lines.length && matches < limit; at++) {
			signal?.throwIfAborted();
			if (!wanted.test(lines[at])) continue;
			matches++;
			for (let near = Math.max(0, at - context); near <= Math.min(lines.length - 1, at + context); near++) {
				const { text: line, wasTruncated } = truncateLine(lines[near]);
				linesTruncated ||= wasTruncated;
				out.push(near === at ? `${name}:${near + 1}: ${line}` : `${name}-${near + 1}- ${line}`);
			}
		}
		if (matches >= limit) break;
	}
	const truncation = truncateHead(out.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
	const details = { ...(truncation.truncated && { truncation }), ...(matches >= limit && { matchLimitReached: limit }), ...(linesTruncated && { linesTruncated }) };
	return text(truncation.content || "No matches found", Object.keys(details).length > 0 ? details : undefined);
}

const path = (description) => Type.String({ description });
const optional = (type, description) => Type.Optional(Type[type]({ description }));

const TOOLS = {
	read: {
		run: read,
		local: { access: (file) => access(file), readFile },
		description: "Read a text file or an image (png, jpeg, gif, webp, bmp). Text is cut after 2000 lines or 50KB; go on with offset.",
		promptSnippet: "Read files and images",
		parameters: Type.Object({ path: path("File to read, relative or absolute"), offset: optional("Number", "First line, counted from 1"), limit: optional("Number", "Number of lines") }),
	},
	bash: {
		run: bash,
		local: createLocalBashOperations(),
		description: "Run a bash command in the working folder and get what it prints, stdout and stderr together. The last 2000 lines or 50KB are shown. There is no terminal and nothing on stdin.",
		promptSnippet: "Run shell commands (tests, git, builds, searches)",
		parameters: Type.Object({ command: path("The command"), timeout: optional("Number", "Seconds until it is ended; none by default") }),
	},
	edit: {
		run: edit,
		local: { access: (file) => access(file), readFile, writeFile },
		description: "Replace texts in one file. Every oldText is matched against the file as it is before the call and must occur there exactly once; edits must not overlap.",
		promptSnippet: "Replace exact texts in files, several places in one call",
		parameters: Type.Object({
			path: path("File to edit, relative or absolute"),
			edits: Type.Array(Type.Object({ oldText: path("Text of the file, with just enough around it to be unique"), newText: path("What takes its place") }), { description: "Replacements, applied together" }),
		}),
	},
	write: {
		run: write,
		local: { writeFile, mkdir: (folder) => mkdir(folder, { recursive: true }) },
		description: "Make a file or replace its whole content. Missing parent folders are made.",
		promptSnippet: "Make files or replace them whole",
		parameters: Type.Object({ path: path("File to write, relative or absolute"), content: path("The whole new content") }),
	},
	grep: {
		run: grep,
		local: { isDirectory: async (file) => (await stat(file)).isDirectory(), readFile: (file) => readFile(file, "utf8") },
		description: "Search files for a pattern, line by line. Gives path, line number and line, in order; ignored and binary files are left out. Shows up to 100 matches or 50KB, and 500 characters of a line.",
		promptSnippet: "Search contents of files, ignored ones left out",
		parameters: Type.Object({
			pattern: path("Regular expression, or text if literal is set"), path: optional("String", "File or folder to search (default: the working folder)"),
			glob: optional("String", "Only files that match, e.g. '*.ts' or 'src/**/*.rs' below path"), ignoreCase: optional("Boolean", "Ignore case (default: false)"),
			literal: optional("Boolean", "Take the pattern as plain text (default: false)"), context: optional("Number", "Lines to show before and after each match (default: 0)"),
			limit: optional("Number", "Most matches to show (default: 100)"),
		}),
	},
	find: {
		run: find,
		description: "Find files and folders by a glob. Gives paths from the searched folder, in order; ignored files are left out. Shows up to 1000 paths or 50KB.",
		promptSnippet: "Find files by a glob, ignored ones left out",
		parameters: Type.Object({ pattern: path("Glob for names ('*.ts'), or with a / for paths ('src/**/*.test.ts')"), path: optional("String", "Folder to search (default: the working folder)"), limit: optional("Number", "Most paths to show (default: 1000)") }),
	},
	ls: {
		run: ls,
		local: { exists: (file) => access(file).then(() => true, () => false), stat, readdir },
		description: "List a folder, hidden files too, in alphabetical order. Folders end in /. Shows up to 500 entries or 50KB.",
		promptSnippet: "List folders",
		parameters: Type.Object({ path: optional("String", "Folder to list (default: the working folder)"), limit: optional("Number", "Most entries to show (default: 500)") }),
	},
};

/** Arguments for pi's own tool, whose working folder may be another one. */
function outward(name, cwd, args) {
	if (name !== "bash") return args.path === undefined && cwd === process.cwd() ? args : { ...args, path: absolute(cwd, args.path) };
	return cwd === process.cwd() ? args : { ...args, command: `cd ${quote(cwd)} || exit\n${args.command}` };
}

const quote = (value) => `'${String(value).replaceAll("'", "'\\''")}'`;

/** The command with what a hook on it changed: its folder and variables. */
function hooked(cwd, { command, ...rest }, { commandPrefix, spawnHook }) {
	const prefixed = commandPrefix ? `${commandPrefix}\n${command}` : command;
	if (!spawnHook) return { cwd, args: { ...rest, command: prefixed } };
	const after = spawnHook({ command: prefixed, cwd, env: { ...process.env } });
	const names = Object.keys(after.env ?? {}).filter((name) => after.env[name] !== process.env[name] && /^[A-Za-z_]\w*$/.test(name));
	const exports = names.map((name) => `export ${name}=${quote(after.env[name])}\n`).join("");
	return { cwd: after.cwd ?? cwd, args: { ...rest, command: exports + after.command } };
}

function create(name, cwd, options = {}) {
	const { run, local, ...shape } = TOOLS[name];
	return {
		name,
		label: name,
		...shape,
		async execute(toolCallId, params, signal, onUpdate) {
			const place = name === "bash" ? hooked(cwd, params, options) : { cwd, args: params };
			if (options.operations) return run(place.cwd, place.args, { ...local, ...options.operations }, { signal, onUpdate });
			return execute(name, toolCallId, outward(name, place.cwd, place.args), signal, onUpdate);
		},
	};
}

const factory = (name) => (cwd, options) => create(name, cwd, options);
const [readTool, bashTool, editTool, writeTool, grepTool, findTool, lsTool] = Object.keys(TOOLS).map(factory);
export {
	readTool as createReadTool, readTool as createReadToolDefinition, bashTool as createBashTool, bashTool as createBashToolDefinition,
	editTool as createEditTool, editTool as createEditToolDefinition, writeTool as createWriteTool, writeTool as createWriteToolDefinition,
	grepTool as createGrepTool, grepTool as createGrepToolDefinition, findTool as createFindTool, findTool as createFindToolDefinition,
	lsTool as createLsTool, lsTool as createLsToolDefinition,
};
export const createCodingTools = (cwd, options = {}) => ["read", "bash", "edit", "write"].map((name) => create(name, cwd, options[name]));
export const createReadOnlyTools = (cwd, options = {}) => ["read", "grep", "find", "ls"].map((name) => create(name, cwd, options[name]));

/** The range of lines of a `read` call, as `:5-9`. */
export function formatReadLineRange(offset, limit) {
	if (offset === undefined && limit === undefined) return "";
	const start = offset ?? 1;
	return limit === undefined ? `:${start}` : `:${start}-${start + limit - 1}`;
}
