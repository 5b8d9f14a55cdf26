// Reads what an audit line says of a decision by policy, as far as another decision needs it: who asked, for what, with
// which arguments. What a line leaves out, cuts or masks is unknown and never completed. docs/reference/audit.md.

import { droppedOf, type MendingSettings } from '../policy/argument-mending.js';
import type { Catalog, PinnedDefinition } from '../policy/definitions.js';
import type { CallFacts, KnownArguments } from '../policy/explain.js';
import { WITHHELD_KEYWORD } from '../policy/presentation.js';
import type { PrincipalFacts, SupposePrincipal } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import { isObject, type Json, type Target } from '../protocol/jsonrpc.js';
import { MAX_FOREIGN_CHARACTERS } from '../text/escaping.js';
import { stepsOf } from '../text/json-members.js';
import { type AuditRecord, requiredText, textAt, textsAt, valueAt } from './chain.js';

/** Lists in a line are cut there. */
const MAX_LISTED = 64;
/** The refusals that rules cause. Others, such as those of pins, limits and content, are not decided by policy. */
const BY_POLICY: ReadonlySet<string> = new Set<Reason>([
  ...(['no-matching-allow', 'denied-by-rule', 'policy-error', 'insufficient-scope'] as const),
  ...(['arguments-invalid', 'resource-forbidden'] as const),
]);

/** The refusals of calls that rules allow once somebody has said yes. */
const FOR_APPROVAL: ReadonlySet<string> = new Set<Reason>(['approval-required', 'approval-denied', 'approval-expired']);

/** Whether a recorded call was refused for want of a yes. */
export function isUnapproved({ reason }: { readonly reason: string | undefined }): boolean {
  return reason !== undefined && FOR_APPROVAL.has(reason);
}

/** What a line is read with: the upstreams and issuers that are configured, and the definitions. */
export type RecordContext = {
  readonly outline: {
    readonly upstreams: readonly {
      readonly name: string;
      /** What is mended in arguments now. */
      readonly arguments?: MendingSettings;
    }[];
    readonly issuerFacts: ReadonlyMap<
      string,
      {
        readonly url: string;
        readonly impliedScopes: { readonly [scope: string]: readonly string[] };
        readonly isIntrospected: boolean;
      }
    >;
  };
  readonly catalogOf: (upstream: string) => Catalog;
};
type PrincipalPort = { readonly supposePrincipal: SupposePrincipal };

/** A decision about a target that rules name. */
export type RecordedCall = {
  readonly id: string;
  readonly time: string;
  readonly verdict: 'allow' | 'deny';
  readonly reason: string | undefined;
  /** `policy/rule` of the rule that decided. */
  readonly rule: string | undefined;
  readonly caller: { readonly issuer: string; readonly subject: string; readonly client: string };
  readonly upstream: string;
  readonly kind: string;
  readonly name: string;
  /** The name by which the client called it, where that was another. */
  readonly shownAs?: string;
  readonly scopes: readonly string[];
  readonly groups: readonly string[];
  /** The arguments that were refused, and the schema keywords that they fail. */
  readonly violations: readonly { readonly pointer: string; readonly keyword: string }[];
  /** `undefined` if the line does not say enough for any decision; `missing` says what. */
  readonly facts: CallFacts | undefined;
  readonly missing: 'issuer' | 'name' | 'upstream' | undefined;
  /** The first digits of the hash of the policies that decided, if rules that are the same would decide the same now. */
  readonly decidedBy: string | undefined;
};

/** Groups by token, by keyed hash: a token that had a group once has it always. */
export type GroupsByToken = ReadonlyMap<string, ReadonlySet<string>>;

/** Adds what a line says of the groups of a token. */
export function noteGroups(record: AuditRecord, known: Map<string, Set<string>>): void {
  const token = textAt(record, 'actor', 'token', 'id');
  const groups = textsAt(record, 'actor', 'groups_used');
  if (token === undefined || groups.length === 0) return;
  const found = known.get(token) ?? new Set();
  for (const group of groups) found.add(group);
  known.set(token, found);
}

/** The forms of lines whose members are known here. Their chain can be verified whatever the form. */
const FORMS: ReadonlySet<unknown> = new Set(['sallyport.audit/1', 'sallyport.audit/2']);

/** `schema`: as a line states it. */
export function isKnownForm(schema: unknown): boolean {
  return FORMS.has(schema);
}

