// Provider objects of pi-ai, as `registerProvider(name, config)` takes them.
//
// Requests in a protocol of pi are pi's own: its functions here only stand for them. What an object does itself
// (streams, models, sign-ins) is asked of it.

import { existsSync } from "node:fs";
import { unsupported } from "./missing.mjs";

/** Stands for the requests that pi makes in a protocol of its own. */
class OwnApi {
	constructor(api) {
		this.api = api;
	}

	stream() {
		throw unsupported(`a request in ${this.api} from within an extension`);
	}

	streamSimple() {
		return this.stream();
	}
}

const own = (api) => () => new OwnApi(api);
export const anthropicMessagesApi = own("anthropic-messages");
export const azureOpenAIResponsesApi = own("azure-openai-responses");
export const bedrockConverseStreamApi = own("bedrock-converse-stream");
export const googleGenerativeAIApi = own("google-generative-ai");
export const googleVertexApi = own("google-vertex");
export const mistralConversationsApi = own("mistral-conversations");
export const openAICodexResponsesApi = own("openai-codex-responses");
export const openAICompletionsApi = own("openai-completions");
export const openAIResponsesApi = own("openai-responses");
export const piMessagesApi = own("pi-messages");

/** Whether pi makes the requests of a provider object. */
const OWN = Symbol("own");

/** A provider object of its parts. `api` is one implementation, or one for each api of its models. */
export function createProvider({ id, name = id, models = [], fetchModels, api, ...rest }) {
	let known = [...models];
	const isOne = typeof api?.streamSimple === "function";
	const of = (model) => {
		const found = isOne ? api : api?.[model.api];
		if (!found) throw new Error(`the provider ${id} has nothing for the api ${model.api}`);
		return found;
	};
	return {
		...rest,
		id,
		name,
		getModels: () => known,
		...(fetchModels && { refreshModels: async (context) => {
			const found = await fetchModels(context);
			await context.publish({ update: () => (known = [...models.filter((model) => !found.some((other) => other.id === model.id)), ...found]) });
		} }),
		stream: (model, ...given) => of(model).stream(model, ...given),
		streamSimple: (model, ...given) => of(model).streamSimple(model, ...given),
		[OWN]: (isOne ? [api] : Object.values(api ?? {})).every((one) => one instanceof OwnApi),
	};
}

/** Asks the user through the callbacks of a sign-in. */
function interaction({ onAuth, onDeviceCode, onPrompt, onSelect, onProgress, signal }) {
	const tell = { auth_url: onAuth, device_code: onDeviceCode, progress: ({ message }) => onProgress(message), info: ({ message }) => onProgress(message) };
	return {
		signal,
		prompt: async ({ signal: _, ...prompt }) => (prompt.type === "select" ? ((await onSelect(prompt)) ?? "") : onPrompt(prompt)),
		notify: ({ type, ...event }) => tell[type]?.(event),
	};
}

/** A text that pi takes as it is, where it could name a variable or a command. */
const literal = (text) => text.replaceAll("$", "$$$$").replace(/^!/, "$!");

/** Headers whose values are texts; those that are null are not sent. */
const literals = (headers) => headers && Object.fromEntries(Object.entries(headers).filter(([, value]) => value != null).map(([name, value]) => [name, literal(String(value))]));

const ambient = { env: async (name) => process.env[name], fileExists: async (path) => existsSync(path) };

/** The config of a provider object. */
export function configOf(provider) {
	const { name, baseUrl, auth: { oauth, apiKey } = {}, filterModels } = provider;
	const models = () => provider.getModels().map(({ provider: _, headers, ...model }) => ({ ...model, ...(headers && { headers: literals(headers) }) }));
	const signIn = oauth ?? (apiKey?.login && apiKey);
	/** The models of an account, at the address and with the headers that go with its key. */
	const modelsOf = async (known, credential) => {
		const { baseUrl: at, headers } = (await oauth?.toAuth(credential)) ?? {};
		const own = filterModels ? filterModels.call(provider, known, credential) : known;
		return own.map((model) => ({ ...model, ...(at && { baseUrl: at }), ...(headers && { headers: { ...literals(model.headers), ...literals(headers) } }) }));
	};
	return {
		name,
		...(models().length > 0 && { baseUrl, models: models() }),
		...(!provider[OWN] && { streamSimple: (...given) => provider.streamSimple(...given) }),
		...(signIn && { oauth: {
			name: signIn.name,
			isSubscription: signIn.isSubscription,
			login: (callbacks) => signIn.login(interaction(callbacks)),
			refreshToken: (credential, signal) => oauth.refresh(credential, signal),
			getApiKey: async (credential) => (await oauth.toAuth(credential)).apiKey,
			...((filterModels || oauth) && { modifyModels: (known, credential) => modelsOf(known, { ...credential, type: "oauth" }) }),
		} }),
		refreshModels: async (context) => {
			await provider.refreshModels?.(context);
			return models();
		},
		/** What it has without a credential of the user. */
		findKey: async (signal) => {
			const found = await apiKey?.resolve({ ctx: ambient, signal });
			const auth = found?.auth ?? {};
			return { ...(auth.apiKey && { apiKey: literal(auth.apiKey) }), ...((baseUrl || auth.baseUrl) && { baseUrl: auth.baseUrl ?? baseUrl }), ...(auth.headers && { headers: literals(auth.headers) }), at: auth.baseUrl };
		},
	};
}
