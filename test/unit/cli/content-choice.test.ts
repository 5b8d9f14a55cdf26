// The kinds that `init` and `dev` choose, from definitions to the gateway file that they write.

import { describe, expect, it } from 'vitest';
import { chooseContent } from '../../../src/cli/content-choice.js';
import { loadGateway } from '../../../src/config/load.js';
import { digestListed } from '../../../src/pins/digest.js';
import { type Lock, writeLock } from '../../../src/pins/lock.js';
import { readLock } from '../../../src/pins/lock-reader.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { filesOf, GOOD, KEY_HEX } from '../config/reading.js';

const READ_FILE: JsonObject = {
  name: 'read_file',
  description: 'Reads a file as text.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
};
const DIGEST = digestListed('tool', READ_FILE, true);

function lockOf(definition: JsonObject, status: 'approved' | 'pending'): Lock | undefined {
  const name = String(definition['name']);
  const sha256 = digestListed('tool', definition, true);
  const approval = status === 'approved' ? 'approval: {by: ada, at: "2026-11-20T09:30:00Z", note: read}, ' : '';
  const text = `lockfileVersion: 1
upstream: github
tools:
  ${JSON.stringify(name)}: {status: ${status}, sha256: ${JSON.stringify(sha256)}, ${approval}definition: ${JSON.stringify(definition)}, variants: []}
`;
  const read = readLock('github.lock.yaml', text);
  if (read.lock === undefined) throw new Error(JSON.stringify(read));
  return read.lock;
}

describe('the choice of content', () => {
  it('is written with the digest of the definition, as the gateway reads it', () => {
    const lock = lockOf(READ_FILE, 'approved');
    expect(lock && writeLock(lock)).toContain(DIGEST);
    const choice = chooseContent(lock, { isApproved: true });
    expect(choice?.shown).toContain('code for read_file: ');
    const lines = (choice?.lines ?? []).map((line) => `    ${line}`).join('\n');
    const text = GOOD.replace('issuers: [corp]', `issuers: [corp]\n${lines}`);
    const { settings } = loadGateway('/srv/config/gateway.yaml', {
      ...filesOf({ '/srv/config/gateway.yaml': text }),
      env: { KEY: KEY_HEX },
    });
    expect(settings?.upstreams.get('github')?.content).toEqual({
      kind: 'auto',
      tools: new Map([['read_file', { kind: 'code', digests: [DIGEST] }]]),
    });
  });

  it.each<[string, JsonObject, 'approved' | 'pending']>([
    ['is not approved', READ_FILE, 'pending'],
    ['returns issues', { ...READ_FILE, description: 'Reads the file of an issue.' }, 'approved'],
  ])('is nothing for a tool that %s', (_what, definition, status) => {
    expect(chooseContent(lockOf(definition, status), { isApproved: true })).toBeUndefined();
  });

  it('is the whole server where its command starts one of local files', () => {
    const command = ['npx', '-y', '@modelcontextprotocol/server-filesystem', '/data'];
    const media = lockOf({ ...READ_FILE, name: 'read_media_file' }, 'approved');
    expect(chooseContent(media, { command, isApproved: true })?.lines.at(-1)).toBe(
      'content: {kind: code, tools: {read_media_file: auto}}',
    );
  });
});
