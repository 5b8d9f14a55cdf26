// A refusal that one way of asking has and its twin lacks is a way round it. Each reason of the one table that a request
// can meet is met here by every method that can carry the request, in every era and transport, alone and in an array, at
// the upstream and through an endpoint of several, in front of a server on stdio too, and by every use of a task. Where a
// carrier cannot have a reason, the table says why; a reason that needs another setup names the test that has it.

import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ADMINS, type Admins, adminsOf } from '../support/deployments.js';
import { connectIn, type EraCaller } from '../support/eras.js';
import { decisionOf, linesOf, type RunningGateway } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { type Behind, EVERY_WAY, type Item, type ItemKind, startWorld } from '../support/law-worlds.js';
import { declaring } from '../support/mcp-servers.js';
import { REASONS, type Reason } from '../support/reasons.js';
import { githubToken } from '../support/seeded-values.js';
import { type Access, openEvents, type Reply, requestStateless, resultOf } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

type Client = (typeof EVERY_WAY)[number][0];

/** What a request is about: an item, or a task that a call of a tool has begun. */
type Subject = ItemKind | 'task';

/** A method that carries a request about something. */
type Carrier = {
  readonly method: string;
  readonly kind: Subject;
  /** The clients that have the method; all if absent. */
  readonly clients?: readonly Client[];
  /** `text`: what the request says besides the name of the item. */
  params(name: string, text: string): JsonObject;
};

const SESSIONS: readonly Client[] = ['sessions', 'array', 'channels'];
const WITH_TASKS: readonly Client[] = ['stateless', 'sessions'];
const argument = (value: string) => ({ argument: { name: 'owner', value } });
const CARRIERS: readonly Carrier[] = [
  {
    method: 'tools/call',
    kind: 'tool',
    params: (name, owner) => ({ name, arguments: { owner } }),
  },
  {
    method: 'prompts/get',
    kind: 'prompt',
    params: (name, owner) => ({ name, arguments: { owner } }),
  },
  {
    method: 'completion/complete',
    kind: 'prompt',
    params: (name, owner) => ({ ref: { type: 'ref/prompt', name }, ...argument(owner) }),
  },
  {
    method: 'completion/complete',
    kind: 'template',
    params: (uri, owner) => ({ ref: { type: 'ref/resource', uri }, ...argument(owner) }),
  },
  { method: 'resources/read', kind: 'resource', params: (uri) => ({ uri }) },
  {
    method: 'resources/subscribe',
    kind: 'resource',
    clients: SESSIONS,
    params: (uri) => ({ uri }),
  },
  {
    method: 'resources/unsubscribe',
    kind: 'resource',
    clients: SESSIONS,
    params: (uri) => ({ uri }),
  },
  {
    method: 'subscriptions/listen',
    kind: 'resource',
    clients: ['stateless'],
    params: (uri) => ({ notifications: { resourceSubscriptions: [uri] } }),
  },
  { method: 'tasks/get', kind: 'task', clients: WITH_TASKS, params: aboutTask },
  { method: 'tasks/cancel', kind: 'task', clients: WITH_TASKS, params: aboutTask },
  { method: 'tasks/result', kind: 'task', clients: ['sessions'], params: aboutTask },
  {
    method: 'tasks/update',
    kind: 'task',
    clients: ['stateless'],
    params: (taskId, owner) => ({
      taskId,
      inputResponses: { a: { action: 'accept', content: { owner } } },
    }),
  },
  {
    method: 'subscriptions/listen',
    kind: 'task',
    clients: ['stateless'],
    params: (taskId, text) => ({
      notifications: { taskIds: [taskId] },
      _meta: { [NOTE]: text },
    }),
  },
];

/** Where what such a request says besides the task can stand. */
const NOTE = 'example.com/note';
function aboutTask(taskId: string, text: string): JsonObject {
  return { taskId, _meta: { [NOTE]: text } };
}

/** Tasks are not translated between eras, and older revisions have none. */
function hasTasks(client: Client, behind: Behind): boolean {
  return WITH_TASKS.includes(client) && (behind === client || behind === 'endpoint');
}

