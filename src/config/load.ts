// Loads the files of the configuration. The gateway file is read, validated and checked, and gives either settings or
// every diagnostic of the file in one run. The policy files of a folder are validated each against its schema and
// compiled together. Fails closed: with one error there are no settings, or no policies. Never throws because of a
// file's content. docs/reference/configuration.md; docs/reference/policies.md.

import { createHash } from 'node:crypto';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { MendingSettings } from '../policy/argument-mending.js';
import type { PolicyDiagnostic, PolicyDocument } from '../policy/compile/documents.js';
import { describeReadError } from '../text/wording.js';
import type { Locate, Position } from '../text/yaml.js';
import { checkListeners, checkPublicUrl } from './checks/addresses.js';
import {
  checkAdmin,
  checkAudit,
  checkIssuers,
  checkKeys,
  checkPolicyMode,
  checkSigning,
  checkState,
} from './checks/gateway.js';
import { backendsOf, checkAggregates, checkResources, checkUpstreams } from './checks/upstreams.js';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  hasErrors,
  type NameKind,
  type PathDiagnostic,
  type ReportDiagnostic,
  sortDiagnostics,
} from './diagnostics.js';
import type { Files } from './files.js';
import { profileNames } from './profiles.js';
import { type CompileInput, compileHierarchy, compileSettings } from './resolve.js';
import { entriesOf, readable, resolveMeanings, textsOf } from './schema/declarations.js';
import { GATEWAY_SCHEMA, type ReadableGateway } from './schema/gateway.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { locateDiagnostic, readDocument } from './schema/validation.js';
import { readListenerTls, readSecrets, readTlsFiles, signingOf } from './secrets.js';
import type { BackendSettings, IssuerSettings, LockSigning, Settings } from './settings.js';

type UpstreamOutline = {
  readonly name: string;
  /** Absent if they are unknown because the list has errors. */
  readonly issuers?: readonly string[];
  /** True if only definitions that the lock file approves may be used. */
  readonly strict: boolean;
  /** True if what was offered first may be used too, unless the lock file decides about it. */
  readonly isFirstUse: boolean;
  /** What happens to arguments that the schema of a tool does not declare, if it can be read. */
  readonly undeclaredArguments: string | undefined;
  /** What is mended in arguments, as far as it can be read. */
  readonly arguments?: MendingSettings;
  /** Whether formats are asserted, if that can be read. */
  readonly formats?: 'annotation' | 'assertion' | undefined;
  readonly position: Position;
};

/** Which upstreams are the same server, and which are shown in one list (inspection/definitions/shadowing.ts). */
type DeploymentOutline = {
  readonly upstreams: readonly {
    readonly name: string;
    readonly host: string | undefined;
    readonly sameAs: string | undefined;
    readonly issuers: readonly string[] | undefined;
  }[];
  readonly aggregates: readonly (readonly string[])[];
};

/** An aggregate's backends and prefixes, and its position in the file. */
export type AggregateOutline = {
  readonly name: string;
  readonly backends: readonly BackendSettings[];
  readonly position: Position;
};

type ShadowingOutline = {
  readonly items: readonly string[];
  readonly owner: string;
  readonly until: string;
  readonly position: Position;
};

/**
 * What can be read of a gateway file even if parts of it are wrong: names and folders. Enough to check
 * policies and lock files in the same run, never enough to run a gateway.
 */
export type Outline = {
  /** Absolute path of the file. */
  readonly file: string;
  readonly aggregates: readonly AggregateOutline[];
  readonly upstreams: readonly UpstreamOutline[];
  readonly issuers: readonly string[];
  /** What is said of each issuer that can be read. */
  readonly issuerFacts: ReadonlyMap<string, IssuerFacts>;
  readonly profiles: readonly string[];
  /** The kinds of names that are not all known, because those that define them have mistakes. */
  readonly unknownNames: ReadonlySet<NameKind>;
  /** `observe`: no policy is enforced. */
  readonly policiesMode: 'enforce' | 'observe';
  /** Absolute path. */
  readonly policiesDir: string | undefined;
  /** Absolute path. */
  readonly pinsDir: string | undefined;
  /** Whose signatures lock files need; `incomplete` if the key of a signer could not be read. */
  readonly signing: LockSigning | 'incomplete' | undefined;
  /** Pairs of definitions that may stand side by side, with their positions. */
  readonly shadowing: readonly ShadowingOutline[];
  readonly deployment: DeploymentOutline;
  readonly opsHost: string | undefined;
  readonly opsPort: number | undefined;
  readonly isOpsSecure: boolean;
  /** The admin listener, where one is configured. */
  readonly admin: { readonly host: string; readonly port: number; readonly isSecure: boolean } | undefined;
};

