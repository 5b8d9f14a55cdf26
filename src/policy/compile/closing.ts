// Rules that need what waits for a restart. A rule that is new or changed and needs it is closed: an allow rule grants
// nothing, and a require rule refuses what it matches; a deny rule needs nothing. A rule that was in force before stays
// as it was. Pure. docs/reference/start-and-reload.md#changes-that-wait-for-a-restart.

import type { ApprovalRequirement } from '../approval-terms.js';
import type { Rule } from '../rules.js';
import type { Closing } from './documents.js';

type Written = Pick<ApprovalRequirement, 'rule' | 'text'>;

export type Closer = {
  /** The rules in the form in which they are in force. */
  rules(rules: readonly Rule[]): readonly Rule[];
  /** Whether a flow refuses where it would ask. */
  isFlowClosed(flow: ApprovalRequirement): boolean;
  /** The ids of what is closed. */
  readonly closed: readonly string[];
};

export function createCloser(closing: Closing | undefined): Closer {
  const closed: string[] = [];
  const isNew = ({ rule, text }: Written): boolean => closing?.open.get(rule) !== text;

  function close(rule: Rule): readonly Rule[] {
    const { id, text } = rule;
    if (closing === undefined || !needs(rule, closing) || !isNew({ rule: id, text })) return [rule];
    closed.push(id);
    if (rule.effect !== 'require') return [];
    return [{ ...rule, approval: undefined, limit: undefined, budget: undefined, isClosed: true }];
  }

  return {
    closed,
    rules: (rules) => (closing === undefined ? rules : rules.flatMap(close)),
    isFlowClosed(flow) {
      // What it asks is kept in the state, whoever answers.
      const isClosed = closing !== undefined && needsForApproval(flow, closing) && isNew(flow);
      if (isClosed) closed.push(flow.rule);
      return isClosed;
    },
  };
}

function needs(rule: Rule, closing: Closing): boolean {
  if (rule.effect === 'deny') return false;
  const approval = rule.effect === 'require' ? rule.approval : undefined;
  if (approval !== undefined && needsForApproval(approval, closing)) return true;
  return closing.sharedState && (rule.limit !== undefined || rule.budget !== undefined);
}

function needsForApproval({ terms }: Pick<ApprovalRequirement, 'terms'>, { reviewers, sharedState }: Closing): boolean {
  return sharedState || (reviewers && terms.by === 'reviewer');
}
