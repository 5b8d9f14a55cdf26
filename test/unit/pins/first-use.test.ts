// What is trusted because it was offered first, and what the lock file says about it.

import { expect, it } from 'vitest';
import { createCatalog, createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { FIRST_USE, trustObserved, withTrusted } from '../../../src/pins/first-use.js';
import type { Lock } from '../../../src/pins/lock.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../src/protocol/headers.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { digestOf, lockOf, observedOf, pinOf, toolOf, versionOf } from './samples.js';

const AT = '2026-11-22T10:00:00.000Z';
const FIRST = toolOf('read');
const LATER = toolOf('read', { description: 'Reads everything.' });
const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });

function trust(tools: readonly JsonObject[], leftOut: readonly string[] = []): Lock | undefined {
  return trustObserved('github', observedOf(tools), AT, ({ name }) => leftOut.includes(name));
}

function stateOf(lock: Lock | undefined, offered: readonly JsonObject[]): string {
  const trusted = trust([FIRST]);
  if (trusted === undefined) throw new Error('nothing is trusted');
  const catalog = createCatalog({
    upstream: 'github',
    lock: withTrusted(lock, trusted),
    observed: observedOf(offered),
    mode: 'strict',
    onDrift: 'hide-tool',
    undeclaredArguments: 'any',
    compile,
  });
  return catalog.statusOf('tool', 'read').state;
}

it('[L-55] trusts what is offered, but for what is left out and what cannot be pinned', () => {
  const trusted = trust([FIRST, toolOf('left'), toolOf('twice'), toolOf('twice')], ['left']);
  expect([...(trusted?.pins.tool.keys() ?? [])]).toEqual(['read']);
  expect(trusted?.pins.tool.get('read')).toMatchObject({
    status: 'approved',
    sha256: digestOf(FIRST),
    approval: { by: FIRST_USE, at: AT },
  });
});

it('[L-55] takes a listing without definitions for no first use', () => {
  expect(trust([])).toBeUndefined();
});

it('[L-55] trusts what was offered first, and no later form', () => {
  expect(stateOf(undefined, [FIRST])).toBe('approved');
  expect(stateOf(undefined, [LATER])).toBe('changed');
  expect(stateOf(lockOf([pinOf(LATER, 'pending')]), [LATER])).toBe('changed');
  expect(stateOf(lockOf([pinOf(LATER, 'pending')]), [FIRST])).toBe('approved');
});

it('[L-55] leaves a name that was reviewed to the lock file alone', () => {
  expect(stateOf(lockOf([pinOf(LATER)]), [LATER])).toBe('approved');
  expect(stateOf(lockOf([pinOf(LATER)]), [FIRST])).toBe('changed');
  expect(stateOf(lockOf([pinOf(FIRST, 'blocked')]), [FIRST])).toBe('blocked');
  const variantBlocked = pinOf(LATER, 'pending', [versionOf(FIRST, 'blocked')]);
  expect(stateOf(lockOf([variantBlocked]), [FIRST])).toBe('blocked');
});
