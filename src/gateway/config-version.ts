// One configuration version: settings, policies and lock files, read together and used together. With one error in any
// file there is no new version, and the running one stays in force. Also what lock files hold that a reviewer should
// know: names that look alike, definitions that stand in for those of another upstream, exceptions that are over, and
// what is pending. docs/reference/definitions.md.

import { dirname, join, relative } from 'node:path';
import type { Versions } from '../audit/event.js';
import { type Diagnostic, fileDiagnostic, hasErrors, type Severity } from '../config/diagnostics.js';
import { DISK_FILES, type Files, type FilesRead, noteReads } from '../config/files.js';
import {
  type AggregateOutline,
  type InForce,
  loadGateway,
  loadPolicies,
  loadPoliciesInSteps,
  type Outline,
  type ReloadFacts,
} from '../config/load.js';
import type { LockSigning, Settings } from '../config/settings.js';
import { isAbout, scanDefinitions } from '../inspection/definitions/scan.js';
import {
  type BackendName,
  exceptionsOn,
  findConfusableNames,
  findShadowing,
  type Shadowing,
} from '../inspection/definitions/shadowing.js';
import { definitionsOf, pendingOf } from '../pins/approval.js';
import {
  type CheckedDefinition,
  type CompileDefinition,
  createCatalog,
  createDefinitionCompiler,
  type DefinitionCompiler,
  describeSchemaError,
  isUsableWith,
  type UnusableDefinition,
} from '../pins/catalog.js';
import { approvedVersions, LOCK_SUFFIX, type Lock, PIN_KINDS } from '../pins/lock.js';
import { loadLocks, type SignedLock } from '../pins/lock-reader.js';
import { SIGNATURE_SUFFIX } from '../pins/signature.js';
import {
  type CompiledPolicies,
  compileChecked,
  compileInSteps,
  compilePolicies,
  type DocumentChecks,
  knownRules,
} from '../policy/compile/compile.js';
import type { Closing, PolicyDocument } from '../policy/compile/documents.js';
import type { Catalog, SchemaOptions } from '../policy/definitions.js';
import { type WrittenRules, writtenRules } from '../policy/explain.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import { type PresentedTool, presentationOf, presentationProblems, shownName } from '../policy/presentation.js';
import { openTexts, type PolicySet, type Rule } from '../policy/rules.js';
import { mirroredParameters } from '../protocol/headers.js';
import { finishInTurns, runInTurns, type Turns } from '../protocol/json/incremental.js';
import { isObject, type JsonObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal, quoteForShell } from '../text/escaping.js';
import { stepsOf } from '../text/json-members.js';
import { countOf, errorCode, firstOf } from '../text/wording.js';

type PinsOf = (upstream: string) => Catalog | undefined;

const NAMED_KINDS = ['tool', 'prompt'] as const;
/** Pairs reported of one aggregate; with more than this the prefix itself is the mistake. */
const MAX_ALIKE = 10;

/**
 * Names under which an aggregate would show items of two backends that look alike, as far as the lock files show them;
 * reported at the position of the aggregate's name in the gateway file. They are found before a start; those that
 * appear later are hidden at run time.
 * Source: docs/reference/attacks.md case 60; docs/contract.md, law 4 (pins that change at run time make nothing
 * invalid).
 */
export function checkAggregateNames(
  { file, aggregates, upstreams }: Pick<Outline, 'file' | 'aggregates' | 'upstreams'>,
  pins: PinsOf,
  severity: Severity,
): readonly Diagnostic[] {
  const presentations = new Map(upstreams.map(({ name, tools }) => [name, presentationOf(tools)]));
  const namesOf = (upstream: string, kind: (typeof NAMED_KINDS)[number]): readonly string[] => {
    const names = approvedNames(pins(upstream), kind);
    return kind === 'tool' ? names.map((name) => shownName(presentations.get(upstream), name)) : names;
  };
  return aggregates.flatMap((aggregate) =>
    NAMED_KINDS.flatMap((kind) => findAlike(aggregate, (upstream) => namesOf(upstream, kind)))
      .slice(0, MAX_ALIKE)
      .map((message) => ({ file, ...aggregate.position, severity, rule: 'conflict', message })),
  );
}

function findAlike(
  { backends }: AggregateOutline,
  namesOf: (upstream: string) => readonly string[],
): readonly string[] {
  const groups = findConfusableNames(backends.map(({ upstream, prefix }) => ({ prefix, names: namesOf(upstream) })));
  const shown = ({ backend, name }: BackendName): string =>
    `${JSON.stringify(`${backends[backend]?.prefix ?? ''}${name}`)} of ${backends[backend]?.upstream ?? ''}`;
  return groups.map((alike) => `names that look alike: ${alike.map(shown).join(', ')}`);
}

