// Trace context as an attack: forged, oversized or ambiguous contexts, context that carries data, names that would become
// spans, and receivers of spans that misbehave. Source: W3C Trace Context §3.2.2 and §4.3; docs/reference/traces.md.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { decisionOf, linesOf } from '../support/gateway.js';
import type { Json } from '../support/json.js';
import { startOtlpReceiver, tracingTo } from '../support/otlp-receiver.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, post, requestStateless, statelessParts } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const FOREIGN = 'a1'.repeat(16);
const SPAN = 'b2'.repeat(8);
const FORM = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/;
const MEGABYTE = 1_000_000;
const CONTINUED = ['algorithms: [ES256, RS256]', 'traceContext: continued'];

const receiver = shared(startOtlpReceiver);
afterEach(() => receiver.forget());

const FORGED: readonly (readonly [string, Json])[] = [
  ['upper case', `00-${FOREIGN.toUpperCase()}-${SPAN}-01`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${FOREIGN}-${'0'.repeat(16)}-01`],
  ['the forbidden version', `ff-${FOREIGN}-${SPAN}-01`],
  ['more behind the version 00', `00-${FOREIGN}-${SPAN}-01-more`],
  ['too short', `00-${FOREIGN.slice(1)}-${SPAN}-01`],
  ['other digits', `00-${FOREIGN.replace(/a/g, 'g')}-${SPAN}-01`],
  ['a line end', `00-${FOREIGN}-${SPAN}-01\n`],
  ['a megabyte', `01-${FOREIGN}-${SPAN}-01-${'x'.repeat(MEGABYTE)}`],
  ['a number', 7],
  ['a list', [`00-${FOREIGN}-${SPAN}-01`]],
  ['nothing', ''],
];

describe('a trace that a caller names', () => {
  const rig = sharedGateway(() => ({ more: tracingTo(receiver), issuer: CONTINUED }));
  afterEach(() => rig.upstream.forget());

  function expectOwn(): void {
    const [sent] = rig.upstream.uses();
    expect(sent?.headers['traceparent']).toMatch(FORM);
    expect(sent?.body.toLowerCase()).not.toContain(FOREIGN);
    expect(sent?.headers['traceparent']).not.toContain(FOREIGN);
  }

  it.each(FORGED)('[TRC-08] in the message is no context: %s', async (_what, traceparent) => {
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { traceparent });
    expect(reply.message).toHaveProperty('result.content');
    expectOwn();
  });

  it.each(FORGED.filter(([, value]) => typeof value === 'string' && value.length < 200 && !value.endsWith('\n')))(
    '[TRC-08] in the header is no context: %s',
    async (_what, traceparent) => {
      const headers = { traceparent: String(traceparent) };
      await callStateless(rig.access, 'read_record', { id: 'one' }, {}, { headers });
      expectOwn();
    },
  );

  it('[TRC-08] in two headers is no context', async () => {
    const { headers, body } = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
    const twice = `00-${FOREIGN}-${SPAN}-01, 00-${FOREIGN}-${SPAN}-01`;
    await post(rig.access, JSON.stringify(body), { ...headers, traceparent: twice });
    expectOwn();
  });

  it('[TRC-08, X-97] carries nothing on beside its ids, however long and in whatever case it is spelt', async () => {
    const text = 'carried-by-a-trace'.repeat(MEGABYTE / 18 / 6);
    const meta = { tracestate: `a=${text}`, baggage: `b=${text}`, Baggage: text, TraceState: text, Traceparent: text };
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, meta);
    expect(reply.status).toBe(200);
    expect(rig.upstream.uses()[0]?.body).not.toContain('carried-by-a-trace');
    const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(JSON.stringify(lines)).not.toContain('carried-by-a-trace');
  });

  it('[TRC-08] may hold what would be refused elsewhere, because it goes nowhere', async () => {
    const secret = makeGithubToken();
    const meta = { baggage: `token=${secret}` };
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, meta);
    expect(reply.message).toHaveProperty('result.content');
    expect(rig.upstream.uses()[0]?.body).not.toContain(secret);
  });
});

describe('[TRC-09] spans', () => {
  const rig = sharedGateway(() => ({ more: tracingTo(receiver) }));

  it('have no word that a caller or an upstream wrote', async () => {
    const secret = makeGithubToken();
    rig.upstream.answerCalls(() => ({ content: [{ type: 'text', text: `the result ${secret}` }] }));
    const replies = [
      await callStateless(rig.access, `tool-${secret}`),
      await callStateless(
        rig.access,
        'read_record',
        { id: `id-${secret.slice(4)}` },
        { 'com.example/note': 'noted-here' },
      ),
      await requestStateless(rig.access, 'resources/read', { uri: `memo://${secret}?q=queried-here` }),
      await requestStateless(rig.access, 'prompts/get', { name: `prompt-${secret}` }),
      await requestStateless(rig.access, 'invented/method', {}),
      await post({ ...rig.access, token: `${rig.access.token}x` }, '{}', {}),
    ];
    rig.upstream.repent();
    const ids = replies.map((reply) => decisionOf(reply).id);
    const seen = () => receiver.spans().flatMap(({ attributes }) => attributes['sallyport.decision.id'] ?? []);
    await expect.poll(seen, PATIENT).toEqual(expect.arrayContaining(ids));
    const sent = JSON.stringify(receiver.requests().map(({ body }) => body));
    for (const word of [
      secret,
      secret.slice(4),
      'noted-here',
      'queried-here',
      'memo:',
      'invented',
      'alice',
      'the result',
    ])
      expect(sent).not.toContain(word);
    expect(sent).not.toContain(rig.access.token ?? '');
    const names = receiver.spans().map(({ attributes }) => attributes['gen_ai.tool.name']);
    expect(names).toContain('_OTHER');
  });
});

