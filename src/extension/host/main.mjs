// The host: one process for all TypeScript and JavaScript extensions.
//
// pi speaks JSON-RPC with it on descriptors 3 and 4 (`pi docs extensions`); descriptors 0 to 2 are
// those of the extensions, whose output goes to stderr.

import { Writable } from "node:stream";
import { environment } from "./environment.mjs";
import { Extension, runTool, toolProgress } from "./extension.mjs";
import { KeybindingsManager, setKeybindings, TUI_KEYBINDINGS } from "./keys.mjs";
import { loadFactory, onModule, provide } from "./loader.mjs";
import { Mirror } from "./mirror.mjs";
import { describe, Peer } from "./peer.mjs";
import { setThemeSource } from "./theme.mjs";
import { setBuiltin } from "./tools.mjs";

/** Desktop notifications that extensions write for the terminal: OSC 9, 777 and 99. */
const NOTIFICATION = /\x1b\](?:777;notify;([^;\x07\x1b]*);([^\x07\x1b]*)|9;([^\x07\x1b]*)|99;[^;]*;([^\x07\x1b]*))(?:\x07|\x1b\\)/g;

let lastExtension;
const output = new Writable({
	decodeStrings: false,
	write(chunk, _encoding, done) {
		const text = String(chunk);
		for (const [, title, body, only, kitty] of text.matchAll(NOTIFICATION)) {
			const notification = title === undefined ? { title: only ?? kitty, body: "" } : { title, body };
			peer.call("ui.desktopNotify", { extension: lastExtension, ...notification }).catch(() => {});
		}
		process.stderr.write(text.replace(NOTIFICATION, ""), done);
	},
});
output.columns = 80;
output.rows = 24;
Object.defineProperty(process, "stdout", { value: output, configurable: true });
globalThis.console = new console.Console(process.stderr, process.stderr);

const extensions = new Map();

const peer = new Peer({ handle, answered, notify, closed: () => process.exit(0) });
const mirror = new Mirror(peer);
mirror.whenReady = [];
loading();
onModule(loading);

let palette;
setThemeSource(() => {
	const known = palette ?? (mirror.ready ? mirror.read("ui.theme", { extension: lastExtension }) : undefined);
	// Without a screen there is no theme.
	return known?.colors ? (palette = known) : undefined;
});
setBuiltin(async (name, toolCallId, args, signal, onUpdate) => {
	const { isError, ...result } = await runTool({ peer, id: lastExtension }, { toolCallId, name, arguments: args, builtin: true }, signal, onUpdate);
	if (isError) throw new Error(result.content?.map((block) => block.text ?? "").join("\n") || `${name} failed`);
	return result;
});

async function initialize(params) {
	const { flags, extensions: instances = [] } = params;
	Object.assign(environment, {
		agentDir: params.agentDir, cwd: params.cwd, hasUI: params.hasUI, isProjectTrusted: params.isProjectTrusted, mode: params.mode,
		referenceVersion: params.referenceVersion, flags: flags ?? {},
	});
	// An extension that starts pi again, for a subagent, finds it where the reference has it.
	if (params.executable) process.execPath = params.executable;
	process.argv.length = 1;
	setKeybindings(new KeybindingsManager(TUI_KEYBINDINGS));
	for (const [file, module] of [
		["pi-coding-agent.mjs", await import("./pi-coding-agent.mjs")],
		["pi-tui.mjs", await import("./pi-tui.mjs")],
		["pi-ai.mjs", await import("./pi-ai.mjs")],
		["pi-agent-core.mjs", await import("./pi-agent-core.mjs")],
		["typebox.mjs", await import("./typebox.mjs")],
	]) {
		provide(file, module);
	}
	const registrations = [];
	for (const instance of instances) registrations.push(await load(instance));
	return { protocolVersion: 1, name: "typescript", extensions: registrations.map((registration) => registration()) };
}

/** Milliseconds for which all extensions together may keep the first prompt waiting while nothing is computed. */
let idleLeft = 250;
/** Milliseconds for which each extension may, in any case. */
const IDLE_MIN = 20;

/** Tells pi that this process is at work. */
function loading() {
	peer.send({ method: "loading" });
}

/**
 * Gives what an extension has registered by then, or that it is still waiting for something: what it registers comes when
 * it is loaded.
 */
async function load(instance) {
	const extension = create(instance);
	lastExtension = instance.id;
	const registration = start(extension);
	const answer = await Promise.race([registration, idle(Math.max(idleLeft, IDLE_MIN))]);
	loading();
	if (answer) return answer;
	idleLeft = 0;
	whenAnswered.push(async () => peer.call("loaded", (await registration)()).catch(() => {}));
	return () => ({ id: instance.id, loading: true });
}

const create = (instance) => new Extension(instance, peer, mirror, () => extensions.get(instance.id));

/** Has extensions begin anew for another session, as the reference does: what they registered for the one before has no part in it. */
async function renew({ extensions: ids }) {
	const former = ids.map((id) => extensions.get(id)).filter(Boolean);
	for (const extension of former) extension.retire();
	const registrations = [];
	for (const { instance } of former) registrations.push(await start(create(instance)));
	return { extensions: registrations.map((registration) => registration()) };
}

