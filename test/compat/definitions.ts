// Rows about definitions: what clients could not read, updates that were approved, and the same server under two names.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { approvePin, mergeFetched } from '../../src/pins/approval.js';
import { writeLock } from '../../src/pins/lock.js';
import { readLock } from '../../src/pins/lock-reader.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { resultOf, toolNames } from '../support/wire-client.js';
import { observedOf } from '../unit/pins/samples.js';
import { type CompatRow, type World, withWorld } from './rig.js';

const GOOD: JsonObject = {
  name: 'read_record',
  description: 'Reads a record.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
};

/** The names that each official client lists. */
async function listedBySdks({ access }: World): Promise<readonly (readonly string[])[]> {
  const { url, token } = access;
  const given = token === undefined ? {} : { token };
  const clients = [
    await connectSdkV1(url, given),
    await connectSdkV2(url, '2025', given),
    await connectSdkV2(url, '2026', given),
  ];
  try {
    const lists = await Promise.all(clients.map(({ client }) => client.listTools()));
    return lists.map(({ tools }) => tools.map(({ name }) => name));
  } finally {
    await Promise.all(clients.map((one) => one.close()));
  }
}

/** A definition without the members that are null here. */
function without(definition: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(definition).filter(([, member]) => member !== null));
}

function unreadable(id: string, source: string, given: string, odd: JsonObject, everywhere = true): CompatRow {
  return {
    id,
    area: 'definitions',
    source,
    given,
    verdict: 'changes',
    sees: everywhere
      ? 'The item is left out, because official clients would refuse the whole list, and the log and the control of the pins name the place; its siblings are listed.'
      : 'The item is left out for clients of the revisions with sessions, which would refuse the whole list, with a finding that names the place; others get it.',
    run: () =>
      withWorld({ tools: [GOOD, without({ ...GOOD, name: 'odd', ...odd })] }, async (world) => {
        const own = everywhere ? ['read_record'] : ['read_record', 'odd'];
        expect(await listedBySdks(world)).toEqual([['read_record'], ['read_record'], own]);
        const found = async (): Promise<string> => JSON.stringify(await world.gateway.audit());
        if (everywhere) expect(world.gateway.log()).toContain('definition cannot be used');
        else await expect.poll(found).toContain('"detector":"definition"');
      }),
  };
}

const UPDATED: JsonObject = { ...GOOD, description: 'Reads a record by its id.' };

/** Approves another form in the lock file, in place of what was approved. */
async function approveAlone(world: World, definition: JsonObject): Promise<void> {
  const file = join(world.gateway.folder, 'policies/pins/u.lock.yaml');
  const { lock } = readLock(file, await readFile(file, 'utf8'));
  const observed = observedOf([definition]);
  const fetched = mergeFetched({ upstream: 'u', lock, observed, approval: undefined }).lock;
  const pin = { kind: 'tool', name: 'read_record' } as const;
  const digest = observed.listings[0]?.seen.tool.get('read_record')?.digest ?? '';
  const approval = { by: 'test', at: new Date().toISOString() };
  const change = approvePin({ lock: fetched, pin, digest, approval, observed });
  if (!change.ok) throw new Error(change.why);
  await writeFile(file, writeLock(change.lock));
  await world.gateway.reload();
}

const LONG_AGE = ['pinning: {maxAge: 10m}'];

function isFromGateway({ body }: HostileRequest): boolean {
  return body.includes('"sallyport"');
}

const described = (listed: Awaited<ReturnType<World['request']>>) =>
  (resultOf(listed)['tools'] as JsonObject[]).map(({ description }) => description);

