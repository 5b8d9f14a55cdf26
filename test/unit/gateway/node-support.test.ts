// The versions of Node that the package names are those that the gate runs the tests on.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { endOfLife, RECOMMENDED_NODE } from '../../../src/gateway/node-support.js';

const ROOT = join(import.meta.dirname, '../../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

it('[G-14] names in `engines` the lines that are tested, and recommends the newest of them', () => {
  const manifest: { readonly engines: { readonly node: string } } = JSON.parse(read('package.json'));
  const named = [...manifest.engines.node.matchAll(/\^(\d+)\./g)].map(([, line]) => line);
  const tested = /^node_versions=\((.*)\)$/m.exec(read('.ci/run'))?.[1]?.split(' ') ?? [];
  expect(named).toEqual(tested.map((version) => version.split('.')[0]));
  expect(named.at(-1)).toBe(String(RECOMMENDED_NODE));
  expect(read('Dockerfile')).toContain(`node:${RECOMMENDED_NODE}-`);
});

it('[G-14] knows until when each line gets fixes', () => {
  const now = Date.UTC(2026, 3, 30);
  expect(endOfLife('v20.20.2', now - 1)).toBeUndefined();
  expect(endOfLife('v20.20.2', now)).toBe(new Date(now).toISOString().slice(0, 10));
  expect(endOfLife('v99.0.0', now)).toBeUndefined();
});
