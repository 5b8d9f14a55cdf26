// One client of the TypeScript SDK, v1 or v2: lists, calls, asks for what is hidden, and prints what came
// back. Reads its order from the environment as JSON, prints one line of JSON, judges nothing.

import { readFileSync } from 'node:fs';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const IDENTITY = { name: 'typescript-client', version: '1.0.0' };
const PACKAGES = { v1: '@modelcontextprotocol/sdk', v2: '@modelcontextprotocol/client' };

const order = JSON.parse(process.env.CLIENT_ORDER);
const [sdk, mode] = order.mode.split(' ');

function sdkVersion() {
  const file = new URL(`../node_modules/${PACKAGES[sdk]}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

async function connect() {
  const init = { requestInit: { headers: { authorization: `Bearer ${order.token}` } } };
  if (sdk === 'v1') {
    const transport = new TransportV1(new URL(order.url), init);
    const client = new ClientV1(IDENTITY);
    await client.connect(transport);
    return { client, protocol: transport.protocolVersion };
  }
  const transport = new TransportV2(new URL(order.url), init);
  const negotiated = mode === 'auto' || mode === 'legacy' ? mode : { pin: mode };
  const client = new ClientV2(IDENTITY, { versionNegotiation: { mode: negotiated } });
  await client.connect(transport);
  return { client, protocol: client.getNegotiatedProtocolVersion() };
}

const textOf = (result) => result.content.map((block) => block.text ?? '').join('');

async function refusalOf(client, name) {
  try {
    return `result ${textOf(await client.callTool({ name, arguments: {} }))}`;
  } catch (error) {
    return `${error.code} ${error.message}`;
  }
}

async function listAll(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

const { client, protocol } = await connect();
const found = {
  sdk: sdkVersion(),
  protocol,
  listed: await listAll(client),
  called: textOf(await client.callTool(order.call)),
  leaked: textOf(await client.callTool(order.leak)),
  hidden: await refusalOf(client, order.hidden),
  unknown: await refusalOf(client, order.unknown),
};
console.log(JSON.stringify(found));
await client.close();