/** Before anything was observed upstream, an approved definition has the state `absent`. */
function approvedNames(catalog: Catalog | undefined, kind: (typeof NAMED_KINDS)[number]) {
  const names = catalog?.names(kind) ?? [];
  return names.filter((name) => catalog?.statusOf(kind, name).state === 'absent');
}

/**
 * Catalogs by which policies are checked: what is pinned for an upstream, before anything was observed there;
 * `undefined` where it has no lock file.
 */
function pinsOf(locks: ReadonlyMap<string, Lock>, compile: CompileDefinition): PinsOf {
  const catalogs = new Map<string, Catalog>();
  return (upstream) => {
    const lock = locks.get(upstream);
    const known = catalogs.get(upstream);
    if (lock === undefined || known !== undefined) return known;
    const catalog = createCatalog({
      upstream,
      lock,
      observed: undefined,
      mode: 'strict',
      onDrift: 'hide-tool',
      undeclaredArguments: 'declared',
      compile,
    });
    catalogs.set(upstream, catalog);
    return catalog;
  };
}

/** A note names no more tools of one upstream. */
const MAX_NAMED_TOOLS = 8;

/** Notes the tools of each upstream whose schemas leave arguments undeclared, where the operator let them pass. */
function noteUndeclaredArguments(
  { file, upstreams }: Pick<Outline, 'file' | 'upstreams'>,
  pins: PinsOf,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name, arguments: { undeclared: mode }, position }) => {
    if (mode !== 'observe') return [];
    const catalog = pins(name);
    const tools = (catalog?.names('tool') ?? []).filter(
      (tool) => catalog?.statusOf('tool', tool).pinned?.input?.firstUndeclared !== undefined,
    );
    if (tools.length === 0) return [];
    const named = firstOf(tools.map(escapeForTerminal), MAX_NAMED_TOOLS);
    const message = `"arguments: ${mode}" records arguments that the schemas of ${countOf(tools.length, 'tool')} do not declare: ${named}`;
    return [{ file, ...position, severity: 'note', rule: 'lock', message } as const];
  });
}

/**
 * Tools that cannot be presented as the gateway file says, by what the lock file approves; reported at the tool. They are
 * found before a start; those that cannot later, because definitions have changed, are hidden at run time.
 */
export function checkPresentations(
  { file, upstreams }: Pick<Outline, 'file' | 'upstreams'>,
  pins: PinsOf,
  severity: Severity,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name, tools, toolPositions, position }) => {
    const presentation = presentationOf(tools);
    const catalog = pins(name);
    if (presentation === undefined || catalog === undefined) return [];
    const at = (tool: string) => ({ file, ...(toolPositions.get(tool) ?? position), rule: 'conflict' as const });
    const report = (tool: string, why: string, level: Severity): Diagnostic => {
      return { ...at(tool), severity: level, message: escapeForTerminal(`tool ${JSON.stringify(tool)}: ${why}`) };
    };
    const known = new Set(catalog.names('tool'));
    const misnamed = [...presentation.byTool.keys()].filter((tool) => !known.has(tool));
    const problems = presentationProblems(presentation, catalog, (tool) => known.has(tool));
    const unfit = [...presentation.byTool.values()].flatMap((one) => {
      const { pinned } = catalog.statusOf('tool', one.tool);
      const isSound = problems.every(({ tool }) => tool !== one.tool);
      const why = pinned && isSound ? valueError(one, pinned.definition) : undefined;
      return why === undefined ? [] : [{ tool: one.tool, why }];
    });
    return [
      ...[...problems, ...unfit].map(({ tool, why }) => report(tool, why, severity)),
      ...misnamed.map((tool) => report(tool, NOT_PINNED_HERE, 'warning')),
    ];
  });
}

const NOT_PINNED_HERE = 'the lock file has no tool of this name, so that nothing is presented';

/** Why calls with the values that are filled in could never be valid. */
function valueError({ filled }: PresentedTool, { inputSchema }: JsonObject): string | undefined {
  if (filled.size === 0 || !isObject(inputSchema)) return undefined;
  // What else is required is the caller's to send.
  const { required: _, ...schema } = inputSchema;
  const compiled = compileSchema(schema);
  const errors = compiled.ok ? compiled.schema.check(Object.fromEntries(filled)) : [];
  const [first] = errors.filter(({ pointer }) => filled.has(stepsOf(pointer)[0] ?? ''));
  return first && `the value of ${JSON.stringify(stepsOf(first.pointer)[0])} is not valid: it ${first.message}`;
}

