// Says what is wrong with what a client got through the gateway. Pure; an empty list means that it got
// everything that it may have, and nothing else.

const REFUSED = /^(?:result |error )?.*(?:-32602|not found|unknown)/is;

/** Every error of one outcome, as short texts. */
export function checkClient(order, upstream, found) {
  const errors = [];
  const expected = [upstream.call.name, upstream.leak.name].sort();
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

const cut = (text) => JSON.stringify(text.slice(0, 160));
