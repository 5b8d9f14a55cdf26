import { describe, expect, test } from 'vitest';
import { findMethod, isDefinedMethod, METHODS } from '../../../src/protocol/methods.js';

function carried(era: '2025' | '2026', from: 'client' | 'server'): readonly string[] {
  return METHODS.filter((rule) => rule.from === from && rule.eras.includes(era))
    .map((rule) => rule.method)
    .sort();
}

describe('the method table', () => {
  test('[M-09] carries exactly these methods of clients in session eras', () => {
    expect(carried('2025', 'client')).toEqual([
      'completion/complete',
      'initialize',
      'logging/setLevel',
      'notifications/cancelled',
      'notifications/initialized',
      'notifications/progress',
      'notifications/roots/list_changed',
      'ping',
      'prompts/get',
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/subscribe',
      'resources/templates/list',
      'resources/unsubscribe',
      'tasks/cancel',
      'tasks/get',
      'tasks/list',
      'tasks/result',
      'tools/call',
      'tools/list',
    ]);
  });

  test('[M-09] carries exactly these methods of clients in 2026', () => {
    expect(carried('2026', 'client')).toEqual([
      'completion/complete',
      'prompts/get',
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/templates/list',
      'server/discover',
      'subscriptions/listen',
      'tasks/cancel',
      'tasks/get',
      'tasks/update',
      'tools/call',
      'tools/list',
    ]);
  });

  test('[M-09] carries notifications and questions of servers', () => {
    expect(carried('2025', 'server')).toEqual([
      'elicitation/create',
      'notifications/cancelled',
      'notifications/elicitation/complete',
      'notifications/message',
      'notifications/progress',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
      'notifications/tasks/status',
      'notifications/tools/list_changed',
      'roots/list',
      'sampling/createMessage',
    ]);
    expect(carried('2026', 'server')).toEqual([
      'notifications/message',
      'notifications/progress',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
      'notifications/subscriptions/acknowledged',
      'notifications/tasks',
      'notifications/tools/list_changed',
    ]);
    const requests = METHODS.filter(({ from, type }) => from === 'server' && type === 'request');
    expect(requests.map(({ targetKind: subject }) => subject)).toEqual([
      'server-request',
      'server-request',
      'server-request',
    ]);
  });

  test('[M-09] every row is found in its eras and direction, and only there', () => {
    for (const rule of METHODS) {
      for (const era of ['2024', '2025', '2026'] as const) {
        const found = findMethod(era, rule.from, rule.method);
        expect(found).toBe(rule.eras.includes(era) ? rule : undefined);
      }
    }
    expect(new Set(METHODS.map((rule) => `${rule.from} ${rule.method}`)).size).toBe(METHODS.length);
  });

  test.each([
    'tools/Call',
    'tools/call ',
    'TOOLS/CALL',
    'toString',
    '__proto__',
    'constructor',
    '',
    'tasks/Get',
    'tasks',
  ])('[M-09] %j is carried nowhere', (method) => {
    for (const era of ['2024', '2025', '2026'] as const) {
      expect(findMethod(era, 'client', method)).toBeUndefined();
      expect(findMethod(era, 'server', method)).toBeUndefined();
    }
  });

  test('[M-09] a known method is told from an unknown one', () => {
    expect(isDefinedMethod('tasks/get')).toBe(true);
    expect(isDefinedMethod('ping')).toBe(true);
    expect(isDefinedMethod('tools/Call')).toBe(false);
    expect(isDefinedMethod('constructor')).toBe(false);
  });
});