function todayInUtc(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Reads the lock files of a folder for `validate`. Commands are named as they are run in `cwd`. */
export async function readLocksForPolicies(
  folder: string,
  outline: Pick<Outline, 'file' | 'aggregates' | 'signing' | 'upstreams' | 'shadowing' | 'deployment'>,
  cwd = dirname(outline.file),
) {
  const { locks, invalid, diagnostics } = await loadLocks(folder, lockPorts(DISK_FILES), signingOf(outline));
  const unchecked = noteUnchecked(folder, outline);
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const pins = pinsOf(locks, compile);
  const alike = [...checkAggregateNames(outline, pins, 'error'), ...checkPresentations(outline, pins, 'error')];
  const review = (upstream: string): string =>
    `sallyport pin diff -c ${quoteForShell(relative(cwd, outline.file))} ${upstream}`;
  const pending = [...locks.values()].flatMap((lock) => notePending(folder, lock, review));
  const shadowing = checkShadowing(outline, locks, todayInUtc());
  const inPending = [...pending, ...checkPending(folder, outline, locks, review)];
  const unusable = checkUsable(folder, outline, schemaErrorsIn(outline, locks, compile));
  const found = [...diagnostics, ...unchecked, ...alike, ...shadowing, ...inPending, ...unusable];
  const notes = noteUndeclaredArguments(outline, pins);
  return { upstreams: locks.keys(), diagnostics: found, notes, invalid, pins };
}

/** A rule that grants what is pending has no effect yet, which nothing else in a valid configuration says. */
function notePending(folder: string, lock: Lock, review: (upstream: string) => string): readonly Diagnostic[] {
  const count = pendingOf(lock).length;
  if (count === 0) return [];
  const file = join(folder, `${lock.upstream}${LOCK_SUFFIX}`);
  const message = `${countOf(count, 'definition')} of ${lock.upstream} ${count === 1 ? 'is' : 'are'} pending, and neither listed nor callable; to review: ${review(lock.upstream)}`;
  return [{ file, line: 1, column: 1, severity: 'note', rule: 'lock', message }];
}

function lockPorts({ readFile, listFolder }: Files) {
  return { readFile, readDir: listFolder };
}

/** Whose signatures lock files need, as far as that is known; a gateway file that leaves it open is not valid. */
function signingOf({ signing }: Pick<Outline, 'signing'>): LockSigning | undefined {
  return signing === 'incomplete' ? undefined : signing;
}

/** Says that signatures are not checked, so that nobody relies on them. */
function noteUnchecked(folder: string, { file, signing }: Pick<Outline, 'file' | 'signing'>): readonly Diagnostic[] {
  const note = (at: string, message: string): Diagnostic => {
    return { ...fileDiagnostic(at, 'lock', message), severity: 'note' };
  };
  if (signing === 'incomplete') {
    return [note(file, 'the keys of signers were not read: no signature of a lock file was checked')];
  }
  if (signing !== undefined) return [];
  try {
    const names = DISK_FILES.listFolder(folder).filter((name) => name.endsWith(SIGNATURE_SUFFIX));
    const why = 'nothing checks this file: "pins.signers" is not configured';
    return names.map((name) => note(`${folder}/${name}`, why));
  } catch {
    return [];
  }
}

/** A version that may be used: nothing in it is invalid. */
export type Version = {
  readonly settings: Settings;
  readonly policies: PolicySet;
  /** The rules as they were written, and facts about each issuer. Used only for explanations. */
  readonly written: WrittenRules;
  readonly issuerFacts: Outline['issuerFacts'];
  /** The exceptions of `pins.shadowing`. */
  readonly shadowing: Outline['shadowing'];
  readonly deployment: Outline['deployment'];
  readonly locks: ReadonlyMap<string, Lock>;
  /** What is signed, by upstream, where signatures are required. */
  readonly signed: ReadonlyMap<string, SignedLock>;
  /** Of what is in force. Where keys wait for a restart, `config` is the hash of no file. */
  readonly hashes: Versions;
  /** Of the files that were read. */
  readonly fileHashes: Versions;
  /** What a reload goes on with, and what of these files waits for a restart. */
  readonly reload: ReloadFacts;
  /** The rules and flows that are closed until then, by their ids. */
  readonly closed: readonly string[];
  /** Every rule as it is written. */
  readonly compiled: readonly Rule[];
};

export type VersionReading = {
  readonly version: Version | undefined;
  /** The upstreams whose lock file has not the signatures that it needs, which a diagnostic says; none if absent. */
  readonly unsigned?: ReadonlySet<string>;
  /** Of the files, as far as they could be read. */
  readonly fileHashes?: Partial<Versions>;
  readonly diagnostics: readonly Diagnostic[];
  /** What was read; absent if the reading itself failed. */
  readonly read?: FilesRead | undefined;
  /** What the gateway file names, if that can be told. */
  readonly named?: NamedPaths | undefined;
};

/** The files and folders that a gateway file names, as absolute paths, whether they exist or not. */
export type NamedPaths = Pick<Outline, 'policiesDir' | 'pinsDir'> & { readonly files: readonly string[] };

/** Every definition that a lock file approves. */
export function approvedDefinitions({ pins }: Lock): readonly Omit<CheckedDefinition, 'isUsable'>[] {
  return PIN_KINDS.flatMap((kind) =>
    [...pins[kind]].flatMap(([name, pin]) => approvedVersions(pin).map((version) => ({ kind, name, version }))),
  );
}

type Sources = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly compile: DefinitionCompiler;
  /** `leave-out`: the version shows what the files say, and nothing can be run with it. */
  readonly secrets?: 'leave-out' | undefined;
  /** The disk, if absent. */
  readonly files?: Files;
  /** Called with each lock file that can be read: its text's SHA-256, and what finds out whether what it approves can be used. */
  readonly onLock?: (lock: Lock, text: string, check: () => readonly CheckedDefinition[]) => void;
};

