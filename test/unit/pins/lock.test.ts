import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_DEFINITION_DEPTH } from '../../../src/pins/digest.js';
import {
  divideLock,
  emptyLock,
  type Lock,
  type Pin,
  writeLock,
  writeLockInParts,
  writePins,
} from '../../../src/pins/lock.js';
import { loadLocks, readLock, readLockInParts } from '../../../src/pins/lock-reader.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { APPROVAL, digestOf, lockOf, pinOf, textPin, toolOf, versionOf } from './samples.js';

const FILE = 'pins/github.lock.yaml';

function places(text: string): string[] {
  return readLock(FILE, text).diagnostics.map(
    ({ line, column, message, suggestion }) =>
      `${line}:${column} ${message}${suggestion === undefined ? '' : ` (${suggestion}?)`}`,
  );
}

const SAMPLE = writeLock(
  lockOf([pinOf(toolOf('get_issue'), 'approved', [versionOf(toolOf('get_issue', { title: 'x' }), 'pending')])]),
);

describe('writing', () => {
  test('[L-05] one member a line, sorted, the whole definition kept', () => {
    expect(SAMPLE).toBe(`# Written by \`sallyport pin\`: review the differences, approve with \`sallyport pin approve\`.
lockfileVersion: 1
upstream: github
tools:
  get_issue:
    status: approved
    sha256: "${digestOf(toolOf('get_issue'))}"
    approval:
      at: "2026-11-20T10:00:00.000Z"
      by: alex
      note: first
    definition:
      description: "Reads one issue."
      inputSchema:
        properties:
          id:
            type: string
        type: object
      name: get_issue
    variants:
      - status: pending
        sha256: "${digestOf(toolOf('get_issue', { title: 'x' }))}"
        definition:
          description: "Reads one issue."
          inputSchema:
            properties:
              id:
                type: string
            type: object
          name: get_issue
          title: x
prompts: {}
resourceTemplates: {}
...
`);
  });

  test('[L-06] what cannot be seen is written as an escape', () => {
    const hidden = 'a\u200bb\u202ec\u{e0041}d\u0007e\u00adf\u00a0g\ufe0fh\u{1f600}';
    const text = writeLock(lockOf([pinOf(toolOf('t', { description: hidden, [hidden]: 1 }))]));
    expect(text).toContain('"a\\u200bb\\u202ec\\U000e0041d\\u0007e\\u00adf\\u00a0g\\ufe0fh😀"');
    for (const character of ['\u200b', '\u202e', '\u{e0041}', '\u0007', '\u00a0', '\ufe0f']) {
      expect(text.includes(character)).toBe(false);
    }
    const { lock } = readLock(FILE, text);
    expect(lock?.pins.tool.get('t')?.definition).toEqual(toolOf('t', { description: hidden, [hidden]: 1 }));
  });

  test('[L-05] what is written reads back as it was, whatever it holds', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('true', 'null', '~', '1e3', '0x1f', '- a', 'a: b', '#', "'", '', ' a ', 'no'),
    );
    const keys = texts.filter((key) => key !== '__proto__');
    const values: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        texts,
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    })).value;
    const definitions = fc.dictionary(keys, values, { maxKeys: 4, noNullPrototype: true });
    fc.assert(
      fc.property(
        keys.filter((key) => key !== ''),
        definitions,
        texts,
        (name, more, note) => {
          const definition = { ...(more as JsonObject), name };
          const approved = { ...pinOf(definition), approval: { ...APPROVAL, note } };
          const lock = lockOf([approved], textPin(note));
          const written = writeLock(lock);
          const reading = readLock(FILE, written);
          expect(reading.diagnostics).toEqual([]);
          expect(reading.lock).toEqual(lock);
          expect(writeLock(reading.lock ?? emptyLock('x'))).toBe(written);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('[L-05] the most deeply nested definition reads back as it was', () => {
    let deep: Json = 'end';
    for (let level = 1; level < MAX_DEFINITION_DEPTH; level++) deep = level % 2 === 0 ? [deep] : { a: deep };
    const lock = lockOf([pinOf(toolOf('t', { deep }))]);
    expect(readLock(FILE, writeLock(lock))).toEqual({ lock, diagnostics: [] });
  });

  test('[L-05] names and numbers that a file of people may not hold are kept', () => {
    const lock = lockOf([pinOf(toolOf('<<', { '<<': 1, maximum: 2 ** 63 }))]);
    expect(readLock(FILE, writeLock(lock))).toEqual({ lock, diagnostics: [] });
  });

  test('[L-05] names longer than a YAML key may be are kept', () => {
    const name = 'n'.repeat(3000);
    const lock = lockOf([pinOf(toolOf(name, { [`k${name}`]: { a: 1 } }))]);
    expect(readLock(FILE, writeLock(lock)).lock).toEqual(lock);
  });
});

describe('reading', () => {
  test('[L-07] a definition that does not match its digest makes the lock invalid', () => {
    const [line = ''] = places(SAMPLE.replace('Reads one issue.', 'Reads two issues.'));
    expect(line).toMatch(
      /^7:13 this digest does not match the definition of tools\/get_issue, whose digest is [0-9a-f]{64}: /,
    );
  });

  test('[L-08] every mistake is told in one run, with its place and what was meant', () => {
    const text = SAMPLE.replace('lockfileVersion: 1', 'lockfileVersion: 2')
      .replace('upstream: github', 'upstream: gitlab')
      .replace('status: approved', 'status: aproved')
      .replace('prompts:', 'promts:');
    expect(places(text)).toEqual([
      '27:1 unknown key "promts" (prompts?)'.replace('27', `${text.split('\n').indexOf('promts: {}') + 1}`),
      '2:18 must be 1; a file with another version was written by another version of Sallyport',
      '3:11 "gitlab" differs from the name of the file, "github.lock.yaml"',
      '6:13 must be one of pending, approved, blocked (approved?)',
    ]);
  });

  test('[L-08] an approval names who gave it and when', () => {
    const without = SAMPLE.replace(/ {4}approval:\n( {6}.*\n){3}/, '');
    expect(places(without)).toEqual(['5:3 is approved without an approval']);
    expect(places(SAMPLE.replace('2026-11-20T10', 'yesterday'))).toEqual(['9:11 must be a time of RFC 3339']);
    expect(places(SAMPLE.replace('by: alex', 'by: ""'))).toEqual(['10:11 must be a text that is not empty']);
  });

  test('[L-09] a definition under another name, or twice, is refused', () => {
    const renamed = SAMPLE.replace('  get_issue:', '  other:');
    expect(places(renamed).filter((place) => place.includes('listed under'))).toHaveLength(2);
    const tool = toolOf('a');
    const twice = writeLock(lockOf([pinOf(tool, 'approved', [versionOf(tool, 'approved')])]));
    expect(places(twice)[0]).toContain('this definition stands twice');
  });

  test.each([
    ['lockfileVersion: 1\nupstream: github\nupstream: github\n', 'duplicate key "upstream"'],
    ['lockfileVersion: 1\nupstream: !x github\n', 'tag'],
    ['lockfileVersion: &a 1\nupstream: github\n', 'tags and anchors are not accepted'],
    ['a: &a {b: 1}\nc: *a\n', 'aliases are not accepted'],
    ['lockfileVersion: 1\n---\nupstream: github\n', 'document'],
    ['lockfileVersion: 1\nupstream: github\ntools:\n  __proto__: {}\n', '"__proto__" is not accepted'],
    ['%YAML 1.2\n---\nlockfileVersion: 1\nupstream: github\n', 'directives'],
    [`tools: ${'['.repeat(100_000)}`, ''],
    [`tools: ${'{a: '.repeat(270)}1${'}'.repeat(270)}`, 'nested more than'],
    ['', 'must be a map'],
    ['- 1', 'must be a map'],
    ['lockfileVersion: 1\nupstream: github\ntools: []\n', 'must be a map of names'],
  ])('[L-08] %j is refused', (text, message) => {
    const { lock, diagnostics } = readLock(FILE, text);
    expect(lock).toBeUndefined();
    expect(diagnostics.map((diagnostic) => diagnostic.message).join('\n')).toContain(message);
  });

  test('[L-10] a lock file that was cut off anywhere is refused (docs/reference/attacks.md case 65)', () => {
    const end = SAMPLE.length - 1;
    expect(readLock(FILE, SAMPLE.slice(0, end)).lock).toBeDefined();
    for (let length = 0; length < end; length += 1) {
      expect(readLock(FILE, SAMPLE.slice(0, length)).lock).toBeUndefined();
    }
  });

  test('[L-08] any text is read without an exception', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        readLock(FILE, text);
        readLock(FILE, `lockfileVersion: 1\nupstream: github\ntools: ${text}`);
      }),
    );
  });

  test('[L-11] instructions pinned by digest and text alone are approved', () => {
    const sha256 = digestOf('Be brief.', 'instructions');
    const text = `lockfileVersion: 1\nupstream: github\ninstructions: {sha256: "${sha256}", text: "Be brief."}\n`;
    const { lock, diagnostics } = readLock(FILE, text);
    expect(diagnostics).toEqual([]);
    expect(lock?.instructions).toMatchObject({ status: 'approved', definition: 'Be brief.' });
  });
});

