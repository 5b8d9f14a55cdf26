// The API of the admin listener, for bearer tokens: the controls, approvals (approvals-api.ts), and revocations and
// blocks: list, make, lift. Viewers may list, reviewers and admins may also make one, and only admins may lift it. A
// changing request is JSON with a bearer token, which a page of another origin cannot send without a preflight request.
// Parses and authorizes requests; the revocation service behind it keeps the state. RFC 9110 §15.

import type { IncomingMessage } from 'node:http';
import { readText } from '../http/app.js';
import { headerValues, isSame } from '../http/browser.js';
import type { BlockTarget } from '../policy/blocks.js';
import { isIdentity } from '../policy/principal.js';
import { mediaType } from '../protocol/headers.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import type { ControlRow } from '../telemetry/controls.js';
import {
  type AccessOutcome,
  type AdminCaller,
  type ApiReply,
  json,
  NOT_ALLOWED,
  plainRefusal,
  refusal,
  type SentBody,
} from './api-response.js';
import {
  type ApprovalApiPorts,
  type ApprovalRequest,
  readApprovalRequest,
  respondToApproval,
} from './approvals-api.js';
import { ADMIN_ROLES, type AdminRole, authorOf, BREAK_GLASS_SUBJECT, type Sessions } from './sessions.js';

/**
 * What to block, or to revoke: a token by its id or by its digest in the audit log, a subject of an issuer, or a session
 * by its digest. `issuer` is a name in the configuration or an issuer identifier; `note` says why.
 */
export type RevocationOrder = { readonly note: string } & (
  | { readonly kind: 'token'; readonly issuer: string; readonly tokenId: string }
  | { readonly kind: 'token-digest'; readonly digest: string }
  | {
      readonly kind: 'subject';
      readonly issuer: string;
      readonly subject: string;
      readonly client: string | undefined;
    }
  | { readonly kind: 'session'; readonly digest: string }
  | BlockOrder
);

export type BlockOrder = {
  readonly kind: 'block';
  /** As it was sent: an issuer by its name or its identifier, a resource by any spelling of its URI. */
  readonly block: BlockTarget;
  /** Without it, the block lasts until it is lifted. */
  readonly expiresInMs: number | undefined;
};

type Members = ReadonlyMap<string, unknown>;

const MAX_IDENTITY_CHARACTERS = 4_096;
const MAX_NOTE_CHARACTERS = 500;
const MAX_BLOCK_SECONDS = 366 * 24 * 60 * 60;
const MS_PER_SECOND = 1_000;
/** A SHA-256 digest, base64url. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
/** Characters that could be misinterpreted in a log or on a page, where a note is read. */
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

/**
 * Parses an order, or returns what is wrong with it in one sentence. Checks its form only, and never echoes
 * what was sent.
 */
function readRevocationOrder(text: string): RevocationOrder | string {
  const members = membersOf(parseObject(text));
  if (members === undefined) return 'The body must be a JSON object.';
  const note = textOf(members, 'note', MAX_NOTE_CHARACTERS);
  if (note === undefined) return `"note" must say why, in 1 to ${MAX_NOTE_CHARACTERS} characters of one line.`;
  const kinds = [...members.keys()].filter((name) => name !== 'note');
  const [kind = ''] = kinds;
  const read = kinds.length === 1 ? READERS.get(kind) : undefined;
  if (read === undefined) return 'Name one of "block", "token", "subject" and "session", and "note".';
  const order = read(membersOf(members.get(kind)) ?? new Map());
  return typeof order === 'string' ? order : { ...order, note };
}

type Order = RevocationOrder extends infer One ? (One extends unknown ? Omit<One, 'note'> : never) : never;

const READERS: ReadonlyMap<string, (members: Members) => Order | string> = new Map([
  ['token', readToken],
  ['subject', readSubject],
  ['session', readSession],
  ['block', readBlock],
]);

function readToken(members: Members): Order | string {
  const digest = digestOf(members);
  if (digest !== undefined && members.size === 1) return { kind: 'token-digest', digest };
  const [issuer, tokenId] = [identityOf(members, 'issuer'), identityOf(members, 'jti')];
  if (issuer === undefined || tokenId === undefined || members.size !== 2)
    return '"token" has "issuer" and "jti", or the "digest" of the audit log alone.';
  return { kind: 'token', issuer, tokenId };
}

