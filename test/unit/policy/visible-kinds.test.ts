import { describe, expect, test } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { type ListedKind, listsKind } from '../../../src/policy/decide.js';
import { type CatalogSample, catalog, policiesOf, principal } from './samples.js';

const KINDS: readonly ListedKind[] = ['tool', 'prompt', 'resource'];

function seen(rules: readonly RuleDocument[], sample: CatalogSample = {}): readonly ListedKind[] {
  const pins = { tools: { read: {} }, prompts: { greet: {} }, ...sample };
  return KINDS.filter((kind) => listsKind(policiesOf(rules), principal(), catalog(pins), kind));
}

function allow(what: RuleDocument['what'], id = 'one'): RuleDocument {
  return { id, effect: 'allow', who: { anyone: true }, what };
}

describe('the kinds that a caller sees something of', () => {
  test('[T-01] are none without a rule, and those that allow rules list', () => {
    expect(seen([])).toEqual([]);
    expect(seen([allow({ tools: ['read'] })])).toEqual(['tool']);
    expect(seen([allow({ prompts: ['*'] })])).toEqual(['prompt']);
    expect(seen([allow({ resources: ['memo://**'] })])).toEqual(['resource']);
    expect(seen([allow({ templates: ['memo://{id}'] })])).toEqual(['resource']);
    expect(seen([allow({ upstreams: ['mail'], tools: ['read'] })])).toEqual([]);
    expect(seen([allow({ tools: ['other*'] })])).toEqual([]);
  });

  test('[T-01] are not those whose every name is denied', () => {
    const deny: RuleDocument = {
      id: 'two',
      effect: 'deny',
      who: { anyone: true },
      what: { tools: ['*'] },
    };
    expect(seen([allow({ tools: ['read'] }), deny])).toEqual([]);
  });

  test('[T-01] stay while a definition has drifted, and follow patterns without pins', () => {
    expect(seen([allow({ tools: ['read'] })], { tools: { read: { state: 'changed' } } })).toEqual([
      'tool',
    ]);
    expect(seen([allow({ tools: ['any*'] })], { mode: 'off', tools: {} })).toEqual(['tool']);
  });
});
