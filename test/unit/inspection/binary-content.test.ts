// Payloads in base64: read in whatever encoding they are, edited in the same, and media only where it begins as
// it claims to.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type InspectionOutcome, inspectMessage } from '../../../src/inspection/responses.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../../../src/protocol/jsonrpc.js';
import { createRandom } from '../../support/active-content.js';
import { githubToken, noise } from '../../support/seeded-values.js';
import { withRules } from './samples.js';

const TOKEN = githubToken('payload');
const IMAGE = '![x](https://collect.example/a.png?q=1)';
const SCRIPT = '<script>fetch("//collect.example")</script>';
const PNG = Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001080600000011', 'hex');

const ENCODERS: { readonly [charset: string]: (text: string) => Buffer } = {
  'utf-8': (text) => Buffer.from(text),
  'utf-16le': (text) => Buffer.from(text, 'utf16le'),
  'utf-16be': (text) => Buffer.from(text, 'utf16le').swap16(),
  'utf-32le': (text) => utf32(text, true),
  'utf-32be': (text) => utf32(text, false),
  latin1: (text) => Buffer.from(text, 'latin1'),
};
const BOMS: { readonly [charset: string]: string } = {
  'utf-8': 'efbbbf',
  'utf-16le': 'fffe',
  'utf-16be': 'feff',
  'utf-32le': 'fffe0000',
  'utf-32be': '0000feff',
};

function utf32(text: string, isLittle: boolean): Buffer {
  const bytes = Buffer.alloc([...text].length * 4);
  for (const [at, unit] of [...text].entries()) {
    const code = unit.codePointAt(0) ?? 0;
    if (isLittle) bytes.writeUInt32LE(code, at * 4);
    else bytes.writeUInt32BE(code, at * 4);
  }
  return bytes;
}

function marked(charset: string, text: string): Buffer {
  const body = ENCODERS[charset]?.(text) ?? Buffer.alloc(0);
  return Buffer.concat([Buffer.from(BOMS[charset] ?? '', 'hex'), body]);
}

function blobOf(blob: string, mimeType?: string): JsonObject {
  const typed = mimeType === undefined ? {} : { mimeType };
  return result({ type: 'resource', resource: { uri: 'memo://one', ...typed, blob } });
}

function result(block: Json): JsonObject {
  return { jsonrpc: '2.0', id: 1, result: { content: [block] } };
}

function inspect(message: JsonObject, more: Parameters<typeof withRules>[0] = {}) {
  const text = JSON.stringify(message);
  return inspectMessage({ text, value: message, profile: withRules(more) });
}

/** The bytes that leave, and nothing where the message is withheld. */
function leaving(outcome: InspectionOutcome, message: JsonObject): Buffer | undefined {
  if (outcome.kind === 'withhold') return undefined;
  const value = outcome.kind === 'changed' ? outcome.value : message;
  const { content } = (isObject(value) ? value['result'] : {}) as { content: JsonObject[] };
  const [block = {}] = content;
  const resource = block['resource'];
  const data = isObject(resource) ? resource['blob'] : block['data'];
  return Buffer.from(String(data), 'base64');
}

function through(bytes: Buffer, mimeType?: string): Buffer | undefined {
  const message = blobOf(bytes.toString('base64'), mimeType);
  return leaving(inspect(message), message);
}

