// A policy is reviewed line by line. A character that ends a line for an editor, but not for the reader of the gateway, would
// hide what the reviewer sees behind a comment: such a file is refused with its place, and the policy in force stays.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const ODD: readonly (readonly [what: string, end: string, code: string])[] = [
  ['a lone carriage return', '\r', 'U+000D'],
  ['a vertical tab', '\v', 'U+000B'],
  ['a form feed', '\f', 'U+000C'],
  ['a file separator', '\x1c', 'U+001C'],
  ['NEL', '\x85', 'U+0085'],
  ['a line separator', '\u2028', 'U+2028'],
  ['a paragraph separator', '\u2029', 'U+2029'],
  ['NUL', '\0', 'U+0000'],
  ['an escape sequence', '\x1b[1A', 'U+001B'],
];
const DENY = '  - {id: no-write, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], tools: [write_record]}}';

describe('a policy file', () => {
  const upstream = shared(() => startHostileUpstream());
  const gateway = sharedGateway(() => ({ upstreams: [{ name: 'target', url: upstream.url }] }));

  it.each(ODD)('with %s behind a comment is refused', async (_what, end, code) => {
    await gateway.writePolicy('open', `${ALLOW_ALL}  # everything but this:${end}${DENY}\n`);
    const found = await gateway.reload();
    expect(found.map(({ severity, line, message }) => [severity, line, message])).toEqual([
      ['error', ALLOW_ALL.split('\n').length, expect.stringContaining(`the character ${code} `)],
    ]);
  });

  it('may have the lines of Windows, and such characters as escapes', async () => {
    const rules = `${ALLOW_ALL}  # everything but this:\n${DENY.replace('no-write', '"no\\u002dwrite"')}\n`;
    await gateway.writePolicy('open', rules.replaceAll('\n', '\r\n'));
    expect((await gateway.reload()).filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('of pins is refused as well', async () => {
    const file = join(gateway.folder, 'policies/pins/target.lock.yaml');
    const lines = '# blocked:\rlockfileVersion: 1\nupstream: target\ntools: {}\nprompts: {}\nresourceTemplates: {}\n';
    await writeFile(file, lines);
    expect((await gateway.reload()).map(({ message }) => message).join()).toContain('the character U+000D ');
  });
});
