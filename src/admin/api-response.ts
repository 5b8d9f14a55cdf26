// What the parts of the admin API have in common: who sends a request, and the form of a response.
// docs/reference/listeners.md#the-console.

import type { PlainResponse } from '../http/app.js';
import type { ApprovalPerson } from '../policy/approval.js';
import type { AdminRole } from './sessions.js';

/** The verified caller of the admin API, or whoever is logged in at the console. */
export type AdminCaller = {
  /** The name of the issuer; absent for the break-glass token. */
  readonly issuer?: string | undefined;
  readonly subject: string;
  readonly roles: readonly AdminRole[];
  /** What is known of the person; absent for the break-glass token, which is nobody's. */
  readonly holder?: TokenHolder | undefined;
};

/** What a verified token says of its holder. */
export type TokenHolder = {
  readonly person: ApprovalPerson;
  readonly groups: readonly string[];
  /** Somebody else presents the token for the person (RFC 8693 §4.1). */
  readonly hasActors: boolean;
  /** The claim that tells one person is not in the token, or not named where the issuer gives each client another subject. */
  readonly untold?: 'by-token' | 'by-issuer' | undefined;
  /** A login in a browser, or a token that a client presents. */
  readonly proof: 'login' | 'token';
  /** When the person was authenticated, in milliseconds since the epoch; `undefined` where the token does not say. */
  readonly authenticatedAtMs: number | undefined;
};

/** The body of a request. `read` resolves with `undefined` if it is too large. */
export type SentBody = {
  readonly type: string | undefined;
  readonly read: () => Promise<string | undefined>;
};

/** Additional audit detail: whom or what the access concerned. */
type AccessDetail = Readonly<Record<string, string>>;

/** A response, with whom and what the access concerned. */
export type AccessOutcome = {
  readonly response: PlainResponse;
  /** The verified subject; `undefined` if there is none. */
  readonly subject: string | undefined;
  /** The name of its issuer; absent for the break-glass token. */
  readonly issuer?: string | undefined;
  readonly detail?: AccessDetail | undefined;
};

/** The same before it is known who asked. */
export type ApiReply = Omit<AccessOutcome, 'subject' | 'issuer'>;

const API_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" };
const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8', ...API_POLICY };

export function json(status: number, value: object): PlainResponse {
  return { status, headers: JSON_HEADERS, body: `${JSON.stringify(value)}\n` };
}

/** What a role does not allow. */
export const NOT_ALLOWED = refusal(403, 'Your role does not allow this.');

export function refusal(status: number, error: string): PlainResponse {
  return json(status, { error });
}

/** A refusal of a request that the API has not read. */
export function plainRefusal(status: number, body: string, headers: Record<string, string> = {}): PlainResponse {
  const all = { 'content-type': 'text/plain; charset=utf-8', ...API_POLICY, ...headers };
  return { status, headers: all, body: `${body}\n` };
}
