// More than people can answer: a thousand requests that wait, one caller who asks without end, and arguments with a million
// members. docs/reference/approvals.md#reviewers; docs/reference/approvals.md#what-the-person-sees.

import { describe, expect, it } from 'vitest';
import { logInAt } from '../support/approval-page.js';
import { linkIn, startCallerStage } from '../support/caller-stage.js';
import { type BrowserPage, formTokenOf, logIn } from '../support/console-rig.js';
import { textOf } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { ASKED, secondsAgo, startReview } from '../support/review-rig.js';
import { callStateless, requestStateless, resultOf } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

/** What takes seconds takes longer on a busy machine. */
const BUSY_MS = 120_000;

describe('[APR-70] a thousand requests that wait', () => {
  const review = shared(() => startReview());
  const CALLERS = 196;
  const EACH = 5;
  const AT_ONCE = 40;

  async function callAll(calls: readonly (() => Promise<unknown>)[]): Promise<void> {
    for (let at = 0; at < calls.length; at += AT_ONCE)
      await Promise.all(calls.slice(at, at + AT_ONCE).map((call) => call()));
  }

  type Listed = {
    readonly callers: readonly {
      readonly caller: { readonly subject: string };
      readonly approvals: readonly { readonly id: string }[];
      readonly more: number;
    }[];
    readonly unlisted: number;
    readonly forReviewers: number;
  };
  const list = async () => (await review.ask('GET', '/api/approvals', review.breakGlass)).value as unknown as Listed;

  it(
    'are listed by caller within bounds, one caller takes five places, and others are served meanwhile',
    async () => {
      const greedy = { sub: 'greedy' };
      // Under several clients, which are one caller.
      await callAll(
        Array.from(
          { length: 40 },
          (_, at) => () => review.call({ id: 'one', text: `${at}` }, { ...greedy, client_id: `agent-${at % 4}` }),
        ),
      );
      const more = await review.call({ id: 'one', text: 'one more' }, greedy);
      expect(textOf(resultOf(more))).toContain('Too many requests wait for an answer already');
      await callAll(
        Array.from({ length: CALLERS }, (_, at) => async () => {
          const own = review.rig.as(await review.rig.gateway.token('target', { sub: `caller-${at}` }));
          for (let text = 0; text < EACH; text += 1) await callStateless(own, ASKED, { id: 'one', text: `${text}` });
        }),
      );
      expect(review.rig.upstream.uses()).toEqual([]);
      const { callers, unlisted, forReviewers } = await list();
      expect(forReviewers).toBe(1_000);
      expect(callers).toHaveLength(100);
      expect(new Set(callers.map(({ approvals }) => approvals.length))).toEqual(new Set([EACH]));
      expect(callers.find(({ caller }) => caller.subject === 'greedy')).toMatchObject({ more: 15 });
      expect(unlisted).toBe((CALLERS - 99) * EACH);
      const browser = await logIn(review);
      const page = await browser.open(review.url);
      expect(page.body.match(/href="\/approvals\/[\w-]{16,}"/g)).toHaveLength(100 * EACH);
      expect(page.body).toContain('15 more of this caller');

      // Whoever comes last is served like the first: what needs no approval passes, and what needs one is asked and granted.
      const { gateway } = review.rig;
      const access = review.rig.as(await gateway.token('target', { sub: 'last' }));
      expect((await callStateless(access, 'read_record', { id: 'one' })).text).toContain('read_record one');
      const asked = await review.call({ id: 'one', text: 'last' }, { sub: 'last' });
      const id = /Approval ([\w-]{16,})/.exec(asked.text)?.[1] ?? '';
      const token = await review.adminToken({ sub: 'rev', groups: ['leads'], auth_time: secondsAgo(5) });
      expect((await review.ask('POST', `/api/approvals/${id}/grant`, token)).status).toBe(200);
      expect((await review.call({ id: 'one', text: 'last' }, { sub: 'last' })).text).toContain('write_record one');

      // Those that were not listed follow as others are answered.
      const [first] = callers;
      for (const { id: listed } of first?.approvals ?? [])
        expect((await review.ask('POST', `/api/approvals/${listed}/deny`, review.breakGlass)).status).toBe(200);
      const after = await list();
      expect(after.callers).toHaveLength(100);
      expect(after.forReviewers).toBe(1_000 - EACH);
      const { value: history } = await review.ask('GET', '/api/approvals/history', review.breakGlass);
      expect(history['approvals']).toHaveLength(EACH + 1);
    },
    BUSY_MS,
  );
});

/** Where a link of a page leads. */
function hrefIn({ body, url }: BrowserPage, pattern: RegExp): string {
  return new URL((pattern.exec(body)?.[1] ?? '').replaceAll('&amp;', '&'), url).href;
}

describe('[APR-60] arguments with members without end', () => {
  const OPEN: JsonObject = {
    name: 'write_set',
    description: 'Writes a set.',
    inputSchema: { type: 'object', properties: { set: { type: 'object' } } },
  };
  const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {issuers: [test]}
    what: {upstreams: ["*"], tools: [write_set]}
    approval: {by: caller}
`;
  const stage = shared(() =>
    startCallerStage({
      policies: { open: POLICY },
      upstream: ['pinning: {maxAge: 10m}', 'limits: {maxRequestBytes: 16MiB}'],
      prepare: (upstream) => {
        upstream.offer(() => [OPEN]);
        upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'written' }] }));
      },
    }),
  );
  const setOf = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join()}}`;
  const write = (set: string) =>
    requestStateless(
      stage.rig.as(stage.token),
      'tools/call',
      { name: 'write_set', arguments: { set: {} } },
      { write: (message) => JSON.stringify(message).replace('"set":{}', () => `"set":${set}`) },
    );

  it.each<readonly [string, number, string]>([
    ['a million, which are more values than a body may have', 1_000_000, 'The body contains too many values.'],
    ['more than a person could be shown', 90_000, 'the arguments are too large to be shown to a person'],
  ])(
    'ask nobody where they are %s, and others are served',
    async (_what, count, advice) => {
      expect((await write(setOf(count))).text).toContain(advice);
      expect(stage.rig.upstream.uses()).toEqual([]);
      expect(linkIn((await write(`{"of":${count}}`)).text)).not.toBe('');
    },
    BUSY_MS,
  );

  it(
    'as many as can be asked about are shown whole, page by page, and sent as they were shown',
    async () => {
      const count = 20_000;
      const set = setOf(count);
      const link = linkIn((await write(set)).text);
      const { browser, page } = await logInAt(link);
      // Each page names what it leaves out, and leads to it.
      const first = await browser.open(hrefIn(page, /href="([^"]*part=[^"]*)"/));
      expect(first.body).toContain(`401 to ${count} of ${count}`);
      const second = await browser.open(hrefIn(first, /href="([^"]*from=400[^"]*)"/));
      for (const shown of ['1 to 400 of', 'k400', 'k799', `801 to ${count} of ${count}`])
        expect(second.body).toContain(shown);
      const last = await browser.open(second.url.replace('from=400', `from=${count - 1}`));
      expect(last.body).toContain(`k${count - 1}`);
      expect(last.body).not.toContain(`to ${count} of`);
      await browser.submit(link, { form: formTokenOf(page), do: 'grant' });
      expect((await write(set)).text).toContain('written');
      expect(stage.rig.upstream.uses().map(({ body }) => body.includes(`"set":${set}`))).toEqual([true]);
    },
    BUSY_MS,
  );
});
