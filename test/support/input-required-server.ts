// Further tools for the server on SDK v2: one that asks whom to greet before it answers, one that answers
// only once it is given up, and a template whose variable can be completed.

import {
  acceptedContent,
  fromJsonSchema,
  inputRequired,
  type McpServer,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { type SdkV2Server, startSdkV2Server } from './sdk-v2-server.js';

const NAME = fromJsonSchema<{ name: string }>({
  type: 'object',
  properties: { name: { type: 'string', title: 'Name' } },
  required: ['name'],
} as never);

const NOTHING = fromJsonSchema({ type: 'object', properties: {} });

/** A server that knows no sessions, with all of these tools; `waits` gathers what the waiting one goes through. */
export function startInputRequiredServer(waits: string[]): Promise<SdkV2Server> {
  return startSdkV2Server({
    legacy: 'reject',
    extend(made) {
      made.server.registerCapabilities({ resources: { subscribe: true } });
      registerGreeting(made);
      registerCities(made);
      registerWaiting(made, (what) => waits.push(what));
    },
  });
}

/** `greet_someone`: asks by a result, with the state `leg:1`. */
export function registerGreeting(server: McpServer): void {
  server.registerTool(
    'greet_someone',
    { description: 'Greets whoever is named.', inputSchema: NOTHING },
    async (_args, context) => {
      const accepted = await acceptedContent(context.mcpReq.inputResponses, 'who', NAME);
      const state: unknown = context.mcpReq.requestState();
      if (accepted === undefined) {
        return inputRequired({
          inputRequests: {
            who: inputRequired.elicit({ message: 'Who is to be greeted?', requestedSchema: NAME }),
          },
          requestState: 'leg:1',
        });
      }
      return {
        content: [{ type: 'text', text: `Hello ${accepted.name}, after ${String(state)}.` }],
      };
    },
  );
}

/** `wait`: tells `begun` and waits until its caller gives it up, which it tells too. */
function registerWaiting(server: McpServer, report: (what: 'begun' | 'given up') => void): void {
  server.registerTool(
    'wait',
    { description: 'Waits.', inputSchema: NOTHING },
    async (_args, context) => {
      const { signal } = context.mcpReq;
      report('begun');
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      report('given up');
      return { content: [] };
    },
  );
}

export const CITIES = 'memo://cities/{name}';

/** A template whose variable is completed. */
function registerCities(server: McpServer): void {
  const template = new ResourceTemplate(CITIES, {
    list: undefined,
    complete: { name: (begun) => ['Berlin', 'Bern'].filter((city) => city.startsWith(begun)) },
  });
  server.registerResource('city', template, { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'A city.' }],
  }));
}
