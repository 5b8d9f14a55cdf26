// An MCP client in a page: the official SDK, which logs in by itself and calls one tool. `?server` names the
// endpoint and `?client` the client id; what happened stands in the output.

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const query = new URLSearchParams(location.search);
for (const name of ['server', 'client']) {
  const value = query.get(name);
  if (value !== null) sessionStorage.setItem(name, value);
}

function say(text) {
  document.querySelector('output').textContent = text;
}

const provider = {
  redirectUrl: `${location.origin}/`,
  clientMetadata: {
    client_name: 'page',
    redirect_uris: [`${location.origin}/`],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => ({ client_id: sessionStorage.getItem('client') }),
  tokens: () => JSON.parse(sessionStorage.getItem('tokens') ?? 'null') ?? undefined,
  saveTokens: (tokens) => sessionStorage.setItem('tokens', JSON.stringify(tokens)),
  codeVerifier: () => sessionStorage.getItem('verifier'),
  saveCodeVerifier: (verifier) => sessionStorage.setItem('verifier', verifier),
  redirectToAuthorization: (url) => location.assign(url),
};

const open = () =>
  new StreamableHTTPClientTransport(new URL(sessionStorage.getItem('server')), {
    authProvider: provider,
  });

async function run() {
  const code = query.get('code');
  if (code !== null) await open().finishAuth(code, query.get('iss') ?? undefined);
  const client = new Client({ name: 'page', version: '1.0.0' });
  const transport = open();
  await client.connect(transport);
  const result = await client.callTool({ name: 'add', arguments: { a: 20, b: 22 } });
  say(`called: ${JSON.stringify(result.content)}`);
  await transport.terminateSession();
}

if (sessionStorage.getItem('server') === null) say('idle');
else {
  run().catch((error) => {
    if (error instanceof UnauthorizedError) say('on the way to log in');
    else say(`failed: ${error.name}`);
  });
}
