// What keys of a lock file do, each from the text of the file to what stands for a name, by which everything
// is listed and decided. config-effects/lock.ts names these tests.

import { describe, expect, test } from 'vitest';
import { createCatalog, createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { mergeObserved, type Observed, observeListing } from '../../../src/pins/last-seen.js';
import { findDifferences } from '../../../src/pins/lock-differences.js';
import { readLock } from '../../../src/pins/lock-reader.js';
import type { PinKind } from '../../../src/policy/definitions.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { APPROVAL, digestOf, listingOf, type Offer, toolOf } from './samples.js';

const compile = createDefinitionCompiler({
  compileSchema: () => ({
    ok: true,
    schema: { check: () => [], firstUndescribed: () => undefined },
  }),
  mirroredParameters: () => ({ valid: true, mirrored: [] }),
});

type Sample = {
  readonly kind: PinKind;
  readonly name: string;
  /** Two versions of one definition. */
  readonly versions: readonly [JsonObject, JsonObject];
  readonly offer: (definition: JsonObject) => Observed;
};

function observed(tools: readonly JsonObject[], offer: Offer = {}): Observed {
  return mergeObserved([observeListing(listingOf(tools, offer))]);
}

const URI = 'ui://a/b.html';
const page = (text: string): JsonObject => ({ uri: URI, contents: [{ uri: URI, text }] });
/** By the member of the file. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  tools: {
    kind: 'tool',
    name: 'read',
    versions: [toolOf('read'), toolOf('read', { title: 'Reads' })],
    offer: (definition) => observed([definition]),
  },
  prompts: {
    kind: 'prompt',
    name: 'greet',
    versions: [{ name: 'greet' }, { name: 'greet', title: 'Greets' }],
    offer: (definition) => observed([], { prompts: [definition] }),
  },
  resourceTemplates: {
    kind: 'template',
    name: 'repo://{owner}',
    versions: [
      { uriTemplate: 'repo://{owner}', name: 'repo' },
      { uriTemplate: 'repo://{owner}', name: 'repository' },
    ],
    offer: (definition) => observed([], { templates: [definition] }),
  },
  resources: {
    kind: 'resource',
    name: URI,
    versions: [page('<p>one</p>'), page('<p>two</p>')],
    offer: (definition) => observed([], { resources: [definition] }),
  },
};

function read(members: object) {
  const file = { lockfileVersion: 1, upstream: 'github', ...members };
  const { lock, diagnostics } = readLock('pins/github.lock.yaml', JSON.stringify(file));
  return { lock, messages: diagnostics.map(({ message }) => message) };
}

type Entry = {
  readonly status: string;
  readonly sha256: string;
  readonly approval?: object;
  readonly definition: JsonObject;
  readonly variants?: readonly Entry[];
};

describe.each(Object.entries(SAMPLES))('[C-24] of %s in a lock file', (member, sample) => {
  const { kind, name, versions, offer } = sample;
  const [one, other] = versions;
  const entryOf = (definition: JsonObject, status: string, more: object = {}): Entry => ({
    status,
    sha256: digestOf(definition, kind),
    ...(status === 'approved' ? { approval: APPROVAL } : {}),
    definition,
    ...more,
  });
  const reading = (entry: Entry) => read({ [member]: { [name]: entry } });

  /** What stands for the name while a definition is offered. */
  function stateOf(entry: Entry, offered: JsonObject = one): string {
    const { lock, messages } = reading(entry);
    expect(messages).toEqual([]);
    const catalog = createCatalog({
      ...{ upstream: 'github', lock, observed: offer(offered), mode: 'strict' },
      ...{ onDrift: 'hide-tool', undeclaredArguments: 'declared', compile },
    });
    return catalog.statusOf(kind, name).state;
  }

  test('status, sha256 and definition say what may be used', () => {
    for (const status of ['approved', 'pending', 'blocked']) {
      expect(stateOf(entryOf(one, status))).toBe(status);
    }
    expect(stateOf(entryOf(one, 'approved'), other)).toBe('changed');
    const sha256 = digestOf(other, kind);
    expect(reading(entryOf(one, 'approved', { sha256 })).messages.join()).toContain('does not match');
  });

  test('variants stand beside it, each with a status of its own', () => {
    const withVariant = (status: string, more: object = {}): Entry =>
      entryOf(one, 'approved', { variants: [entryOf(other, status, more)] });
    expect(stateOf(withVariant('approved'), other)).toBe('approved');
    expect(stateOf(withVariant('pending'), other)).toBe('changed');
    expect(stateOf(withVariant('blocked'), other)).toBe('blocked');
    const sha256 = digestOf(one, kind);
    expect(reading(withVariant('approved', { sha256 })).messages.join()).toContain('does not match');
  });

  test('an approval says who, when and why, and nothing is approved without one', () => {
    const kept = reading(entryOf(one, 'approved', { variants: [entryOf(other, 'approved')] })).lock?.pins[kind].get(
      name,
    );
    expect([kept?.approval, kept?.variants[0]?.approval]).toEqual([APPROVAL, APPROVAL]);
    for (const change of [{ by: '' }, { at: 'yesterday' }, { note: 7 }]) {
      const approval = { ...APPROVAL, ...change };
      const variants = [entryOf(other, 'approved', { approval })];
      expect(reading(entryOf(one, 'approved', { approval })).messages).toHaveLength(1);
      expect(reading(entryOf(one, 'approved', { variants })).messages).toHaveLength(1);
    }
    const { sha256 } = entryOf(one, 'approved');
    expect(reading({ status: 'approved', sha256, definition: one }).messages).toHaveLength(1);
  });

  test('an approval says which findings were accepted', () => {
    const approval = { ...APPROVAL, accepted: ['secrecy-0a1b2c3d'] };
    const variants = [entryOf(other, 'approved', { approval })];
    const kept = reading(entryOf(one, 'approved', { approval, variants })).lock?.pins[kind].get(name);
    expect([kept?.approval, kept?.variants[0]?.approval]).toEqual([approval, approval]);
    const wrong = { approval: { ...APPROVAL, accepted: [7] } };
    expect(reading(entryOf(one, 'approved', wrong)).messages).toHaveLength(1);
  });

  test('a block says who, when and why, where something is blocked', () => {
    const block = { block: APPROVAL };
    const variants = [entryOf(other, 'blocked', block)];
    const entry = entryOf(one, 'blocked', { ...block, variants });
    const kept = reading(entry).lock?.pins[kind].get(name);
    expect([kept?.block, kept?.variants[0]?.block]).toEqual([APPROVAL, APPROVAL]);
    expect(reading(entryOf(one, 'approved', block)).messages.join()).toContain('not blocked');
    for (const change of [{ by: '' }, { at: 'yesterday' }, { note: 7 }]) {
      const wrong = { block: { ...APPROVAL, ...change } };
      const beside = [entryOf(other, 'blocked', wrong)];
      expect(reading(entryOf(one, 'blocked', wrong)).messages).toHaveLength(1);
      expect(reading(entryOf(one, 'blocked', { variants: beside })).messages).toHaveLength(1);
    }
  });
});

