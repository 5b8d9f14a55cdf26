import { describe, expect, test } from 'vitest';
import { filterServerCapabilities } from '../../../src/protocol/capabilities.js';

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
    expect(filterServerCapabilities(DECLARED, { form: 'none', apps: false })).toEqual({
      completions: {},
      logging: {},
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      tools: { listChanged: true },
    });
  });

  test('[TSK-05] tasks are declared in the form of the revision, and in no other', () => {
    const complete = {
      ...DECLARED,
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    };
    expect(filterServerCapabilities(complete, { form: 'session', apps: false })).toMatchObject({
      tasks: complete.tasks,
    });
    expect(filterServerCapabilities(complete, { form: 'session', apps: false })).not.toHaveProperty('extensions');
    expect(filterServerCapabilities(complete, { form: 'extension', apps: false })).not.toHaveProperty('tasks');
    const extensions = { ...DECLARED.extensions, 'io.modelcontextprotocol/other': {} };
    expect(filterServerCapabilities({ extensions }, { form: 'extension', apps: false })).toEqual({
      extensions: { 'io.modelcontextprotocol/tasks': {} },
    });
    for (const form of ['session', 'extension', 'none'] as const) {
      expect(filterServerCapabilities({ tasks: { list: {} } }, { form, apps: false })).toEqual({});
      expect(filterServerCapabilities({ extensions: { x: {} } }, { form, apps: false })).toEqual({});
    }
  });

  test('[M-31] nothing appears that was not declared as an object', () => {
    expect(filterServerCapabilities({}, { form: 'none', apps: false })).toEqual({});
    expect(
      filterServerCapabilities({ tools: true, resources: null, prompts: [] }, { form: 'session', apps: false }),
    ).toEqual({});
    expect(filterServerCapabilities({ resources: { subscribe: 'yes' } }, { form: 'extension', apps: false })).toEqual({
      resources: { listChanged: true },
    });
  });
});
