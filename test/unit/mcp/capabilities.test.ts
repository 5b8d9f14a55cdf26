import { describe, expect, test } from 'vitest';
import { filterServerCapabilities } from '../../../src/mcp/capabilities.js';

const DECLARED = {
  tools: { listChanged: false, other: 1 },
  resources: { subscribe: true, listChanged: true },
  prompts: {},
  completions: { x: 1 },
  logging: {},
  tasks: { list: {} },
  experimental: { a: {} },
  extensions: { 'io.modelcontextprotocol/tasks': {} },
  unknown: {},
};

describe('capabilities of a server', () => {
  test('[M-31] session eras keep what is carried, with our own listChanged', () => {
    expect(filterServerCapabilities('2025', DECLARED)).toEqual({
      completions: {},
      logging: {},
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      tools: { listChanged: true },
    });
  });

  test('[M-31] 2026 keeps what is carried, without changes and subscriptions', () => {
    expect(filterServerCapabilities('2026', DECLARED)).toEqual({
      completions: {},
      logging: {},
      prompts: {},
      resources: {},
      tools: {},
    });
  });

  test('[M-31] nothing appears that was not declared as an object', () => {
    expect(filterServerCapabilities('2025', {})).toEqual({});
    expect(filterServerCapabilities('2025', { tools: true, resources: null, prompts: [] })).toEqual(
      {},
    );
    expect(filterServerCapabilities('2025', { resources: { subscribe: 'yes' } })).toEqual({
      resources: { listChanged: true },
    });
  });
});