/** A version that was read and checked, without what cannot be sent between threads: compiled rules. */
type VersionFiles = Omit<Version, 'policies' | 'closed' | 'compiled' | 'locks' | 'written'> & {
  readonly outline: Outline;
  readonly documents: readonly PolicyDocument[];
  /** SHA-256 of the text of each lock file, by upstream. */
  readonly lockTexts: ReadonlyMap<string, string>;
  /** What was found in each document by itself. */
  readonly found: readonly DocumentChecks['found'][];
  /** What a reload says of the other files. */
  readonly others: readonly Diagnostic[];
};

/** What a version came from, kept for the reading of one that differs in policies only. */
export type Origin = Pick<VersionFiles, 'outline' | 'others'> & {
  readonly byDocument: ReadonlyMap<PolicyDocument, DocumentChecks>;
  readonly read: FilesRead;
  readonly named: NamedPaths | undefined;
};

/** With what the version came from, if there is one. */
export type TracedReading = VersionReading & { readonly origin?: Origin | undefined };

/** `files` is absent if a diagnostic is an error. */
export type FilesReading = Omit<VersionReading, 'version'> & { readonly files: VersionFiles | undefined };

/** The parts of a version that are made where it is used. */
type VersionParts = Pick<Version, 'policies' | 'closed' | 'compiled' | 'locks'> & {
  /** Of each document. */
  readonly rulesOf: readonly (readonly Rule[])[];
};

/** The running version, as far as the reading of the next one depends on it. */
export type VersionInForce = InForce & {
  /** Changed pins make its policies no error (docs/contract.md, law 4); otherwise removing a tool from a lock file could be rejected and would leave the tool callable. */
  readonly policyHash: string;
  /** What its rules say, by their ids. */
  readonly open: ReadonlyMap<string, string>;
  readonly compiled: readonly Rule[];
};

/** What of it can be sent to another thread, and is needed there. */
export type InForceElsewhere = Omit<VersionInForce, 'open' | 'compiled'>;

export function inForceOf({ reload, hashes, policies, compiled }: Version): VersionInForce {
  return { ...reload.inForce, policyHash: hashes.policy, open: openTexts(policies), compiled };
}

/** Reads the gateway file and every file that it names, and returns the diagnostics of all of them. */
export async function loadVersion(file: string, sources: Sources, inForce?: VersionInForce): Promise<TracedReading> {
  const { files, parts, ...reading } = await readFiles(file, sources, inForce);
  return files && parts ? readingOf(reading, files, parts) : { ...reading, version: undefined };
}

/** The version of files that were read and checked on another thread. */
export async function completeVersion(
  reading: Omit<FilesReading, 'files'>,
  files: VersionFiles,
  locks: ReadonlyMap<string, Lock>,
  inForce: Pick<VersionInForce, 'open' | 'compiled'>,
  turns: Turns,
): Promise<TracedReading> {
  const { outline, documents, hashes, reload } = files;
  // What the rules say about pins was checked there already.
  const context = { ...outline, hash: hashes.policy, mode: outline.policiesMode, closing: closingOf(reload, inForce) };
  const compiled = await compileChecked(documents, context, knownRules(inForce.compiled), turns);
  return readingOf(reading, files, { ...compiled, locks });
}

