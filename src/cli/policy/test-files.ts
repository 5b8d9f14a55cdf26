// Reads the files of policy tests of a folder: shape, names and combinations of keys, with the place of every mistake.
// docs/contract.md §4 (tests).

import { join } from 'node:path';
import {
  type Diagnostic,
  fileDiagnostic,
  type PathDiagnostic,
  sortDiagnostics,
} from '../../config/diagnostics.js';
import type { Files } from '../../config/files.js';
import {
  POLICY_TEST_SCHEMA,
  type PolicyTestCase,
  type PolicyTestFile,
} from '../../config/schema/policy.js';
import { locateDiagnostic, readDocument } from '../../config/schema/validation.js';
import { REASONS } from '../../policy/reasons.js';
import { describeReadError, nearestCandidate } from '../../text/wording.js';
import type { Locate } from '../../text/yaml.js';
import type { Workspace } from './workspace.js';

const TEST_SUFFIX = '.policy.test.yaml';

export type PolicyTests = {
  readonly file: string;
  readonly principals: PolicyTestFile['principals'];
  readonly cases: readonly PolicyTestCase[];
  readonly locate: Locate;
};

/** What a case asks for. */
const QUESTIONS = ['call', 'get', 'read', 'list'] as const;

export function readPolicyTests(
  folder: string,
  files: Files,
  workspace: Workspace,
): { readonly tests: readonly PolicyTests[]; readonly diagnostics: readonly Diagnostic[] } {
  let names: readonly string[];
  try {
    names = files.listFolder(folder);
  } catch (error) {
    const message = `the folder of the tests ${describeReadError(error)}`;
    return { tests: [], diagnostics: [fileDiagnostic(folder, 'unreadable', message)] };
  }
  const found = names.filter((name) => name.endsWith(TEST_SUFFIX) && !name.startsWith('.')).sort();
  if (found.length === 0) {
    const message = `the folder has no file whose name ends in ${TEST_SUFFIX}`;
    return { tests: [], diagnostics: [fileDiagnostic(folder, 'policy', message)] };
  }
  const read = found.map((name) => readTestFile(join(folder, name), files, workspace));
  return {
    tests: read.flatMap(({ tests }) => tests ?? []),
    diagnostics: sortDiagnostics(read.flatMap(({ diagnostics }) => diagnostics)),
  };
}

type TestFileReading = {
  readonly tests?: PolicyTests;
  readonly diagnostics: readonly Diagnostic[];
};

function readTestFile(file: string, files: Files, workspace: Workspace): TestFileReading {
  let bytes: Uint8Array;
  try {
    bytes = files.readFile(file);
  } catch (error) {
    const message = `the file ${describeReadError(error)}`;
    return { diagnostics: [fileDiagnostic(file, 'unreadable', message)] };
  }
  const document = readDocument(POLICY_TEST_SCHEMA, file, bytes);
  if (!document.ok) return document;
  const { locate } = document;
  const place = (one: PathDiagnostic) => locateDiagnostic(file, locate, one);
  if (!document.isComplete) return { diagnostics: document.diagnostics.map(place) };
  const { principals, cases } = document.value as PolicyTestFile;
  const wrong = [
    ...document.diagnostics,
    ...checkPrincipals(principals, workspace),
    ...cases.flatMap((one, index) => checkCase(one, ['cases', index], principals, workspace)),
  ];
  return { tests: { file, principals, cases, locate }, diagnostics: wrong.map(place) };
}

type Path = PathDiagnostic['path'];

function wrongValue(path: Path, message: string, suggestion?: string): PathDiagnostic {
  return { path, at: 'value', severity: 'error', rule: 'wrong-value', message, suggestion };
}

function unknownName(
  path: Path,
  what: string,
  name: string,
  known: readonly string[],
): readonly PathDiagnostic[] {
  if (known.includes(name)) return [];
  const suggestion = nearestCandidate(name, known);
  const choice = suggestion === undefined && known.length > 0 ? `; known: ${known.join(', ')}` : '';
  return [wrongValue(path, `no ${what} is named "${name}"${choice}`, suggestion)];
}

function checkPrincipals(
  principals: PolicyTestFile['principals'],
  { outline: { issuers } }: Workspace,
): readonly PathDiagnostic[] {
  return Object.entries(principals).flatMap(([name, { issuer }]) => {
    if (issuer !== undefined)
      return unknownName(['principals', name, 'issuer'], 'issuer', issuer, issuers);
    if (issuers.length < 2) return [];
    const message = `name the issuer of this caller: ${issuers.join(', ')}`;
    return [wrongValue(['principals', name], message)];
  });
}

function checkCase(
  one: PolicyTestCase,
  path: Path,
  principals: PolicyTestFile['principals'],
  { outline, written }: Workspace,
): readonly PathDiagnostic[] {
  const asked = QUESTIONS.filter((key) => one[key] !== undefined);
  const [question] = asked;
  if (question === undefined || asked.length > 1)
    return [wrongValue(path, `a case has exactly one of ${QUESTIONS.join(', ')}`)];
  const at = [...path, question];
  const upstream = one[question]?.split('/', 1)[0] ?? '';
  const upstreams = outline.upstreams.map(({ name }) => name);
  return [
    ...unknownName([...path, 'as'], 'principal', one.as, Object.keys(principals)),
    ...unknownName(at, 'upstream', upstream, upstreams),
    ...(one.rule === undefined || one.rule.startsWith('builtin/')
      ? []
      : unknownName([...path, 'rule'], 'rule', one.rule, [...written.keys()])),
    ...(one.reason === undefined
      ? []
      : unknownName([...path, 'reason'], 'reason', one.reason, Object.keys(REASONS))),
    ...checkExpectation(one, path, question),
  ];
}

function checkExpectation(
  one: PolicyTestCase,
  path: Path,
  question: (typeof QUESTIONS)[number],
): readonly PathDiagnostic[] {
  const { items, contains, lacks, expect, reason, rule, limits } = one;
  const ofList = { items, contains, lacks };
  const ofCall = { expect, reason, rule, limits };
  const [own, others] = question === 'list' ? [ofList, ofCall] : [ofCall, ofList];
  const misplaced = Object.entries(others).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [wrongValue([...path, key], `"${key}" is not possible in a case with "${question}"`)],
  );
  const isEmpty =
    question === 'list'
      ? Object.values(own).every((value) => value === undefined)
      : expect === undefined;
  const needed = question === 'list' ? '"items", "contains" or "lacks"' : '"expect"';
  return [
    ...misplaced,
    ...(isEmpty ? [wrongValue(path, `this case expects nothing; add ${needed}`)] : []),
    ...(expect === 'allow' && reason !== undefined
      ? [wrongValue([...path, 'reason'], 'only a refusal has a reason')]
      : []),
  ];
}
