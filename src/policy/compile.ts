// Turns policy documents into a set of rules that can decide, or into faults: every mistake of every
// document in one run, each with its place. With one error the set grants nothing. Reads no file.
// Contract §4, law 4.

import {
  DiagnosticCollector,
  type PolicyContext,
  type ReportDiagnostic,
} from './compile-context.js';
import { compileRule } from './compile-rule.js';
import type { PolicyDiagnostic, PolicyDocument } from './document.js';
import { checkPins } from './pin-checks.js';
import type { PolicySet } from './question.js';
import { createPolicySet, type Rule } from './rules.js';

export type { PolicyContext } from './compile-context.js';

/** Recorded for what the protocol itself allows; no file may take the name. */
const RESERVED_POLICY = 'builtin';

/**
 * Compiles all documents together. Faults come in the order of the documents. Where a fault is an error,
 * `policies` allows nothing at all, and the caller keeps what it had.
 */
export function compilePolicies(
  documents: readonly PolicyDocument[],
  context: PolicyContext,
): { readonly policies: PolicySet; readonly diagnostics: readonly PolicyDiagnostic[] } {
  const diagnostics = new DiagnosticCollector();
  const rules: Rule[] = [];
  const policyNames = new Set<string>();
  for (const document of documents) {
    const report = diagnostics.forFile(document.file);
    checkPolicyName(document, policyNames, report);
    rules.push(...compileDocument(document, context, report));
  }
  return {
    policies: createPolicySet(context.hash, diagnostics.hasErrors ? [] : rules),
    diagnostics: diagnostics.all,
  };
}

function checkPolicyName(
  document: PolicyDocument,
  known: Set<string>,
  report: ReportDiagnostic,
): void {
  if (known.has(document.policy)) {
    report(['policy'], 'error', `another file has a policy named "${document.policy}"`);
  }
  if (document.policy === RESERVED_POLICY) report(['policy'], 'error', 'this name is reserved');
  known.add(document.policy);
}

function compileDocument(
  document: PolicyDocument,
  context: PolicyContext,
  report: ReportDiagnostic,
): readonly Rule[] {
  const rules: Rule[] = [];
  const ids = new Set<string>();
  for (const [index, written] of document.rules.entries()) {
    const reportRule: ReportDiagnostic = (path, ...rest) =>
      report(['rules', index, ...path], ...rest);
    if (ids.has(written.id)) reportRule(['id'], 'error', `another rule is named "${written.id}"`);
    ids.add(written.id);
    const rule = compileRule(document.policy, written, context, reportRule);
    const reportPins: ReportDiagnostic = (path, severity, ...rest) =>
      reportRule(path, context.areInForce === true ? 'warning' : severity, ...rest);
    checkPins(rule, written, context, reportPins);
    rules.push(rule);
  }
  return rules;
}
