// Loads the files of the configuration, each in two phases: first its shape, against the schema, with every error of it;
// then what it means, on typed values, with every error of that. The policy files of a folder are compiled together.
// Fails closed: with one error there are no settings, or no policies. Never throws because of a file's content.
// docs/reference/configuration.md.

import { createHash } from 'node:crypto';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { PolicyDiagnostic, PolicyDocument, Reviewing } from '../policy/compile/documents.js';
import { finishAtOnce } from '../protocol/json/incremental.js';
import { isObject } from '../protocol/jsonrpc.js';
import { describeReadError, firstOf } from '../text/wording.js';
import type { Locate, Position } from '../text/yaml.js';
import { checkListeners, checkPublicUrl } from './checks/addresses.js';
import { checkDeliveries } from './checks/deliveries.js';
import {
  checkAdmin,
  checkAudit,
  checkIssuers,
  checkKeys,
  checkPolicyMode,
  checkSigning,
  checkState,
  checkWebhooks,
} from './checks/gateway.js';
import { checkLikelyMistakes, checkPlaceholders } from './checks/likely-mistakes.js';
import { checkTracing } from './checks/tracing.js';
import { backendsOf, checkAggregates, checkResources, checkUpstreams } from './checks/upstreams.js';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  hasErrors,
  type PathDiagnostic,
  type ReportDiagnostic,
  sortDiagnostics,
} from './diagnostics.js';
import type { Files } from './files.js';
import { profileNames } from './profiles.js';
import { type CompileInput, compileArguments, compileHierarchy, compileSettings, policyFoldersOf } from './resolve.js';
import {
  isKept,
  type KeysInForce,
  keysOf,
  lackingOf,
  leaveOutInvalid,
  type Pending,
  pendingKeys,
  withKeysInForce,
} from './restart.js';
import { memberOf, resolveMeanings } from './schema/declarations.js';
import { GATEWAY_SCHEMA, type GatewayConfig, type GatewayFile, LISTENERS, POLICIES } from './schema/gateway.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { locateDiagnostic, readDocument, readPart, readYamlFile } from './schema/validation.js';
import {
  checkClientCertificates,
  checkKeysDiffer,
  checkSigners,
  createReferenceReader,
  type ReferenceReader,
  readListenerTls,
  type SecretSources,
  signingOf,
} from './secrets.js';
import type { LockSigning, Settings } from './settings.js';

/**
 * What a gateway file of the right shape says that the files beside it are checked by, even if something in it is wrong
 * or its secrets are missing. Enough to check policies and lock files in the same run, never enough to run a gateway.
 */
export type Outline = ReturnType<typeof outlineOf>;
/** An aggregate's backends and prefixes, and its position in the file. */
export type AggregateOutline = Outline['aggregates'][number];

type GatewaySources = {
  readonly readFile: Files['readFile'];
  /** With it, a note says which secrets every user of the machine can read. */
  readonly modeOf?: Files['modeOf'];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * `skip` checks the form of secret references without reading the secrets, for checks away from the
   * machine that runs the gateway. There are no settings then. `leave-out` does the same and gives settings in which all
   * secrets are missing or invented: what they say of controls can be shown, and nothing can be run with them.
   */
  readonly secrets?: SecretSources['secrets'];
  /** Of a running gateway: the version that the file is to replace. Absent before a start. */
  readonly inForce?: InForce | undefined;
};

/** What a reload takes from the version in force. */
export type InForce = {
  /** The keys that a running gateway keeps. */
  readonly keys: KeysInForce;
  /** What the files that the gateway file names held, by their absolute paths. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
};

export type GatewayReading = {
  /** `undefined` if a diagnostic is an error, or if secrets were skipped. Where keys are pending, they have the values in force. */
  readonly settings: Settings | undefined;
  /** What goes with the settings, and is absent without them. */
  readonly reload?: ReloadFacts | undefined;
  /** SHA-256 of the file, lower-case hex; absent if it could not be read. */
  readonly fileHash?: string;
  readonly diagnostics: readonly Diagnostic[];
  /** What is worth knowing of a file without mistakes. */
  readonly notes?: readonly Diagnostic[];
  /** Absent only for a file that is not of the right shape. */
  readonly outline: Outline | undefined;
  /** The files that it names, as absolute paths, whether they could be read or not. Absent without an outline. */
  readonly namedFiles?: readonly string[];
  /** The folder of policies, an absolute path, if that can be read. */
  readonly policiesDir: string | undefined;
};

