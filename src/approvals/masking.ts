// The arguments of an approval as a person is shown them before asking for the sensitive ones. Pure.
// docs/reference/approvals.md.

import type { ApprovalContent } from '../policy/approval.js';
import { applyEdits, spanOf, spanWithin } from '../protocol/json/json.js';
import { stepsOf } from '../text/json-members.js';
import type { Span } from '../text/span.js';

/** What stands in place of a value, as JSON. */
const MASK = '"[masked]"';

/** The arguments with a mark in place of each sensitive value; everything else is kept to the byte. */
export function maskArguments({ args, sensitive }: Pick<ApprovalContent, 'args' | 'sensitive'>): string {
  const found = sensitive.flatMap((pointer) => spanAt(args, pointer) ?? []);
  found.sort((one, other) => one.start - other.start || other.end - one.end);
  const outermost: Span[] = [];
  for (const span of found) {
    const before = outermost.at(-1);
    if (before === undefined || span.start >= before.end) outermost.push(span);
  }
  return applyEdits(
    args,
    outermost.map(({ start, end }) => ({ start, end, text: MASK })),
  );
}

/** The value that a JSON pointer leads to. */
export function spanAt(text: string, pointer: string): Span | undefined {
  let span = spanOf(text, []);
  for (const step of stepsOf(pointer)) {
    if (span === undefined) return undefined;
    span = spanWithin(text, span, [text[span.start] === '[' ? Number(step) : step]);
  }
  return span;
}
