// Gateways for the laws of policies and for what must hold in every way: the same items behind each, reached in every way
// that a client can reach them.

import { join } from 'node:path';
import type { Diagnostic } from '../../src/config/diagnostics.js';
import type { ListKind } from '../../src/dev/demo-protocol.js';
import { onlyServer, startStdioServer } from '../../src/stdio/stdio-server.js';
import { ENDPOINT, startMergedRig, startTwoGateways } from './deployments.js';
import { type ClientEra, connectIn, ERA_PAIRS, type EraCaller } from './eras.js';
import { type Era, type RunningGateway, startRig, startTestGateway, UPSTREAM } from './gateway.js';
import { inTurn, onlyIn } from './hostile-acts.js';
import { type HostileUpstream, type Order, startHostileUpstream } from './hostile-upstream.js';
import type { JsonObject } from './json.js';
import { createTaskServer, EXTENSION, SESSION_TASKS } from './mcp-servers.js';
import { makeSecret } from './secrets.js';
import { signalGroup } from './stdio-server.js';
import { type Access, openSession, requestInSession, requestStateless, resultOf } from './wire-client.js';

/** What stands behind the client: an upstream, one of several behind an endpoint, or two replicas before one. */
export type Behind = Era | 'endpoint' | 'replicas' | 'stdio';

export const WAYS: readonly (readonly [ClientEra, Behind])[] = [
  ...ERA_PAIRS,
  ['sessions', 'endpoint'],
  ['stateless', 'endpoint'],
  ['sessions', 'replicas'],
  ['stateless', 'replicas'],
  ['sessions', 'stdio'],
  ['stateless', 'stdio'],
];

/**
 * Every way that what holds for one request must hold in: by eras, in arrays, over HTTP+SSE, through an endpoint and to
 * stdio. An endpoint of several upstreams has no HTTP+SSE: it names what such a client is to use instead.
 */
export const EVERY_WAY: readonly (readonly [ClientEra, Behind])[] = [
  ['stateless', 'stateless'],
  ['stateless', 'sessions'],
  ['stateless', 'endpoint'],
  ['sessions', 'sessions'],
  ['sessions', 'stateless'],
  ['sessions', 'channels'],
  ['sessions', 'endpoint'],
  ['sessions', 'stdio'],
  ['array', 'sessions'],
  ['channels', 'channels'],
  ['channels', 'sessions'],
];

export type ItemKind = 'tool' | 'prompt' | 'resource' | 'template';

/** What an upstream offers, and the name under which clients know it. */
export type Item = {
  readonly kind: ItemKind;
  readonly upstream: string;
  readonly name: string;
  readonly wire: string;
};

const SCHEMA: JsonObject = {
  type: 'object',
  properties: { owner: { type: 'string' }, title: { type: 'string' } },
};
export const INSTRUCTIONS = 'Ask for the owner first.';
export const HINTS: { readonly [tool: string]: JsonObject } = {
  t_a: { readOnlyHint: true },
  t_b: { destructiveHint: true },
};

function toolsNamed(...names: readonly string[]): readonly JsonObject[] {
  return names.map((name) => ({
    name,
    description: `Does what ${name} is for.`,
    inputSchema: SCHEMA,
    annotations: HINTS[name] ?? {},
    execution: { taskSupport: 'optional' },
  }));
}

const TOOLS = toolsNamed('t_a', 't_b', 'u_c');
const OTHER_TOOLS = toolsNamed('w_x');
const PROMPTS = ['p', 'q1', 'z'];
const URIS = ['repo://acme/x', 'repo://acme/x/y'];
const TEMPLATE = 'repo://{x}';
const PROMPT_ARGUMENTS = [{ name: 'owner' }, { name: 'title' }];
const PROMPTED: JsonObject = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Go on.' } }],
};

const LISTS: { readonly [kind in ListKind]: readonly JsonObject[] } = {
  tools: TOOLS,
  prompts: PROMPTS.map((name) => ({ name, arguments: PROMPT_ARGUMENTS })),
  resources: URIS.map((uri) => ({ uri, name: uri })),
  resourceTemplates: [{ uriTemplate: TEMPLATE, name: 'any' }],
};

const HAVE_TASKS: readonly Behind[] = ['sessions', 'stateless', 'endpoint'];
const TASK_CAPABILITIES = { tasks: SESSION_TASKS, extensions: { [EXTENSION]: {} } };

/** Offers every kind of item, and runs calls as tasks where their clients wish. */
function offerAll(server: HostileUpstream, behind: Behind): void {
  if (behind === 'sessions' || behind === 'stateless') server.obey(inTurn(onlyIn(behind), createTaskServer().order));
  if (behind === 'endpoint') server.obey(createTaskServer().order);
  server.offer(() => TOOLS);
  server.answerCalls((name) => ({ content: [{ type: 'text', text: `${name} was done` }] }));
  server.present({
    instructions: INSTRUCTIONS,
    ...(HAVE_TASKS.includes(behind) ? { capabilities: TASK_CAPABILITIES } : {}),
    list: (kind) => LISTS[kind],
    getPrompt: () => PROMPTED,
    readResource: (uri) => [{ uri, text: 'Read.' }],
  });
}