type Met = {
  /** What a request is about that can meet it. */
  readonly kinds: readonly Subject[];
  /** Members of the allow rule of its callers. */
  readonly rule?: string;
  /** Another rule for them. */
  readonly more?: string;
  /** Nothing is allowed. */
  readonly isAlone?: true;
  /** How often the request is made; the last time it is refused. */
  readonly times?: number;
  /** What the request says, and of which resource. */
  readonly text?: string;
  readonly uri?: string;
  /** Kinds of items of which an endpoint of several upstreams shows no backend, so that there is none to refuse. */
  readonly hiddenAtEndpoint?: readonly ItemKind[];
  /** The task is that of somebody else. */
  readonly isForeign?: true;
  /** An administrator has blocked the item, or the tool of the task. */
  readonly isBlocked?: true;
  /** Carriers that answer otherwise, and why: by method, or with what the request is about, also behind what. */
  readonly otherwise?: { readonly [carrier: string]: readonly [outcome: string, why: string] };
};
const ALL: readonly Subject[] = ['tool', 'prompt', 'resource', 'template', 'task'];
const SECRET = githubToken('refusals are equal');
const NARROWED = ['opened', 'it is narrowed to what its caller may have, and opened'] as const;
const POLL = ['passed', 'a client may poll and cancel as often as it wishes'] as const;
const NO_TEXT = ['passed', 'it names no item, and is sent without the text of its sender'] as const;

