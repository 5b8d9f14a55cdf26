// A running gateway with the console, behind a real OpenID Connect provider, in front of an upstream whose definitions
// a test changes; and a browser without a screen: it keeps cookies, follows redirects and sends forms as browsers do.

import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type OidcProvider, startOidcProvider } from './authorization-servers.js';
import { type AttackRig, type RigOptions, startRig } from './gateway.js';
import { findFreePort } from './processes.js';
import type { CertifiedKey } from './tls.js';

export type ConsoleRig = {
  readonly rig: AttackRig;
  readonly provider: OidcProvider;
  readonly url: string;
  readonly breakGlass: string;
  close(): Promise<void>;
};

/** Starts it. Whoever logs in is `user`, with `groups`: `sec` may view, `leads` review, `platform` everything. */
export async function startConsole(
  options: {
    readonly user?: string;
    readonly groups?: readonly string[];
    /** Further members of the login, in flow style. */
    readonly login?: string;
    readonly issuer?: readonly string[];
    /** The provider gives each client another subject for the same person. */
    readonly pairwise?: boolean;
    /** Members of the issuer `test`, in flow style. */
    readonly testIssuer?: readonly string[];
    readonly now?: () => number;
    /** The text of the gateway's key; one of its own where absent. */
    readonly gatewayKey?: string;
    readonly breakGlass?: string;
    /** Members of the upstream in flow style. */
    readonly upstream?: readonly string[];
    /** The name of the upstream, and orders to it before its definitions are approved. */
    readonly name?: string;
    readonly prepare?: RigOptions['prepare'];
    /** Further issuers of administrators, in flow style. */
    readonly admins?: readonly string[];
    /** Further top-level YAML. */
    readonly more?: string;
    /** Policy files by name without suffix; everybody may use everything where absent. */
    readonly policies?: Readonly<Record<string, string>>;
    readonly env?: Readonly<Record<string, string>>;
    readonly pin?: boolean;
    /** Files beside the gateway file. */
    readonly files?: Readonly<Record<string, string>>;
    /** The admin listener speaks TLS with this certificate. */
    readonly tls?: Pick<CertifiedKey, 'cert' | 'key'>;
  } = {},
): Promise<ConsoleRig> {
  const { user = 'ann', groups = ['leads'], pairwise = false, tls } = options;
  const adminPort = await findFreePort();
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${adminPort}`;
  const provider = await startOidcProvider({ user, groups, consoleUrl: `${url}/login/callback`, pairwise });
  const { gatewayKey, breakGlass = randomBytes(32).toString('base64url') } = options;
  const { clientId, clientSecret } = provider.console;
  const login = `login: {clientId: ${clientId}, clientSecret: {env: CONSOLE_SECRET}${options.login ?? ''}}`;
  const rig = await startRig({
    adminPort,
    upstream: options.upstream ?? ['pinning: {maxAge: 1s}'],
    ...(options.testIssuer === undefined ? {} : { issuer: options.testIssuer }),
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(options.prepare === undefined ? {} : { prepare: options.prepare }),
    ...(options.pin === undefined ? {} : { pin: options.pin }),
    ...(options.policies === undefined ? {} : { policies: options.policies }),
    ...(tls === undefined
      ? { files: options.files ?? {} }
      : {
          admin: ['tls: {cert: ./admin.crt, key: {file: ./admin.key}}'],
          files: { 'admin.crt': tls.cert, 'admin.key': tls.key },
        }),
    issuers: [
      `idp: {issuer: ${JSON.stringify(provider.issuer)}, network: loopback, ${[login, ...(options.issuer ?? ['algorithms: [ES256]'])].join(', ')}}`,
    ],
    env: {
      ...options.env,
      CONSOLE_SECRET: clientSecret,
      BREAK_GLASS: breakGlass,
      ...(gatewayKey === undefined ? {} : { GATEWAY_KEY: gatewayKey }),
    },
    more: `${gatewayKey === undefined ? '' : 'keys: [{env: GATEWAY_KEY}]\n'}admin:
  publicUrl: ${url}
  issuers:
    idp:
      audience: https://console.example.com
      roles: {viewer: [sec], reviewer: [leads], admin: [platform]}
${(options.admins ?? []).map((issuer) => `    ${issuer}\n`).join('')}  breakGlass: {token: {env: BREAK_GLASS}}
${options.more ?? ''}`,
    ...(options.now === undefined ? {} : { now: options.now }),
  });
  return {
    rig,
    provider,
    url,
    breakGlass,
    async close() {
      await rig.close();
      await provider.close();
    },
  };
}

export type BrowserPage = {
  readonly status: number;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
};

type Sent = {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly method?: string;
  readonly body?: string;
  /** The authority that a TLS server is verified with. */
  readonly ca?: string | undefined;
};

/** One request on a connection of its own, exactly as it is given. */
export function sendOnce(url: string, { headers = {}, method = 'GET', body, ca }: Sent = {}) {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise<BrowserPage>((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false, ca }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, url, headers: response.headers, body: text }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const MAX_REDIRECTS = 20;

export class TestBrowser {
  /** By host and port, then by name. */
  readonly #jar = new Map<string, Map<string, string>>();
  /** Every URL that was visited. */
  readonly visited: string[] = [];
  readonly #ca: string | undefined;

  /** `ca`: the authority that TLS servers are verified with. */
  constructor(ca?: string) {
    this.#ca = ca;
  }

  cookies(url: string): Map<string, string> {
    const { host } = new URL(url);
    const known = this.#jar.get(host) ?? new Map<string, string>();
    this.#jar.set(host, known);
    return known;
  }

  async #send(url: string, sent: Sent): Promise<BrowserPage> {
    this.visited.push(url);
    const cookies = this.cookies(url);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...sent.headers, ...(cookie === '' ? {} : { cookie }) };
    const page = await sendOnce(url, { ...sent, headers, ca: this.#ca });
    for (const line of [page.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0/i.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return page;
  }

  /** Opens a URL and follows redirects, unless `until` says that one is not to be followed. */
  async open(url: string, until: (next: string) => boolean = () => false): Promise<BrowserPage> {
    let page = await this.#send(url, {});
    for (let count = 0; page.status >= 300 && page.status < 400; count += 1) {
      if (count > MAX_REDIRECTS) throw new Error('too many redirects');
      const next = new URL(String(page.headers['location']), page.url).href;
      if (until(next)) return { ...page, url: next };
      page = await this.#send(next, {});
    }
    return page;
  }

  /** Sends a form as the page at `origin` would. */
  async submit(
    url: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<BrowserPage> {
    const page = await this.#send(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: new URL(url).origin,
        ...headers,
      },
      body: new URLSearchParams(fields).toString(),
    });
    const next = nextOf(page);
    return next === undefined ? page : this.open(new URL(next, url).href);
  }
}

/** Where a browser goes on from the answer to a form: by a redirect, or by a page that leads to another site. */
export function nextOf({ status, headers }: Pick<BrowserPage, 'status' | 'headers'>): string | undefined {
  const [, refreshed] = /^0; url=(.+)$/.exec(String(headers['refresh'] ?? '')) ?? [];
  return status === 303 ? String(headers['location']) : refreshed;
}

/** The token of the first form on a page. */
export function formTokenOf({ body }: Pick<BrowserPage, 'body'>): string {
  return /name="form" value="([^"]+)"/.exec(body)?.[1] ?? '';
}

/** A browser that is logged in at the issuer. */
export async function logIn({ url }: Pick<ConsoleRig, 'url'>, ca?: string): Promise<TestBrowser> {
  const browser = new TestBrowser(ca);
  await browser.open(`${url}/login/with/idp`);
  return browser;
}
