// The controls of a response, each over ports of literals: a control that refuses or throws puts its refusal in
// the place of the response, nothing of which leaves, and the request has one record that says so.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { InspectionOutcome, WithholdReason } from '../../../src/inspection/responses.js';
import { refuseWith } from '../../../src/policy/decision.js';
import type { Catalog, DefinitionStatus, PinnedDefinition } from '../../../src/policy/definitions.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { Reason } from '../../../src/policy/reasons.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import { readJson } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import type { UpstreamResponse } from '../../../src/protocol/transport.js';
import type { OpenLease, Ports } from '../../../src/proxy/ports.js';
import { FREE_TURNS } from '../../support/timing.js';
import { catalog, policiesOf } from '../policy/samples.js';
import {
  encode,
  eventResponse,
  GOOD_STEPS,
  joinPorts,
  jsonResponse,
  type PartialPorts,
  type Replaced,
  type Run,
  refuseUse,
  requestOf,
  resultText,
  runRequest,
  SNAPSHOT,
  type Step,
  TOOL,
} from './pipeline-rig.js';

/** Stands in everything that the upstream sends, and in nothing that a client gets in its place. */
const CONTENT = 'content-of-the-upstream';
const TEXT_RESULT = { content: [{ type: 'text', text: CONTENT }] };

function sending(response: UpstreamResponse): PartialPorts {
  return { upstreams: { forward: () => Promise.resolve(response) } };
}

/** The result of a good call, under further ports and tables. */
function runResult(result: JsonObject, { ports = {}, ...more }: Replaced = {}): Promise<Run> {
  const sent = sending(jsonResponse(resultText(result)));
  return runRequest({ ...more, ports: joinPorts(sent, ports) });
}

/** That the response was replaced by a refusal with this reason. */
function expectWithheld(run: Run, reason: Reason): void {
  expect(run.sent).toHaveLength(1);
  expect(run.sent[0]?.body).not.toContain(CONTENT);
  expect(run.sent[0]?.body).toContain(`"reason":"${reason}"`);
  expect(run.records).toHaveLength(1);
  expect(run.records[0]?.decision).toMatchObject({
    verdict: 'allow',
    action: 'withheld',
    reasons: [reason],
  });
}

function stepsTo(last: Step): readonly Step[] {
  return [...GOOD_STEPS.slice(0, GOOD_STEPS.indexOf(last) + 1), 'send', 'close'];
}

function inspecting(message: Ports['inspection']['message']): PartialPorts {
  return { inspection: { message, request: () => ({ kind: 'clear', findings: [] }) } };
}

function withheld(reason: WithholdReason): InspectionOutcome {
  const finding = { detector: 'secret:x', direction: 'to-client', path: '', count: 1 } as const;
  return { kind: 'withhold', reason, findings: [{ ...finding, action: 'withhold' }] };
}

describe('the inspection of content', () => {
  it.each([
    ['result-content', 200],
    ['result-invalid', 200],
    ['result-too-large', 200],
    ['overloaded', 503],
    ['internal', 500],
  ] as const)('[PIP-03] that withholds with %s', async (reason, status) => {
    const run = await runResult(TEXT_RESULT, { ports: inspecting(() => withheld(reason)) });
    expectWithheld(run, reason);
    expect(run.sent[0]?.status).toBe(status);
    expect(run.steps).toEqual(GOOD_STEPS);
    expect(run.records[0]?.findings).toMatchObject([{ detector: 'secret:x', action: 'withhold' }]);
  });

  it('[PIP-03] that withholds later, on another thread', async () => {
    const run = await runResult(TEXT_RESULT, {
      ports: inspecting(() => Promise.resolve(withheld('result-content'))),
    });
    expectWithheld(run, 'result-content');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ] as const)('[PIP-03] that %s: nothing leaves', async (_how, message) => {
    const run = await runResult(TEXT_RESULT, { ports: inspecting(message) });
    expectWithheld(run, 'internal');
    expect(run.sent[0]?.status).toBe(500);
    expect(run.reported).toMatchObject([{ message: 'broken' }]);
  });

  it('[PIP-03] reads errors of the upstream too', async () => {
    const error = { code: -32603, message: CONTENT };
    const run = await runRequest({
      ports: {
        ...sending(jsonResponse(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))),
        ...inspecting(() => withheld('result-content')),
      },
    });
    expectWithheld(run, 'result-content');
  });

  it('[PIP-03] goes by the profile that a rule names; without it nothing leaves', async () => {
    const run = await runResult(TEXT_RESULT, {
      snapshot: { policies: requiring({ inspect: 'careful' }) },
    });
    expectWithheld(run, 'internal');
    expect(run.steps).toEqual(stepsTo('read response'));
  });
});

