// Stands in for the Keycloak of docs/guides/keycloak.md: serves the metadata, the keys and the password grant of its
// realm, and puts into tokens what the mappers of the realm file of that guide say.

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const PORT = 8180;
const BASE = `http://127.0.0.1:${PORT}`;
const REALM = `${BASE}/realms/mcp`;
const LIFETIME = '5m';

type Mapper = {
  readonly protocolMapper: string;
  readonly config: Readonly<Record<string, string>>;
};
type Scope = { readonly name: string; readonly protocolMappers: readonly Mapper[] };
type Client = {
  readonly clientId: string;
  readonly directAccessGrantsEnabled?: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  readonly optionalClientScopes: readonly string[];
};
type Realm = {
  readonly users: readonly { readonly username: string; readonly groups: readonly string[] }[];
  readonly clientScopes: readonly Scope[];
  readonly clients: readonly Client[];
};

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return new URLSearchParams(text);
}

/** Header type and claims of an access token by the realm; `undefined` where Keycloak would refuse. */
function claimsOf(realm: Realm, form: URLSearchParams): Record<string, unknown> | undefined {
  const client = realm.clients.find(({ clientId }) => clientId === form.get('client_id'));
  const user = realm.users.find(({ username }) => username === form.get('username'));
  const scope = form.get('scope') ?? '';
  const isAllowed = client?.directAccessGrantsEnabled === true && client.optionalClientScopes.includes(scope);
  if (!isAllowed || user === undefined || form.get('grant_type') !== 'password') return undefined;
  const mappers = realm.clientScopes.find(({ name }) => name === scope)?.protocolMappers ?? [];
  const configOf = (kind: string) => mappers.find(({ protocolMapper }) => protocolMapper === kind)?.config ?? {};
  const groups = user.groups.map((group) => group.replace(/^\//, ''));
  const isTyped = client.attributes['access.token.header.type.rfc9068'] === 'true';
  return {
    typ: isTyped ? 'at+jwt' : 'JWT',
    ...{ sub: randomUUID(), azp: client.clientId, client_id: client.clientId, scope },
    aud: configOf('oidc-audience-mapper')['included.custom.audience'],
    [configOf('oidc-group-membership-mapper')['claim.name'] ?? 'none']: groups,
  };
}

/** Listens where the guide starts Keycloak. `folder` is that of the reader, who writes realm and password there. */
export async function startKeycloakStandIn(folder: string): Promise<Server> {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const key = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
  const endpoint = `${REALM}/protocol/openid-connect`;
  const metadata = {
    ...{ issuer: REALM, token_endpoint: `${endpoint}/token`, jwks_uri: `${endpoint}/certs` },
    ...{ authorization_endpoint: `${endpoint}/auth`, response_types_supported: ['code'] },
    ...{ subject_types_supported: ['public'], code_challenge_methods_supported: ['S256'] },
  };

  async function mint(request: IncomingMessage): Promise<object | undefined> {
    const form = await formOf(request);
    const realm = JSON.parse(await readFile(`${folder}/data/import/mcp-realm.json`, 'utf8'));
    const password = (await readFile(`${folder}/alice-password`, 'utf8')).trim();
    const claims = form.get('password') === password ? claimsOf(realm, form) : undefined;
    if (claims === undefined) return undefined;
    const { typ, ...payload } = claims;
    const token = new SignJWT(payload)
      .setProtectedHeader({ alg: 'RS256', kid: 'k1', typ: String(typ) })
      .setIssuer(REALM)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime(LIFETIME);
    return { access_token: await token.sign(privateKey), token_type: 'Bearer' };
  }

  async function bodyOf(request: IncomingMessage): Promise<object | undefined> {
    if (request.url === `/realms/mcp/protocol/openid-connect/token`) return mint(request);
    if (request.url?.endsWith('/certs')) return { keys: [key] };
    return request.url?.includes('/.well-known/') ? metadata : undefined;
  }

  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      response.writeHead(body === undefined ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body ?? { error: 'invalid_request' }));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(PORT, '127.0.0.1', resolve);
  });
  return server;
}