describe('[I-53] text in a blob', () => {
  const texts: readonly (readonly [string, string])[] = [
    [`é see ${TOKEN} ü`, 'é see [redacted:github-token] ü'],
    [`é see ${IMAGE} ü`, '![x]'],
    [`<p>é ${SCRIPT}</p>`, '<script'],
    [JSON.stringify({ note: `é ${TOKEN}` }), '[redacted:github-token]'],
  ];
  const cases = Object.keys(ENCODERS).flatMap((charset) => texts.map(([text, sign]) => [charset, text, sign] as const));

  it.each(cases)('is read and edited as the %s that it is', (charset, text, sign) => {
    const plain = ENCODERS[charset]?.(text) ?? Buffer.alloc(0);
    for (const [bytes, type] of [
      [plain, 'text/plain'],
      [plain, undefined],
      [plain, 'application/octet-stream'],
      [plain, `text/plain; charset="${charset === 'latin1' ? 'iso-8859-1' : charset}"`],
      [marked(charset, text), 'text/plain'],
      [marked(charset, text), 'image/png'],
    ] as const) {
      const left = through(bytes, type);
      if (left === undefined) throw new Error('it was withheld');
      const mark = bytes === plain ? '' : (BOMS[charset] ?? '');
      expect(left.toString('hex').startsWith(mark)).toBe(true);
      const body = left.subarray(mark.length / 2);
      const read = decodeOf(charset, body);
      expect(read).toContain('é');
      expect(read).not.toContain(TOKEN);
      if (sign.includes('[redacted:')) expect(read).toContain(sign);
      else expect(read).not.toContain(sign);
    }
  });

  it.each(Object.keys(ENCODERS))('that is clean leaves byte for byte: %s', (charset) => {
    const bytes = marked(charset, 'Grüße aus Köln, 100 % sauber.');
    expect(through(bytes, 'text/plain')).toEqual(bytes);
  });

  it('is edited in a charset of one byte a character, and withheld in one of more', () => {
    const cyrillic = Buffer.concat([Buffer.from([0xcf, 0xf0, 0xe8]), Buffer.from(` ${TOKEN}`)]);
    const left = through(cyrillic, 'text/plain; charset=windows-1251');
    expect(left?.subarray(0, 4)).toEqual(Buffer.from([0xcf, 0xf0, 0xe8, 0x20]));
    expect(left?.toString('latin1')).toContain('[redacted:github-token]');
    const japanese = Buffer.concat([Buffer.from([0x93, 0xfa]), Buffer.from(` ${TOKEN}`)]);
    expect(through(japanese, 'text/plain; charset=shift_jis')).toBeUndefined();
    expect(through(Buffer.from([0x93, 0xfa, 0x96, 0x7b]), 'text/plain; charset=shift_jis')).toEqual(
      Buffer.from([0x93, 0xfa, 0x96, 0x7b]),
    );
  });

  it.each([
    ['UTF-16 is declared for ASCII', Buffer.from(`${IMAGE} `), 'text/plain; charset=utf-16le'],
    ['UTF-16 is declared for a secret', Buffer.from(`${TOKEN} \n`), 'text/plain;charset=utf-16be'],
    [
      'a byte order mark stands before ASCII',
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`${SCRIPT} `)]),
      'text/html',
    ],
  ])('that a client may read otherwise is judged so too: %s', (_what, bytes, type) => {
    expect(through(bytes, type)).toBeUndefined();
  });

  it('is found however short it is', () => {
    for (const charset of Object.keys(ENCODERS)) {
      const left = through(ENCODERS[charset]?.('![](//a.bc)') ?? Buffer.alloc(0), 'text/markdown');
      expect(decodeOf(charset, left ?? Buffer.alloc(0))).not.toContain('![');
    }
    const nested = {
      jsonrpc: '2.0',
      id: 1,
      method: 'sampling/createMessage',
      params: {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                content: [{ type: 'resource', resource: { uri: 'x:y', blob: 'IVtdKC8vYS5iKQ==' } }],
              },
            ],
          },
        ],
      },
    };
    expect(inspect(nested).kind).not.toBe('clean');
  });

  const encoded = Buffer.from(IMAGE).toString('base64');
  it.each([
    ['lines', encoded.replace(/.{8}/g, '$&\r\n')],
    ['blanks', encoded.replace(/.{4}/g, '$& ')],
    ['no padding', encoded.replace(/=+$/, '')],
    ['signs that decoders skip', encoded.replace(/.{4}/g, '$&*')],
    ['base64url before what decoders skip', `-${encoded}`],
    ['padding in the middle', `QQ==${encoded}`],
    ['text behind it', `${encoded}!`],
  ])('is read as careless decoders read it: with %s', (_what, blob) => {
    const message = blobOf(blob, 'text/plain');
    const left = leaving(inspect(message), message);
    expect(left?.toString() ?? '').not.toContain('![x]');
    expect(inspect(message).kind).not.toBe('clean');
  });

  it('of a megabyte in UTF-16 is read to its end', () => {
    const text = `${'plain words and nothing else. '.repeat(15_000)}${TOKEN}`;
    const left = through(Buffer.from(text, 'utf16le'), 'text/plain');
    expect(left?.toString('utf16le')).toContain('[redacted:github-token]');
  });
});

