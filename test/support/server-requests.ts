// What tests of questions share: a policy that grants them, a client of SDK v1 that answers them, and a
// hostile act that asks in the middle of an answer.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { resultFor, sseEvent, textResult } from './hostile-acts.js';
import type { Act, HostileRequest, HostileUpstream } from './hostile-upstream.js';
import { createTransportV1 } from './sdk-clients.js';

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
export function grantQuestions(
  what = 'sampling: true, elicitation: [form, url], roots: true',
  more = '',
): string {
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
  answer: { readonly text?: string; readonly content?: Record<string, string> } = {},
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
    return request.params.mode === 'url'
      ? { action: 'accept' }
      : { action: 'accept', content: answer.content ?? { name: 'Ada' } };
  });
  client.setRequestHandler(ListRootsRequestSchema, (request) => {
    note(request);
    return { roots: [{ uri: 'file:///work/project', name: 'project' }] };
  });
  await client.connect(createTransportV1(url, { token }) as Transport);
  return { client, asked, close: () => client.close() };
}

/** Asks this, waits `paceMs`, and answers the call. */
export function askThenAnswer(
  request: HostileRequest,
  questions: readonly JsonObject[],
  paceMs = 100,
): Act {
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
