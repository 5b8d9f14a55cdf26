// Every key of the gateway file, of policies and of lock files has a test that goes from a file to what the
// key does. The claims stand in config-effects/, one line a key; this holds them to the schemas and to the
// tests that they name. A key that is validated, compiled and read by nobody has no such test.

import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SCHEMAS } from '../src/cli/validate.js';
import { gatewayEffects } from './config-effects/gateway.js';
import { lockEffects } from './config-effects/lock.js';
import { policyEffects } from './config-effects/policy.js';
import { keysOf, listFiles, readImports, stripComments } from './support/source-tree.js';

const ROOT = import.meta.dirname;

/** `file > part of a title`, by key; `{a,b}` in a key stands for several. */
type Effects = Readonly<Record<string, string>>;

type Sources = {
  /** The text of a test or of what it imports, without comments; undefined where there is none. */
  readonly text: (path: string) => string | undefined;
  /** What it imports of the tests. */
  readonly imports: (path: string) => readonly string[];
};

function readSource(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), 'utf8');
  } catch {
    return undefined;
  }
}

/** Many claims name one test, and many tests are made of the same files: each is read once. */
function once<Value>(read: (path: string) => Value): (path: string) => Value {
  const known = new Map<string, Value>();
  return (path) => {
    const value = known.get(path) ?? read(path);
    known.set(path, value);
    return value;
  };
}

const disk: Sources = {
  text: once((path) => {
    const text = readSource(path);
    return text === undefined ? undefined : stripComments(text, true);
  }),
  imports: once((path) =>
    readImports(readSource(path) ?? '')
      .filter(({ specifier }) => specifier.startsWith('.') && !specifier.includes('/src/'))
      .map(({ specifier }) => posix.join(dirname(path), specifier.replace(/\.js$/, '.ts'))),
  ),
};

function expand(key: string): readonly string[] {
  const [braced, options] = /\{([^}]*)\}/.exec(key) ?? [];
  if (braced === undefined || options === undefined) return [key];
  return options.split(',').flatMap((option) => expand(key.replace(braced, () => option)));
}

function expanded(effects: Effects): ReadonlyMap<string, string> {
  return new Map(Object.entries(effects).flatMap(([key, claim]) => expand(key).map((one) => [one, claim])));
}

/** The test and all of the tests' own files that it is made of. */
function closure(path: string, sources: Sources): readonly string[] {
  const found = new Set([path]);
  for (const known of found) for (const next of sources.imports(known)) if (!found.has(next)) found.add(next);
  return [...found];
}

/** What turns the text of a file into something that runs, or is refused. */
const READS_A_FILE =
  /\b(?:startTestGateway|startSallyport|runSallyport|loadGateway|loadPolicies|readLock|loadLocks|helmProgram)\b/;

function isTitled(text: string, title: string): boolean {
  const at = text.indexOf(title);
  if (at === -1) return false;
  // The nearest call before it is one that runs.
  const calls = [...text.slice(0, at).matchAll(/\b(?:it|test|describe)(?:\.(\w+))?\b/g)];
  return !['skip', 'todo', 'fails', 'skipIf', 'runIf'].includes(calls.at(-1)?.[1] ?? '');
}

function isSet(name: string, text: string): boolean {
  return new RegExp(`(?<![\\w-])${name}['"]?:`).test(text);
}

/** The names that a file writes to set a key: its own, and the one that it stands under where that has a name. */
function namesOf(key: string): readonly string[] {
  const [own = '', holder = '<name>'] = key.split('.').reverse();
  return [own, holder].map((name) => name.replace('[]', '')).filter((name) => name !== '<name>');
}

/** Why a claim is not true; undefined where it is. */
function errorOf(key: string, claim: string, sources: Sources): string | undefined {
  const [path = '', title = ''] = claim.split(' > ', 2);
  const text = sources.text(path);
  if (text === undefined) return `${key}: there is no test ${path}`;
  if (title.length < 10 || !isTitled(text, title)) return `${key}: ${path} has no "${title}" that runs`;
  const texts = closure(path, sources).flatMap((file) => sources.text(file) ?? []);
  if (!texts.some((one) => READS_A_FILE.test(one))) return `${key}: ${path} reads no file`;
  const names = namesOf(key);
  const unset = names.find((name) => !texts.some((one) => isSet(name, one)));
  return unset === undefined ? undefined : `${key}: ${path} never sets ${unset}`;
}

