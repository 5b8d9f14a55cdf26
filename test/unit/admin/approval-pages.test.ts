import { describe, expect, it } from 'vitest';
import { approvalPage, historyPage, waitingPage } from '../../../src/admin/approval-pages.js';
import { historyList, waitingList } from '../../../src/admin/approvals.js';
import type { Frame } from '../../../src/admin/page-frame.js';
import type { ShownApproval } from '../../../src/policy/approval.js';
import { approvalOf, personOf } from '../../support/approvals.js';

const NOW = Date.parse('2026-11-20T09:30:00Z');
const FRAME: Frame = { subject: 'rev', roles: ['reviewer'], formToken: 'form-token', alert: undefined };
const HOSTILE = '</td></pre><script>alert(1)</script>"\'><img src=x onerror=alert(2)>\u202e\u200b\u001b[2J&';

/** Every text that a caller, a model, a server or another person chooses. */
const EVERYWHERE = approvalOf(NOW, {
  method: HOSTILE,
  name: HOSTILE,
  caller: {
    ...{ issuer: HOSTILE, issuerName: HOSTILE, subject: HOSTILE, client: HOSTILE, match: HOSTILE },
    actors: [personOf(HOSTILE, HOSTILE)],
  },
  demand: { rules: [HOSTILE], reasons: [HOSTILE], reviewer: { groups: [[HOSTILE]], count: 2 } },
  answers: [
    { party: 'reviewer', verdict: 'granted', person: personOf(HOSTILE, HOSTILE), proof: 'login', atMs: NOW },
    { party: 'caller', verdict: 'granted', person: personOf(HOSTILE, HOSTILE), proof: 'client', atMs: NOW },
  ],
  content: {
    ...{ args: JSON.stringify({ [HOSTILE]: HOSTILE }), labels: [HOSTILE], sensitive: [`/${HOSTILE}`] },
    ...{ selfReported: { name: HOSTILE, version: HOSTILE }, definition: { name: HOSTILE, [HOSTILE]: HOSTILE } },
    findings: [{ detector: HOSTILE, direction: 'to-upstream', path: HOSTILE, count: 1, action: 'flag' }],
  },
});

const NO_QUERY = { isRevealed: false, part: undefined };
const answering = { nowMs: NOW, isAnswerer: true, query: NO_QUERY, obstacle: undefined, frame: FRAME };

const pages = (one: ShownApproval): readonly string[] =>
  [
    waitingPage(waitingList([one], NOW), FRAME),
    historyPage(historyList([{ ...one, state: 'used' }], NOW), NOW, FRAME),
    approvalPage(one, answering),
    approvalPage(one, { ...answering, query: { ...NO_QUERY, isRevealed: true } }),
    approvalPage({ ...one, state: 'denied' }, answering),
  ].map(({ body }) => String(body));

describe('[APR-74] pages of approvals', () => {
  it('hold no markup and nothing invisible that somebody else wrote', () => {
    for (const body of pages(EVERYWHERE)) {
      for (const text of ['<script', '<img', '\u202e', '\u200b', '\u001b']) expect(body).not.toContain(text);
      expect(body).toContain('&lt;script&gt;');
    }
  });

  it('have a form to grant for whoever may, and the reason for whoever may not', () => {
    const body = (more: object): string => String(approvalPage(approvalOf(NOW), { ...answering, ...more }).body);
    const [grant, deny] = ['>Grant this request once<', '>Deny this request<'];
    expect(body({})).toContain(grant);
    expect(body({})).toContain(deny);
    const own = body({ obstacle: { kind: 'refused', why: 'is-caller' } });
    expect([own.includes(grant), own.includes(deny)]).toEqual([false, true]);
    expect(own).toContain('You are the caller.');
    const viewer = body({ isAnswerer: false });
    expect([viewer.includes(grant), viewer.includes(deny)]).toEqual([false, false]);
  });

  it.each<[string, Parameters<typeof approvalOf>[1], string]>([
    ['used', { state: 'used' }, 'it is used'],
    ['expired', { expiresAtMs: NOW }, 'it is expired'],
    [
      'left to its caller',
      {
        demand: { caller: { proof: 'login', remember: undefined } },
        answers: [{ party: 'reviewer', verdict: 'granted', person: personOf('rev'), proof: 'login', atMs: NOW }],
      },
      'The request waits for its caller.',
    ],
    ['not kept', { state: 'used' }, 'it is used'],
  ])('have no form for what is %s', (_what, parts, text) => {
    const { body } = approvalPage(approvalOf(NOW, parts), answering);
    expect(body).toContain(text);
    expect(body).not.toContain('/grant');
  });

  it('say that the store is unreachable', () => {
    expect(waitingPage(undefined, FRAME).body).toContain('The shared store is unreachable');
    expect(historyPage(undefined, NOW, FRAME).body).toContain('The shared store is unreachable');
  });

  it('list a thousand requests of one caller as five and a number', () => {
    const crowd = Array.from({ length: 1_000 }, () => approvalOf(NOW));
    const body = String(waitingPage(waitingList(crowd, NOW), FRAME).body);
    expect([...body.matchAll(/<tr><th scope="row">/g)]).toHaveLength(5);
    expect(body).toContain('995 more of this caller are not listed.');
  });
});