/** What a version knows of its files besides its settings. */
export type ReloadFacts = {
  readonly inForce: InForce;
  readonly pending: Pending;
  /** The files that cannot be read any more, as absolute paths: what they held stays in force. */
  readonly lost: readonly string[];
  /** The variables with secrets that could change without a restart if they were files. */
  readonly variables: readonly string[];
};

/**
 * Where a gateway listens by its file, whatever else may be wrong in it: a gateway goes on running while its file is
 * edited. `undefined` if that cannot be read; `admin` also if there is no console.
 */
export function loadListeners(file: string, readFile: Files['readFile']) {
  let bytes: Uint8Array;
  try {
    bytes = readFile(resolve(file));
  } catch {
    return undefined;
  }
  const { value } = readYamlFile(file, bytes).source ?? {};
  const listeners = readPart(LISTENERS, value, 'listeners');
  if (listeners === undefined || !isObject(value)) return undefined;
  const { ops, admin } = listeners;
  return { ops, admin: value['admin'] === undefined ? undefined : admin };
}

/** Reads and checks a gateway file. Diagnostics are in the order of the file. */
export function loadGateway(file: string, sources: GatewaySources): GatewayReading {
  const absolute = resolve(file);
  let bytes: Uint8Array;
  try {
    bytes = sources.readFile(absolute);
  } catch (error) {
    const message = `the gateway file ${describeReadError(error)}; name another with -c`;
    const diagnostic = fileDiagnostic(file, 'unreadable', message);
    return { settings: undefined, diagnostics: [diagnostic], outline: undefined, policiesDir: undefined };
  }
  const document = readDocument(GATEWAY_SCHEMA, file, bytes);
  if (!document.ok) {
    const dir = readPart(POLICIES, document.written, 'policies')?.dir;
    const policiesDir = dir === undefined ? undefined : resolve(dirname(absolute), dir);
    const diagnostics = sortDiagnostics(document.diagnostics);
    return { settings: undefined, fileHash: hashOf(bytes), diagnostics, outline: undefined, policiesDir };
  }
  return readMeaning(file, bytes, document, sources);
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** What a file of the right shape means: its settings, or every mistake in what it says. */
function readMeaning(
  file: string,
  bytes: Uint8Array,
  { locate, value: written }: { readonly locate: Locate; readonly value: GatewayFile },
  sources: GatewaySources,
): GatewayReading {
  const absolute = resolve(file);
  const folder = dirname(absolute);
  const found: PathDiagnostic[] = [];
  const report: ReportDiagnostic = (path, message, rule = 'wrong-value', more = {}) => {
    const { at = 'value', severity = 'error', suggestion } = more;
    found.push({ path, at, severity, rule, message, suggestion });
  };
  const { env, secrets = 'read' } = sources;
  const { files, contents, lost, named } = keepLostFiles(sources, sources.inForce?.contents);
  const references = createReferenceReader({ files, env, folder, secrets }, report);
  const gateway = resolveMeanings(GATEWAY_SCHEMA, written, references.read);
  for (const checkPart of CHECKS) checkPart(gateway, report);
  checkPlaceholders(written, report);
  checkSocketPaths(gateway, folder, report);
  const isRead = secrets === 'read';
  if (isRead) {
    noteMissingFolders(gateway, folder, sources, report);
    checkKeysDiffer(gateway, written, report);
    checkSigners(gateway, report);
  }
  const tls = secrets === 'skip' ? {} : readListenerTls(gateway, written, { files, folder, secrets }, report);
  const signing = signingOf(gateway);
  const outline = outlineOf(gateway, absolute, locate, signing);
  const { policiesDir } = outline;
  const located = sortDiagnostics(found.map((diagnostic) => locateDiagnostic(file, locate, diagnostic)));
  const diagnostics = [...located, ...[...lost].map(reportLost)];
  // Keys that take effect at a start only need no note of what does too.
  const changeable = references.variables.filter(({ path }) => !isKept(path));
  const notes = noteEnvironment(changeable).map((note) => locateDiagnostic(file, locate, note));
  const fileHash = hashOf(bytes);
  const namedFiles = [...named];
  if (hasErrors(diagnostics) || secrets === 'skip' || signing === 'incomplete') {
    return { settings: undefined, fileHash, diagnostics, notes, outline, policiesDir, namedFiles };
  }
  const watchedFiles = [...references.watchedFiles];
  const compiled = compileBeside(
    { file: absolute, gateway, tls, signing, watchedFiles, hash: fileHash },
    sources.inForce?.keys,
  );
  const { settings, keys, pending } = compiled;
  const variables = [...new Set(changeable.map(({ name }) => name))];
  const reload = { inForce: { keys, contents }, pending, lost: [...lost], variables };
  return { settings, reload, fileHash, diagnostics, notes, outline, policiesDir, namedFiles };
}

const NOTHING_PENDING: Pending = { keys: [], leftOut: [], lacking: { reviewers: false, sharedState: false } };

/** The settings of a file beside the keys that a running gateway keeps, if there is one. */
function compileBeside(
  input: CompileInput,
  inForce: KeysInForce | undefined,
): { readonly settings: Settings; readonly keys: KeysInForce; readonly pending: Pending } {
  const { gateway, tls, hash } = input;
  const written = compileSettings(input);
  const read = keysOf(gateway, tls, written);
  const keys = inForce === undefined ? [] : pendingKeys(inForce, read);
  if (inForce === undefined || keys.length === 0) return { settings: written, keys: read, pending: NOTHING_PENDING };
  const kept = withKeysInForce(gateway, tls, inForce);
  const usable = leaveOutInvalid(kept.gateway, inForce, findErrors);
  // Replicas with the same files and the same start have the same hash, which is that of no file.
  const mixed = hashOf(Buffer.from(JSON.stringify(['restart pending', hash, inForce.hash, keys])));
  const settings = compileSettings({ ...input, ...kept, gateway: usable.gateway, hash: mixed });
  const lacking = lackingOf(written, settings);
  return { settings, keys: inForce, pending: { keys, leftOut: usable.leftOut, lacking } };
}

function findErrors(gateway: GatewayConfig): readonly PathDiagnostic[] {
  const found: PathDiagnostic[] = [];
  for (const checkPart of CHECKS)
    checkPart(gateway, (path, message, rule = 'wrong-value', { at = 'value', severity = 'error' } = {}) =>
      found.push({ path, at, severity, rule, message }),
    );
  return found;
}

/** Reads what the gateway file names; a file that cannot be read any more is read as it was. */
function keepLostFiles(
  { readFile, modeOf }: Pick<GatewaySources, 'readFile' | 'modeOf'>,
  inForce: InForce['contents'] | undefined,
) {
  const contents = new Map<string, Uint8Array>();
  const lost = new Set<string>();
  const named = new Set<string>();
  return {
    contents,
    lost,
    named,
    files: {
      readFile(path: string): Uint8Array {
        named.add(path);
        try {
          const bytes = readFile(path);
          contents.set(path, new Uint8Array(bytes));
          return bytes;
        } catch (error) {
          const held = inForce?.get(path);
          if (held === undefined) throw error;
          contents.set(path, held);
          lost.add(path);
          return held;
        }
      },
      modeOf: (path: string) => (lost.has(path) ? undefined : modeOf?.(path)),
    },
  };
}

function reportLost(file: string): Diagnostic {
  const message = 'this file cannot be read any more; what it held stays in force, and a start would be refused';
  return { ...fileDiagnostic(file, 'unreadable', message), severity: 'warning' };
}

/** Compiles well-formed documents. `hash` identifies their version. */
type CompileDocuments<Policies> = (documents: readonly PolicyDocument[], hash: string) => Compiled<Policies>;

type Compiled<Policies> = { readonly policies: Policies; readonly diagnostics: readonly PolicyDiagnostic[] };

type PolicyReading<Policies> = {
  /** `undefined` if a diagnostic is an error. */
  readonly policies: Policies | undefined;
  /** The documents that are well-formed. */
  readonly documents: readonly PolicyDocument[];
  /** The position of a path in one of the files. */
  readonly locate: (file: string, path: FilePath) => Position;
  /** SHA-256 over the names and bytes of the files, lower-case hex. */
  readonly hash: string;
  readonly diagnostics: readonly Diagnostic[];
};

/** Reads `*.policy.yaml` of a folder, not of its subfolders. A folder without any is a warning, not an error. */
export function loadPolicies<Policies>(
  folder: string,
  { files, compile }: { readonly files: Files; readonly compile: CompileDocuments<Policies> },
): PolicyReading<Policies> {
  const ports: StepPorts<Policies> = {
    files,
    *compile(...given) {
      yield;
      return compile(...given);
    },
  };
  return finishAtOnce(loadPoliciesInSteps(folder, ports));
}

type StepPorts<Policies> = {
  readonly files: Files;
  readonly compile: (...given: Parameters<CompileDocuments<Policies>>) => Generator<void, Compiled<Policies>>;
  /** The document of a file that holds what it did when it was read; such a file is parsed only to find a position. */
  readonly known?: (file: string) => PolicyDocument | undefined;
};

/** The same in small steps. */
export function* loadPoliciesInSteps<Policies>(
  folder: string,
  { files, compile, known }: StepPorts<Policies>,
): Generator<void, PolicyReading<Policies>> {
  const diagnostics: Diagnostic[] = [];
  const locators = new Map<string, Locate>();
  const documents: PolicyDocument[] = [];
  const hash = createHash('sha256');
  for (const name of listPolicies(folder, files, diagnostics)) {
    const file = join(folder, name);
    const bytes = readPolicyBytes(file, files, diagnostics);
    if (bytes === undefined) continue;
    hash.update(`${JSON.stringify(name)} ${bytes.byteLength}\n`).update(bytes);
    const before = known?.(file);
    const document = before ?? readPolicy(file, bytes, locators, diagnostics);
    if (document !== undefined) documents.push(document);
    if (before !== undefined) locators.set(file, locateLater(file, bytes, locators));
    yield;
  }
  const version = hash.digest('hex');
  const compiled = yield* compile(documents, version);
  for (const diagnostic of compiled.diagnostics) {
    diagnostics.push(locatePolicyDiagnostic(diagnostic, locators));
    yield;
  }
  return {
    policies: hasErrors(diagnostics) ? undefined : compiled.policies,
    documents,
    locate: (file, path) => locators.get(file)?.(path, 'value') ?? { line: 1, column: 1 },
    hash: version,
    diagnostics: sortDiagnostics(diagnostics),
  };
}

/** `signing`: whose signatures lock files need; `incomplete` if the key of a signer could not be read. */
function outlineOf(
  gateway: GatewayConfig,
  file: string,
  locate: Locate,
  signing: LockSigning | 'incomplete' | undefined,
) {
  const aggregates = Object.entries(gateway.endpoints).map(([name, aggregate]) => ({
    name,
    backends: backendsOf(aggregate),
    position: locate(['endpoints', name], 'key'),
  }));
  const upstreams = Object.entries(gateway.upstreams);
  const areKnown = (issuers: readonly string[]) => issuers.every((name) => Object.hasOwn(gateway.issuers, name));
  return {
    /** Absolute path, as those of the folders. */
    file,
    publicUrl: gateway.publicUrl,
    ...policyFoldersOf(file, gateway),
    policiesMode: gateway.policies.mode,
    auditFiles: gateway.audit.sinks.flatMap((sink) =>
      sink.type === 'file' ? [resolve(dirname(file), sink.path)] : [],
    ),
    aggregates,
    upstreams: upstreams.map(([name, { issuers = [], pinning, formats, arguments: undeclared, tools }]) => ({
      ...{ name, formats, tools },
      /** Of the tools that are presented otherwise. */
      toolPositions: new Map(
        Object.keys(tools).map((tool) => [tool, locate(['upstreams', name, 'tools', tool], 'key')] as const),
      ),
      arguments: compileArguments(undeclared),
      position: locate(['upstreams', name], 'key'),
      /** Absent if one of them is unknown. */
      issuers: areKnown(issuers) ? issuers : undefined,
      /** Only definitions that the lock file approves may be used. */
      strict: pinning.mode === 'strict',
      /** What was offered first may be used too, unless the lock file decides about it. */
      isFirstUse: pinning.mode === 'trust-on-first-use',
    })),
    issuers: Object.keys(gateway.issuers),
    /** Those at which callers can log in. */
    logins: Object.keys(gateway.issuers).filter((name) => gateway.issuers[name]?.login !== undefined),
    /** What recorded and supposed callers are read by. What an introspected token says may change while it is valid. */
    issuerFacts: new Map(
      Object.entries(gateway.issuers).map(([name, { issuer, scopeHierarchy, introspection }]) => {
        const impliedScopes = compileHierarchy(scopeHierarchy);
        return [name, { url: issuer, impliedScopes, isIntrospected: introspection !== undefined }] as const;
      }),
    ),
    reviewing: reviewingOf(gateway),
    profiles: profileNames(Object.keys(gateway.inspection.profiles)),
    signing,
    /** Pairs of definitions that may stand side by side. */
    shadowing: (gateway.pins?.shadowing ?? []).map((exception, index) => {
      return { ...exception, position: locate(['pins', 'shadowing', index], 'value') };
    }),
    /** Which upstreams are the same server, and which are shown in one list (inspection/definitions/shadowing.ts). */
    deployment: {
      upstreams: upstreams.map(([name, { url, socket, sameAs, issuers }]) => {
        return { name, host: socket ?? hostOf(url), sameAs, issuers };
      }),
      aggregates: aggregates.map(({ backends }) => backends.map(({ upstream }) => upstream)),
    },
  };
}

/**
 * Whether anybody can review, and which issuers lack the claim that tells one person (`login.match`) although callers of
 * one and reviewers of another may meet.
 */
function reviewingOf({ admin, issuers, upstreams, endpoints }: GatewayConfig): Reviewing {
  const reviewers = Object.entries(admin?.issuers ?? {}).flatMap(([name, { roles }]) =>
    roles.reviewer === undefined && roles.admin === undefined ? [] : [name],
  );
  const resources = [...Object.values(upstreams), ...Object.values(endpoints)];
  const callers = resources.flatMap(({ issuers: accepted = [] }) => accepted);
  const involved = new Set(reviewers.length === 0 ? [] : [...reviewers, ...callers]);
  const unmatched = [...involved].filter((name) => memberOf(issuers, name)?.login?.match === undefined);
  return { canReview: reviewers.length > 0, unmatched: involved.size > 1 ? unmatched.sort() : [] };
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/** A note names no more variables. */
const MAX_VARIABLES = 8;

/** Whoever changes a variable and reloads would wait in vain. */
function noteEnvironment(changeable: ReferenceReader['variables']): readonly PathDiagnostic[] {
  const [first] = changeable;
  if (first === undefined) return [];
  const names = firstOf([...new Set(changeable.map(({ name }) => name))], MAX_VARIABLES);
  const message = `the environment is read at the start only: a new value of ${names} needs a restart, while a secret given by {file: PATH} is read again when its file changes`;
  return [{ path: first.path, at: 'value', severity: 'note', rule: 'secret', message }];
}

/**
 * A start fails where the folder of an audit file does not exist. An absolute path may be one of the machine that the
 * gateway will run on.
 */
function noteMissingFolders(
  { audit }: GatewayConfig,
  folder: string,
  { readFile }: GatewaySources,
  report: ReportDiagnostic,
): void {
  for (const [index, sink] of audit.sinks.entries()) {
    if (sink.type !== 'file' || isAbsolute(sink.path)) continue;
    const { path } = sink;
    try {
      readFile(resolve(folder, dirname(path)));
    } catch (error) {
      // A folder that exists cannot be read as a file either.
      if (describeReadError(error) !== 'does not exist') continue;
      const message = `the folder of the audit file "${path}" does not exist; create it before the start`;
      report(['audit', 'sinks', index, 'path'], message, 'wrong-value', { severity: 'warning' });
    }
  }
}

/** `sun_path` of Linux has 108 bytes with the NUL at its end (unix(7)); other systems have fewer. */
const MAX_SOCKET_PATH_BYTES = 107;

/** A longer path is cut off or refused by the system, which would show with the first request. */
function checkSocketPaths({ upstreams }: GatewayConfig, folder: string, report: ReportDiagnostic): void {
  for (const [name, { socket }] of Object.entries(upstreams)) {
    const size = socket !== undefined ? Buffer.byteLength(resolve(folder, socket)) : 0;
    if (size <= MAX_SOCKET_PATH_BYTES) continue;
    const message = `the absolute path of this socket has ${size} bytes, and the system takes ${MAX_SOCKET_PATH_BYTES} at most; use a shorter one, such as one below /run`;
    report(['upstreams', name, 'socket'], message);
  }
}

const CHECKS = [
  checkPublicUrl,
  checkListeners,
  checkKeys,
  checkIssuers,
  checkUpstreams,
  checkAggregates,
  checkResources,
  checkSigning,
  checkClientCertificates,
  checkAudit,
  checkDeliveries,
  checkState,
  checkAdmin,
  checkWebhooks,
  checkTracing,
  checkPolicyMode,
  checkLikelyMistakes,
];

const POLICY_SUFFIX = '.policy.yaml';
const MAX_POLICY_FILES = 1000;

function listPolicies(folder: string, files: Files, diagnostics: Diagnostic[]): readonly string[] {
  let names: readonly string[];
  try {
    names = files.listFolder(folder);
  } catch (error) {
    const message = `the policy folder ${describeReadError(error)}; correct "policies.dir" of the gateway file or the option --policies`;
    diagnostics.push(fileDiagnostic(folder, 'unreadable', message));
    return [];
  }
  const found = names.filter((name) => name.endsWith(POLICY_SUFFIX) && !name.startsWith('.')).sort();
  const misnamed = names.filter(isMisnamed).sort();
  for (const name of misnamed) diagnostics.push(reportMisnamed(folder, name, found.length === 0));
  if (found.length === 0 && misnamed.length === 0) {
    const message = `the folder has no file whose name ends in ${POLICY_SUFFIX}, so nothing is allowed`;
    diagnostics.push({ ...fileDiagnostic(folder, 'policy', message), severity: 'warning' });
  }
  if (found.length <= MAX_POLICY_FILES) return found;
  diagnostics.push(fileDiagnostic(folder, 'policy', `more than ${MAX_POLICY_FILES} policy files`));
  return [];
}

/** YAML that is neither a policy nor a test of one. */
function isMisnamed(name: string): boolean {
  const isRead = name.endsWith(POLICY_SUFFIX) || name.endsWith('.policy.test.yaml');
  return /\.ya?ml$/i.test(name) && !isRead && !name.startsWith('.');
}

/** A file that is not read, though it could be meant as a policy: a deny rule in it would protect nothing. */
function reportMisnamed(folder: string, name: string, isOnly: boolean): Diagnostic {
  const consequence = isOnly ? ', so nothing is allowed' : '';
  const message = `this file is not read, because its name does not end in ${POLICY_SUFFIX}${consequence}`;
  const isPolicy = isOnly || /\.policy\.ya?ml$/i.test(name);
  return {
    ...fileDiagnostic(join(folder, name), 'policy', message),
    severity: isPolicy ? 'warning' : 'note',
    suggestion: name.replace(/(?:\.policy)?\.ya?ml$/i, POLICY_SUFFIX),
  };
}

function readPolicyBytes(file: string, files: Files, diagnostics: Diagnostic[]): Uint8Array | undefined {
  try {
    return files.readFile(file);
  } catch (error) {
    const message = `the policy file ${describeReadError(error)}`;
    diagnostics.push(fileDiagnostic(file, 'unreadable', message));
    return undefined;
  }
}

function readPolicy(
  file: string,
  bytes: Uint8Array,
  locators: Map<string, Locate>,
  diagnostics: Diagnostic[],
): PolicyDocument | undefined {
  const document = readDocument(POLICY_SCHEMA, file, bytes);
  if (!document.ok) {
    diagnostics.push(...document.diagnostics);
    return undefined;
  }
  locators.set(file, document.locate);
  const { policy, mode, defaults, rules, labels, flows, sensitive } = resolveMeanings(POLICY_SCHEMA, document.value);
  return { file, policy, mode, defaults, rules, labels, flows, sensitive };
}

/** Parses the file when it is first asked for a position. */
function locateLater(file: string, bytes: Uint8Array, locators: Map<string, Locate>): Locate {
  return (path, at) => {
    const own = new Map<string, Locate>();
    readPolicy(file, bytes, own, []);
    const locate = own.get(file) ?? (() => ({ line: 1, column: 1 }));
    locators.set(file, locate);
    return locate(path, at);
  };
}

function locatePolicyDiagnostic(diagnostic: PolicyDiagnostic, locators: ReadonlyMap<string, Locate>): Diagnostic {
  const { file, ...rest } = diagnostic;
  const located: PathDiagnostic = { ...rest, at: 'value', rule: 'policy' };
  const locate = locators.get(file) ?? (() => ({ line: 1, column: 1 }));
  return locateDiagnostic(file, locate, located);
}
