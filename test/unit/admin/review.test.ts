// What the console shows of one definition: scanned beside the event loop, once, and never guessed.

import { describe, expect, it } from 'vitest';
import { createReview } from '../../../src/admin/review.js';
import { alertOf, driftPage } from '../../../src/admin/review-pages.js';
import type { Version } from '../../../src/gateway/config-version.js';
import type { DefinitionFinding } from '../../../src/inspection/definitions/scan.js';
import { type DefinitionTask, runDefinitionTask } from '../../../src/inspection/jobs.js';
import { createDriftClasses } from '../../../src/pins/drift-classes.js';
import { NO_FIRST_USE } from '../../../src/pins/first-use.js';
import type { Lock } from '../../../src/pins/lock.js';
import { NO_CATALOG } from '../../../src/policy/decide.js';
import type { UpstreamRuntime } from '../../../src/upstream/runtimes.js';
import type { DefinitionTasks } from '../../../src/work/inspection.js';
import { lockOf, observedOf, pinOf, toolOf, versionOf } from '../pins/samples.js';

const CATALOG = { ...NO_CATALOG, upstream: 'github' };

const FINDING: DefinitionFinding = {
  ...{ id: 'secrecy-1', kind: 'secrecy', tier: 'block', pointer: '/description' },
  item: { kind: 'tool', name: 'get_issue' },
  ...{ evidence: 'Do not tell.', reason: 'It demands secrecy.' },
};

/** A review of an upstream that offers `get_issue` in another form than the pinned one, and nothing else. */
function reviewOf(
  offered = toolOf('get_issue', { description: 'Do not tell.' }),
  pins = [pinOf(toolOf('get_issue')), pinOf(toolOf('list_issues'))],
  others: readonly (readonly [string, Lock])[] = [],
) {
  const scanned: string[] = [];
  const answers: (readonly DefinitionFinding[] | 'rejected' | undefined)[] = [];
  const runtime = {
    settings: { name: 'github', pinning: { mode: 'strict' } },
    observed: () => observedOf([offered, toolOf('list_issues')]),
    firstUse: NO_FIRST_USE,
  } as unknown as UpstreamRuntime;
  const version = {
    settings: {
      upstreams: new Map(others),
      file: '/srv/gateway.yaml',
      pinsDir: '/srv/policies/pins',
    },
    locks: new Map([['github', lockOf(pins)], ...others]),
    shadowing: [],
    deployment: { upstreams: [], aggregates: [['github', 'desk']] },
  } as unknown as Version;
  const definitions = (async (task: DefinitionTask, text: string) => {
    if (task !== 'scan') return runDefinitionTask({ task, text });
    scanned.push(text);
    const answer = answers.length > 0 ? answers.shift() : [FINDING];
    if (answer === 'rejected') throw new Error('closed');
    return answer;
  }) as unknown as DefinitionTasks;
  const review = createReview({
    version: () => version,
    runtimes: { get: () => runtime, all: () => [runtime] },
    catalogOf: () => CATALOG,
    classes: createDriftClasses(definitions),
    definitions,
    now: () => 0,
  });
  const [item] = review.items();
  return { review, scanned, answers, id: item?.id ?? '' };
}

