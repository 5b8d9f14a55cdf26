// The JSON Schema of one issuer of the gateway file: how its tokens are verified, and what their claims
// mean. Values only; what a schema cannot say is in checks-issuers.ts. Contract §3; RFC 9068, RFC 7662.

import {
  count,
  duration,
  networkOf,
  oneOfStrings,
  record,
  SCOPE_PATTERN,
  type Schema,
  scopeList,
  secret,
  text,
} from './schema-parts.js';

const MAX_ASKED_PER_SECOND = 10_000;

function claimNames(description: string, fallback: string | readonly string[]): Schema {
  return {
    type: ['string', 'array'],
    title: 'a claim name or a list of them',
    minLength: 1,
    minItems: 1,
    items: { type: 'string', minLength: 1, title: 'a claim name' },
    description,
    default: fallback,
  };
}

const INTROSPECTION = record(
  'Present: every token of this issuer, of whatever form, is verified by asking it (RFC 7662).',
  {
    clientId: text('The client that the gateway is to the issuer.'),
    clientSecret: secret('The secret of that client.'),
    authentication: oneOfStrings(
      'How the client proves itself.',
      ['client_secret_basic', 'client_secret_post'],
      { default: 'client_secret_basic' },
    ),
    endpoint: text('Where to ask; absent: where the metadata of the issuer says.'),
    cacheTtl: duration('How long an answer counts; never past the end of the token.', '30s'),
    maxPerSecond: count(
      'Questions a second; tokens never seen before get at most half of them.',
      { min: 2, max: MAX_ASKED_PER_SECOND },
      100,
    ),
  },
  { required: ['clientId', 'clientSecret'] },
);

/** JSON Schema of a value under `issuers`. */
export const ISSUER_SCHEMA = record(
  'One authorization server.',
  {
    issuer: text('Its issuer identifier, exactly as tokens carry it in `iss`.'),
    network: networkOf(true),
    algorithms: {
      type: 'array',
      minItems: 1,
      uniqueItems: true,
      description:
        'Signature algorithms accepted from it. Required, unless its tokens are introspected.',
      items: {
        type: 'string',
        enum: [
          ...['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512'],
          ...['PS256', 'PS384', 'PS512', 'EdDSA', 'Ed25519'],
        ],
      },
    },
    tokenType: text(
      'The `typ` that its access tokens carry; `none` where they carry none. With any but `at+jwt`, tokens that look like other kinds are refused by their claims.',
      { default: 'at+jwt' },
    ),
    maxLifetime: duration('Longest lifetime of a token, from `iat` to `exp`.', '1h'),
    keysMaxAge: duration('How long its last good keys serve while it cannot be reached.', '1h'),
    introspection: INTROSPECTION,
    claims: record(
      'Where tokens say what; of several names the first present counts. A name is that of a claim, exactly; one that begins with `/` is a JSON Pointer, such as `/realm_access/roles`.',
      {
        client: claimNames('The client.', ['client_id', 'azp']),
        scope: claimNames('The scopes.', ['scope', 'scp']),
        groups: claimNames('The groups.', 'groups'),
      },
      { default: {} },
    ),
    scopeHierarchy: {
      type: 'object',
      description: 'Broad scopes, and the narrower ones that each includes.',
      propertyNames: { title: 'an OAuth scope', pattern: SCOPE_PATTERN },
      additionalProperties: scopeList('The scopes that it includes.', { minItems: 1 }),
      default: {},
    },
  },
  { required: ['issuer'] },
);
