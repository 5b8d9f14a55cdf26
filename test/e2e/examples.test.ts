// Each example of config/examples/ as it is shipped, started on this machine, with the calls that its README speaks of: a
// client of the SDK makes one that is allowed and one that is refused. The files are those of the package but for what
// is not here (addresses, issuers, servers), which test/support/shipped-files.ts changes for all of them alike.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryStart } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import type { ConnectedV2 } from '../support/sdk-clients.js';
import { copyShipped, type RunningShipped, type ShippedCopy, startShipped } from '../support/shipped-files.js';
import { withStarted } from '../support/with-gateway.js';

let copy: ShippedCopy;
const tried = new Set<string>();

beforeAll(async () => {
  copy = await copyShipped();
});
afterAll(() => copy?.close());

function withExample(name: string, run: (gateway: RunningShipped) => Promise<void>): Promise<void> {
  tried.add(name);
  return withStarted(() => startShipped(copy, `config/examples/${name}/gateway.yaml`), run);
}

type Client = ConnectedV2['client'];

/** What a caller reads: the text of the result, or why there is none. */
async function call(client: Client, name: string, args: JsonObject = {}): Promise<string> {
  try {
    const { content, isError } = await client.callTool({ name, arguments: args });
    const text = (content as readonly { text?: string }[]).map((block) => block.text ?? '').join('');
    return isError === true ? `refused: ${text}` : text;
  } catch (error) {
    return `refused: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function namesOf(client: Client): Promise<readonly string[]> {
  const { tools } = await client.listTools();
  return tools.map(({ name }) => name).sort();
}

const SUPPORT = { groups: ['support'], scope: 'tickets:read tickets:write crm:read' };

describe('[C-19] the example', () => {
  it('one server: a team reads tickets of two projects, and a stranger sees nothing', () =>
    withExample('one-server', async (gateway) => {
      const client = await gateway.connect('/desk', SUPPORT);
      expect(await namesOf(client)).toEqual(['get_ticket', 'list_tickets', 'post_comment']);
      expect(await call(client, 'get_ticket', { project: 'web', id: 'T-101' })).toContain('Checkout button');
      expect(await call(client, 'get_ticket', { project: 'finance', id: 'T-104' })).toMatch(/^refused: .*"project"/);
      expect(await call(client, 'delete_ticket', { id: 'T-101' })).toMatch(/^refused: .*Unknown tool/);
      const stranger = await gateway.connect('/desk', { groups: [] });
      expect(await namesOf(stranger)).toEqual([]);
      await expect(gateway.connect('/desk', null)).rejects.toThrow();
      expect(gateway.received('desk')).not.toContain('T-104');
    }));

  it('three teams: each has its tools, and a refund has the bound of its team', () =>
    withExample('three-teams', async (gateway) => {
      const refund = async (groups: readonly string[], amount: number): Promise<string> => {
        const client = await gateway.connect('/payments', { groups, scope: 'payments:refund payments:read' });
        return call(client, 'refund', { invoice: 'I-1', amount });
      };
      expect(await refund(['support', 'support-leads'], 50)).toBe('payments did refund');
      expect(await refund(['support', 'support-leads'], 51)).toContain('must be at most 50');
      expect(await refund(['finance'], 500)).toBe('payments did refund');
      expect(await refund(['finance'], 5001)).toContain('Refunds over 5000 are made in the accounting system.');
      expect(await refund(['eng'], 1)).toContain('Unknown tool');
      const client = await gateway.connect('/handbook', { groups: [] });
      const page = await client.readResource({ uri: 'handbook://pages/holidays' });
      expect(page.contents).toMatchObject([{ text: 'This is handbook://pages/holidays.' }]);
    }));

  it('two planners: a token of one endpoint opens nothing of the other', () =>
    withExample('two-planners', async (gateway) => {
      const planner = await gateway.connect('/trusted', { client_id: 'planner' });
      expect(await namesOf(planner)).toEqual(['tickets_create_ticket', 'wiki_search_wiki']);
      expect(await call(planner, 'tickets_create_ticket', { title: 'Paper' })).toBe('tickets did create_ticket');
      const reader = await gateway.connect('/untrusted', { client_id: 'reader' });
      expect(await call(reader, 'web_fetch', { url: 'https://www.example.com/' })).toBe('web did fetch');
      // The reader has no rule at the other endpoint, and its token is not even one for it.
      const strayed = await gateway.connect('/trusted', { client_id: 'reader' });
      expect(await namesOf(strayed)).toEqual([]);
      const token = await gateway.token('/untrusted', { client_id: 'planner' });
      const { status } = await fetch(gateway.url('/trusted'), {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: '{}',
      });
      expect(status).toBe(401);
    }));

  it('flows: after a ticket and a customer, nothing is published', () =>
    withExample('flows', async (gateway) => {
      const client = await gateway.connect('/desk', SUPPORT);
      const comment = () => call(client, 'post_comment', { id: 'T-101', text: 'Done.' });
      expect(await call(client, 'get_ticket', { project: 'web', id: 'T-105' })).toContain('Slow checkout');
      expect(await comment()).toContain('Commented on T-101.');
      expect(await call(client, 'get_customer', { id: 'C-7' })).toContain('business');
      expect(await comment()).toMatch(/^refused: /);
      expect(gateway.received('desk').split('"post_comment"')).toHaveLength(2);
      expect(await gateway.recorded()).toContain('tainted-flow');
      // Another person has received nothing.
      const other = await gateway.connect('/desk', { ...SUPPORT, sub: 'bob' });
      expect(await call(other, 'post_comment', { id: 'T-101', text: 'Done.' })).toContain('Commented');
    }));

  it('signed locks: what two people signed is served, and one other byte is not', async () => {
    await withExample('signed-locks', async (gateway) => {
      const client = await gateway.connect('/desk', SUPPORT);
      expect(await call(client, 'list_tickets', { project: 'web' })).toContain('T-101');
      expect(await call(client, 'delete_ticket', { id: 'T-101' })).toContain('Unknown tool');
    });
    const folder = join(copy.root, 'config/examples/signed-locks');
    const lock = join(folder, 'policies/pins/desk.lock.yaml');
    await writeFile(lock, (await readFile(lock, 'utf8')).replace('reviewer@', 'somebody@'));
    const started = await tryStart({ file: join(folder, 'gateway.yaml'), env: copy.env });
    expect(JSON.stringify(started)).toMatch(/"kind":"refused".*it was changed after its signatures were made/);
  });

  it('sensitive fields: a value is redacted, another is tagged, and an argument is not recorded', () =>
    withExample('sensitive-fields', async (gateway) => {
      const client = await gateway.connect('/desk', SUPPORT);
      const { content, structuredContent, _meta } = await client.callTool({
        name: 'get_customer',
        arguments: { id: 'C-7' },
      });
      expect(structuredContent).toMatchObject({ plan: 'business', note: expect.stringMatching(/^\[redacted:/) });
      expect(JSON.stringify(content)).not.toContain('Deploys with');
      expect(_meta?.['dev.sallyport/taint']).toMatchObject({ pointers: ['/structuredContent/plan'] });
      expect(await call(client, 'post_comment', { id: 'T-101', text: 'She moved.' })).toContain('Commented');
      expect(gateway.received('desk')).toContain('She moved.');
      await expect.poll(() => gateway.recorded()).toContain('[redacted:sensitive]');
      expect(await gateway.recorded()).not.toContain('She moved.');
    }));

  it('several servers as one: one list with prefixes, under the rules of each server', () =>
    withExample('several-servers-as-one', async (gateway) => {
      const claims = { groups: ['eng'], scope: 'github:read web:read' };
      const client = await gateway.connect('/all', claims);
      expect(await namesOf(client)).toEqual(['gh_get_file_contents', 'gh_list_issues', 'gh_search_code', 'web_fetch']);
      expect(await call(client, 'gh_list_issues', { owner: 'acme', repo: 'shop' })).toBe('github did list_issues');
      expect(await call(client, 'gh_create_pull_request', {})).toContain('Unknown tool');
      const web = await gateway.connect('/web', claims);
      expect(await call(web, 'fetch', { url: 'https://www.example.com/' })).toBe('web did fetch');
    }));

  it('stdio servers: one adapter serves both, and nothing is written', () =>
    withExample('stdio-servers', async (gateway) => {
      const files = await gateway.connect('/files', null);
      expect(await call(files, 'read_text_file', { path: 'hello.txt' })).toBe('files did read_text_file');
      expect(await call(files, 'write_file', { path: 'hello.txt', content: '' })).toContain('Unknown tool');
      const memory = await gateway.connect('/memory', null);
      expect(await namesOf(memory)).toContain('search_nodes');
    }));

  it.each(['behind-nginx', 'kubernetes'])('%s: support reads tickets with the scope for it, and closes none', (name) =>
    withExample(name, async (gateway) => {
      const client = await gateway.connect('/tickets', SUPPORT);
      expect(await namesOf(client)).toEqual(['get_ticket', 'list_tickets']);
      expect(await call(client, 'get_ticket', { id: 'T-1' })).toBe('tickets did get_ticket');
      expect(await call(client, 'close_ticket', { id: 'T-1' })).toContain('Unknown tool');
      const other = await gateway.connect('/tickets', { ...SUPPORT, scope: 'none' });
      await expect(other.callTool({ name: 'get_ticket', arguments: { id: 'T-1' } })).rejects.toThrow();
    }),
  );

  it('is started here, each of them', async () => {
    const entries = await readdir(join(copy.root, 'config/examples'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect([...tried].sort()).toEqual(folders.sort());
  });
});
