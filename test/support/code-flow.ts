// Walks the authorization code flow as a public client does: registration, PKCE, redirects, token.
// It knows issuers by their metadata alone.

import { createHash, randomBytes } from 'node:crypto';

type Answer = Readonly<Record<string, unknown>>;

const REDIRECT_URI = 'http://127.0.0.1:1/callback';
const MAX_HOPS = 10;

async function readJson(response: Response): Promise<Answer> {
  const body = (await response.json()) as Answer;
  if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(body)}`);
  return body;
}

/** Follows redirects with cookies until the client's own redirect URI. */
async function followToCallback(start: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`no redirect: ${response.status}`);
    url = new URL(location, url);
    if (url.href.startsWith(REDIRECT_URI)) return url;
  }
  throw new Error('too many redirects');
}

/** The access token that a user's login at `issuer` gives for `resource`. */
export async function walkCodeFlow(
  issuer: string,
  request: { readonly resource: string; readonly scope: string },
): Promise<string> {
  const metadata = await readJson(await fetch(`${issuer}/.well-known/oauth-authorization-server`));
  const client = await readJson(
    await fetch(String(metadata['registration_endpoint']), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'walk',
        application_type: 'native',
        redirect_uris: [REDIRECT_URI],
        token_endpoint_auth_method: 'none',
      }),
    }),
  );
  const verifier = randomBytes(32).toString('base64url');
  const common = { client_id: String(client['client_id']), redirect_uri: REDIRECT_URI };
  const authorize = new URLSearchParams({
    ...common,
    response_type: 'code',
    scope: request.scope,
    state: 'xyz',
    resource: request.resource,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const callback = await followToCallback(`${metadata['authorization_endpoint']}?${authorize}`);
  const code = callback.searchParams.get('code');
  if (code === null) throw new Error(`no code: ${callback.search}`);
  const answer = await readJson(
    await fetch(String(metadata['token_endpoint']), {
      method: 'POST',
      body: new URLSearchParams({
        ...common,
        grant_type: 'authorization_code',
        code,
        code_verifier: verifier,
        resource: request.resource,
      }),
    }),
  );
  return String(answer['access_token']);
}
