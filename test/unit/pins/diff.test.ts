import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareDefinitions } from '../../../src/pins/comparison.js';
import { differingFields, fieldLines, printDiffLine, unifiedPatch } from '../../../src/pins/diff.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';

const BASE: JsonObject = {
  name: 'get_issue',
  description: 'Reads one issue.',
  inputSchema: {
    type: 'object',
    properties: { id: { type: 'string', maxLength: 10 }, 'a/b~c': { type: 'string' } },
    required: ['id'],
  },
};

function fieldsOf(after: JsonObject, before: JsonObject = BASE) {
  const changes = compareDefinitions('tool', before, after);
  return differingFields('tool', before, after, changes);
}

function shown(after: JsonObject): readonly string[] {
  return fieldsOf(after).flatMap((field) => [
    `${field.pointer} ${field.changes.join()}`,
    ...fieldLines(field).map(printDiffLine),
  ]);
}

function withSchema(more: JsonObject): JsonObject {
  return { ...BASE, inputSchema: { ...(BASE['inputSchema'] as JsonObject), ...more } };
}

describe('[L-96] a difference field by field', () => {
  it('has the classes of the whole difference beyond the fields that are classified in a long one', () => {
    const properties = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`p${at}`, { type: 'string' }]));
    const after = { ...withSchema({ properties }), description: 'x'.repeat(1_000_000) };
    const classes = fieldsOf(after).map(({ changes }) => changes.join());
    expect(classes.slice(1, 3)).not.toContain(classes.at(-1));
    expect(classes.at(-1)).toContain('description');
    expect(classes.at(-1)).toContain('input-widened');
  });

  it('has a pointer, both values and the classes of each field alone', () => {
    const after = {
      ...withSchema({
        properties: { id: { type: 'string', maxLength: 99 }, 'a/b~c': { type: 'null' } },
        required: [],
      }),
      description: 'Reads\u200b one issue.',
      annotations: { readOnlyHint: true },
    };
    expect(fieldsOf(after).map(({ path: _, ...field }) => field)).toEqual([
      { pointer: '/annotations', after: { readOnlyHint: true }, changes: ['annotations'] },
      {
        ...{ pointer: '/description', before: 'Reads one issue.' },
        ...{ after: 'Reads\u200b one issue.', changes: ['new-cue', 'description'] },
      },
      {
        ...{ pointer: '/inputSchema/properties/a~1b~0c/type', before: 'string', after: 'null' },
        changes: ['input-widened', 'input-narrowed'],
      },
      {
        ...{ pointer: '/inputSchema/properties/id/maxLength', before: 10, after: 99 },
        changes: ['input-widened'],
      },
      {
        ...{ pointer: '/inputSchema/required', before: ['id'], after: [] },
        changes: ['input-widened'],
      },
    ]);
  });

  it('is shown with what cannot be seen, and what is text as text', () => {
    const after = { ...BASE, description: 'Reads\u200b "one"\nissue. ', name: 'get\u202eissue' };
    expect(shown(after)).toEqual([
      '/description new-cue,description',
      '- "Reads one issue."',
      '+ "Reads\\u{200b} \\"one\\"\\n"',
      '+ "issue. "',
      '/name new-cue,description',
      '- "get_issue"',
      '+ "get\\u{202e}issue"',
    ]);
    const number = withSchema({ properties: { id: { type: 'string', maxLength: '10' } } });
    expect(shown(number).slice(-3)).toEqual([
      '/inputSchema/properties/id/maxLength input-widened,input-narrowed',
      '- 10',
      '+ "10"',
    ]);
  });

  it('is one of a text for instructions, and none where one side does not exist', () => {
    const [field] = differingFields(undefined, 'Be brief.', 'Be long.', ['description']);
    expect(field).toMatchObject({ pointer: '', before: 'Be brief.', changes: ['description'] });
    expect(differingFields('tool', undefined, BASE, ['new-tool'])).toEqual([]);
    expect(differingFields('tool', BASE, undefined, ['removed'])).toEqual([]);
  });

  it('is complete: the old definition with every field changed is the new one', () => {
    const key = fc.constantFrom('a', 'b', '__proto__', 'toString', '');
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom<Json>(null, 0, 'x', true),
        fc.array(tie('value'), { maxLength: 2 }) as fc.Arbitrary<Json>,
        fc.dictionary(key, tie('value'), { noNullPrototype: true }) as fc.Arbitrary<Json>,
      ),
    }));
    const definition = fc.dictionary(key, value, {
      noNullPrototype: true,
    }) as fc.Arbitrary<JsonObject>;
    const leaves = (at: Json, path: string, found: Map<string, string>): Map<string, string> => {
      if (typeof at === 'object' && at !== null && Object.keys(at).length > 0) {
        for (const [name, child] of Object.entries(at)) {
          leaves(child, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, found);
        }
      } else found.set(path, JSON.stringify(at));
      return found;
    };
    fc.assert(
      fc.property(definition, definition, (before, after) => {
        const fields = differingFields('prompt', before, after, ['notation-only']);
        const covers = (path: string): boolean =>
          fields.some(({ pointer }) => path === pointer || path.startsWith(`${pointer}/`));
        const [old, next] = [leaves(before, '', new Map()), leaves(after, '', new Map())];
        for (const [path, text] of [...old, ...next]) {
          // An empty object becomes one with members: the leaf was its own place.
          const isSame = old.get(path) === text && next.get(path) === text;
          const isEmpty = text === '{}' || text === '[]';
          expect(isSame || isEmpty || covers(path)).toBe(true);
        }
        for (const field of fields) {
          expect(JSON.stringify(field.before)).not.toBe(JSON.stringify(field.after));
        }
      }),
    );
  });
});

const lines = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
const text = (all: readonly string[]): string => `${all.join('\n')}\n`;
const FORTY = lines(0, 40);
const without = (at: number, count: number, ...put: string[]): string[] => FORTY.toSpliced(at, count, ...put);

describe('a patch of a lock file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-patch-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each<[string, string[] | undefined, string[]]>([
    ['adds lines', FORTY, without(20, 0, 'a', 'b')],
    ['removes lines', FORTY, without(20, 3)],
    ['changes the first line', FORTY, without(0, 1, 'new')],
    ['changes the last line', FORTY, without(39, 1, 'new')],
    ['adds at the end', FORTY, [...FORTY, 'end']],
    ['changes two places that are far apart', FORTY, without(5, 1, 'x').toSpliced(35, 1, 'y')],
    ['changes two places that are near each other', FORTY, without(5, 1, 'x').toSpliced(9, 1, 'y')],
    ['creates a file', undefined, FORTY],
    ['empties a line', FORTY, without(7, 1, '')],
  ])('[CON-12] that %s is what git applies', (_what, before, after) => {
    const file = join(folder, 'a.lock.yaml');
    rmSync(file, { force: true });
    if (before !== undefined) writeFileSync(file, text(before));
    const patch = unifiedPatch('a.lock.yaml', before && text(before), text(after));
    execFileSync('git', ['apply', '-'], { cwd: folder, input: patch });
    expect(readFileSync(file, 'utf8')).toBe(text(after));
  });
});