/** What rules need in vain until a restart; `undefined` where nothing waits for one. */
function closingOf(reload: ReloadFacts | undefined, inForce: Pick<VersionInForce, 'open'> | undefined) {
  if (reload === undefined || inForce === undefined || reload.pending.keys.length === 0) return undefined;
  return { ...reload.pending.lacking, open: inForce.open };
}

function readingOf(
  reading: Omit<FilesReading, 'files'>,
  { outline, documents, lockTexts: _, found, others, ...files }: VersionFiles,
  { rulesOf, ...parts }: VersionParts,
): TracedReading {
  const version = { ...files, ...parts, written: writtenRules(documents) };
  const checks = documents.map((document, index) => {
    return [document, { rules: rulesOf[index] ?? [], found: found[index] }] as const;
  });
  const { read, named } = reading;
  const origin = read && { outline, others, byDocument: new Map(checks), read, named };
  return { ...reading, version, origin };
}

const POLICY_SUFFIX = '.policy.yaml';
/** More of changed policies than this is read on a thread of its own. */
const MAX_CHANGED_BYTES = 64 * 1024;

/**
 * The version in force with the policies as they are now, if no other file has changed and there is no mistake in them;
 * `undefined` where everything has to be read again. All files are read in turns; only changed policies are parsed,
 * compiled and compared with the pins. What other documents were found to say depends on them and on files that are as
 * they were.
 */
export async function readChangedPolicies(
  inForce: Version,
  origin: Origin,
  compile: CompileDefinition,
  turns: Turns,
): Promise<TracedReading | undefined> {
  const { pending, lost } = inForce.reload;
  const changes = pending.keys.length + lost.length === 0 ? await findChanges(origin, turns) : undefined;
  if (changes === undefined) return undefined;
  const { outline, byDocument, named, others } = origin;
  const known = new Map([...byDocument.keys()].map((document) => [document.file, document]));
  const pins = pinsOf(inForce.locks, compile);
  const steps = loadPoliciesInSteps(outline.policiesDir, {
    files: changes.files,
    *compile(documents, hash) {
      const context = { ...outline, hash, pins, mode: outline.policiesMode };
      const compiled = yield* compileInSteps(documents, context, byDocument);
      return { policies: compiled, diagnostics: compiled.diagnostics };
    },
    known: (file) => (changes.paths.has(file) ? undefined : known.get(file)),
  });
  const { policies: result, documents, hash, diagnostics } = await finishInTurns(turns, steps);
  if (result === undefined || result.closed.length > 0) return undefined;
  const { policies, closed, compiled } = result;
  const version = {
    ...inForce,
    ...{ policies, closed, compiled, written: writtenRules(documents) },
    hashes: { ...inForce.hashes, policy: hash },
    fileHashes: { ...inForce.fileHashes, policy: hash },
  };
  const checks = documents.flatMap((document, index) => {
    const one = result.byDocument[index];
    return one === undefined ? [] : [[document, one] as const];
  });
  return {
    version,
    unsigned: new Set(),
    fileHashes: version.fileHashes,
    diagnostics: [...others, ...diagnostics],
    read: changes.read,
    named,
    origin: { outline, others, byDocument: new Map(checks), read: changes.read, named },
  };
}

