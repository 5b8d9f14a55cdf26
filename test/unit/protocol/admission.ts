// Builds what a client posts, so that a test names only what it is about.

import { admitPost } from '../../../src/protocol/admission.js';
import type { AdmittedMessage, ProtocolError, SessionFacts } from '../../../src/protocol/admitted-request.js';
import { applyEdits } from '../../../src/protocol/json/json.js';
import type { AdmissionInput } from '../../../src/protocol/versions/admission-rules.js';

export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

export const SESSION: SessionFacts = {
  version: '2025-11-25',
  target: { kind: 'upstream', id: 'u-1' },
};

const encoder = new TextEncoder();

export type Posted = {
  readonly headers?: { readonly [name: string]: string | undefined };
  readonly repeated?: readonly string[];
  readonly session?: SessionFacts;
};

/** Admits this body, an object or raw text; the session id `s-1` is live. */
export function post(body: object | string, posted: Posted = {}): AdmittedMessage | ProtocolError {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const outcome = admitPost({
    headers: posted.headers ?? {},
    repeated: new Set(posted.repeated ?? []),
    body: encoder.encode(text),
    openSession: opener(posted.session ?? SESSION),
  });
  if (outcome.kind === 'array') throw new Error('an array was admitted');
  return outcome;
}

export function opener(session: SessionFacts): AdmissionInput['openSession'] {
  return (id) => (id === 's-1' ? session : undefined);
}

/** A request inside the session `s-1`. */
export function inSession(method: string, params?: object, posted: Posted = {}): AdmittedMessage | ProtocolError {
  const headers = { 'mcp-session-id': 's-1', ...posted.headers };
  return post({ jsonrpc: '2.0', id: 1, method, params }, { ...posted, headers });
}

/** A 2026 request whose headers agree with its body; `posted.headers` overrides them. */
export function stateless(method: string, params: object = {}, posted: Posted = {}): AdmittedMessage | ProtocolError {
  const named = params as { readonly name?: string; readonly uri?: string };
  const headers: Record<string, string | undefined> = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
  };
  const name = method === 'resources/read' ? named.uri : named.name;
  if (typeof name === 'string') headers['mcp-name'] = name;
  const body = { jsonrpc: '2.0', id: 1, method, params: { _meta: META, ...params } };
  return post(body, { ...posted, headers: { ...headers, ...posted.headers } });
}

/** The admitted message, or a failed test that shows the fault. */
export function admitted(outcome: ReturnType<typeof admitPost>): AdmittedMessage {
  if (outcome.kind !== 'admitted') throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome;
}

/** What would leave: the text with its edits. */
export function leaving(outcome: AdmittedMessage | ProtocolError): string {
  const message = admitted(outcome);
  return applyEdits(message.text, message.edits);
}
