// Says what is wrong with what a client got through the gateway. Pure; an empty list means that it got
// everything that it may have, and nothing else.

import { linkIn } from './approve.mjs';

const REFUSED = /^(?:result |error )?.*(?:-32602|not found|unknown)/is;

/** Every error of one outcome, as short texts. */
export function checkClient(order, upstream, found) {
  const errors = [];
  const offered = [upstream.call, upstream.leak, upstream.approved].filter((tool) => tool !== undefined);
  const expected = offered.map(({ name }) => name).sort();
  if (JSON.stringify([...found.listed].sort()) !== JSON.stringify(expected))
    errors.push(`listed ${found.listed.join(', ')}`);
  if (!found.called.includes(upstream.expect)) errors.push(`the call gave ${cut(found.called)}`);
  if (found.leaked.includes(upstream.secret)) errors.push('the secret came through');
  if (!found.leaked.includes('[redacted:')) errors.push(`nothing redacted: ${cut(found.leaked)}`);
  const [hidden, unknown] = [found.hidden.replaceAll(order.hidden, '*'), found.unknown.replaceAll(order.unknown, '*')];
  if (hidden !== unknown) errors.push(`hidden is ${cut(hidden)} but unknown is ${cut(unknown)}`);
  if (hidden.startsWith('result ') || !REFUSED.test(hidden))
    errors.push(`hidden is not refused as unknown: ${cut(hidden)}`);
  return errors;
}

/**
 * Every error of a call that its user had to approve, made twice before the yes and twice behind it: asked about with a
 * link, still waiting, passed, and asked about anew.
 */
export function checkApproval({ expect }, before, after) {
  const [asked = '', waiting = '', passed = '', again = ''] = [...before, ...after];
  const errors = [];
  const link = linkIn(asked);
  if (link === undefined) errors.push(`shows no link: ${cut(asked)}`);
  if (!waiting.includes('It is still waiting.')) errors.push(`is not told that it waits: ${cut(waiting)}`);
  if (!passed.includes(expect)) errors.push(`the approved call gave ${cut(passed)}`);
  if (linkIn(again) === undefined || linkIn(again) === link) errors.push(`is not asked anew: ${cut(again)}`);
  for (const text of [asked, waiting, again])
    if (text.includes(expect)) errors.push(`passed without a yes: ${cut(text)}`);
  return errors;
}

const cut = (text) => JSON.stringify(text.slice(0, 160));
