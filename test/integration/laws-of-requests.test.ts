// The laws of policies for what servers request of clients and for tasks, on the wire in both main eras: generated
// policies and sequences, compared with a plain reading of docs/reference/policies.md. The laws of calls and lists:
// laws.test.ts.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import { jsonBody, resultFor } from '../support/hostile-acts.js';
import { isObject, type JsonObject } from '../support/json.js';
import { askStateless, createTaskServer, initializeWithTasks, TASK_TOOLS } from '../support/mcp-servers.js';
import { openRawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, askThenAnswer } from '../support/sdk-clients.js';
import { type Access, errorOf, openSession, type Reply, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Every run tries the same sequences; a failure names its own. */
const SEED = 20_261_123;
/** Hundreds of requests on a busy machine. */
const TIMEOUT_MS = 120_000;
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const ERAS = ['sessions', 'stateless'] as const;
type Era = (typeof ERAS)[number];
const SUBJECTS = ['ada', 'bob'] as const;
type Subject = (typeof SUBJECTS)[number];

type Rule = {
  readonly effect: 'allow' | 'deny';
  readonly who: { readonly anyone: true } | { readonly subjects: readonly Subject[] };
  readonly what: JsonObject;
  readonly limits?: JsonObject;
};

const who: fc.Arbitrary<Rule['who']> = fc.oneof(
  fc.constant({ anyone: true } as const),
  fc.record({ subjects: fc.subarray([...SUBJECTS], { minLength: 1, maxLength: 1 }) }),
);

function policy(rules: readonly Rule[]): string {
  const written = rules.map((rule, index) => ({
    ...{ id: `r${index}`, ...rule },
    what: { upstreams: [UPSTREAM], ...rule.what },
  }));
  return `version: 1\npolicy: open\nrules: ${JSON.stringify(written)}\n`;
}

/** Law 3: an allow rule that applies, and no deny rule that does. */
function isAllowed(
  rules: readonly Rule[],
  subject: Subject,
  applies: (what: JsonObject, effect: Rule['effect']) => boolean,
): boolean {
  const matching = rules.filter(
    ({ who: by, what, effect }) => ('anyone' in by || by.subjects.includes(subject)) && applies(what, effect),
  );
  return matching.some(({ effect }) => effect === 'allow') && !matching.some(({ effect }) => effect === 'deny');
}

const rig = sharedGateway({
  policies: { open: policy([]) },
  upstream: ['pinning: {maxAge: 10m}'],
  prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
});

async function accessOf(subject: string): Promise<Access> {
  return { url: rig.access.url, token: await rig.gateway.token(UPSTREAM, { sub: subject }) };
}

async function apply(text: string): Promise<void> {
  await rig.gateway.writePolicy('open', text);
  const errors = (await rig.gateway.reload()).filter(({ severity }) => severity === 'error');
  expect(errors, text).toEqual([]);
}

function check<Values extends [unknown, ...unknown[]]>(
  numRuns: number,
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  predicate: (...values: Values) => Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty<Values>(...arbitraries, predicate);
  return fc.assert(property, { seed: SEED, numRuns, endOnFailure: true });
}

const TOOLS: Rule = { effect: 'allow', who: { anyone: true }, what: { tools: ['read_record'] } };
const CALL = { name: 'read_record', arguments: { id: 'one' } };

describe('what servers request of clients', () => {
  const HOSTS = ['a.example', 'b.example'];
  const CONTEXTS = ['none', 'thisServer'];
  type Asked = { readonly method: string; readonly params: JsonObject };
  const sampling = (includeContext: string): Asked => ({
    method: 'sampling/createMessage',
    params: {
      ...{ maxTokens: 1, includeContext },
      messages: [{ role: 'user', content: { type: 'text', text: 'Go on.' } }],
    },
  });
  const link = (host: string): Asked => ({
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Visit.', url: `https://${host}/x`, elicitationId: 'e' },
  });
  const FORM: Asked = {
    method: 'elicitation/create',
    params: {
      ...{ mode: 'form', message: 'Which?' },
      requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } },
    },
  };
  const ROOTS: Asked = { method: 'roots/list', params: {} };
  const ALL = [FORM, ROOTS, ...HOSTS.map(link), ...CONTEXTS.map(sampling)];

  const what: fc.Arbitrary<JsonObject> = fc
    .record(
      {
        roots: fc.constant(true),
        elicitation: fc.oneof(
          fc.subarray(['form', 'url'], { minLength: 1 }),
          fc.record({ form: fc.constant(true), url: fc.subarray(HOSTS, { minLength: 1 }) }),
        ),
        sampling: fc.oneof(fc.constant(true), fc.record({ includeContext: fc.subarray(CONTEXTS, { minLength: 1 }) })),
      },
      { requiredKeys: [] },
    )
    .filter((kinds) => Object.keys(kinds).length > 0) as fc.Arbitrary<JsonObject>;
  const rule = (effect: Rule['effect']) => fc.record({ effect: fc.constant(effect), who, what });
  const rules = fc.array(fc.oneof({ weight: 3, arbitrary: rule('allow') }, { weight: 1, arbitrary: rule('deny') }), {
    minLength: 1,
    maxLength: 5,
  });

  function names({ roots, elicitation, sampling: given }: JsonObject, asked: Asked): boolean {
    const { method, params } = asked;
    if (method === 'roots/list') return roots === true;
    if (method === 'sampling/createMessage') {
      const contexts = isObject(given) ? given['includeContext'] : undefined;
      if (!Array.isArray(contexts)) return given === true;
      return (contexts as readonly unknown[]).includes(params['includeContext']);
    }
    const mode = String(params['mode']);
    if (Array.isArray(elicitation)) return (elicitation as readonly unknown[]).includes(mode);
    if (!isObject(elicitation)) return false;
    if (mode === 'form') return elicitation['form'] === true;
    const hosts = elicitation['url'] as readonly string[];
    return hosts.includes(new URL(String(params['url'])).host);
  }

  /** Those of the requests that reach the client. */
  const ask: Readonly<Record<Era, (access: Access) => Promise<readonly Asked[]>>> = {
    async sessions({ url, token = '' }) {
      const session = await openRawSession(url, {
        token,
        capabilities: { ...ALL_QUESTIONS, sampling: { context: {} } },
      });
      rig.upstream.obey((request) => {
        if (request.method !== 'tools/call') return undefined;
        const questions = ALL.map((one, index) => ({ id: `q${index}`, ...one }));
        return askThenAnswer(request, questions as readonly JsonObject[], 1);
      });
      const { messages } = await session.ask(9, 'tools/call', CALL);
      return messages.filter(({ id }) => id !== 9) as unknown as readonly Asked[];
    },
    async stateless(access) {
      const came: Asked[] = [];
      for (const one of ALL) {
        rig.upstream.obey((request) => {
          if (request.method !== 'tools/call') return undefined;
          const result = { resultType: 'input_required', inputRequests: { q: one } };
          return jsonBody(resultFor(request, result as JsonObject));
        });
        const capabilities = {
          sampling: { context: {} },
          elicitation: { form: {}, url: {} },
          roots: {},
        };
        const params = { ...CALL, _meta: { [CAPABILITIES]: capabilities } };
        const result = resultOf(await requestStateless(access, 'tools/call', params));
        const requests = result['inputRequests'];
        if (isObject(requests)) came.push(requests['q'] as unknown as Asked);
      }
      return came;
    },
  };

  it.each(ERAS)(
    '[P-12, Q-03] reaches them where a rule allows it and none denies it, in %s',
    async (era) => {
      let passed = 0;
      let refused = 0;
      await check(8, [rules], async (written) => {
        await apply(policy([TOOLS, ...written]));
        for (const subject of SUBJECTS) {
          const came = await ask[era](await accessOf(subject));
          const shown = came.map(({ method, params }) => ({ method, params: params ?? {} }));
          const expected = ALL.filter((one) => isAllowed(written, subject, (of) => names(of, one)));
          const keys = (list: readonly Asked[]) =>
            list.map(({ method, params }) => [...[method, params['mode'], params['url'], params['includeContext']]]);
          expect(keys(shown), `${subject} under ${JSON.stringify(written)}`).toEqual(keys(expected));
          passed += expected.length;
          refused += ALL.length - expected.length;
        }
      });
      rig.upstream.obey(() => undefined);
      expect(Math.min(passed, refused)).toBeGreaterThan(10);
    },
    TIMEOUT_MS,
  );
});

