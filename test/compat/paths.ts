// The ways of a message: that what is decided about content holds in streams, batches, aggregates and behind HTTP+SSE, and
// what becomes of servers that are away, that redirect, or that are deployed twice.

import { expect } from 'vitest';
import {
  type Deployment,
  findShadowingOf,
  type UpstreamDefinitions,
} from '../../src/inspection/definitions/shadowing.js';
import { startMergedRig } from '../support/deployments.js';
import {
  body,
  onMethod,
  redirectTo,
  resultFor,
  serverRequestInStream,
  stream,
  textResult,
} from '../support/hostile-acts.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  callStateless,
  errorOf,
  initialize,
  post,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { untilTestEnds, withGateway, withStarted } from '../support/with-gateway.js';
import { type CompatRow, type World, withWorld } from './rig.js';

/** What kind `code` leaves, and `auto` makes inert. */
const SOURCE = '<script>run()</script>\n![a](https://collect.example/a.png?x=1)\n';
const OFF = 'pinning: {mode: "off"}';
const CODE = 'content: {kind: code}';

function textsOf(reply: Reply): readonly unknown[] {
  const { content } = resultOf(reply);
  return (content as readonly JsonObject[]).map(({ text }) => text);
}

/** A call that is answered with the source, with these members of the upstream. */
function withSource(upstream: readonly string[], test: (world: World) => Promise<void>): Promise<void> {
  const result = (): JsonObject => textResult(SOURCE);
  return withWorld({ upstream: [OFF, ...upstream], result }, test);
}

/** A policy that allows every caller these tools alone. */
function allowOnly(tools: readonly string[]): string {
  return `version: 1
policy: some
rules:
  - {id: a, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ${JSON.stringify(tools)}}}
`;
}

const read = { name: 'read_record', arguments: { id: 'one' } };

const forms = [
  { city: { type: 'string', title: 'City' } },
  { tokens: { type: 'integer', title: 'How many tokens?', minimum: 1 } },
  { colour: { type: 'string', enum: ['red', 'green'], title: 'Colour' } },
  { address: { type: 'string', title: 'Address of the delivery' } },
  { name: { type: 'string', title: 'Type the name of the repository to delete it' } },
];

