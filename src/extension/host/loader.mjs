// Loads extensions: TypeScript without a build, and the packages of the reference answered from here.
//
// A name that a package of the reference has and this host has not is a stand-in, which throws
// when it is used: an extension that imports it for one of its features keeps the others.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import * as modules from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { missing } from "./missing.mjs";

const HERE = new URL("./", import.meta.url).href;
const PACKAGES = new Map([
	["pi-coding-agent", "pi-coding-agent.mjs"],
	["pi-tui", "pi-tui.mjs"],
	["pi-ai", "pi-ai.mjs"],
	["pi-agent-core", "pi-agent-core.mjs"],
]);
const SCOPED = /^@(?:earendil-works|mariozechner)\/(pi-coding-agent|pi-tui|pi-ai|pi-agent-core)(\/.*)?$/;
const TYPEBOX = /^(?:typebox|@sinclair\/typebox)(\/(?:value|compile|compiler|type))?$/;
const PROVIDED = "pi-host:";

const CLAUSE = String.raw`(?:[\w$]+\s*,\s*)?(?:\{[^}]*\}|\*\s*as\s+[\w$]+)|[\w$]+`;
const IMPORTS = new RegExp(String.raw`(?<=^|;)([ \t]*(?:import|export)\s+)(${CLAUSE})(\s+from\s*)(["'])([^"'\n]+)\4`, "gm");

/** `{ imported, local }` of every name in braces. */
function names(clause) {
	const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
	return braces.split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
		const [name, local = name] = part.split(/\s+as\s+/);
		return { imported: name, local };
	});
}

/** Names by specifier, by the file that imports them. */
const imports = new Map();

/** The names that the module at `url` wants of a package. */
function wantedBy(url, specifier) {
	if (!url?.startsWith("file:")) return [];
	if (!imports.has(url)) imports.set(url, scan(readFileSync(fileURLToPath(url.split("?")[0]), "utf8")));
	return [...(imports.get(url).get(specifier) ?? [])].sort();
}

function scan(source) {
	const found = new Map();
	for (const [, , clause, , , specifier] of source.matchAll(IMPORTS)) {
		if (!SCOPED.test(specifier) && !TYPEBOX.test(specifier)) continue;
		const known = found.get(specifier) ?? new Set();
		for (const name of names(clause)) if (!name.imported.startsWith("type ")) known.add(name.imported);
		const whole = /\*\s*as\s+([\w$]+)/.exec(clause)?.[1];
		if (whole) for (const [, name] of source.matchAll(new RegExp(`(?<![\\w$.])${whole.replaceAll("$", "\\$")}\\.([\\w$]+)`, "g"))) known.add(name);
		found.set(specifier, known);
	}
	return found;
}