async function start(extension) {
	const { id, path } = extension;
	extensions.set(id, extension);
	const failed = (error) => {
		extensions.delete(id);
		console.error(error?.stack ?? error);
		return { id, extension: id, error: describe(error) };
	};
	try {
		const factory = await loadFactory(path);
		await factory(extension.api);
		await extension.findModels();
	} catch (error) {
		const answer = failed(error);
		return () => answer;
	}
	return () => {
		try {
			return { extension: id, ...extension.registration() };
		} catch (error) {
			return failed(error);
		}
	};
}

/** Nothing, when this thread has had nothing to do for so many milliseconds. */
async function idle(ms) {
	// bun does not measure it.
	const spent = () => (process.versions.bun ? performance.now() : performance.eventLoopUtilization().idle);
	const begun = spent();
	for (let left = ms; left > 0; left = ms - (spent() - begun)) await new Promise((done) => setTimeout(done, Math.ceil(left)));
}

/** What is to be done when pi knows what is registered. */
const whenAnswered = [];

/** Once pi knows what is registered, it answers questions. */
function answered(method) {
	if (method !== "initialize" && method !== "renew") return;
	mirror.ready = true;
	for (const extension of extensions.values()) extension.isLoading = false;
	for (const run of [...mirror.whenReady.splice(0), ...whenAnswered.splice(0)]) run();
}

/** Keys as the user has set them, once there is a screen that knows them. */
function readKeybindings(extension) {
	if (environment.mode !== "tui" || keysAreKnown) return;
	const known = mirror.read("ui.keybindings", { extension: extension.id });
	keysAreKnown = Object.keys(known ?? {}).length > 0;
	if (keysAreKnown) setKeybindings(new KeybindingsManager(TUI_KEYBINDINGS, known));
}
let keysAreKnown = false;

const METHODS = {
	event: (extension, { event }, signal) => extension.event(event, signal),
	"tool.prepare": (extension, params) => extension.prepareTool(params),
	"tool.call": (extension, params, signal) => extension.callTool(params, signal),
	"command.run": (extension, params, signal) => extension.runCommand(params, signal),
	"command.complete": (extension, params) => extension.complete(params),
	"shortcut.run": (extension, params, signal) => extension.runShortcut(params, signal),
	"render": (extension, params) => extension.render(params),
	"component.render": (extension, params) => extension.screen.render(params),
	"completer.complete": (extension, params, signal) => extension.screen.completers.get(params.completer)?.(params, signal) ?? null,
	"markdown.transform": (extension, params) => extension.transform(params),
	"provider.stream": (extension, params, signal) => extension.stream(params, signal),
	"provider.login": (extension, params, signal) => extension.login(params, signal),
	"provider.refresh": (extension, params, signal) => extension.refresh(params, signal),
	"provider.models": (extension, params) => extension.accountModels(params),
	"provider.key": (extension, params) => extension.key(params),
	"model.route": (extension, params, signal) => extension.route(params, signal),
};

/** Requests whose result is nothing that a handler may decide. */
const SILENT = new Set(["command.run", "shortcut.run"]);

const failure = (code, message) => Object.assign(new Error(message), { rpcCode: code });

/** Commands that are running. */
const commands = new Set();
/** Milliseconds for what a command does after a reload. */
const REST_MS = 250;

/** A command that asked for a reload goes on before this process ends: behind it, other extensions are loaded elsewhere. */
async function leave() {
	for (const extension of extensions.values()) extension.retire();
	if (peer.release("session.reload") === 0) return null;
	await Promise.race([Promise.allSettled(commands), new Promise((done) => setTimeout(done, REST_MS))]);
	return null;
}

async function handle(method, params, signal, id) {
	mirror.touch();
	if (method === "initialize") return initialize(params);
	if (method === "renew") return renew(params);
	if (method === "shutdown") return leave();
	const run = METHODS[method];
	if (!run) throw failure(-32601, `no method ${method}`);
	const extension = extensions.get(params.extension);
	if (!extension) throw failure(-32602, `no extension ${params.extension}`);
	lastExtension = extension.id;
	readKeybindings(extension);
	const running = run(extension, params, signal, id);
	if (method === "command.run") {
		commands.add(running);
		Promise.resolve(running).catch(() => {}).finally(() => commands.delete(running));
	}
	const result = await running;
	return SILENT.has(method) ? null : result;
}

const NOTIFICATIONS = {
	event: (extension, { event }) => {
		if (event.type === "theme_changed") palette = undefined;
		extension.event(event, new AbortController().signal).catch((error) => extension.fail(event.type, error));
	},
	"component.input": (extension, params) => extension.screen.input(params),
	"component.focus": (extension, params) => extension.screen.focusChanged(params),
	"component.closed": (extension, params) => extension.screen.closed(params),
	"bus.event": (extension, params) => extension.busEvent(params),
};

function notify(method, params) {
	mirror.touch();
	if (method === "tool.progress") toolProgress(params);
	const extension = extensions.get(params.extension);
	if (!extension || !NOTIFICATIONS[method]) return;
	lastExtension = extension.id;
	try {
		NOTIFICATIONS[method](extension, params);
	} catch (error) {
		extension.fail(method, error);
	}
}

// An extension that fails in a timer or a promise of its own takes no other with it.
const told = new WeakSet();
for (const event of ["uncaughtException", "unhandledRejection"]) {
	process.on(event, (error) => {
		// A timer of a session that was left throws the same error again and again.
		if (error instanceof Error && told.has(error)) return;
		if (error instanceof Error) told.add(error);
		console.error(error?.stack ?? error);
		peer.call("log", { extension: lastExtension, level: "error", message: describe(error) }).catch(() => {});
	});
}
