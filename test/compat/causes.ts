// What a refusal names, so that a person or a model can act on it, and what it never quotes.

import { expect } from 'vitest';
import type { Act } from '../support/hostile-upstream.js';
import { makeGithubToken } from '../support/secrets.js';
import { type CompatRow, withWorld } from './rig.js';

export const rows: readonly CompatRow[] = [
  {
    id: 'token-that-lives-too-long',
    area: 'clients',
    source: 'docs/reference/authorization.md',
    given: 'A token lives for a day where the issuer may give it an hour.',
    verdict: 'refuses',
    sees: 'The status is 401; log and audit log name the lifetime and the maximum.',
    run: () =>
      withWorld({}, async ({ access, gateway, openSession }) => {
        await openSession();
        const iat = Math.floor(Date.now() / 1000);
        const token = await gateway.token('u', { iat, exp: iat + 86_400 });
        const response = await fetch(access.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
          body: '{}',
        });
        expect(response.status).toBe(401);
        const lines = async () => (await gateway.audit()).filter(({ type }) => type === 'auth.failure');
        await expect.poll(lines).toHaveLength(1);
        expect((await lines())[0]?.['detail']).toMatchObject({
          expected_lifetime: '3600s',
          presented_lifetime: '86400s',
        });
        await expect.poll(() => gateway.log()).toContain('lifetime 86400s, maximum 3600s');
      }),
  },
  {
    id: 'secret-in-arguments',
    area: 'clients',
    source: 'docs/reference/responses.md',
    given: 'Arguments hold a secret that may not be sent to the server.',
    verdict: 'refuses',
    sees: 'The refusal, the log and the audit record name the place and the detector, never the value.',
    run: () =>
      withWorld({}, async ({ gateway, openSession, upstream }) => {
        const session = await openSession();
        const secret = makeGithubToken();
        const reply = await session.call('write_record', { id: 'one', text: `use ${secret}` });
        expect(reply.text).toContain('Found at /arguments/text (secret:github-token).');
        expect(reply.text).not.toContain(secret);
        expect(upstream.uses()).toEqual([]);
        await expect.poll(() => gateway.log()).toContain('/arguments/text (secret:github-token)');
        expect(gateway.log()).not.toContain(secret);
      }),
  },
  {
    id: 'answer-that-breaks-off',
    area: 'servers',
    source: 'docs/reference/responses.md',
    given: 'The answer to a call breaks off, in a body or in a stream.',
    verdict: 'refuses',
    sees: 'The call fails in its place, and log and audit record say how the answer ended.',
    run: () =>
      withWorld({}, async ({ gateway, openSession, upstream }) => {
        const session = await openSession();
        const head = 'HTTP/1.1 200 OK\r\ncontent-type: ';
        const cases: readonly (readonly [Act, cause: string])[] = [
          [
            {
              ...{ kind: 'raw', ending: 'destroy' },
              chunks: [`${head}application/json\r\ncontent-length: 900\r\n\r\n{"jsonrpc"`],
            },
            'tools/call: the answer broke off',
          ],
          [
            {
              ...{ kind: 'chunks', contentType: 'text/event-stream', ending: 'end' },
              chunks: [': begun\n\n'],
            },
            'tools/call: the stream ended without a response',
          ],
        ];
        for (const [act, cause] of cases) {
          upstream.obeyOnce(({ method }) => (method === 'tools/call' ? act : undefined));
          const reply = await session.call('read_record', { id: 'one' });
          expect([cause, reply.text.includes('"error"')]).toEqual([cause, true]);
          expect(reply.text).not.toContain('broke off');
          await expect.poll(() => gateway.log()).toContain(cause);
          const details = async () => (await gateway.audit()).map(({ decision }) => decision?.detail ?? '');
          await expect.poll(details).toContainEqual(expect.stringContaining(cause));
        }
      }),
  },
];
