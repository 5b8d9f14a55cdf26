import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let folder: string;
let upstream: Awaited<ReturnType<typeof startDemoUpstream>>;
let running: RunningGateway;
let browser: Browser;
let consoleUrl: string;
const token = randomBytes(32).toString('base64url');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-console-'));
  const file = join(folder, 'token');
  await writeFile(file, token);
  upstream = await startDemoUpstream({});
  running = await startTestGateway({
    upstreams: [{ name: 'desk', url: upstream.url }],
    more: `admin: {breakGlass: {token: {file: ${JSON.stringify(file)}}}}`,
  });
  const admin = running.gateway.listening.find(({ listener }) => listener === 'admin');
  consoleUrl = `http://127.0.0.1:${admin?.port}/`;
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
});

afterAll(async () => {
  await browser?.close();
  await running?.close();
  await upstream?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

describe('the console in a browser', () => {
  it('[R-21] shows nothing before a token, and the state of every control after it', async () => {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(consoleUrl);
    expect(await page.locator('tbody tr').count()).toBe(0);
    await page.fill('input', token);
    await page.click('button');
    const row = page.locator('tr', { hasText: 'pins:desk' });
    await row.waitFor();
    expect(await row.innerText()).toContain('armed');
    expect(await page.locator('tr', { hasText: 'audit' }).innerText()).toContain('armed');
    // The content security policy let the page's own script and style run, and complained of nothing.
    expect(complaints).toEqual([]);
    await page.close();
  });

  it('[R-22] says so when a token is not accepted, and keeps the table empty', async () => {
    const page = await browser.newPage();
    await page.goto(consoleUrl);
    await page.fill('input', 'x'.repeat(32));
    await page.click('button');
    await page.locator('output', { hasText: 'not accepted' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(0);
    await page.close();
  });
});
