// Compiles whom a rule or a flow asks, and reports what nobody could be asked, or what would protect nothing: targets that
// no approval is for, a caller who is to approve what a server requests of that caller, a flow whose yes is remembered.
// docs/reference/approvals.md.

import type { ApprovalRequirement, ApprovalTerms } from '../approval-terms.js';
import type { Expression } from '../cel.js';
import { textOf } from '../rule-text.js';
import type { RequireRule } from '../rules.js';
import type {
  ApprovalDocument,
  FlowDocument,
  PolicyContext,
  ReportDiagnostic,
  RuleDocument,
  WhatDocument,
} from './documents.js';

type RequireDocument = Extract<RuleDocument, { effect: 'require' }>;

const HOUR_MS = 3_600_000;
const MAX_EXPIRES_MS = 7 * 24 * HOUR_MS;
const MAX_USE_MS = HOUR_MS;
const MAX_REMEMBERED_MS = HOUR_MS;

/** Whom a rule asks; undefined if it asks nobody. */
export function compileApproval(
  written: RequireDocument,
  when: Expression | undefined,
  context: PolicyContext,
  report: ReportDiagnostic,
): RequireRule['approval'] {
  const { approval, reason, what, who } = written;
  if (approval === undefined) {
    if (reason !== undefined) report(['reason'], 'error', NOBODY_READS);
    return undefined;
  }
  checkTargets(what, approval, report);
  checkTerms(approval, report);
  checkLogins(approval, who.issuers, context, report);
  if (when?.reads.readsFindings === true) checkFindings(written, report);
  const isBeyondLimits = approval.asks === 'beyond-limits';
  if (isBeyondLimits) checkLimits(written, report);
  return { terms: termsOf(approval), reason, isBeyondLimits };
}

function checkTargets(what: WhatDocument, approval: ApprovalDocument, report: ReportDiagnostic): void {
  for (const key of ['templates', 'roots', 'tasks'] as const)
    if (what[key] !== undefined) report(['what', key], 'error', NOT_APPROVED[key]);
  if (approval.by === 'reviewer') return;
  if (isOfServer(what)) report(['approval', 'by'], 'error', ASKS_ITSELF, 'reviewer');
  const hasArguments = what.tools !== undefined || what.prompts !== undefined;
  if (approval.remember !== 'none' && approval.remember.same && !hasArguments)
    report(['approval', 'remember', 'same'], 'error', 'only tools and prompts have arguments');
}

/** A rule that asks beyond its limits has some, and they count calls. */
function checkLimits({ limits, what }: RequireDocument, report: ReportDiagnostic): void {
  if (limits === undefined) report(['approval', 'asks'], 'error', 'the rule has no limits: add limits, or remove this');
  if (isOfServer(what)) report(['approval', 'asks'], 'error', 'requests of servers are always asked about');
}

/** Whether a rule names requests of servers about which somebody can be asked. */
function isOfServer({ sampling, elicitation }: WhatDocument): boolean {
  return sampling !== undefined || elicitation !== undefined;
}

/** A rule about findings is decided when everything else is. */
function checkFindings(written: RequireDocument, report: ReportDiagnostic): void {
  if (isOfServer(written.what))
    report(['when'], 'error', 'findings are those in arguments, and server requests have none');
  for (const key of ['limits', 'inspect', 'maxResultBytes', 'audit'] as const)
    if (written[key] !== undefined) report([key], 'error', FINDINGS_ASK_ONLY);
}

const NOBODY_READS = 'this is for the person who is asked, and the rule asks nobody: add approval, or remove it';
const ASKS_ITSELF = 'what a server requests of the caller is approved by somebody else';
const FINDINGS_ASK_ONLY =
  'a rule that reads findings is evaluated after inspection, when it can only ask: put this into a rule of its own';
