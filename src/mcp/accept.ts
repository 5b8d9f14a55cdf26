// Whether a client takes an answer of a type, by its `Accept`. A client that says nothing takes all, because
// many in the field say nothing; one that leaves a type out is not sent it.
// Source: RFC 9110 §12.5.1; MCP 2025-11-25, transports (sending messages to the server).

const NO_WEIGHT = /^q=0(?:\.0{0,3})?$/;
/** A header with more ranges than this says nothing that is worth reading. */
const MAX_RANGES = 32;

/** True where an `Accept` takes this type, such as `text/event-stream`: the most exact range decides. */
export function acceptsType(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.trim() === '') return true;
  let exactness = 0;
  let isTaken = false;
  for (const range of accept.split(',', MAX_RANGES)) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const found = exactnessOf(name, type);
    if (found <= exactness) continue;
    exactness = found;
    isTaken = !parameters.some((one) => NO_WEIGHT.test(one));
  }
  return isTaken;
}

/** How exactly a range names a type; 0 where it does not. */
function exactnessOf(range: string, type: string): number {
  if (range === type) return 3;
  if (range === '*/*') return 1;
  return range === `${type.slice(0, type.indexOf('/'))}/*` ? 2 : 0;
}
