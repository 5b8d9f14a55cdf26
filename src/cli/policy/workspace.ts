// What the commands about policies work on: the policies of a folder, compiled for a gateway file, with the lock files
// as they are. The upstreams are taken to offer what is approved for them; no secret is read, and nothing is sent.

import { resolve } from 'node:path';
import { NO_TOKEN, type RecordedCall, widenScopes } from '../../audit/recorded.js';
import { errorsOf, renderDiagnostics } from '../../config/diagnostics.js';
import type { Files } from '../../config/files.js';
import { loadGateway, loadPolicies, type Outline } from '../../config/load.js';
import { CALLER, type CallerDocument } from '../../config/schema/policy.js';
import { validateShape } from '../../config/schema/validation.js';
import { type ReadArguments, readArguments } from '../../policy/argument-mending.js';
import { compilePolicies } from '../../policy/compile/compile.js';
import type { PolicyDocument } from '../../policy/compile/documents.js';
import { defaultsFor, type FilledIn } from '../../policy/conditions.js';
import { NO_CATALOG } from '../../policy/decide.js';
import type { Catalog } from '../../policy/definitions.js';
import { explainRules, type KnownVerdict, verdictOf, type WrittenRules, writtenRules } from '../../policy/explain.js';
import { readPolicyTarget, targetPinOf } from '../../policy/policy-target.js';
import {
  type PresentedTool,
  presentationOf,
  presentedCatalog,
  shownName,
  toOwnForm,
} from '../../policy/presentation.js';
import type { Principal, SupposePrincipal } from '../../policy/principal.js';
import { type RuleTexts, ruleTexts, withRecorded } from '../../policy/recorded-outcomes.js';
import type { PolicySet, TargetKind } from '../../policy/rules.js';
import { applyEdits } from '../../protocol/json/json.js';
import { type Json, parseObject, type Target } from '../../protocol/jsonrpc.js';
import { pointerTo } from '../../text/json-members.js';
import type { Position, YamlPath } from '../../text/yaml.js';
import { type CliIo, didYouMean, UsageError } from '../program.js';
import type { ReadLocks } from '../validate.js';

export type WorkspacePorts = {
  readonly files: Files;
  readonly loadLocks: (folder: string, outline: Outline) => Promise<ReadLocks>;
  readonly supposePrincipal: SupposePrincipal;
};

type WorkspaceOptions = {
  readonly config: string;
  /** A folder of policies other than the one that the gateway file names. */
  readonly policies?: string;
  /** Policies that are not enforced decide nothing, as at the gateway; otherwise all are taken as enforced. */
  readonly areModesKept?: boolean;
};

export type Workspace = {
  readonly outline: Outline;
  readonly policies: PolicySet;
  readonly written: WrittenRules;
  readonly texts: RuleTexts;
  /** The policies that the gateway file names. */
  readonly inForce: { readonly hash: string; readonly texts: RuleTexts };
  readonly locate: (file: string, path: YamlPath) => Position;
  /** The definitions of an upstream as they decide about a target, as if it offered what is approved. */
  readonly catalogOf: (upstream: string, target?: Target) => Catalog;
};

export const LOG_OPTION =
  'audit files, oldest first, or the folder that they are in (default: those of the gateway file)';

/**
 * The audit files that the gateway file names.
 *
 * @throws UsageError if it names none.
 */
export function logOf({ outline }: Pick<Workspace, 'outline'>): readonly string[] {
  if (outline.auditFiles.length > 0) return outline.auditFiles;
  throw new UsageError('error: this gateway writes no audit file; name one with --log\n');
}

/** `; did you mean "…"?`, or what there is to choose from. */
function suggest(name: string, known: readonly string[]): string {
  return didYouMean(name, known) || (known.length === 0 ? '' : `; known: ${known.join(', ')}`);
}

/**
 * Reads everything.
 *
 * @throws UsageError with the diagnostics, if a file has errors.
 */
