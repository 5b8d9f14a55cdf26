// Policies, callers, catalogs and calls for properties: small enough that rules meet calls often, and with every
// effect, kind of condition and kind of target among them.

import * as fc from 'fast-check';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { PolicyQuery } from '../../../src/policy/rules.js';
import type { ServerRequestContent } from '../../../src/policy/server-request-content.js';
import type { JsonObject, Target } from '../../../src/protocol/jsonrpc.js';
import { catalog, principal } from './samples.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: { owner: { type: 'string' }, title: { type: 'string' } },
};

const who = fc.oneof(
  fc.constant({ anyone: true } as const),
  fc.record({ groups: fc.subarray(['eng', 'ops'], { minLength: 1 }) }),
  fc.record({ subjects: fc.subarray(['ada', 'bob'], { minLength: 1 }) }),
  fc.constant({ clients: ['editor'], groups: ['eng'] }),
  fc.constant({ issuers: ['corp'], claims: { tier: ['gold'] } }),
);

const what = fc
  .record(
    {
      upstreams: fc.constantFrom(['github'], ['mail'], ['*'], ['git*', 'mail']),
      tools: fc.subarray(['t_a', 't_b', 't_*', '*', 're:t_[ab]'], { minLength: 1 }),
      resources: fc.subarray(['repo://acme/**', 'repo://acme/x'], { minLength: 1 }),
      prompts: fc.subarray(['p', 'q*'], { minLength: 1 }),
      sampling: fc.constantFrom<NonNullable<RuleDocument['what']['sampling']>>(
        true,
        { includeContext: ['none'] },
        { tools: ['search'] },
        { includeContext: ['thisServer'], tools: ['*'] },
      ),
    },
    { requiredKeys: [] },
  )
  .map((kinds) => ({ tools: ['*'], ...kinds }));

const CONDITIONS = [
  'args.title == "x"',
  'has(args.title) && args.title == "x"',
  'principal.subject == "ada"',
  '"eng" in principal.groups || args.owner == "acme"',
  'has(principal.claims.tier) && principal.claims.tier == "gold"',
];

const args = fc.constantFrom<JsonObject>(
  { owner: { const: 'acme' } },
  { owner: { enum: ['acme', '7'] } },
  { title: true },
);

const limits = fc.constant({ rate: { count: 1, windowMs: 60_000 }, per: 'subject' } as const);

function rule(effect: RuleDocument['effect']): fc.Arbitrary<RuleDocument> {
  const own = {
    allow: { scopes: fc.subarray(['s1', 's2'], { minLength: 1 }), limits },
    deny: { reason: fc.constant('No.') },
    require: { limits, maxResultBytes: fc.constant(9) },
  }[effect];
  const parts: { readonly [key: string]: fc.Arbitrary<unknown> } = {
    ...{ who, what, args, when: fc.constantFrom(...CONDITIONS) },
    ...own,
  };
  return fc
    .record(parts, { requiredKeys: ['who', 'what'] })
    .map((value) => JSON.parse(JSON.stringify({ ...value, id: 'r', effect })) as RuleDocument);
}

/** Rules with ids of their own, mostly allow rules. */
export const rules: fc.Arbitrary<readonly RuleDocument[]> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: rule('allow') },
      { weight: 1, arbitrary: rule('deny') },
      { weight: 1, arbitrary: rule('require') },
    ),
    { maxLength: 6 },
  )
  .map((all) => all.map((written, index) => ({ ...written, id: `r${index}` })));

export const caller: fc.Arbitrary<Principal> = fc
  .record({
    subject: fc.constantFrom('ada', 'bob', 'eve'),
    client: fc.constantFrom('editor', 'other'),
    groups: fc.subarray(['eng', 'ops']),
    scopes: fc.subarray(['s1', 's2']),
    claims: fc.constantFrom({}, { tier: 'gold' }),
  })
  .map((parts) => principal(parts));

export const pins = catalog({
  tools: {
    t_a: { inputSchema: SCHEMA },
    t_b: { inputSchema: SCHEMA, state: 'changed' },
    u_c: { inputSchema: SCHEMA },
  },
  prompts: { p: { definition: { arguments: [{ name: 'owner' }] } } },
});

const target = fc.constantFrom<Target>(
  { kind: 'tool', name: 't_a' },
  { kind: 'tool', name: 't_a' },
  { kind: 'tool', name: 't_b' },
  { kind: 'tool', name: 'u_c' },
  { kind: 'prompt', name: 'p' },
  { kind: 'resource', uri: 'repo://acme/x' },
  { kind: 'resource', uri: 'REPO://ACME/ x' },
  { kind: 'server-request', name: 'sampling' },
  { kind: 'server-request', name: 'sampling' },
);

/** A request: its arguments are known. */
export const call: fc.Arbitrary<PolicyQuery & { readonly args: JsonObject }> = fc
  .record({
    principal: caller,
    target,
    content: fc.constantFrom<ServerRequestContent>(
      'unclear',
      { includeContext: 'none', tools: [] },
      { includeContext: 'none', tools: ['search', 'other'] },
      { includeContext: 'thisServer', tools: ['search'] },
    ),
    upstream: fc.constantFrom('github', 'mail'),
    args: fc.constantFrom<JsonObject>(
      {},
      { owner: 'acme' },
      { owner: '7', title: 'x' },
      { title: 'y' },
      { owner: 'acme', Owner: 'other' },
      { owner: 7 },
    ),
  })
  .map(({ content, ...parts }) => ({
    ...parts,
    ...(parts.target.kind === 'server-request' ? { content } : {}),
    args: parts.target.kind === 'tool' || parts.target.kind === 'prompt' ? parts.args : {},
    catalog: pins,
  }));