describe('a folder of lock files', () => {
  const text = writeLock(lockOf([pinOf(toolOf('a'))]));

  function folderOf(files: Record<string, string | Uint8Array>) {
    return loadLocks('pins', {
      readDir: () => Object.keys(files),
      readFile: (path) => files[path.replace('pins/', '')] ?? '',
    });
  }

  test('[L-10] reads what is there, by upstream, with one hash for the version', async () => {
    const one = await folderOf({ 'github.lock.yaml': text, 'README.md': 'x' });
    expect([...one.locks.keys()]).toEqual(['github']);
    expect(one.diagnostics).toEqual([]);
    const other = await folderOf({ 'github.lock.yaml': new TextEncoder().encode(text) });
    expect(other.hash).toBe(one.hash);
    const changed = await folderOf({ 'github.lock.yaml': text.replace('by: alex', 'by: sam') });
    expect(changed.hash).not.toBe(one.hash);
  });

  test('[L-10] a corrupt or truncated file is a fault and no lock (docs/reference/attacks.md case 65)', async () => {
    const broken = text.slice(0, Math.floor(text.length / 2));
    const { locks, diagnostics } = await folderOf({
      'github.lock.yaml': broken,
      'mail.lock.yaml': new Uint8Array([0xff, 0xfe]),
    });
    expect(locks.size).toBe(0);
    expect(new Set(diagnostics.map(({ file }) => file))).toEqual(
      new Set(['pins/github.lock.yaml', 'pins/mail.lock.yaml']),
    );
  });

  test('[L-10] a missing folder holds no pins; one that cannot be read is a fault', async () => {
    const failing = (code: string) =>
      loadLocks('pins', {
        readDir: () => Promise.reject(Object.assign(new Error(code), { code })),
        readFile: () => '',
      });
    expect(await failing('ENOENT')).toMatchObject({ diagnostics: [], locks: new Map() });
    expect((await failing('EACCES')).diagnostics).toHaveLength(1);
  });
});

