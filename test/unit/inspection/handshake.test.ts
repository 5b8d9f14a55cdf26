// The answers to initialize and server/discover: only what is carried and approved is told.

import { describe, expect, it } from 'vitest';
import {
  completeHandshake,
  type HandshakeInput,
  reduceHandshake,
} from '../../../src/inspection/handshake.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import { profile, resultOf } from './samples.js';

function shake(result: Json, more: Partial<HandshakeInput> = {}) {
  const filtered = reduceHandshake({
    ...resultOf(result),
    method: 'initialize',
    profile,
    carriedVersions: ['2025-06-18', '2025-11-25'],
    instructions: undefined,
    listTtlMs: 30_000,
    filterCapabilities: (capabilities) => ('tools' in capabilities ? { tools: {} } : {}),
    ...more,
  });
  return filtered.kind === 'withhold'
    ? filtered
    : completeHandshake(filtered, inspectMessage(filtered.inspectionInput));
}

function resultIn(outcome: ReturnType<typeof shake>) {
  if (outcome.kind !== 'passed') throw new Error(`withheld: ${outcome.reason}`);
  return JSON.parse(outcome.text).result;
}

const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
};

describe('handshakes', () => {
  it('[I-38] with nothing to change leave as they came', () => {
    const outcome = shake(initialize);
    expect(outcome).toMatchObject({
      kind: 'passed',
      text: resultOf(initialize).text,
      hadOtherInstructions: false,
    });
  });

  it('[I-38] lose capabilities that are not carried', () => {
    const capabilities = { tools: { listChanged: true }, tasks: {}, experimental: { a: {} } };
    expect(resultIn(shake({ ...initialize, capabilities })).capabilities).toEqual({ tools: {} });
    expect(resultIn(shake({ protocolVersion: '2025-11-25', serverInfo: {} })).capabilities).toEqual(
      {},
    );
  });

  it('[I-39] keep instructions only where they are the approved ones, to the letter', () => {
    const instructions = 'Use the tools well. <b onclick=x>As reviewed.</b>';
    const approved = shake({ ...initialize, instructions }, { instructions });
    expect(resultIn(approved).instructions).toBe(instructions);
    const other = shake({ ...initialize, instructions: `${instructions} ` }, { instructions });
    expect(resultIn(other)).not.toHaveProperty('instructions');
    expect(other).toMatchObject({ hadOtherInstructions: true });
    expect(resultIn(shake({ ...initialize, instructions }))).not.toHaveProperty('instructions');
  });

  it('[I-38] naming no version that is carried are withheld; others are dropped from the list', () => {
    const reason = { kind: 'withhold', reason: 'upstream-protocol' };
    expect(shake({ ...initialize, protocolVersion: '2024-11-05' })).toMatchObject(reason);
    expect(shake({ ...initialize, protocolVersion: 1 })).toMatchObject(reason);
    const discover = { method: 'server/discover', carriedVersions: ['2026-07-28'] } as const;
    const result = {
      supportedVersions: ['2027-01-01', '2026-07-28'],
      capabilities: {},
      ttlMs: 1e9,
      cacheScope: 'public',
    };
    expect(resultIn(shake(result, discover))).toMatchObject({
      supportedVersions: ['2026-07-28'],
      cacheScope: 'private',
      ttlMs: 30_000,
    });
    expect(shake({ ...result, supportedVersions: ['2027-01-01'] }, discover)).toMatchObject(reason);
    expect(shake({ ...result, supportedVersions: 'x' }, discover)).toMatchObject(reason);
  });

  it('[I-38] are inspected besides: texts, icons and metadata of a server are content too', () => {
    const serverInfo = {
      name: 'x',
      version: '1',
      title: 'a <script>b',
      icons: [{ src: 'https://e.example/i.svg' }],
    };
    const info = resultIn(shake({ ...initialize, serverInfo })).serverInfo;
    expect(info).toEqual({ name: 'x', version: '1', title: 'a (removed html script)b' });
  });
});
