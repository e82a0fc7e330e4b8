// One extension: what it registers, and the `pi` and `ctx` that it is given.

import { environment } from "./environment.mjs";
import { runHandlers, Streaming } from "./events.mjs";
import { exec } from "./exec.mjs";
import { getKeybindings } from "./keys.mjs";
import { modelRegistry, sessionManager } from "./mirror.mjs";
import { AssistantMessageEventStream, normalizeContext, parseStreamingJson } from "./pi-ai.mjs";
import { configOf } from "./provider-object.mjs";
import { describe } from "./peer.mjs";
import { takeCursor } from "./text.mjs";
import { theme } from "./theme.mjs";
import { Screen } from "./ui.mjs";

/** States of drawn tool calls that are kept; older ones begin anew. */
const MAX_DRAWN_CALLS = 200;
/** Milliseconds for a provider to find out its models. */
const REFRESH_MS = 10_000;
/** Milliseconds for which an extension counts as being loaded while its models are found out. */
const MODELS_WAIT_MS = 1000;
/** Events of a run; at others there may be a run or none. */
const OF_RUN = /^(agent_start|agent_end|turn_|message_|tool_|context|before_provider_|after_provider_|provider_stream_)/;
/** Events beside a run, when pi may count as busy nevertheless. */
const BESIDE_RUN = /^(before_agent_start|agent_before_settle|agent_settled|session_)/;
/** Events whose handlers nobody waits for. */
const STREAMS = new Set(["message_update", "provider_stream_event", "tool_execution_update"]);

/** A result that comes whole, as the stream that the reference gives. */
function streamOf(promise) {
	const stream = new AssistantMessageEventStream();
	promise.then(
		(message) => {
			stream.push({ type: "start", partial: message });
			const failed = message.stopReason === "error" || message.stopReason === "aborted";
			stream.push(failed ? { type: "error", reason: message.stopReason, error: message } : { type: "done", reason: message.stopReason, message });
		},
		(error) => stream.push({ type: "error", reason: "error", error: { role: "assistant", content: [], stopReason: "error", errorMessage: describe(error), timestamp: Date.now() } }),
	);
	return stream;
}

/** What a captured `pi` or `ctx` throws when its session has been left. */
class StaleError extends Error {
	constructor() {
		super("this pi or ctx is of a session that was replaced or reloaded: use the ctx that withSession is given, and what the factory is given for the new session");
	}
}

/** `target` as one extension has it: not ready while the extension is loaded, out of reach once its session is left. */
const seenBy = (extension, target) =>
	new Proxy(target, {
		get(_, name) {
			if (extension.isRetired) throw (extension.stale ??= new StaleError());
			if (name === "ready" && extension.isLoading) return false;
			const value = target[name];
			return typeof value === "function" ? value.bind(target) : value;
		},
	});

export class Extension {
	/** `current` gives the extension that has its id now: another one in each session. */
	constructor(instance, peer, mirror, current) {
		const { id, path, args, sourceInfo } = instance;
		Object.assign(this, { instance, id, path, args, sourceInfo, current, wire: peer, known: mirror });
		this.isLoading = true;
		this.peer = seenBy(this, peer);
		this.mirror = seenBy(this, mirror);
		this.handlers = new Map();
		this.tools = new Map();
		this.commands = new Map();
		this.flags = new Map();
		this.shortcuts = new Map();
		this.messageRenderers = new Map();
		this.entryRenderers = new Map();
		this.providers = new Map();
		this.virtualModels = new Map();
		this.mcpServers = new Map();
		this.channels = new Map();
		this.toolRenderers = [];
		this.transformers = [];
		this.drawn = new Map();
		this.streaming = new Streaming();
		this.screen = new Screen(this.peer, this.mirror, id);
		this.screen.subscribe = (event) => this.register({ events: [event] });
		this.ui = this.screen.createUi();
		this.base = this.createContext();
		this.api = this.createApi();
	}

	/** Its session is left: its handlers are not called any more, and it reaches nothing. */
	retire() {
		this.screen.clear();
		this.isRetired = true;
	}

