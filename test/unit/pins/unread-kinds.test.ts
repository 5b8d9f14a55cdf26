import { describe, expect, it } from 'vitest';
import { approvePin, digestsOffered, mergeFetched } from '../../../src/pins/approval.js';
import { mergeObserved, observeListing } from '../../../src/pins/last-seen.js';
import type { Lock } from '../../../src/pins/lock.js';
import { findDifferences, formsNotOffered } from '../../../src/pins/lock-differences.js';
import type { UnavailableKind } from '../../../src/protocol/methods.js';
import { APPROVAL, digestOf, listingOf, lockOf, pinOf, toolOf } from './samples.js';

const PROMPT = { name: 'summary', description: 'Summarizes.' };
const PENDING = { name: 'draft', description: 'Drafts.' };
const APP = { uri: 'ui://app', contents: [{ uri: 'ui://app', text: '<p>' }] };

function promptPin(definition: typeof PROMPT, status: 'approved' | 'pending') {
  return { ...pinOf(definition, status), sha256: digestOf(definition, 'prompt') };
}

const LOCK: Lock = {
  ...lockOf([pinOf(toolOf('get_issue'))]),
  pins: {
    ...lockOf([pinOf(toolOf('get_issue'))]).pins,
    prompt: new Map([
      [PROMPT.name, promptPin(PROMPT, 'approved')],
      [PENDING.name, promptPin(PENDING, 'pending')],
    ]),
    resource: new Map([[APP.uri, { ...pinOf(APP), sha256: digestOf(APP, 'resource') }]]),
  },
};

function observedWithout(kinds: readonly UnavailableKind['kind'][], more: Partial<UnavailableKind> = {}) {
  const unavailable = kinds.map((kind) => ({ kind, why: 'timeout', detail: 'no answer', ...more }));
  const tools = kinds.includes('tools') ? [] : [toolOf('get_issue')];
  const resources = kinds.includes('tools') ? [] : [APP];
  return mergeObserved([observeListing({ ...listingOf(tools, { resources }), unavailable })]);
}

const prompt = (name: string) => ({ kind: 'prompt' as const, name });

describe('a kind whose list has never been read', () => {
  it.each([
    ['prompts', [], ['get_issue', 'ui://app']],
    ['tools', ['summary'], []],
  ] as const)('without %s, the names of that kind are not removed', (kind, removed, kept) => {
    const names = findDifferences(LOCK, observedWithout([kind])).map(({ name }) => name);
    expect(names).toEqual(removed);
    for (const name of kept) expect(names).not.toContain(name);
  });

  it('tells removed definitions apart once what was listed before stands in', () => {
    const observed = observedWithout(['prompts'], { hasPrevious: true });
    expect(findDifferences(LOCK, observed).map(({ name, change }) => [name, change])).toEqual([['summary', 'removed']]);
  });

  it('differs as an observation from one with an empty list', () => {
    const empty = mergeObserved([observeListing(listingOf([toolOf('get_issue')], { resources: [APP] }))]);
    expect(observedWithout(['prompts']).contentDigest).not.toBe(empty.contentDigest);
  });

  it('keeps approved and pending definitions, whether the listing is approved or not', () => {
    for (const approval of [undefined, APPROVAL]) {
      const observed = observedWithout(['prompts']);
      const { lock } = mergeFetched({ upstream: 'github', lock: LOCK, observed, approval });
      expect(lock.pins.prompt).toEqual(LOCK.pins.prompt);
    }
  });

  it('lets an approval rest on the lock file alone', () => {
    const observed = observedWithout(['prompts']);
    const digest = digestOf(PENDING, 'prompt');
    expect(digestsOffered(observed, prompt('draft'))).toBeUndefined();
    expect(formsNotOffered(LOCK, observed, [])).toEqual([]);
    const changed = approvePin({
      ...{ lock: LOCK, pin: prompt('draft'), digest, approval: APPROVAL, observed },
    });
    expect(changed.ok && changed.lock.pins.prompt.get('draft')?.status).toBe('approved');
  });
});