describe('tasks', () => {
  const USES = ['get', 'list', 'update', 'cancel'] as const;
  type Use = (typeof USES)[number];
  const what: fc.Arbitrary<JsonObject> = fc.oneof(
    fc.constant({ tools: ['talk'] }),
    fc.record({ tasks: fc.subarray([...USES], { minLength: 1 }) }) as fc.Arbitrary<JsonObject>,
  );
  const rule = (effect: Rule['effect']) => fc.record({ effect: fc.constant(effect), who, what });
  const policies = fc.array(
    fc.array(fc.oneof({ weight: 3, arbitrary: rule('allow') }, { weight: 1, arbitrary: rule('deny') }), {
      maxLength: 4,
    }),
    { minLength: 3, maxLength: 3 },
  );
  const OPEN: Rule = { effect: 'allow', who: { anyone: true }, what: { tools: ['talk'] } };

  /** One caller of an era: begins a task, and uses one. */
  type TaskCaller = {
    begin(): Promise<string>;
    use(use: Use, taskId: string): Promise<'used' | 'unknown' | string>;
  };
  const outcomeOf = (reply: Reply): string => {
    if (errorOf(reply)['code'] === -32602) return 'unknown';
    return Object.keys(resultOf(reply)).length > 0 ? 'used' : reply.text;
  };
  const CALLED = { name: 'talk', arguments: {} };
  const connect: Readonly<Record<Era, (access: Access) => Promise<TaskCaller>>> = {
    async sessions(access) {
      const session = await openSession(access);
      return {
        async begin() {
          const reply = await session.request('tools/call', { ...CALLED, task: { ttl: 60_000 } });
          return String((resultOf(reply)['task'] as JsonObject)['taskId']);
        },
        async use(use, taskId) {
          if (use !== 'list')
            return outcomeOf(await session.request(`tasks/${use === 'update' ? 'result' : use}`, { taskId }));
          const tasks = resultOf(await session.request('tasks/list'))['tasks'];
          const ids = (tasks as readonly JsonObject[]).map((task) => task['taskId']);
          return ids.includes(taskId) ? 'used' : 'unknown';
        },
      };
    },
    stateless: (access) =>
      Promise.resolve({
        begin: async () => String(resultOf(await askStateless(access, 'tools/call', CALLED))['taskId']),
        async use(use, taskId) {
          const more = use === 'update' ? { inputResponses: {} } : {};
          return outcomeOf(await askStateless(access, `tasks/${use}`, { taskId, ...more }));
        },
      }),
  };
  /** `tasks/result` stands for what a session has in place of an update, and there is no list without sessions. */
  const USES_OF: Readonly<Record<Era, readonly (readonly [Use, Use])[]>> = {
    sessions: [
      ['get', 'get'],
      ['list', 'list'],
      ['update', 'get'],
      ['cancel', 'cancel'],
    ],
    stateless: [
      ['get', 'get'],
      ['update', 'update'],
      ['cancel', 'cancel'],
    ],
  };

  it.each(ERAS)(
    '[P-12, TSK-07] are used by those who began them, as the rules of the moment say, in %s',
    async (era) => {
      const server = createTaskServer();
      rig.upstream.obey((request) => {
        if (era === 'stateless') return server.order(request);
        if (request.method === 'initialize') return initializeWithTasks(request);
        const isSilent = request.method?.startsWith('notifications/') === true;
        return isSilent ? { kind: 'http', status: 202 } : server.order(request);
      });
      let used = 0;
      let refused = 0;
      await check(4, [policies], async (sequence) => {
        await apply(policy([OPEN]));
        const callers = await Promise.all(
          SUBJECTS.map(async (subject) => ({
            subject,
            caller: await connect[era](await accessOf(subject)),
          })),
        );
        const tasks: { readonly owner: Subject; readonly id: string }[] = [];
        for (const { subject, caller } of callers) tasks.push({ owner: subject, id: await caller.begin() });
        for (const rules of sequence) {
          await apply(policy([TOOLS, ...rules]));
          for (const { subject, caller } of callers)
            for (const { owner, id } of tasks)
              for (const [use, named] of USES_OF[era]) {
                const names = ({ tools, tasks: uses }: JsonObject): boolean =>
                  tools !== undefined || (Array.isArray(uses) && uses.includes(named));
                const may = owner === subject && isAllowed(rules, subject, names);
                const about = `${use} by ${subject} of ${owner} under ${JSON.stringify(rules)}`;
                expect(await caller.use(use, id), about).toBe(may ? 'used' : 'unknown');
                if (may) used += 1;
                else refused += 1;
              }
        }
      });
      rig.upstream.obey(() => undefined);
      expect(Math.min(used, refused)).toBeGreaterThan(10);
    },
    TIMEOUT_MS,
  );
});

