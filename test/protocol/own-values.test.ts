// Values that the gateway mints: error codes and session ids. docs/reference/protocol.md, rows 32 and 63.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REASONS } from '../../src/policy/reasons.js';
import { readModules, stripComments } from '../support/source-tree.js';
import { initialize } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';

const SOURCES = join(import.meta.dirname, '..', '..', 'src');

/** What JSON-RPC 2.0 and the revisions of MCP define, and a gateway may therefore say. */
const DEFINED: ReadonlySet<number> = new Set([
  ...[-32700, -32600, -32601, -32602, -32603],
  ...[-32020, -32021, -32022],
  ...[-32002, -32042],
]);
/** Label values of metrics: names for codes of upstreams that are read, never said. */
const READ_ONLY: ReadonlySet<string> = new Set(['telemetry/labels.ts']);
const RESERVED = { from: -32768, to: -32000 };
const SESSIONS = 200;
const AT_ONCE = 20;

const isReserved = (code: number): boolean => code >= RESERVED.from && code <= RESERVED.to;

describe('error codes', () => {
  it('[MCP-63] of the table of refusals are defined by a specification or lie outside its range', () => {
    const codes = Object.values(REASONS).flatMap(({ visible, hidden }) =>
      [visible, hidden].flatMap((rendering) => ('code' in rendering ? [rendering.code] : [])),
    );
    expect(codes.length).toBeGreaterThan(20);
    expect(codes.filter((code) => isReserved(code) && !DEFINED.has(code))).toEqual([]);
    expect(codes.filter((code) => !isReserved(code) && code < 0)).toEqual([]);
  });

  it('[MCP-63] anywhere in the sources are defined ones', () => {
    const found = readModules(SOURCES).flatMap(({ path, text }) =>
      READ_ONLY.has(path) || path.startsWith('dev/')
        ? []
        : [...stripComments(text, true).matchAll(/-32\d{3}\b/g)].map(([code]) => [path, code]),
    );
    expect(found.length).toBeGreaterThan(10);
    expect(found.filter(([, code]) => !DEFINED.has(Number(code)))).toEqual([]);
  });
});

describe('session ids', () => {
  it('[MCP-32] are visible ASCII, all different, and share no part by which one is guessed', () =>
    withGateway({}, async (rig) => {
      const ids = new Set<string>();
      while (ids.size < SESSIONS) {
        const before = ids.size;
        const opened = Array.from({ length: AT_ONCE }, () => initialize(rig.access));
        for (const { headers } of await Promise.all(opened)) ids.add(headers.get('mcp-session-id') ?? '');
        expect(ids.size).toBe(before + AT_ONCE);
      }
      for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{22,}$/);
      // 128 bits of each id are its own: any 22 characters of one (132 bits) stand in no other. The last
      // character of base64 may hold fewer bits than the others, so it is left out.
      const pieces = [...ids].map((id) => id.slice(-23, -1));
      expect(new Set(pieces).size).toBe(SESSIONS);
      // Each character of the end takes on nearly every value of the alphabet: no counter, no clock.
      for (let at = 0; at < 22; at += 1) {
        expect(new Set(pieces.map((piece) => piece[at])).size).toBeGreaterThan(16);
      }
    }));
});
