// Whoever may use everything sees through the gateway what the upstream says, with nothing added, lost
// or written otherwise, though every control is armed. Source: docs/reference/design.md, "Bytes".

import { beforeAll, describe, expect, it } from 'vitest';
import { EVERYTHING_TEMPLATES, writeOpenPolicy } from '../support/gateway.js';
import { body, onMethod } from '../support/hostile-acts.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { openRawSession, postStateless, type RawSession } from '../support/raw-mcp.js';
import { startEverything, startSdkV2Server } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

let direct: RawSession;
let through: RawSession;

/** The last message of an answer, as it was written. */
function written(text: string): string {
  const lines = text.split('\n').filter((line) => line.startsWith('data: '));
  return lines.at(-1)?.slice('data: '.length) ?? text;
}

/** Both answers to one question, parsed and as written. */
async function askBoth(id: number, method: string, params: object = {}) {
  const [one, other] = [await direct.ask(id, method, params), await through.ask(id, method, params)];
  return {
    status: [one.status, other.status],
    direct: one.messages.at(-1),
    through: other.messages.at(-1),
    bytes: [written(one.text), written(other.text)],
  };
}

const everything = shared(() => startEverything());
const modern = shared(() => startSdkV2Server());
const spelling = shared(() => startHostileUpstream());
const gateway = sharedGateway(() => ({
  upstreams: [
    { name: 'everything', url: everything.url },
    { name: 'modern', url: modern.url },
    { name: 'spelling', url: spelling.url },
  ],
  policies: { open: writeOpenPolicy([...EVERYTHING_TEMPLATES, 'memo://notes/{id}']) },
}));
beforeAll(async () => {
  direct = await openRawSession(everything.url);
  through = await openRawSession(gateway.url('everything'), {
    token: await gateway.token('everything'),
  });
});

describe('sessions', () => {
  it('[E-22] are opened with the same answer', () => {
    const one = direct.opened.messages.at(-1).result;
    const other = through.opened.messages.at(-1).result;
    expect(one.capabilities.tasks).toBeDefined();
    expect(other).toEqual(one);
  });

  it.each(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])(
    '[E-22] list the same: %s',
    async (method) => {
      const both = await askBoth(1, method);
      expect(both.status).toEqual([200, 200]);
      expect(both.through).toEqual(both.direct);
      expect(both.bytes[1]).toBe(both.bytes[0]);
    },
  );

  it.each([
    ['echo', { message: 'plain words, ünïcode, 漢字, "quotes" and \\ backslashes' }],
    ['get-sum', { a: 0.1, b: 2 }],
    ['get-structured-content', { location: 'New York' }],
    ['get-tiny-image', {}],
    ['get-annotated-message', { messageType: 'error', includeImage: true }],
    ['get-resource-links', { count: 4 }],
  ])('[E-22] call the same: %s', async (name, args) => {
    const both = await askBoth(2, 'tools/call', { name, arguments: args });
    expect(both.direct.result.content).toBeDefined();
    expect(both.through).toEqual(both.direct);
    expect(both.bytes[1]).toBe(both.bytes[0]);
  });

  it('[E-22] tell of a failed call and of a mistake of the caller alike', async () => {
    const call = { name: 'gzip-file-as-resource', arguments: { data: 'ftp://nowhere.example/x' } };
    const failed = await askBoth(3, 'tools/call', call);
    expect(failed.direct.result.isError).toBe(true);
    expect(failed.through).toEqual(failed.direct);
    const missing = await askBoth(4, 'prompts/get', { name: 'args-prompt', arguments: {} });
    expect(missing.through.error.code).toBe(missing.direct.error.code);
  });

  it.each([
    ['simple-prompt', {}],
    ['args-prompt', { city: 'Oslo', state: 'none' }],
    ['completable-prompt', { department: 'Sales', name: 'Eve' }],
  ])('[E-22] get the same prompt: %s', async (name, args) => {
    const both = await askBoth(5, 'prompts/get', { name, arguments: args });
    expect(both.direct.result.messages).toHaveLength(1);
    expect(both.through).toEqual(both.direct);
  });

  it('[E-22] read the same documents', async () => {
    const listed = await direct.ask(7, 'resources/list');
    const uris = listed.messages.at(-1).result.resources.map((one: { uri: string }) => one.uri);
    expect(uris).toHaveLength(7);
    for (const uri of uris) {
      const both = await askBoth(8, 'resources/read', { uri });
      expect(both.through).toEqual(both.direct);
    }
  });

  it('[E-22] complete the same', async () => {
    const params = {
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'department', value: 'S' },
    };
    const both = await askBoth(6, 'completion/complete', params);
    expect(both.direct.result.completion.values).toEqual(['Sales', 'Support']);
    expect(both.through).toEqual(both.direct);
  });
});

describe('stateless', () => {
  async function askBothStateless(method: string, params = {}) {
    const token = await gateway.token('modern');
    const [one, other] = [
      await postStateless(modern.url, method, params),
      await postStateless(gateway.url('modern'), method, params, { token }),
    ];
    return { direct: one.messages.at(-1), through: other.messages.at(-1) };
  }

  it.each(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])(
    '[E-23] lists are the same, but for how long and for whom they may be kept: %s',
    async (method) => {
      const both = await askBothStateless(method);
      const kept = { ttlMs: expect.any(Number), cacheScope: 'private' };
      expect(both.through.result).toEqual({ ...both.direct.result, ...kept });
    },
  );

  it.each([
    ['tools/call', { name: 'add', arguments: { a: 2.5, b: 1e-7 } }],
    ['tools/call', { name: 'echo', arguments: { text: 'plain words' } }],
    ['prompts/get', { name: 'greet', arguments: { name: 'you' } }],
  ])('[E-23] answers are the same: %s', async (method, params) => {
    const both = await askBothStateless(method, params);
    expect(both.direct.result).toBeDefined();
    expect(both.through).toEqual(both.direct);
  });
});

describe('bytes', () => {
  const call = { name: 'read_record', arguments: { id: 'one' } };
  // Spellings that no round trip through a parser keeps.
  const odd = '"structuredContent" : {"large":9007199254740993, "tiny":1.0e-7, "zero":-0,\t"e":1E2,"empty":{ }}';

  async function askFor(text: string): Promise<string> {
    spelling.obey(onMethod('tools/call', () => body(text)));
    const session = await openRawSession(gateway.url('spelling'), {
      token: await gateway.token('spelling'),
    });
    return (await session.ask(9, 'tools/call', call)).text;
  }

  it('[E-26] of an answer that hides nothing leave as they came', async () => {
    const text = `{ "jsonrpc":"2.0" ,\n"id":9,"result":{"content":[{"type":"text","text":"\\u0041\\/b"}],${odd}} }`;
    expect(await askFor(text)).toBe(text);
  });

  it('[E-26] around a redaction stay as they came', async () => {
    const card = withCheckDigit('411111111111111');
    const write = (payment: string): string =>
      `{"jsonrpc":"2.0","id":9,"result":{${odd},"content":[{"type":"text","text":"Paid with ${payment}, thanks."}]`;
    const seen = await askFor(`${write(card)}}}`);
    expect(seen).not.toContain(card);
    expect(seen).toContain(odd);
    expect(seen).toMatch(/Paid with \[redacted:[a-z-]+#[a-z2-7]{4}\], thanks\./);
    expect(JSON.parse(seen).result._meta['dev.sallyport/findings']).toHaveLength(1);
  });
});

/** Completes a number by Luhn, so that no card number stands in the source. */
function withCheckDigit(digits: string): string {
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return `${digits}${(10 - (sum % 10)) % 10}`;
}
