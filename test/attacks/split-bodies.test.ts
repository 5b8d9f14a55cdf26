// Case 71: bodies that are cut into pieces anywhere: within a character, an escape, a line end, a name.
// Whatever the pieces, client and upstream get what they get of the whole.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { onMethod, resultFor } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { makeGithubToken } from '../support/secrets.js';
import { bearer, callStateless, type OpenSession, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const AT_ONCE = 24;
const JSON_TYPE = 'application/json';
const SSE_TYPE = 'text/event-stream';

/** One text with everything that a cut could break: long characters, escapes, a secret, active content. */
function textFor(secret: string): string {
  return `naïve 漢字 😀 "quoted" \\ \u2028 ${secret} ![x](https://collector.example/p.png)\nend`;
}

describe('a body in pieces', () => {
  const secret = makeGithubToken();
  let session: OpenSession;

  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.obey(onMethod('tools/call', (request) => (isCut(request) ? cutAnswer(request) : undefined) as Act));
  });

  // The upstream is told in the argument of the call how to cut its answer.

  type Cut = { readonly kind: 'json' | 'sse'; readonly at: readonly number[] | 'everywhere' };

  function isCut(request: HostileRequest): boolean {
    return argumentOf(request)?.startsWith('{') === true;
  }

  function argumentOf(request: HostileRequest): string | undefined {
    const params = request.message?.['params'] as JsonObject | undefined;
    const args = params?.['arguments'] as JsonObject | undefined;
    return args?.['id'] as string | undefined;
  }

  function completeBody(request: HostileRequest, kind: Cut['kind']): Buffer {
    const content = [{ type: 'text', text: textFor(secret) }];
    const result = JSON.stringify(resultFor(request, { content }))
      // Escapes as some writers make them, so that cuts fall within them too.
      .replace('漢', '\\u6f22')
      .replace('😀', '\\ud83d\\ude00');
    if (kind === 'json') return Buffer.from(` ${result}\r\n`);
    const [head, tail] = [result.slice(0, 17), result.slice(17)];
    return Buffer.from(
      `\ufeff: 漢字 😀\r\nretry: 10\r\n\r\nevent: other\ndata: {}\n\nid: 1\revent: message\r` +
        `data: ${head}\r\ndata:${tail}\r\n\r\n`,
    );
  }

  function cutAnswer(request: HostileRequest): Act {
    const { kind, at } = JSON.parse(argumentOf(request) ?? '') as Cut;
    const bytes = completeBody(request, kind);
    const edges = at === 'everywhere' ? bytes.keys() : at.map((one) => one % bytes.byteLength);
    const sorted = [...new Set([0, ...edges])].sort((one, other) => one - other);
    const chunks = sorted.map((edge, index) => bytes.subarray(edge, sorted[index + 1]));
    const contentType = kind === 'json' ? JSON_TYPE : SSE_TYPE;
    return { kind: 'chunks', contentType, chunks, ending: 'end' };
  }

  type Outcome = { readonly status: number; readonly type: string | null; readonly text: string };

  async function call(era: '2025' | '2026', cut: Cut): Promise<Outcome> {
    const args = { id: JSON.stringify(cut) };
    const reply = await (era === '2025'
      ? session.call('read_record', args)
      : callStateless(rig.access, 'read_record', args));
    // Event ids are sealed anew each time; that there is one, and where, must not depend on the cut.
    const text = reply.text.replace(/^id: \S+$/gm, 'id: *');
    return { status: reply.status, type: reply.headers.get('content-type'), text };
  }

  async function inParallel(count: number, run: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await run(next++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  function lengthOf(kind: Cut['kind']): number {
    return completeBody({ id: 1 } as HostileRequest, kind).byteLength;
  }

  const variants = (['2025', '2026'] as const).flatMap((era) =>
    (['json', 'sse'] as const).map((kind) => ({ era, kind })),
  );

  it.each(variants)('[X-71] is answered as a whole: $kind in $era, whole', async ({ era, kind }) => {
    const unsplit = await call(era, { kind, at: [] });
    expect(unsplit.status).toBe(200);
    expect(unsplit.type).toContain(kind === 'json' ? JSON_TYPE : SSE_TYPE);
    expect(unsplit.text).toContain('[redacted:');
    expect(unsplit.text).toMatch(/!\\+\[x\]/);
    expect(unsplit.text).not.toContain(secret);
  });

  it.each(variants)('[X-71] is answered alike cut in two at any byte: $kind in $era', async ({ era, kind }) => {
    const unsplit = await call(era, { kind, at: [] });
    const length = lengthOf(kind);
    expect(length).toBeGreaterThan(200);
    await inParallel(length - 1, async (index) => {
      const outcome = await call(era, { kind, at: [index + 1] });
      expect(outcome, `cut at ${index + 1}`).toEqual(unsplit);
    });
  });

  it.each(variants)('[X-71] is answered alike byte by byte: $kind in $era', async ({ era, kind }) => {
    const unsplit = await call(era, { kind, at: [] });
    expect(await call(era, { kind, at: 'everywhere' })).toEqual(unsplit);
  });

  it.each(variants)('[X-71] is answered alike in any pieces: $kind in $era', async ({ era, kind }) => {
    const unsplit = await call(era, { kind, at: [] });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(lengthOf(kind) - 1), { maxLength: 12 }), async (at) => {
        expect(await call(era, { kind, at })).toEqual(unsplit);
      }),
      { numRuns: 60 },
    );
  });

  // The same on the way in: the pieces are separate writes of the client.

  function postInPieces(body: Buffer, at: readonly number[]): Promise<Outcome> {
    const { headers } = statelessParts('tools/call', { name: 'read_record' });
    const edges = [0, ...at];
    return new Promise((resolve, reject) => {
      const sent = httpRequest(rig.access.url, {
        method: 'POST',
        agent: false,
        headers: {
          accept: `${JSON_TYPE}, ${SSE_TYPE}`,
          'content-type': JSON_TYPE,
          'content-length': body.byteLength,
          ...bearer(rig.access.token),
          ...headers,
        },
      });
      sent.once('error', reject);
      sent.once('response', (response) => readOutcome(response).then(resolve, reject));
      const write = async (): Promise<void> => {
        for (const [index, edge] of edges.entries()) {
          sent.write(body.subarray(edge, edges[index + 1]));
          await sleep(1);
        }
        sent.end();
      };
      write().catch(reject);
    });
  }

  async function readOutcome(response: IncomingMessage): Promise<Outcome> {
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const { statusCode = 0, headers } = response;
    return { status: statusCode, type: headers['content-type'] ?? null, text };
  }

  function requestBody(id: Json): Buffer {
    const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id } });
    return Buffer.from(JSON.stringify(parts.body).replace('漢', '\\u6f22'));
  }

  const withoutDecision = (outcome: Outcome): Outcome => ({
    ...outcome,
    text: outcome.text.replace(/"id":"[0-9a-f-]{36}"/, '"id":"*"'),
  });

  it('[X-71] reaches the upstream as it was sent, cut at any byte', async () => {
    const body = requestBody('naïve 漢字 😀 "quoted"');
    const unsplit = await postInPieces(body, []);
    expect(unsplit).toMatchObject({ status: 200 });
    rig.upstream.forget();
    await inParallel(body.byteLength - 1, async (index) => {
      expect(await postInPieces(body, [index + 1]), `cut at ${index + 1}`).toEqual(unsplit);
    });
    const seen = rig.upstream.uses().map((request) => request.body);
    expect(seen).toHaveLength(body.byteLength - 1);
    expect(new Set(seen)).toEqual(new Set([body.toString('utf8')]));
  });

  it('[X-71] is refused alike, cut at any byte', async () => {
    const text = requestBody('safe').toString('utf8');
    const body = Buffer.from(text.replace('"id":"safe"', '"id":"safe","\\u0069d":"evil"'));
    const unsplit = withoutDecision(await postInPieces(body, []));
    expect(unsplit).toMatchObject({ status: 400 });
    rig.upstream.forget();
    await inParallel(body.byteLength - 1, async (index) => {
      expect(withoutDecision(await postInPieces(body, [index + 1]))).toEqual(unsplit);
    });
    expect(rig.upstream.uses()).toEqual([]);
  });
});