/** Whether a line has all that is known of a decision: that of the decision, or an outcome that stands alone. */
export function isDecision(line: AuditRecord): boolean {
  if (line['type'] === 'mcp.decision') return true;
  // In form 1 every outcome has all members, and its decision has a line too.
  return (
    line['type'] === 'mcp.outcome' &&
    line['schema'] !== 'sallyport.audit/1' &&
    valueAt(line, 'gateway', 'policy') !== undefined
  );
}

/** The decision of a line, or `undefined` if rules had no part in it. `record` has all members of its event. */
export function readCall(
  record: AuditRecord,
  groups: GroupsByToken,
  context: RecordContext,
  ports: PrincipalPort,
): RecordedCall | undefined {
  const subject = subjectOf(record);
  const target = targetOf(subject.kind, subject.name);
  const outcome = outcomeOf(record);
  if (target === undefined || outcome === undefined) return undefined;
  const { issuer: issuerUrl } = subject.caller;
  const issuer = issuerOf(issuerUrl, context);
  // An issuer that is asked may say otherwise of the same token the next time.
  const isFixed = context.outline.issuerFacts.get(issuer ?? '')?.isIntrospected === false;
  const own = isFixed ? groupsOf(record, groups) : [];
  const call = {
    ...subject,
    ...outcome,
    caller: { ...subject.caller, issuer: issuer ?? issuerUrl },
    scopes: textsAt(record, 'actor', 'token', 'scopes'),
    groups: [...new Set([...own, ...textsAt(record, 'actor', 'groups_used')])],
    violations: violationsOf(record),
  };
  const missing = missingIn(record, issuer, subject.upstream, context);
  if (missing !== undefined || issuer === undefined)
    return { ...call, facts: undefined, missing, decidedBy: undefined };
  const { facts, isReadAlike } = factsOf(record, { ...call, issuer, issuerUrl, target }, context, ports);
  const isEnforced = textAt(record, 'decision', 'mode') !== 'observe';
  const decidedBy = isReadAlike && isEnforced ? textAt(record, 'gateway', 'policy') : undefined;
  return { ...call, facts, missing, decidedBy };
}

function violationsOf(record: AuditRecord): RecordedCall['violations'] {
  const listed = valueAt(record, 'args', 'violations');
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((one: unknown) => {
    const { pointer, keyword } = isObject(one) ? one : {};
    return typeof pointer === 'string' && typeof keyword === 'string' ? [{ pointer, keyword }] : [];
  });
}

/** A refusal by a block, or by a flow with the decisions that delivered the results. */
export type OtherRefusal = Pick<
  RecordedCall,
  'id' | 'time' | 'verdict' | 'reason' | 'rule' | 'caller' | 'upstream' | 'kind' | 'name' | 'shownAs'
> & { readonly causes: readonly string[] };

/** The refusal that a line records, or `undefined` if neither a flow nor a block refused. */
export function readOtherRefusal(record: AuditRecord): OtherRefusal | undefined {
  const [reason] = textsAt(record, 'decision', 'reasons');
  if (reason !== 'tainted-flow' && reason !== 'blocked') return undefined;
  return {
    ...subjectOf(record),
    ...{ verdict: 'deny', reason },
    rule: `${requiredText(record, 'decision', 'policy')}/${requiredText(record, 'decision', 'rule')}`,
    causes: textsAt(record, 'decision', 'causes'),
  };
}

/** A name, and beside it the one by which the client called it. */
export function bothNames({ name, shownAs }: Pick<RecordedCall, 'name' | 'shownAs'>): string {
  return shownAs === undefined ? name : `${name} (called ${shownAs})`;
}

/** The decision, its caller and its target as recorded. The issuer is its URL. */
function subjectOf(
  record: AuditRecord,
): Pick<RecordedCall, 'id' | 'time' | 'caller' | 'upstream' | 'kind' | 'name' | 'shownAs'> {
  const shownAs = textAt(record, 'target', 'shown_as');
  return {
    ...(shownAs === undefined ? {} : { shownAs }),
    id: requiredText(record, 'decision', 'id'),
    time: requiredText(record, 'time'),
    caller: {
      issuer: requiredText(record, 'actor', 'iss'),
      subject: requiredText(record, 'actor', 'sub'),
      client: requiredText(record, 'actor', 'client_id'),
    },
    upstream: requiredText(record, 'target', 'upstream'),
    kind: requiredText(record, 'target', 'kind'),
    name: requiredText(record, 'target', 'name'),
  };
}

