// The JSON Schema of inspection profiles in the gateway file: what detectors do with what they find.
// Values only. Contract §3: the profile `default` always exists, an absent key has its default.

import { named, oneOfStrings, record, type Schema } from './schema-parts.js';

const PII_ACTIONS = ['off', 'flag', 'redact', 'block'];

const PROFILE = record('What detectors do. A key that is absent has its default.', {
  request: record(
    'Arguments on the way to the upstream.',
    { secrets: oneOfStrings('Secrets.', ['off', 'flag', 'block'], { default: 'block' }) },
    { default: {} },
  ),
  result: record(
    'Everything on the way to the client.',
    {
      secrets: oneOfStrings('Secrets.', PII_ACTIONS, { default: 'redact' }),
      pii: {
        type: ['string', 'object'],
        title: 'an action, or {action: …, kinds: […]}',
        description:
          'Personal data. Kinds: `card`, `iban`, `ssn`; all of them where none is listed.',
        default: 'redact',
        if: { type: 'string' },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { enum: PII_ACTIONS },
        else: {
          properties: {
            action: { type: 'string', enum: PII_ACTIONS },
            kinds: {
              type: 'array',
              minItems: 1,
              uniqueItems: true,
              items: { type: 'string', enum: ['card', 'iban', 'ssn'] },
            },
          },
          required: ['action'],
          additionalProperties: false,
        },
      },
      activeContent: oneOfStrings(
        'Markup, links and escape sequences that act when shown.',
        ['off', 'flag', 'neutralize', 'block'],
        { default: 'neutralize' },
      ),
      invisible: oneOfStrings('Characters that nobody sees.', ['off', 'flag', 'strip', 'block'], {
        default: 'strip',
      }),
      injection: oneOfStrings('Instructions to the model.', ['off', 'flag', 'block'], {
        default: 'flag',
      }),
    },
    { default: {} },
  ),
});

/** `inspection` in the gateway file. */
export const INSPECTION_SCHEMA: Schema = record(
  'Named sets of what detectors do.',
  {
    profiles: named('Profiles by name; `default` always exists.', PROFILE, {
      properties: { default: { ...PROFILE, default: {} } },
      default: {},
    }),
  },
  { default: {} },
);
