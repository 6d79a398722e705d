// The client of the official TypeScript SDK. The runner copies this file next to node_modules.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [kind, place, seconds] = process.argv.slice(2);
let transport;
if (kind === 'stdio') {
  const [command, ...args] = JSON.parse(place);
  transport = new StdioClientTransport({ command, args });
} else {
  transport = new StreamableHTTPClientTransport(new URL(place));
}
const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(transport);
const call = async () => {
  const result = await client.callTool({ name: 'add', arguments: { a: 3, b: 4 } });
  if (result.structuredContent.result !== 7) throw new Error('wrong answer');
};
for (let index = 0; index < 20; index++) await call();
const times = [];
const end = performance.now() + Number(seconds) * 1000;
let start;
while ((start = performance.now()) < end) {
  await call();
  times.push(performance.now() - start);
}
times.sort((one, other) => one - other);
console.log('JSON ' + JSON.stringify({ p50_us: times[times.length >> 1] * 1000, calls: times.length }));
await client.close();
process.exit(0);