function readSubject(members: Members): Order | string {
  const [issuer, subject] = [identityOf(members, 'issuer'), identityOf(members, 'subject')];
  const client = identityOf(members, 'client');
  const size = client === undefined ? 2 : 3;
  if (issuer === undefined || subject === undefined || members.size !== size)
    return '"subject" has "issuer", "subject" and, for one client alone, "client".';
  return { kind: 'subject', issuer, subject, client };
}

function readSession(members: Members): Order | string {
  const digest = digestOf(members);
  if (digest !== undefined && members.size === 1) return { kind: 'session', digest };
  return '"session" has the "digest" of the audit log.';
}

export type BlockKind = BlockTarget['target'];

/** The members of a block besides `target` and `expiresIn`. */
export const BLOCK_MEMBERS: Readonly<Record<BlockKind, readonly string[]>> = {
  everything: [],
  upstream: ['upstream'],
  subject: ['issuer', 'subject'],
  client: ['issuer', 'client'],
  tool: ['upstream', 'name'],
  prompt: ['upstream', 'name'],
  template: ['upstream', 'name'],
  resource: ['upstream', 'name'],
};

function readBlock(members: Members): BlockOrder | string {
  const target = members.get('target');
  if (!isBlockKind(target)) return `"block" has a "target": one of ${Object.keys(BLOCK_MEMBERS).join(', ')}.`;
  const names = BLOCK_MEMBERS[target];
  const expiresIn = members.get('expiresIn');
  const values = names.map((name) => identityOf(members, name));
  const size = 1 + names.length + (expiresIn === undefined ? 0 : 1);
  if (members.size !== size || values.includes(undefined)) {
    const named = names.map((name) => `"${name}"`).join(' and ') || 'nothing else';
    return `A block of ${target} has ${named}, and may have "expiresIn".`;
  }
  if (expiresIn !== undefined && !isLifetime(expiresIn))
    return `"expiresIn" is a number of seconds from 1 to ${MAX_BLOCK_SECONDS}.`;
  const named = Object.fromEntries(names.map((name, index) => [name, values[index]]));
  const expiresInMs = expiresIn === undefined ? undefined : expiresIn * MS_PER_SECOND;
  return { kind: 'block', block: { target, ...named } as BlockTarget, expiresInMs };
}

export function isBlockKind(value: unknown): value is BlockKind {
  return typeof value === 'string' && Object.hasOwn(BLOCK_MEMBERS, value);
}

function isLifetime(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_BLOCK_SECONDS;
}

function membersOf(value: unknown): Members | undefined {
  return isObject(value) ? new Map(Object.entries(value)) : undefined;
}

function textOf(members: Members, name: string, maxCharacters: number): string | undefined {
  const value = members.get(name);
  if (typeof value !== 'string' || value.trim() === '' || value.length > maxCharacters) return undefined;
  return CONTROL.test(value) ? undefined : value;
}

/** INVARIANT: whatever a token may name can be blocked and revoked. */
function identityOf(members: Members, name: string): string | undefined {
  const value = members.get(name);
  const isNamed = typeof value === 'string' && value.length <= MAX_IDENTITY_CHARACTERS && isIdentity(value);
  return isNamed ? value : undefined;
}

function digestOf(members: Members): string | undefined {
  const value = members.get('digest');
  return typeof value === 'string' && DIGEST.test(value) ? value : undefined;
}

/** A revocation or a block as shown to administrators: digests in place of ids, and nothing secret. */
export type ShownRevocation = {
  readonly id: string;
  readonly kind: 'token' | 'subject' | 'session' | 'block';
  /** Of a block; the members after it are those of its target. */
  readonly target?: BlockTarget['target'];
  readonly upstream?: string;
  readonly name?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly client?: string;
  readonly digest?: string;
  readonly by: string;
  readonly note: string;
  /** RFC 3339. */
  readonly at: string;
  /** Absent where only lifting ends it. */
  readonly expires?: string;
};