const MET: { readonly [reason in Reason]?: Met } = {
  'no-matching-allow': {
    kinds: ALL,
    isAlone: true,
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'denied-by-rule': {
    kinds: ALL,
    more: 'effect: deny',
    hiddenAtEndpoint: ['resource', 'template'],
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'insufficient-scope': {
    kinds: ALL,
    rule: 'scopes: ["never:granted"]',
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'policy-error': {
    kinds: ALL,
    more: 'effect: deny, when: principal.claims.absent == "x"',
    hiddenAtEndpoint: ['resource', 'template'],
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'arguments-invalid': {
    kinds: ['tool', 'prompt'],
    rule: 'args: {owner: {const: acme}}',
    text: 'other',
  },
  'arguments-content': { kinds: ALL, text: SECRET, uri: `repo://acme/${SECRET}` },
  'resource-forbidden': {
    kinds: ['resource'],
    uri: 'no uri',
    hiddenAtEndpoint: ['resource'],
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'rate-limited': {
    kinds: ALL,
    rule: 'limits: {rate: 1/h, per: subject}',
    times: 2,
    otherwise: {
      ...{ 'tasks/get': POLL, 'tasks/result': POLL, 'tasks/cancel': POLL },
      'subscriptions/listen task endpoint': ['opened', 'the other backends have no such task'],
    },
  },
  'tainted-flow': {
    kinds: ALL,
    times: 2,
    otherwise: {
      'tasks/get': NO_TEXT,
      'tasks/result': NO_TEXT,
      'tasks/cancel': NO_TEXT,
      'subscriptions/listen task': ['opened', NO_TEXT[1]],
    },
  },
  blocked: {
    kinds: ALL,
    isBlocked: true,
    otherwise: { 'subscriptions/listen': NARROWED },
  },
  'unknown-task': {
    kinds: ['task'],
    isForeign: true,
    otherwise: { 'subscriptions/listen': NARROWED },
  },
};

/** The tests of reasons that need more than a policy and a request. */
const ELSEWHERE: { readonly [reason in Reason]?: string } = {
  'origin-forbidden': 'attacks/false-hosts-and-paths',
  'host-forbidden': 'attacks/invented-headers',
  'body-too-large': 'attacks/lengths-that-are-no-number',
  'unsupported-media-type': 'attacks/bodies-that-are-not-plain-json',
  'malformed-json': 'attacks/bodies-that-are-not-plain-json',
  'duplicate-key': 'attacks/duplicate-members',
  'invalid-message': 'attacks/ambiguous-json',
  'batch-forbidden': 'unit/protocol/admission',
  'header-mismatch': 'attacks/name-header-against-body',
  'unsupported-version': 'integration/eras',
  'unknown-session': 'attacks/stolen-sessions',
  'session-required': 'unit/protocol/admission',
  'method-unknown': 'unit/protocol/versions/session',
  'method-forbidden': 'integration/session-tasks',
  'token-type': 'attacks/token-claims',
  'token-revoked': 'integration/revocation',
  'token-binding': 'attacks/dpop-proofs',
  'keys-unavailable': 'attacks/last-good-keys',
  overloaded: 'integration/outbound-queue',
  'tool-unpinned': 'attacks/pins-in-each-era',
  'tool-changed': 'attacks/pins-in-each-era',
  'tool-blocked': 'unit/policy/decide',
  'tool-poisoned': 'attacks/pins-in-each-era',
  'tool-shadowed': 'integration/merged-lists',
  'tool-invalid': 'attacks/mirror-headers-that-lie',
  'pins-stale': 'attacks/definitions-changed-after-listing',
  'arguments-redacted': 'integration/redaction-marks',
  'result-invalid': 'attacks/hostile-results',
  'result-content': 'attacks/payloads-in-base64',
  'result-too-large': 'attacks/rules-hold-beside-the-result',
  'elicitation-sensitive': 'integration/input-required',
  'elicitation-url': 'integration/input-required',
  'elicitation-approval': 'attacks/forms-in-our-name',
  'approval-required': 'attacks/approved-requests',
  'approval-denied': 'attacks/approved-requests',
  'approval-expired': 'attacks/approved-requests',
  'approval-mismatch': 'attacks/approved-requests',
  'elicitation-forbidden': 'integration/input-required',
  'sampling-forbidden': 'integration/input-required',
  'roots-forbidden': 'integration/input-required',
  'upstream-unavailable': 'integration/wire',
  'upstream-timeout': 'attacks/slow-answers',
  'upstream-protocol': 'attacks/compressed-responses',
  'upstream-credentials': 'attacks/faulty-token-exchange',
  'asked-elsewhere': 'e2e/any-replica',
  'already-answered': 'integration/questions',
  'gateway-starting': 'integration/start-and-drain',
  'gateway-stopping': 'integration/shutdown',
  'restart-pending': 'integration/restart-pending',
  'audit-unavailable': 'unit/proxy/pipeline',
  'store-unavailable': 'attacks/emptied-store',
  internal: 'attacks/broken-inspector',
  'malformed-request': 'attacks/requests-with-two-lengths',
  'request-timeout': 'unit/http/data-server',
  'headers-too-large': 'attacks/bodies-that-never-end',
};
const HOUR_SECONDS = 3_600;
const inHours = (hours: number): number => Math.floor(Date.now() / 1000) + hours * HOUR_SECONDS;

/** Claims of a token that is refused for a reason, or what is sent in place of a good one. */
type Presented =
  | { readonly claims: () => Readonly<Record<string, unknown>> }
  | { readonly write: (good: string) => string | undefined };

/** Tokens, with which nothing is carried at all. */
const TOKENS: { readonly [reason in Reason]?: Presented } = {
  'token-missing': { write: () => undefined },
  'token-malformed': { write: (good) => good.slice(0, good.indexOf('.')) },
  'token-signature': { write: (good) => `${good.slice(0, -8)}AAAAAAAA` },
  'token-issuer': { claims: () => ({ iss: 'https://another.example' }) },
  'token-audience': { claims: () => ({ aud: 'https://another.example/mcp' }) },
  'token-expired': { claims: () => ({ iat: inHours(-2), exp: inHours(-1) }) },
  'token-not-yet-valid': { claims: () => ({ nbf: inHours(1), exp: inHours(2) }) },
  'token-lifetime': { claims: () => ({ exp: inHours(100) }) },
};

const HEAD = 'version: 1\npolicy: laws\nrules:\n';
const EVERYTHING = 'upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"], templates: ["repo://{x}"]';

function ruleOf(id: string, group: string, members: string): string {
  return `  - {id: ${id}, who: {groups: [${group}]}, what: {${EVERYTHING}}, ${members}}\n`;
}

/** Everybody may do everything, except for what each group is to meet. */
function policyOf(reasons: readonly Reason[], more = ''): string {
  const rules = reasons.flatMap((reason) => {
    const { rule, more: other, isAlone } = MET[reason] ?? {};
    const allow = rule === undefined ? 'effect: allow' : `effect: allow, ${rule}`;
    return [
      isAlone === true ? '' : ruleOf(`${reason}-a`, reason, allow),
      other === undefined ? '' : ruleOf(`${reason}-b`, reason, other),
    ];
  });
  return `${HEAD}${rules.join('')}${ruleOf('nobody', 'nobody', 'effect: allow')}${more}`;
}

const FLOWED: readonly Reason[] = ['tainted-flow'];
const MET_REASONS = Object.keys(MET) as Reason[];
const DECIDED = MET_REASONS.filter((reason) => !FLOWED.includes(reason));

function expectedOf(reason: Reason, { method, kind }: Carrier, behind: Behind): string {
  const { otherwise = {}, hiddenAtEndpoint = [] } = MET[reason] ?? {};
  const keys = [`${method} ${kind} ${behind}`, `${method} ${kind}`, method];
  const [other] = keys.map((key) => otherwise[key]).find((one) => one !== undefined) ?? [];
  if (other !== undefined) return other;
  const isHidden = hiddenAtEndpoint.some((hidden) => hidden === kind);
  return behind === 'endpoint' && isHidden ? 'no-matching-allow' : reason;
}

/** Rows that can be met by this client, there. */
function rowsFor(reasons: readonly Reason[], client: Client, behind: Behind) {
  return reasons.flatMap((reason) => {
    const { kinds = [] } = MET[reason] ?? {};
    const carriers = CARRIERS.filter(
      ({ kind, clients }) =>
        kinds.includes(kind) && clients?.includes(client) !== false && (kind !== 'task' || hasTasks(client, behind)),
    );
    return carriers.map((carrier) => [reason, carrier.method, carrier.kind, carrier] as const);
  });
}

describe.each(EVERY_WAY)('for a client of %s, before %s', (client, behind) => {
  const world = shared(() => startWorld(client, behind, { more: ADMINS }));

  const accessOf = (sub: string, group: string): Promise<Access> => world.access({ sub, groups: [group] });

  function gateway(): RunningGateway {
    const [first] = world.gateways;
    if (first === undefined) throw new Error('a world has a gateway');
    return first;
  }
  const admins = (): Admins => adminsOf(gateway());

  /** What became of a request: the reason in the audit log, or that it passed. */
  async function outcomeOf(reply: Reply): Promise<string> {
    const { text, status } = reply;
    const isRefused = status >= 400 || text.includes('dev.sallyport/decision');
    if (!isRefused) return 'passed';
    const [line] = await linesOf(gateway(), decisionOf(reply).id, 1);
    return line?.['decision'].reasons?.[0] ?? 'passed';
  }

  async function listen(access: Access, params: JsonObject): Promise<string> {
    const reader = await openEvents(access, 'subscriptions/listen', params);
    const isOpen = reader.headers.get('content-type')?.includes('event-stream') === true;
    reader.leave();
    if (isOpen) return 'opened';
    return outcomeOf(await requestStateless(access, 'subscriptions/listen', params));
  }

  async function meet(reason: Reason, carrier: Carrier): Promise<string> {
    const { times = 1, text = 'acme', uri, isForeign, isBlocked } = MET[reason] ?? {};
    const { method, kind } = carrier;
    const sub = `${reason} ${method} ${kind}`;
    const access = await accessOf(sub, reason);
    const subject =
      kind === 'task'
        ? await begin(isForeign === true ? `another than ${sub}` : sub)
        : kind === 'resource' && uri !== undefined
          ? uri
          : wireOf(kind);
    const params = declared(carrier.params(subject, text));
    if (isBlocked === true) await block(kind === 'task' ? 'tool' : kind);
    if (method === 'subscriptions/listen') {
      for (let time = 1; time < times; time += 1) await prepare(reason, access, params);
      return listen(access, params);
    }
    const caller = await connectIn(client, access);
    if (FLOWED.includes(reason)) await taint(caller);
    else for (let time = 1; time < times; time += 1) await caller.request(method, params);
    return outcomeOf(await caller.request(method, params));
  }

  function itemOf(kind: ItemKind): Item {
    const item = world.items.find((one) => one.kind === kind);
    if (item === undefined) throw new Error(`no ${kind} is offered`);
    return item;
  }
  const wireOf = (kind: ItemKind): string => itemOf(kind).wire;

  async function block(kind: ItemKind): Promise<void> {
    const { upstream, name } = itemOf(kind);
    const order = { block: { target: kind, upstream, name } };
    expect((await admins().revoke(order)).status).toBe(201);
  }

  async function liftBlocks(): Promise<void> {
    const token = await admins().token('platform');
    const { body } = await admins().ask('GET', '/api/revocations', { token });
    for (const { id } of body.revocations) await admins().ask('DELETE', `/api/revocations/${id}`, { token });
  }

  /** What a client of the stateless era says with every request if it knows tasks. */
  function declared(params: JsonObject): JsonObject {
    const meta = params['_meta'] as JsonObject | undefined;
    return client === 'stateless' ? { ...params, _meta: { ...meta, ...declaring() } } : params;
  }

  /** A task of this subject, who may still do everything; its id as the client has it. */
  async function begin(sub: string): Promise<string> {
    const caller = await connectIn(client, await accessOf(sub, 'nobody'));
    const call = { name: wireOf('tool'), arguments: { owner: 'acme' } };
    const own = client === 'stateless' ? {} : { task: {} };
    const reply = await caller.request('tools/call', declared({ ...call, ...own }));
    const { task = resultOf(reply) } = resultOf(reply) as { readonly task?: JsonObject };
    if (typeof task['taskId'] !== 'string') throw new Error(`no task was begun: ${reply.text}`);
    return task['taskId'];
  }

  async function taint(caller: EraCaller): Promise<void> {
    await caller.request('resources/read', { uri: wireOf('resource') });
  }

  async function prepare(reason: Reason, access: Access, params: JsonObject): Promise<void> {
    if (FLOWED.includes(reason)) await taint(await connectIn(client, access));
    else await listen(access, params);
  }

  describe('is the reason', () => {
    beforeAll(async () => {
      expect(await world.apply(policyOf(DECIDED))).toEqual([]);
    });
    afterEach(liftBlocks);

    it.each(rowsFor(DECIDED, client, behind))('%s of %s for a %s', async (reason, _method, _kind, carrier) => {
      expect(await meet(reason, carrier)).toBe(expectedOf(reason, carrier, behind));
    });
  });

  describe('is, where a flow closes the upstream, the reason', () => {
    beforeAll(async () => {
      const names = [...new Set(world.items.map(({ upstream }) => upstream))];
      const labels = names.map((name) => `${name}: [egress]`).join(', ');
      const flows = `labels: {${labels}}\nflows: [{id: f, from: untrusted, to: egress, effect: deny}]\n`;
      expect(await world.apply(policyOf(FLOWED, flows))).toEqual([]);
    });

    it.each(rowsFor(FLOWED, client, behind))('%s of %s for a %s', async (reason, _method, _kind, carrier) => {
      expect(await meet(reason, carrier)).toBe(expectedOf(reason, carrier, behind));
    });
  });

  describe('is, of every request of a caller that was let in before, the reason', () => {
    /** How many tokens were refused for it. */
    async function refusedFor(reason: string): Promise<number> {
      const line = new RegExp(`^sallyport_auth_failures_total\\{reason="${reason}"\\} (\\d+)$`, 'm');
      return Number(line.exec(await gateway().metrics())?.[1] ?? 0);
    }
    const methods = new Set(
      CARRIERS.filter(({ clients }) => clients?.includes(client) !== false).map((one) => one.method),
    );

    /** What the caller presents from now on. */
    let access: { url: string; token: string | undefined };
    let good: Access;
    let caller: EraCaller;
    beforeAll(async () => {
      good = await accessOf('let in', 'nobody');
      access = { ...good };
      caller = await connectIn(client, access);
    });
    afterAll(() => caller.leave());

    it.each(Object.entries(TOKENS))('%s', async (reason, presented) => {
      const made = 'claims' in presented ? await world.access(presented.claims()) : good;
      access.token = 'write' in presented ? presented.write(good.token ?? '') : made.token;
      const before = await refusedFor(reason);
      world.forget();
      for (const method of methods) {
        const { status, headers } = await caller.request(method);
        expect([method, status]).toEqual([method, 401]);
        expect(headers.get('www-authenticate')).toContain('resource_metadata=');
      }
      expect(await refusedFor(reason)).toBe(before + methods.size);
      const left = world.left().map(({ body }) => body);
      expect(left.filter((body) => [...methods].some((one) => body.includes(one)))).toEqual([]);
    });
  });
});

describe('the table', () => {
  it('has every reason, here or in a test that it names', () => {
    const named = [MET, TOKENS, ELSEWHERE].flatMap((one) => Object.keys(one));
    expect(named.sort()).toEqual([...REASONS].sort());
  });

  it.each(Object.entries(ELSEWHERE))('%s is met in %s', (reason, test) => {
    const url = new URL(`../${test}.test.ts`, import.meta.url);
    expect(readFileSync(url, 'utf8')).toContain(reason);
  });
});