export const rows: readonly CompatRow[] = [
  {
    id: 'kind-code-in-a-stream',
    area: 'content',
    source: 'docs/guides/content.md, kinds',
    given: 'A server whose content is of kind code sends a file as the last event of a stream.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () =>
      withSource([CODE], async (world) => {
        world.upstream.obey(onMethod('tools/call', (request) => stream([resultFor(request, textResult(SOURCE))])));
        expect(textsOf(await world.call('read_record', { id: 'one' }))).toEqual([SOURCE]);
      }),
  },
  {
    id: 'kind-code-in-a-batch',
    area: 'content',
    source: 'MCP 2025-03-26, base protocol (batching)',
    given: 'A client of 2025-03-26 reads two files of kind code in one batch.',
    verdict: 'accepts',
    sees: 'Both come with every character.',
    run: () =>
      withSource([CODE], async ({ access }) => {
        const version = '2025-03-26';
        const params = {
          protocolVersion: version,
          capabilities: {},
          clientInfo: { name: 'c', version: '1' },
        };
        const opened = await post(access, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
        const id = opened.headers.get('mcp-session-id') ?? '';
        const calls = [2, 3].map((one) => {
          return { jsonrpc: '2.0', id: one, method: 'tools/call', params: read };
        });
        const headers = { ...sessionHeaders(id), 'mcp-protocol-version': version };
        const { text } = await post(access, JSON.stringify(calls), headers);
        expect(text.split(JSON.stringify(SOURCE))).toHaveLength(3);
      }),
  },
  {
    id: 'kind-code-in-an-aggregate',
    area: 'content',
    source: 'docs/guides/content.md, kinds',
    given: 'One backend of an aggregate is of kind code, and the other is not.',
    verdict: 'changes',
    sees: 'The file of the first comes with every character, and in the text of the other what would act is inert.',
    run: () =>
      withStarted(
        () =>
          startMergedRig({
            upstream: ['pinning: {maxAge: 10m}', 'content: {tools: {read_record: code}}'],
            prepare: (...both) => {
              for (const one of both) one.answerCalls(() => textResult(SOURCE));
            },
          }),
        async (rig) => {
          const args = { id: 'one' };
          const unchanged = await callStateless(rig.access, 'l_read_record', args);
          expect(textsOf(unchanged)).toEqual([SOURCE]);
          const inert = await callStateless(rig.access, 'right_write_record', { ...args, text: 'x' });
          expect(textsOf(inert)).toEqual(['&lt;script>run()</script>\n!\\[a](https://collect.example/a.png?x=1)\n']);
        },
      ),
  },
  {
    id: 'kind-code-behind-http-sse',
    area: 'content',
    source: 'MCP 2024-11-05, transports',
    given: 'Backends of an aggregate that are reached over HTTP+SSE return files of kind code.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () =>
      withStarted(
        () =>
          startMergedRig({
            behindChannels: true,
            upstream: ['pinning: {maxAge: 10m}', CODE],
            prepare: (...both) => {
              for (const one of both) one.answerCalls(() => textResult(SOURCE));
            },
          }),
        async (rig) => {
          const reply = await callStateless(rig.access, 'l_read_record', { id: 'one' });
          expect(textsOf(reply)).toEqual([SOURCE]);
        },
      ),
  },
  {
    id: 'backend-that-is-away',
    area: 'servers',
    source: 'davealtena/homelab#1963 (ToolHive)',
    given: 'One of the servers behind an aggregate has gone.',
    verdict: 'accepts',
    sees: 'The tools of the others are listed and can be called.',
    run: () =>
      withStarted(
        () => startMergedRig(),
        async (rig) => {
          await rig.left.close();
          const listed = toolNames(await requestStateless(rig.access, 'tools/list'));
          expect(listed).toContain('right_read_record');
          const reply = await callStateless(rig.access, 'right_read_record', { id: 'one' });
          expect(reply.text).toContain('read_record one');
        },
      ),
  },
  {
    id: 'server-that-was-never-listed',
    area: 'servers',
    source: 'docs/reference/responses.md',
    given: 'A server is down since the gateway started, and a client calls an approved tool of it.',
    verdict: 'refuses',
    sees: 'An error that says the server may be unreachable; a tool that is hidden or unknown is "not found" as ever.',
    run: async () => {
      for (const mode of ['strict', 'trust-on-first-use']) {
        const policies = { some: allowOnly(['read_record']) };
        const isFirstUse = mode !== 'strict';
        const upstream = await untilTestEnds(startHostileUpstream());
        let toolLists = 0;
        let isDown = isFirstUse;
        upstream.obey(({ method }) => {
          // The listing of the pins is over when another one begins.
          if (toolLists > 0 && (method === 'server/discover' || method === 'initialize')) isDown ||= toolLists > 1;
          if (method === 'tools/list') toolLists += 1;
          return isDown ? { kind: 'destroy' } : undefined;
        });
        await withGateway(
          {
            policies,
            pin: !isFirstUse,
            upstreams: [{ name: 'u', url: upstream.url, more: [`pinning: {mode: ${mode}}`] }],
          },
          async (gateway) => {
            const access = { url: gateway.url('u'), token: await gateway.token('u') };
            const call = (name: string) => callStateless(access, name, { id: 'one', text: 'x' });
            const reply = await call('read_record');
            expect([reply.status, errorOf(reply)['message']]).toEqual([
              503,
              expect.stringContaining('may be unreachable'),
            ]);
            const unknown = await call('no_such_tool');
            expect([unknown.status, errorOf(unknown)['code']]).toEqual([200, -32602]);
            const hidden = await call('write_record');
            const anonymous = ({ text }: Reply) =>
              text.replace(/[0-9a-f-]{36}/, '').replaceAll(/no_such_tool|write_record/g, '');
            expect(anonymous(hidden)).toBe(anonymous(unknown));
            isDown = false;
            toolLists = -1_000;
            await expect
              .poll(async () => (await callStateless(access, 'read_record', { id: 'one' })).status, {
                timeout: 20_000,
              })
              .toBe(200);
          },
        );
      }
    },
  },
  {
    id: 'server-that-redirects',
    area: 'servers',
    source: 'mcptools#69',
    given: 'A server redirects from `/mcp` to `/mcp/`.',
    verdict: 'refuses',
    sees: 'The call fails with 502, because credentials follow no redirect; the audit log names where it leads.',
    run: () =>
      withWorld({}, async (world) => {
        world.upstream.obey(onMethod('tools/call', () => redirectTo('https://other.example/mcp/?token=1', 307)));
        expect((await world.call('read_record', { id: 'one' })).status).toBe(502);
        const written = async () => JSON.stringify(await world.gateway.audit());
        await expect.poll(written).toContain('redirect to https://other.example/mcp/');
        expect(await written()).not.toContain('token=1');
      }),
  },
  {
    id: 'json-with-the-type-of-a-stream',
    area: 'servers',
    source: 'envoyproxy/ai-gateway#2218',
    given: 'A server labels a plain JSON body as `text/event-stream`.',
    verdict: 'refuses',
    sees: 'The call fails with an error, because no event of the stream answers it.',
    run: () =>
      withWorld({}, async (world) => {
        world.upstream.obey(
          onMethod('tools/call', (request) =>
            body(JSON.stringify(resultFor(request, textResult('ok'))), 'text/event-stream'),
          ),
        );
        const reply = await world.call('read_record', { id: 'one' });
        expect(errorOf(reply)).toMatchObject({ data: expect.anything() });
        expect(reply.text).not.toContain('"ok"');
      }),
  },
  {
    id: 'rule-on-a-nested-claim',
    area: 'clients',
    source: 'agentgateway, examples/mcp-authorization',
    given: 'A rule allows a tool only for a nested claim of the caller, and the caller has another value.',
    verdict: 'refuses',
    sees: 'The tool is neither listed nor found, because an expression about the caller alone belongs to who.',
    run: () =>
      withWorld(
        {
          policies: {
            nested: `version: 1
policy: nested
rules:
  - id: everyone-reads
    effect: allow
    who: {anyone: true}
    what: {upstreams: [u], tools: [read_record]}
  - id: some-write
    effect: allow
    who: {anyone: true}
    what: {upstreams: [u], tools: [write_record]}
    when: 'has(principal.claims.nested) && principal.claims.nested.key == "value"'
`,
          },
        },
        async (world) => {
          const refused = await world.call('write_record', { id: 'one', text: 'x' });
          expect(errorOf(refused)).toMatchObject({ code: -32602, message: 'Unknown tool. Request the list again.' });
          expect(world.upstream.seen().filter(({ method }) => method === 'tools/call')).toEqual([]);
        },
      ),
  },
  {
    id: 'elicitation-forms',
    area: 'messages',
    source: 'MCP 2025-11-25, elicitation',
    given: 'A server asks for a city, a number of tokens, a colour, an address, or a name to confirm.',
    verdict: 'accepts',
    sees: 'A client that declares elicitation gets each form, where a rule grants it.',
    run: () =>
      withWorld(
        {
          policies: {
            asked: `version: 1
policy: asked
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: [u], tools: ["*"], elicitation: [form]}
`,
          },
        },
        async (world) => {
          for (const properties of forms) {
            const requestedSchema = { type: 'object', properties };
            const opened = await initialize(world.access, { elicitation: {} });
            const headers = sessionHeaders(opened.headers.get('mcp-session-id') ?? '');
            world.upstream.obey(
              onMethod('tools/call', (request) =>
                serverRequestInStream(request, 'elicitation/create', {
                  message: 'Please fill this in.',
                  requestedSchema,
                }),
              ),
            );
            const call = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: read };
            const { text } = await post(world.access, JSON.stringify(call), headers);
            expect(text).toContain(JSON.stringify(properties));
          }
        },
      ),
  },
  {
    id: 'same-server-twice',
    area: 'definitions',
    source: 'CopilotKit#2409, dust-tt/dust#22795',
    given: 'One server is deployed twice, and the second upstream says `sameAs` the first.',
    verdict: 'accepts',
    sees: 'Its identical definitions are one note, and without that line one finding for a person to look at.',
    run: () => {
      const names = ['get_issue', 'list_issues', 'close_issue'];
      const of = (upstream: string): UpstreamDefinitions => ({
        upstream,
        definitions: names.map((name) => {
          const definition = { name, description: `Does ${name} in the tracker of a project.` };
          return { kind: 'tool' as const, name, definition };
        }),
      });
      const tiersWith = (sameAs: string | undefined): readonly string[] => {
        const deployment: Deployment = {
          upstreams: [
            { name: 'prod', host: 'prod.example', sameAs: undefined },
            { name: 'staging', host: 'staging.example', sameAs },
          ],
          aggregates: [],
        };
        const own = of('staging');
        return findShadowingOf({
          ...{ own, asked: own.definitions, others: [of('prod')] },
          ...{ exceptions: [], today: '2026-01-01', deployment },
        }).map(({ tier }) => tier);
      };
      expect(tiersWith('prod')).toEqual(['note']);
      expect(tiersWith(undefined)).toEqual(['review']);
    },
  },
];
