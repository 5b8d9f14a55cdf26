// `npm run clients`: clients that people use, in four languages, through the gateway to servers in as
// many, and the parsers of those languages against ours. Prints a table; ends with 1 when one outcome is not as
// it must be. What the machine lacks is named as not run.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { linkIn } from './approve.mjs';
import { checkApproval, checkClient } from './check.mjs';
import { startGateway } from './gateway.mjs';
import { askInspector, loginWithInspector, prepareInspector } from './inspector.mjs';
import { prepareGo, prepareJava, preparePython } from './languages.mjs';
import { compareParsers } from './parsers.mjs';
import { run } from './process.mjs';
import { askRemote, prepareRemote } from './remote.mjs';
import { startDesk, startEverything, startRecords } from './upstreams.mjs';

const UNKNOWN_TOOL = 'no_such_tool';
const TYPESCRIPT = [process.execPath, fileURLToPath(new URL('./typescript.mjs', import.meta.url))];

/** Each client by the era that it asks for; `auto` asks for the newest and falls back. */
function clientsOf({ python, go, java, noInspector }) {
  const asked =
    ({ client: program, sdk }) =>
    async (order) => {
      const [command, ...args] = program;
      const env = { CLIENT_ORDER: JSON.stringify(order) };
      const found = JSON.parse(await run(command, args, { env }));
      return { ...found, sdk: found.sdk ?? sdk };
    };
  const of = (language, title, mode) => ({
    title,
    mode,
    ask: language && asked(language),
    missing: language ? undefined : 'its language is not installed',
  });
  const typescript = { client: TYPESCRIPT };
  return [
    { title: 'MCP Inspector', mode: '', ask: askInspector, missing: noInspector },
    { title: 'mcp-remote, as dev prints it', mode: '', ask: askRemote },
    { title: 'mcp-remote, with links', mode: 'links', ask: askRemote },
    of(typescript, 'TypeScript SDK v1', 'v1'),
    of(typescript, 'TypeScript SDK v2, sessions', 'v2 legacy'),
    of(typescript, 'TypeScript SDK v2, automatic', 'v2 auto'),
    of(python, 'Python SDK, sessions', 'legacy'),
    of(python, 'Python SDK, automatic', 'auto'),
    of(python && { client: python.fastmcp }, 'FastMCP', ''),
    of(go, 'Go SDK, sessions', '2025-11-25'),
    of(go, 'Go SDK, automatic', 'auto'),
    of(java, 'Java SDK', ''),
  ];
}

async function startUpstreams({ python, go, java }, upstreams) {
  upstreams.push(await startDesk());
  upstreams.push(await startEverything());
  for (const [name, title, language, more] of [
    ['python', 'Python SDK server', python, {}],
    ['go', 'Go SDK, sessions', go, {}],
    ['go-stateless', 'Go SDK, stateless', go, { STATELESS: '1' }],
    ['java', 'Java SDK server', java, {}],
  ])
    if (language) upstreams.push(await startRecords(name, title, language.server, more));
}

/** The call of one client that its user has to approve: other clients call with the same token. */
function approvedBy({ title }, { approved }) {
  return approved && { name: approved.name, arguments: { ...approved.arguments, text: title } };
}

/** The user says yes, and the client makes the same call again. */
async function tryApproval(client, upstream, order, asked, gateway) {
  const link = linkIn(asked[0]);
  if (link !== undefined) await gateway.approve(link);
  const again = await client.ask(order);
  return checkApproval(upstream.approved, asked, again.asked);
}

async function tryClient(client, upstream, gateway) {
  const { call, leak, hidden } = upstream;
  const access = await gateway.access(upstream.name);
  const approved = approvedBy(client, upstream);
  const order = { ...access, mode: client.mode, call, leak, hidden, approved, unknown: UNKNOWN_TOOL };
  try {
    const found = await client.ask(order);
    const errors = checkClient(order, upstream, found);
    if (found.asked) errors.push(...(await tryApproval(client, upstream, order, found.asked, gateway)));
    return { ...found, errors };
  } catch (error) {
    return { sdk: '-', protocol: '-', errors: [error.message] };
  }
}

/** From a 401 to a list, with nothing but an endpoint; resolves with the failures. */
async function tryLogin(gateway, { name, title, call }, { noInspector, folder }) {
  if (noInspector !== undefined) return 0;
  let verdict = 'as it must be';
  try {
    const { url } = await gateway.access(name);
    const listed = await loginWithInspector(url, folder);
    if (!listed.includes(call.name)) verdict = `FAILED: lists ${listed.join()}`;
  } catch (error) {
    verdict = `FAILED: ${error.message}`;
  }
  printRow(['MCP Inspector, its own login', '-', title, '-', verdict]);
  return verdict.startsWith('FAILED') ? 1 : 0;
}

async function tryAll(clients, upstreams, inspector) {
  let failures = 0;
  const gateway = await startGateway(upstreams);
  try {
    failures += await tryLogin(gateway, upstreams[0], inspector);
    for (const client of clients) {
      if (client.missing !== undefined) {
        printRow([client.title, '-', '-', '-', `not run: ${client.missing}`]);
        continue;
      }
      for (const upstream of upstreams) {
        const row = await tryClient(client, upstream, gateway);
        failures += row.errors.length === 0 ? 0 : 1;
        const verdict = row.errors.length === 0 ? 'as it must be' : `FAILED: ${row.errors.join('; ')}`;
        printRow([client.title, row.sdk, upstream.title, row.protocol, verdict]);
      }
    }
  } finally {
    await gateway.close();
  }
  return failures;
}

const WIDTHS = [30, 9, 20, 12];

function printRow(cells) {
  console.log(cells.map((cell, index) => String(cell).padEnd(WIDTHS[index] ?? 0)).join(' '));
}

async function main() {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-clients-'));
  const upstreams = [];
  try {
    const [python, go, java, noInspector] = await Promise.all([
      preparePython(folder),
      prepareGo(folder),
      prepareJava(folder),
      prepareInspector(),
      prepareRemote(),
    ]);
    const versions = [python, go, java].flatMap((one) => one?.version ?? []);
    console.log(`${[`Node ${process.version}`, ...versions].join(', ')}\n`);
    await startUpstreams({ python, go, java }, upstreams);
    printRow(['client', 'version', 'upstream', 'protocol', 'list, call, hidden, redacted, approved']);
    const failures =
      (await tryAll(clientsOf({ python, go, java, noInspector }), upstreams, {
        noInspector,
        folder,
      })) + (await compareParsers({ python, go, java }));
    console.log(failures === 0 ? '\nall of it holds' : `\n${failures} failed`);
    process.exitCode = failures === 0 ? 0 : 1;
  } finally {
    for (const upstream of upstreams) await upstream.close();
    await rm(folder, { recursive: true, force: true });
  }
}

await main();
