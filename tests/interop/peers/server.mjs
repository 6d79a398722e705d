// The TypeScript SDK 2 as a server: node server.mjs MODULES stdio|http
// MODULES is the node_modules folder. Over HTTP it prints its port, and a line on stderr for each response.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, transport] = process.argv.slice(2);
const locate = createRequire(modules + "/");
const load = (name) => import(pathToFileURL(locate.resolve(name)).href);

const { McpServer, ResourceTemplate, acceptedContent, createMcpHandler, inputRequired } = await load("@modelcontextprotocol/server");
const z = await load("zod/v4");

let stopped = 0;
let today = "rain";
let notify;
const text = (value) => ({ content: [{ type: "text", text: value }] });

function build() {
  const server = new McpServer({ name: "peer", version: "1.0.0" }, { capabilities: { tools: {}, resources: { subscribe: true } } });
  server.registerTool(
    "add",
    {
      description: "Add two integers.",
      inputSchema: z.object({ a: z.int(), b: z.int() }),
      outputSchema: z.object({ result: z.int() }),
    },
    async ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
  );
  server.registerTool(
    "echo",
    { description: "Give the text back.", inputSchema: z.object({ text: z.string() }) },
    async (args) => text(args.text),
  );
  server.registerTool("fail", { description: "Always fails.", inputSchema: z.object({}) }, async () => {
    throw new Error("nothing works today");
  });
  const tell = (ctx, progress, total) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return undefined;
    return ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
  };
  server.registerTool(
    "steps",
    { description: "Report progress, then end.", inputSchema: z.object({ count: z.int() }) },
    async ({ count }, ctx) => {
      for (let step = 1; step <= count; step++) await tell(ctx, step, count);
      return text("done");
    },
  );
  server.registerTool(
    "wait",
    { description: "Say that it began, and never end.", inputSchema: z.object({}) },
    async (_, ctx) => {
      await tell(ctx, 0, 1);
      await new Promise((resolve) => ctx.mcpReq.signal.addEventListener("abort", resolve, { once: true }));
      stopped += 1;
      return text("never");
    },
  );
  const table = z.object({ day: z.string(), people: z.int() });
  server.registerTool(
    "book",
    { description: "Ask the person, the model and for the roots, all at once.", inputSchema: z.object({}) },
    async (_, ctx) => {
      const answers = ctx.mcpReq.inputResponses;
      const booking = acceptedContent(answers, "booking", table);
      if (booking !== undefined) {
        const { said, roots } = answers;
        return text(`${booking.day}, ${booking.people}, ${said.content.text}, ${roots.roots[0].uri}`);
      }
      const words = { type: "text", text: "Say something on 4 people." };
      return inputRequired({
        inputRequests: {
          booking: inputRequired.elicit({ message: "Which table?", requestedSchema: table }),
          said: inputRequired.createMessage({ messages: [{ role: "user", content: words }], maxTokens: 10 }),
          roots: inputRequired.listRoots(),
        },
      });
    },
  );
  server.registerTool(
    "waits_stopped",
    { description: "How many calls of wait were cancelled.", inputSchema: z.object({}) },
    async () => text(String(stopped)),
  );
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
  const contents = (uri, value) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: value }] });
  server.registerResource("note", "notes://today", {}, async (uri) => contents(uri, today));
  server.registerResource(
    "weather",
    new ResourceTemplate("notes://{day}/weather", { list: undefined }),
    {},
    async (uri, { day }) => contents(uri, `${day}: sun`),
  );
  server.registerPrompt(
    "greet",
    { description: "Greet somebody.", argsSchema: z.object({ who: z.string() }) },
    async ({ who }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Say hello to ${who}.` } }],
    }),
  );
  server.registerTool(
    "change",
    { description: "Write another note and add a tool, and tell of it.", inputSchema: z.object({}) },
    async () => {
      today = "snow";
      if (notify) {
        notify.toolsChanged();
        notify.resourceUpdated("notes://today");
      } else {
        server.registerTool("more", { inputSchema: z.object({}) }, async () => text("more"));
        await server.server.sendResourceUpdated({ uri: "notes://today" });
      }
      return text("changed");
    },
  );
  return server;
}

if (transport === "stdio") {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  void serveStdio(build);
} else {
  const { NodeStreamableHTTPServerTransport, toNodeHandler } = await load("@modelcontextprotocol/node");
  const handler = createMcpHandler(build, { legacy: "reject" });
  const stateless = toNodeHandler(handler);
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const begin = response.writeHead.bind(response);
    response.writeHead = (status, ...rest) => {
      console.error(request.method, status);
      return begin(status, ...rest);
    };
    const fresh = request.headers["mcp-protocol-version"] === "2026-07-28";
    notify = fresh ? handler.notify : undefined;
    if (fresh) return stateless(request, response);
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known) return known.handleRequest(request, response);
    const opened = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => sessions.set(id, opened),
    });
    await build().connect(opened);
    return opened.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log("port", http.address().port));
}
