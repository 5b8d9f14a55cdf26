import { describe, expect, it } from 'vitest';
import type { Diagnostic } from '../../../src/config/diagnostics.js';
import type { Settings } from '../../../src/config/settings.js';
import type { Version, VersionReading } from '../../../src/gateway/config-version.js';
import { createReload, type ReloadPorts } from '../../../src/gateway/reload.js';
import { createEvents } from '../../../src/policy/events.js';

const SETTINGS = {
  file: 'gateway.yaml',
  publicBase: '',
  listeners: { data: {}, ops: {} },
  keys: [],
  issuers: new Map(),
  upstreams: new Map(),
} as unknown as Settings;

function versionOf(config: string, ...pending: string[]): Version {
  const hashes = { config, policy: '', pins: '' };
  const reload = { pending: { keys: pending, leftOut: [] }, lost: [] };
  return { settings: SETTINGS, hashes, fileHashes: hashes, reload, closed: [] } as unknown as Version;
}

describe('reloads', () => {
  it('[H-08] that are asked for together end with what was read last, however long each takes', async () => {
    let onDisk = 'old';
    let current = versionOf('start');
    const applied: string[] = [];
    const slowReads: (() => void)[] = [];
    const ports: ReloadPorts = {
      async read() {
        const found = versionOf(onDisk);
        if (onDisk === 'old') await new Promise<void>((resolve) => slowReads.push(resolve));
        return { version: found, diagnostics: [] };
      },
      accept: async (reading) => reading,
      current: () => current,
      isEnding: () => false,
      apply(next) {
        current = next;
        applied.push(next.hashes.config);
      },
      noteResult: () => undefined,
      record: () => undefined,
      emit: () => undefined,
    };
    const reload = createReload(ports);
    const first = reload();
    await expect.poll(() => slowReads.length).toBe(1);
    onDisk = 'new';
    const second = reload();
    // Long enough for a reading that does not wait.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    slowReads[0]?.();
    await Promise.all([first, second]);
    expect(applied).toEqual(['old', 'new']);
    expect(current.hashes.config).toBe('new');
  });

  it('[H-08] go on after one that failed, which is rejected like one with mistakes', async () => {
    let reads = 0;
    const rejected: (string | undefined)[] = [];
    const notes: (string | undefined)[] = [];
    const ports: ReloadPorts = {
      read() {
        reads += 1;
        return reads === 1
          ? Promise.reject(Object.assign(new Error('no disk'), { code: 'EMFILE' }))
          : Promise.resolve({ version: undefined, diagnostics: [] });
      },
      accept: async (reading) => reading,
      current: () => versionOf('start'),
      isEnding: () => false,
      apply: () => undefined,
      noteResult: ({ error }) => notes.push(error),
      record: () => undefined,
      emit: createEvents([{ reloaded: ({ why }) => void rejected.push(why) }], () => undefined).emit,
    };
    const reload = createReload(ports);
    expect(await reload()).toEqual([expect.objectContaining({ file: 'gateway.yaml', severity: 'error' })]);
    expect(await reload()).toEqual([]);
    expect(rejected).toEqual(['an unexpected error: EMFILE', 'the files have errors']);
    expect(notes).toEqual(['gateway.yaml:1:1 the files could not be read again', 'the files have errors']);
  });

  it('[G-04] say why they were rejected in one line, and no more once the files are those in force', async () => {
    const error: Diagnostic = {
      file: '/srv/policies/open.policy.yaml',
      line: 3,
      column: 5,
      severity: 'error',
      rule: 'yaml',
      message: 'unexpected end\nof the text',
    };
    const warning: Diagnostic = { ...error, severity: 'warning', message: 'a warning' };
    const readings: VersionReading[] = [
      { version: undefined, diagnostics: [warning, error] },
      { version: versionOf('start'), diagnostics: [warning] },
      { version: versionOf('start', 'keys'), diagnostics: [warning] },
      { version: versionOf('next'), diagnostics: [] },
    ];
    const notes: (string | undefined)[] = [];
    const applied: string[] = [];
    const accepted: string[] = [];
    const reload = createReload({
      read: () => Promise.resolve(readings.shift() as VersionReading),
      async accept(reading) {
        accepted.push(reading.version?.hashes.config ?? '');
        return reading;
      },
      current: () => versionOf('start'),
      isEnding: () => false,
      apply: (next) => applied.push(next.hashes.config),
      noteResult: ({ error }) => notes.push(error),
      record: () => undefined,
      emit: () => undefined,
    });
    for (let turn = 0; turn < 4; turn += 1) await reload();
    expect(notes).toEqual(['open.policy.yaml:3:5 unexpected end', undefined, undefined, undefined]);
    // What waits now is a change too.
    expect(applied).toEqual(['start', 'next']);
    expect(accepted).toEqual(['start', 'start', 'next']);
  });
});