/** The policies as they are now, and the paths of those that differ; `undefined` if another file does, or much of them. */
async function findChanges({ outline, read: before }: Origin, turns: Turns) {
  const { policiesDir, pinsDir } = outline;
  const { files, read } = noteReads(DISK_FILES);
  const folders = [...new Set([policiesDir, ...before.names.keys()])];
  const areListed = folders.every((folder) => {
    const error = errorOf(() => files.listFolder(folder));
    // Lock files may be absent altogether. Every other folder that cannot be listed is for the whole reading to judge.
    const isAbsent = errorCode(error) === 'ENOENT' && before.names.get(folder)?.length === 0;
    return error === undefined || (isAbsent && folder !== policiesDir);
  });
  if (!areListed) return undefined;
  const isSame = (folder: string): boolean => {
    const namesIn = ({ names }: FilesRead): string =>
      JSON.stringify([...(names.get(folder) ?? [])].filter((name) => isCompared(folder, name)).sort());
    return namesIn(before) === namesIn(read);
  };
  const isCompared = (folder: string, name: string): boolean => {
    if (folder === pinsDir) return name.endsWith(LOCK_SUFFIX) || name.endsWith(SIGNATURE_SUFFIX);
    return folder !== policiesDir;
  };
  if (!folders.every(isSame)) return undefined;
  const isPolicy = (path: string): boolean => dirname(path) === policiesDir && path.endsWith(POLICY_SUFFIX);
  const listed = (read.names.get(policiesDir) ?? []).map((name) => join(policiesDir, name)).filter(isPolicy);
  const contents = new Map<string, Uint8Array>();
  const paths = new Set<string>();
  let [changedBytes, areOthersSame] = [0, true];
  const others = [...before.digests.keys()].filter((path) => !isPolicy(path));
  await runInTurns(turns, [...others, ...listed], (path) => {
    const bytes = tryTo(() => files.readFile(path));
    const isAsBefore = before.digests.get(path) === read.digests.get(path);
    if (!isPolicy(path)) areOthersSame &&= isAsBefore;
    else {
      // A policy that vanishes between the listing and the reading is no policy of before.
      areOthersSame &&= bytes !== undefined;
      contents.set(path, bytes ?? new Uint8Array());
      if (!isAsBefore) changedBytes += paths.add(path) && (bytes?.byteLength ?? 0);
    }
    return areOthersSame && changedBytes <= MAX_CHANGED_BYTES ? undefined : 'stop';
  });
  const isRemoved = listed.length < [...before.digests.keys()].filter(isPolicy).length;
  if (!areOthersSame || changedBytes > MAX_CHANGED_BYTES || (paths.size === 0 && !isRemoved)) return undefined;
  const readFile = (path: string): Uint8Array => {
    const bytes = contents.get(path);
    if (bytes === undefined) throw new Error('a policy that was not read');
    return bytes;
  };
  return { paths, read, files: { readFile, listFolder: (folder: string) => read.names.get(folder) ?? [] } };
}

function errorOf(listIt: () => unknown): unknown {
  try {
    listIt();
    return undefined;
  } catch (error) {
    return error ?? new Error();
  }
}

/** What cannot be read is noted as such by those who read it. */
function tryTo<Result>(readIt: () => Result): Result | undefined {
  try {
    return readIt();
  } catch {
    return undefined;
  }
}

/** Reads and checks all files; `parts` is absent if a diagnostic is an error. */
export async function readFiles(
  file: string,
  sources: Sources,
  inForce?: InForceElsewhere & Partial<VersionInForce>,
): Promise<FilesReading & { readonly parts?: VersionParts }> {
  const { files, read } = noteReads(sources.files ?? DISK_FILES);
  return { ...(await readNoted(file, { ...sources, files }, inForce)), read };
}

async function readNoted(
  file: string,
  { env, compile, files, onLock, secrets }: Sources & { readonly files: Files },
  inForce?: InForceElsewhere & Partial<VersionInForce>,
): Promise<FilesReading & { readonly parts?: VersionParts }> {
  const read = loadGateway(file, { readFile: files.readFile, env, inForce, secrets: secrets ?? 'read' });
  const { settings, reload, fileHash = '', diagnostics, outline, namedFiles = [] } = read;
  if (outline === undefined) return { files: undefined, fileHashes: { config: fileHash }, diagnostics };
  const formats = formatsOf(outline);
  const ports = {
    ...lockPorts(files),
    onLock(lock: Lock, text: string): void {
      onLock?.(lock, text, () =>
        checkLock(lock, formats.get(lock.upstream), compile).map(({ definition, errors }) => {
          return { ...definition, isUsable: isUsableWith(errors) };
        }),
      );
    },
  };
  const pins = await loadLocks(outline.pinsDir, ports, signingOf(outline));
  const { locks, unsigned } = pins;
  const pinned = pinsOf(locks, compile);
  const closing = inForce?.open && closingOf(reload, { open: inForce.open });
  const policies = readPolicies({ ...outline, closing }, files, pinned, pins.invalid, inForce?.policyHash);
  const fileHashes = { config: fileHash, policy: policies.hash, pins: pins.hash };
  // While a version runs, names that look alike are hidden, and a removal from a lock file must take effect.
  const severity = inForce === undefined ? 'error' : 'warning';
  const alike = [...checkAggregateNames(outline, pinned, severity), ...checkPresentations(outline, pinned, severity)];
  const others = [...diagnostics, ...pins.diagnostics, ...alike];
  const found = [
    ...diagnostics,
    ...policies.diagnostics,
    ...pins.diagnostics,
    ...alike,
    ...(inForce === undefined ? checkDefinitions(outline, locks, compile) : []),
  ];
  const { policies: compiled } = policies;
  const named = { policiesDir: outline.policiesDir, pinsDir: outline.pinsDir, files: namedFiles };
  if (settings === undefined || reload === undefined || compiled === undefined || hasErrors(found)) {
    return { files: undefined, unsigned, fileHashes, diagnostics: found, named };
  }
  const hashes = { ...fileHashes, config: settings.hash };
  const { issuerFacts, shadowing, deployment } = outline;
  return {
    files: {
      ...{ settings, outline, issuerFacts, shadowing, deployment, hashes, reload },
      fileHashes,
      documents: policies.documents,
      signed: pins.signed,
      lockTexts: pins.texts,
      found: compiled.byDocument.map((one) => one.found),
      others,
    },
    parts: {
      ...{ policies: compiled.policies, closed: compiled.closed, compiled: compiled.compiled, locks },
      rulesOf: compiled.byDocument.map(({ rules }) => rules),
    },
    unsigned,
    fileHashes,
    diagnostics: found,
    named,
  };
}

