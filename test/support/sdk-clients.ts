// Clients on the official SDKs, and questions that a server asks them.

import {
  Client as ClientV2,
  type OAuthClientProvider as ProviderV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import type { OAuthClientProvider as ProviderV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client, Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { resultFor, sseEvent, textResult } from './hostile-acts.js';
import type { Act, HostileRequest, HostileUpstream } from './hostile-upstream.js';
import type { JsonObject } from './json.js';

// Connects the two official SDKs to an MCP endpoint: v1 (sessions), v2 held to one era.
// Never falls back to another era, so that a test knows what was spoken.

/** How a client proves who it is: a token it has, a provider that walks for one, or nothing. */
export type Access<Provider> = {
  readonly token?: string;
  readonly provider?: Provider;
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of fetch: where several gateways stand for one. */
  readonly fetch?: typeof fetch;
};

export type ConnectedV1 = {
  readonly client: ClientV1;
  readonly transport: TransportV1;
  close(): Promise<void>;
};

export type ConnectedV2 = {
  readonly client: ClientV2;
  readonly transport: TransportV2;
  close(): Promise<void>;
};

const IDENTITY = { name: 'sallyport-test', version: '1.0.0' } as const;

function requestInit(access: Access<unknown>): RequestInit {
  const bearer = access.token === undefined ? {} : { authorization: `Bearer ${access.token}` };
  return { headers: { ...access.headers, ...bearer } };
}

/** A transport of SDK v1, not yet connected; the OAuth walk needs it before and after. */
export function createTransportV1(url: string, access: Access<ProviderV1> = {}): TransportV1 {
  const provider = access.provider === undefined ? {} : { authProvider: access.provider };
  return new TransportV1(new URL(url), { requestInit: requestInit(access), ...provider });
}

/** A transport of SDK v2, not yet connected. */
export function createTransportV2(url: string, access: Access<ProviderV2> = {}): TransportV2 {
  const provider = access.provider === undefined ? {} : { authProvider: access.provider };
  const own = access.fetch === undefined ? {} : { fetch: access.fetch };
  return new TransportV2(new URL(url), { requestInit: requestInit(access), ...provider, ...own });
}

/** A client of SDK v1, which speaks sessions. */
export async function connectSdkV1(
  url: string,
  access: Access<ProviderV1> = {},
  options: ConstructorParameters<typeof ClientV1>[1] = {},
): Promise<ConnectedV1> {
  const client = new ClientV1(IDENTITY, options);
  const transport = createTransportV1(url, access);
  await client.connect(transport as Transport);
  return { client, transport, close: () => client.close() };
}

/** A client of SDK v2 that speaks exactly this era (`versionNegotiation`: `legacy`, or pinned). */
export async function connectSdkV2(
  url: string,
  era: '2025' | '2026',
  access: Access<ProviderV2> = {},
  options: ConstructorParameters<typeof ClientV2>[1] = {},
): Promise<ConnectedV2> {
  const mode = era === '2025' ? 'legacy' : { pin: '2026-07-28' };
  const client = new ClientV2(IDENTITY, { ...options, versionNegotiation: { mode } });
  const transport = createTransportV2(url, access);
  await client.connect(transport);
  return { client, transport, close: () => client.close() };
}

// What tests of questions share: a policy that grants them, a client of SDK v1 that answers them, and a
// hostile act that asks in the middle of an answer.

/** A harmless form. */
export const FORM_QUESTION = {
  method: 'elicitation/create',
  params: {
    message: 'Who is it for?',
    requestedSchema: { type: 'object', properties: { person: { type: 'string' } } },
  },
};

export const ALL_QUESTIONS = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
};

/** A policy that grants every question; `more` are further members of its one rule. */
export function grantQuestions(what = 'sampling: true, elicitation: [form, url], roots: true', more = ''): string {
  return `version: 1
policy: questions
rules:
  - id: ask
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], ${what}}
${more}`;
}

export type AskedClient = {
  readonly client: Client;
  /** The questions that reached the client, in order. */
  readonly asked: { readonly method: string; readonly params: JsonObject }[];
  close(): Promise<void>;
};

/** A client of SDK v1 that answers everything it is asked. */
export async function connectAsked(
  url: string,
  token: string,
  answer: {
    readonly text?: string;
    readonly content?: Record<string, string | boolean>;
    readonly action?: 'decline';
  } = {},
  transport = createTransportV1(url, { token }) as Transport,
): Promise<AskedClient> {
  const asked: { method: string; params: JsonObject }[] = [];
  const client = new Client({ name: 'asked', version: '1.0.0' }, { capabilities: ALL_QUESTIONS });
  const note = ({ method, params }: { method: string; params?: unknown }): void => {
    asked.push({ method, params: (params ?? {}) as JsonObject });
  };
  client.setRequestHandler(CreateMessageRequestSchema, (request) => {
    note(request);
    const text = answer.text ?? 'told by the model';
    return { model: 'm', role: 'assistant', content: { type: 'text', text } };
  });
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    note(request);
    if (answer.action !== undefined) return { action: answer.action };
    return request.params.mode === 'url'
      ? { action: 'accept' }
      : { action: 'accept', content: answer.content ?? { name: 'Ada' } };
  });
  client.setRequestHandler(ListRootsRequestSchema, (request) => {
    note(request);
    return { roots: [{ uri: 'file:///work/project', name: 'project' }] };
  });
  await client.connect(transport);
  return { client, asked, close: () => client.close() };
}

/** Asks this, waits `paceMs`, and answers the call. */
export function askThenAnswer(request: HostileRequest, questions: readonly JsonObject[], paceMs = 100): Act {
  const events = questions.map((question) => sseEvent({ jsonrpc: '2.0', ...question }));
  const own = sseEvent(resultFor(request, textResult('answered')));
  return {
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [...events, own],
    ending: 'end',
    paceMs,
  };
}

/** What came back for the questions of a server: messages without a method, by id. */
export function answersTo(upstream: HostileUpstream): ReadonlyMap<unknown, JsonObject> {
  return new Map(
    upstream
      .seen()
      .flatMap(({ message, method }) =>
        message !== undefined && method === undefined ? [[message['id'], message] as const] : [],
      ),
  );
}
