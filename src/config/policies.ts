// Reads the policy files of a folder, holds each to its schema, has them compiled, and places every
// fault at its line. Whole or not at all: with one error there are no policies. Contract §3 and §4.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { PolicyDocument, PolicyFault } from '../policy/document.js';
import { type Fault, faultOfFile, hasErrors, type PathFault, sortFaults } from './fault.js';
import type { Files } from './files.js';
import { documentOf } from './policy-file.js';
import { type Locate, placeFault } from './positions.js';
import { POLICY_SCHEMA } from './schema-policy.js';
import { validateShape } from './validation.js';
import { readYaml } from './yaml.js';

export const POLICY_SUFFIX = '.policy.yaml';
export const MAX_POLICY_FILES = 1000;

/** Compiles documents that are well-formed. `hash` names their version. */
export type CompileDocuments<Policies> = (
  documents: readonly PolicyDocument[],
  hash: string,
) => { readonly policies: Policies; readonly faults: readonly PolicyFault[] };

export type PolicyReading<Policies> = {
  /** `undefined` where one fault is an error. */
  readonly policies: Policies | undefined;
  /** The documents that could be read. */
  readonly documents: readonly PolicyDocument[];
  /** SHA-256 over the names and bytes of the files, lower-case hex. */
  readonly hash: string;
  readonly faults: readonly Fault[];
};

/** Reads `*.policy.yaml` of a folder, not of folders below it. No file at all is no mistake, but a warning. */
export function loadPolicies<Policies>(
  folder: string,
  ports: { readonly files: Files; readonly compile: CompileDocuments<Policies> },
): PolicyReading<Policies> {
  const faults: Fault[] = [];
  const places = new Map<string, Locate>();
  const documents: PolicyDocument[] = [];
  const hash = createHash('sha256');
  for (const name of listPolicies(folder, ports.files, faults)) {
    const file = join(folder, name);
    const bytes = readBytes(file, ports.files, faults);
    if (bytes === undefined) continue;
    hash.update(`${JSON.stringify(name)} ${bytes.byteLength}\n`).update(bytes);
    const document = readDocument(file, bytes, places, faults);
    if (document !== undefined) documents.push(document);
  }
  const version = hash.digest('hex');
  const compiled = ports.compile(documents, version);
  for (const fault of compiled.faults) faults.push(placePolicyFault(fault, places));
  return {
    policies: hasErrors(faults) ? undefined : compiled.policies,
    documents,
    hash: version,
    faults: sortFaults(faults),
  };
}

function listPolicies(folder: string, files: Files, faults: Fault[]): readonly string[] {
  let names: readonly string[];
  try {
    names = files.listFolder(folder);
  } catch {
    faults.push(faultOfFile(folder, 'unreadable', 'the policy folder cannot be read'));
    return [];
  }
  const found = names
    .filter((name) => name.endsWith(POLICY_SUFFIX) && !name.startsWith('.'))
    .sort();
  if (found.length === 0) {
    const message = `no ${POLICY_SUFFIX} file: nothing is allowed`;
    faults.push({ ...faultOfFile(folder, 'policy', message), severity: 'warning' });
  }
  if (found.length <= MAX_POLICY_FILES) return found;
  faults.push(faultOfFile(folder, 'policy', `more than ${MAX_POLICY_FILES} policy files`));
  return [];
}

function readBytes(file: string, files: Files, faults: Fault[]): Uint8Array | undefined {
  try {
    return files.readFile(file);
  } catch {
    faults.push(faultOfFile(file, 'unreadable', 'the policy file cannot be read'));
    return undefined;
  }
}

function readDocument(
  file: string,
  bytes: Uint8Array,
  places: Map<string, Locate>,
  faults: Fault[],
): PolicyDocument | undefined {
  const { source, faults: mistakes } = readYaml(file, bytes);
  faults.push(...mistakes);
  if (source === undefined) return undefined;
  places.set(file, source.locate);
  const shape = validateShape(POLICY_SCHEMA, source.value);
  faults.push(...shape.map((fault) => placeFault(file, source.locate, fault)));
  return shape.length > 0 ? undefined : documentOf(file, source.value);
}

function placePolicyFault(fault: PolicyFault, places: ReadonlyMap<string, Locate>): Fault {
  const { file, ...rest } = fault;
  const placed: PathFault = { ...rest, at: 'value', rule: 'policy' };
  const locate = places.get(file) ?? (() => ({ line: 1, column: 1 }));
  return placeFault(file, locate, placed);
}
