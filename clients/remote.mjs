// Claude Desktop as far as the gateway can tell: the bridge mcp-remote, started as the configuration that `sallyport dev`
// prints says, with a client of the TypeScript SDK in place of the desktop. Judges nothing.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { desktopServer, PASTED } from '../dist/cli/dev.js';
import { run } from './process.mjs';
import { carryOut } from './sdk.mjs';

const FOLDER = fileURLToPath(new URL('./remote', import.meta.url));
const PACKAGE = `${FOLDER}/node_modules/mcp-remote`;

/** Installs what is locked. */
export async function prepareRemote() {
  await run('npm', ['ci', '--ignore-scripts'], { cwd: FOLDER });
}

/** The printed command with the locked package in place of what npx would fetch. */
async function commandOf({ url, token }) {
  const { command, args, env } = desktopServer(url);
  const [yes, name, ...options] = args;
  if (command !== 'npx' || yes !== '-y' || name !== 'mcp-remote')
    throw new Error(`dev prints another command: ${command} ${args.join(' ')}`);
  const { version, bin } = JSON.parse(await readFile(`${PACKAGE}/package.json`, 'utf8'));
  const pasted = Object.entries(env).map(([key, value]) => [key, value.replace(PASTED, token)]);
  return {
    version,
    args: [join(PACKAGE, bin['mcp-remote']), ...options],
    env: Object.fromEntries(pasted),
  };
}

/** Lists, calls, and asks for what is hidden. Rejects where a question that must be answered was not. */
export async function askRemote(order) {
  const { version, args, env } = await commandOf(order);
  // It keeps logins in the home folder.
  const home = await mkdtemp(join(tmpdir(), 'sallyport-remote-'));
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env: { ...env, HOME: home, PATH: '' },
    stderr: 'ignore',
  });
  const capabilities = order.mode === 'links' ? { elicitation: { url: {} } } : {};
  const client = new Client({ name: 'claude-ai', version: '0.1.0' }, { capabilities });
  try {
    await client.connect(transport);
    return { sdk: version, protocol: 'not told', ...(await carryOut(client, order)) };
  } finally {
    await client.close();
    await rm(home, { recursive: true, force: true });
  }
}