type RevokeOutcome =
  /** `isShared`: in the store; otherwise in force on this replica only, and shared as soon as possible. */
  | {
      readonly kind: 'revoked';
      readonly shown: ShownRevocation;
      readonly isShared: boolean;
      /** No issuer of that identifier is configured: only actors can have it. */
      readonly isOfActorsOnly: boolean;
    }
  | { readonly kind: 'unknown-issuer' | 'unknown-upstream' | 'invalid-uri' | 'full' };

export type RevocationService = {
  /** The revocations in force, newest first. */
  list(): readonly ShownRevocation[];
  revoke(order: RevocationOrder, by: string): Promise<RevokeOutcome>;
  lift(id: string): Promise<'lifted' | 'unknown' | 'unavailable'>;
};

/** A request to the API. */
type RevocationRequest =
  | { readonly action: 'list-revocations' }
  | { readonly action: 'revoke' }
  | { readonly action: 'lift-revocation'; readonly id: string };

const REVOCATIONS_PATH = '/api/revocations';
const REVOCATION_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ALLOWED_ROLES: Readonly<Record<RevocationRequest['action'], readonly AdminRole[]>> = {
  'list-revocations': ADMIN_ROLES,
  revoke: ['reviewer', 'admin'],
  'lift-revocation': ['admin'],
};

const ACTORS_ONLY = 'No issuer with this identifier is configured, so this concerns only actors whose "iss" it is.';

/** The largest request body that is read. */
export const MAX_ORDER_BYTES = 8 * 1024;

/**
 * Handles a request. `body.read` is called only for a revocation; it resolves with `undefined` if the body is
 * too large.
 */
export async function respondToRevocation(
  asked: RevocationRequest,
  caller: AdminCaller,
  body: SentBody,
  revocations: RevocationService,
): Promise<ApiReply> {
  if (!ALLOWED_ROLES[asked.action].some((role) => caller.roles.includes(role))) return { response: NOT_ALLOWED };
  switch (asked.action) {
    case 'list-revocations':
      return { response: json(200, { revocations: revocations.list() }) };
    case 'revoke':
      return revoke(body, authorOf(caller), revocations);
    case 'lift-revocation':
      return lift(asked.id, revocations);
  }
}

async function revoke(body: SentBody, by: string, revocations: RevocationService): Promise<ApiReply> {
  // Any page can send a form or plain text cross-origin, but not JSON (WHATWG Fetch, CORS-safelisted
  // headers).
  if (mediaType(body.type) !== 'application/json') return { response: refusal(415, 'Send application/json.') };
  const text = await body.read();
  if (text === undefined) return { response: refusal(413, 'The request body exceeds the size limit.') };
  const order = readRevocationOrder(text);
  if (typeof order === 'string') return { response: refusal(400, order) };
  const done = await revocations.revoke(order, by);
  switch (done.kind) {
    case 'unknown-issuer':
      return { response: refusal(400, 'This issuer is not configured.') };
    case 'unknown-upstream':
      return { response: refusal(400, 'This upstream is not configured.') };
    case 'invalid-uri':
      return { response: refusal(400, '"name" must be a valid URI.') };
    case 'full':
      return {
        response: refusal(409, 'The maximum number of revocations is in force. Lift some first.'),
      };
    case 'revoked': {
      const { shown, isShared, isOfActorsOnly } = done;
      const warning = isOfActorsOnly ? { warning: ACTORS_ONLY } : {};
      const { by: _, at, expires, id, ...about } = shown;
      return {
        response: json(isShared ? 201 : 202, { revocation: shown, shared: isShared, ...warning }),
        detail: { revocation: id, ...about, ...(expires === undefined ? {} : { until: expires }) },
      };
    }
  }
}

async function lift(id: string, revocations: RevocationService): Promise<ApiReply> {
  const detail = { revocation: id };
  switch (await revocations.lift(id)) {
    case 'lifted':
      return { response: { status: 204, body: '' }, detail };
    case 'unknown':
      return { response: refusal(404, 'No such revocation is in force.'), detail };
    case 'unavailable':
      return {
        response: refusal(503, 'The shared store is unreachable. Nothing was lifted.'),
        detail,
      };
  }
}

/** The result of authentication. */
type Verified = AdminCaller | 'unavailable' | undefined;

