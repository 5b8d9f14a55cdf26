import { describe, expect, test } from 'vitest';
import {
  approvePin,
  blockPin,
  countReviewed,
  FIRST_USE,
  findDecisions,
  mergeFetched,
  pendingOf,
  trustObserved,
  withTrusted,
} from '../../../src/pins/approval.js';
import { createCatalog, createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { mergeObserved, notePage, type Observed, observeListing } from '../../../src/pins/last-seen.js';
import { approvedVersions, type Lock, versionsOf } from '../../../src/pins/lock.js';
import { createDriftWatch, findDifferences } from '../../../src/pins/lock-differences.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../src/protocol/headers.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { APPROVAL, digestOf, listingOf, lockOf, observedOf, pinOf, textPin, toolOf, versionOf } from './samples.js';

const TOOL = toolOf('get_issue');
const OTHER = toolOf('get_issue', { description: 'Reads any issue.' });
const NAME = { kind: 'tool', name: 'get_issue' } as const;

function fetched(lock: Lock | undefined, observed: Observed, isApproved = false): Lock {
  const approval = isApproved ? APPROVAL : undefined;
  return mergeFetched({ upstream: 'github', lock, observed, approval }).lock;
}

function versions(lock: Lock, name = 'get_issue'): string[] {
  return versionsOf(lock.pins.tool.get(name)).map(
    ({ status, definition }) => `${status} ${String(definition['description'])}`,
  );
}

describe('after a listing', () => {
  test('[L-60] what is new is pending until somebody approves', () => {
    const lock = fetched(undefined, observedOf([TOOL], { instructions: 'Be brief.' }));
    expect(versions(lock)).toEqual(['pending Reads one issue.']);
    expect(countReviewed(lock)).toEqual({ approved: 0, blocked: 0 });
    expect(pendingOf(lock)).toEqual([
      { ...NAME, digest: digestOf(TOOL) },
      { kind: 'instructions', name: 'instructions', digest: digestOf('Be brief.', 'instructions') },
    ]);
    const approved = fetched(undefined, observedOf([TOOL], { instructions: 'Be brief.' }), true);
    expect(approvedVersions(approved.pins.tool.get('get_issue'))[0]?.approval).toEqual(APPROVAL);
    expect(approved.instructions?.status).toBe('approved');
  });

  test('[L-61] a changed definition stands beside the approved one, pending', () => {
    const lock = fetched(lockOf([pinOf(TOOL)]), observedOf([OTHER]));
    expect(versions(lock)).toEqual(['approved Reads one issue.', 'pending Reads any issue.']);
    const restored = fetched(lock, observedOf([TOOL]));
    expect(versions(restored)).toEqual(['approved Reads one issue.']);
    expect(fetched(restored, observedOf([TOOL]))).toEqual(restored);
  });

  test('[L-61] what is approved stays though it is not offered; what was pending goes', () => {
    const lock = lockOf([pinOf(TOOL), pinOf(toolOf('b'), 'pending')]);
    expect([...fetched(lock, observedOf([])).pins.tool.keys()]).toEqual(['get_issue']);
  });

  test('[L-61] approving a listing approves exactly what is offered, but nothing blocked', () => {
    const lock = lockOf([pinOf(TOOL), pinOf(toolOf('b'), 'blocked'), pinOf(toolOf('gone'))]);
    const approved = fetched(lock, observedOf([OTHER, toolOf('b')]), true);
    expect(versions(approved)).toEqual(['approved Reads any issue.']);
    expect(approved.pins.tool.get('b')?.status).toBe('blocked');
    expect(approved.pins.tool.has('gone')).toBe(false);
  });

  test('[L-62] what cannot be pinned is told and changes nothing (docs/reference/attacks.md case 57)', () => {
    const lock = lockOf([pinOf(TOOL)]);
    for (const observed of [observedOf([TOOL, OTHER]), observedOf([{ ...TOOL, limit: 2 ** 53 }], { isExact: false })]) {
      const merged = mergeFetched({ upstream: 'github', lock, observed, approval: APPROVAL });
      expect(merged.unusable).toEqual([NAME]);
      expect(merged.lock.pins.tool).toEqual(lock.pins.tool);
    }
  });

  test('[L-60] a name offered differently in each era has a variant', () => {
    const observed = mergeObserved([
      observeListing(listingOf([TOOL], { era: '2025' })),
      observeListing(listingOf([OTHER], { era: '2026' })),
    ]);
    const lock = fetched(undefined, observed, true);
    expect(versions(lock)).toEqual(['approved Reads one issue.', 'approved Reads any issue.']);
  });
});

describe('decisions', () => {
  const lock = lockOf([pinOf(TOOL, 'approved', [versionOf(OTHER, 'pending')])]);

  function approve(digest: string, observed: Observed | undefined) {
    return approvePin({ lock, pin: NAME, digest, approval: APPROVAL, observed });
  }

  test('[L-63] an approval is of the digest that was reviewed', () => {
    const change = approve(digestOf(OTHER), observedOf([OTHER]));
    expect(change.ok && versions(change.lock)).toEqual(['approved Reads any issue.']);
  });

  test('[L-63] an earlier approval ends only where its definition is known to be offered no more', () => {
    const offline = approve(digestOf(OTHER), undefined);
    expect(offline.ok && versions(offline.lock)).toEqual(['approved Reads one issue.', 'approved Reads any issue.']);
    if (!offline.ok) return;
    const order = { lock: offline.lock, pin: NAME, digest: digestOf(OTHER), approval: APPROVAL };
    const reached = approvePin({ ...order, observed: observedOf([OTHER]) });
    expect(reached.ok && versions(reached.lock)).toEqual(['approved Reads any issue.']);
  });

  test('[L-64] what lifts a block for one definition lifts it for no other', () => {
    const third = toolOf('get_issue', { description: 'Reads an issue.' });
    const variants = [versionOf(OTHER, 'approved'), versionOf(third, 'pending')];
    const blocked = blockPin(lockOf([pinOf(TOOL, 'approved', variants)]), NAME, APPROVAL);
    if (!blocked.ok) throw new Error('refused');
    const listings = (['2025', '2026'] as const).map((era, at) => listingOf([at === 0 ? OTHER : third], { era }));
    const lifted = approvePin({
      lock: blocked.lock,
      pin: NAME,
      digest: digestOf(third),
      approval: APPROVAL,
      observed: mergeObserved(listings.map(observeListing)),
    });
    expect(lifted.ok && versions(lifted.lock)).toEqual(['approved Reads an issue.', 'blocked Reads one issue.']);
  });

  test('[L-63] one that has moved on is refused', () => {
    const next = toolOf('get_issue', { description: 'Deletes issues.' });
    expect(approve(digestOf(OTHER), observedOf([next]))).toEqual({
      ok: false,
      why: 'not-offered',
      digests: [digestOf(next)],
    });
    expect(approve(digestOf(next), undefined)).toEqual({
      ok: false,
      why: 'unknown-digest',
      digests: [digestOf(TOOL), digestOf(OTHER)],
    });
    // Offered in two eras, the digest is still one.
    const listings = (['2025', '2026'] as const).map((era) => listingOf([next], { era }));
    expect(approve(digestOf(next), mergeObserved(listings.map(observeListing)))).toEqual({
      ok: false,
      why: 'not-fetched',
      digests: [digestOf(next)],
    });
    const unknown = { kind: 'tool', name: 'toString' } as const;
    expect(approvePin({ lock, pin: unknown, digest: 'x', approval: APPROVAL, observed: undefined })).toMatchObject({
      ok: false,
      why: 'not-in-lock',
    });
  });

  test('[L-64] a block holds for every definition of the name until a digest is approved', () => {
    const blocked = blockPin(lock, NAME, APPROVAL);
    if (!blocked.ok) throw new Error('refused');
    expect(approvedVersions(blocked.lock.pins.tool.get('get_issue'))).toEqual([]);
    expect(fetched(blocked.lock, observedOf([OTHER]), true)).toEqual(blocked.lock);
    const lifted = approvePin({
      lock: blocked.lock,
      pin: NAME,
      digest: digestOf(OTHER),
      approval: APPROVAL,
      observed: undefined,
    });
    expect(lifted.ok && versions(lifted.lock)).toEqual(['approved Reads any issue.', 'blocked Reads one issue.']);
    const lifting = lifted.ok ? lifted.lock.pins.tool.get('get_issue') : undefined;
    expect(versionsOf(lifting).map(({ block }) => block)).toEqual([undefined, APPROVAL]);
    const unknown = { kind: 'tool', name: 'b' } as const;
    expect(blockPin(lock, unknown, undefined)).toMatchObject({ ok: false });
  });

  test('[L-63] instructions are approved like anything else', () => {
    const waiting = lockOf([], textPin('Be brief.', 'pending'));
    const change = approvePin({
      lock: waiting,
      pin: { kind: 'instructions', name: 'instructions' },
      digest: digestOf('Be brief.', 'instructions'),
      approval: APPROVAL,
      observed: undefined,
    });
    expect(change.ok && change.lock.instructions?.status).toBe('approved');
  });
});

describe('drift', () => {
  test('[L-65] a difference is reported once, and again only when it is another', () => {
    const watch = createDriftWatch();
    const lock = lockOf([pinOf(TOOL)]);
    function report(offered: JsonObject) {
      const round = watch.begin();
      const found = findDifferences(lock, observedOf([offered]));
      const drifts = found.filter((difference) => round.isNew(difference));
      round.end();
      return drifts;
    }
    expect(report(TOOL)).toEqual([]);
    expect(report(OTHER)).toEqual([
      {
        ...NAME,
        change: 'description',
        changes: ['description'],
        before: digestOf(TOOL),
        after: digestOf(OTHER),
        beforeDefinition: TOOL,
        afterDefinition: OTHER,
      },
    ]);
    expect(report(OTHER)).toEqual([]);
    const third = toolOf('get_issue', { title: 'x' });
    expect(report(third)).toHaveLength(1);
    expect(report(TOOL)).toEqual([]);
    expect(report(third)).toHaveLength(1);
  });

  test('[L-66] what is new, gone, or told otherwise is a difference', () => {
    const lock = lockOf([pinOf(TOOL)], textPin('Be brief.'));
    const found = findDifferences(lock, observedOf([toolOf('b')], { instructions: 'Be long.' }));
    expect(found.map(({ kind, name, change }) => `${kind} ${name} ${change}`)).toEqual([
      'tool b new-tool',
      'tool get_issue removed',
      'instructions instructions description',
    ]);
    expect(findDifferences(undefined, observedOf([TOOL]))[0]?.change).toBe('new-tool');
    expect(findDifferences(lock, undefined)).toEqual([]);
  });

  test('[L-66] what is pending and offered so is known, and no drift', () => {
    expect(findDifferences(lockOf([pinOf(TOOL, 'pending')]), observedOf([TOOL]))).toEqual([]);
    const beside = lockOf([pinOf(TOOL, 'approved', [versionOf(OTHER, 'pending')])]);
    expect(findDifferences(beside, observedOf([OTHER]))).toHaveLength(1);
  });

  test('[APP-07] of several forms the one that is offered no more is what changed', () => {
    const shown = toolOf('get_issue', { description: 'Draws one issue.' });
    const changed = toolOf('get_issue', { description: 'Draws one issue!' });
    const lock = lockOf([pinOf(TOOL, 'approved', [versionOf(shown, 'approved')])]);
    const seenBy = (plain: JsonObject, host: JsonObject): Observed =>
      mergeObserved([observeListing(listingOf([plain])), observeListing(listingOf([host], { apps: true }))]);
    expect(findDifferences(lock, seenBy(TOOL, shown))).toEqual([]);
    expect(findDifferences(lock, seenBy(TOOL, changed))).toMatchObject([
      { before: digestOf(shown), after: digestOf(changed), beforeDefinition: shown },
    ]);
    expect(findDifferences(lock, seenBy(changed, shown))).toMatchObject([
      { before: digestOf(TOOL), after: digestOf(changed), beforeDefinition: TOOL },
    ]);
  });

  test('[L-66] a page noted by its digests alone is a difference of unknown class', () => {
    const items = [{ name: 'get_issue', digest: digestOf(OTHER) }];
    const noted = notePage(observedOf([TOOL]), { kind: 'tool', items, atMs: 2 });
    expect(findDifferences(lockOf([pinOf(TOOL)]), noted)[0]).toMatchObject({
      change: 'unclassified',
      after: digestOf(OTHER),
    });
  });
});

describe('what a lock file counts and decides', () => {
  const waiting = lockOf([pinOf(TOOL, 'approved', [versionOf(OTHER, 'pending')])], textPin('Be brief.', 'pending'));
  const decided = (before: Lock | undefined, after: Lock) =>
    findDecisions(before, after).map(({ decision, kind, digest, record }) => [decision, kind, digest, record?.by]);

  test('[L-60] approved and pending definitions add up, instructions too; a blocked name has none', () => {
    const sum = (lock: Lock) => [countReviewed(lock), pendingOf(lock).length];
    expect(sum(waiting)).toEqual([{ approved: 1, blocked: 0 }, 2]);
    const all = fetched(waiting, observedOf([OTHER], { instructions: 'Be brief.' }), true);
    expect(sum(all)).toEqual([{ approved: 2, blocked: 0 }, 0]);
    const blocked = blockPin(waiting, NAME, undefined);
    expect(blocked.ok && sum(blocked.lock)).toEqual([{ approved: 0, blocked: 1 }, 1]);
  });

  test('[L-75] a decision is a definition that was not approved, or not blocked, before', () => {
    expect(decided(waiting, waiting)).toEqual([]);
    expect(decided(undefined, waiting)).toEqual([['approved', 'tool', digestOf(TOOL), 'alex']]);
    const approval = { by: 'kim', at: APPROVAL.at };
    const change = approvePin({
      ...{ lock: waiting, pin: NAME, digest: digestOf(OTHER), approval, observed: undefined },
      together: [digestOf(TOOL), digestOf(OTHER)],
    });
    const approved = change.ok ? change.lock : waiting;
    expect(decided(waiting, approved)).toEqual([['approved', 'tool', digestOf(OTHER), 'kim']]);
    // What is taken away is neither.
    expect(decided(approved, waiting)).toEqual([]);
    const block = blockPin(approved, NAME, { by: 'pat', at: APPROVAL.at });
    const blocked = block.ok ? block.lock : approved;
    expect(decided(approved, blocked)).toEqual([['blocked', 'tool', digestOf(TOOL), 'pat']]);
    expect(decided(blocked, blocked)).toEqual([]);
    // Lifting the block brings back what was approved besides.
    expect(decided(blocked, approved).map(([decision]) => decision)).toEqual(['approved', 'approved']);
    const texts = lockOf([], textPin('Be brief.'));
    expect(decided(lockOf([], textPin('Be brief.', 'pending')), texts)).toEqual([
      ['approved', 'instructions', digestOf('Be brief.', 'instructions'), 'alex'],
    ]);
  });
});

describe('trust on first use', () => {
  const AT = '2026-11-22T10:00:00.000Z';
  const FIRST = toolOf('read');
  const LATER = toolOf('read', { description: 'Reads everything.' });
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });

  function trust(tools: readonly JsonObject[], leftOut: readonly string[] = []): Lock | undefined {
    return trustObserved('github', observedOf(tools), AT, ({ name }) => leftOut.includes(name));
  }

  function stateOf(lock: Lock | undefined, offered: readonly JsonObject[]): string {
    const trusted = trust([FIRST]);
    if (trusted === undefined) throw new Error('nothing is trusted');
    const catalog = createCatalog({
      upstream: 'github',
      lock: withTrusted(lock, trusted),
      observed: observedOf(offered),
      mode: 'strict',
      onDrift: 'hide-tool',
      undeclaredArguments: 'any',
      compile,
    });
    return catalog.statusOf('tool', 'read').state;
  }

  test('[L-55] trusts what is offered, but for what is left out and what cannot be pinned', () => {
    const trusted = trust([FIRST, toolOf('left'), toolOf('twice'), toolOf('twice')], ['left']);
    expect([...(trusted?.pins.tool.keys() ?? [])]).toEqual(['read']);
    expect(trusted?.pins.tool.get('read')).toMatchObject({
      status: 'approved',
      sha256: digestOf(FIRST),
      approval: { by: FIRST_USE, at: AT },
    });
  });

  test('[L-55] takes a listing without definitions for no first use', () => {
    expect(trust([])).toBeUndefined();
  });

  test('[L-55] trusts what was offered first, and no later form', () => {
    expect(stateOf(undefined, [FIRST])).toBe('approved');
    expect(stateOf(undefined, [LATER])).toBe('changed');
    expect(stateOf(lockOf([pinOf(LATER, 'pending')]), [LATER])).toBe('changed');
    expect(stateOf(lockOf([pinOf(LATER, 'pending')]), [FIRST])).toBe('approved');
  });

  test('[L-55] leaves a name that was reviewed to the lock file alone', () => {
    expect(stateOf(lockOf([pinOf(LATER)]), [LATER])).toBe('approved');
    expect(stateOf(lockOf([pinOf(LATER)]), [FIRST])).toBe('changed');
    expect(stateOf(lockOf([pinOf(FIRST, 'blocked')]), [FIRST])).toBe('blocked');
    const variantBlocked = pinOf(LATER, 'pending', [versionOf(FIRST, 'blocked')]);
    expect(stateOf(lockOf([variantBlocked]), [FIRST])).toBe('blocked');
  });
});