function groupsOf(record: AuditRecord, groups: GroupsByToken): Iterable<string> {
  return groups.get(requiredText(record, 'actor', 'token', 'id')) ?? [];
}

/** What the rules decided; `undefined` if something else refused, or the caller was not verified. */
function outcomeOf(record: AuditRecord): Pick<RecordedCall, 'verdict' | 'reason' | 'rule'> | undefined {
  const isAllowed = textAt(record, 'decision', 'verdict') === 'allow';
  const [reason] = textsAt(record, 'decision', 'reasons');
  const isByPolicy = isAllowed || (reason !== undefined && BY_POLICY.has(reason)) || isUnapproved({ reason });
  // A parameter that the operator keeps from clients is refused whatever the rules say.
  if (violationsOf(record).some(({ keyword }) => keyword === WITHHELD_KEYWORD)) return undefined;
  if (!isByPolicy || textAt(record, 'actor', 'sub') === undefined) return undefined;
  const policy = textAt(record, 'decision', 'policy');
  const rule = policy === undefined ? undefined : `${policy}/${textAt(record, 'decision', 'rule')}`;
  return { verdict: isAllowed ? 'allow' : 'deny', reason, rule };
}

function missingIn(
  record: AuditRecord,
  issuer: string | undefined,
  upstream: string,
  { outline }: RecordContext,
): RecordedCall['missing'] {
  if (issuer === undefined) return 'issuer';
  if (!outline.upstreams.some(({ name }) => name === upstream)) return 'upstream';
  const isPinned = textAt(record, 'target', 'pin') !== undefined;
  return isPinned || isVerbatim(textAt(record, 'target', 'name') ?? '') ? undefined : 'name';
}

/** A task follows the call that created it, and the rest of the protocol is not decided by rules. */
function targetOf(kind: string, name: string): Target | undefined {
  switch (kind) {
    case 'tool':
    case 'prompt':
      return { kind, name };
    case 'resource':
      return { kind, uri: name };
    case 'template':
      return { kind, uriTemplate: name };
    case 'question':
      return name === 'sampling' || name === 'roots' || name === 'elicitation/form' || name === 'elicitation/url'
        ? { kind: 'server-request', name }
        : undefined;
    default:
      return undefined;
  }
}

function issuerOf(url: string, { outline }: RecordContext): string | undefined {
  if (url === 'none') return 'none';
  return [...outline.issuerFacts].find(([, facts]) => facts.url === url)?.[0];
}

function factsOf(
  record: AuditRecord,
  call: Pick<RecordedCall, 'caller' | 'upstream' | 'scopes' | 'groups' | 'verdict' | 'reason'> & {
    readonly issuer: string;
    readonly issuerUrl: string;
    readonly target: Target;
  },
  { outline, catalogOf }: RecordContext,
  ports: PrincipalPort,
): { readonly facts: CallFacts; readonly isReadAlike: boolean } {
  const { issuer, issuerUrl, caller, groups, scopes, target, upstream } = call;
  const principal: PrincipalFacts = {
    ...{ issuer, issuerUrl, subject: caller.subject, client: caller.client, groups },
    scopes: widenScopes(scopes, outline.issuerFacts.get(issuer)?.impliedScopes ?? {}),
    claims: {},
    actors: [],
    token: NO_TOKEN,
  };
  const catalog = catalogOf(upstream);
  const pin = textAt(record, 'target', 'pin');
  const pinned =
    target.kind === 'tool' || target.kind === 'prompt' ? catalog.statusOf(target.kind, target.name).pinned : undefined;
  const isValid = call.verdict === 'allow' && pinned?.digest === pin;
  const mending = outline.upstreams.find(({ name }) => name === upstream)?.arguments;
  const known = argumentsOf(record, isValid ? pinned : undefined);
  const args = target.kind === 'tool' && mending ? mendKnown(known, mending, pinned) : known;
  const facts: CallFacts = {
    principal: ports.supposePrincipal(principal),
    ...{ upstream, target, catalog, args, findings: findingsOf(record, call) },
    unknown: new Set([
      ...(['groups', 'claims'] as const),
      ...(scopes.length >= MAX_LISTED ? (['scopes'] as const) : []),
    ]),
  };
  return { facts, isReadAlike: args === known && pinned?.digest === pin };
}

