import { describe, expect, it } from 'vitest';
import { dangersOf, effectOf, refersToSecrets } from '../../../src/policy/tool-effect.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

const effect = (name: string, definition: JsonObject = {}) => effectOf(name, definition).effect;

describe('what a tool does, by its words', () => {
  it.each([
    ['get_issue', 'reads'],
    ['listDeletedFiles', 'reads'],
    ['search-and-replace', 'writes'],
    ['browser_run_code_unsafe', 'writes'],
    ['exec_in_pod', 'writes'],
    ['weather', 'unclear'],
  ])('%s: %s', (name, expected) => {
    expect(effect(name)).toBe(expected);
  });

  it('reads the description and the parameters too', () => {
    expect(effect('note', { description: 'Creates a note.' })).toBe('writes');
    expect(effect('get_note', { description: 'Reads a note and deletes it.' })).toBe('writes');
    expect(effect('get_note', { description: 'Reads a note. Does not create or delete anything.' })).toBe('reads');
    expect(effect('note', { description: 'Returns a note.' })).toBe('reads');
    expect(effect('get_rows', { inputSchema: { properties: { dry_run: {} } } })).toBe('writes');
  });

  it('lets an annotation raise the risk, and never lower it', () => {
    const annotations = { readOnlyHint: true };
    expect(effect('weather', { annotations })).toBe('unclear');
    expect(effectOf('get_note', { annotations })).toEqual({ effect: 'reads', because: '"get" in its name' });
    expect(effectOf('drop_note', { annotations })).toMatchObject({
      effect: 'writes',
      contradiction: 'readOnlyHint says that it only reads, against "drop" in its name',
    });
    expect(effect('get_note', { annotations: { destructiveHint: true } })).toBe('writes');
    expect(effect('get_note', { annotations: { readOnlyHint: false } })).toBe('writes');
    expect(effectOf('get_note', { annotations: { readOnlyHint: true, destructiveHint: true } })).toMatchObject({
      effect: 'writes',
      contradiction: expect.stringContaining('destructiveHint: true'),
    });
  });

  it('names what a grant should name', () => {
    expect(dangersOf('browser_run_code_unsafe')).toEqual(['runs code']);
    expect(dangersOf('exec_in_pod')).toEqual(['runs code']);
    expect(dangersOf('run_command')).toEqual(['runs commands']);
    expect(dangersOf('deleteRepo', { annotations: { destructiveHint: true } })).toEqual(['deletes']);
    expect(dangersOf('create_payment')).toEqual(['pays']);
    expect(dangersOf('tidy', { annotations: { destructiveHint: true } })).toEqual([
      'may destroy something by its annotation',
    ]);
    for (const name of ['get_terminal_output', 'list_payments', 'run_query', 'transfer_issue'])
      expect(dangersOf(name)).toEqual([]);
    expect(refersToSecrets('getApiKeys') || refersToSecrets('list_tokens')).toBe(true);
    expect(refersToSecrets('monkey_list')).toBe(false);
  });
});
