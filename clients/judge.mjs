// Says what is wrong with what a client got through the gateway. Pure; an empty list means that it got
// everything that it may have, and nothing else.

const REFUSED = /^(?:result |error )?.*(?:-32602|not found|unknown)/is;

/** Every fault of one outcome, as short texts. */
export function judge(order, upstream, found) {
  const faults = [];
  const expected = [upstream.call.name, upstream.leak.name].sort();
  if (JSON.stringify([...found.listed].sort()) !== JSON.stringify(expected))
    faults.push(`listed ${found.listed.join(', ')}`);
  if (!found.called.includes(upstream.expect)) faults.push(`the call gave ${cut(found.called)}`);
  if (found.leaked.includes(upstream.secret)) faults.push('the secret came through');
  if (!found.leaked.includes('[redacted:')) faults.push(`nothing redacted: ${cut(found.leaked)}`);
  const [hidden, unknown] = [
    found.hidden.replaceAll(order.hidden, '*'),
    found.unknown.replaceAll(order.unknown, '*'),
  ];
  if (hidden !== unknown) faults.push(`hidden is ${cut(hidden)} but unknown is ${cut(unknown)}`);
  if (hidden.startsWith('result ') || !REFUSED.test(hidden))
    faults.push(`hidden is not refused as unknown: ${cut(hidden)}`);
  return faults;
}

const cut = (text) => JSON.stringify(text.slice(0, 160));