describe('[I-54] media', () => {
  const beginnings: readonly (readonly [string, Buffer])[] = [
    ['image/png', PNG],
    ['image/jpeg', Buffer.from('ffd8ffe000104a464946000101000001', 'hex')],
    ['image/gif', Buffer.from('47494638396101000100800000ffffff00000021', 'hex')],
    ['image/webp', Buffer.from('524946462400000057454250565038200c', 'hex')],
    ['audio/wav', Buffer.from('524946462400000057415645666d7420100000', 'hex')],
    ['audio/mpeg', Buffer.from('fffb9064000000000000000000000000', 'hex')],
    ['audio/mpeg', Buffer.from('49443304000000000023', 'hex')],
    ['audio/ogg', Buffer.from('4f676753000200000000000000', 'hex')],
    ['video/mp4', Buffer.from('0000001866747970697366f6d0000020069736f6d00', 'hex')],
    ['application/zip', Buffer.from('504b0304140000000800', 'hex')],
    ['application/gzip', Buffer.from('1f8b0800000000000003', 'hex')],
  ];
  const grain = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * at * 31 + at * 7) & 0xff));

  it.each(beginnings)('that begins as it claims passes as it came: %s', (type, head) => {
    const bytes = Buffer.concat([head, grain, Buffer.from(IMAGE)]);
    expect(through(bytes, type)).toEqual(bytes);
    expect(through(bytes, `${type.toUpperCase()}; x=1`)).toEqual(bytes);
    expect(through(bytes)).toEqual(bytes);
    const block = { data: bytes.toString('base64'), mimeType: type };
    for (const kind of ['image', 'audio']) {
      const message = result({ type: kind, ...block });
      expect(inspect(message).kind).toBe('clean');
    }
  });

  it.each([
    ['an image that is none', 'image', 'image/png', Buffer.from(`see ${TOKEN} ${IMAGE}`)],
    ['an image in Latin-1', 'image', 'image/png', Buffer.from(`\xe9 ${TOKEN} ${IMAGE}`, 'latin1')],
    ['an image in UTF-16', 'image', 'image/jpeg', Buffer.from(`${TOKEN} ${IMAGE}`, 'utf16le')],
    ['sound in UTF-16 with a mark', 'audio', 'audio/mpeg', marked('utf-16le', `!${TOKEN} ${IMAGE}`)],
    ['a GIF that is all text', 'image', 'image/gif', Buffer.from(`GIF89a ${TOKEN} ${IMAGE}`)],
    ['a picture of another format', 'image', 'image/gif', Buffer.concat([PNG, grain, Buffer.from(` ${TOKEN} `)])],
    ['an SVG', 'image', 'image/svg+xml', Buffer.from(`<svg><script>x</script>${TOKEN}${IMAGE}</svg>`)],
    ['no type', 'image', undefined, Buffer.from(`see ${TOKEN} ${IMAGE}`)],
    ['an unknown type', 'audio', 'audio/x-own', Buffer.from(`see ${TOKEN} ${IMAGE}`)],
  ] as const)('that does not is read as text: %s', (_what, type, mimeType, bytes) => {
    const typed = mimeType === undefined ? {} : { mimeType };
    const message = result({ type, ...typed, data: bytes.toString('base64') });
    const left = leaving(inspect(message), message);
    const read = ['latin1', 'utf16le'].map((one) => left?.toString(one as BufferEncoding) ?? '');
    for (const text of read) {
      expect(text).not.toContain(TOKEN);
      if (!_what.startsWith('a picture')) expect(text).not.toContain('![x]');
    }
  });

  it('a large picture under the name of another format passes, and costs what is text in it', () => {
    const random = createRandom(68);
    const large = Buffer.from(Array.from({ length: 900_000 }, () => random.below(256)));
    const jpeg = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), large]);
    const picture = (bytes: Buffer) => result({ type: 'image', mimeType: 'image/png', data: bytes.toString('base64') });
    expect(inspect(picture(jpeg))).toMatchObject({ kind: 'clean', findings: [] });
    const leaking = picture(Buffer.concat([jpeg, Buffer.from(` ${TOKEN} `), large]));
    const left = leaving(inspect(leaking), leaking);
    expect(left?.toString('latin1') ?? '').not.toContain(TOKEN);
  });

  it.each([' ', '"', '\t', ';charset='])('takes no longer than its length for a type of many %j', (sign) => {
    const mimeType = `image/png;charset=a${sign.repeat(200_000)}x`;
    const message = result({ type: 'image', mimeType, data: PNG.toString('base64') });
    expect(inspect(message)).toMatchObject({ kind: 'clean' });
  });

  it('in a long run of base64 what only looks like a token is none', () => {
    const key = `AI${'za'}${noise('run', 36)}`.slice(0, 39);
    const bytes = Buffer.from(`${'/+'.repeat(2000)}/${key}/${'/+'.repeat(1000)}`, 'base64');
    expect(bytes.toString('base64')).toContain(key);
    expect(inspect(result({ type: 'image', mimeType: 'image/png', data: bytes.toString('base64') })).kind).toBe(
      'clean',
    );
  });

  it('law: bytes without a stretch of text pass as they came, whatever they claim', () => {
    const quiet = fc.uint8Array({ minLength: 16, maxLength: 300 }).map((bytes) => {
      const broken = Buffer.from(bytes);
      for (let at = 0; at < broken.length; at += 4) broken[at] = 0x80 | (at & 0x1f);
      return broken;
    });
    const types = fc.constantFrom('application/octet-stream', 'image/png', 'application/x-own');
    fc.assert(
      fc.property(quiet, types, (bytes, type) => {
        const left = through(bytes, type);
        expect(left?.equals(bytes)).toBe(true);
      }),
    );
  });

  it('law: a secret leaves in no encoding, whatever stands around it and whatever is claimed', () => {
    const charsets = fc.constantFrom(...Object.keys(ENCODERS));
    const types = fc.constantFrom(
      'image/png',
      'image/jpeg',
      'audio/mpeg',
      'application/octet-stream',
      'text/plain',
      'text/plain; charset=utf-16',
      'text/plain; charset=koi8-r',
      'application/pdf; charset=binary',
    );
    const around = fc.string({
      unit: fc.constantFrom('é', 'x', ' ', '\n', '<', '\u0001'),
      maxLength: 40,
    });
    fc.assert(
      fc.property(charsets, types, around, around, (charset, type, before, after) => {
        const text = `${before} ${TOKEN} ${after}`;
        const left = through(ENCODERS[charset]?.(text) ?? Buffer.alloc(0), type);
        if (left === undefined) return;
        for (const one of Object.keys(ENCODERS)) expect(decodeOf(one, left)).not.toContain(TOKEN);
      }),
    );
  });
});

