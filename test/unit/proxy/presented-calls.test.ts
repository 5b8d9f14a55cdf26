// Which calls of tools that are presented otherwise are refused for what they sent.

import { describe, expect, it } from 'vitest';
import { presentationOf } from '../../../src/policy/presentation.js';
import type { AdmittedMessage } from '../../../src/protocol/admitted-request.js';
import { ownCallOf } from '../../../src/proxy/presented-calls.js';
import { catalog } from '../policy/samples.js';

describe('[PRE-04] headers of a call with a hidden parameter', () => {
  const presentation = presentationOf({ t: { parameters: { region: { hide: true } } } });
  function refused(mirrored: readonly { readonly header: string; readonly path: readonly string[] }[]) {
    const base = catalog({ tools: { t: {} } });
    const { pinned, ...status } = base.statusOf('tool', 't');
    const changed = { ...base, statusOf: () => ({ ...status, pinned: pinned && { ...pinned, mirrored } }) };
    const text = '{"params":{"name":"t","arguments":{"dest":"x"}}}';
    const admitted = { target: { kind: 'tool', name: 't' }, args: { dest: 'x' }, text };
    const call = { ...admitted, paramHeaders: { 'mcp-param-region': 'x' } } as unknown as AdmittedMessage;
    return ownCallOf({ presentation, catalogFor: () => changed }, call)?.presented.refused;
  }

  it('are refused by the name that they might be taken for, unless the schema gives it to another parameter', () => {
    expect(refused([])).toEqual({ parameter: 'region' });
    expect(refused([{ header: 'Area', path: ['dest'] }])).toEqual({ parameter: 'region' });
    expect(refused([{ header: 'Region', path: ['region'] }])).toEqual({ parameter: 'region' });
    expect(refused([{ header: 'Region', path: ['dest'] }])).toBeUndefined();
  });
});
