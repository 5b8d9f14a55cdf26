// What a server calls itself: remembered, compared, and shown.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeFetched } from '../../../src/pins/approval.js';
import { type Lock, readServer, writeLock } from '../../../src/pins/lock.js';
import { findDifferences, isInformational } from '../../../src/pins/lock-differences.js';

import { readLock } from '../../../src/pins/lock-reader.js';
import { APPROVAL, lockOf, observedOf } from './samples.js';

const FILE = 'github.lock.yaml';
const KNOWN = { name: 'github', title: 'GitHub', version: '1.0.0' };

function lockWith(server: Lock['server']): Lock {
  return { ...lockOf([]), server };
}

function changesOf(server: Lock['server'], serverInfo: Record<string, string>): readonly string[] {
  const observed = observedOf([], { serverInfo });
  return findDifferences(lockWith(server), observed).map(({ kind, change }) => `${kind} ${change}`);
}

describe('[CRD-12] what a server calls itself', () => {
  it('is compared by name, title and page; another version is a notice', () => {
    expect(changesOf(KNOWN, KNOWN)).toEqual([]);
    expect(changesOf(KNOWN, { ...KNOWN, name: 'git-hub' })).toEqual(['server server']);
    expect(changesOf(KNOWN, { ...KNOWN, title: 'GitHub ' })).toEqual(['server server']);
    expect(changesOf(KNOWN, { ...KNOWN, websiteUrl: 'https://x.example' })).toEqual(['server server']);
    expect(changesOf(KNOWN, { ...KNOWN, version: '1.0.1' })).toEqual(['server server-version']);
    expect(isInformational({ change: 'server-version' })).toBe(true);
    expect(isInformational({ change: 'server' })).toBe(false);
  });

  it('is compared with nothing where the lock file remembers nobody', () => {
    expect(changesOf(undefined, KNOWN)).toEqual([]);
    expect(readLock(FILE, writeLock(lockWith(undefined))).lock?.server).toBeUndefined();
  });

  it('is remembered at the first listing, and changed by an approval, but for its version', () => {
    const merged = (lock: Lock | undefined, serverInfo: Record<string, string>, isApproved = false) =>
      mergeFetched({
        upstream: 'github',
        lock,
        observed: observedOf([], { serverInfo }),
        approval: isApproved ? APPROVAL : undefined,
      }).lock.server;
    const renamed = { ...KNOWN, name: 'other' };
    const updated = { ...KNOWN, version: '2' };
    expect(merged(undefined, KNOWN)).toEqual(KNOWN);
    expect(merged(lockWith(KNOWN), renamed)).toEqual(KNOWN);
    expect(merged(lockWith(KNOWN), renamed, true)).toEqual(renamed);
    expect(merged(lockWith(KNOWN), updated)).toEqual(updated);
    expect(merged(lockWith(KNOWN), {})).toEqual(KNOWN);
  });

  it('survives writing and reading, whatever it is', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 });
    const infos = fc.record({ name: text, version: text, title: text, websiteUrl: text });
    fc.assert(
      fc.property(infos, (info) => {
        const server = readServer(info);
        const { lock, diagnostics } = readLock(FILE, writeLock(lockWith(server)));
        expect(diagnostics).toEqual([]);
        expect(lock?.server).toEqual(server);
      }),
    );
  });

  it('is nobody where the server names nobody, and is cut where it is long', () => {
    expect(readServer(undefined)).toBeUndefined();
    expect(readServer({ version: '1' })).toBeUndefined();
    expect(readServer({ name: 7 })).toBeUndefined();
    expect(readServer({ name: 'a'.repeat(1000) })?.name).toHaveLength(256);
  });

  it.each([
    ['server: {version: "1"}', 'must be a text'],
    ['server: {name: x, nme: y}', 'unknown key'],
    ['server: []', 'must be a map'],
  ])('is a mistake as %s', (line, message) => {
    const written = writeLock(lockOf([])).replace('tools:', `${line}\ntools:`);
    const { diagnostics } = readLock(FILE, written);
    expect(diagnostics.map((diagnostic) => diagnostic.message).join()).toContain(message);
  });
});