export async function openWorkspace(options: WorkspaceOptions, io: CliIo, ports: WorkspacePorts): Promise<Workspace> {
  const file = resolve(io.cwd, options.config);
  const { readFile } = ports.files;
  const gateway = loadGateway(file, { readFile, env: io.env, secrets: 'skip' });
  const { outline } = gateway;
  const found = [...gateway.diagnostics];
  const locks = outline === undefined ? undefined : await ports.loadLocks(outline.pinsDir, outline);
  found.push(...(locks?.diagnostics ?? []));
  const folder = options.policies === undefined ? outline?.policiesDir : resolve(io.cwd, options.policies);
  const read = folder === undefined ? undefined : outline && readPolicies(folder, outline, locks, options, ports);
  const errors = errorsOf([...found, ...(read?.diagnostics ?? [])]);
  if (errors.length > 0 || outline === undefined || read?.policies === undefined)
    throw new UsageError(renderDiagnostics(errors, 'text', io.cwd));
  printNotes(outline, read.documents, options, io);
  return {
    outline,
    policies: read.policies,
    written: writtenRules(read.documents),
    texts: ruleTexts(read.documents.map(enforce)),
    inForce: inForceOf(options.policies === undefined ? undefined : outline.policiesDir, read, ports.files),
    locate: read.locate,
    catalogOf: catalogsOf(outline, locks?.pins),
  };
}

function readPolicies(
  folder: string,
  outline: Outline,
  locks: ReadLocks | undefined,
  { areModesKept = false }: WorkspaceOptions,
  { files }: Pick<WorkspacePorts, 'files'>,
) {
  const mode = areModesKept ? outline.policiesMode : undefined;
  const context = { ...outline, pins: locks?.pins, invalidLocks: locks?.invalid, mode };
  return loadPolicies(folder, {
    files,
    compile: (documents, hash) =>
      compilePolicies(areModesKept ? documents : documents.map(enforce), { ...context, hash }),
  });
}

/** What these files cannot tell, or do not decide. */
function printNotes(
  { upstreams, policiesMode }: Outline,
  documents: readonly PolicyDocument[],
  { areModesKept = false }: WorkspaceOptions,
  io: CliIo,
): void {
  for (const { policy } of documents.filter(({ mode }) => mode === 'shadow'))
    io.stderr(
      `note: the policy ${policy} has mode: shadow and ${areModesKept ? 'decides nothing' : 'is taken as enforced here'}\n`,
    );
  if (areModesKept && policiesMode === 'observe')
    io.stderr('note: with policies.mode: observe no rule refuses a call of what is approved\n');
  for (const { name } of upstreams.filter(({ isFirstUse }) => isFirstUse))
    io.stderr(
      `note: it is not known here what the gateway trusted on first use at ${name}; what its lock file neither approves nor blocks is taken as trusted\n`,
    );
}

/** What the policies of the gateway file say, which are those that were read if no other folder is given. */
function inForceOf(
  folder: string | undefined,
  read: { readonly hash: string; readonly documents: readonly PolicyDocument[] },
  files: Files,
): Workspace['inForce'] {
  const compile = () => ({ policies: undefined, diagnostics: [] });
  const { hash, documents } = folder === undefined ? read : loadPolicies(folder, { files, compile });
  return { hash, texts: ruleTexts(documents) };
}

/** The commands say what policies decide once they are enforced. */
function enforce(document: PolicyDocument): PolicyDocument {
  return { ...document, mode: 'enforce' };
}

function catalogsOf(outline: Outline, pins: ReadLocks['pins']): Workspace['catalogOf'] {
  const known = new Map<string, Catalog>();
  const makeCatalog = (upstream: string): Catalog => {
    const isStrict = outline.upstreams.some(({ name, strict }) => name === upstream && strict);
    const pinned = pins?.(upstream);
    const known = pinned === undefined ? { ...NO_CATALOG, upstream } : offered(pinned);
    const catalog = { ...known, mode: isStrict ? ('strict' as const) : ('off' as const) };
    return presentedCatalog(catalog, presentationAt(outline, upstream));
  };
  return (upstream, target) => {
    const catalog = known.get(upstream) ?? makeCatalog(upstream);
    known.set(upstream, catalog);
    const isFirstUse = outline.upstreams.some((one) => one.name === upstream && one.isFirstUse);
    const isDecided = isFirstUse && target !== undefined && isReviewed(catalog, target);
    return isDecided ? { ...catalog, mode: 'strict' } : catalog;
  };
}

/** What the gateway file presents otherwise than the upstream offers it. */
export function presentationAt(
  { upstreams }: Pick<Outline, 'upstreams'>,
  upstream: string,
): ReturnType<typeof presentationOf> {
  return presentationOf(upstreams.find(({ name }) => name === upstream)?.tools ?? {});
}

