// Runs one script of the tool `codemode`, for pi on the other end of stdin and stdout.
//
// A message is a line of JSON. pi sends {code, tools, models, store} first, then answers {id, ok} or {id, error}. This side
// sends {text}, {console}, {image}, {call, tool, arguments}, {ask, what, arguments}, and at the end {done} or {failed}.
//
// The script runs in a context of its own, which is handed nothing but functions of that context. Should it get out of
// there all the same, it finds the globals of the language and no more.
import { writeSync } from "node:fs";
import process from "node:process";
import vm from "node:vm";

const { stdin } = process;
const soon = setImmediate;
const encoder = new TextEncoder();
const { Deno } = globalThis;
const put = Deno ? (bytes) => Deno.stdout.writeSync(bytes) : (bytes) => writeSync(1, bytes);
if (!Deno) process.stdout._handle?.setBlocking?.(true);

// Waits until pi has taken the message: what waited here would take the script's memory.
const write = (text) => {
  let bytes = encoder.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(put(bytes));
};

// Runs in the script's context. `send` takes a text; gives functions that take texts.
const inside = `(send) => {
  "use strict";
  const { parse, stringify } = JSON;
  const waiting = new Map();
  let last = 0, stored = new Map(), written = new Map(), isOver = false;
  const say = (message) => { if (!isOver) send(stringify(message)); };
  const end = (message) => { say(message); isOver = true; };
  const request = (kind, name, given) => new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, { resolve, reject });
    say({ [kind]: id, name, arguments: given });
  });
  const shown = (value) => typeof value === "string" ? value : stringify(value) ?? String(value);
  const written_out = () => {
    const set = {}, gone = [];
    for (const [key, value] of written) value === undefined ? gone.push(key) : set[key] = parse(value);
    return { set, delete: gone };
  };
  const finish = (value) => end({ done: written_out(), ...(value === undefined ? {} : { value: shown(value) }) });
  const over = { over: true };
  const line = (...values) => say({ console: values.map((value) =>
    value instanceof Error ? String(value.stack ?? value) : shown(value)).join(" ") });
  const picture = (value) => {
    if (value && typeof value === "object" && "image_url" in value) {
      const url = value.image_url;
      value = url && typeof url === "object" ? url.url : url;
    }
    if (typeof value === "string") {
      const found = /^data:([^;,]+);base64,(.*)$/s.exec(value.trim());
      if (!found) throw new TypeError("image() takes a base64 data: URL, or an image block; addresses are not fetched");
      value = { type: "image", mimeType: found[1], data: found[2] };
    }
    if (value?.type !== "image" || typeof value.data !== "string" || typeof value.mimeType !== "string")
      throw new TypeError("image() takes a base64 data: URL, { image_url }, or { type: \\"image\\", data, mimeType }");
    say({ image: { data: value.data, mimeType: value.mimeType } });
  };
  const store = (key, value) => {
    if (typeof key !== "string") throw new TypeError("store() takes a string as key");
    const text = value === undefined ? undefined : stringify(value);
    if (value !== undefined && text === undefined) throw new TypeError("store() takes a value that JSON can hold");
    if (text?.length > LIMIT_VALUE) throw new RangeError("store(): the value has more than LIMIT_VALUE characters");
    const next = new Map(stored);
    text === undefined ? next.delete(key) : next.set(key, text);
    let size = 0;
    for (const [key, text] of next) size += key.length + text.length;
    if (size > LIMIT_STORE) throw new RangeError("store(): all values have more than LIMIT_STORE characters");
    stored = next;
    written.set(key, text);
  };
  const load = (key) => { const text = stored.get(key); return text === undefined ? undefined : parse(text); };
  const globals = {
    text: (value) => { say({ text: shown(value) }); },
    image: picture, store, load,
    exit: () => { finish(); throw over; },
    console: { log: line, info: line, warn: line, error: line, debug: line },
    searchTools: (...given) => request("ask", "searchTools", given),
    describeTool: (...given) => request("ask", "describeTool", given),
    describeNamespace: (...given) => request("ask", "describeNamespace", given),
    models: {},
  };
  const fail = (error) => {
    if (error === over) return;
    const isError = error instanceof Error;
    const lines = isError ? String(error.stack ?? "").split("\\n").slice(1) : [];
    const places = lines.map((line) => /<anonymous>:(\\d+):(\\d+)\\)?$/.exec(line)).filter(Boolean);
    const stack = places.map(([, row, column]) => "    at line " + (row - 2) + ", column " + column);
    end({ failed: { name: isError ? error.name : "Error", message: isError ? error.message : shown(error),
      stack: stack.slice(0, 8).join("\\n") } });
  };
  return {
    start: (text) => {
      const { code, tools, models, store: values } = parse(text);
      for (const key of Object.keys(values)) stored.set(key, stringify(values[key]));
      globals.tools = {};
      for (const { id, name } of tools) globals.tools[id] = (given = {}) => request("call", name, given);
      globals.ALL_TOOLS = tools.map(({ id, description }) => ({ name: id, description }));
      for (const name of models) globals.models[name] = (...given) => request("ask", name, given);
      for (const name of Object.keys(globals))
        Object.defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true });
      try {
        const Body = (async () => {}).constructor;
        new Body(code)().then(finish, fail);
      } catch (error) { fail(error); }
    },
    answer: (text) => {
      const { id, ok, error } = parse(text);
      const waiter = waiting.get(id);
      waiting.delete(id);
      error === undefined ? waiter?.resolve(ok) : waiter?.reject(new Error(error));
    },
    settle: () => {
      if (!isOver && waiting.size === 0) end({ failed: { name: "Error", stack: "",
        message: "The script waits for a promise that nothing can settle: no tool call is under way" } });
    },
  };
}`;

const context = vm.createContext(Object.create(null), { codeGeneration: { strings: true, wasm: false } });
const limits = { LIMIT_VALUE: 262144, LIMIT_STORE: 1048576 };
const source = inside.replace(/LIMIT_\w+/g, (name) => limits[name]);
const script = vm.runInContext(source, context, { filename: "codemode" })((text) => { write(text + "\n"); });

let rest = "", isStarted = false;
stdin.setEncoding("utf8");
process.on("unhandledRejection", () => {});
// A part may hold many lines, or a piece of one: pieces are joined once the line is there.
let pieces = [];
stdin.on("data", (part) => {
  const lines = part.split("\n");
  pieces.push(lines[0]);
  for (let at = 1; at < lines.length; at++) {
    const line = pieces.join("");
    pieces = [lines[at]];
    if (isStarted) script.answer(line);
    else { isStarted = true; script.start(line); }
    soon(script.settle);
  }
});

for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (!/^(globalThis|Object|Function|Array|Number|parseFloat|parseInt|Infinity|NaN|undefined|Boolean|String|Symbol|Date|Promise|RegExp|.*Error|JSON|Math|Intl|Reflect|Proxy|.*Array|.*Map|.*Set|WeakRef|BigInt|DataView|FinalizationRegistry|ArrayBuffer|Iterator|eval|isFinite|isNaN)$/.test(name))
    delete globalThis[name];
}
