// `sallyport schema NAME`: prints a published JSON Schema. Contract §1 and §3.

import { SCHEMAS } from '../config/schema.js';
import { nearestCandidate } from '../config/suggestion.js';
import { type CliIo, type Command, EXIT_FINE, EXIT_UNCHECKED } from './program.js';

/** Prints one schema as JSON. An unknown name is a mistake of usage. */
export function runSchema(options: { readonly name: string }, io: CliIo): Promise<number> {
  const schema = SCHEMAS.get(options.name);
  if (schema === undefined) {
    const names = [...SCHEMAS.keys()];
    const nearest = nearestCandidate(options.name, names);
    const suggestionText = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
    io.stderr(`error: unknown schema${suggestionText} Known: ${names.join(', ')}.\n`);
    return Promise.resolve(EXIT_UNCHECKED);
  }
  io.stdout(`${JSON.stringify(schema, null, 2)}\n`);
  return Promise.resolve(EXIT_FINE);
}

export function schemaCommand(io: CliIo): Command {
  return {
    name: 'schema',
    summary: 'Print a JSON Schema: gateway, policy, lock or audit.',
    examples: ['sallyport schema gateway > gateway.schema.json', 'sallyport schema policy'],
    configure(command, finish) {
      command
        .argument('<name>', [...SCHEMAS.keys()].join(', '))
        .action(async (name: string) => finish(await runSchema({ name }, io)));
    },
  };
}