const CAN_BE_ASKED = 'an approval is for tools, resources that are read, prompts, sampling and elicitation';
const NOT_APPROVED = {
  templates: `${CAN_BE_ASKED}: name the resources of the template instead`,
  roots: `${CAN_BE_ASKED}: allow roots, or do not`,
  tasks: `${CAN_BE_ASKED}: a task is approved with the call that creates it, so name its tool`,
} as const;

/** What a flow asks, which its violation then is; undefined if it refuses. */
export function compileFlowApproval(
  policy: string,
  written: FlowDocument,
  context: PolicyContext,
  report: ReportDiagnostic,
): ApprovalRequirement | undefined {
  const { id, effect, approval, reason } = written;
  if (effect === 'deny') {
    for (const key of ['approval', 'reason'] as const)
      if (written[key] !== undefined) report([key], 'error', 'a flow that refuses asks nobody; write effect: approve');
    return undefined;
  }
  if (approval === undefined) {
    report(['effect'], 'error', 'nobody is named who approves; add approval, such as approval: {by: reviewer}');
    return undefined;
  }
  checkTerms(approval, report);
  checkLogins(approval, undefined, context, report);
  if (approval.asks !== undefined) report(['approval', 'asks'], 'error', 'a flow has no limits');
  if (approval.by === 'caller' && approval.proof === 'client')
    report(
      ['approval', 'proof'],
      'error',
      'a flow is lifted by a person alone, and a client answers without one',
      'login',
    );
  if (approval.by === 'caller' && approval.remember !== 'none')
    report(['approval', 'remember'], 'error', 'a yes lifts a flow once, and is not remembered', 'none');
  return { rule: `${policy}/${id}`, text: textOf(policy, written), reason, terms: termsOf(approval) };
}

function checkTerms(approval: ApprovalDocument, report: ReportDiagnostic): void {
  if (approval.expiresMs > MAX_EXPIRES_MS)
    report(['approval', 'expires'], 'error', 'a question stands for 7d at most', '7d');
  if (approval.useMs > MAX_USE_MS) report(['approval', 'use'], 'error', 'a yes is used within 1h at most', '1h');
  if (approval.by === 'reviewer' || approval.remember === 'none') return;
  if (approval.remember.forMs > MAX_REMEMBERED_MS)
    report(['approval', 'remember', 'for'], 'error', 'a yes is remembered for 1h at most', '1h');
}

/** Callers whose issuer has no login can prove nothing and open no page, so what such a rule asks of them is refused. */
function checkLogins(
  approval: ApprovalDocument,
  named: readonly string[] | undefined,
  { issuers, logins }: PolicyContext,
  report: ReportDiagnostic,
): void {
  if (logins === undefined || approval.by === 'reviewer') return;
  const asked = named ?? issuers;
  const without = asked.filter((issuer) => !logins.includes(issuer));
  const [first] = without;
  if (first === undefined) return;
  const quoted = without.map((issuer) => `"${issuer}"`).join(', ');
  if (approval.proof === 'client') {
    const hint = `write issuers.${first}.login in the gateway file`;
    const what = `callers of ${quoted} can answer a form and nothing else: what does not fit into one, or comes from a client without forms, is refused`;
    report(['approval'], 'warning', `${what}; ${hint}`);
    return;
  }
  const keys = `write issuers.${first}.login in the gateway file, or by: reviewer`;
  report(
    ['approval'],
    without.length === asked.length ? 'error' : 'warning',
    `callers of ${quoted} cannot log in to approve this, so it is refused; ${keys}`,
  );
}

function termsOf(approval: ApprovalDocument): ApprovalTerms {
  const { expiresMs, useMs } = approval;
  if (approval.by === 'reviewer') {
    const { by, reviewers, count } = approval;
    return { by, groups: reviewers?.groups, count, expiresMs, useMs };
  }
  const { by, proof, remember } = approval;
  const remembered = remember === 'none' ? undefined : { forMs: remember.forMs, same: remember.same };
  return { by, proof, remember: remembered, expiresMs, useMs };
}
