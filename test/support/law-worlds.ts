// Gateways for the laws of policies: the same items behind each, reached in every way that a client can reach them.

import { join } from 'node:path';
import type { Diagnostic } from '../../src/config/diagnostics.js';
import type { ListKind } from '../../src/dev/demo-protocol.js';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { startStdioServer } from '../../src/stdio/server.js';
import { ENDPOINT, startMergedRig, startTwoGateways } from './deployments.js';
import {
  type ClientEra,
  connectIn,
  ERA_PAIRS,
  type Era,
  type EraCaller,
  startRigOf,
} from './eras.js';
import { type RunningGateway, startTestGateway, UPSTREAM } from './gateway.js';
import { inTurn, onlyIn } from './hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from './hostile-upstream.js';
import { createTaskServer, EXTENSION, SESSION_TASKS } from './mcp-servers.js';
import { makeSecret } from './secrets.js';
import { signalGroup } from './stdio-server.js';
import { openSession, requestInSession, requestStateless, resultOf } from './wire-client.js';

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
const HINTS: { readonly [tool: string]: JsonObject } = {
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
  if (behind === 'sessions' || behind === 'stateless')
    server.obey(inTurn(onlyIn(behind), createTaskServer().order));
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

export type LawWorld = {
  readonly items: readonly Item[];
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
const PINNING = `pinning: {maxAge: ${MAX_AGE_MS}ms}`;

function worldOf(
  gateways: readonly RunningGateway[],
  more: Pick<LawWorld, 'connect' | 'close'> & Partial<LawWorld>,
): LawWorld {
  return {
    items: itemsOf(UPSTREAM),
    config: join(gateways[0]?.folder ?? '', 'gateway.yaml'),
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

/** Starts what stands behind the client, with a policy that allows nothing. */
export async function startWorld(client: ClientEra, behind: Behind): Promise<LawWorld> {
  const policies = { [POLICY]: NOTHING };
  const at = async (gateway: RunningGateway, name: string, claims: Claims) => ({
    url: gateway.url(name),
    token: await gateway.token(name, claims),
  });
  switch (behind) {
    case 'endpoint':
      return startEndpoint(client);
    case 'replicas':
      return startReplicas(client === 'sessions');
    case 'stdio': {
      const { gateway, close } = await startBehindStdio(policies);
      return worldOf([gateway], {
        connect: async (claims) => connectIn(client, await at(gateway, UPSTREAM, claims)),
        close,
      });
    }
    default: {
      const rig = await startRigOf(behind, {
        policies,
        upstream: [PINNING],
        prepare: (server) => offerAll(server, behind),
      });
      const { gateway } = rig;
      return worldOf([gateway], {
        connect: async (claims) => connectIn(client, await at(gateway, UPSTREAM, claims)),
        changeTool(name) {
          const changed = TOOLS.map((tool) =>
            tool['name'] === name ? { ...tool, annotations: { readOnlyHint: true } } : tool,
          );
          rig.upstream.offer(() => changed);
          rig.passTime(MAX_AGE_MS + 1);
        },
        close: rig.close,
      });
    }
  }
}

/** One endpoint over two upstreams, of which the other has a tool and nothing else. */
async function startEndpoint(client: ClientEra): Promise<LawWorld> {
  const { gateway, close } = await startMergedRig({
    policies: { [POLICY]: NOTHING },
    upstream: [PINNING],
    prepare(left, right) {
      offerAll(left, 'endpoint');
      right.offer(() => OTHER_TOOLS);
      right.answerCalls(() => ({ content: [] }));
    },
  });
  return worldOf([gateway], {
    items: [
      ...itemsOf('left', 'l_'),
      { kind: 'tool', upstream: 'right', name: 'w_x', wire: 'right_w_x' },
    ],
    connect: async (claims) =>
      connectIn(client, {
        url: gateway.url(ENDPOINT),
        token: await gateway.token(ENDPOINT, claims),
      }),
    close,
  });
}

/** Two replicas, of which one is asked after the other. */
async function startReplicas(hasSessions: boolean): Promise<LawWorld> {
  const upstream = await startHostileUpstream();
  offerAll(upstream, 'replicas');
  const two = await startTwoGateways({
    upstreams: [{ name: UPSTREAM, url: upstream.url, more: [PINNING] }],
    policies: { [POLICY]: NOTHING },
  });
  const gateways = [two.one, two.other];
  return worldOf(gateways, {
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
      if (!hasSessions) {
        const request: EraCaller['request'] = (method, params) =>
          requestStateless(next(), method, params);
        return { opened: resultOf(await request('server/discover')), request, leave };
      }
      const { id, reply } = await openSession(next());
      const request: EraCaller['request'] = (method, params) =>
        requestInSession(next(), id, method, params);
      return { opened: resultOf(reply), request, leave };
    },
    async close() {
      await two.close();
      await upstream.close();
    },
  });
}

/** A server on stdio with the same items. */
const STDIO_SERVER = `
const { tools, prompts, resources, resourceTemplates } = JSON.parse(process.argv[1]);
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {}, prompts: {}, resources: {} }, serverInfo: { name: 's', version: '1' }, instructions: process.argv[2] }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'prompts/list': () => ({ prompts }),
  'resources/list': () => ({ resources }),
  'resources/templates/list': () => ({ resourceTemplates }),
  'tools/call': () => ({ content: [] }),
  'prompts/get': () => ({ messages: [] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'Read.' }] }),
};
let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }) + '\\n');
  }
});
`;

async function startBehindStdio(
  policies: Readonly<Record<string, string>>,
): Promise<{ readonly gateway: RunningGateway; close(): Promise<void> }> {
  const token = makeSecret();
  const args = ['-e', STDIO_SERVER, JSON.stringify(LISTS), INSTRUCTIONS];
  const env = { PATH: process.env['PATH'] ?? '' };
  const adapter = await startStdioServer(
    {
      command: { command: process.execPath, args, cwd: process.cwd(), env },
      ...{ address: { host: '127.0.0.1', port: 0 }, token, maxSessions: 64 },
    },
    {
      signalGroup,
      killMarked: async () => undefined,
      log: () => undefined,
      redact: String,
      onProcessEnd: () => undefined,
    },
  );
  const gateway = await startTestGateway({
    upstreams: [
      {
        name: UPSTREAM,
        url: `http://127.0.0.1:${adapter.port}/mcp`,
        more: [
          PINNING,
          'credentials: {type: static, header: Authorization, value: {env: STDIO_HEADER}}',
        ],
      },
    ],
    env: { STDIO_HEADER: `Bearer ${token}` },
    policies,
  });
  return {
    gateway,
    async close() {
      await gateway.close();
      await adapter.close();
    },
  };
}