/** The name by which clients know a tool, where that is not its own. */
export function otherNameOf(outline: Pick<Outline, 'upstreams'>, upstream: string, kind: string, name: string) {
  const shown = kind === 'tool' ? shownName(presentationAt(outline, upstream), name) : name;
  return shown === name ? undefined : shown;
}

/** Whether the lock file alone decides about the target: some form of it was approved or blocked. */
function isReviewed(catalog: Catalog, target: Target): boolean {
  const item = target.kind === 'none' ? undefined : readPolicyTarget(target);
  if (item === undefined || item.kind === 'server-request') return false;
  return !UNREVIEWED.has(catalog.statusOf(item.kind, item.name).state);
}

const UNREVIEWED: ReadonlySet<string> = new Set(['unpinned', 'pending']);

/** Before anything was observed, an approved definition has the state `absent`. */
function offered(catalog: Catalog): Catalog {
  return {
    ...catalog,
    statusOf(kind, name) {
      const status = catalog.statusOf(kind, name);
      if (status.state !== 'absent') return status;
      const { pinned } = status;
      return {
        ...status,
        state: pinned === undefined ? 'invalid' : 'approved',
        observed: pinned?.digest,
      };
    },
  };
}

/** What the rules say of a recorded call; `undefined` if the record does not even give its target. */
export function evaluate(
  { facts }: RecordedCall,
  { policies, written }: Pick<Workspace, 'policies' | 'written'>,
): KnownVerdict | undefined {
  return facts && verdictOf(explainRules(policies, written, facts), facts);
}

/** Like `evaluate`, with what the recorded decision says of rules that have not changed since. */
export function evaluateAgain(call: RecordedCall, workspace: Workspace): KnownVerdict | undefined {
  const { policies, written, texts, inForce } = workspace;
  const { facts, decidedBy } = call;
  if (facts === undefined || decidedBy === undefined || !inForce.hash.startsWith(decidedBy))
    return evaluate(call, workspace);
  return verdictOf(withRecorded(explainRules(policies, written, facts), call, inForce.texts, texts), facts);
}

/** What the gateway makes of the arguments of a call: what rules, flows and detectors then see. */
export type GivenArguments = ReadArguments & {
  /** What the presentation of the tool gives to every call, and was not given here. */
  readonly added: readonly FilledIn[];
  /** The defaults that rules read in place of what is absent; undefined if finding them takes too much work. */
  readonly filledIn: readonly FilledIn[] | undefined;
};

const ARGUMENT_ERRORS = {
  'malformed-json': 'is not valid JSON; quote it for the shell',
  'no-object': 'is no JSON object',
  'duplicate-key': 'has an object with duplicate member names',
  'prototype-member': 'has a member named __proto__',
  'lone-surrogate': 'has half of a surrogate pair, which is no character',
  'too-deep': 'is nested too deeply',
  'too-many-values': 'contains too many values',
} as const;

/**
 * Reads the JSON of arguments as admission does.
 *
 * @throws UsageError for what it would refuse.
 */
export function readGiven(
  [source, json]: readonly [source: '--args' | 'the value of args', json: string],
  upstream: string,
  target: Target,
  { outline, catalogOf }: Pick<Workspace, 'outline' | 'catalogOf'>,
): GivenArguments {
  const mending = outline.upstreams.find(({ name }) => name === upstream)?.arguments;
  const catalog = catalogOf(upstream, target);
  const name = target.kind === 'tool' ? target.name : undefined;
  const presented = name === undefined ? undefined : presentationAt(outline, upstream)?.byTool.get(name);
  const text = presented === undefined ? json : withFilledIn(presented, json);
  const read = readArguments(text, mending, catalog, name);
  if (typeof read === 'string') throw new UsageError(`error: ${source} ${ARGUMENT_ERRORS[read]}\n`);
  const added = presented === undefined || text === json ? [] : addedTo(presented, json);
  const item = target.kind === 'none' ? undefined : readPolicyTarget(target);
  const described = item && targetPinOf(catalog, item, read.args).described;
  return { ...read, added, filledIn: defaultsFor(described, read.args) };
}

/** The arguments as the gateway forwards them for a tool that is presented otherwise; what cannot be read stays. */
function withFilledIn(presented: PresentedTool, json: string): string {
  const args = parseObject(json);
  if (args === undefined) return json;
  const { edits } = toOwnForm({ ...presented, name: presented.tool }, `${BEFORE_ARGUMENTS}${json}}}`, args);
  return applyEdits(`${BEFORE_ARGUMENTS}${json}}}`, edits).slice(BEFORE_ARGUMENTS.length, -2);
}