describe('[CON-02] the detail of a definition', () => {
  it('is scanned by the port, together with the others of its server, once', async () => {
    const { review, scanned, id } = reviewOf();
    const [one, other] = await Promise.all([review.detail(id), review.detail(id)]);
    expect(one?.findings).toEqual([FINDING]);
    expect([other, await review.detail(id)]).toEqual([one, one]);
    expect(scanned).toHaveLength(1);
    const names = JSON.parse(scanned[0] ?? '').map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual(['get_issue', 'list_issues']);
    expect(one?.commands.map(({ line }) => line).join('\n')).toContain('--accept secrecy-1');
    expect(await review.detail('0'.repeat(32))).toBeUndefined();
  });

  it('says that a scan did not finish, and is scanned again', async () => {
    const { review, scanned, answers, id } = reviewOf();
    answers.push(undefined);
    const first = await review.detail(id);
    expect([first?.findings, first?.unfinished.length]).toEqual([[], 1]);
    expect((await review.detail(id))?.findings).toEqual([FINDING]);
    expect(scanned).toHaveLength(2);
  });

  it('is made again after an error', async () => {
    const { review, answers, id } = reviewOf();
    answers.push('rejected');
    await expect(review.detail(id)).rejects.toThrow('closed');
    expect((await review.detail(id))?.findings).toEqual([FINDING]);
  });

  it('has the findings about definitions of other upstreams', async () => {
    const copy = { ...lockOf([pinOf(toolOf('get_\u0456ssue'))]), upstream: 'desk' };
    const { review, id } = reviewOf(undefined, undefined, [['desk', copy]]);
    const detail = await review.detail(id);
    expect(detail?.findings).toMatchObject([FINDING, { kind: 'shadowing', tier: 'block' }]);
    expect(detail?.findings[1]?.reason).toContain('desk/get_\u0456ssue');
  });

  it('is scanned alone where the others have more text than is scanned for a page', async () => {
    const long = toolOf('long', { description: 'x'.repeat(300_000) });
    const { review, scanned, id } = reviewOf(undefined, [pinOf(toolOf('get_issue')), pinOf(long)]);
    await review.detail(id);
    expect(JSON.parse(scanned[0] ?? '')).toHaveLength(1);
  });

  it('has a patch only where the page shows every character of it as it is', async () => {
    const shown = reviewOf(toolOf('get_issue', { description: 'Read\u200bs it.' }));
    expect((await shown.review.detail(shown.id))?.patch).toContain('Read\\u200bs it.');
    // Not assigned: the lock file has it as it is, and the page as an escape.
    const escaped = reviewOf(toolOf('get_issue', { description: 'Read\u0378s it.' }));
    expect((await escaped.review.detail(escaped.id))?.patch).toBeUndefined();
  });

  it.each(['get\u00a0issue', 'get\u00adissue', 'get\u200bissue', '-get', 'get\u202eissue', 'get\u0378issue'])(
    'has no command with a name that is not shown as it is: %j',
    async (name) => {
      const { review } = reviewOf(toolOf(name));
      const found = review.items().find((item) => item.name === name);
      const detail = await review.detail(found?.id ?? '');
      expect(detail?.commands.map(({ line }) => line)).toEqual(['sallyport pin diff github']);
    },
  );

  it('says of a very long name that it is long, without reading its characters', async () => {
    const name = 'get\u202eissue'.repeat(10_000);
    const { review } = reviewOf(toolOf(name));
    const found = review.items().find((item) => item.name === name);
    const detail = await review.detail(found?.id ?? '');
    expect(detail?.caution).toBe('The name is too long for a command to be copied.');
    expect(detail?.commands.map(({ line }) => line)).toEqual(['sallyport pin diff github']);
  });
});

describe('[CON-02] an approved form that is not offered', () => {
  it('is listed apart, and needs no review', () => {
    const variant = versionOf(toolOf('get_issue', { title: 'Other' }), 'approved');
    const { review } = reviewOf(toolOf('get_issue'), [
      pinOf(toolOf('get_issue'), 'approved', [variant]),
      pinOf(toolOf('list_issues')),
    ]);
    expect(review.items()).toMatchObject([
      { name: 'get_issue', isNotOffered: true, before: variant.sha256, after: undefined },
    ]);
    expect(alertOf(review.items())).toBeUndefined();
  });
});

describe('[CON-02] the table that opens a review', () => {
  const frame = { subject: 'rita', roles: ['reviewer'], formToken: 'x', alert: undefined };

  it('says what each definition does and what was found in it, and is made once', async () => {
    const { review, scanned, answers, id } = reviewOf();
    const rows = await review.rows();
    expect(rows.get(id)).toMatchObject({
      row: { name: 'get_issue', effect: 'reads', isChanged: true, findings: { block: 1, review: 0, note: 0 } },
      areFindingsKnown: true,
    });
    expect(await review.rows()).toEqual(rows);
    expect(scanned).toHaveLength(1);
    expect((await review.detail(id))?.row).toMatchObject({ effect: 'reads', findings: { block: 1 } });
    const { body } = driftPage(review.items(), frame, 0, rows);
    expect(body).toMatch(
      /<td data-label="Effect">reads<\/td><td data-label="Free text">1<\/td><td data-label="Findings">1 block<\/td>/,
    );
    answers.length = 0;
  });

  it('begins with what is riskiest, and says where findings are not known', async () => {
    const pins = [pinOf(toolOf('list_issues'), 'pending'), pinOf(toolOf('delete_issue'), 'pending')];
    const { review, answers } = reviewOf(toolOf('get_issue'), pins);
    answers.push(undefined);
    const rows = await review.rows();
    const { body } = driftPage(review.items(), frame, 0, rows);
    const shown = [...String(body).matchAll(/<code>(\w+_issues?)<\/code>/g)].map(([, name]) => name);
    expect(shown[0]).toBe('delete_issue');
    expect(body).toContain('<td data-label="Findings">not known</td>');
  });

  it('has no row for what is too long to be read between two requests', async () => {
    const { review } = reviewOf(toolOf('get_issue', { description: 'x'.repeat(20_000) }));
    expect((await review.rows()).size).toBe(0);
  });
});

it('[CON-02] lists a thousand definitions of an upstream, and says how many more there are', () => {
  const pins = Array.from({ length: 1_200 }, (_, at) => pinOf(toolOf(`tool_${at}`)));
  const { review } = reviewOf(toolOf('get_issue'), pins);
  expect([review.items().length, review.unlisted()]).toEqual([1_000, 202]);
});