function errorsOf(keys: readonly string[], effects: Effects, sources: Sources): readonly string[] {
  const claims = expanded(effects);
  return [
    ...keys.filter((key) => !claims.has(key)).map((key) => `${key}: no test shows what it does`),
    ...[...claims.keys()].filter((key) => !keys.includes(key)).map((key) => `${key}: no such key`),
    ...[...claims].flatMap(([key, claim]) => (keys.includes(key) ? (errorOf(key, claim, sources) ?? []) : [])),
  ];
}

const FILES: readonly (readonly [string, Effects])[] = [
  ['gateway', gatewayEffects],
  ['policy', policyEffects],
  ['lock', lockEffects],
];

describe('[C-24] every key', () => {
  it.each(FILES)('of the %s file has a test from file to effect', (name, effects) => {
    const keys = keysOf(SCHEMAS.get(name) ?? {});
    expect(keys.length).toBeGreaterThan(10);
    expect(errorsOf(keys, effects, disk)).toEqual([]);
  });

  it('is found in the schemas: below maps, lists, unions and other forms, and once', () => {
    const keys = (name: string): readonly string[] => keysOf(SCHEMAS.get(name) ?? {});
    expect(keys('gateway')).toEqual(
      expect.arrayContaining([
        'keys',
        'audit.sinks[].path',
        'upstreams.<name>.credentials.actorToken',
        'upstreams.<name>.pinning.credentials.clientId',
        'inspection.profiles.<name>.result.pii',
        'inspection.profiles.<name>.result.pii.kinds',
        'upstreams.<name>.audiences',
        'tracing.sampling',
      ]),
    );
    expect(keys('gateway').filter((key) => key.includes('profiles.default'))).toEqual([]);
    expect(keys('policy')).toEqual(
      expect.arrayContaining(['rules[].audit.capture', 'rules[].who.claims', 'rules[].args']),
    );
    expect(keys('policy')).not.toContain('rules[].audit');
    // The page says of one key that it is there for people.
    expect(Object.keys(SCHEMAS.get('policy')?.['properties'] ?? {})).toContain('owner');
    expect(keys('policy')).not.toContain('owner');
    expect(keys('lock')).toContain('tools.<name>.variants[].sha256');
  });
});

describe('[C-24] a claim', () => {
  const FILE = `it('is bounded by its limit', () => startTestGateway('limits: {rate: 1}'));
it.skip('is not run at all', () => undefined);`;
  const sources: Sources = {
    text: (path) =>
      new Map([
        ['a.test.ts', FILE],
        ['b.test.ts', `it('is bounded by its limit', () => compile({ limits: { rate: 1 } }));`],
        ['c.test.ts', `import './writer.js';\nit('is bounded by its limit', () => start());`],
        ['writer.ts', `startTestGateway('limits: {rate: 1}')`],
      ]).get(path),
    imports: (path) => (path === 'c.test.ts' ? ['writer.ts'] : []),
  };
  const of = (keys: readonly string[], effects: Effects): readonly string[] => errorsOf(keys, effects, sources);

  it('is taken where the test exists, runs, reads a file and sets the key in it', () => {
    expect(of(['limits.rate'], { 'limits.rate': 'a.test.ts > bounded by its limit' })).toEqual([]);
    expect(of(['limits.rate'], { 'limits.rate': 'c.test.ts > bounded by its limit' })).toEqual([]);
  });

  it.each([
    ['nobody makes it', {}, 'no test shows what it does'],
    ['its key is gone', { 'limits.gone': 'a.test.ts > bounded by its limit' }, 'no such key'],
    ['its file is gone', { 'limits.rate': 'x.test.ts > bounded by its limit' }, 'there is no test'],
    ['its test is gone', { 'limits.rate': 'a.test.ts > was there yesterday' }, 'that runs'],
    ['its test is skipped', { 'limits.rate': 'a.test.ts > is not run at all' }, 'that runs'],
    ['it reads no file', { 'limits.rate': 'b.test.ts > bounded by its limit' }, 'reads no file'],
  ])('is refused where %s', (_, effects: Effects, error) => {
    expect(of(['limits.rate'], effects).join()).toContain(error);
  });

  it('is refused where the test sets another key', () => {
    const effects = { 'limits.burst': 'a.test.ts > bounded by its limit' };
    expect(of(['limits.burst'], effects)).toEqual(['limits.burst: a.test.ts never sets burst']);
    const elsewhere = { 'other.rate': 'a.test.ts > bounded by its limit' };
    expect(of(['other.rate'], elsewhere)).toEqual(['other.rate: a.test.ts never sets other']);
  });

  it('names tests of this suite alone', () => {
    const files = new Set(listFiles(ROOT, '.test.ts'));
    const named = FILES.flatMap(([, effects]) => Object.values(effects));
    expect(named.filter((claim) => !files.has(claim.split(' > ')[0] ?? ''))).toEqual([]);
  });
});