/** With more approved definitions than these, what a start would say of them is left to `validate`. */
const MAX_CHECKED_AT_START = 2_000;

/**
 * What is worth knowing of the approved definitions, none of which keeps a gateway from starting. Comparing and compiling
 * thousands of them takes several times as long as everything else at a start, and a reload shows nobody what it finds.
 */
function checkDefinitions(
  outline: Outline,
  locks: ReadonlyMap<string, Lock>,
  compile: Pick<DefinitionCompiler, 'check'>,
): readonly Diagnostic[] {
  let count = 0;
  for (const { pins } of locks.values()) for (const kind of PIN_KINDS) count += pins[kind].size;
  if (count > MAX_CHECKED_AT_START) {
    const message = `${count} definitions are pinned: which of them cannot be used or could pass for others is said by sallyport validate, and not by a start`;
    return [{ ...fileDiagnostic(outline.file, 'lock', message), severity: 'note' }];
  }
  return [
    ...checkShadowing(outline, locks, todayInUtc()),
    ...checkUsable(outline.pinsDir, outline, schemaErrorsIn(outline, locks, compile)),
  ];
}

function formatsOf({ upstreams }: Pick<Outline, 'upstreams'>): ReadonlyMap<string, SchemaOptions['formats']> {
  return new Map(upstreams.map(({ name, formats }) => [name, formats]));
}

/** Checks each approved definition of a lock file, once. */
function checkLock(lock: Lock, formats: SchemaOptions['formats'], { check }: Pick<DefinitionCompiler, 'check'>) {
  return approvedDefinitions(lock).map((one) => {
    const definition = { ...one, formats };
    return { definition, errors: check(definition) };
  });
}

/** What keeps approved definitions from being used, or is not checked, by upstream. */
export function schemaErrorsIn(
  outline: Pick<Outline, 'upstreams'>,
  locks: ReadonlyMap<string, Lock>,
  compile: Pick<DefinitionCompiler, 'check'>,
): ReadonlyMap<string, readonly UnusableDefinition[]> {
  const formats = formatsOf(outline);
  return new Map(
    [...locks].map(([upstream, lock]) => [
      upstream,
      checkLock(lock, formats.get(upstream), compile).flatMap(({ errors }) => errors),
    ]),
  );
}

function readPolicies(
  outline: Outline & { readonly closing: Closing | undefined },
  files: Files,
  pins: PinsOf,
  invalidLocks: ReadonlySet<string>,
  policyInForce: string | undefined,
): ReturnType<typeof loadPolicies<CompiledPolicies>> {
  return loadPolicies(outline.policiesDir, {
    files,
    compile(documents, hash) {
      const areInForce = hash === policyInForce;
      const mode = outline.policiesMode;
      const context = { ...outline, hash, invalidLocks, pins, areInForce, mode };
      const compiled = compilePolicies(documents, context);
      return { policies: compiled, diagnostics: compiled.diagnostics };
    },
  });
}

const MAX_REPORTED = 20;

type ShadowingOutline = Pick<Outline, 'file' | 'shadowing' | 'upstreams' | 'deployment'>;