describe('[C-24] of instructions in a lock file', () => {
  const textOf = (text: string, status: string, more: object = {}) => ({
    status,
    sha256: digestOf(text, 'instructions'),
    ...(status === 'approved' ? { approval: APPROVAL } : {}),
    text,
    ...more,
  });
  const shown = (instructions: object, offered: string): string | undefined => {
    const { lock, messages } = read({ instructions });
    expect(messages).toEqual([]);
    return createCatalog({
      ...{ upstream: 'github', lock, observed: observed([], { instructions: offered }) },
      ...{ mode: 'strict', onDrift: 'hide-tool', undeclaredArguments: 'declared', compile },
    }).instructions;
  };

  test('text, sha256 and status say what models are shown, variants too', () => {
    expect(shown(textOf('Be brief.', 'approved'), 'Be brief.')).toBe('Be brief.');
    expect(shown(textOf('Be brief.', 'pending'), 'Be brief.')).toBeUndefined();
    const variants = [textOf('Be long.', 'approved')];
    expect(shown(textOf('Be brief.', 'pending', { variants }), 'Be long.')).toBe('Be long.');
    const waiting = [textOf('Be long.', 'pending')];
    expect(shown(textOf('Be brief.', 'approved', { variants: waiting }), 'Be long.')).not.toBe('Be long.');
    const sha256 = digestOf('Be long.', 'instructions');
    for (const wrong of [
      textOf('Be brief.', 'approved', { sha256 }),
      textOf('Be long.', 'approved', { variants: [textOf('Be brief.', 'approved', { sha256 })] }),
    ])
      expect(read({ instructions: wrong }).messages.join()).toContain('does not match');
  });

  test('an approval of them says who, when and why', () => {
    const variants = [textOf('Be long.', 'approved')];
    const { lock } = read({ instructions: textOf('Be brief.', 'approved', { variants }) });
    expect(lock?.instructions?.approval).toEqual(APPROVAL);
    expect(lock?.instructions?.variants[0]?.approval).toEqual(APPROVAL);
    for (const change of [{ by: '' }, { at: 'yesterday' }, { note: 7 }]) {
      const approval = { ...APPROVAL, ...change };
      const wrong = [textOf('Be long.', 'approved', { approval })];
      for (const instructions of [
        textOf('Be brief.', 'approved', { approval }),
        textOf('Be brief.', 'approved', { variants: wrong }),
      ])
        expect(read({ instructions }).messages).toHaveLength(1);
    }
  });

  test('an approval of them says which findings were accepted', () => {
    const approval = { ...APPROVAL, accepted: ['secrecy-0a1b2c3d'] };
    const variants = [textOf('Be long.', 'approved', { approval })];
    const { lock } = read({
      instructions: textOf('Be brief.', 'approved', { approval, variants }),
    });
    expect(lock?.instructions?.approval).toEqual(approval);
    expect(lock?.instructions?.variants[0]?.approval).toEqual(approval);
    const wrong = { ...APPROVAL, accepted: [7] };
    const instructions = textOf('Be brief.', 'approved', { approval: wrong });
    expect(read({ instructions }).messages).toHaveLength(1);
  });
});

