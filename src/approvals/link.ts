// Where callers answer: on the data listener, behind the public URL of the gateway. The id of an approval is random and
// says nothing. docs/reference/approvals.md#the-page-and-the-login.

import { APPROVAL_PREFIX } from '../http/request-checks.js';

const CALLBACK = 'callback';

/** The link at which the caller answers. `publicBase`: the public URL without a slash behind it. */
export function approvalLink(publicBase: string, id: string): string {
  return `${publicBase}${APPROVAL_PREFIX}${id}`;
}

/** Where an issuer sends the browser back to. */
export function callbackUrl(publicBase: string): string {
  return approvalLink(publicBase, CALLBACK);
}

/** What a path of the page names: an approval by its id, or the way back from an issuer. */
export function readApprovalPath(path: string): { readonly id: string } | 'callback' | undefined {
  const rest = path.startsWith(APPROVAL_PREFIX) ? path.slice(APPROVAL_PREFIX.length) : '';
  if (rest === CALLBACK) return 'callback';
  return APPROVAL_ID.test(rest) ? { id: rest } : undefined;
}

const APPROVAL_ID = /^[0-9a-f]{32}$/;
