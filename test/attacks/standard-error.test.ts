// What a stdio server writes to its standard error, and beside its messages to standard output, is printed by the
// adapter, often into a log that others read. Secrets in it are redacted by the detectors, wherever a line is cut, and the
// rest of the line stays.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../support/json.js';
import { makeSecret } from '../support/secrets.js';
import { startStdioRig } from '../support/stdio-server.js';
import { shared } from '../support/with-gateway.js';

let session: string;
const rig = shared(() => startStdioRig());
beforeAll(async () => {
  session = await rig.open();
});

const token = `ghp_${randomBytes(27).toString('hex').slice(0, 36)}`;
const secret = makeSecret();
const short = `x7Q${randomBytes(4).toString('hex')}`;
const key = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey;

async function printed(text: string): Promise<string> {
  const before = rig.log.length;
  await rig.call(session, 'write', { text: `${text}\nend of it\n` });
  await expect.poll(() => rig.log.slice(before).join('\n')).toContain('end of it');
  return rig.log.slice(before).join('\n');
}

describe('standard error of a stdio server', () => {
  it.each([
    ['the token of a service', `GET /user failed with ${token} of alice`, token],
    ['a value behind a name', `API_KEY=${secret} is set`, secret],
    ['a value in JSON', JSON.stringify({ level: 'debug', password: secret }), secret],
    ['an address', `connecting to postgres://admin:${secret}@db.internal/app`, secret],
    ['a header', `> Authorization: Bearer ${secret}`, secret],
    ['a short line', `pwd: ${short}`, short],
    ['a line that is cut in the secret', `${'x '.repeat(490)}${token} and more`, token.slice(0, 12)],
    ['a line with a carriage return', `fetching\r${token}\r done`, token],
    ['a private key of many lines', key, key.split('\n')[3] ?? ''],
  ])('is printed without %s', async (_what, text, hidden) => {
    const lines = await printed(text);
    expect(lines).not.toContain(hidden);
    expect(lines).toMatch(/\[redacted/);
  });

  it('and what is no message on standard output is printed without a secret', async () => {
    const before = rig.log.length;
    await rig.call(session, 'print', { text: `connecting with API_KEY=${secret} ${token}\n` });
    await expect.poll(() => rig.log.length).toBeGreaterThan(before);
    const lines = rig.log.slice(before).join('\n');
    expect(lines).toContain('is not a JSON-RPC message: connecting with API_KEY=[redacted');
    expect(lines).not.toContain(secret.slice(0, 8));
    expect(lines).not.toContain(token.slice(0, 12));
  });

  it('and a private key there is printed by its first line alone', async () => {
    const before = rig.log.length;
    await rig.call(session, 'print', { text: `${key}\nend of it\n` });
    await expect.poll(() => rig.log.slice(before).join('\n')).toContain('end of it');
    const lines = rig.log.slice(before);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('[redacted');
    for (const line of key.split('\n').slice(1, -1)) expect(lines.join('\n')).not.toContain(line.slice(0, 16));
  });

  it.each(['\u2028', '\u2029', '\r', '\n'])(
    'gets a message as one line, whatever ends lines for it: %j',
    async (end) => {
      const text = `one${end}two`;
      // Written as its client may write it: without an escape, and with line ends between the tokens.
      const body = JSON.stringify({ jsonrpc: '2.0', id: 90, method: 'raw', params: { text } }, null, 1);
      const { messages } = await rig.send({ session, body });
      const { line: encoded } = (messages[0]?.['result'] ?? {}) as JsonObject;
      const line = Buffer.from(String(encoded), 'base64').toString();
      expect(line).not.toMatch(/[\r\n\u2028\u2029]/);
      expect(JSON.parse(line)).toEqual(JSON.parse(body));
    },
  );

  it.each([
    'Listening on port 8080, version 1.2.3 (4f5e6d7c)',
    'TypeError: Cannot read properties of undefined (reading "token")',
    'at Object.<anonymous> (/srv/app/node_modules/express/lib/router.js:12:3)',
    '2026-11-28T12:00:00.000Z INFO request 0b9f6c1e-1f0e-4c57-8d5e-0d2f6a8f1c11 took 12 ms',
    'warning: no password is set; usage: server --token TOKEN --password-file FILE',
    '-----BEGIN CERTIFICATE-----',
    'the line after it',
  ])('is printed as it was written where it has no secret: %s', async (text) => {
    const shown = text.startsWith('-----') ? '' : text;
    expect(await printed(text)).toContain(`session 1: stderr: ${shown}`);
  });
});
