// `sallyport schema NAME`: prints a published JSON Schema, for example for editor modelines.
// docs/contract.md §1 (names of the schemas) and §3.

import type { Schema } from '../config/schema/definitions.js';
import { GATEWAY_SCHEMA } from '../config/schema/gateway.js';
import { AUDIT_SCHEMA, LOCK_SCHEMA } from '../config/schema/outputs.js';
import { POLICY_SCHEMA, POLICY_TEST_SCHEMA } from '../config/schema/policy.js';
import {
  type CliIo,
  type Command,
  didYouMean,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
} from './program.js';

/** Every published schema by name, in the order of the reference page. */
export const SCHEMAS: ReadonlyMap<string, Schema> = new Map([
  ['gateway', GATEWAY_SCHEMA],
  ['policy', POLICY_SCHEMA],
  ['policy-test', POLICY_TEST_SCHEMA],
  ['lock', LOCK_SCHEMA],
  ['audit', AUDIT_SCHEMA],
]);

/** Prints one schema as JSON. An unknown name is a usage error. */
function runSchema(name: string, io: CliIo): number {
  const schema = SCHEMAS.get(name);
  if (schema === undefined) {
    const names = [...SCHEMAS.keys()];
    const known = `Known: ${names.join(', ')}.`;
    return fail(`unknown schema${didYouMean(name, names)} ${known}`, EXIT_UNCHECKED, io);
  }
  io.stdout(`${JSON.stringify(schema, null, 2)}\n`);
  return EXIT_FINE;
}

export function schemaCommand(io: CliIo): Command {
  return {
    name: 'schema',
    summary: 'Print a JSON Schema: gateway, policy, policy-test, lock or audit.',
    examples: ['sallyport schema gateway > gateway.schema.json', 'sallyport schema policy'],
    configure(command, finish) {
      command
        .argument('<name>', [...SCHEMAS.keys()].join(', '))
        .action((name: string) => finish(runSchema(name, io)));
    },
  };
}
