// A profile and messages for the tests of inspection.

import type { Profile } from '../../../src/inspection/findings.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

export const profile: Profile = {
  name: 'default',
  request: { secrets: 'block' },
  result: {
    secrets: 'redact',
    pii: { action: 'redact', kinds: ['card', 'iban', 'ssn'] },
    activeContent: 'neutralize',
    invisible: 'strip',
    injection: 'flag',
  },
};

export function withRules(rules: Partial<Profile['result']>): Profile {
  return { ...profile, result: { ...profile.result, ...rules } };
}

export function resultOf(result: Json): { readonly text: string; readonly value: Json } {
  const value = { jsonrpc: '2.0', id: 7, result };
  return { text: JSON.stringify(value), value };
}

export function textResult(...texts: readonly string[]): {
  readonly text: string;
  readonly value: Json;
} {
  return resultOf({ content: texts.map((text) => ({ type: 'text', text })) });
}
