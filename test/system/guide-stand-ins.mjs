// Stands in for programs that the guides start and that the tests cannot have: packages that npx and uvx would fetch,
// Claude Code, kubectl and a cluster. Called under the name of the program. Whatever a guide asks of it that it does not
// know is an error, so that a changed command is noticed.

import { spawn } from 'node:child_process';
import { sign } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);
/** The public URL of the guides, and where the gateway of the test is. */
const [PUBLIC, LOCAL] = ['https://mcp.example.com', 'http://127.0.0.1:8080'];
const GATEWAY_MAY_START_FOR_MS = 20_000;

function fail(message) {
  console.error(`stand-in: ${message}`);
  process.exit(64);
}

/** Runs a program in place of this one. */
function exec(program, args) {
  const child = spawn(program, args, { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 143));
}

/** Takes `--name value` out of the arguments. */
function option(args, name) {
  const at = args.indexOf(name);
  return at === -1 ? undefined : args.splice(at, 2)[1];
}

function readHeader(text) {
  const [, name, value] = /^([\w-]+): (.+)$/.exec(text ?? '') ?? [];
  return name === undefined ? fail(`not a header: ${text}`) : { [name]: value };
}

/** MCP Inspector in the terminal: one request, its result as JSON. */
async function inspect(args) {
  const method = option(args, '--method');
  const [name, argument] = [option(args, '--tool-name'), option(args, '--tool-arg')];
  const headers = readHeader(option(args, '--header'));
  if (option(args, '--transport') !== 'http') fail('the inspector wants --transport http');
  const [cli, url, ...more] = args;
  if (cli !== '--cli' || more.length > 0) fail(`the inspector does not take ${args.join(' ')}`);
  const client = new Client({ name: 'inspector', version: '2' });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  try {
    await client.connect(transport);
    const result =
      method === 'tools/list'
        ? await client.listTools()
        : await client.callTool({
            name,
            arguments: Object.fromEntries([argument.split('=')]),
          });
    console.log(JSON.stringify(result, null, 2));
    process.exitCode = result.isError === true ? 1 : 0;
  } catch (error) {
    console.log(error.message);
    process.exitCode = 1;
  } finally {
    await client.close();
  }
}

/** A signature of AWS KMS with an ECC_NIST_P256 key; the key is in a file of the test. */
function aws(args) {
  const words = args.splice(0, 2).join(' ');
  const message = option(args, '--message') ?? '';
  const asked = [
    ...[words, option(args, '--key-id'), option(args, '--message-type')],
    ...[option(args, '--signing-algorithm'), option(args, '--query'), option(args, '--output')],
  ];
  const known = 'kms sign,alias/pins,RAW,ECDSA_SHA_256,Signature,text';
  if (asked.join() !== known || args.length > 0) fail(`aws does not take ${asked} ${args}`);
  if (!message.startsWith('fileb://')) fail(`aws would sign the text ${message}`);
  const bytes = readFileSync(message.slice('fileb://'.length));
  const key = readFileSync(process.env.KMS_KEY ?? '', 'utf8');
  console.log(sign('sha256', bytes, key).toString('base64'));
}

function npx(args) {
  if (args.includes('mcp-inspector')) return inspect(args.slice(args.indexOf('mcp-inspector') + 1));
  const [yes, spec = '', ...more] = args;
  // `add` writes the exact version.
  const name = spec.replace(/(?<=.)@\d[\w.-]*$/, '');
  if (yes !== '-y') fail(`npx would ask before it installs ${args.join(' ')}`);
  if (name === '@modelcontextprotocol/server-everything') return exec('node', [EVERYTHING, ...more]);
  // Another server speaks over stdio in its place.
  if (name === '@modelcontextprotocol/server-filesystem' && existsSync(more[0] ?? ''))
    return exec('node', [EVERYTHING, 'stdio']);
  return fail(`npx does not know ${name} ${more.join(' ')}`);
}

function uvx([name]) {
  return name === 'mcp-server-git' ? exec('node', [EVERYTHING, 'stdio']) : fail(`uvx ${name}`);
}

/** What the registry's client says of a package, whichever it is; for everything else the real npm. */
function npm(args) {
  if (args[0] === 'view') {
    console.log(JSON.stringify({ version: '1.0.0', 'dist.integrity': `sha512-${'A'.repeat(86)}==` }));
    return;
  }
  process.env.PATH = process.env.PATH.split(':').slice(1).join(':');
  exec('npm', args);
}

/** Posts to an endpoint of the guides; says the status. */
async function ask(url, headers = {}) {
  const local = url.replace(PUBLIC, LOCAL);
  const until = Date.now() + GATEWAY_MAY_START_FOR_MS;
  for (;;) {
    const type = { 'content-type': 'application/json' };
    const asked = fetch(local, { method: 'POST', headers: { ...type, ...headers }, body: '{}' });
    const answer = await asked.catch(() => undefined);
    if (answer !== undefined) return answer.status;
    if (Date.now() > until) return fail(`${local} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** `claude mcp add`: the arguments that it has, and an endpoint that wants a token, or takes the one given. */
async function claude([mcp, add, ...args]) {
  const given = option(args, '--header');
  const [client, port] = [option(args, '--client-id'), option(args, '--callback-port')];
  if ((client === undefined) !== (port === undefined)) fail('--client-id needs --callback-port');
  const isKnown = mcp === 'mcp' && add === 'add' && option(args, '--transport') === 'http';
  if (!isKnown || args.length !== 2) fail(`claude does not take ${args.join(' ')}`);
  const status = await ask(args[1], given === undefined ? {} : readHeader(given));
  if ((status === 401) !== (given === undefined)) fail(`${args[1]} answered ${status}`);
}

function kubectl([create, secret, generic, , file]) {
  const isKnown = [create, secret, generic].join(' ') === 'create secret generic';
  const path = /^--from-file=key=(.+)$/.exec(file ?? '')?.[1];
  if (!isKnown || !existsSync(path ?? '')) fail('kubectl does not take this');
}

/** `helm install`, up to the cluster. */
function helm([install, name, chart, ...args]) {
  const { HELM = '', CHART = '' } = process.env;
  if (install !== 'install' || chart !== 'helm/') fail(`helm does not take ${install} ${chart}`);
  exec(HELM, ['template', name, CHART, '--kube-version', '1.31.0', ...args]);
}

/** Every URL of the gateway in the examples for clients wants a token. */
async function answers(urls) {
  for (const url of urls) {
    const status = await ask(url);
    if (status !== 401) fail(`${url} answered ${status}`);
  }
}

const STAND_INS = { aws, npm, npx, uvx, claude, kubectl, helm, answers };
const [, , called = '', ...args] = process.argv;
const standIn = STAND_INS[basename(called)];
await (standIn === undefined ? fail(`nothing stands in for ${called}`) : standIn(args));
