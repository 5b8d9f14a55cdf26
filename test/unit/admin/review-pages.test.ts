import { describe, expect, it } from 'vitest';
import { alertOf, driftDetailPage, driftPage, type ReviewItem } from '../../../src/admin/review-pages.js';

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onfocus='alert(1)",
  '</style><script>',
  '&lt;script&gt;',
  'a\u202eb\u200bc\u0000d\u{e0041}e\u00a0f',
];
const frame = { subject: HOSTILE[0] ?? '', roles: ['reviewer'], formToken: 'x', alert: undefined };

describe('the page of a definition', () => {
  const item: ReviewItem = {
    ...{
      id: '0'.repeat(32),
      upstream: 'desk',
      kind: 'tool',
      state: 'changed',
      isPending: false,
      isFirstUse: false,
      isNotOffered: false,
    },
    ...{ name: HOSTILE[1] ?? '', changes: ['description'], before: 'a', after: 'b' },
  };

  const EMPTY = {
    comparison: { fields: [], differing: 0, unchanged: 0, isComplete: true },
    ...{ findings: [], unfinished: [], clientSees: '', commands: [] },
    ...{ caution: undefined, patch: undefined },
  };

  it('[O-78] has nothing of a hostile definition as markup', () => {
    const detail = {
      item,
      comparison: {
        fields: HOSTILE.flatMap((text) => [
          { pointer: `/${text}`, before: text },
          { pointer: text, before: `same ${text}`, after: `same ${text}${text}` },
        ]),
        ...{ differing: 2 * HOSTILE.length, unchanged: 0, isComplete: true },
      },
      unfinished: [],
      findings: HOSTILE.map((text) => ({
        ...{ id: 'one', tier: 'block', kind: 'hidden-text', reason: 'why' },
        ...{ pointer: text, evidence: text },
      })),
      clientSees: 'nothing',
      commands: HOSTILE.map((text) => ({ what: 'x', line: text })),
      caution: undefined,
      patch: HOSTILE.join('\n'),
    };
    for (const { body } of [driftDetailPage(detail, frame), driftPage([item], frame)]) {
      expect(body).not.toMatch(/<script|<img|onfocus='|\u202e|\u200b/);
      expect(body.match(/<\/style>/g)).toHaveLength(1);
    }
  });

  it('[O-78] marks what differs within a field, and only that', () => {
    const side = (before: string, after: string): string[] => {
      const fields = [{ pointer: '/a', before, after }];
      const comparison = { fields, differing: 1, unchanged: 0, isComplete: true };
      const { body } = driftDetailPage({ ...EMPTY, item, comparison }, frame);
      return [...body.matchAll(/<td class="(?:old|new)"[^>]*>(.*?)<\/td>/gs)].map(([, one]) => one ?? '');
    };
    expect(side('get one record', 'get every record')).toEqual([
      'get <del>one</del> record',
      'get <ins>every</ins> record',
    ]);
    expect(side('same', 'same plus')).toEqual(['same<del></del>', 'same<ins> plus</ins>']);
    expect(side('a\ud83d\ude00', 'a\ud83d\ude01')).toEqual(['a<del>\ud83d\ude00</del>', 'a<ins>\ud83d\ude01</ins>']);
  });

  it('shows the letters by which a name passes for another', () => {
    const finding = {
      id: 'one',
      tier: 'block',
      kind: 'shadowing',
      reason: 'why',
      pointer: '/name',
    };
    const findings = [{ ...finding, evidence: 'get_\u0456ssue' }];
    const { body } = driftDetailPage({ ...EMPTY, item, findings }, frame);
    expect(body).toContain('<code>get_\u0456ssue</code> (<code>get_\\u{456}ssue</code>)');
  });

  it('[CON-02] says what could not be compared or scanned, and what is not shown', () => {
    const { body: none } = driftDetailPage(
      { ...EMPTY, item, comparison: undefined, unfinished: ['Not scanned.'] },
      frame,
    );
    expect(none).toContain('could not be compared with its pin now');
    expect(none).toContain('Not scanned.');
    expect(none).not.toContain('None. This does not prove');
    const changes = ['unclassified'];
    const { body: open } = driftDetailPage({ ...EMPTY, item: { ...item, changes } }, frame);
    expect(open).toContain('unclassified: the definition could not be compared with its pin yet');
    const fields = Array.from({ length: 100 }, (_, at) => {
      return { pointer: `/${at}`, after: '\u200b'.repeat(10_000) };
    });
    const cut = { fields, differing: 300, unchanged: 0, isComplete: false };
    const { body: long } = driftDetailPage({ ...EMPTY, item, comparison: cut }, frame);
    expect(long).toContain('300 fields differ, of which the first 42 are shown');
    expect(long).toContain('has more fields than are compared');
    expect(long.length).toBeLessThan(2_500_000);
  });

  it('[O-78] says in one sentence what needs a review', () => {
    expect(alertOf([])).toBeUndefined();
    expect(alertOf([{ ...item, state: 'blocked' }])).toBeUndefined();
    expect(alertOf([item, { ...item, isPending: true, upstream: 'web' }])).toBe(
      'Definitions of desk, web need a review: 1 drifted or withheld, 1 pending.',
    );
  });
});
