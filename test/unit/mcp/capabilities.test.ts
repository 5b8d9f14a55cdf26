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
  test('[M-31] keep what is carried, with our own listChanged', () => {
    expect(filterServerCapabilities(DECLARED)).toEqual({
      completions: {},
      logging: {},
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      tools: { listChanged: true },
    });
  });

  test('[M-31] nothing appears that was not declared as an object', () => {
    expect(filterServerCapabilities({})).toEqual({});
    expect(filterServerCapabilities({ tools: true, resources: null, prompts: [] })).toEqual({});
    expect(filterServerCapabilities({ resources: { subscribe: 'yes' } })).toEqual({
      resources: { listChanged: true },
    });
  });
});