export const rows: readonly CompatRow[] = [
  unreadable(
    'tool-without-input-schema',
    'MCP 2025-11-25, Tool',
    'A server lists a tool without inputSchema beside a good one.',
    { inputSchema: null },
  ),
  unreadable(
    'hint-as-text',
    'MCP 2025-11-25, ToolAnnotations',
    'A server lists a tool with readOnlyHint as the text "true" beside a good one.',
    { annotations: { readOnlyHint: 'true' } },
  ),
  unreadable(
    'title-of-another-type',
    'MCP 2025-11-25, BaseMetadata',
    'A server lists a tool whose title is a number beside a good one.',
    { title: 7 },
  ),
  unreadable(
    'input-schema-without-type',
    'MCP 2025-11-25, Tool',
    'A server lists a tool whose inputSchema does not say that it is of an object.',
    { inputSchema: { properties: {} } },
  ),
  unreadable(
    'output-schema-of-an-array',
    'MCP 2025-11-25 and 2026-07-28, Tool',
    'A server lists a tool whose outputSchema is of an array beside a good one.',
    { outputSchema: { type: 'array' } },
    false,
  ),
  {
    id: 'icons-of-another-type',
    area: 'definitions',
    source: 'MCP 2025-11-25, Icons',
    given: 'A server lists a tool with an embedded icon whose sizes are a text.',
    verdict: 'changes',
    sees: 'The tool is listed without its icons, which official clients would refuse with the whole list.',
    run: () =>
      withWorld(
        {
          tools: [{ ...GOOD, icons: [{ src: 'data:image/png;base64,AAAA', sizes: '48x48' }] }],
        },
        async (world) => {
          expect(await listedBySdks(world)).toEqual([['read_record'], ['read_record'], ['read_record']]);
        },
      ),
  },
  {
    id: 'approved-definition-that-cannot-be-used',
    area: 'definitions',
    source: 'getsentry/sentry-mcp, toolDefinitions.json',
    given: 'An approved tool has an input schema that refers to nothing.',
    verdict: 'refuses',
    sees: 'That tool is not listed, its siblings are; the log and the control of the pins name it, with the error and its place.',
    run: () =>
      withWorld(
        {
          tools: [
            GOOD,
            {
              ...GOOD,
              name: 'odd',
              inputSchema: { type: 'object', properties: { id: { $ref: '#/$defs/none' } } },
            },
          ],
          upstream: LONG_AGE,
        },
        async (world) => {
          expect(toolNames(await world.request('tools/list'))).toEqual(['read_record']);
          await expect
            .poll(() => world.gateway.log())
            .toMatch(/unusable: tool \\"odd\\" \(inputSchema\/properties\/id/);
          expect(world.gateway.log()).toContain('definition cannot be used');
        },
      ),
  },
  {
    id: 'approved-update-shown-to-a-client',
    area: 'definitions',
    source: 'docs/reference/definitions.md',
    given: 'An upstream rolls out a definition that was approved before, long before its next listing is due.',
    verdict: 'accepts',
    sees: 'The first list that shows it has it, and calls pass.',
    run: () =>
      withWorld({ tools: [GOOD], upstream: LONG_AGE }, async (world) => {
        await approveAlone(world, UPDATED);
        world.upstream.offer(() => [UPDATED]);
        expect(described(await world.request('tools/list'))).toEqual([UPDATED['description']]);
        const reply = await world.call('read_record', { id: 'one' });
        expect(reply.message).toHaveProperty('result');
      }),
  },
  {
    id: 'approved-form-shown-to-one-caller-only',
    area: 'definitions',
    source: 'docs/reference/definitions.md',
    given: 'A server shows the approved definition to callers and another one to the gateway.',
    verdict: 'refuses',
    sees: 'The item stays hidden, whatever pages show, and the gateway does not list at every page.',
    run: () =>
      withWorld({ tools: [GOOD], upstream: LONG_AGE }, async (world) => {
        await approveAlone(world, UPDATED);
        world.upstream.offer((request) => [isFromGateway(request) ? GOOD : UPDATED]);
        world.upstream.forget();
        for (let round = 0; round < 5; round += 1) expect(toolNames(await world.request('tools/list'))).toEqual([]);
        const reply = await world.call('read_record', { id: 'one' });
        expect(reply.message).toHaveProperty('error');
        expect(world.upstream.uses()).toEqual([]);
        const own = world.upstream.seen().filter(isFromGateway);
        const listings = own.filter(({ method }) => method === 'tools/list');
        // One listing, in each era.
        expect(listings.length).toBeLessThanOrEqual(2);
      }),
  },
];