/** What recorded and supposed callers are read by. */
type IssuerFacts = {
  /** The `iss` claim. */
  readonly url: string;
  readonly impliedScopes: IssuerSettings['impliedScopes'];
  /** What a token says may change while it is valid. */
  readonly isIntrospected: boolean;
};

type GatewaySources = {
  readonly readFile: Files['readFile'];
  /** With it, a note says which secrets every user of the machine can read. */
  readonly modeOf?: Files['modeOf'];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * `skip` checks the form of secret references without reading the secrets, for checks away from the
   * machine that runs the gateway. There are no settings then.
   */
  readonly secrets?: 'read' | 'skip';
};

export type GatewayReading = {
  /** `undefined` if a diagnostic is an error, or if secrets were skipped. */
  readonly settings: Settings | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** Present even for a file with errors, so that policies are checked in the same run. */
  readonly outline: Outline | undefined;
};

/** Reads and checks a gateway file. Diagnostics are in the order of the file. */
export function loadGateway(file: string, sources: GatewaySources): GatewayReading {
  const absolute = resolve(file);
  let bytes: Uint8Array;
  try {
    bytes = sources.readFile(absolute);
  } catch (error) {
    const message = `the gateway file ${describeReadError(error)}; name another with -c`;
    const diagnostic = fileDiagnostic(file, 'unreadable', message);
    return { settings: undefined, diagnostics: [diagnostic], outline: undefined };
  }
  const document = readDocument(GATEWAY_SCHEMA, file, bytes);
  if (!document.ok) {
    const diagnostics = sortDiagnostics(document.diagnostics);
    return { settings: undefined, diagnostics, outline: undefined };
  }
  const { locate } = document;
  const found: PathDiagnostic[] = [...document.diagnostics];
  const gateway = readable(GATEWAY_SCHEMA, document.value);
  const read = checkGateway(gateway, dirname(absolute), sources, found);
  const unknown = findUnknownNames(found);
  const located = found
    .filter(({ refersTo }) => refersTo === undefined || !unknown.has(refersTo))
    .map((diagnostic) => locateDiagnostic(file, locate, diagnostic));
  const result = {
    diagnostics: sortDiagnostics(located),
    outline: outlineOf(gateway, absolute, locate, found, readSigning(gateway, sources, absolute)),
  };
  if (hasErrors(located) || read === undefined) return { settings: undefined, ...result };
  const hash = createHash('sha256').update(bytes).digest('hex');
  const settings = compileSettings({ file: absolute, gateway, ...read, hash });
  return { settings, ...result };
}

/** Compiles well-formed documents. `hash` identifies their version. */
type CompileDocuments<Policies> = (
  documents: readonly PolicyDocument[],
  hash: string,
) => { readonly policies: Policies; readonly diagnostics: readonly PolicyDiagnostic[] };

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
  ports: { readonly files: Files; readonly compile: CompileDocuments<Policies> },
): PolicyReading<Policies> {
  const diagnostics: Diagnostic[] = [];
  const locators = new Map<string, Locate>();
  const documents: PolicyDocument[] = [];
  const hash = createHash('sha256');
  for (const name of listPolicies(folder, ports.files, diagnostics)) {
    const file = join(folder, name);
    const bytes = readPolicyBytes(file, ports.files, diagnostics);
    if (bytes === undefined) continue;
    hash.update(`${JSON.stringify(name)} ${bytes.byteLength}\n`).update(bytes);
    const document = readPolicy(file, bytes, locators, diagnostics);
    if (document !== undefined) documents.push(document);
  }
  const version = hash.digest('hex');
  const compiled = ports.compile(documents, version);
  for (const diagnostic of compiled.diagnostics) diagnostics.push(locatePolicyDiagnostic(diagnostic, locators));
  return {
    policies: hasErrors(diagnostics) ? undefined : compiled.policies,
    documents,
    locate: (file, path) => locators.get(file)?.(path, 'value') ?? { line: 1, column: 1 },
    hash: version,
    diagnostics: sortDiagnostics(diagnostics),
  };
}

const NAME_PATHS: readonly (readonly [NameKind, FilePath])[] = [
  ['upstream', ['upstreams']],
  ['issuer', ['issuers']],
  ['inspection profile', ['inspection', 'profiles']],
];