test('[L-05] a lock of every kind reads back', () => {
  const prompt: Pin = {
    ...pinOf({ name: 'greet' }),
    sha256: digestOf({ name: 'greet' }, 'prompt'),
  };
  const definition = { uriTemplate: 'repo://{owner}', name: 'repo' };
  const template: Pin = { ...pinOf(definition), sha256: digestOf(definition, 'template') };
  const shown = { uri: 'ui://a/b.html', contents: [{ uri: 'ui://a/b.html', text: '<p>\n</p>' }] };
  const resource: Pin = { ...pinOf(shown), sha256: digestOf(shown, 'resource') };
  const lock: Lock = {
    upstream: 'github',
    server: undefined,
    instructions: { ...textPin('Be brief.'), variants: [{ ...textPin('Be long.', 'pending') }] },
    pins: {
      tool: new Map([['a', pinOf(toolOf('a'), 'blocked')]]),
      prompt: new Map([['greet', prompt]]),
      template: new Map([['repo://{owner}', template]]),
      resource: new Map([['ui://a/b.html', resource]]),
    },
  };
  const { lock: read } = readLock(FILE, writeLock(lock));
  expect(read?.pins).toEqual(lock.pins);
  expect(read?.instructions?.variants[0]?.definition).toBe('Be long.');
});

describe('[L-05] a long lock file is read in parts', () => {
  const NAMES = ['a b', ':colon', '- dash', '# hash', '? mark', '...', '10', 'long'.repeat(300)];
  const many = (length: number): Lock => ({
    ...lockOf([
      ...NAMES.map((name) => pinOf(toolOf(name))),
      ...Array.from({ length }, (_, index) => {
        const tool = toolOf(`tool_${index}`, { title: 'two\nlines', list: [{ a: [] }, 'b'] });
        return pinOf(tool, 'approved', [versionOf(toolOf(`tool_${index}`), 'pending')]);
      }),
    ]),
    server: { name: 'github', version: '1' },
    instructions: textPin('Be brief.\ntools:\n  x: y'),
  });

  /** Reads the file in jobs, and notes how long the part of each is. */
  const readInJobs = async (text: string, sizes: number[] = []) =>
    readLockInParts(text, async (part) => {
      sizes.push(part.length);
      return readLock(FILE, part);
    });

  test('with the same result, in jobs of bounded size', async () => {
    const text = writeLock(many(300));
    const sizes: number[] = [];
    expect(await readInJobs(text, sizes)).toEqual(readLock(FILE, text));
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes)).toBeLessThan(70 * 1024);
  });

  test('and written so', async () => {
    const lock = many(300);
    const sizes: number[] = [];
    const text = await writeLockInParts(lock, async (pins) => {
      sizes.push(pins.length);
      return writePins(JSON.parse(pins));
    });
    expect(text).toBe(writeLock(lock));
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes)).toBeLessThan(70 * 1024);
  });

  test('and one with a mistake is reported as one that is read whole', async () => {
    const text = writeLock(many(150));
    const broken = [
      text.replace('      by: alex\n', ''),
      text.replace(/( {2}tool_7:\n)/, '$1    mystery: 1\n'),
      text.replace('  tool_7:\n', '  tool_6:\n'),
      text.replace('tools:\n', 'tools: !x\n'),
      text.replace('\nprompts: {}', '\ntools: {}'),
      text.replace('upstream: github', 'upstream: gitlab'),
      text.slice(0, -4),
      `${text}---\n`,
    ];
    for (const one of broken) {
      const { lock, diagnostics } = await readInJobs(one);
      expect(lock).toBeUndefined();
      expect(diagnostics).toEqual(readLock(FILE, one).diagnostics);
    }
  });

  test('and one that was written by hand is read whole', async () => {
    const text = writeLock(many(150));
    for (const own of [text.replace(/^#.*\n/, ''), text.replace('tools:', '# by hand\ntools:')]) {
      expect(divideLock(own)).toBeUndefined();
      expect(await readInJobs(own)).toEqual(readLock(FILE, own));
    }
  });
});
