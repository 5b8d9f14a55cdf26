// One client of the TypeScript SDK, v1 or v2: lists, calls, asks for what is hidden, and prints what came
// back. Reads its order from the environment as JSON, prints one line of JSON, judges nothing.

import { readFileSync } from 'node:fs';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { carryOut } from './sdk.mjs';

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

const { client, protocol } = await connect();
const found = { sdk: sdkVersion(), protocol, ...(await carryOut(client, order)) };
console.log(JSON.stringify(found));
await client.close();
