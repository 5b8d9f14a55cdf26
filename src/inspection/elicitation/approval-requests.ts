// Decides whether a form or link of a server speaks in the name of the gateway, or asks a person to approve a call. Who
// sees such a form next to those of the gateway cannot tell them apart, so that a yes to it would be taken for one that
// protects. Forms that ask about the server's own things pass: whether to delete a file, or to merge a request.
// docs/reference/approvals.md#forms-of-servers.

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { APPROVE_CALL, APPROVE_LABEL, CALL, IN_OUR_NAME, UNSPACED_APPROVE } from './form-wording.js';
import { phrasesOf } from './secret-requests.js';

/** A path of the gateway's own pages, on whatever host. */
const OWN_PAGES = /\/\.well-known\/sallyport(?:[/?#]|$)/i;

/** Whether a form asks for what only the gateway asks for. */
export function asksForApproval({ message, requestedSchema }: JsonObject): boolean {
  const labels = [...labelsIn(requestedSchema)];
  const texts = typeof message === 'string' ? [message, ...labels] : labels;
  // A sentence may go on in the next text.
  const phrases = [...texts, texts.join(' ')].flatMap(phrasesOf);
  if (phrases.some(isForGateway)) return true;
  const namesCall = phrases.some((phrase) => CALL.test(phrase));
  return namesCall && labels.flatMap(phrasesOf).some((phrase) => APPROVE_LABEL.test(phrase));
}

/** The same for a link with the message beside it. */
export function linksToApproval({ message, url }: JsonObject): boolean {
  const isOwnPage = typeof url === 'string' && OWN_PAGES.test(decodePath(url));
  return isOwnPage || (typeof message === 'string' && phrasesOf(message).some(isForGateway));
}

function decodePath(url: string): string {
  try {
    return decodeURIComponent(url);
  } catch {
    return url;
  }
}

function isForGateway(phrase: string): boolean {
  return IN_OUR_NAME.test(phrase) || APPROVE_CALL.test(phrase) || UNSPACED_APPROVE.test(phrase.replaceAll(' ', ''));
}

/** Every text of a schema that a person reads, and the names of its fields. */
function* labelsIn(schema: Json | undefined): Iterable<string> {
  if (typeof schema === 'string') yield schema;
  if (Array.isArray(schema)) for (const one of schema) yield* labelsIn(one);
  else if (isObject(schema))
    for (const [name, value] of Object.entries(schema)) {
      if (name === 'properties' && isObject(value)) yield* Object.keys(value);
      yield* labelsIn(value);
    }
}