describe('budgets', () => {
  const MAX = 10;
  const step = fc.record({
    subject: fc.constantFrom(...SUBJECTS),
    tool: fc.constantFrom('read_record', 'write_record'),
    /** What the call costs: the length of its argument. */
    cost: fc.integer({ min: 0, max: 6 }),
    era: fc.constantFrom(...ERAS),
  });
  let run = 0;

  it(
    '[P-12] are shared by all tools that name them and charged at the decision, in any era',
    async () => {
      let allowed = 0;
      let refused = 0;
      await check(
        4,
        [fc.constantFrom('subject', 'all'), fc.array(step, { minLength: 12, maxLength: 12 })],
        async (per, steps) => {
          run += 1;
          const budget = {
            ...{ name: `spend${run}`, cost: 'args.id.size()' },
            ...{ per, within: '1d', max: MAX },
          };
          const tools = ['read_record', 'write_record'];
          const charged = tools.map((tool): Rule => {
            const limits = { budget };
            return { effect: 'allow', who: { anyone: true }, what: { tools: [tool] }, limits };
          });
          await apply(policy(charged));
          const spent = new Map<string, number>();
          for (const [index, { subject, tool, cost, era }] of steps.entries()) {
            const key = per === 'all' ? '' : subject;
            const before = spent.get(key) ?? 0;
            const may = before + cost <= MAX;
            const args = { id: 'x'.repeat(cost), ...(tool === 'write_record' && { text: 'y' }) };
            const params = { name: tool, arguments: args };
            const access = await accessOf(subject);
            const reply =
              era === 'stateless'
                ? await requestStateless(access, 'tools/call', params)
                : await (await openSession(access)).request('tools/call', params);
            const about = `step ${index} of ${JSON.stringify(steps)}`;
            if (may) {
              expect(reply.text, about).toContain(`${tool} ${args.id}`);
              spent.set(key, before + cost);
              allowed += 1;
            } else {
              expect(decisionOf(reply).reason, about).toBe('rate-limited');
              refused += 1;
            }
          }
        },
      );
      expect(Math.min(allowed, refused)).toBeGreaterThan(5);
    },
    TIMEOUT_MS,
  );
});
