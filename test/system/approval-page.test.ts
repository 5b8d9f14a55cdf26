import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApprovalPageRig, loginOf, startApprovalPage, verifiedNow } from '../support/approval-page.js';
import { FLAGS, findBarriers, findFaintText, shoot, TAKES_PICTURES, takePicture } from '../support/page-checks.js';

const LOOKS = [1280, 768, 320].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);
const CONTENT = {
  args: JSON.stringify({
    owner: 'p\u0430ypal',
    path: 'x\u202ey',
    secret: 'not to be seen',
    text: 'line\n'.repeat(10_000),
    list: Array.from({ length: 12_000 }, (_, at) => at),
    wide: 'w'.repeat(500),
    deep: { a: { b: [1, { c: '<script>document.title = "owned"</script>' }] } },
  }),
  definition: {
    name: 'delete_record',
    title: 'Delete',
    description: 'Deletes a record.',
    inputSchema: { type: 'object' },
  },
  selfReported: { name: 'An agent', version: '1.0' },
  labels: ['untrusted', 'crm'],
  findings: [
    { detector: 'invisible', direction: 'to-upstream', path: '/params/arguments/path', count: 2, action: 'flag' },
  ],
  sensitive: ['/secret'],
} as const;

let rig: ApprovalPageRig;
let browser: Browser;
beforeAll(async () => {
  rig = await startApprovalPage();
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
});
afterAll(async () => {
  await browser?.close();
  await rig?.close();
});

describe('the page of callers in a browser', () => {
  it.each(LOOKS)('has no barrier at $width pixels, $colorScheme, runs no script, and takes an answer', async (look) => {
    const { id } = rig.add({ content: CONTENT });
    const other = rig.add({ content: CONTENT });
    const { width, colorScheme } = look;
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    const check = async (name: string) => {
      expect([name, await page.evaluate(findBarriers)]).toEqual([name, []]);
      expect([name, await page.evaluate(findFaintText)]).toEqual([name, []]);
      await shoot(page, `approve-${name}`, look);
    };
    await page.goto(rig.linkOf(id));
    await check('login');
    await page.getByRole('button', { name: 'Log in to answer' }).click();
    await page.getByRole('heading', { level: 1, name: 'Do you approve this request?' }).waitFor();
    await check('request');
    expect(await page.title()).not.toContain('owned');
    await page.getByRole('link', { name: 'Show what is marked as sensitive' }).click();
    await page.getByText('not to be seen').waitFor();
    await page.goto(`${rig.linkOf(id)}?part=%2Flist`);
    await check('part');
    await page.goto(rig.linkOf(id));
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You approved this request.').waitFor();
    await check('approved');
    await page.goto(rig.linkOf(other.id));
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('You refused this request.').waitFor();
    await page.goto(rig.linkOf('0'.repeat(32)));
    await check('not-found');
    expect(rig.voices.slice(-2).map(({ verdict }) => verdict)).toEqual(['granted', 'denied']);
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    await context.close();
  });

  it('leads from the form to an issuer at another origin, which redirects further, and back', async () => {
    const issuer = createServer(({ url = '' }, response) => {
      const back = new URL(url, 'http://issuer.example').searchParams.get('back') ?? '/';
      // By another host name, as an issuer does that asks a further one.
      const isFirst = !back.startsWith('/hop?');
      const hop = `http://localhost:${port}/?back=${encodeURIComponent(`/hop?${back}`)}`;
      response.writeHead(303, { location: isFirst ? hop : back.slice('/hop?'.length) }).end();
    });
    await new Promise<void>((resolve) => issuer.listen(0, resolve));
    const { port } = issuer.address() as AddressInfo;
    const own = await startApprovalPage({
      client(publicBase) {
        const login = loginOf(() => `${publicBase}/.well-known/sallyport/approve/callback`, verifiedNow);
        return {
          ...login,
          async begin() {
            const begun = await login.begin();
            if (typeof begun === 'string') return begun;
            return { ...begun, url: `http://127.0.0.1:${port}/?back=${encodeURIComponent(begun.url)}` };
          },
        };
      },
    });
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(own.linkOf(own.add().id));
    await page.getByRole('button', { name: 'Log in to answer' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('You approved this request.').waitFor();
    await context.close();
    await own.close();
    issuer.close();
  });
});

describe.runIf(TAKES_PICTURES)('the pictures of the page of callers in the guides', () => {
  it.each(['light', 'dark'] as const)('are taken at the width of a phone, %s', async (colorScheme) => {
    const { subject, demand } = rig.add();
    const { id } = rig.add({
      subject: { ...subject, name: 'delete_ticket' },
      ...{ shown: randomBytes(32).toString('hex'), decisionId: randomUUID() },
      demand: { ...demand, rules: ['desk/ask-before-deleting'], reasons: ['What is deleted cannot be restored.'] },
      content: {
        ...{ args: '{"id":"T-101"}', labels: [], findings: [], sensitive: [] },
        definition: {
          name: 'delete_ticket',
          description: 'Deletes a ticket. It cannot be restored.',
          inputSchema: { type: 'object' },
        },
        selfReported: { name: 'help-desk-agent', version: '1.4' },
      },
    });
    const context = await browser.newContext({ viewport: { width: 390, height: 300 }, colorScheme });
    const page = await context.newPage();
    await page.goto(rig.linkOf(id));
    await page.getByRole('button', { name: 'Log in to answer' }).click();
    await page.getByRole('heading', { level: 1, name: 'Do you approve this request?' }).waitFor();
    await takePicture(page, 'console-approve', colorScheme, 2400);
    await context.close();
  });
});