function requiring(more: { readonly inspect?: string; readonly maxResultBytes?: number }) {
  const about = { who: { anyone: true }, what: { upstreams: ['github'], tools: [TOOL] } } as const;
  return policiesOf([
    { id: 'all', effect: 'allow', ...about, limits: ONE_A_MINUTE },
    { id: 'careful', effect: 'require', ...about, ...more },
  ]);
}

const ONE_A_MINUTE = { rate: { count: 1, windowMs: 60_000 }, per: 'subject' } as const;

/** A catalog with one approved tool, changed. */
function catalogWith(changed: Partial<PinnedDefinition>): Catalog {
  const found = catalog({ tools: { [TOOL]: {} } });
  const { pinned } = found.statusOf('tool', TOOL);
  if (pinned === undefined) throw new Error('the tool is pinned');
  const standing: DefinitionStatus = {
    state: 'approved',
    pinned: { ...pinned, ...changed },
    observed: 'digest',
  };
  return { ...found, statusOf: () => standing };
}

describe('the size of a result', () => {
  it('[PIP-03] that a rule bounds is looked at before the content', async () => {
    const policies = requiring({ maxResultBytes: 10 });
    const run = await runResult(TEXT_RESULT, { snapshot: { policies } });
    expectWithheld(run, 'result-too-large');
    expect(run.steps).toEqual(stepsTo('read response'));
  });

  it('[PIP-03] beyond that of the upstream is not read', async () => {
    const run = await runRequest({
      ports: sending({ ...jsonResponse(CONTENT), readBody: () => 'too-large' }),
    });
    expectWithheld(run, 'result-too-large');
    expect(run.steps).toEqual(stepsTo('forward'));
  });
});

describe('the approved output schema', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const output = compileSchema(schema);
  if (!output.ok) throw new Error(output.why);
  const snapshot = { catalogFor: () => catalogWith({ output: output.schema }) };

  it.each([
    ['of another type', { ...TEXT_RESULT, structuredContent: { n: CONTENT } }],
    ['without what is required', { ...TEXT_RESULT, structuredContent: {} }],
    ['without structured content', TEXT_RESULT],
  ])('[PIP-03] withholds a result %s', async (_what, result) => {
    expectWithheld(await runResult(result, { snapshot }), 'result-invalid');
  });

  it('[PIP-03] lets a result pass that satisfies it', async () => {
    const run = await runResult({ ...TEXT_RESULT, structuredContent: { n: 1 } }, { snapshot });
    expect(run.sent).toMatchObject([{ status: 200, body: expect.stringContaining(CONTENT) }]);
  });

  it('[PIP-03] that cannot be looked up lets nothing leave', async () => {
    let isForwarded = false;
    const run = await runRequest({
      ports: {
        upstreams: {
          async forward() {
            isForwarded = true;
            return jsonResponse(resultText(TEXT_RESULT));
          },
        },
      },
      snapshot: {
        catalogFor() {
          if (isForwarded) throw new Error('broken');
          return catalogWith({});
        },
      },
    });
    expectWithheld(run, 'internal');
    expect(run.steps).toEqual(stepsTo('read response'));
  });
});

const toolOf = (name: string): JsonObject => ({ name, inputSchema: { type: 'object' } });

