// Whether a URI may come from a URI template: its literal parts stand there in their order, first and last at
// the ends. Generous on purpose, since it only tells apart servers that may both be read. Linear.
// Source: RFC 6570 §1.1 and §2.

const EXPRESSION = /\{[^{}]*\}/;

/** True where the template's literal parts occur in the URI in their order. */
export function fitsTemplate(uriTemplate: string, uri: string): boolean {
  const literals = uriTemplate.split(EXPRESSION);
  const [first = '', ...rest] = literals;
  if (rest.length === 0) return uri === uriTemplate;
  const last = rest.pop() ?? '';
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false;
  const end = uri.length - last.length;
  let at = first.length;
  for (const literal of rest) {
    const found = uri.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return at <= end;
}