describe('[C-24] of blocked instructions in a lock file', () => {
  test('a block of them says who, when and why', () => {
    const textOf = (text: string, block: object, more: object = {}) => ({
      ...{ status: 'blocked', sha256: digestOf(text, 'instructions'), block, text },
      ...more,
    });
    const variants = [textOf('Be long.', APPROVAL)];
    const { lock } = read({ instructions: textOf('Be brief.', APPROVAL, { variants }) });
    const kept = lock?.instructions;
    expect([kept?.block, kept?.variants[0]?.block]).toEqual([APPROVAL, APPROVAL]);
    for (const change of [{ by: '' }, { at: 'yesterday' }, { note: 7 }]) {
      const wrong = { ...APPROVAL, ...change };
      expect(read({ instructions: textOf('Be brief.', wrong) }).messages).toHaveLength(1);
      const beside = [textOf('Be long.', wrong)];
      const instructions = textOf('Be brief.', APPROVAL, { variants: beside });
      expect(read({ instructions }).messages).toHaveLength(1);
    }
  });
});

describe('[C-24] of the whole lock file', () => {
  test('lockfileVersion and upstream must be those of the file', () => {
    expect(read({}).messages).toEqual([]);
    expect(read({ lockfileVersion: 2 }).messages).toEqual([
      'must be 1; a file with another version was written by another version of Sallyport',
    ]);
    expect(read({ upstream: 'gitlab' }).messages).toEqual([
      '"gitlab" differs from the name of the file, "github.lock.yaml"',
    ]);
  });

  test('server is whom the answers of the server are compared with', () => {
    const declared = { name: 'A', title: 'B', version: '1', websiteUrl: 'https://a.example' };
    const changesOf = (serverInfo: object): readonly string[] =>
      findDifferences(read({ server: declared }).lock, observed([], { serverInfo: serverInfo as JsonObject })).map(
        ({ change }) => change,
      );
    expect(changesOf(declared)).toEqual([]);
    expect(changesOf({ ...declared, version: '2' })).toEqual(['server-version']);
    for (const change of [{ name: 'Z' }, { title: 'Z' }, { websiteUrl: 'https://z.example' }])
      expect(changesOf({ ...declared, ...change })).toEqual(['server']);
  });
});