describe('the filter of lists', () => {
  const list = (tools: readonly JsonObject[], more: Replaced = {}): Promise<Run> =>
    runResult({ tools: [...tools] }, { incoming: requestOf('tools/list', {}), ...more });
  const shown = ({ sent }: Run): readonly string[] =>
    (JSON.parse(sent[0]?.body ?? '').result.tools as { name: string }[]).map(({ name }) => name);

  it('[PIP-03] shows what is approved and visible alone, once the page was noted', async () => {
    const run = await list([toolOf(CONTENT), toolOf(TOOL)]);
    expect(shown(run)).toEqual([TOOL]);
    expect(run.sent[0]?.body).not.toContain(CONTENT);
    expect(run.steps.slice(run.steps.indexOf('forward'))).toEqual([
      ...['forward', 'read response', 'note page', 'inspect response', 'send', 'close'],
    ]);
    expect(run.records[0]?.result.list).toMatchObject({ advertised: 2, visible: 1 });
  });

  it('[PIP-03] hides a definition that is not, byte for byte, the one that was last listed', async () => {
    const run = await list([toolOf(TOOL)], {
      ports: { inspection: { digest: () => 'another digest' } },
    });
    expect(shown(run)).toEqual([]);
  });

  it('[PIP-03] hides what policy does not list', async () => {
    const policies = policiesOf([{ id: 'one', effect: 'allow', who: { anyone: true }, what: { tools: ['other'] } }]);
    expect(shown(await list([toolOf(TOOL)], { snapshot: { policies } }))).toEqual([]);
  });

  it('[PIP-03] withholds what is no list', async () => {
    const run = await runResult(TEXT_RESULT, { incoming: requestOf('tools/list', {}) });
    expectWithheld(run, 'upstream-protocol');
  });

  it('[PIP-03] that cannot note a page shows nothing of it', async () => {
    const broken = (): never => {
      throw new Error('broken');
    };
    for (const ports of [{ upstreams: { notePage: broken } }, { inspection: { digest: broken } }]) {
      const run = await list([toolOf(CONTENT), toolOf(TOOL)], { ports });
      expectWithheld(run, 'internal');
      expect(run.reported).toMatchObject([{ message: 'broken' }]);
    }
  });

  it('[PRF-11] decides about the resources of a long page in turns of the event loop', async () => {
    let turns = 0;
    const allowed = ['repo://acme/one', 'repo://acme/two'];
    const others = Array.from({ length: 60 }, (_, at) => `repo://other/${at}/${'x/'.repeat(3_000)}`);
    const resources = [...allowed, ...others].map((uri) => ({ uri, name: 'a' }));
    const run = await runResult(
      { resources },
      {
        incoming: requestOf('resources/list', {}),
        snapshot: {
          limits: { ...SNAPSHOT.limits, maxResponseBytes: 1024 * 1024 },
          policies: policiesOf([
            {
              id: 'one',
              effect: 'allow',
              who: { anyone: true },
              what: { resources: ['repo://acme/*'] },
            },
          ]),
        },
        ports: {
          inspection: {
            loopScheduler: {
              ...FREE_TURNS,
              waitForTurn() {
                turns += 1;
                return undefined;
              },
            },
          },
        },
      },
    );
    const { result } = JSON.parse(run.sent[0]?.body ?? '') as {
      result: { resources: JsonObject[] };
    };
    expect(result.resources.map(({ uri }) => uri)).toEqual(allowed);
    expect(turns).toBeGreaterThanOrEqual(resources.length);
  });

  it('[PIP-03] withholds a list of whose rest the content may not pass', async () => {
    const run = await list([toolOf(TOOL)], { ports: inspecting(() => withheld('result-content')) });
    expectWithheld(run, 'result-content');
  });
});

describe('the pins of resources that a host runs', () => {
  const uri = 'ui://board/page.html';
  const contents = [{ uri, mimeType: 'text/html', text: CONTENT }];
  const read = (digest: string): Promise<Run> =>
    runResult(
      { contents },
      {
        incoming: requestOf('resources/read', { uri }),
        snapshot: { catalogFor: () => catalogWith({ digest: 'approved' }) },
        ports: { inspection: { digest: () => digest } },
      },
    );

  it('[PIP-03] let pass what is, byte for byte, approved', async () => {
    const run = await read('approved');
    expect(run.sent).toMatchObject([{ status: 200, body: expect.stringContaining(CONTENT) }]);
    expect(run.steps).not.toContain('note page');
  });

  it('[PIP-03] withhold any other content, and have it noted for all callers', async () => {
    const run = await read('changed');
    expect(run.sent).toHaveLength(1);
    expect(run.sent[0]?.body).not.toContain(CONTENT);
    expect(run.records[0]?.decision).toMatchObject({
      action: 'withheld',
      reasons: ['tool-changed'],
    });
    expect(run.steps.slice(-3)).toEqual(['note page', 'send', 'close']);
  });
});