	/** What has been registered so far, for the answer to `initialize` or `renew`. */
	registration() {
		return {
			id: this.id,
			tools: Array.from(this.tools.values(), (tool) => this.describeTool(tool)),
			commands: Array.from(this.commands, ([name, command]) => describeCommand(name, command)),
			flags: Array.from(this.flags, ([name, flag]) => ({ name, ...flag })),
			shortcuts: Array.from(this.shortcuts, ([key, { description }]) => ({ key, description })),
			events: Array.from(this.events()),
			renderers: this.renderers(),
			providers: this.describeProviders(),
			...(this.modelsPending && { modelsPending: true }),
			...(this.virtualModels.size > 0 && { virtualModels: Array.from(this.virtualModels.values(), describeVirtual) }),
			...(this.mcpServers.size > 0 && { mcpServers: Array.from(this.mcpServers, ([name, config]) => ({ name, config })) }),
			...(this.toolRenderers.length > 0 && { toolRenderers: true }),
			...(this.transformers.length > 0 && { markdownTransformers: this.transformers.map(({ messageTypes }) => ({ messageTypes })) }),
		};
	}

	events() {
		const events = new Set(this.handlers.keys());
		// The message that deltas build needs its beginning; what is mirrored ends with the session.
		if (events.has("message_update")) events.add("message_start");
		if (this.screen.listeners.size > 0) events.add("terminal_input");
		// What is on the screen has the colours of the theme.
		if (environment.mode === "tui") events.add("theme_changed");
		return events;
	}

	/** The providers that say something. */
	describeProviders() {
		const all = Array.from(this.providers, ([name, config]) => describeProvider(name, config));
		return all.filter(({ name: _, ...fields }) => Object.values(fields).some((value) => value !== undefined));
	}

	renderers() {
		return { messages: [...this.messageRenderers.keys()], entries: [...this.entryRenderers.keys()] };
	}

	/** Tells pi of what is registered after the start. */
	register(fields) {
		if (this.mirror.ready) this.screen.change("register", fields);
	}

	/** As `register`, for what pi may refuse: the caller is to see why. */
	registerNow(fields) {
		if (this.mirror.ready) this.peer.ask("register", { extension: this.id, ...fields });
	}

	unregister(fields) {
		if (this.mirror.ready) this.screen.change("unregister", fields);
	}

	describeTool(tool) {
		const { execute: _, renderCall, renderResult, prepareArguments, reachesTools: __, prepareLoadout: ___, ...fields } = tool;
		const renders = [renderCall && "call", renderResult && "result"].filter(Boolean);
		return { ...fields, ...(prepareArguments && { prepares: true }), ...(renders.length > 0 && { renders }) };
	}

	/** A tool as the reference lists it. */
	toolInfo({ name, description, parameters, promptGuidelines, exposure, namespace, annotations, sourceInfo }) {
		const { reachesTools } = this.tools.get(name) ?? {};
		return { name, description, parameters, promptGuidelines, ...(reachesTools && { reachesTools }), exposure, ...(namespace && { namespace }), annotations, sourceInfo };
	}

	/** A call that changes something: what is mirrored is asked for again. */
	change(method, params) {
		if (!this.mirror.ready) throw new Error(`${method} cannot be called while extensions are loaded; call it in a handler, for instance of session_start`);
		this.mirror.touch();
		return this.peer.call(method, { extension: this.id, ...params }).finally(() => this.known.touch());
	}

	/** As `change`, where the interface gives nothing back: a failure is reported, with the name of the method as the reference has it. */
	post(method, params) {
		const name = method.slice(method.indexOf(".") + 1).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
		this.change(method, params).catch((error) => this.fail(name, error));
	}

	/** Reports an error of the extension at an event, or at something else. */
	fail(event, error) {
		console.error(error?.stack ?? error);
		this.wire.call("log", { extension: this.id, level: "error", event, message: describe(error) }).catch(() => {});
	}

	ask(method, params) {
		return this.mirror.ask(method, { extension: this.id, ...params });
	}

