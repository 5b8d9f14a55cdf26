import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApprovalPageRig, startApprovalPage } from '../support/approval-page.js';
import { FLAGS, findBarriers, findFaintText, shoot } from '../support/page-checks.js';

const LOOKS = [
  { width: 1280, colorScheme: 'light' },
  { width: 768, colorScheme: 'dark' },
  { width: 320, colorScheme: 'light' },
] as const;
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
});
