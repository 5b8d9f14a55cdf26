import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../../src/cli/program.js';
import { SCHEMAS, schemaCommand } from '../../../src/cli/schema.js';
import { terminal } from './console.js';

describe('[C-13] schema', () => {
  it.each([...SCHEMAS.keys()])('prints %s', async (name) => {
    const io = terminal();
    expect(await buildProgram(io, [schemaCommand(io)]).run(['schema', name])).toBe(0);
    expect(io.out()).toBe(`${JSON.stringify(SCHEMAS.get(name), null, 2)}\n`);
    expect(io.err()).toBe('');
  });

  it('says what was meant by another name', async () => {
    const io = terminal();
    expect(await buildProgram(io, [schemaCommand(io)]).run(['schema', 'gatway'])).toBe(2);
    expect(io.out()).toBe('');
    expect(io.err()).toBe(
      'error: unknown schema; did you mean "gateway"? Known: gateway, policy, policy-test, lock, audit.\n',
    );
  });
});