describe('[TRC-09] a receiver of spans', () => {
  const rig = sharedGateway(() => ({
    more: tracingTo(receiver).replace('network:', 'timeout: 300ms, network:'),
  }));
  const control = async () =>
    /sallyport_controls\{control="tracing",state="(\w+)"\} 1/.exec(await rig.gateway.metrics())?.[1];

  const MISBEHAVING: readonly (readonly [string, string, (response: ServerResponse) => void])[] = [
    ['hangs', 'did not answer in time', () => undefined],
    ['breaks off', 'could not be reached', (response) => response.destroy()],
    ['refuses', 'answered with status 401', (response) => response.writeHead(401).end('no')],
    [
      'never ends its answer',
      'answered with status 500',
      (response) => {
        response.writeHead(500);
        const timer = setInterval(() => response.write('x'.repeat(100_000)), 1);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ];

  it.each(MISBEHAVING)('that %s delays no call, and the control says so: it %s', async (_what, reason, answer) => {
    receiver.answer(answer);
    for (let count = 0; count < 5; count += 1) {
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.message).toHaveProperty('result.content');
    }
    await expect.poll(() => rig.gateway.log(), PATIENT).toContain(`spans do not arrive: the receiver ${reason}`);
    await expect.poll(control, PATIENT).toBe('degraded');
  });

  it('is used again once it behaves', async () => {
    await callStateless(rig.access, 'read_record', { id: 'one' });
    await expect.poll(control, PATIENT).toBe('armed');
  });

  it('that redirects is not followed', async () => {
    let hits = 0;
    const elsewhere = createServer((_request, response) => {
      hits += 1;
      response.end();
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    const { port } = elsewhere.address() as AddressInfo;
    receiver.answer((response) => response.writeHead(307, { location: `http://127.0.0.1:${port}/v1/traces` }).end());
    await callStateless(rig.access, 'read_record', { id: 'one' });
    await expect.poll(control, PATIENT).toBe('degraded');
    elsewhere.close();
    expect(hits).toBe(0);
    expect(rig.gateway.log()).not.toContain(String(port));
  });
});
