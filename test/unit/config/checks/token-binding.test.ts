import { describe, expect, it } from 'vitest';
import { meaningsOf, pendingKeys } from '../../../../src/config/restart.js';
import { makeAuthority } from '../../../support/tls.js';
import { diagnosticLines, FOLDER, GOOD, LOCAL, settingsOf } from '../reading.js';

const authority = makeAuthority();
const own = authority.issue();
const other = authority.issue();
const FILES = {
  [`${FOLDER}/tls/data.crt`]: own.cert,
  [`${FOLDER}/tls/data.key`]: own.key,
  [`${FOLDER}/tls/other.key`]: other.key,
  [`${FOLDER}/tls/ca.crt`]: authority.cert,
  [`${FOLDER}/tls/words.txt`]: 'no certificate',
};
const around = { files: FILES };
const tls = (members: string): string => `${GOOD}listeners: {data: {tls: {${members}}}}\n`;
const PAIR = 'cert: tls/data.crt, key: {file: tls/data.key}';

describe('TLS of a listener in the configuration', () => {
  it('[BND-22] is read whole, with what has to be watched', () => {
    const { data, ops } = settingsOf(tls(`${PAIR}, clientCa: tls/ca.crt`), around).listeners;
    expect(data.tls).toMatchObject({
      cert: own.cert,
      key: own.key.trimEnd(),
      clientCa: authority.cert,
      files: [`${FOLDER}/tls/data.crt`, `${FOLDER}/tls/ca.crt`, `${FOLDER}/tls/data.key`],
    });
    expect(data.tls?.expiresAtMs).toBeGreaterThan(Date.now());
    expect(ops).not.toHaveProperty('tls');
  });

  it.each([
    [
      'a key of another certificate',
      'cert: tls/data.crt, key: {file: tls/other.key}',
      'error the file "tls/other.key" holds a private key that is not that of the certificate',
    ],
    [
      'a key that is none',
      'cert: tls/data.crt, key: {file: tls/words.txt}',
      'error the file "tls/words.txt" holds no private key in PEM without a passphrase',
    ],
    [
      'a certificate that is none',
      'cert: tls/words.txt, key: {file: tls/data.key}',
      'error the file "tls/words.txt" holds no certificates in PEM',
    ],
    [
      'a certificate that is not there',
      'cert: tls/no.crt, key: {file: tls/data.key}',
      'error the file "tls/no.crt" cannot be read',
    ],
    [
      'authorities that are none',
      `${PAIR}, clientCa: tls/words.txt`,
      'error the file "tls/words.txt" holds no certificates in PEM',
    ],
    ['authorities that are not there', `${PAIR}, clientCa: tls/no.crt`, 'error the file "tls/no.crt" cannot be read'],
  ])('[BND-22] refuses %s', (_what, members, expected) => {
    const lines = diagnosticLines(tls(members), around);
    expect(lines.map((line) => line.replace(/^\d+:\d+ /, ''))).toEqual([expected]);
  });

  it('[BND-22] refuses a key in the file itself, and half a pair', () => {
    expect(diagnosticLines(tls('cert: tls/data.crt, key: tls/data.key'), around)).toEqual([
      expect.stringContaining('a secret reference'),
    ]);
    expect(diagnosticLines(tls('cert: tls/data.crt'), around)).toEqual([expect.stringContaining('"key" is missing')]);
  });

  it('[BND-22] refuses TLS behind a publicUrl of http', () => {
    const text = `${LOCAL}listeners: {data: {tls: {${PAIR}}}}\n`;
    expect(diagnosticLines(text, around)).toEqual([
      expect.stringContaining('a data listener with TLS needs a publicUrl of https'),
    ]);
  });

  it('[BND-22] takes other certificates at a reload, and names a restart for TLS itself', () => {
    const plain = settingsOf(GOOD);
    const secure = settingsOf(tls(PAIR), around);
    const renewed = settingsOf(tls(PAIR), {
      files: {
        ...FILES,
        [`${FOLDER}/tls/data.crt`]: other.cert,
        [`${FOLDER}/tls/data.key`]: other.key,
      },
    });
    const mutual = settingsOf(tls(`${PAIR}, clientCa: tls/ca.crt`), around);
    expect(pendingKeys({ meanings: meaningsOf(secure) }, { meanings: meaningsOf(renewed) })).toEqual([]);
    for (const [one, next] of [
      [plain, secure],
      [secure, plain],
      [secure, mutual],
    ] as const)
      expect(pendingKeys({ meanings: meaningsOf(one) }, { meanings: meaningsOf(next) })).toEqual(['listeners.data']);
  });
});

describe('what an upstream may demand', () => {
  const demand = (binding: string, more = ''): string =>
    `${GOOD.replace('    issuers: [corp]', `    issuers: [corp]\n    binding: ${binding}`)}${more}`;

  it('[BND-20] is a client certificate only where the listener asks for one', () => {
    expect(diagnosticLines(demand('mtls'))).toEqual([
      '12:14 error "mtls" needs "listeners.data.tls.clientCa": no header of a proxy proves one',
    ]);
    const mutual = `listeners: {data: {tls: {${PAIR}, clientCa: tls/ca.crt}}}\n`;
    expect(settingsOf(demand('mtls', mutual), around).upstreams.get('github')?.binding).toBe('mtls');
    expect(settingsOf(demand('any')).upstreams.get('github')?.binding).toBe('any');
    expect(settingsOf(GOOD).upstreams.get('github')?.binding).toBe('none');
  });

  it('[BND-13] is nothing where nobody authenticates', () => {
    expect(diagnosticLines(`${LOCAL.replace('none\n', 'none\n    binding: dpop\n')}`)).toEqual([
      expect.stringContaining('without authentication there is no token to be bound'),
    ]);
  });

  it('[BND-05] bounds the age of a proof', () => {
    const lines = diagnosticLines(`${GOOD}listeners: {data: {dpop: {maxAge: 6m}}}\n`);
    expect(lines).toEqual([expect.stringContaining('a proof is good for 5m at most')]);
  });
});
