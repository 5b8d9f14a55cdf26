// A gateway behind a real OpenID Connect provider, at which the person `ann` logs in to answer what is asked of its callers;
// and that person, with a browser.

import { logInAt } from './approval-page.js';
import { type OidcProvider, startOidcProvider } from './authorization-servers.js';
import { formTokenOf } from './console-rig.js';
import { type AttackRig, type RigOptions, startRig } from './gateway.js';
import { walkCodeFlow } from './oauth-clients.js';
import { findFreePort } from './processes.js';

const CALLBACK = '/.well-known/sallyport/approve/callback';
/** The link of an approval, in whatever a client is told. */
const LINK = /http:\/\/127\.0\.0\.1:\d+\/\.well-known\/sallyport\/approve\/[0-9a-f]{32}/;

export type CallerStage = {
  readonly rig: AttackRig;
  readonly provider: OidcProvider;
  /** Of `ann`, for the upstream. */
  readonly token: string;
  close(): Promise<void>;
};

/** `pairwise`: each client knows the person by another subject. `login`: further members of the login, in flow style. */
export async function startCallerStage({
  pairwise = false,
  login = '',
  ...more
}: RigOptions & { readonly pairwise?: boolean; readonly login?: string }): Promise<CallerStage> {
  const port = await findFreePort();
  const provider = await startOidcProvider({
    ...{ user: 'ann', pairwise, scopes: 'notes:read', consoleUrl: `http://127.0.0.1:${port}${CALLBACK}` },
  });
  const members = `login: {clientId: ${provider.console.clientId}, clientSecret: {env: LOGIN_SECRET}${login}}`;
  const rig = await startRig({
    ...{ dataPort: port, ...more },
    issuerUrl: provider.issuer,
    issuer: ['algorithms: [ES256]', members],
    env: { LOGIN_SECRET: provider.console.clientSecret },
  });
  const token = await walkCodeFlow(provider.issuer, { resource: rig.access.url, scope: 'notes:read' });
  return {
    ...{ rig, provider, token },
    async close() {
      await rig.close();
      await provider.close();
    },
  };
}

/** The link that stands in a text; empty where there is none. */
export function linkIn(text: string): string {
  return LINK.exec(text)?.[0] ?? '';
}

/** Logs in at a link, as `user` where the issuer asks who it is, and answers there if there is something to answer. Gives the last page. */
export async function answerAt(link: string, verdict: 'grant' | 'deny', user = 'ann'): Promise<string> {
  const { browser, page } = await logInAt(link);
  const own = page.body.includes('name="user"') ? await browser.submit(page.url, { user }) : page;
  const form = formTokenOf(own);
  return form === '' ? own.body : (await browser.submit(link, { form, do: verdict })).body;
}
