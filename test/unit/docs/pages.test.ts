// What can be said of the pages without running anything: the list of what is not run, and the pictures.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listFiles } from '../../support/source-tree.js';
import { isNotRunPageFresh, renderNotRunPage } from '../../system/guide-commands.js';

const ROOT = join(import.meta.dirname, '../../..');
const MAX_PICTURE_BYTES = 120_000;

describe('the pages', () => {
  it('[GU-11] list the blocks that are not run, with the reason', async () => {
    expect(await isNotRunPageFresh(process.env['UPDATE_REFERENCE'] === '1')).toBe(true);
    const block = '```sh\na | b\n```\n\n*Not run in our tests: it needs [a thing](#x).*\n';
    expect(renderNotRunPage(new Map([['flows.md', block]]))).toContain(
      '| [flows](../guides/flows.md) | `a \\| b` | It needs [a thing](../guides/flows.md#x). |\n',
    );
  });

  it('[GU-11] show every picture, in light and dark, and none is large', () => {
    const names = readdirSync(join(ROOT, 'docs/images')).filter((name) => name.endsWith('.png'));
    const pages = [...listFiles(join(ROOT, 'docs'), '.md').map((file) => join('docs', file)), 'README.md'];
    const text = pages.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      expect(text).toContain(`images/${name}`);
      expect(names).toContain(
        name.replace(/-(?:dark|light)\.png$/, (end) => (end === '-dark.png' ? '-light.png' : '-dark.png')),
      );
      expect([name, statSync(join(ROOT, 'docs/images', name)).size < MAX_PICTURE_BYTES]).toEqual([name, true]);
    }
  });
});
