// Every method that some revision defines, against the one table of methods: each has a row in its revision
// and direction, or is refused by name. The list is written here once more, from the schemas, so that a row
// that is lost or invented is noticed.
// Source: MCP 2024-11-05 to 2026-07-28, schema; the Tasks extension.

import { describe, expect, test } from 'vitest';
import { findMethod, METHODS, REFUSED_METHODS } from '../../../src/protocol/methods.js';
import { protocolOfSession } from '../../../src/protocol/versions/negotiation.js';

type Sides = { readonly client: readonly string[]; readonly server: readonly string[] };

const LISTS = ['prompts/list', 'resources/list', 'resources/templates/list', 'tools/list'];
const USES = ['completion/complete', 'prompts/get', 'resources/read', 'tools/call'];
const CHANGES = ['prompts', 'resources', 'tools'].map((list) => `notifications/${list}/list_changed`);
const NOTES = [...CHANGES, 'notifications/message', 'notifications/progress', 'notifications/resources/updated'];
const TASKS = ['tasks/cancel', 'tasks/get', 'tasks/list', 'tasks/result'];

const FIRST: Sides = {
  client: [
    ...LISTS,
    ...USES,
    'initialize',
    'logging/setLevel',
    'notifications/cancelled',
    'notifications/initialized',
    'notifications/progress',
    'notifications/roots/list_changed',
    'ping',
    'resources/subscribe',
    'resources/unsubscribe',
  ],
  server: [...NOTES, 'notifications/cancelled', 'ping', 'roots/list', 'sampling/createMessage'],
};
const ELICITING: Sides = { ...FIRST, server: [...FIRST.server, 'elicitation/create'] };
const DEFINED: { readonly [version: string]: Sides } = {
  '2024-11-05': FIRST,
  '2025-03-26': FIRST,
  '2025-06-18': ELICITING,
  '2025-11-25': {
    client: [...ELICITING.client, ...TASKS, 'notifications/tasks/status'],
    server: [...ELICITING.server, ...TASKS, 'notifications/elicitation/complete', 'notifications/tasks/status'],
  },
  '2026-07-28': {
    client: [...LISTS, ...USES, 'server/discover', 'subscriptions/listen', 'tasks/cancel', 'tasks/get', 'tasks/update'],
    server: [...NOTES, 'notifications/subscriptions/acknowledged', 'notifications/tasks'],
  },
};
/** Answered by the gateway itself, to the server that asks. */
const OWN = new Set(['ping']);

function eraOf(version: string) {
  return version === '2026-07-28' ? '2026' : protocolOfSession(version).era;
}

describe('every method of every revision', () => {
  test.each(Object.keys(DEFINED))('[TSK-10] has a row, or is refused by name: %s', (version) => {
    for (const from of ['client', 'server'] as const) {
      for (const method of DEFINED[version]?.[from] ?? []) {
        const rule = findMethod(eraOf(version), from, method, version);
        const isRefused = REFUSED_METHODS.some((row) => row.method === method && row.from === from);
        const isOwn = from === 'server' && OWN.has(method);
        expect([method, from, rule !== undefined || isRefused || isOwn]).toEqual([method, from, true]);
        expect(rule !== undefined && isRefused).toBe(false);
        if (rule === undefined) continue;
        expect(rule.from).toBe(from);
        expect(rule.type).toBe(method.startsWith('notifications/') ? 'notification' : 'request');
      }
    }
  });

  test('[TSK-10] and no row is of a method that its revision does not have', () => {
    // Sessions of one era share their rows but for those that came with its last revision.
    const known = new Set(
      Object.entries(DEFINED).flatMap(([version, sides]) =>
        (['client', 'server'] as const).flatMap((from) =>
          sides[from].map((method) => `${eraOf(version)} ${from} ${method}`),
        ),
      ),
    );
    for (const { method, eras, from } of METHODS)
      for (const era of eras) expect(known).toContain(`${era} ${from} ${method}`);
    for (const version of ['2025-03-26', '2025-06-18'])
      for (const method of TASKS) expect(findMethod('2025', 'client', method, version)).toBeUndefined();
  });
});