	createContext() {
		const extension = this;
		const { mirror, id } = this;
		return {
			ui: this.ui,
			sessionManager: sessionManager(mirror, id),
			modelRegistry: modelRegistry(mirror, id, this.peer, streamOf),
			signal: undefined,
			get mode() {
				return environment.mode;
			},
			get hasUI() {
				return environment.hasUI;
			},
			get cwd() {
				return mirror.read("session.state", { extension: id }, environment).cwd ?? environment.cwd;
			},
			get model() {
				return mirror.state(id).model ?? undefined;
			},
			get thinkingLevel() {
				return mirror.state(id).thinkingLevel;
			},
			get scopedModels() {
				return extension.ask("models.scoped").models;
			},
			isIdle: () => mirror.state(id).isIdle,
			isProjectTrusted: () => mirror.read("session.state", { extension: id }, environment).isProjectTrusted ?? environment.isProjectTrusted,
			hasPendingMessages: () => mirror.state(id).hasPendingMessages,
			getContextUsage: () => mirror.state(id).contextUsage ?? undefined,
			getSystemPrompt: () => this.ask("session.systemPrompt").text,
			abort: () => this.post("session.abort"),
			shutdown: () => this.post("session.shutdown"),
			compact: ({ customInstructions, onComplete, onError } = {}) => {
				this.change("session.compact", { customInstructions }).then(onComplete, (error) => (onError ? onError(error) : this.fail("compact", error)));
			},
		};
	}

