// The API of revocations: list, revoke, lift. Whoever may look may list, reviewers and admins revoke, admins
// alone lift. A request that changes something is JSON with a bearer token, which no page of another origin
// can send unasked. It keeps nothing; the desk behind it does. RFC 9110 §15.

import type { PlainResponse } from '../observe/http-listener.js';
import { type RevocationOrder, readRevocationOrder } from './revocation-order.js';

export type AdminRole = 'viewer' | 'reviewer' | 'admin';

/** Who asks, once verified. */
export type AdminCaller = { readonly subject: string; readonly roles: readonly AdminRole[] };

/** A revocation as administrators see it: digests in place of ids, and nothing secret. */
export type ShownRevocation = {
  readonly id: string;
  readonly kind: 'token' | 'subject' | 'session';
  readonly issuer?: string;
  readonly subject?: string;
  readonly client?: string;
  readonly digest?: string;
  readonly by: string;
  readonly note: string;
  /** RFC 3339. */
  readonly at: string;
  readonly expires: string;
};

export type Revoking =
  /** `isShared`: the store has it; otherwise it is in force here, and told as soon as that can be. */
  | { readonly kind: 'revoked'; readonly shown: ShownRevocation; readonly isShared: boolean }
  | { readonly kind: 'unknown-issuer' | 'full' };

export type RevocationService = {
  /** Those in force, the newest first. */
  list(): readonly ShownRevocation[];
  revoke(order: RevocationOrder, by: string): Promise<Revoking>;
  lift(id: string): Promise<'lifted' | 'unknown' | 'unavailable'>;
};

/** What is asked of the API. */
export type RevocationRequest =
  | { readonly action: 'list-revocations' }
  | { readonly action: 'revoke' }
  | { readonly action: 'lift-revocation'; readonly id: string };

/** What the audit log says besides: whom it was about. */
export type AccessDetail = Readonly<Record<string, string>>;

export type RevocationReply = {
  readonly response: PlainResponse;
  readonly detail?: AccessDetail | undefined;
};

const PATH = '/api/revocations';
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MAY: Readonly<Record<RevocationRequest['action'], readonly AdminRole[]>> = {
  'list-revocations': ['viewer', 'reviewer', 'admin'],
  revoke: ['reviewer', 'admin'],
  'lift-revocation': ['admin'],
};

/** The largest body that is read. */
export const MAX_ORDER_BYTES = 8 * 1024;

/** What a method and a path ask for; `undefined` for what is not served. */
export function readRevocationRequest(
  method: string | undefined,
  path: string | undefined,
): RevocationRequest | undefined {
  if (path === PATH && (method === 'GET' || method === 'HEAD'))
    return { action: 'list-revocations' };
  if (path === PATH && method === 'POST') return { action: 'revoke' };
  const id = path?.startsWith(`${PATH}/`) ? path.slice(PATH.length + 1) : '';
  return method === 'DELETE' && ID.test(id) ? { action: 'lift-revocation', id } : undefined;
}

/** Answers. `body` is read only where an order is due; it resolves with `undefined` where it is too large. */
export async function respondToRevocation(
  asked: RevocationRequest,
  { roles, subject }: AdminCaller,
  body: { readonly type: string | undefined; readonly read: () => Promise<string | undefined> },
  revocations: RevocationService,
): Promise<RevocationReply> {
  if (!MAY[asked.action].some((role) => roles.includes(role)))
    return { response: refusal(403, 'This takes another role.') };
  switch (asked.action) {
    case 'list-revocations':
      return { response: json(200, { revocations: revocations.list() }) };
    case 'revoke':
      return revoke(body, subject, revocations);
    case 'lift-revocation':
      return lift(asked.id, revocations);
  }
}

async function revoke(
  body: Parameters<typeof respondToRevocation>[2],
  by: string,
  revocations: RevocationService,
): Promise<RevocationReply> {
  // A form or plain text could come from any page; JSON cannot (WHATWG Fetch, CORS-safelisted headers).
  if (!/^application\/json(?:; ?charset=utf-8)?$/i.test(body.type ?? ''))
    return { response: refusal(415, 'Send application/json.') };
  const text = await body.read();
  if (text === undefined) return { response: refusal(413, 'The body is too large.') };
  const order = readRevocationOrder(text);
  if (typeof order === 'string') return { response: refusal(400, order) };
  const done = await revocations.revoke(order, by);
  switch (done.kind) {
    case 'unknown-issuer':
      return { response: refusal(400, 'This issuer is not configured.') };
    case 'full':
      return { response: refusal(409, 'As many revocations are in force as can be; lift some.') };
    case 'revoked': {
      const { shown, isShared } = done;
      const { by: _, at, expires, id, ...about } = shown;
      return {
        response: json(isShared ? 201 : 202, { revocation: shown, shared: isShared }),
        detail: { revocation: id, ...about, until: expires },
      };
    }
  }
}

async function lift(id: string, revocations: RevocationService): Promise<RevocationReply> {
  const detail = { revocation: id };
  switch (await revocations.lift(id)) {
    case 'lifted':
      return { response: { status: 204, body: '' }, detail };
    case 'unknown':
      return { response: refusal(404, 'No such revocation is in force.'), detail };
    case 'unavailable':
      return { response: refusal(503, 'The store cannot be asked; nothing was lifted.'), detail };
  }
}

const JSON_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

function json(status: number, value: object): PlainResponse {
  return { status, headers: JSON_HEADERS, body: `${JSON.stringify(value)}\n` };
}

function refusal(status: number, error: string): PlainResponse {
  return json(status, { error });
}