/** What inspection found in the arguments; `undefined` if the call was refused before. */
function findingsOf(record: AuditRecord, call: Pick<RecordedCall, 'verdict' | 'reason'>): CallFacts['findings'] {
  if (call.verdict !== 'allow' && !isUnapproved(call)) return undefined;
  const listed = valueAt(record, 'findings');
  const flagged = (Array.isArray(listed) ? listed : []).flatMap((one: unknown) => {
    const { detector, direction, action } = isObject(one) ? one : {};
    return direction === 'to-upstream' && action === 'flag' && typeof detector === 'string' ? [detector] : [];
  });
  return [...new Set(flagged)];
}

/** Stands in for the token of a caller who is assumed and presented none. */
export const NO_TOKEN: PrincipalFacts['token'] = {
  ...{ id: '', formerIds: [], audience: '', issuedAt: undefined, binding: 'none' },
  expiresAt: Number.POSITIVE_INFINITY,
};

/** The scopes that a token grants by those that it states. */
export function widenScopes(
  scopes: readonly string[],
  implied: { readonly [scope: string]: readonly string[] },
): readonly string[] {
  return [
    ...new Set(scopes.flatMap((scope) => [scope, ...(Object.hasOwn(implied, scope) ? (implied[scope] ?? []) : [])])),
  ];
}

/** `pinned` is the definition that is known to admit the arguments. */
function argumentsOf(record: AuditRecord, pinned: PinnedDefinition | undefined): KnownArguments {
  const args = record['args'];
  if (!isObject(args)) return { all: {} };
  const keys = textsAt(record, 'args', 'keys');
  const bytes = typeof args['bytes'] === 'number' ? args['bytes'] : Number.POSITIVE_INFINITY;
  const areNamesKnown = keys.length < MAX_LISTED && keys.every(isVerbatim);
  const values = new Map<string, readonly Json[]>();
  const captured = isObject(args['captured']) ? args['captured'] : {};
  for (const [pointer, text] of Object.entries(captured)) {
    const [name, ...deeper] = stepsOf(pointer);
    if (name === undefined || deeper.length > 0 || typeof text !== 'string' || !isVerbatim(text)) continue;
    values.set(name, admitted(valuesOf(text), name, pinned));
  }
  if (areNamesKnown && keys.length === 0) return { all: {} };
  const names = areNamesKnown ? new Set(keys) : undefined;
  return { names, values, bytes, areValid: pinned !== undefined };
}

/** A captured value is a text as it is, or anything else as JSON: `7` may be either, and more likely the number. */
function valuesOf(text: string): readonly Json[] {
  try {
    const parsed = JSON.parse(text) as Json;
    return typeof parsed === 'string' ? [text] : [parsed, text];
  } catch {
    return [text];
  }
}

/**
 * The arguments as the gateway would read them now. What was recorded is what was forwarded, or what was refused then and
 * would be mended now.
 */
function mendKnown(
  known: KnownArguments,
  mending: MendingSettings,
  pinned: PinnedDefinition | undefined,
): KnownArguments {
  if ('all' in known || known.names === undefined) return known;
  const dropped = new Set(droppedOf(mending, pinned, known.names));
  const isCoerced = mending.coerce && !known.areValid;
  if (dropped.size === 0 && !isCoerced) return known;
  const names = new Set([...known.names].filter((name) => !dropped.has(name)));
  // A string may become what it holds, at any depth: of scalars both are known already.
  const values = [...known.values].filter(
    ([name, held]) => !dropped.has(name) && !(isCoerced && held.some(isContainer)),
  );
  // What is left is not known to be admitted.
  const areValid = known.areValid && dropped.size === 0;
  return { ...known, names, values: new Map(values), areValid, dropped: [...dropped] };
}

function isContainer(value: Json): boolean {
  return typeof value === 'object' && value !== null;
}

/** Those of several possible values that the type in the definition admits. */
function admitted(values: readonly Json[], name: string, pinned: PinnedDefinition | undefined): readonly Json[] {
  const schema = pinned?.definition['inputSchema'];
  const properties = isObject(schema) ? schema['properties'] : undefined;
  const property = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  const type = isObject(property) ? property['type'] : undefined;
  if (typeof type !== 'string') return values;
  return values.filter((value) => (type === 'string') === (typeof value === 'string'));
}

/** Untrusted text is masked, made visible and cut in a line; this one surely was not. */
function isVerbatim(text: string): boolean {
  return text.length < MAX_FOREIGN_CHARACTERS - 1 && !/\[redacted|\u2026|\\u\{/.test(text);
}
