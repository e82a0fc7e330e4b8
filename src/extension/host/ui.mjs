// `ctx.ui`: dialogs, texts around the editor, and components that live here and are drawn in pi.

import { readFileSync, statSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { environment } from "./environment.mjs";
import { getKeybindings, isKeyRelease } from "./keys.mjs";
import { unsupported } from "./missing.mjs";
import { takeCursor } from "./text.mjs";
import { getEditorTheme, Theme, theme } from "./theme.mjs";

let nextComponent = 1;

/** The components of one extension that pi knows, and the interface that they are given. */
export class Screen {
	constructor(peer, mirror, extension) {
		Object.assign(this, { peer, mirror, extension });
		this.components = new Map();
		this.listeners = new Set();
		this.completers = new Map();
		this.tui = this.createTui();
	}

	/** Sends what needs no answer; a refusal is reported once by pi, not here. */
	post(method, params) {
		this.peer.call(method, { extension: this.extension, ...params }).catch((error) => this.report(method, error));
	}

	report(method, error) {
		console.error(`${this.extension}: ${method}: ${error.message}`);
	}

	/** Gives a component an id. */
	mount(component, extra = {}) {
		const id = `c${nextComponent++}`;
		this.components.set(id, { id, component, ...extra });
		return id;
	}

	unmount(id) {
		const mounted = this.components.get(id);
		if (!mounted) return;
		this.components.delete(id);
		if (this.focus === mounted.component) this.focus = undefined;
		mounted.component.dispose?.();
	}

	find(component) {
		for (const mounted of this.components.values()) if (mounted.component === component) return mounted;
		return undefined;
	}

	/** Takes everything away, without telling pi, which has done so. */
	clear() {
		for (const id of [...this.components.keys()]) this.unmount(id);
		this.listeners.clear();
		this.completers.clear();
	}

	redraw() {
		if (this.redrawing) return;
		this.redrawing = true;
		queueMicrotask(() => {
			this.redrawing = false;
			for (const component of this.components.keys()) this.post("ui.redraw", { component });
		});
	}

	createTui() {
		const screen = this;
		return {
			mode: "regular",
			children: [],
			fullRedraws: 0,
			terminal: { rows: 24, columns: 80, kittyProtocolActive: false, write() {} },
			editor: {
				render: (width) => screen.mirror.ask("ui.editorRender", { extension: screen.extension, width }),
				text: () => screen.mirror.ask("ui.getEditorText", { extension: screen.extension }).text,
				input: (data) => screen.change("ui.editorInput", { data }),
				setText: (text) => screen.change("ui.setEditorText", { text }),
				insert: (text) => screen.change("ui.pasteToEditor", { text }),
			},
			requestRender: () => screen.redraw(),
			renderNow: () => screen.redraw(),
			invalidate: () => screen.redraw(),
			addChild() {},
			removeChild() {},
			clear() {},
			render: () => [],
			getShowHardwareCursor: () => false,
			setShowHardwareCursor() {},
			getClearOnShrink: () => true,
			setClearOnShrink() {},
			setFocus(component) {
				const mounted = screen.find(component);
				if (mounted) screen.post("ui.focus", { component: mounted.id, focused: true });
				if (screen.focus && "focused" in screen.focus) screen.focus.focused = false;
				screen.focus = mounted ? undefined : (component ?? undefined);
				if (component && "focused" in component) component.focused = true;
			},
			showOverlay: (component, options) => screen.overlay(component, options),
			hideOverlay: () => [...screen.components.values()].findLast((mounted) => mounted.handle)?.handle.hide(),
			hasOverlay: () => [...screen.components.values()].some((mounted) => mounted.overlay),
			addInputListener: (listener) => screen.listen(listener),
			removeInputListener: (listener) => screen.listeners.delete(listener),
			onTerminalColorSchemeChange: () => () => {},
			setTerminalColorSchemeNotifications() {},
			queryTerminalBackgroundColor: async () => undefined,
			queryTerminalColorScheme: async () => undefined,
			start() {},
			stop() {
				throw unsupported("tui.stop (handing the terminal to another program)");
			},
		};
	}

	/** Sends a change of what the mirror holds. */
	change(method, params) {
		this.mirror.touch();
		this.post(method, params);
	}

	listen(listener) {
		this.listeners.add(listener);
		this.subscribe?.("terminal_input");
		return () => this.listeners.delete(listener);
	}

	/** What listeners make of a key: `consume`, or other `data`. */
	terminalInput(data) {
		let current = data;
		for (const listener of this.listeners) {
			const result = listener(current);
			if (result?.consume) return { consume: true };
			if (result?.data !== undefined) current = result.data;
		}
		return current === data ? {} : { data: current };
	}

	/** The handle of a component over the screen. */
	handle(id, close) {
		const mounted = () => this.components.get(id);
		return {
			hide: close,
			setHidden: (hidden) => {
				const one = mounted();
				if (!one) return;
				one.hidden = hidden;
				this.post("ui.setHidden", { component: id, hidden });
			},
			isHidden: () => mounted()?.hidden ?? false,
			focus: () => {
				for (const other of this.components.values()) if (other.overlay) this.setFocused(other, other.id === id);
				this.post("ui.focus", { component: id, focused: true });
			},
			unfocus: () => {
				const one = mounted();
				if (one) this.setFocused(one, false);
				this.post("ui.focus", { component: id, focused: false });
			},
			isFocused: () => mounted()?.focused ?? false,
			getBounds: () => undefined,
		};
	}

	setFocused(mounted, focused) {
		mounted.focused = focused;
		if ("focused" in mounted.component) mounted.component.focused = focused;
	}

	overlay(component, options = {}) {
		const focused = options.nonCapturing !== true;
		const id = this.mount(component, { overlay: true, options });
		const mounted = this.components.get(id);
		if (focused) this.setFocused(mounted, true);
		const close = () => {
			if (!this.components.has(id)) return;
			this.unmount(id);
			this.post("ui.close", { component: id });
		};
		mounted.handle = this.handle(id, close);
		this.post("ui.custom", { component: id, overlay: true, overlayOptions: this.plainOptions(options) });
		return mounted.handle;
	}

	/** Overlay options without their functions. */
	plainOptions(options) {
		const { visible: _, ...plain } = (typeof options === "function" ? options() : options) ?? {};
		return plain;
	}

	async custom(factory, { overlay, overlayOptions, onHandle, blocked } = {}) {
		if (environment.mode !== "tui") return undefined;
		const outcome = Promise.withResolvers();
		let id;
		let finished = false;
		const finish = (result) => {
			if (finished) return;
			finished = true;
			if (id !== undefined) {
				this.unmount(id);
				this.post("ui.close", { component: id });
			}
			outcome.resolve(result);
		};
		const component = await factory(this.tui, theme, getKeybindings(), finish);
		if (finished) {
			component?.dispose?.();
			return outcome.promise;
		}
		id = this.mount(component, { overlay: overlay === true, options: overlayOptions });
		const options = overlay ? this.plainOptions(overlayOptions) : undefined;
		if (!options?.nonCapturing) this.setFocused(this.components.get(id), true);
		onHandle?.(this.handle(id, () => finish(undefined)));
		this.peer.call("ui.custom", { extension: this.extension, component: id, overlay, overlayOptions: options, blocked }).then(
			// Without a terminal, or when the dialog is taken away, there is no result.
			() => {
				if (finished) return;
				finished = true;
				this.unmount(id);
				outcome.resolve(undefined);
			},
			(error) => {
				this.unmount(id);
				outcome.reject(error);
			},
		);
		return outcome.promise;
	}

	/** Puts a component, lines, or nothing into a place of the screen. */
	place(method, key, content, extra, ...args) {
		const slot = `${method} ${key}`;
		this.places ??= new Map();
		const before = this.places.get(slot);
		this.places.delete(slot);
		if (typeof content === "function") {
			if (environment.mode !== "tui") return;
			const id = this.mount(content(this.tui, theme, ...args));
			this.places.set(slot, id);
			this.post(method, { ...extra, component: id });
		} else {
			this.post(method, { ...extra, ...(content && { lines: content }) });
		}
		if (before) this.unmount(before);
	}

	setEditorComponent(factory) {
		this.editorFactory = factory;
		const before = this.editorId;
		this.editorId = undefined;
		if (factory && environment.mode === "tui") {
			const editor = factory(this.tui, getEditorTheme(), getKeybindings());
			this.editorId = this.mount(editor);
			this.setFocused(this.components.get(this.editorId), true);
		}
		this.post("ui.setEditor", { component: this.editorId });
		if (before) this.unmount(before);
	}

	render({ component, width, rows, screenColumns }) {
		const mounted = this.components.get(component);
		if (!mounted) return null;
		if (rows) this.tui.terminal.rows = rows;
		this.tui.terminal.columns = screenColumns ?? Math.max(width, mounted.overlay ? this.tui.terminal.columns : width);
		const { lines, cursor } = takeCursor(mounted.component.render(width));
		const options = typeof mounted.options === "function" ? mounted.options() : mounted.options;
		const answer = { lines, ...(cursor && { cursor }) };
		if (typeof mounted.options === "function") answer.overlayOptions = this.plainOptions(options);
		if (options?.visible) answer.hidden = !options.visible(this.tui.terminal.columns, this.tui.terminal.rows);
		return answer;
	}

	input({ component, data }) {
		const mounted = this.components.get(component);
		if (!mounted) return;
		const target = this.focus ?? mounted.component;
		if (isKeyRelease(data) && !target.wantsKeyRelease) return;
		target.handleInput?.(data);
		this.redraw();
	}

	focusChanged({ component, focused }) {
		const mounted = this.components.get(component);
		if (mounted) this.setFocused(mounted, focused);
	}

	closed({ component }) {
		this.unmount(component);
	}

	/** Wraps pi's own completion with what the extension adds. */
	addAutocompleteProvider(factory) {
		const OWN = Symbol("pi's own completion");
		const current = {
			getSuggestions: async () => OWN,
			applyCompletion: (lines, cursorLine, cursorCol, item, prefix) => {
				const line = lines[cursorLine];
				const before = line.slice(0, cursorCol - prefix.length) + item.value;
				return { lines: lines.with(cursorLine, before + line.slice(cursorCol)), cursorLine, cursorCol: before.length };
			},
			shouldTriggerFileCompletion: () => true,
		};
		const provider = factory(current);
		const completer = `p${nextComponent++}`;
		this.completers.set(completer, async ({ lines, line, column, force }, signal) => {
			const found = await provider.getSuggestions(lines, line, column, { signal, force });
			return found === OWN || !found ? null : found;
		});
		this.post("ui.addCompleter", { completer, triggers: provider.triggerCharacters });
	}

	/** Called once for each extension. */
	createUi() {
		const { extension } = this;
		const dialog = async (method, params, { signal, timeout } = {}) => {
			if (signal?.aborted) return {};
			try {
				return (await this.peer.call(method, { extension, ...params, timeout }, signal)) ?? {};
			} catch (error) {
				if (signal?.aborted) return {};
				throw error;
			}
		};
		const ui = {
			select: async (title, options, opts) => (await dialog("ui.select", { title, options }, opts)).value,
			confirm: async (title, message, opts) => (await dialog("ui.confirm", { title, message }, opts)).confirmed ?? false,
			input: async (title, placeholder, opts) => (await dialog("ui.input", { title, placeholder }, opts)).value,
			editor: async (title, prefill) => (await dialog("ui.editor", { title, prefill })).value,
			notify: (message, type = "info") => this.post("ui.notify", { message: String(message), type }),
			onTerminalInput: (handler) => this.listen(handler),
			setStatus: (key, text) => this.post("ui.setStatus", { key, text }),
			setWorkingMessage: (message) => this.post("ui.setWorkingMessage", { message }),
			setWorkingVisible: (visible) => this.post("ui.setWorkingVisible", { visible }),
			setWorkingIndicator: (options) => this.post("ui.setWorkingIndicator", { ...options }),
			setHiddenThinkingLabel: (label) => this.post("ui.setHiddenThinkingLabel", { label }),
			setWidget: (key, content, options) => this.place("ui.setWidget", key, content, { key, placement: options?.placement }),
			setFooter: (factory) => this.place("ui.setFooter", "", factory, {}, footerData(this.mirror, extension)),
			setHeader: (factory) => this.place("ui.setHeader", "", factory, {}),
			setTitle: (title) => this.post("ui.setTitle", { title }),
			custom: (factory, options) => this.custom(factory, options),
			pasteToEditor: (text) => this.change("ui.pasteToEditor", { text }),
			setEditorText: (text) => this.change("ui.setEditorText", { text }),
			getEditorText: () => this.mirror.ask("ui.getEditorText", { extension }).text ?? "",
			addAutocompleteProvider: (factory) => this.addAutocompleteProvider(factory),
			setEditorComponent: (factory) => this.setEditorComponent(factory),
			getEditorComponent: () => this.editorFactory,
			get theme() {
				return theme;
			},
			getAllThemes: () => {
				const { themes } = this.mirror.ask("ui.themes", { extension });
				return Array.isArray(themes) ? themes : [];
			},
			getTheme: (name) => {
				const found = this.mirror.read("ui.theme", { extension, name });
				return found?.colors && new Theme(() => found);
			},
			setTheme: (one) => {
				this.mirror.touch();
				const { success = false, error } = this.peer.ask("ui.setTheme", { extension, name: typeof one === "string" ? one : one.name });
				return success ? { success } : { success, error: error ?? "there is no screen" };
			},
			getToolsExpanded: () => this.mirror.ask("ui.toolsExpanded", { extension }).expanded,
			setToolsExpanded: (expanded) => this.change("ui.setToolsExpanded", { expanded }),
		};
		return ui;
	}
}

/** The file that names the branch which is checked out above `folder`. */
function headFile(folder) {
	for (let at = resolve(folder); ; at = dirname(at)) {
		const path = join(at, ".git");
		try {
			if (statSync(path).isDirectory()) return join(path, "HEAD");
			const link = /^gitdir: (.+)$/m.exec(readFileSync(path, "utf8"))?.[1];
			if (link) return join(resolve(at, link), "HEAD");
		} catch {
			// The folder above may have one.
		}
		if (dirname(at) === at) return undefined;
	}
}

/** What a footer shows: the branch, texts of `setStatus`, providers with a key. */
function footerData(mirror, extension) {
	const head = headFile(environment.cwd);
	return {
		getGitBranch() {
			try {
				const content = readFileSync(head, "utf8").trim();
				return /^ref: refs\/heads\/(.+)$/.exec(content)?.[1] ?? "detached";
			} catch {
				return null;
			}
		},
		getExtensionStatuses: () => new Map(Object.entries(mirror.read("ui.statuses", { extension }, {}).statuses ?? {})),
		getAvailableProviderCount: () => new Set((mirror.read("models.list", { extension }, {}).models ?? []).map((model) => model.provider)).size,
		onBranchChange(callback) {
			if (!head) return () => {};
			// The folder is watched, since git puts a new file in place of the old one.
			const watcher = watch(dirname(head), { persistent: false }, (_, name) => name === "HEAD" && callback());
			watcher.on("error", () => {});
			return () => watcher.close();
		},
	};
}