export type ApiPorts = ApprovalApiPorts & {
  readonly breakGlassToken: string | undefined;
  /** Verifies an admin issuer's token. `undefined`: rejected; `unavailable`: it cannot be verified now. */
  readonly authenticateAdmin: (headers: Readonly<Record<string, string | undefined>>) => Promise<Verified>;
  readonly controls: () => readonly ControlRow[];
  readonly revocations: RevocationService;
  readonly sessions: Pick<Sessions, 'mayGuess'>;
};

const UNAUTHENTICATED = plainRefusal(401, 'a token is required', { 'www-authenticate': 'Bearer' });
const UNAVAILABLE = plainRefusal(503, 'the token cannot be verified now', { 'retry-after': '5' });
const FORBIDDEN = plainRefusal(403, 'the token has no role here');
const TOO_MANY = plainRefusal(429, 'too many wrong tokens from this address', {
  'retry-after': '60',
});

/** A JWT is no guess at the break-glass token: a script whose token has expired is told so, however often it asks. */
const JWT = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/;

/** The one bearer token of a request. */
function bearerOf(request: IncomingMessage): string | undefined {
  const [authorization = '', ...others] = headerValues(request, 'authorization');
  return others.length > 0 ? undefined : /^bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1];
}

function mayGuess(request: IncomingMessage, ports: ApiPorts): boolean {
  const token = bearerOf(request);
  if (ports.breakGlassToken === undefined || token === undefined || JWT.test(token)) return true;
  return ports.sessions.mayGuess({ ip: request.socket.remoteAddress ?? '' });
}

async function authenticate(request: IncomingMessage, ports: ApiPorts): Promise<Verified> {
  const token = bearerOf(request);
  if (token === undefined) return undefined;
  const secret = ports.breakGlassToken;
  if (secret !== undefined && secret !== '' && isSame(token, secret)) {
    return { subject: BREAK_GLASS_SUBJECT, roles: ADMIN_ROLES };
  }
  return ports.authenticateAdmin({ authorization: headerValues(request, 'authorization')[0] });
}

type ApiRequest = { readonly action: 'show-controls' } | RevocationRequest | ApprovalRequest;

/** Routes a request to the API; `undefined` if its path is not one of the API's. */
export function readApiRequest({ method, url }: IncomingMessage): ApiRequest | undefined {
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && url === '/api/controls') return { action: 'show-controls' };
  if (isRead && url === REVOCATIONS_PATH) return { action: 'list-revocations' };
  if (url === REVOCATIONS_PATH && method === 'POST') return { action: 'revoke' };
  const id = url?.startsWith(`${REVOCATIONS_PATH}/`) ? url.slice(REVOCATIONS_PATH.length + 1) : '';
  if (method === 'DELETE' && REVOCATION_ID.test(id)) return { action: 'lift-revocation', id };
  return readApprovalRequest(method, url);
}

function isAboutApprovals(asked: ApprovalRequest | RevocationRequest): asked is ApprovalRequest {
  return asked.action.endsWith('approval') || asked.action.endsWith('approvals');
}

/** Handles a routed request to the API. INVARIANT: nothing is served without authentication. */
export async function handleApiRequest(
  asked: ApiRequest,
  request: IncomingMessage,
  ports: ApiPorts,
): Promise<AccessOutcome> {
  let caller: Verified;
  try {
    caller = await authenticate(request, ports);
  } catch {
    caller = 'unavailable';
  }
  // Whoever has a valid token is served whatever others behind the same address send. What cannot be verified now may be
  // a guess too.
  if (caller === undefined || caller === 'unavailable') {
    const response = caller === undefined ? UNAUTHENTICATED : UNAVAILABLE;
    return { response: mayGuess(request, ports) ? response : TOO_MANY, subject: undefined };
  }
  const { issuer, subject, roles } = caller;
  if (roles.length === 0) return { response: FORBIDDEN, issuer, subject };
  if (asked.action === 'show-controls') return { response: json(200, { controls: ports.controls() }), issuer, subject };
  const sent = {
    type: request.headers['content-type'],
    read: () => readText(request, MAX_ORDER_BYTES),
  };
  const reply = await (isAboutApprovals(asked)
    ? respondToApproval(asked, caller, sent, ports)
    : respondToRevocation(asked, caller, sent, ports.revocations));
  return { ...reply, issuer, subject };
}
