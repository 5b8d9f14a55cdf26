// What is done with lock files when a version is read.

import { expect, it } from 'vitest';
import { prepareDefinitions } from '../../../src/gateway/config-version.js';
import { withSlowClock } from '../../support/timing.js';
import { lockOf, pinOf, toolOf, versionOf } from '../pins/samples.js';

it('[L-46] reads the schemas of all approved forms, and others are served in between', async () => {
  const lock = lockOf([
    pinOf(toolOf('a'), 'approved', [versionOf(toolOf('a', { title: 'b' }), 'approved')]),
    pinOf(toolOf('b'), 'pending'),
    pinOf(toolOf('c')),
  ]);
  const compiled = await withSlowClock(async (turns) => {
    const names: string[] = [];
    await prepareDefinitions([lock], (_, name) => {
      names.push(`${name} after ${turns()}`);
      return undefined;
    });
    return names;
  });
  expect(compiled).toEqual(['a after 0', 'a after 0', 'c after 2']);
});