	/** The context of one handler: `signal` is aborted when pi gives up waiting for it, and there during runs alone. */
	context(signal, extra = {}, event = "") {
		const { mirror, id } = this;
		const isInRun = () => OF_RUN.test(event) || (!BESIDE_RUN.test(event) && mirror.read("session.state", { extension: id }, {}).isIdle === false);
		const own = {
			get signal() {
				return isInRun() ? signal : undefined;
			},
		};
		return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(this.base), ...Object.getOwnPropertyDescriptors(own), ...Object.getOwnPropertyDescriptors(extra) });
	}

	toolContext(signal, toolCallId) {
		const extension = this;
		return this.context(signal, {
			signal,
			get tools() {
				return extension.ask("tools.list").tools.filter((tool) => tool.active);
			},
			executeTool: async (name, args, options = {}) => {
				const begun = performance.now();
				const { isError = false, toolCallId: own, ...result } = await runTool(this, { toolCallId, name, arguments: args }, options.signal ?? signal, options.onUpdate);
				return { toolCall: { type: "toolCall", id: own, name, arguments: args }, result, isError, durationMs: Math.round(performance.now() - begun) };
			},
		});
	}

	commandContext(signal) {
		const replace = async (method, params, withSession) => {
			const { cancelled = false, ...rest } = (await this.change(method, params)) ?? {};
			if (cancelled) return { cancelled };
			this.known.forget();
			await withSession?.(this.current().commandContext(signal));
			return { cancelled, ...rest };
		};
		return this.context(signal, {
			waitForIdle: () => this.change("session.waitForIdle"),
			reload: () => this.change("session.reload"),
			getSystemPromptOptions: () => this.ask("session.systemPrompt").options,
			newSession: async ({ parentSession, setup, withSession } = {}) => replace("session.new", { parentSession, ...(setup && { setup: await collect(setup) }) }, withSession),
			fork: (entryId, { position, withSession } = {}) => replace("session.fork", { entryId, position }, withSession),
			navigateTree: (targetId, options = {}) => replace("session.navigate", { targetId, ...options }),
			switchSession: (sessionPath, { withSession } = {}) => replace("session.switch", { sessionPath }, withSession),
			sendMessage: (message, options) => this.change("session.sendMessage", { message, ...options, wait: true }),
			sendUserMessage: (content, options) => this.change("session.sendUserMessage", { content, ...options, wait: true }),
		});
	}

	createApi() {
		return {
			on: (event, handler) => {
				const known = this.handlers.get(event) ?? [];
				this.handlers.set(event, [...known, handler]);
				if (known.length === 0) this.register({ events: [...this.events()] });
				return () => {
					const left = this.handlers.get(event)?.filter((one) => one !== handler) ?? [];
					if (left.length > 0) this.handlers.set(event, left);
					else if (this.handlers.delete(event)) this.unregister({ events: [event] });
				};
			},
			registerTool: (tool) => {
				this.tools.set(tool.name, tool);
				this.register({ tools: [this.describeTool(tool)] });
			},
			registerCommand: (name, command) => {
				this.commands.set(name, command);
				this.register({ commands: [describeCommand(name, command)] });
			},
			registerShortcut: (key, shortcut) => {
				this.shortcuts.set(key, shortcut);
				this.register({ shortcuts: [{ key, description: shortcut.description }] });
			},
			registerFlag: (name, flag) => {
				this.flags.set(name, flag);
				this.register({ flags: [{ name, ...flag }] });
			},
			getFlag: (name) => {
				const flag = this.flags.get(name);
				if (!flag) return undefined;
				// While it is loaded, the command line is not known to mean it.
				return (this.mirror.ready ? this.ask("flags.get", { name }).value : undefined) ?? flag.default;
			},
			registerMessageRenderer: (customType, renderer) => {
				this.messageRenderers.set(customType, renderer);
				this.register({ renderers: this.renderers() });
			},
			registerEntryRenderer: (customType, renderer) => {
				this.entryRenderers.set(customType, renderer);
				this.register({ renderers: this.renderers() });
			},
			registerToolRenderer: (resolver) => {
				this.toolRenderers.push(resolver);
				this.register({ toolRenderers: true });
			},
			registerMarkdownTransformer: (transform, { messageTypes } = {}) => {
				this.transformers = [{ transform, messageTypes }];
				this.register({ markdownTransformers: this.transformers.map((one) => ({ messageTypes: one.messageTypes })) });
			},
			registerProvider: (name, config) => {
				if (typeof name !== "string") [name, config] = [name.id, configOf(name)];
				this.providers.set(name, { ...this.providers.get(name), ...config });
				this.announceProvider(name);
				if (this.mirror.ready && config.refreshModels) this.refreshModels(name);
			},
			unregisterProvider: (name) => {
				this.providers.delete(name);
				this.unregister({ providers: [name] });
			},
			registerVirtualModel: (model) => {
				this.registerNow({ virtualModels: [describeVirtual(model)] });
				this.virtualModels.set(`${model.provider}/${model.id}`, model);
				this.mirror.touch();
			},
			unregisterVirtualModel: (provider, id) => {
				this.virtualModels.delete(`${provider}/${id}`);
				this.unregister({ virtualModels: [{ provider, id }] });
			},
			sendMessage: (message, options) => this.post("session.sendMessage", { message, ...options }),
			sendUserMessage: (content, options) => this.post("session.sendUserMessage", { content, ...options }),
			appendEntry: (customType, data) => this.post("session.appendEntry", { customType, data }),
			setSessionName: (name) => this.post("session.setName", { name }),
			getSessionName: () => this.mirror.state(this.id).sessionName ?? undefined,
			setLabel: (entryId, label) => this.post("session.setLabel", { entryId, label }),
			exec,
			getActiveTools: () => [...this.ask("tools.active").names],
			getAllTools: () => this.ask("tools.list").tools.map((tool) => this.toolInfo(tool)),
			setActiveTools: (names) => this.post("tools.setActive", { names }),
			getCommands: () => this.ask("commands.list").commands,
			getSettings: () => this.ask("settings.get"),
			setModel: async (model) => (await this.change("models.set", { provider: model.provider, modelId: model.id })).ok,
			getThinkingLevel: () => this.mirror.state(this.id).thinkingLevel,
			setThinkingLevel: (level) => this.post("models.setThinkingLevel", { level }),
			registerMcpServer: (name, config) => {
				this.registerNow({ mcpServers: [{ name, config }] });
				this.mcpServers.set(name, config);
				this.mirror.touch();
			},
			unregisterMcpServer: (name) => {
				if (this.mcpServers.delete(name)) this.unregister({ mcpServers: [name] });
			},
			getMcpServers: () => (this.mirror.ready ? this.ask("mcp.servers").servers : Array.from(this.mcpServers, ([name, config]) => ({ name, config, extensionPath: this.path }))),
			events: {
				emit: (channel, data) => this.bus("bus.emit", { channel, data }),
				on: (channel, handler) => {
					const known = this.channels.get(channel) ?? new Set();
					this.channels.set(channel, known.add(handler));
					if (known.size === 1) this.bus("bus.on", { channel });
					return () => {
						known.delete(handler);
						if (known.size > 0) return;
						this.channels.delete(channel);
						this.bus("bus.off", { channel });
					};
				},
			},
		};
	}

	/** Calls on the event bus wait for the end of loading. */
	bus(method, params) {
		if (this.mirror.ready) this.post(method, params);
		else this.mirror.whenReady.push(() => this.post(method, params));
	}

	busEvent({ channel, data }) {
		for (const handler of this.channels.get(channel) ?? []) {
			try {
				const result = handler(data);
				result?.catch?.((error) => this.fail(`a handler of ${channel}`, error));
			} catch (error) {
				this.fail(`a handler of ${channel}`, error);
			}
		}
	}

	async event(event, signal) {
		if (event.type === "session_start" || event.type === "session_tree" || event.type === "session_compact") this.mirror.forget();
		if (event.type === "message_start") this.streaming.start(event.message);
		if (event.type === "terminal_input") return this.screen.terminalInput(event.data);
		if (event.type === "theme_changed") this.screen.redraw();
		const seen = event.type === "message_update" ? this.streaming.update(event, parseStreamingJson) : event;
		if (event.type === "session_before_compact") {
			const { fileOps } = event.preparation;
			for (const [kind, paths] of Object.entries(fileOps)) fileOps[kind] = new Set(paths);
		}
		if (event.type === "session_before_compact" || event.type === "session_before_tree") seen.signal = signal;
		if (event.type === "turn_end" || event.type === "agent_before_settle") {
			// The whole conversation is made ready only for those who look at it.
			const context = () => this.ask("session.preview", { event: event.type, entries: seen.entries });
			Object.defineProperty(seen, "context", { enumerable: true, get: context });
		}
		const extra = event.type === "before_agent_start" ? this.promptGetters(seen) : {};
		const handlers = this.handlers.get(event.type) ?? [];
		let failure;
		const failed = (error) => {
			if (failure || STREAMS.has(event.type)) this.fail(event.type, error);
			failure ??= error;
		};
		const answer = await runHandlers(seen, handlers, this.context(signal, extra, event.type), failed);
		const empty = answer === null || Object.keys(answer).length === 0;
		if (failure && empty && !STREAMS.has(event.type)) throw failure;
		if (failure && !empty) this.fail(event.type, failure);
		return event.type === "user_bash" && answer?.operations ? this.runFor(event, answer.operations, signal) : answer;
	}

	/** Has the prompt of an event, and of its context, follow what handlers make of its options. */
	promptGetters(event) {
		const { systemPrompt: text, systemPromptOptions: options } = event;
		const before = JSON.stringify(options);
		const getSystemPrompt = () => (JSON.stringify(options) === before ? text : this.ask("session.systemPrompt", { options }).text);
		Object.defineProperty(event, "systemPrompt", { enumerable: true, get: getSystemPrompt });
		return { getSystemPrompt };
	}

	/** A command of the user that runs on operations of the extension. */
	async runFor({ command, cwd }, operations, signal) {
		let output = "";
		const onData = (data) => (output += data.toString("utf8"));
		try {
			const { exitCode } = await operations.exec(command, cwd, { onData, signal, env: process.env });
			return { result: { output, exitCode: exitCode ?? undefined, cancelled: false, truncated: false } };
		} catch (error) {
			if (!signal.aborted && error?.message !== "aborted") throw error;
			return { result: { output, exitCode: undefined, cancelled: true, truncated: false } };
		}
	}

	async callTool({ toolCallId, name, arguments: args }, signal) {
		const tool = this.tools.get(name);
		if (!tool) throw new Error(`the extension has no tool ${name}`);
		const onUpdate = (partial) => this.peer.send({ method: "tool.update", params: { extension: this.id, toolCallId, content: partial.content, details: partial.details } });
		return tool.execute(toolCallId, args, signal, onUpdate, this.toolContext(signal, toolCallId));
	}

	prepareTool({ name, arguments: args }) {
		return { arguments: this.tools.get(name)?.prepareArguments?.(args) ?? args };
	}

	runCommand({ name, arguments: args }, signal) {
		const command = this.commands.get(name);
		if (!command) throw new Error(`the extension has no command ${name}`);
		return command.handler(args ?? "", this.commandContext(signal));
	}

	complete({ name, prefix }) {
		return this.commands.get(name)?.getArgumentCompletions?.(prefix) ?? null;
	}

	runShortcut({ key }, signal) {
		return this.shortcuts.get(key)?.handler(this.context(signal));
	}

	/** Lines of what belongs to the conversation, or null where pi draws. */
	render(params) {
		const component = this.rendered(params);
		return component ? { lines: takeCursor(component.render(params.width)).lines } : null;
	}

	rendered(params) {
		const hints = { keyText: (id) => getKeybindings().getKeys(id).join("/"), keyHint: (id, text) => `${theme.fg("dim", hints.keyText(id))}${theme.fg("muted", ` ${text}`)}` };
		const { kind, expanded = false } = params;
		if (kind === "message") return this.messageRenderers.get(params.message.customType)?.(params.message, { expanded, outputPad: 0, ...hints }, theme);
		if (kind === "entry") return this.entryRenderers.get(params.entry.customType)?.(params.entry, { expanded, ...hints }, theme);
		const { toolCallId, toolName, args, result, isError = false, isPartial = false, durationMs } = params;
		let renderers = this.tools.get(toolName);
		for (const resolver of this.toolRenderers) {
			const inner = renderers;
			renderers = resolver(toolName, () => inner) ?? inner;
		}
		const draw = kind === "toolCall" ? renderers?.renderCall : renderers?.renderResult;
		if (!draw) return undefined;
		const drawn = this.drawn.get(toolCallId) ?? { state: {} };
		this.drawn.delete(toolCallId);
		this.drawn.set(toolCallId, drawn);
		if (this.drawn.size > MAX_DRAWN_CALLS) this.drawn.delete(this.drawn.keys().next().value);
		const context = {
			args, toolCallId, state: drawn.state, lastComponent: drawn[kind], cwd: environment.cwd, expanded, isPartial, isError, durationMs,
			executionStarted: result !== undefined || params.executionStarted === true, argsComplete: params.argsComplete ?? true, showImages: false, outputPad: 0,
			invalidate: () => this.screen.post("ui.redraw", { toolCallId }),
			...hints,
		};
		const call = kind === "toolCall" ? draw.call(renderers, args, theme, context) : draw.call(renderers, result, { expanded, isPartial }, theme, context);
		drawn[kind] = call;
		return call;
	}

	transform({ text, context }) {
		return { text: this.transformers.reduce((now, { transform, messageTypes }) => (messageTypes && !messageTypes.includes(context.messageType) ? now : transform(now, context)), text) };
	}

	announceProvider(name) {
		const providers = this.describeProviders().filter((provider) => provider.name === name);
		if (providers.length > 0) this.register({ providers });
	}

	/** Asks for the models of every provider that finds them out. What takes longer is registered when it comes. */
	async findModels() {
		this.modelsPending = true;
		const found = Promise.all(Array.from(this.providers.keys(), (name) => this.refreshModels(name))).then(() => (this.modelsPending = false));
		await Promise.race([found, new Promise((done) => setTimeout(done, MODELS_WAIT_MS))]);
		// The start of a session that names one of them waits for this call.
		if (this.modelsPending) found.then(() => this.peer.call("register", { extension: this.id, providers: this.describeProviders(), modelsPending: false })).catch(() => {});
	}

	async refreshModels(name) {
		const asked = this.providers.get(name);
		const { refreshModels, findKey } = asked;
		if (!refreshModels) return;
		const signal = AbortSignal.timeout(REFRESH_MS);
		const late = new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
		const publish = async ({ update } = {}) => (update?.(), true);
		try {
			const context = { signal, allowNetwork: !process.env.PI_OFFLINE, force: false, publish };
			const [models, key] = await Promise.race([Promise.all([refreshModels(context), findKey?.(signal)]), late]);
			// Without models there is nothing that an address would be of.
			// It may have been registered anew, or taken back.
			if (!models || this.providers.get(name) !== asked) return;
			const { at, ...found } = key ?? {};
			// The address that goes with a key holds for every model.
			const placed = at ? models.map((model) => ({ ...model, baseUrl: at })) : models;
			this.providers.set(name, { ...asked, ...(models.length > 0 && found), models: placed });
			this.announceProvider(name);
		} catch (error) {
			this.fail(`refreshModels of ${name}`, error);
		}
	}

	provider(name) {
		const config = this.providers.get(name);
		if (!config) throw new Error(`the extension has no provider ${name}`);
		return config;
	}

	/** Answers a request for a model with the extension's own stream; its events go out as they come. */
	async stream({ provider, model, messages, tools, systemPrompt, thinkingLevel, apiKey, maxTokens, sessionId, stream }, signal) {
		const config = this.provider(provider);
		const reasoning = thinkingLevel && thinkingLevel !== "off" ? thinkingLevel : undefined;
		const events = config.streamSimple(this.modelOf(config, provider, model), normalizeContext({ systemPrompt, tools, messages }), { signal, apiKey, reasoning, maxTokens, sessionId });
		for await (const event of events) {
			if (event.type === "start" || event.type === "done" || event.type === "error") continue;
			const { partial, ...step } = event;
			const call = event.type === "toolcall_start" ? partial?.content?.[event.contentIndex] : undefined;
			this.peer.send({ method: "provider.event", params: { extension: this.id, stream, event: { ...step, ...(call && { id: call.id, toolName: call.name }) } } });
		}
		const { stopReason, usage, errorMessage, responseId } = await events.result();
		return { stopReason, usage, errorMessage, responseId };
	}

	/** The whole model, of which pi may give the id alone. */
	modelOf(config, provider, model) {
		const id = model?.id ?? model;
		const own = config.models?.find((one) => one.id === id);
		return { api: config.api, provider, baseUrl: config.baseUrl, headers: config.headers, ...own, ...(typeof model === "object" ? model : { id }) };
	}

	async route({ extension: _, provider, id, ...request }, signal) {
		const model = this.virtualModels.get(`${provider}/${id}`);
		if (!model) throw new Error(`the extension has no model ${provider}/${id}`);
		const route = await model.route({ ...request, signal }, this.context(signal));
		const { state, thinkingLevel } = route;
		// What is given back as it came is no news.
		return { model: { provider: route.model.provider, id: route.model.id }, thinkingLevel, ...(state !== undefined && state !== request.state && { state }) };
	}

	async login({ provider }, signal) {
		const call = (method, params) => this.peer.call(method, { extension: this.id, provider, ...params }, signal);
		return this.provider(provider).oauth.login({
			onAuth: (info) => void call("auth.open", info).catch((error) => this.fail("auth.open", error)),
			onDeviceCode: ({ verificationUri: url, userCode, expiresInSeconds }) => void call("auth.open", { url, userCode, expiresInSeconds }).catch((error) => this.fail("auth.open", error)),
			onPrompt: async (prompt) => (await call("auth.prompt", prompt)).value ?? "",
			onManualCodeInput: async () => (await call("auth.prompt", { message: "Code, or the address that the browser ended at" })).value ?? "",
			onSelect: async ({ message, options }) => (await call("auth.prompt", { message, options: options.map(({ id, label }) => ({ id, label })) })).value ?? undefined,
			onProgress: (message) => void call("auth.progress", { message }).catch(() => {}),
			signal,
		});
	}

	refresh({ provider, credentials }, signal) {
		return this.provider(provider).oauth.refreshToken(credentials, signal);
	}

	async accountModels({ provider, credentials, models }) {
		return { models: await this.provider(provider).oauth.modifyModels(models, credentials) };
	}

	async key({ provider, credentials }) {
		return { apiKey: await this.provider(provider).oauth.getApiKey(credentials) };
	}
}