const BEFORE_ARGUMENTS = '{"params":{"arguments":';

function addedTo({ filled }: PresentedTool, json: string): readonly FilledIn[] {
  const args = parseObject(json) ?? {};
  return [...filled].flatMap(([name, value]) =>
    Object.hasOwn(args, name) ? [] : [{ pointer: pointerTo('', name), value }],
  );
}

/** What was done to arguments, one phrase each. */
export function describeGiven({ added, dropped, coerced, filledIn }: GivenArguments): readonly string[] {
  return [
    ...added.map(({ pointer, value }) => `filled in ${pointer}: ${cutJson(value)}`),
    ...dropped.map((pointer) => `dropped ${pointer}`),
    ...coerced.map((pointer) => `coerced ${pointer}`),
    ...(filledIn ?? []).map(({ pointer, value }) => `filled in for the rules ${pointer}: ${cutJson(value)}`),
  ];
}

const MAX_SHOWN_VALUE = 80;

function cutJson(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN_VALUE ? `${text.slice(0, MAX_SHOWN_VALUE)}…` : text;
}

/** Text of the only issuer that a caller can have without naming one. */
export const NO_ISSUER = 'none';

/**
 * The principal that a token with these values would give.
 *
 * @throws UsageError if the issuer is unknown or not named.
 */
export function principalOf(
  caller: CallerDocument,
  { outline }: Pick<Workspace, 'outline'>,
  ports: Pick<WorkspacePorts, 'supposePrincipal'>,
): Principal {
  const [only, ...others] = outline.issuers;
  const issuer = caller.issuer ?? (others.length === 0 ? (only ?? NO_ISSUER) : undefined);
  if (issuer === undefined)
    throw new UsageError(`error: name the issuer of the caller: ${outline.issuers.join(', ')}\n`);
  const facts = outline.issuerFacts.get(issuer);
  if (facts === undefined && issuer !== NO_ISSUER)
    throw new UsageError(`error: no issuer is named "${issuer}"${suggest(issuer, outline.issuers)}\n`);
  const { subject, client, groups, scopes: stated, claims } = caller;
  return ports.supposePrincipal({
    ...{ issuer, issuerUrl: facts?.url ?? NO_ISSUER, subject, client, groups, claims },
    scopes: widenScopes(stated, facts?.impliedScopes ?? {}),
    actors: [],
    token: NO_TOKEN,
  });
}

/**
 * Checks a caller that was given as JSON.
 *
 * @throws UsageError
 */
export function readCaller(value: unknown): CallerDocument {
  const validated = validateShape(CALLER, value);
  if (validated.isValid) return validated.value as CallerDocument;
  const [first] = validated.diagnostics;
  const where = first.path.length === 0 ? '' : ` at ${first.path.join('.')}`;
  const meant = first.suggestion === undefined ? '' : `; did you mean "${first.suggestion}"?`;
  throw new UsageError(`error: the caller${where}: ${first.message}${meant}\n`);
}

/**
 * Reads `UPSTREAM/NAME`, where the name may be the URI of a resource.
 *
 * @throws UsageError
 */
export function readTarget(
  written: string,
  kind: TargetKind | undefined,
  { outline, catalogOf }: Workspace,
): { readonly upstream: string; readonly target: Target } {
  const slash = written.indexOf('/');
  if (slash < 1 || slash === written.length - 1)
    throw new UsageError(`error: expected UPSTREAM/NAME, such as github/get_issue\n`);
  const [upstream, name] = [written.slice(0, slash), written.slice(slash + 1)];
  const known = outline.upstreams.map((one) => one.name);
  if (!known.includes(upstream))
    throw new UsageError(`error: no upstream is named "${upstream}"${suggest(upstream, known)}\n`);
  const found = kind ?? kindOf(name, catalogOf(upstream));
  switch (found) {
    case 'resource':
      return { upstream, target: { kind: found, uri: name } };
    case 'template':
      return { upstream, target: { kind: found, uriTemplate: name } };
    default:
      return { upstream, target: { kind: found, name } };
  }
}

/** The kind that is pinned under a name; otherwise what looks like a URI is one. */
function kindOf(name: string, catalog: Catalog): TargetKind {
  for (const kind of ['tool', 'prompt', 'template'] as const) if (catalog.names(kind).includes(name)) return kind;
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(name) ? 'resource' : 'tool';
}
