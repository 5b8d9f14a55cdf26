// Sets up a realm of Keycloak for the gateway, by its administration interface, as
// docs/guides/keycloak.md describes it. Everything is on loopback and made anew in every run.

import { randomUUID } from 'node:crypto';

const SCOPE = 'notes:read';

async function post(url, form, headers = {}) {
  const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(form) });
  return await answer.json();
}

/** The administration interface, logged in anew for each request: a new realm changes the rights. */
function administration(base, password) {
  return async (method, path, body) => {
    const { access_token: token } = await post(`${base}/realms/master/protocol/openid-connect/token`, {
      grant_type: 'password',
      client_id: 'admin-cli',
      username: 'admin',
      password,
    });
    const answer = await fetch(`${base}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} ended with ${answer.status}: ${text}`);
    const id = answer.headers.get('location')?.split('/').pop();
    return { id, value: text === '' ? undefined : JSON.parse(text) };
  };
}

function mapper(name, kind, config) {
  const everywhere = { 'access.token.claim': 'true', 'introspection.token.claim': 'true' };
  return {
    name,
    protocol: 'openid-connect',
    protocolMapper: kind,
    config: { ...config, ...everywhere },
  };
}

/** Makes the realm: a scope with the audience `resource`, a client, a user, and the gateway's own client. */
export async function makeRealm(base, adminPassword, resource) {
  const admin = administration(base, adminPassword);
  const realm = 'mcp';
  const [password, secret] = [randomUUID(), randomUUID()];
  await admin('POST', '', { realm, enabled: true, accessTokenLifespan: 300 });
  const scope = await admin('POST', `/${realm}/client-scopes`, {
    name: SCOPE,
    protocol: 'openid-connect',
    attributes: { 'include.in.token.scope': 'true' },
    protocolMappers: [
      mapper('resource', 'oidc-audience-mapper', { 'included.custom.audience': resource }),
      mapper('groups', 'oidc-group-membership-mapper', {
        'claim.name': 'groups',
        'full.path': 'false',
      }),
    ],
  });
  const client = await admin('POST', `/${realm}/clients`, {
    clientId: 'ide',
    publicClient: true,
    directAccessGrantsEnabled: true,
    attributes: { 'access.token.header.type.rfc9068': 'true' },
  });
  await admin('PUT', `/${realm}/clients/${client.id}/optional-client-scopes/${scope.id}`);
  await admin('POST', `/${realm}/clients`, { clientId: 'sallyport', secret, publicClient: false });
  await admin('POST', `/${realm}/groups`, { name: 'eng' });
  await admin('POST', `/${realm}/users`, {
    username: 'alice',
    enabled: true,
    ...{ email: 'alice@example.com', emailVerified: true, firstName: 'Alice', lastName: 'Example' },
    groups: ['/eng'],
    credentials: [{ type: 'password', value: password, temporary: false }],
  });
  const issuer = `${base}/realms/${realm}`;
  return {
    issuer,
    secret,
    /** Tokens of the user, for these scopes. */
    logIn: (scopes) =>
      post(`${issuer}/protocol/openid-connect/token`, {
        grant_type: 'password',
        client_id: 'ide',
        username: 'alice',
        password,
        scope: scopes,
      }),
    logOut: (refreshToken) =>
      fetch(`${issuer}/protocol/openid-connect/logout`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: 'ide', refresh_token: refreshToken }),
      }),
    /** Takes out the scope that adds an audience of Keycloak's own. */
    async dropRoles() {
      const path = `/${realm}/clients/${client.id}/default-client-scopes`;
      const { value } = await admin('GET', path);
      const roles = value.find(({ name }) => name === 'roles');
      await admin('DELETE', `${path}/${roles.id}`);
    },
    /** Signs with a new key from now on. */
    async rotate() {
      const { value } = await admin('GET', `/${realm}`);
      await admin('POST', `/${realm}/components`, {
        name: 'next',
        providerId: 'rsa-generated',
        providerType: 'org.keycloak.keys.KeyProvider',
        parentId: value.id,
        config: { priority: ['200'], enabled: ['true'], active: ['true'], algorithm: ['RS256'] },
      });
    },
  };
}
