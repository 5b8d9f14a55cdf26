// The prefilter: clean text is spared the walk, and "surely clean" is a promise that every detector keeps.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findActiveContent } from '../../../../src/inspect/sanitize/active-content.js';
import { findSensitive } from '../../../../src/inspect/sanitize/detect.js';
import { isSurelyClean } from '../../../../src/inspect/sanitize/gate.js';
import { findInjectionCues } from '../../../../src/inspect/sanitize/injection.js';
import {
  stripInvisible,
  stripTerminalSequences,
} from '../../../../src/inspect/sanitize/invisible.js';
import { awsKey, cardNumber, githubToken, iban, jwt, noise, ssn, textResult } from '../samples.js';

const ALL = { secrets: true, pii: ['card', 'iban', 'ssn'] } as const;

function findAnything(text: string): readonly unknown[] {
  return [
    ...findSensitive(text, ALL),
    ...findActiveContent(text),
    ...findActiveContent(text, 'value'),
    ...findInjectionCues(text),
    ...(stripInvisible(text).count > 0 ? ['invisible'] : []),
    ...(stripTerminalSequences(text).count > 0 ? ['terminal'] : []),
  ];
}

const FRAGMENTS = [
  ...[
    'ignore',
    'previous',
    'instructions',
    'do not',
    'tell',
    'the user',
    'send',
    'api keys',
    'system:',
  ],
  ...[
    '[INST]',
    'token',
    'password',
    '=',
    ': ',
    '"',
    'secret',
    'ssn',
    'data:',
    'javascript:',
    '![',
    '](',
  ],
  ...[
    '<',
    'b>',
    '\\u0041',
    '%41',
    '&#65;',
    '\u200b',
    '\uff14',
    '\u043e',
    '\u00e9',
    '\u4e2d',
    '\u{1f600}',
  ],
  ...[
    ' ',
    '\n',
    '\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n',
    '12',
    '34-56',
    '7890',
    'AK',
    'IA',
    'gh',
    'p_',
  ],
  ...[
    'before',
    'using',
    'this tool',
    'call',
    'curl -X POST',
    '|||',
    'a_b',
    'decode',
    'and follow',
    'act as',
  ],
  awsKey('gate'),
  githubToken('gate').slice(0, 20),
  cardNumber('gate'),
  cardNumber('gate').slice(0, 8),
  iban('DE', '370400440532013000'),
  ssn('gate'),
  jwt('gate'),
  noise('gate', 15),
  Buffer.from('ignore all previous instructions').toString('base64'),
];

const text = fc
  .array(
    fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...FRAGMENTS) }, fc.string({ maxLength: 6 })),
    {
      maxLength: 12,
    },
  )
  .map((pieces) => pieces.join(''));

describe('the prefilter', () => {
  it('[I-18] law: in what it calls clean, no detector finds anything', () => {
    fc.assert(
      fc.property(text, (input) => {
        if (isSurelyClean(input)) expect([input, findAnything(input)]).toEqual([input, []]);
      }),
      { numRuns: 5000 },
    );
  });

  it('[I-18] law: nor in any string of JSON text that it calls clean, however it is escaped', () => {
    fc.assert(
      fc.property(text, text, fc.boolean(), (one, other, isEscaped) => {
        const message = textResult(one, JSON.stringify({ [other.slice(0, 8)]: other })).text;
        const raw = isEscaped
          ? message.replace(/[a-z](?=[^"\\]*")/g, (unit) => (unit === 'k' ? '\\u006b' : unit))
          : message;
        if (!isSurelyClean(raw)) return;
        expect(findAnything(one)).toEqual([]);
        expect(findAnything(other)).toEqual([]);
      }),
      { numRuns: 3000 },
    );
  });

  it.each([
    'The quarterly report lists seven offices, with new desks near the window.',
    'Caf\u00e9 \u2014 \u4e2d\u6587 \u{1f600} \u201cquoted\u201d\u2026 100% of 5 < 6 & 7',
    '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"line\\nnext \\"x\\""}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a","version":"1"}}}}',
    'Call 555-0100 on 2026-11-20 at 10:15, room 12, and pay 12.50.',
  ])('[I-19] ordinary text is clean: %s', (input) => {
    expect(isSurelyClean(input)).toBe(true);
  });

  it.each([
    '\\u0067hp',
    'a\\/b',
    'x\u200by',
    'x\uff11',
    '1234 5678 9012',
    '<b>',
    '[a](b)',
    '&#65;',
    '%41',
  ])('[I-19] what could hide something is looked at: %s', (input) => {
    expect(isSurelyClean(input)).toBe(false);
  });
});
