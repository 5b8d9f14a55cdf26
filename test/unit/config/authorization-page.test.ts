// The examples of docs/reference/authorization.md are read as a gateway file would be.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { diagnosticLines } from './reading.js';

const PAGE = new URL('../../../docs/reference/authorization.md', import.meta.url);
const HEAD = `version: 1
publicUrl: https://mcp.example.com
keys: [{env: KEY}]
policies: {dir: policies}
`;

const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
  ([, text = '']) => text,
);
const complete = blocks.filter((text) => /^issuers:$/m.test(text) && /^upstreams:$/m.test(text));

/** The example of Keycloak that asks, in the place that its text names. */
function introspecting(): string {
  const [keycloak = ''] = complete;
  const members = blocks.find((text) => text.startsWith('    introspection:')) ?? '';
  return keycloak.replace(/ {4}algorithms:.*\n/, members).replace(/ {4}tokenType:.*\n/, '');
}

describe('[TOK-16] the page on authorization', () => {
  it('has an example for each server', () => {
    expect(complete.map((text) => /^ {2}(\w+):$/m.exec(text)?.[1])).toEqual([
      'keycloak',
      'entra',
      'auth0',
    ]);
  });

  it.each([...complete, introspecting()])('has examples without a mistake (case %#)', (text) => {
    const files = { '/run/secrets/keycloak-client': 'of the client' };
    expect(diagnosticLines(HEAD + text, { files })).toEqual([]);
  });
});
