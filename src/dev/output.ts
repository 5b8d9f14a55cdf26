// What `dev` prints: how clients by name are pointed at the gateway, and a line for each decision while it runs. Texts
// that others wrote are made visible before they are printed.

import { isObject } from '../protocol/jsonrpc.js';
import { cleanForeign } from '../text/escaping.js';

/** What a client is given besides the token. */
type ClientAccess = {
  readonly name: string;
  readonly url: string;
};

/**
 * The configuration of each client, under its name. None repeats the token: it is read from the variable TOKEN or asked
 * for where the client can do that, and pasted where it cannot.
 */
export function clientConfigurations({ name, url }: ClientAccess): string {
  // The space stands in the variable: some versions of Claude Desktop split arguments at spaces.
  const remote = {
    command: 'npx',
    args: ['-y', 'mcp-remote', url, '--header', `Authorization:\${AUTHORIZATION}`],
    env: { AUTHORIZATION: 'Bearer PASTE_TOKEN' },
  };
  const [asked, read] = [`\${input:token}`, `\${env:TOKEN}`].map((token) => ({
    Authorization: `Bearer ${token}`,
  }));
  const input = { type: 'promptString', id: 'token', description: 'token', password: true };
  const clients = [
    [
      'Claude Code',
      `claude mcp add --transport http ${name} ${url} --header "Authorization: Bearer $TOKEN"`,
    ],
    [
      'Claude Desktop, in claude_desktop_config.json (through mcp-remote; put the token in place of PASTE_TOKEN)',
      JSON.stringify({ mcpServers: { [name]: remote } }),
    ],
    [
      'VS Code, in .vscode/mcp.json (asks for the token)',
      JSON.stringify({
        inputs: [input],
        servers: { [name]: { type: 'http', url, headers: asked } },
      }),
    ],
    [
      'Cursor, in ~/.cursor/mcp.json (reads TOKEN from its environment)',
      JSON.stringify({ mcpServers: { [name]: { url, headers: read } } }),
    ],
    [
      // By tag: on an older Node npx takes an old version, which knows no headers.
      'MCP Inspector, with Node 22.19 or later',
      `npx @modelcontextprotocol/inspector@latest --cli ${url} --transport http --header "Authorization: Bearer $TOKEN" --method tools/list`,
    ],
  ];
  return clients.map(([client, text]) => `${client}\n  ${text}\n`).join('\n');
}

/** An event of the audit log, with all its members. */
type AuditedEvent = Readonly<Record<string, unknown>>;

const VERBS: { readonly [action: string]: string } = {
  forwarded: 'allowed',
  refused: 'refused',
  withheld: 'withheld',
};
const VERB_WIDTH = 8;
const TARGET_WIDTH = 36;

/** The value at a path of member names, or `undefined`. */
export function valueAt(root: unknown, ...path: readonly string[]): unknown {
  let value = root;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return value;
}

function textAt(event: AuditedEvent, ...path: readonly string[]): string {
  const value = valueAt(event, ...path);
  return typeof value === 'string' ? cleanForeign(value) : '';
}

/** One line for a decision or a change of a definition; `undefined` for events that are neither. */
export function decisionLine(
  event: AuditedEvent,
  textOfReason: (reason: string) => string,
): string | undefined {
  const time = textAt(event, 'time').slice(11, 19);
  const name = textAt(event, 'target', 'name');
  if (event['type'] === 'pin.drift') {
    const what = `${textAt(event, 'target', 'kind')} ${name}: ${textAt(event, 'detail', 'change')}`;
    return `${time}  ${'changed'.padEnd(VERB_WIDTH)}  ${what}`;
  }
  if (event['type'] !== 'mcp.outcome' && event['type'] !== 'auth.failure') return undefined;
  const verb = VERBS[textAt(event, 'decision', 'action')] ?? 'refused';
  const method = textAt(event, 'target', 'method') || 'request';
  const target = `${method} ${name}`.trim().padEnd(TARGET_WIDTH);
  return `${time}  ${verb.padEnd(VERB_WIDTH)}  ${target}  ${why(event, textOfReason)}`.trimEnd();
}

/** The reasons of a refusal, else the rule that allowed it and how much of a list was shown. */
function why(event: AuditedEvent, textOfReason: (reason: string) => string): string {
  const reasons = valueAt(event, 'decision', 'reasons');
  const [reason] = Array.isArray(reasons) ? reasons : [];
  if (typeof reason === 'string') {
    const code = cleanForeign(reason);
    return `${code}: ${textOfReason(reason)}`;
  }
  const [advertised, visible] = ['advertised', 'visible'].map((one) =>
    valueAt(event, 'result', 'list', one),
  );
  if (typeof advertised === 'number') return `shows ${String(visible)} of ${advertised}`;
  const rule = textAt(event, 'decision', 'rule');
  return rule === '' ? '' : `by rule ${rule}`;
}
