// The TypeScript clients: node client.mjs MODULES 1|legacy|auto URL|COMMAND... ; prints one JSON line.
// MODULES is the node_modules folder; 1 is the SDK 1, the others are ways of the SDK 2 to open a connection.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, mode, ...target] = process.argv.slice(2);
const locate = createRequire(modules + "/");
const load = (name) => import(pathToFileURL(locate.resolve(name)).href);

const http = target[0].startsWith("http");
const old = mode === "1";
const sdk = await load(old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");

async function transport() {
  if (http) {
    const { StreamableHTTPClientTransport } = old
      ? await load("@modelcontextprotocol/sdk/client/streamableHttp.js")
      : sdk;
    return new StreamableHTTPClientTransport(new URL(target[0]));
  }
  const { StdioClientTransport } = await load(
    old ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
  );
  return new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "inherit" });
}

let changes = 0;
const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => { changes += 1; } } };
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const options = { capabilities, listChanged, ...(old ? {} : { versionNegotiation: { mode } }) };
const client = new sdk.Client({ name: "peer", version: "1.0.0" }, options);
const schemas = old ? await load("@modelcontextprotocol/sdk/types.js") : {};
const answer = (method, schema, handler) => client.setRequestHandler(old ? schemas[schema] : method, handler);
answer("elicitation/create", "ElicitRequestSchema", ({ params }) => {
  if (params.requestedSchema.properties.day.enum[0] !== "friday") throw new Error("another form");
  return { action: "accept", content: { day: "saturday", people: 4 } };
});
answer("sampling/createMessage", "CreateMessageRequestSchema", ({ params }) => {
  if (params.messages[0].content.text !== "Say something on 4 people.") throw new Error("another question");
  return { role: "assistant", model: "none", content: { type: "text", text: "a model's word" } };
});
answer("roots/list", "ListRootsRequestSchema", () => ({ roots: [{ uri: "file:///srv/project" }] }));

const opened = await transport();
let revision;
const told = opened.setProtocolVersion?.bind(opened);
if (old) opened.setProtocolVersion = (version) => { revision = version; told?.(version); };
await client.connect(opened);

const call = (name, args = {}, options = undefined) => {
  const params = { name, arguments: args };
  return old ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
const code = async (work) => {
  try {
    return (await work).isError ? "isError" : "no error";
  } catch (error) {
    return String(error.code);
  }
};

const { tools } = await client.listTools();
const added = await call("add", { a: 2, b: 3 });
const order = await call("order", { order_id: "A-1042" });
const picture = await call("picture");
const failed = await call("fail");

// A call that ends when its last step was heard of.
const progress = [];
const done = await call("steps", { count: 3 }, {
  onprogress: (now) => {
    progress.push([now.progress, now.total, now.message]);
    if (now.progress === now.total) void call("heard");
  },
});

const taken = new AbortController();
await call("wait", {}, { signal: taken.signal, onprogress: () => taken.abort("enough") }).catch(() => {});
let stopped = "0";
for (let turn = 0; turn < 250 && stopped === "0"; turn++) {
  stopped = (await call("waits_stopped")).content[0].text;
  if (stopped === "0") await new Promise((resolve) => setTimeout(resolve, 20));
}

// Ten calls at once with much odd text: how many came back as they went.
const odd = readFileSync(process.env.ODD, "utf8");
const echoes = await Promise.all([...Array(10).keys()].map((turn) => call("echo", { text: turn + odd })));

// Have the list of tools change until it is told.
for (let turn = 0; turn < 250 && changes === 0; turn++) {
  await call("change");
  if (changes === 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

const found = {
  revision: revision ?? client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion().name,
  instructions: client.getInstructions(),
  tools: tools.map((tool) => tool.name).sort(),
  text: added.content[0].text,
  structured: [added.structuredContent, order.structuredContent],
  booked: (await call("book")).content[0].text,
  changed: changes > 0,
  echoed: echoes.filter((echo, turn) => echo.content[0].text === turn + odd).length,
  content: picture.content.map((block) => block.type),
  failed: [failed.isError, failed.content[0].text],
  refused: await code(call("order", { order_id: "1042" })),
  unknown: await code(call("no_such_tool")),
  progress,
  done: done.content[0].text,
  stopped,
};
if (http && opened.terminateSession) await opened.terminateSession();
await client.close();
console.log(JSON.stringify(found));