describe('the reader of messages', () => {
  it.each([
    ['malformed-json', 'upstream-protocol'],
    ['duplicate-key', 'upstream-protocol'],
    ['too-deep', 'upstream-protocol'],
    ['too-many-values', 'result-too-large'],
    ['overloaded', 'overloaded'],
    ['internal', 'internal'],
  ] as const)('[PIP-03] that fails with %s', async (error, reason) => {
    let isForwarded = false;
    const run = await runRequest({
      ports: {
        upstreams: {
          async forward() {
            isForwarded = true;
            return jsonResponse(CONTENT);
          },
        },
        inspection: {
          readJson: (source) => (isForwarded || typeof source === 'string' ? { ok: false, error } : readJson(source)),
        },
      },
    });
    expectWithheld(run, reason);
  });

  it.each([
    ['the response to another request', { id: 2, result: TEXT_RESULT }],
    ['a request of the server', { id: 'x', method: 'sampling/createMessage', params: {} }],
    ['a result that is incomplete', { id: 1, result: { ...TEXT_RESULT, resultType: 'part' } }],
    ['both a result and an error', { id: 1, result: TEXT_RESULT, error: { code: 1, message: '' } }],
  ])('[PIP-03] takes for no response: %s', async (_what, message) => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    const run = await runRequest({ ports: sending(jsonResponse(text)) });
    expectWithheld(run, 'upstream-protocol');
    expect(run.steps).not.toContain('inspect response');
  });

  it.each([
    [401, 'upstream-credentials'],
    [403, 'upstream-credentials'],
    [205, 'upstream-protocol'],
    [302, 'upstream-protocol'],
  ] as const)('[PIP-03] reads no body of a response with status %i', async (status, reason) => {
    let released = 0;
    const response = { ...jsonResponse(CONTENT, status), readBody: refuseUse };
    const run = await runRequest({
      ports: sending({
        ...response,
        release() {
          released += 1;
        },
      }),
    });
    expectWithheld(run, reason);
    expect(released).toBe(1);
  });

  it('[PIP-03] takes a body of another type for none', async () => {
    const headers = { 'content-type': 'text/html' };
    const run = await runRequest({ ports: sending({ ...jsonResponse(CONTENT), headers }) });
    expectWithheld(run, 'upstream-protocol');
  });
});