function itemsOf(upstream: string, prefix = ''): readonly Item[] {
  const named = (kind: ItemKind, names: readonly string[], own: string) =>
    names.map((name) => ({ kind, upstream, name, wire: `${own}${name}` }));
  return [
    ...named(
      'tool',
      TOOLS.map(({ name }) => String(name)),
      prefix,
    ),
    ...named('prompt', PROMPTS, prefix),
    ...named('resource', URIS, ''),
    ...named('template', [TEMPLATE], ''),
  ];
}

/** The claims of a caller's token, as far as policies read them. */
export type Claims = {
  readonly sub: string;
  readonly client_id: string;
  readonly groups: readonly string[];
  readonly scope: string;
  readonly tier?: string;
};

/** A request as it left a gateway; its headers too where the server is reached over HTTP. */
export type Left = { readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** What is different in a world from that of the laws. */
export type Setting = {
  /** Further members of each upstream, and of the gateway file. */
  readonly upstream?: readonly string[];
  readonly more?: string;
  /** What the server offers that has every kind of item. */
  readonly offer?: (server: HostileUpstream) => void;
  /** A token that upstreams are shown. */
  readonly token?: string;
};

export type LawWorld = {
  readonly items: readonly Item[];
  /** What the server with every kind of item is ordered before what its era is. */
  obey(order: Order): void;
  /** What has left the gateways for this server since `forget`. */
  left(): readonly Left[];
  forget(): void;
  /** The upstream that the client asks, or the endpoint. */
  access(claims: Readonly<Record<string, unknown>>): Promise<Access>;
  /** The gateway file; replicas have equal ones. */
  readonly config: string;
  readonly gateways: readonly RunningGateway[];
  connect(claims: Claims): Promise<EraCaller>;
  /** Writes the one policy file and reloads; returns the errors. */
  apply(policy: string): Promise<readonly Diagnostic[]>;
  /** Another annotation of this tool from now on, where the upstream can be told. */
  readonly changeTool?: (name: string) => void;
  close(): Promise<void>;
};

const POLICY = 'laws';
const NOTHING = `version: 1\npolicy: ${POLICY}\nrules: []\n`;
/** Within it no listing is due by itself. */
const MAX_AGE_MS = 60_000;
const TOKEN_VARIABLE = 'SERVER_HEADER';

/** The members of each upstream of a world. */
function membersOf({ upstream = [], token }: Setting): readonly string[] {
  const shown = `{type: static, header: Authorization, value: {env: ${TOKEN_VARIABLE}}}`;
  return [`pinning: {maxAge: ${MAX_AGE_MS}ms}`, ...(token === undefined ? [] : [`credentials: ${shown}`]), ...upstream];
}

/** What every gateway of a world is started with. */
function gatewayOf({ more, token }: Setting) {
  return {
    policies: { [POLICY]: NOTHING },
    env: token === undefined ? {} : { [TOKEN_VARIABLE]: `Bearer ${token}` },
    ...(more === undefined ? {} : { more }),
  };
}

type Server = Pick<LawWorld, 'obey' | 'left' | 'forget'>;

/** What a hostile upstream is ordered and has seen. */
function serverOf(server: HostileUpstream, era: Order = () => undefined): Server {
  return {
    obey: (order) => server.obey(inTurn(era, order)),
    left: () => server.seen(),
    forget: () => server.forget(),
  };
}

function worldOf(
  gateways: readonly RunningGateway[],
  client: ClientEra,
  more: Server & Pick<LawWorld, 'close'> & Partial<LawWorld>,
  name = UPSTREAM,
): LawWorld {
  const [first] = gateways;
  if (first === undefined) throw new Error('a world has a gateway');
  const access: LawWorld['access'] = async (claims) => ({
    url: first.url(name),
    token: await first.token(name, claims),
  });
  return {
    items: itemsOf(UPSTREAM),
    access,
    connect: async (claims) => connectIn(client, await access(claims)),
    config: join(first.folder, 'gateway.yaml'),
    gateways,
    async apply(policy) {
      const errors: Diagnostic[] = [];
      for (const gateway of gateways) {
        await gateway.writePolicy(POLICY, policy);
        errors.push(...(await gateway.reload()).filter(({ severity }) => severity === 'error'));
      }
      return errors;
    },
    ...more,
  };
}

function offering({ offer }: Setting, behind: Behind): (server: HostileUpstream) => void {
  return offer ?? ((server) => offerAll(server, behind));
}

/** Starts what stands behind the client, with a policy that allows nothing. */
export async function startWorld(client: ClientEra, behind: Behind, setting: Setting = {}): Promise<LawWorld> {
  switch (behind) {
    case 'endpoint':
      return startEndpoint(client, setting);
    case 'replicas':
      return startReplicas(client, setting);
    case 'stdio':
      return startBehindStdio(client, setting);
    default: {
      const prepare = offering(setting, behind);
      const rig = await startRig({ era: behind, ...gatewayOf(setting), ...{ upstream: membersOf(setting), prepare } });
      const { gateway, front, upstream } = rig;
      const server = serverOf(upstream, onlyIn(behind === 'channels' ? 'sessions' : behind));
      return worldOf([gateway], client, {
        ...server,
        left: () => front?.seen() ?? server.left(),
        forget() {
          front?.forget();
          server.forget();
        },
        changeTool(name) {
          const changed = TOOLS.map((tool) =>
            tool['name'] === name ? { ...tool, annotations: { readOnlyHint: true } } : tool,
          );
          upstream.offer(() => changed);
          rig.passTime(MAX_AGE_MS + 1);
        },
        close: rig.close,
      });
    }
  }
}

/** One endpoint over two upstreams, of which the other has a tool and nothing else. */
async function startEndpoint(client: ClientEra, setting: Setting): Promise<LawWorld> {
  const { gateway, left, close } = await startMergedRig({
    ...gatewayOf(setting),
    upstream: membersOf(setting),
    prepare(one, other) {
      offering(setting, 'endpoint')(one);
      other.offer(() => OTHER_TOOLS);
      other.answerCalls(() => ({ content: [] }));
    },
  });
  const items: readonly Item[] = [
    ...itemsOf('left', 'l_'),
    { kind: 'tool', upstream: 'right', name: 'w_x', wire: 'right_w_x' },
  ];
  const server = serverOf(left);
  return worldOf([gateway], client, { ...server, items, close }, ENDPOINT);
}

/** Two replicas, of which one is asked after the other. */
async function startReplicas(client: ClientEra, setting: Setting): Promise<LawWorld> {
  const upstream = await startHostileUpstream();
  offering(setting, 'replicas')(upstream);
  const two = await startTwoGateways({
    ...gatewayOf(setting),
    upstreams: [{ name: UPSTREAM, url: upstream.url, more: membersOf(setting) }],
  });
  const gateways = [two.one, two.other];
  return worldOf(gateways, client, {
    ...serverOf(upstream),
    async connect(claims) {
      const accesses = await Promise.all(
        gateways.map(async (gateway) => {
          const url = gateway.url(UPSTREAM);
          return { url, token: await two.issuer.mint(url, { claims }) };
        }),
      );
      let asked = 0;
      const next = () => {
        asked += 1;
        const access = accesses[asked % accesses.length];
        if (access === undefined) throw new Error('there are two replicas');
        return access;
      };
      const leave = (): void => undefined;
      if (client !== 'sessions') {
        const request: EraCaller['request'] = (method, params) => requestStateless(next(), method, params);
        return { opened: resultOf(await request('server/discover')), request, leave };
      }
      const { id, reply } = await openSession(next());
      const request: EraCaller['request'] = (method, params) => requestInSession(next(), id, method, params);
      return { opened: resultOf(reply), request, leave };
    },
    async close() {
      await two.close();
      await upstream.close();
    },
  });
}

/** A server on stdio that passes everything on to a server of sessions, and back, byte for byte. */
const STDIO_BRIDGE = `
const [, url] = process.argv;
let session;
const pass = async (line) => {
  const own = session === undefined ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...own };
  const response = await fetch(url, { method: 'POST', headers, body: line });
  session ??= response.headers.get('mcp-session-id') ?? undefined;
  const text = await response.text();
  if (text.startsWith('{')) process.stdout.write(text + '\\n');
  for (const [, data] of text.matchAll(/^data: ?(.+)$/gm)) process.stdout.write(data + '\\n');
};
let rest = '';
let before = Promise.resolve();
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) before = before.then(() => pass(line));
});
`;

async function startBehindStdio(client: ClientEra, setting: Setting): Promise<LawWorld> {
  const upstream = await startHostileUpstream();
  offering(setting, 'stdio')(upstream);
  const token = setting.token ?? makeSecret();
  const args = ['-e', STDIO_BRIDGE, upstream.url];
  const env = { PATH: process.env['PATH'] ?? '' };
  const adapter = await startStdioServer(
    {
      servers: onlyServer({ command: process.execPath, args, cwd: process.cwd(), env }),
      ...{ address: { host: '127.0.0.1', port: 0 }, token, maxSessions: 96 },
    },
    {
      signalGroup,
      killMarked: async () => undefined,
      log: () => undefined,
      redact: String,
      onProcessEnd: () => undefined,
    },
  );
  const shown = { ...setting, token };
  const url = `http://127.0.0.1:${adapter.port}/mcp`;
  const gateway = await startTestGateway({
    ...gatewayOf(shown),
    upstreams: [{ name: UPSTREAM, url, more: membersOf(shown) }],
  });
  return worldOf([gateway], client, {
    ...serverOf(upstream),
    async close() {
      await gateway.close();
      await adapter.close();
      await upstream.close();
    },
  });
}
