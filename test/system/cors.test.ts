// Browser clients, in a real browser: the official SDK in a page of an allowed origin walks from the 401 to a
// tool, and a page of another origin learns nothing. Sources: WHATWG Fetch; MCP 2025-11-25 authorization.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createViteServer } from 'vitest/node';
import { type OidcProvider, startOidcProvider } from '../support/authorization-servers.js';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';
import { type SdkV2Server, startSdkV2Server } from '../support/sdk-servers.js';

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];

let cache: string;
let pages: Awaited<ReturnType<typeof createViteServer>>;
let issuer: OidcProvider;
let server: SdkV2Server;
let gateway: RunningGateway;
let browser: Browser;
let allowed: string;
/** The same pages under another name of this machine, which makes another origin. */
let foreign: string;

beforeAll(async () => {
  cache = await mkdtemp(join(tmpdir(), 'sallyport-pages-'));
  const port = await findFreePort();
  allowed = `http://127.0.0.1:${port}`;
  foreign = `http://localhost:${port}`;
  pages = await createViteServer({
    root: join(import.meta.dirname, 'browser-client'),
    configFile: false,
    cacheDir: cache,
    logLevel: 'error',
    server: { host: '127.0.0.1', port, strictPort: true, hmr: false },
  });
  await pages.listen();
  issuer = await startOidcProvider({ pageUrl: `${allowed}/` });
  server = await startSdkV2Server();
  gateway = await startTestGateway({
    upstreams: [{ name: 'notes', url: server.url, more: ['scopesSupported: ["notes:read"]'] }],
    listener: [`allowedOrigins: ["${allowed}"]`],
    issuerUrl: issuer.issuer,
  });
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.close();
  await server?.close();
  await issuer?.close();
  await pages?.close();
  if (cache !== undefined) await rm(cache, { recursive: true, force: true });
});

async function openPage(origin: string, query = ''): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${origin}/${query}`);
  return page;
}

type Seen = {
  readonly status: number;
  readonly challenge: string | null;
  readonly decision: string | null;
};

/** What a page sees of a plain request; the name of the error where it may see nothing. */
function fetchFrom(page: Page, init: object = {}): Promise<Seen | string> {
  return page.evaluate(
    async ([url, more]) => {
      try {
        const answer = await fetch(url, {
          method: 'POST',
          body: '{}',
          ...more,
          headers: {
            'content-type': 'application/json',
            'mcp-protocol-version': '2025-11-25',
            'mcp-param-region': 'x',
          },
        });
        return {
          status: answer.status,
          challenge: answer.headers.get('www-authenticate'),
          decision: answer.headers.get('sallyport-decision'),
        };
      } catch (error) {
        return (error as Error).name;
      }
    },
    [gateway.url('notes'), init] as const,
  );
}

describe('a client in a browser', () => {
  it('[BND-31] of an allowed origin reads the challenge and its decision', async () => {
    const page = await openPage(allowed);
    const document = `${gateway.publicUrl}/.well-known/oauth-protected-resource/notes`;
    expect(await fetchFrom(page)).toEqual({
      status: 401,
      challenge: `Bearer resource_metadata="${document}", scope="notes:read"`,
      decision: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    // Cookies and the like are never wanted, so that a page that sends them may read nothing.
    expect(await fetchFrom(page, { credentials: 'include' })).toBe('TypeError');
    await page.close();
  });

  it('[BND-31] of an allowed origin logs in by itself and calls a tool', async () => {
    const query = new URLSearchParams({
      server: gateway.url('notes'),
      client: issuer.page.clientId,
    });
    const page = await openPage(allowed, `?${query}`);
    await page.locator('output', { hasText: 'called:' }).waitFor({ timeout: 60_000 });
    expect(await page.locator('output').innerText()).toContain('42');
    await page.close();
  });

  it('[BND-31] of a foreign origin sees nothing, and none of it gets further than the edge', async () => {
    const page = await openPage(foreign);
    const before = (await gateway.audit()).length;
    expect(await fetchFrom(page)).toBe('TypeError');
    // Without a preflight the request leaves the browser, and is refused as foreign.
    const opaque = await page.evaluate(async (url) => {
      const answer = await fetch(url, { method: 'POST', mode: 'no-cors', body: '{}' });
      return [answer.type, answer.status];
    }, gateway.url('notes'));
    expect(opaque).toEqual(['opaque', 0]);
    await expect
      .poll(async () => (await gateway.audit()).slice(before).map((line) => line['decision']?.reasons))
      .toContainEqual(['origin-forbidden']);
    const document = `${gateway.publicUrl}/.well-known/oauth-protected-resource/notes`;
    const read = await page.evaluate(async (url) => {
      const answer = await fetch(url, { headers: { 'mcp-protocol-version': '2025-11-25' } });
      return answer.text();
    }, document);
    expect(JSON.parse(read)).toMatchObject({ resource: gateway.url('notes') });
    await page.close();
  });
});
