// Loads the policy files of a folder: validates each against its schema, has them compiled, and gives every
// diagnostic its line. All or nothing: with one error there are no policies. docs/contract.md §3 and §4.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { PolicyDiagnostic, PolicyDocument } from '../policy/compile/documents.js';
import { describeReadError } from '../text/wording.js';
import type { Locate, Position } from '../text/yaml.js';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  hasErrors,
  type PathDiagnostic,
  sortDiagnostics,
} from './diagnostics.js';
import type { Files } from './files.js';
import { POLICY_SCHEMA } from './schema/policy.js';
import { locateDiagnostic, readDocument } from './schema/validation.js';
import { resolveMeanings } from './schema/values.js';

const POLICY_SUFFIX = '.policy.yaml';
const MAX_POLICY_FILES = 1000;

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
    const bytes = readBytes(file, ports.files, diagnostics);
    if (bytes === undefined) continue;
    hash.update(`${JSON.stringify(name)} ${bytes.byteLength}\n`).update(bytes);
    const document = readPolicy(file, bytes, locators, diagnostics);
    if (document !== undefined) documents.push(document);
  }
  const version = hash.digest('hex');
  const compiled = ports.compile(documents, version);
  for (const diagnostic of compiled.diagnostics)
    diagnostics.push(locatePolicyDiagnostic(diagnostic, locators));
  return {
    policies: hasErrors(diagnostics) ? undefined : compiled.policies,
    documents,
    locate: (file, path) => locators.get(file)?.(path, 'value') ?? { line: 1, column: 1 },
    hash: version,
    diagnostics: sortDiagnostics(diagnostics),
  };
}

function listPolicies(folder: string, files: Files, diagnostics: Diagnostic[]): readonly string[] {
  let names: readonly string[];
  try {
    names = files.listFolder(folder);
  } catch (error) {
    const message = `the policy folder ${describeReadError(error)}; correct "policies.dir" of the gateway file or the option --policies`;
    diagnostics.push(fileDiagnostic(folder, 'unreadable', message));
    return [];
  }
  const found = names
    .filter((name) => name.endsWith(POLICY_SUFFIX) && !name.startsWith('.'))
    .sort();
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

function readBytes(file: string, files: Files, diagnostics: Diagnostic[]): Uint8Array | undefined {
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

function locatePolicyDiagnostic(
  diagnostic: PolicyDiagnostic,
  locators: ReadonlyMap<string, Locate>,
): Diagnostic {
  const { file, ...rest } = diagnostic;
  const located: PathDiagnostic = { ...rest, at: 'value', rule: 'policy' };
  const locate = locators.get(file) ?? (() => ({ line: 1, column: 1 }));
  return locateDiagnostic(file, locate, located);
}
