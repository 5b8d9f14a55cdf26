// What a scene of the tour is, what it plays on, and the comparisons that scenes share. Looks at the wire
// on the client's side and at what the upstream saw; knows nothing of how the gateway works.

import { isObject, type JsonObject } from '../mcp/message.js';
import type { DemoUser } from './demo-files.js';
import type { DemoUpstream } from './demo-upstream.js';
import { openTourSession, type TourSession, type WireResponse } from './tour-client.js';

/** One comparison: what should hold, whether it does, and what was seen where it does not. */
export type Check = { readonly what: string; readonly holds: boolean; readonly seen: string };

export type MintOptions = { readonly audience?: string; readonly scopes?: readonly string[] };

/** What the scenes play on. */
export type Stage = {
  /** The upstream's endpoint at the gateway. */
  readonly url: string;
  /** A token of this user for this endpoint, with the user's own scopes unless told otherwise. */
  mint(user: DemoUser, options?: MintOptions): Promise<string>;
  readonly upstream: DemoUpstream;
};

export type Scene = {
  readonly title: string;
  readonly expect: string;
  run(stage: Stage): Promise<readonly Check[]>;
};

/** A tool that no server of the demo has. */
export const UNKNOWN_TOOL = 'no_such_tool';
/** "Not found" of tools and prompts in every era. */
export const NOT_FOUND = -32602;
/** Where a refusal carries its decision (contract §6). */
export const DECISION_KEY = 'dev.sallyport/decision';
const USES: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);
const MAX_PAGES = 20;

/** A comparison; `seen` is shown where it fails. */
export function check(what: string, holds: boolean, seen: unknown): Check {
  return { what, holds, seen: String(seen) };
}

/** The value at a path of member names, or `undefined`. */
export function member(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const name of path) current = isObject(current) ? current[name] : undefined;
  return current;
}

/** Nothing that a policy decides about reached the upstream since it last forgot. */
export function untouched({ upstream }: Stage): Check {
  const names = upstream.seen().flatMap((seen) => (USES.has(seen.method ?? '') ? [seen.name] : []));
  return check('the server behind saw nothing', names.length === 0, names.join());
}

/** The HTTP status of an answer. */
export function status(response: WireResponse, expected: number): Check {
  return check(`HTTP ${expected}`, response.status === expected, `HTTP ${response.status}`);
}

/** The JSON-RPC error code of an answer. */
export function code(response: WireResponse, expected: number, meaning: string): Check {
  const seen = member(response.message, 'error', 'code');
  return check(
    `error ${expected}, ${meaning}`,
    seen === expected,
    seen ?? response.body.slice(0, 80),
  );
}

/** The answer without what differs from one exchange to the next: equal texts are no oracle. */
export function withoutIds(response: WireResponse): string {
  const { message } = response;
  const error = member(message, 'error');
  if (!isObject(error)) return response.body;
  const decision = member(error, 'data', DECISION_KEY);
  const decisionKeys = isObject(decision) ? Object.keys(decision).sort() : [];
  return JSON.stringify([response.status, error['code'], error['message'], decisionKeys]);
}

/** Plays within a session of this user and closes it; the upstream forgets what opening it took. */
export async function withSession<T>(
  stage: Stage,
  user: DemoUser,
  use: (session: TourSession, token: string) => Promise<T>,
): Promise<T> {
  const token = await stage.mint(user);
  const session = await openTourSession({ url: stage.url, token });
  stage.upstream.forget();
  try {
    return await use(session, token);
  } finally {
    await session.close();
  }
}

/** A call in a session. */
export function callTool(
  session: TourSession,
  name: string,
  args: JsonObject = {},
): Promise<WireResponse> {
  return session.request('tools/call', { name, arguments: args });
}

/** The names on every page of the caller's list of tools. */
export async function listNames(session: TourSession): Promise<string[]> {
  const names: string[] = [];
  let params: JsonObject = {};
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { message } = await session.request('tools/list', params);
    const tools = member(message, 'result', 'tools');
    if (Array.isArray(tools)) names.push(...tools.map((tool) => String(member(tool, 'name'))));
    const cursor = member(message, 'result', 'nextCursor');
    if (typeof cursor !== 'string') return names;
    params = { cursor };
  }
  return names;
}