/** The kinds of names that are incomplete, because at least one name could not be read. */
function findUnknownNames(found: readonly PathDiagnostic[]): ReadonlySet<NameKind> {
  const isOf = (path: FilePath, one: PathDiagnostic): boolean => {
    const { path: at, at: part, rule, message } = one;
    // Warnings and notes do not prevent a start.
    if (one.severity !== 'error') return false;
    const isBelow = path.every((step, index) => at[index] === undefined || at[index] === step);
    if (!isBelow || at.length > path.length + 1) return false;
    if (at.length === path.length + 1) return part === 'key' && rule === 'wrong-value';
    if (at.length > 0) return rule !== 'unknown-key';
    return rule === 'missing-key' && message.startsWith(`the key "${path[0]}" is missing`);
  };
  const unknown = NAME_PATHS.filter(([, path]) => found.some((one) => isOf(path, one)));
  return new Set(unknown.map(([kind]) => kind));
}

/** The outline of a gateway file whose defaults are filled in. `file` is its absolute path. */
function outlineOf(
  gateway: ReadableGateway,
  file: string,
  locate: Locate,
  found: readonly PathDiagnostic[],
  signing: Outline['signing'],
): Outline {
  const folder = dirname(file);
  const { policies, pins, listeners, inspection } = gateway;
  const policiesDir = policies?.dir ? resolve(folder, policies.dir) : undefined;
  return {
    file,
    aggregates: entriesOf(gateway.endpoints).map(([name, aggregate]) => ({
      name,
      backends: backendsOf(aggregate),
      position: locate(['endpoints', name], 'key'),
    })),
    upstreams: entriesOf(gateway.upstreams).map(([name, { issuers, pinning, formats, arguments: undeclared }]) => ({
      name,
      formats: formats === 'assertion' ? formats : 'annotation',
      undeclaredArguments: undeclaredWord(undeclared),
      arguments: mendingOf(undeclared),
      position: locate(['upstreams', name], 'key'),
      ...(areIssuersWrong(name, found) ? {} : { issuers: textsOf(issuers).map(([, issuer]) => issuer) }),
      strict: pinning?.mode === undefined || pinning.mode === 'strict',
      isFirstUse: pinning?.mode === 'trust-on-first-use',
    })),
    issuers: Object.keys(gateway.issuers ?? {}),
    issuerFacts: new Map(
      entriesOf(gateway.issuers).map(([name, { issuer, scopeHierarchy, introspection }]) => {
        const impliedScopes = compileHierarchy(Object.fromEntries(entriesOf(scopeHierarchy)));
        const isIntrospected = introspection !== undefined;
        return [name, { url: issuer ?? '', impliedScopes, isIntrospected }] as const;
      }),
    ),
    profiles: profileNames(Object.keys(inspection?.profiles ?? {})),
    unknownNames: findUnknownNames(found),
    policiesMode: policies?.mode === 'observe' ? 'observe' : 'enforce',
    policiesDir,
    pinsDir: pins?.dir ? resolve(folder, pins.dir) : policiesDir && resolve(policiesDir, 'pins'),
    signing,
    shadowing: exceptionsOf(pins?.shadowing, locate),
    deployment: {
      upstreams: entriesOf(gateway.upstreams).map(([name, { url, socket, sameAs, issuers }]) => ({
        name,
        host: socket || hostOf(url),
        sameAs: sameAs || undefined,
        issuers: issuers && textsOf(issuers).map(([, issuer]) => issuer),
      })),
      aggregates: entriesOf(gateway.endpoints).map(([, aggregate]) =>
        backendsOf(aggregate).map(({ upstream }) => upstream),
      ),
    },
    opsHost: listeners?.ops?.host || undefined,
    isOpsSecure: listeners?.ops?.tls !== undefined,
    opsPort: listeners?.ops?.port,
    admin: adminOutline(gateway),
  };
}

function hostOf(url: string | undefined): string | undefined {
  return url && URL.canParse(url) ? new URL(url).host : undefined;
}

/** What is done with undeclared arguments, in the word that is short for it. */
function undeclaredWord(written: unknown): string | undefined {
  if (typeof written === 'string') return written;
  const { undeclared } = (written ?? {}) as { readonly undeclared?: unknown };
  return undeclared === 'refuse' || undeclared === undefined ? 'declared' : String(undeclared);
}

function mendingOf(written: unknown): MendingSettings {
  const { coerce, drop } = (typeof written === 'object' && written !== null ? written : {}) as {
    readonly coerce?: unknown;
    readonly drop?: unknown;
  };
  const names = Array.isArray(drop) ? (drop as readonly unknown[]) : [];
  return { coerce: coerce === true, drop: names.filter((one) => typeof one === 'string') };
}

function adminOutline({ admin, listeners }: ReadableGateway): Outline['admin'] {
  const { host, port, tls } = listeners?.admin ?? {};
  if (admin === undefined || !host || port === undefined) return undefined;
  return { host, port, isSecure: tls !== undefined };
}

