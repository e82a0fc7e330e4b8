// What pi knows, for an interface that answers at once.
//
// A question blocks until pi has answered; the answer then holds until the next message from pi,
// and for `FRESH_MS` at most, since timers of extensions ask without any message.

import { branchOf, buildContextEntries, buildSessionContext, buildSessionProjection, treeOf } from "./conversation.mjs";
import { unsupported } from "./missing.mjs";

const FRESH_MS = 20;

export class Mirror {
	#kept = new Map();
	#entries = [];
	#byId = new Map();
	#sessionId;

	constructor(peer) {
		this.peer = peer;
		this.ready = false;
	}

	/** Forgets answers: something may have changed. */
	touch() {
		this.#kept.clear();
	}

	/** The answer of pi to `method`, kept while it is fresh. */
	ask(method, params = {}) {
		if (!this.ready) throw new Error(`${method} cannot be answered while extensions are loaded; ask in a handler, for instance of session_start`);
		const key = `${method} ${JSON.stringify(params)}`;
		const kept = this.#kept.get(key);
		if (kept && Date.now() - kept.at < FRESH_MS) return kept.answer;
		const answer = this.peer.ask(method, params);
		this.#kept.set(key, { answer, at: Date.now() });
		return answer;
	}

	/** As `ask`; for what is read again and again on the way to a picture, where no answer is not worth an error. */
	read(method, params, otherwise) {
		try {
			return this.ask(method, params);
		} catch {
			return otherwise;
		}
	}

	state(extension) {
		return this.ask("session.state", { extension });
	}

	/** All entries of the session: those behind the last known one are fetched. */
	entries(extension) {
		const since = this.#entries.at(-1)?.id;
		let answer;
		try {
			answer = this.ask("session.entries", { extension, ...(since && { since }) });
		} catch (error) {
			// The last entry that is known here is none of the session that is open now.
			if (!since) throw error;
			this.forget();
			return this.entries(extension);
		}
		if (answer.taken) return this.#entries;
		answer.taken = true;
		const anew = !since || answer.since === null || (answer.sessionId !== undefined && answer.sessionId !== this.#sessionId);
		if (anew) {
			this.#entries = [];
			this.#byId = new Map();
		}
		this.#sessionId = answer.sessionId;
		this.leafId = answer.leafId ?? null;
		for (const entry of answer.entries) {
			if (this.#byId.has(entry.id)) continue;
			this.#byId.set(entry.id, entry);
			this.#entries.push(entry);
		}
		return this.#entries;
	}

	/** Another session is there, or other entries of this one. */
	forget() {
		this.#entries = [];
		this.#byId = new Map();
		this.touch();
	}

	entry(id) {
		return this.#byId.get(id);
	}
}

/** The part of the reference's session manager that extensions read. */
export function sessionManager(mirror, extension) {
	const entries = () => mirror.entries(extension);
	const leaf = () => (entries(), mirror.leafId);
	const state = () => mirror.state(extension);
	return {
		getCwd: () => state().cwd,
		getSessionId: () => state().sessionId,
		getSessionFile: () => state().sessionFile ?? undefined,
		getSessionDir: () => state().sessionFile?.replace(/[/\\][^/\\]*$/, "") ?? "",
		getSessionName: () => state().sessionName ?? undefined,
		getHeader: () => mirror.ask("session.header", { extension }),
		getEntries: () => [...entries()],
		getEntry: (id) => (entries(), mirror.entry(id)),
		getLeafId: leaf,
		getLeafEntry: () => (leaf(), mirror.entry(mirror.leafId)),
		getLabel: (id) => entries().findLast((entry) => entry.type === "label" && entry.targetId === id)?.label ?? undefined,
		getBranch: (from) => branchOf(entries(), from ?? mirror.leafId),
		getTree: () => treeOf(entries()),
		buildContextEntries: () => buildContextEntries(entries(), mirror.leafId),
		buildSessionContext: () => buildSessionContext(entries(), mirror.leafId),
		buildSessionProjection: () => buildSessionProjection(entries(), mirror.leafId),
	};
}

/** Models, and questions to them; keys stay in pi. */
export function modelRegistry(mirror, extension, peer, streamOf) {
	const list = (all, type = "chat") => mirror.ask("models.list", { extension, all, type }).models;
	const ofType = (all, type, provider) => list(all, type).filter((model) => !provider || model.provider === provider);
	const same = (model) => (other) => other.provider === model.provider && other.id === model.id;
	const refuse = (name) => () => {
		throw unsupported(`modelRegistry.${name}`);
	};
	async function complete(model, context, options = {}) {
		const { signal, maxTokens, temperature } = options;
		const thinkingLevel = options.reasoning ?? options.reasoningEffort ?? options.thinkingLevel;
		const { messages, systemPrompt, tools } = context;
		const params = { extension, provider: model.provider, modelId: model.id, messages, systemPrompt, tools: tools?.map(({ name, description, parameters }) => ({ name, description, parameters })), thinkingLevel, maxTokens, temperature };
		try {
			return await peer.call("models.complete", params, signal);
		} catch (error) {
			if (!signal?.aborted) throw error;
			return { role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id, stopReason: "aborted", timestamp: Date.now() };
		}
	}
	/** A question to a model that does not chat; `none` is what its result has without an answer. */
	const ask = (method, none) => async (model, context, { signal } = {}) => {
		const { provider, id, api } = model;
		const failed = (stopReason, errorMessage) => ({ api, provider, model: id, ...none, stopReason, errorMessage, timestamp: Date.now() });
		try {
			return await peer.call(method, { extension, provider, modelId: id, context }, signal);
		} catch (error) {
			return signal?.aborted ? failed("aborted", "Request was aborted") : failed("error", error.message);
		}
	};
	const stream = (model, context, options) => streamOf(complete(model, context, options));
	return {
		getAll: () => list(true),
		getAvailable: () => list(false),
		find: (provider, id) => list(true).find(same({ provider, id })),
		hasConfiguredAuth: (model) => list(false).some(same(model)),
		getModelsOfType: (type, provider) => ofType(true, type, provider),
		getAvailableOfType: async (type, provider) => ofType(false, type, provider),
		findOfType: (type, provider, id) => list(true, type).find(same({ provider, id })),
		getModelOfType: (type, provider, id) => list(true, type).find(same({ provider, id })),
		getProviderDisplayName: (provider) => provider,
		getError: () => undefined,
		refresh: async () => ({}),
		complete,
		completeSimple: complete,
		stream,
		streamSimple: stream,
		getApiKeyAndHeaders: async () => ({ ok: false, error: "keys of providers are not given to extensions; use modelRegistry.complete" }),
		getApiKeyForProvider: async () => undefined,
		classify: ask("models.classify", { answers: {} }),
		generateImages: ask("models.generateImages", { output: [] }),
		isUsingOAuth: refuse("isUsingOAuth"),
	};
}