describe('a response that is a stream', () => {
  const progress = (step: number, message: string): string =>
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'p', progress: step, message },
    });
  const { headers, ...request } = requestOf('tools/call', {
    name: TOOL,
    _meta: { progressToken: 'p' },
  });
  const incoming = { ...request, headers: { ...headers, accept: 'text/event-stream' } };
  const messagesOf = ({ sent }: Run): readonly JsonObject[] =>
    [...(sent[0]?.body ?? '').matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));

  /** Runs a stream of two steps and the result, the second of which the inspector does not let pass. */
  function runStream(second: Ports['inspection']['message']): Promise<Run> {
    return runRequest({
      incoming,
      ports: {
        ...sending(eventResponse(progress(1, 'first'), progress(2, CONTENT), resultText(TEXT_RESULT))),
        ...inspecting((input, upstream) =>
          input.text.includes('first') ? { kind: 'clean', findings: [], previousTail: '' } : second(input, upstream),
        ),
      },
    });
  }

  it.each([
    ['result-content', () => withheld('result-content')],
    ['result-content', () => Promise.resolve(withheld('result-content'))],
    [
      'internal',
      () => {
        throw new Error('broken');
      },
    ],
    ['internal', () => Promise.reject(new Error('broken'))],
  ] as const)('[PIP-03] ends with the refusal %s as its last event', async (reason, second) => {
    const run = await runStream(second);
    const messages = messagesOf(run);
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject({ params: { message: 'first' } });
    expect(messages[1]).toMatchObject({ id: 1 });
    expectWithheld(run, reason);
    expect(run.steps.slice(-2)).toEqual(['send', 'close']);
  });

  it('[PIP-03] ends with a refusal where the upstream ends it without a response', async () => {
    const run = await runRequest({
      incoming,
      ports: sending(eventResponse(progress(1, 'first'))),
    });
    expect(messagesOf(run)).toHaveLength(2);
    expectWithheld(run, 'upstream-protocol');
  });

  it('[PIP-03] ends with its response: what follows is not read', async () => {
    const run = await runRequest({
      incoming,
      ports: sending(eventResponse(resultText({ content: [] }), progress(1, CONTENT), resultText(TEXT_RESULT))),
    });
    expect(messagesOf(run)).toMatchObject([{ id: 1, result: { content: [] } }]);
    expect(run.sent[0]?.body).not.toContain(CONTENT);
    expect(run.records[0]?.decision).toMatchObject({ action: 'forwarded', reasons: [] });
  });

  /** Runs the rest of a response that is resumed. */
  function runResumed({ ports = {}, ...more }: Replaced): Promise<Run> {
    const target = { kind: 'tool', name: TOOL } as const;
    const asked = { id: 1, method: 'tools/call', target, maxResultBytes: undefined };
    const version = '2025-11-25';
    return runRequest({
      ...more,
      incoming: {
        httpMethod: 'GET',
        headers: {
          ...{ accept: 'text/event-stream', 'mcp-protocol-version': version },
          ...{ 'mcp-session-id': 'sealed', 'last-event-id': 'event' },
        },
      },
      ports: joinPorts(ports, {
        sessions: {
          open: () => ({
            ...{ version, target: { kind: 'upstream', id: undefined } },
            allowedServerRequests: ['roots'],
          }),
          events: {
            seal: () => undefined,
            open: () => ({
              ...{ upstreamId: '1', requestedAt: Date.now() },
              request: { ...asked, profiles: [] },
            }),
          },
        },
        streams: {
          registerResponse: () => () => undefined,
          reserve: () => ({ open: () => undefined, release: () => undefined }),
        },
      }),
    });
  }

  describe('whose client takes the response slowly', () => {
    const leases: OpenLease[] = [];
    const cancelled: unknown[] = [];
    const watched: PartialPorts = {
      leases: {
        register(lease) {
          leases.push(lease);
          return () => undefined;
        },
      },
      upstreams: { cancelAtServer: (_upstream, { id }) => void cancelled.push(id) },
    };
    const endWith = (reason: Reason) => () => leases.at(-1)?.end(refuseWith(reason));
    const passTime = () => void vi.advanceTimersByTime(SNAPSHOT.limits.exchangeMaxMs + 1);
    /** Makes it happen while the client takes the response. */
    const during = (happen: () => void) => async (text: string) => {
      if (text.includes('"id":1')) happen();
      await Promise.resolve();
    };

    beforeEach(() => {
      leases.length = 0;
      cancelled.length = 0;
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    });
    afterEach(() => void vi.useRealTimers());

    it.each<[string, () => void]>([
      ['a rule denies it', endWith('denied-by-rule')],
      ['its caller is revoked', endWith('token-revoked')],
      ['its time is over', passTime],
    ])('[PIP-03] is complete though %s meanwhile', async (_what, happen) => {
      const ports = joinPorts(watched, sending(eventResponse(resultText(TEXT_RESULT))));
      const run = await runRequest({ incoming, ports, take: during(happen) });
      expect(messagesOf(run)).toMatchObject([{ id: 1, result: TEXT_RESULT }]);
      expect(run.records[0]?.decision).toMatchObject({ action: 'forwarded', reasons: [] });
      expect(leases).toHaveLength(1);
    });

    it('[PIP-03] has one refusal in its place, whatever happens meanwhile', async () => {
      const run = await runRequest({
        incoming,
        ports: joinPorts(
          watched,
          sending(eventResponse(resultText(TEXT_RESULT))),
          inspecting(() => withheld('result-content')),
        ),
        take: during(endWith('denied-by-rule')),
      });
      expect(messagesOf(run)).toHaveLength(1);
      expectWithheld(run, 'result-content');
    });

    it('[PIP-03] is complete where it was resumed and its time is over meanwhile', async () => {
      const run = await runResumed({
        ports: joinPorts(watched, {
          upstreams: { openStream: async () => eventResponse(resultText({ content: [] })) },
        }),
        take: during(passTime),
      });
      expect(messagesOf(run)).toMatchObject([{ id: 1, result: { content: [] } }]);
      expect(run.records[0]?.decision).toMatchObject({ verdict: 'allow', reasons: [] });
      expect([cancelled, run.reported]).toEqual([[], []]);
    });
  });

  it('[PIP-03] records the outcome of each server request whose decision was written', async () => {
    const COUNT = 70;
    const asked = Array.from({ length: COUNT }, (_, id) =>
      JSON.stringify({ jsonrpc: '2.0', id: `q${id}`, method: 'roots/list' }),
    );
    const written: RequestRecord[] = [];
    const run = await runResumed({
      snapshot: {
        policies: policiesOf([
          {
            ...{ id: 'all', effect: 'allow', who: { anyone: true } },
            what: { upstreams: ['github'], tools: ['*'], roots: true },
          },
        ]),
      },
      ports: {
        upstreams: {
          openStream: async () => eventResponse(...asked, resultText({ content: [] })),
          replyToServer: () => undefined,
        },
        audit: {
          newDecisionId: () => 'decision',
          async recordDecision(record) {
            record.isDecisionWritten = true;
            written.push(record);
            return true;
          },
        },
        sessions: {
          serverRequests: {
            seal() {
              throw new Error('broken');
            },
            open: () => undefined,
            recall: () => undefined,
          },
        },
      },
    });
    // That of the stream is one of them.
    expect(written).toHaveLength(COUNT + 1);
    expect(written.filter((record) => !run.records.includes(record))).toEqual([]);
  });

  const ping = JSON.stringify({ jsonrpc: '2.0', id: 'p', method: 'ping' });

  it('[PIP-03] answers a ping, which is recorded as nothing that was dropped', async () => {
    const replies: unknown[] = [];
    const run = await runResumed({
      ports: {
        upstreams: {
          openStream: async () => eventResponse(ping, resultText({ content: [] })),
          replyToServer: (_upstream, { id }, reply) => void replies.push([id, reply]),
        },
      },
    });
    expect(replies).toEqual([['p', 'pong']]);
    expect(messagesOf(run)).toMatchObject([{ id: 1 }]);
    expect(run.records[0]?.findings).toEqual([]);
  });

  it('[LEG-10] that falls silent where it was resumed is cancelled at the server', async () => {
    const cancelled: unknown[] = [];
    const run = await runResumed({
      ports: {
        upstreams: {
          openStream: async () => ({ ...eventResponse(), next: () => 'upstream-timeout' }),
          cancelAtServer: (_upstream, { id }) => void cancelled.push(id),
        },
      },
    });
    expect(messagesOf(run)).toMatchObject([{ id: 1, error: { code: 1505 } }]);
    expect(cancelled).toEqual([1]);
  });

  it('[LEG-10] that falls silent in a session is cancelled at the server', async () => {
    const version = '2025-11-25';
    const cancelled: unknown[] = [];
    const params = { name: TOOL, arguments: {} };
    const run = await runRequest({
      incoming: {
        headers: { 'mcp-protocol-version': version, 'mcp-session-id': 'sealed' },
        body: encode(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })),
      },
      snapshot: { supportedVersions: { sessions: [version], stateless: [] } },
      ports: joinPorts(sending({ ...eventResponse(), next: () => 'upstream-timeout' }), {
        sessions: { open: () => ({ version, target: { kind: 'upstream', id: 's' } }) },
        streams: { registerResponse: () => () => undefined },
        upstreams: { cancelAtServer: (_upstream, { id }) => void cancelled.push(id) },
      }),
    });
    expect(messagesOf(run)).toMatchObject([{ id: 1, error: { code: 1505 } }]);
    expect(cancelled).toEqual([1]);
  });

  /** Runs the stream of a session, on which the upstream sends this. */
  function runSessionStream(sent: readonly string[], ports: PartialPorts = {}): Promise<Run> {
    const version = '2025-11-25';
    return runRequest({
      incoming: {
        httpMethod: 'GET',
        headers: {
          ...{ accept: 'text/event-stream', 'mcp-protocol-version': version },
          'mcp-session-id': 'sealed',
        },
      },
      ports: joinPorts(ports, {
        sessions: { open: () => ({ version, target: { kind: 'upstream', id: undefined } }) },
        streams: { reserve: () => ({ open: () => undefined, release: () => undefined }) },
        upstreams: { openStream: async () => eventResponse(...sent) },
      }),
    });
  }

  it.each<[string, string, string, PartialPorts]>([
    ['is no JSON', '{', 'malformed-message', {}],
    [
      'is not read for want of room',
      ping,
      'unread-message',
      { inspection: { readJson: () => ({ ok: false, error: 'overloaded' }) } },
    ],
    [
      'is withheld',
      JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} }),
      'withheld-notice',
      inspecting(() => ({ kind: 'withhold', reason: 'overloaded', findings: [] })),
    ],
  ])('[PIP-03] that no request opened: what %s is dropped on record', async (_what, text, detector, ports) => {
    const run = await runSessionStream([text], ports);
    expect(messagesOf(run)).toEqual([]);
    expect(run.records[0]?.findings).toMatchObject([{ detector, action: 'drop', count: 1 }]);
  });
});
