// The examples of the guides for identity providers, and of the other guides that show a gateway file, are read as
// a gateway file would be.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { diagnosticLines } from './reading.js';

const FOLDER = new URL('../../../docs/guides/', import.meta.url);
const HEAD = `version: 1
keys: [{env: KEY}]
policies: {dir: policies}
`;
const PUBLIC_URL = 'publicUrl: https://mcp.example.com\n';

function blocksOf(page: string): string[] {
  const text = readFileSync(new URL(page, FOLDER), 'utf8');
  return [...text.matchAll(/^( *)```yaml\n([\s\S]*?)^\1```/gm)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

const pages = readdirSync(FOLDER).filter((name) => name.endsWith('.md'));
const complete = pages.flatMap((page) =>
  blocksOf(page)
    .filter((text) => /^issuers:$/m.test(text) && /^upstreams:$/m.test(text))
    .map((text) => ({ page, text })),
);

/** The example of Keycloak with introspection, at the position that the page names. */
function introspecting(): string {
  const keycloak = complete.find(({ page }) => page === 'keycloak.md')?.text ?? '';
  const member = blocksOf('keycloak.md').find((text) => text.startsWith('introspection:')) ?? '';
  return keycloak.replace(/ {4}algorithms:.*\n/, `    ${member}`).replace(/ {4}tokenType:.*\n/, '');
}

function readAsGatewayFile(text: string): readonly string[] {
  const files = { '/run/secrets/keycloak-client': 'of the client' };
  const publicUrl = text.startsWith('publicUrl:') ? '' : PUBLIC_URL;
  return diagnosticLines(HEAD + publicUrl + text, { files });
}

describe('[TOK-16] the guides for identity providers', () => {
  it.each(['auth0', 'entra', 'keycloak', 'okta'])('have an example: %s', (name) => {
    expect(complete.filter(({ page }) => page === `${name}.md`)).toHaveLength(1);
  });

  it.each(complete)('have examples without a mistake: $page', ({ text }) => {
    expect(readAsGatewayFile(text)).toEqual([]);
  });

  it('have a realm of Keycloak for the gateway beside it, in which clients can log in', () => {
    const page = readFileSync(new URL('keycloak.md', FOLDER), 'utf8');
    const realm = JSON.parse(/<<'EOF'\n([\s\S]*?)^EOF$/m.exec(page)?.[1] ?? '');
    const gateway = parse(complete.find((example) => example.page === 'keycloak.md')?.text ?? '');
    const resource = `${gateway.publicUrl}/tickets`;
    expect(JSON.stringify(realm)).toContain(`"included.custom.audience":"${resource}"`);
    expect(gateway.issuers.keycloak.issuer).toMatch(new RegExp(`/realms/${realm.realm}$`));
    // Keycloak offers offline_access, so clients request it, and the login fails where they may not.
    const { scopesSupported } = gateway.upstreams.tickets;
    const [client] = realm.clients;
    expect(client.optionalClientScopes).toEqual([...scopesSupported, 'offline_access']);
    expect(client.attributes['access.token.header.type.rfc9068']).toBe('true');
    for (const user of realm.users) expect(user.realmRoles).toContain('offline_access');
  });

  it('have an example with introspection', () => {
    const text = introspecting();
    expect(text).toContain('    introspection: {');
    expect(readAsGatewayFile(text)).toEqual([]);
  });
});
