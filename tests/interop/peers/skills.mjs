// Skills of the TypeScript SDK 2: node skills.mjs MODULES serve FOLDER stdio|http, or
// node skills.mjs MODULES use legacy|auto URL|COMMAND... ; prints its port, or what it found as one JSON line.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, what, ...words] = process.argv.slice(2);
const locate = createRequire(modules + "/");
const load = (name) => import(pathToFileURL(locate.resolve(name)).href);

async function serve(folder, transport) {
  const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server");
  const { loadSkills } = await load("@modelcontextprotocol/server/ext/skills/node");
  const skills = await loadSkills(folder);
  const build = () => {
    const server = new McpServer({ name: "peer", version: "1.0.0" });
    skills.attach(server);
    return server;
  };
  if (transport === "stdio") {
    const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
    void serveStdio(build);
    return;
  }
  const { NodeStreamableHTTPServerTransport, toNodeHandler } = await load("@modelcontextprotocol/node");
  const stateless = toNodeHandler(createMcpHandler(build, { legacy: "reject" }));
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    if (request.headers["mcp-protocol-version"] === "2026-07-28") return stateless(request, response);
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

async function use(mode, ...target) {
  const sdk = await load("@modelcontextprotocol/client");
  const { SkillsClient } = await load("@modelcontextprotocol/client/ext/skills");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const client = new sdk.Client({ name: "peer", version: "1.0.0" }, { versionNegotiation: { mode } });
  const transport = target[0].startsWith("http")
    ? new sdk.StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "inherit" });
  await client.connect(transport);
  const skills = new SkillsClient(client);
  const listed = (await skills.list()).skills;
  const [entry] = listed;
  const { skill } = await skills.get(entry.uri);
  const root = entry.uri.replace(/SKILL\.md$/, "");
  const files = {};
  for (const file of skill.resources) {
    const read = await skills.read(skill, file.uri);
    if (!read.verified) throw new Error(`${file.uri} was not checked`);
    files[decodeURIComponent(file.uri.slice(root.length))] = read.bytes.length;
  }
  const found = {
    revision: client.getNegotiatedProtocolVersion(),
    listed: listed.map((one) => one.uri),
    frontmatter: (await skills.read(skill)).frontmatter,
    files,
    directory: (await skills.readDirectory(root.slice(0, -1))).resources.map((one) => one.uri).sort(),
  };
  await client.close();
  console.log(JSON.stringify(found));
}

await (what === "serve" ? serve : use)(...words);
