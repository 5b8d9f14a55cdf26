// Values that policy tests are built from: principals, catalogs, documents. Casts of brands live here.

import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type {
  PolicyContext,
  PolicyDiagnostic,
  PolicyDocument,
  RuleDocument,
} from '../../../src/policy/compile/documents.js';
import type {
  Catalog,
  DefinitionStatus,
  PinKind,
  PinnedDefinition,
  PinState,
  UndeclaredArguments,
} from '../../../src/policy/definitions.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { PolicySet } from '../../../src/policy/rules.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

export function principal(parts: Partial<Omit<Principal, never>> = {}): Principal {
  return {
    issuer: 'corp',
    issuerUrl: 'https://idp.example.com',
    subject: 'ada',
    client: 'editor',
    groups: [],
    scopes: [],
    claims: {},
    actors: [],
    token: { id: 't', audience: 'https://mcp.example.com/github', expiresAt: 0, binding: 'none' },
    ...parts,
  } as Principal;
}

export type PinSample = {
  readonly state?: PinState;
  readonly inputSchema?: JsonObject;
  readonly definition?: JsonObject;
};

export type CatalogSample = {
  readonly upstream?: string;
  readonly mode?: 'strict' | 'off';
  readonly isStopped?: boolean;
  readonly undeclaredArguments?: UndeclaredArguments;
  readonly tools?: { readonly [name: string]: PinSample };
  readonly prompts?: { readonly [name: string]: PinSample };
  readonly templates?: { readonly [name: string]: PinSample };
};

const UNPINNED: DefinitionStatus = { state: 'unpinned', pinned: undefined, observed: undefined };

export function catalog(sample: CatalogSample = {}): Catalog {
  const kinds = new Map<PinKind, Map<string, DefinitionStatus>>([
    ['tool', standings('tool', sample.tools)],
    ['prompt', standings('prompt', sample.prompts)],
    ['template', standings('template', sample.templates)],
  ]);
  return {
    upstream: sample.upstream ?? 'github',
    mode: sample.mode ?? 'strict',
    isStopped: sample.isStopped ?? false,
    undeclaredArguments: sample.undeclaredArguments ?? 'declared',
    statusOf: (kind, name) => kinds.get(kind)?.get(name) ?? UNPINNED,
    names: (kind) => [...(kinds.get(kind)?.keys() ?? [])],
    instructions: undefined,
  };
}

function standings(kind: PinKind, pins: { readonly [name: string]: PinSample } = {}): Map<string, DefinitionStatus> {
  const entries = Object.entries(pins).map(([name, pin]) => {
    const standing: DefinitionStatus = {
      state: pin.state ?? 'approved',
      pinned: pinned(kind, name, pin),
      observed: 'digest',
    };
    return [name, standing] as const;
  });
  return new Map(entries);
}

function pinned(kind: PinKind, name: string, pin: PinSample): PinnedDefinition {
  const input = pin.inputSchema === undefined ? undefined : compileSchema(pin.inputSchema);
  if (input !== undefined && !input.ok) throw new Error(input.why);
  return {
    kind,
    name,
    digest: 'digest',
    definition: {
      name,
      ...(pin.inputSchema && { inputSchema: pin.inputSchema }),
      ...pin.definition,
    },
    input: input?.schema,
    output: undefined,
    mirrored: [],
  };
}

export function document(rules: readonly RuleDocument[], policy = 'main'): PolicyDocument {
  return { file: `${policy}.policy.yaml`, policy, rules };
}

export const CONTEXT: PolicyContext = {
  hash: 'a'.repeat(64),
  upstreams: [
    { name: 'github', issuers: ['corp'], strict: true },
    { name: 'mail', issuers: ['corp'], strict: true },
  ],
  profiles: ['default', 'careful'],
  issuers: ['corp'],
};

export function compiled(
  rules: readonly RuleDocument[] | readonly PolicyDocument[],
  context: Partial<PolicyContext> = {},
): { readonly policies: PolicySet; readonly diagnostics: readonly PolicyDiagnostic[] } {
  const documents = rules.map((entry, index) => ('rules' in entry ? entry : document([entry], `p${index}`)));
  return compilePolicies(documents, { ...CONTEXT, ...context });
}

/** Compiled policies of one document; throws when a fault is an error. */
export function policiesOf(rules: readonly RuleDocument[], context: Partial<PolicyContext> = {}): PolicySet {
  const { policies, diagnostics } = compilePolicies([document(rules)], {
    ...CONTEXT,
    ...context,
  });
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return policies;
}