function exceptionsOf(
  written: NonNullable<ReadableGateway['pins']>['shadowing'],
  locate: Locate,
): readonly ShadowingOutline[] {
  return Object.entries(written ?? []).flatMap(([at, exception]) => {
    const items = textsOf(exception?.items).map(([, item]) => item);
    const { owner, until } = exception ?? {};
    const position = locate(['pins', 'shadowing', Number(at)], 'value');
    return owner && until ? [{ items, owner, until, position }] : [];
  });
}

function areIssuersWrong(upstream: string, found: readonly PathDiagnostic[]): boolean {
  return found.some(
    ({ path: [first, name, key, item], severity, rule, message }) =>
      severity === 'error' &&
      first === 'upstreams' &&
      (name === upstream || name === undefined) &&
      (key === 'issuers' || (item === undefined && rule === 'missing-key' && /"issuers"/.test(message))),
  );
}

/**
 * A start fails where the folder of an audit file does not exist. An absolute path may be one of the machine that the
 * gateway will run on.
 */
function noteMissingFolders(
  { audit }: ReadableGateway,
  folder: string,
  { readFile }: GatewaySources,
  report: ReportDiagnostic,
): void {
  for (const [index, { path }] of (audit?.sinks ?? []).entries()) {
    if (!path || isAbsolute(path)) continue;
    try {
      readFile(resolve(folder, dirname(path)));
    } catch (error) {
      // A folder that exists cannot be read as a file either.
      if (describeReadError(error) !== 'does not exist') continue;
      const message = `the folder of the audit file "${path}" does not exist; create it before the start`;
      report(['audit', 'sinks', index, 'path'], message, 'wrong-value', { severity: 'note' });
    }
  }
}

/** `sun_path` of Linux has 108 bytes with the NUL at its end (unix(7)); other systems have fewer. */
const MAX_SOCKET_PATH_BYTES = 107;

/** A longer path is cut off or refused by the system, which would show with the first request. */
function checkSocketPaths({ upstreams }: ReadableGateway, folder: string, report: ReportDiagnostic): void {
  for (const [name, { socket }] of entriesOf(upstreams)) {
    const size = socket ? Buffer.byteLength(resolve(folder, socket)) : 0;
    if (size <= MAX_SOCKET_PATH_BYTES) continue;
    const message = `the absolute path of this socket has ${size} bytes, and the system takes ${MAX_SOCKET_PATH_BYTES} at most; use a shorter one, such as one below /run`;
    report(['upstreams', name, 'socket'], message);
  }
}

/** The keys of signers are no secrets: they are read wherever the file is checked, and quietly. */
function readSigning(gateway: ReadableGateway, sources: GatewaySources, file: string): Outline['signing'] {
  const { env } = sources;
  const read = { files: sources, env, folder: dirname(file) };
  return signingOf(
    gateway,
    readSecrets(gateway, read, () => undefined, 'signer-key'),
  );
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
  checkAudit,
  checkState,
  checkAdmin,
  checkPolicyMode,
];

function checkGateway(
  gateway: ReadableGateway,
  folder: string,
  sources: GatewaySources,
  found: PathDiagnostic[],
): Pick<CompileInput, 'secrets' | 'tls'> | undefined {
  const report: ReportDiagnostic = (path, message, rule = 'wrong-value', more = {}) => {
    const { at = 'value', severity = 'error', suggestion, refersTo } = more;
    found.push({ path, at, severity, rule, message, suggestion, refersTo });
  };
  for (const checkPart of CHECKS) checkPart(gateway, report);
  checkSocketPaths(gateway, folder, report);
  if (sources.secrets === 'skip') return undefined;
  noteMissingFolders(gateway, folder, sources, report);
  const secretSources = { files: sources, env: sources.env, folder };
  const keys = readSecrets(gateway, secretSources, report);
  const secrets = new Map([...keys, ...readTlsFiles(gateway, secretSources, keys, report)]);
  return { secrets, tls: readListenerTls(gateway, { files: sources, folder, secrets }, report) };
}

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
  const { value, locate, isComplete } = document;
  locators.set(file, locate);
  diagnostics.push(...document.diagnostics.map((one) => locateDiagnostic(file, locate, one)));
  if (!isComplete) return undefined;
  const meant = resolveMeanings(POLICY_SCHEMA, value);
  const { policy, mode, defaults, rules, labels, flows, sensitive } = meant;
  return { file, policy, mode, defaults, rules, labels, flows, sensitive };
}

function locatePolicyDiagnostic(diagnostic: PolicyDiagnostic, locators: ReadonlyMap<string, Locate>): Diagnostic {
  const { file, ...rest } = diagnostic;
  const located: PathDiagnostic = { ...rest, at: 'value', rule: 'policy' };
  const locate = locators.get(file) ?? (() => ({ line: 1, column: 1 }));
  return locateDiagnostic(file, locate, located);
}
