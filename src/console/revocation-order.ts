// Reads what an administrator wants revoked, from the body of a request: a token by its id or by the digest
// that stands in the audit log, a subject of an issuer, a session by its digest; and always why.
// It judges form alone and repeats nothing of what was sent.

/** What to revoke. `issuer` is a name of the configuration or an issuer identifier. */
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
);

type Members = ReadonlyMap<string, unknown>;

const MAX_IDENTITY_CHARACTERS = 1_024;
const MAX_NOTE_CHARACTERS = 500;
/** Of SHA-256, as base64url. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
/** Characters that would be something else in a log or on a page. */
const CONTROL = /[\p{Cc}\p{Cs}\u2028\u2029]/u;

/** The order, or what is wrong with it in one sentence. */
export function readRevocationOrder(text: string): RevocationOrder | string {
  const members = membersOf(parse(text));
  if (members === undefined) return 'The body must be a JSON object.';
  const note = textOf(members, 'note', MAX_NOTE_CHARACTERS);
  if (note === undefined)
    return `"note" must say why, in 1 to ${MAX_NOTE_CHARACTERS} characters of one line.`;
  const kinds = [...members.keys()].filter((name) => name !== 'note');
  const [kind = ''] = kinds;
  const read = kinds.length === 1 ? READERS.get(kind) : undefined;
  if (read === undefined) return 'Name one of "token", "subject" and "session", and "note".';
  const order = read(membersOf(members.get(kind)) ?? new Map());
  return typeof order === 'string' ? order : { ...order, note };
}

type Order = RevocationOrder extends infer One
  ? One extends unknown
    ? Omit<One, 'note'>
    : never
  : never;

const READERS: ReadonlyMap<string, (members: Members) => Order | string> = new Map([
  ['token', readToken],
  ['subject', readSubject],
  ['session', readSession],
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function membersOf(value: unknown): Members | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return new Map(Object.entries(value));
}

function textOf(members: Members, name: string, maxCharacters: number): string | undefined {
  const value = members.get(name);
  if (typeof value !== 'string' || value.trim() === '' || value.length > maxCharacters)
    return undefined;
  return CONTROL.test(value) ? undefined : value;
}

function identityOf(members: Members, name: string): string | undefined {
  return textOf(members, name, MAX_IDENTITY_CHARACTERS);
}

function digestOf(members: Members): string | undefined {
  const value = members.get('digest');
  return typeof value === 'string' && DIGEST.test(value) ? value : undefined;
}
