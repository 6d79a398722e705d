// The official TypeScript SDK. The runner copies this file next to node_modules: imports are resolved from there.
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const option = (name, fallback) => {
  const index = process.argv.indexOf(name);
  return index < 0 ? fallback : Number(process.argv[index + 1]);
};
const port = option('--http', 0);
const count = option('--tools', 2);
const input = {
  add: z.object({ a: z.int(), b: z.int() }),
  echo: z.object({ text: z.string() }),
  more: z.object({ a: z.int(), b: z.string().default('x') }),
};
const output = { number: z.object({ result: z.int() }), text: z.object({ result: z.string() }) };
const said = value => ({
  content: [{ type: 'text', text: String(value) }],
  structuredContent: { result: value },
});

const build = () => {
  const server = new McpServer(
    { name: 'bench', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  server.registerTool(
    'add',
    { description: 'Add two integers.', inputSchema: input.add, outputSchema: output.number },
    async ({ a, b }) => said(a + b),
  );
  server.registerTool(
    'echo',
    { description: 'Return the text.', inputSchema: input.echo, outputSchema: output.text },
    async ({ text }) => said(text),
  );
  for (let index = 0; index < count - 2; index++) {
    const description = `Generated tool number ${index}: does something with a and b.`;
    server.registerTool(
      `tool_${index}`,
      { description, inputSchema: input.more, outputSchema: output.text },
      async ({ b }) => said(b),
    );
  }
  return server;
};

if (port) {
  const { createServer } = await import('node:http');
  const { toNodeHandler, localhostHostValidation, localhostOriginValidation } = await import(
    '@modelcontextprotocol/node'
  );
  const [host, origin] = [localhostHostValidation(), localhostOriginValidation()];
  const limits = { maxSubscriptions: 100000, maxRequestBodySize: 64 << 20, legacy: 'reject' };
  const handle = toNodeHandler(createMcpHandler(build, limits), { maxRequestBodySize: 64 << 20 });
  createServer((request, response) => {
    if (host(request, response) && origin(request, response)) void handle(request, response);
  }).listen(port, '127.0.0.1');
} else {
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  void serveStdio(build);
}