describe('[I-55] encoded runs in a text', () => {
  it.each([
    ['UTF-16LE', Buffer.from(`see ${TOKEN}`, 'utf16le')],
    ['UTF-16LE with a mark', marked('utf-16le', `see ${TOKEN}`)],
    ['UTF-16BE', Buffer.from(`see ${TOKEN}`, 'utf16le').swap16()],
    ['Latin-1', Buffer.from(`für é: ${TOKEN}`, 'latin1')],
  ])('are read in %s', (_charset, bytes) => {
    for (const run of [bytes.toString('base64'), bytes.toString('hex'), bytes.toString('base64url')]) {
      const message = result({ type: 'text', text: `run ${run} now` });
      const outcome = inspect(message);
      if (outcome.kind !== 'changed') throw new Error(outcome.kind);
      expect(outcome.text).not.toContain(run.slice(0, 40));
    }
  });

  it('that are noise stay', () => {
    const noise = Buffer.from(Array.from({ length: 600 }, (_, at) => (at * at * 31 + at * 7) & 0xff));
    expect(inspect(result({ type: 'text', text: noise.toString('base64') })).kind).toBe('clean');
  });
});

function decodeOf(charset: string, bytes: Buffer): string {
  switch (charset) {
    case 'utf-16be':
      return Buffer.from(bytes.subarray(0, bytes.length & ~1))
        .swap16()
        .toString('utf16le');
    case 'utf-32le':
    case 'utf-32be': {
      const units = [];
      for (let at = 0; at + 4 <= bytes.length; at += 4) {
        const code = charset === 'utf-32le' ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
        units.push(code <= 0x10ffff ? String.fromCodePoint(code) : '?');
      }
      return units.join('');
    }
    case 'utf-16le':
      return bytes.toString('utf16le');
    case 'latin1':
      return bytes.toString('latin1');
    default:
      return bytes.toString();
  }
}
