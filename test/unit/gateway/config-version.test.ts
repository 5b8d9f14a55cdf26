// What is done with lock files when a version is read.

import { expect, it } from 'vitest';
import { prepareDefinitions } from '../../../src/gateway/config-version.js';
import type { CompileDefinition } from '../../../src/pins/catalog.js';
import { lockOf, pinOf, toolOf, versionOf } from '../pins/samples.js';

it('[L-46] reads the schemas of all approved forms, and others are served in between', async () => {
  const lock = lockOf([
    pinOf(toolOf('a'), 'approved', [versionOf(toolOf('a', { title: 'b' }), 'approved')]),
    pinOf(toolOf('b'), 'pending'),
    pinOf(toolOf('c')),
  ]);
  let turns = 0;
  const compiled: string[] = [];
  const compile: CompileDefinition = (_, name) => {
    // Longer than a slice, as the schemas of some hundred tools are together.
    const untilMs = performance.now() + 15;
    while (performance.now() < untilMs);
    compiled.push(`${name} after ${turns}`);
    return undefined;
  };
  let next = setImmediate(function turn() {
    turns += 1;
    next = setImmediate(turn);
  });
  await prepareDefinitions([lock], compile);
  clearImmediate(next);
  expect(compiled).toEqual(['a after 0', 'a after 0', 'c after 1']);
});