/** Leaves out imports of names that nothing uses once the types are gone, as a TypeScript compiler does. */
function withoutTypeImports(source) {
	return source.replace(IMPORTS, (all, keyword, clause, from, quote, specifier) => {
		if (!keyword.trim().startsWith("import") || clause.includes("*")) return all;
		const rest = source.replace(all, "");
		const used = (name) => new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`).test(rest);
		const main = /^([\w$]+)/.exec(clause)?.[1];
		const kept = names(clause).filter(({ local }) => used(local));
		const parts = [];
		if (main && used(main)) parts.push(main);
		if (kept.length > 0) parts.push(`{ ${kept.map(({ imported: name, local }) => (name === local ? name : `${name} as ${local}`)).join(", ")} }`);
		const lines = "\n".repeat(all.split("\n").length - 1);
		return parts.length === 0 ? lines : `${keyword}${parts.join(", ")}${from}${quote}${specifier}${quote}${lines}`;
	});
}

/** What CommonJS modules have around them, for the modules that use it. */
function prelude(source) {
	const uses = (name) => new RegExp(`(?<![\\w$.])${name}(?![\\w$])`).test(source) && !new RegExp(`(?:const|let|var|function)\\s+(?:\\{[^}]*\\b)?${name}\\b`).test(source);
	let lead = "";
	if (uses("__filename")) lead += "const __filename = import.meta.filename; ";
	if (uses("__dirname")) lead += "const __dirname = import.meta.dirname; ";
	if (uses("require")) lead += "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url); ";
	return lead + source;
}

/** Where sources without types are kept, if pi names a folder: taking them out costs more than all else at the start. */
const KEPT = process.argv[2];
const KEPT_MAX = 500;

function kept(source, url) {
	if (!KEPT) return withoutTypes(source, url);
	const file = join(KEPT, createHash("sha256").update(`${process.version}\n${source}`).digest("hex"));
	try {
		return readFileSync(file, "utf8");
	} catch {
		// It is made now.
	}
	const plain = withoutTypes(source, url);
	try {
		mkdirSync(KEPT, { recursive: true });
		const names = readdirSync(KEPT);
		if (names.length >= KEPT_MAX) for (const name of names) rmSync(join(KEPT, name), { force: true });
		const draft = `${file}.${process.pid}`;
		writeFileSync(draft, plain);
		renameSync(draft, file);
	} catch {
		// A folder that cannot be written costs time only.
	}
	return plain;
}

function withoutTypes(source, url) {
	try {
		return modules.stripTypeScriptTypes(source, { mode: "strip" });
	} catch (error) {
		if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw located(error, url);
	}
	try {
		// Enums, namespaces and parameter properties are no mere types.
		return modules.stripTypeScriptTypes(source, { mode: "transform" });
	} catch (error) {
		throw located(error, url);
	}
}

/** The error with its file and line, which Node writes into the stack alone. */
function located(error, url) {
	const line = /^[^\n]*?:(\d+)\n/.exec(error.stack ?? "")?.[1];
	error.message = `${fileURLToPath(url)}${line ? `:${line}` : ""}: ${error.message}`;
	return error;
}

const isModule = (source) => /^\s*(?:import|export)\b/m.test(source);

/** Milliseconds between signs that modules are being loaded. */
const SIGN_MS = 500;
let lastSign = Date.now();
let sign = () => {};

/** Calls `told` while modules are being loaded. */
export function onModule(told) {
	sign = told;
}

function load(url, context, next) {
	if (Date.now() - lastSign > SIGN_MS) {
		lastSign = Date.now();
		sign();
	}
	if (url.startsWith(PROVIDED)) return { format: "module", shortCircuit: true, source: provided(url) };
	const path = url.split("?")[0];
	if (/\.[cm]?ts$/.test(path)) {
		const source = withoutTypeImports(kept(readFileSync(fileURLToPath(path), "utf8"), path));
		const common = path.endsWith(".cts") || (!isModule(source) && /\bmodule\.exports\b|\bexports\./.test(source));
		return common ? { format: "commonjs", shortCircuit: true, source } : { format: "module", shortCircuit: true, source: prelude(source) };
	}
	if (path.endsWith(".json") && !context.importAttributes?.type && !context.conditions?.includes("require")) {
		const value = JSON.parse(readFileSync(fileURLToPath(path), "utf8"));
		return { format: "module", shortCircuit: true, source: `export default ${JSON.stringify(value)};` };
	}
	return next(url, context);
}

/** Ends that a specifier without the right one may have. */
const ENDS = [".ts", ".mts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js", "/index.mjs"];

function resolve(specifier, context, next) {
	const scoped = SCOPED.exec(specifier);
	if (scoped || TYPEBOX.test(specifier)) return resolvePackage(specifier, scoped, context, next);
	try {
		return next(specifier, context);
	} catch (error) {
		const relative = /^\.{0,2}\//.test(specifier) && context.parentURL?.startsWith("file:");
		if (!relative) throw error;
		const base = fileURLToPath(new URL(specifier, context.parentURL));
		const other = base.replace(/\.([cm]?)js$/, ".$1ts");
		const found = [other, ...ENDS.map((end) => base + end)].find((path) => path !== base && existsSync(path) && statSync(path).isFile());
		if (!found) throw error;
		return { url: pathToFileURL(found).href, shortCircuit: true };
	}
}

function resolvePackage(specifier, scoped, context, next) {
	let copy;
	try {
		copy = next(specifier, context);
	} catch {
		// None is installed.
	}
	// typebox stands for itself. Of the others this host is what runs: a copy lends what is missing here.
	if (copy && !scoped) return copy;
	const wanted = wantedBy(context.parentURL, specifier).join(",");
	const query = new URLSearchParams({ wanted, ...(copy && { copy: copy.url }) });
	return { url: `${PROVIDED}${specifier}?${query}`, format: "module", shortCircuit: true };
}

/** The host's own modules by their files. */
const hosted = new Map();

/** Names a module of the host; called once it is loaded. */
export function provide(file, module) {
	hosted.set(file, module);
}

/** The module that stands for a package: what the host has, and stand-ins for the rest of what is asked for. */
function provided(url) {
	const at = url.indexOf("?");
	const specifier = url.slice(PROVIDED.length, at);
	const query = new URLSearchParams(url.slice(at + 1));
	const file = PACKAGES.get(SCOPED.exec(specifier)?.[1]) ?? "typebox.mjs";
	const has = Object.keys(hosted.get(file) ?? {});
	const missing = query.get("wanted").split(",").filter((name) => name && name !== "default" && !has.includes(name));
	const copy = missing.length > 0 && query.get("copy");
	const lines = [
		`export * from ${JSON.stringify(HERE + file)};`,
		...(has.includes("default") ? [`export { default } from ${JSON.stringify(HERE + file)};`] : []),
		`import { missing } from ${JSON.stringify(`${HERE}missing.mjs`)};`,
		...(copy ? [`import * as copy from ${JSON.stringify(copy)};`] : []),
		...missing.map((name) => `export const ${name} = ${copy ? `copy.${name} ?? ` : ""}missing(${JSON.stringify(specifier)}, ${JSON.stringify(name)});`),
	];
	return lines.join("\n");
}

if (process.versions.bun) hookBun();
else modules.registerHooks({ resolve, load });

/** bun reads TypeScript itself and has no hook for names of packages: imports are rewritten to modules of their own. */
function hookBun() {
	Bun.plugin({
		name: "pi",
		setup(build) {
			const answered = new Set();
			const standIn = (specifier, wanted, from) => {
				const scoped = SCOPED.exec(specifier)?.[1];
				if (!scoped && !TYPEBOX.test(specifier)) return specifier;
				try {
					if (!scoped) return Bun.resolveSync(specifier, from);
				} catch {
					// None is installed.
				}
				const name = `${PROVIDED}${specifier}?${[...wanted].sort().join(",")}`;
				const file = PACKAGES.get(scoped) ?? "typebox.mjs";
				if (!answered.has(name)) {
					answered.add(name);
					const exports = () => Object.fromEntries([...wanted].map((one) => [one, missing(specifier, one)]));
					build.module(name, () => ({ loader: "object", exports: { ...exports(), ...hosted.get(file) } }));
				}
				return name;
			};
			// Of what is installed as JavaScript bun decides itself what kind of module it is.
			for (const [name, file] of PACKAGES) {
				for (const scope of ["earendil-works", "mariozechner"]) build.module(`@${scope}/${name}`, () => ({ loader: "object", exports: { ...hosted.get(file) } }));
			}
			build.onLoad({ filter: /\.[cm]?ts$|^(?!.*[\\/]node_modules[\\/]).*\.m?js$/ }, ({ path }) => {
				if (Date.now() - lastSign > SIGN_MS) {
					lastSign = Date.now();
					sign();
				}
				const source = readFileSync(path, "utf8");
				const wanted = scan(source);
				const contents = source.replace(IMPORTS, (all, keyword, clause, from, quote, specifier) =>
					wanted.has(specifier) ? `${keyword}${clause}${from}${quote}${standIn(specifier, wanted.get(specifier), dirname(path))}${quote}` : all,
				);
				return { contents, loader: extname(path).includes("ts") ? "ts" : "js" };
			});
		},
	});
}

/** The function that a module of an extension exports. */
export async function loadFactory(path) {
	const module = await import(pathToFileURL(entryOf(path)).href);
	const factory = typeof module.default === "function" ? module.default : module.default?.default;
	if (typeof factory !== "function") throw new Error(`${path} has no default export that is a function`);
	return factory;
}

/** The file of an extension that is given as a folder. */
function entryOf(path) {
	if (!statSync(path).isDirectory()) return path;
	const found = ["index.ts", "index.js", "index.mjs"].map((name) => join(path, name)).find((file) => existsSync(file));
	if (!found) throw new Error(`${path} has neither index.ts nor index.js`);
	return found;
}

