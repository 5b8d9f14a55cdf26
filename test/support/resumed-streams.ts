// Streams that an upstream breaks off behind a priming event, and that a client resumes by hand.
// Source: MCP 2025-11-25, transports (resumability and redelivery).

import type { Act, Ending, HostileRequest } from './hostile-upstream.js';
import type { JsonObject } from './json.js';

/** The event with which an upstream begins a stream that can be resumed. */
export const PRIMING = 'id: stream-1/0\nretry: 250\ndata: \n\n';

export function streamed(chunks: readonly string[], ending: Ending = 'end'): Act {
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending };
}

export const isCall = ({ method }: HostileRequest): boolean => method === 'tools/call';

/** The ids of the events of a text, in order. */
export function idsOf(text: string): readonly string[] {
  return [...text.matchAll(/^id: (.*)$/gm)].map((match) => match[1] ?? '');
}

export type Resumed = { readonly status: number; readonly text: string; readonly messages: JsonObject[] };

/** Resumes behind the event with this id, and reads to the end. */
export async function resumeStream(
  url: string,
  headers: Readonly<Record<string, string>>,
  id: string,
): Promise<Resumed> {
  const response = await fetch(url, { headers: { accept: 'text/event-stream', ...headers, 'last-event-id': id } });
  const text = await response.text();
  const messages = [...text.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? '') as JsonObject);
  return { status: response.status, text, messages };
}