/** Calls of pi's tools by the id of their request, for their progress. */
const progress = new Map();

export function toolProgress({ id, content, details }) {
	progress.get(id)?.({ content, details });
}

export async function runTool(extension, params, signal, onUpdate) {
	const id = extension.peer.nextId;
	if (onUpdate) progress.set(id, onUpdate);
	try {
		return await extension.peer.call("tools.execute", { extension: extension.id, ...params }, signal);
	} finally {
		progress.delete(id);
	}
}

/** Entries that `setup` of a new session appends. */
async function collect(setup) {
	const entries = [];
	await setup({
		appendMessage: (message) => entries.push({ type: "message", message }),
		appendCustomEntry: (customType, data) => entries.push({ type: "custom", customType, data }),
		appendCustomMessageEntry: (customType, content, display, details) => entries.push({ type: "custom_message", customType, content, display, details }),
		appendSessionInfo: (name) => entries.push({ type: "session_info", name }),
		appendModelChange: (provider, modelId) => entries.push({ type: "model_change", provider, modelId }),
		appendThinkingLevelChange: (thinkingLevel) => entries.push({ type: "thinking_level_change", thinkingLevel }),
	});
	return entries;
}

const describeCommand = (name, { description, getArgumentCompletions }) => ({ name, description, ...(getArgumentCompletions && { completes: true }) });

function describeProvider(name, { name: displayName, streamSimple, oauth, refreshModels: _, findKey: ____, images: __, classifiers: ___, ...config }) {
	return {
		name,
		...(displayName && { displayName }),
		...config,
		...(streamSimple && { streams: true }),
		...(oauth && { oauth: { name: oauth.name, isSubscription: oauth.isSubscription, ...(oauth.modifyModels && { modifiesModels: true }) } }),
	};
}

const describeVirtual = ({ route: _, ...fields }) => fields;