/** Warnings, at the positions of the upstreams in the gateway file. `today` is a date as in RFC 3339, in UTC. */
export function checkShadowing(
  { file, shadowing, upstreams, deployment }: ShadowingOutline,
  locks: ReadonlyMap<string, Lock>,
  today: string,
): readonly Diagnostic[] {
  const compared = upstreams.flatMap(({ name: upstream }) => {
    const lock = locks.get(upstream);
    return lock === undefined ? [] : [{ upstream, definitions: definitionsOf(lock) }];
  });
  const exceptions = exceptionsOn(shadowing, today);
  const findings = findShadowing(compared, deployment, exceptions);
  const found = findings.filter(({ tier }) => tier !== 'note');
  const notes = findings.filter(({ tier }) => tier === 'note').map(({ reason }) => reason);
  const more = found.length - MAX_REPORTED;
  const at = { file, line: 1, column: 1, severity: 'warning', rule: 'lock' } as const;
  const expired = shadowing
    .filter(({ until }) => until < today)
    .map(({ items, until, position }): Diagnostic => {
      const message = `the exception for ${items.join(' and ')} ended on ${until}`;
      return { ...at, ...position, message };
    });
  const reported = found.slice(0, MAX_REPORTED).map(messageOf);
  const rest = more > 0 ? [`${more} further definitions stand in for others`] : [];
  const warnings = [...reported, ...rest].map((message): Diagnostic => ({ ...at, message }));
  const declared = notes.map((message): Diagnostic => ({ ...at, severity: 'note', message }));
  return [...warnings, ...expired, ...declared];
}

function quoteItem(upstream: string, name: string): string {
  return JSON.stringify(`${upstream}/${name}`);
}

function messageOf({ how, items: [item, other], reason, evidence }: Shadowing): string {
  if (how === 'same') return reason;
  if (how === 'names') return `${reason} The names: ${evidence}`;
  const [one, two] = [item, other].map(({ upstream, name }) => quoteItem(upstream, name));
  return `${one} can be taken for ${two}, or gives orders about it: ${reason} If both are meant, add an exception to pins.shadowing`;
}

/** Of one upstream. */
const MAX_SHOWN_ERRORS = 20;

function isNote({ effect }: UnusableDefinition): boolean {
  return effect !== 'unusable';
}

/** A warning for each approved definition that cannot be used, and a note for each that is not checked in one place. */
export function checkUsable(
  folder: string,
  { upstreams }: Pick<Outline, 'upstreams'>,
  found: ReadonlyMap<string, readonly UnusableDefinition[]>,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name }): Diagnostic[] => {
    const schemaErrors = [...(found.get(name) ?? [])].sort((one, other) => Number(isNote(one)) - Number(isNote(other)));
    const file = join(folder, `${name}${LOCK_SUFFIX}`);
    const at = { file, line: 1, column: 1, rule: 'lock' } as const;
    const shown = schemaErrors.slice(0, MAX_SHOWN_ERRORS).map((schemaError): Diagnostic => {
      const what = `${schemaError.kind} ${quoteItem(name, schemaError.name)} of the approved definitions`;
      const message = escapeForTerminal(`${what} ${describeSchemaError(schemaError)}`);
      return { ...at, message, severity: isNote(schemaError) ? 'note' : 'warning' };
    });
    const more = schemaErrors.length - shown.length;
    if (more <= 0) return shown;
    const message = `${countOf(more, 'further definition')} of ${name} cannot be used or checked as a whole`;
    const severity = schemaErrors.slice(shown.length).every(isNote) ? 'note' : 'warning';
    return [...shown, { ...at, severity, message }];
  });
}

/** A note for each upstream with findings in what is pending, at its lock file. `review`: the command that shows them. */
export function checkPending(
  folder: string,
  { upstreams }: Pick<Outline, 'upstreams'>,
  locks: ReadonlyMap<string, Lock>,
  review: (upstream: string) => string,
): readonly Diagnostic[] {
  return upstreams.flatMap(({ name }): Diagnostic[] => {
    const lock = locks.get(name);
    const pending = pendingOf(lock);
    if (lock === undefined || pending.length === 0) return [];
    const found = scanDefinitions(definitionsOf(lock)).filter(
      (finding) => finding.tier !== 'note' && pending.some((one) => isAbout(finding, one)),
    );
    const items = new Set(found.map(({ item }) => `${item.kind} ${item.name}`)).size;
    if (items === 0) return [];
    const message = `the scan found something in ${items} of the ${pending.length} pending definitions of ${name}; to see it, run: ${review(name)}`;
    const file = join(folder, `${name}${LOCK_SUFFIX}`);
    return [{ file, line: 1, column: 1, severity: 'note', rule: 'lock', message }];
  });
}
