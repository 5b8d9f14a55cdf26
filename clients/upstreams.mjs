// The servers behind the gateway: the demo's, the reference server, and one each of the Python, Go and
// Java SDK. Each has a tool to call, one that leaks a secret, and one that the policy grants to nobody.

import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { startDemoUpstream } from '../dist/dev/demo-upstream.js';
import { freePort, serve } from './process.mjs';

const RECORDS = {
  call: { name: 'read_record', arguments: { id: 'R-1' } },
  expect: 'record R-1',
  leak: { name: 'read_notes', arguments: {} },
  hidden: 'wipe_records',
};

/** A credential in the form of a code host's, made anew in every run. */
function makeSecret() {
  return `ghp_${randomBytes(18).toString('hex')}`;
}

/** The demo upstream: sessions and the stateless era on one endpoint. */
export async function startDesk() {
  const upstream = await startDemoUpstream({});
  return {
    name: 'desk',
    title: 'demo upstream',
    url: upstream.url,
    secret: upstream.secrets.token,
    call: { name: 'search_docs', arguments: { query: 'returns' } },
    expect: 'Goods may be returned within 30 days',
    leak: { name: 'get_customer', arguments: { id: 'C-1' } },
    hidden: 'delete_ticket',
    approved: { name: 'post_comment', arguments: { id: 'T-101' }, expect: 'Commented on T-101.' },
    close: () => upstream.close(),
  };
}

/** The reference server "everything", which speaks sessions. */
export async function startEverything() {
  const secret = makeSecret();
  const require = createRequire(import.meta.url);
  const entry = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const env = { PORT: String(port), LEAKED: secret };
  const server = await serve(process.execPath, [entry, 'streamableHttp'], { env, url });
  return {
    name: 'everything',
    title: 'server-everything',
    url,
    secret,
    call: { name: 'echo', arguments: { message: 'said once' } },
    expect: 'said once',
    leak: { name: 'get-env', arguments: {} },
    hidden: 'get-sum',
    close: () => server.close(),
  };
}

/** A server that offers the three tools of `RECORDS`, started by this command; `more` is environment. */
export async function startRecords(name, title, [command, ...args], more) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const secret = makeSecret();
  const env = { PORT: String(port), LEAKED: secret, ...more };
  const server = await serve(command, args, { env, url });
  return { ...RECORDS, name, title, url, secret, close: () => server.close() };
}
