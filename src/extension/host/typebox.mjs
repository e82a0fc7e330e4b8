// The builders of typebox: JSON schemas as plain objects, and a check of values against them.

const KIND = Symbol.for("TypeBox.Kind");
const OPTIONAL = Symbol.for("TypeBox.Optional");

/** A schema whose kind typebox would name `kind`; the mark is no part of the JSON. */
function schema(kind, fields, options = {}) {
	return Object.defineProperty({ ...fields, ...options }, KIND, { value: kind, configurable: true });
}

function marked(type, optional) {
	const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(type));
	return Object.defineProperty(copy, OPTIONAL, { value: optional, configurable: true });
}

function object(properties, options) {
	const required = Object.keys(properties).filter((name) => !properties[name][OPTIONAL]);
	return schema("Object", { type: "object", ...(required.length > 0 && { required }), properties }, options);
}

function pick(type, keep) {
	const names = Object.keys(type.properties).filter(keep);
	const { required: _, properties: __, ...rest } = type;
	return object(Object.fromEntries(names.map((name) => [name, type.properties[name]])), rest);
}

const nameSet = (keys) => new Set(Array.isArray(keys) ? keys : (keys.anyOf?.map((one) => one.const) ?? [keys.const ?? keys]));
const union = (types, options) => (types.length === 1 ? { ...types[0], ...options } : schema("Union", { anyOf: types }, options));
const each = (type, change) => object(Object.fromEntries(Object.entries(type.properties).map(([name, one]) => [name, change(one)])));

export const Type = {
	Any: (options) => schema("Any", {}, options),
	Array: (items, options) => schema("Array", { type: "array", items }, options),
	Boolean: (options) => schema("Boolean", { type: "boolean" }, options),
	Composite: (types, options) => object(Object.assign({}, ...types.map((type) => type.properties)), options),
	Enum: (values, options) => {
		const list = Array.isArray(values) ? values : Object.entries(values).filter(([key]) => Number.isNaN(Number(key))).map(([, value]) => value);
		return union(list.map((value) => Type.Literal(value)), options);
	},
	Integer: (options) => schema("Integer", { type: "integer" }, options),
	Intersect: (types, options) => schema("Intersect", { allOf: types }, options),
	KeyOf: (type, options) => union(Object.keys(type.properties).map((name) => Type.Literal(name)), options),
	Literal: (value, options) => schema("Literal", { type: typeof value, const: value }, options),
	Never: (options) => schema("Never", { not: {} }, options),
	Null: (options) => schema("Null", { type: "null" }, options),
	Number: (options) => schema("Number", { type: "number" }, options),
	Object: object,
	Omit: (type, keys) => pick(type, (name) => !nameSet(keys).has(name)),
	Optional: (type) => marked(type, true),
	Partial: (type) => each(type, (one) => marked(one, true)),
	Pick: (type, keys) => pick(type, (name) => nameSet(keys).has(name)),
	Readonly: (type) => type,
	Record: (_key, value, options) => schema("Record", { type: "object", patternProperties: { "^.*$": value } }, options),
	Ref: (reference, options) => schema("Ref", { $ref: reference.$id ?? reference }, options),
	Required: (type) => each(type, (one) => marked(one, false)),
	String: (options) => schema("String", { type: "string" }, options),
	Tuple: (items, options) => schema("Tuple", { type: "array", items, additionalItems: false, minItems: items.length, maxItems: items.length }, options),
	Undefined: (options) => schema("Undefined", { type: "undefined" }, options),
	Union: (types, options) => union(types, options),
	Unknown: (options) => schema("Unknown", {}, options),
	Unsafe: (fields = {}) => schema("Unsafe", fields),
};
export default Type;

const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

function fits(type, value) {
	const kind = kindOf(value);
	return type === kind || (type === "integer" && Number.isInteger(value));
}

/** Yields what is wrong with `value`: `{ path, message }`. */
function* errors(type, value, path = "") {
	const wrong = (message) => ({ path, instancePath: path, message });
	if (type.anyOf) {
		if (!type.anyOf.some((one) => check(one, value))) yield wrong("must match one of the types");
		return;
	}
	for (const one of type.allOf ?? []) yield* errors(one, value, path);
	if (type.not && check(type.not, value)) yield wrong("must not be given");
	if ("const" in type && type.const !== value) yield wrong(`must be ${JSON.stringify(type.const)}`);
	if (type.enum && !type.enum.includes(value)) yield wrong(`must be one of ${type.enum.map((one) => JSON.stringify(one)).join(", ")}`);
	if (type.type && ![type.type].flat().some((one) => fits(one, value))) {
		yield wrong(`must be ${[type.type].flat().join(" or ")}`);
		return;
	}
	if (typeof value === "string") {
		if (value.length < (type.minLength ?? 0)) yield wrong(`must have at least ${type.minLength} characters`);
		if (value.length > (type.maxLength ?? Infinity)) yield wrong(`must have at most ${type.maxLength} characters`);
		if (type.pattern && !new RegExp(type.pattern, "u").test(value)) yield wrong(`must match ${type.pattern}`);
	} else if (typeof value === "number") {
		if (value < (type.minimum ?? -Infinity)) yield wrong(`must be at least ${type.minimum}`);
		if (value > (type.maximum ?? Infinity)) yield wrong(`must be at most ${type.maximum}`);
	} else if (Array.isArray(value)) {
		if (value.length < (type.minItems ?? 0)) yield wrong(`must have at least ${type.minItems} items`);
		if (value.length > (type.maxItems ?? Infinity)) yield wrong(`must have at most ${type.maxItems} items`);
		for (let i = 0; i < value.length; i++) {
			const item = Array.isArray(type.items) ? type.items[i] : type.items;
			if (item) yield* errors(item, value[i], `${path}/${i}`);
		}
	} else if (value !== null && typeof value === "object") {
		for (const name of type.required ?? []) if (value[name] === undefined) yield { ...wrong("is missing"), path: `${path}/${name}` };
		for (const [name, one] of Object.entries(value)) {
			const known = type.properties?.[name] ?? Object.entries(type.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern, "u").test(name))?.[1];
			if (known) {
				if (one !== undefined) yield* errors(known, one, `${path}/${name}`);
			} else if (type.additionalProperties === false) yield { ...wrong("is not known"), path: `${path}/${name}` };
			else if (typeof type.additionalProperties === "object") yield* errors(type.additionalProperties, one, `${path}/${name}`);
		}
	}
}

const check = (type, value) => errors(type, value).next().done;

function withDefaults(type, value) {
	if (value === undefined && "default" in type) return structuredClone(type.default);
	if (type.properties && kindOf(value) === "object") {
		for (const [name, one] of Object.entries(type.properties)) {
			const filled = withDefaults(one, value[name]);
			if (filled !== undefined) value[name] = filled;
		}
	}
	return value;
}

export const Value = {
	Check: check,
	Errors: (type, value) => [...errors(type, value)],
	Default: withDefaults,
	Clone: (value) => structuredClone(value),
	Equal: (a, b) => JSON.stringify(a) === JSON.stringify(b),
	Parse: (type, value) => {
		const filled = withDefaults(type, structuredClone(value));
		const first = errors(type, filled).next().value;
		if (first) throw new Error(`${first.path || "the value"} ${first.message}`);
		return filled;
	},
};

export const Compile = (type) => ({
	Check: (value) => check(type, value),
	Errors: (value) => [...errors(type, value)],
	Parse: (value) => Value.Parse(type, value),
});
