// Every token that a test's issuer gives out is a canary: nothing but the gateway and the issuer may ever
// see it. What upstreams receive, what the gateway answers, logs, measures and writes down is kept, and
// searched for each token and for every part of its signature, plain and in the usual encodings.

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A shorter part could be there by chance, or for another reason. */
export const PART_CHARACTERS = 16;
/** Parts with fewer different characters are of signatures that are none. */
const MIN_DIFFERENT = 8;
/** At both ends of an encoded text stand characters that depend on what is beside it. */
const ENCODING_EDGE = 4;

export type Leak = { readonly where: string; readonly around: string };

export type Canary = {
  /** A token that nobody else may see. */
  recordToken(token: string): void;
  /** A text that was seen, written or received by somebody. */
  recordSeen(where: string, text: string): void;
  /** Ports of a gateway: what it receives is its own business, what it answers is searched. */
  watchGateway(...ports: readonly number[]): void;
  /** An issuer may see its own tokens, and so may a server that a test asks without a gateway. */
  watchIssuer(port: number): void;
  /** Keeps what every server of this process receives from now on. */
  watchServers(): void;
  /** Every place where a part of a token was found, once a place. */
  leaks(): readonly Leak[];
  /** Begins anew, still watching. */
  forget(): void;
  /** Tokens so far. */
  readonly size: number;
};

/** What a token is searched by: parts of its signature, or of all of it where it has none of its own. */
export function partsOf(token: string): ReadonlySet<string> {
  const segments = token.split('.');
  const core = (segments.length === 3 ? segments[2] : undefined) ?? token;
  const parts = new Set<string>();
  for (const form of [core, Buffer.from(core).toString('hex'), ...encodedForms(core)]) addVaried(form, parts);
  return parts;
}

/** Adds the parts of a text that have enough different characters, which are counted as the part moves on. */
function addVaried(form: string, parts: Set<string>): void {
  const counts = new Map<string, number>();
  const count = (at: number, by: 1 | -1): void => {
    const character = form.charAt(at);
    const left = (counts.get(character) ?? 0) + by;
    if (left === 0) counts.delete(character);
    else counts.set(character, left);
  };
  for (let at = 0; at < form.length; at += 1) {
    count(at, 1);
    if (at >= PART_CHARACTERS) count(at - PART_CHARACTERS, -1);
    if (at + 1 >= PART_CHARACTERS && counts.size >= MIN_DIFFERENT)
      parts.add(form.slice(at + 1 - PART_CHARACTERS, at + 1));
  }
}

/** Base64 of a text looks otherwise at each of three places within what is encoded. */
function encodedForms(core: string): readonly string[] {
  return [0, 1, 2].map((offset) =>
    Buffer.from('x'.repeat(offset) + core)
      .toString('base64url')
      .slice(ENCODING_EDGE, -ENCODING_EDGE),
  );
}

/** The texts that a text stands for: as it is, without percent escapes, without JSON escapes. */
function readings(text: string): readonly string[] {
  const unpercented = text.replace(/%([0-9a-f]{2})/gi, (_, hex) => characterOf(hex));
  const unescaped = text.replace(/\\u([0-9a-f]{4})/gi, (_, hex) => characterOf(hex));
  return [...new Set([text, unpercented, unescaped])];
}

function characterOf(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}

/** Finds a part of a token in a text; returns what stands around it. */
export function findPart(parts: ReadonlySet<string>, text: string): string | undefined {
  return createFinder(parts)(text);
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const LETTER_BITS = 6;
const MIDDLE = PART_CHARACTERS / 2;
const LAST = PART_CHARACTERS - 1;
const NUMBERS = new Uint8Array(128);
for (const [number, letter] of [...LETTERS].entries()) NUMBERS[letter.charCodeAt(0)] = number;

/** Three letters of what stands at a place as one number. */
function sampleAt(text: string, at: number): number {
  const first = NUMBERS[text.charCodeAt(at)] ?? 0;
  const middle = NUMBERS[text.charCodeAt(at + MIDDLE)] ?? 0;
  const last = NUMBERS[text.charCodeAt(at + LAST)] ?? 0;
  return first | (middle << LETTER_BITS) | (last << (2 * LETTER_BITS));
}

/** Upstreams of attacks send megabytes: at most places three letters are enough to see that no part is there. */
function createFinder(parts: ReadonlySet<string>): (text: string) => string | undefined {
  const samples = new Uint8Array(1 << (3 * LETTER_BITS));
  for (const part of parts) samples[sampleAt(part, 0)] = 1;
  return (text) => findAmong(parts, samples, text);
}

function findAmong(parts: ReadonlySet<string>, samples: Uint8Array, text: string): string | undefined {
  for (const reading of readings(text)) {
    // Both alphabets of base64 are one here.
    const plain = reading.replaceAll('+', '-').replaceAll('/', '_');
    for (const run of plain.matchAll(/[\w-]{16,}/g)) {
      const [letters] = run;
      for (let at = 0; at + PART_CHARACTERS <= letters.length; at += 1)
        if (samples[sampleAt(letters, at)] === 1 && parts.has(letters.slice(at, at + PART_CHARACTERS)))
          return plain.slice(Math.max(0, run.index + at - 60), run.index + at + PART_CHARACTERS);
    }
  }
  return undefined;
}

type Received = { readonly port: number; text: string };

/** A canary of its own; tests share {@link canary}. */
export function createCanary(): Canary {
  const tokens = new Set<string>();
  const seen: { readonly where: string; readonly text: string }[] = [];
  const received: Received[] = [];
  const gateways = new Set<number>();
  const issuers = new Set<number>();
  let isWatching = false;

  function onRequest(message: unknown): void {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const port = request.socket.localPort ?? 0;
    if (issuers.has(port)) return;
    if (gateways.has(port)) keepAnswer(response);
    else keepRequest(port, request);
  }

  function keepRequest(port: number, request: IncomingMessage): void {
    const entry: Received = { port, text: `${request.url}\n${request.rawHeaders.join('\n')}\n` };
    received.push(entry);
    const push = request.push.bind(request);
    request.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (chunk !== null) entry.text += String(chunk);
      return push(chunk, encoding);
    };
  }

  function keepAnswer(response: ServerResponse): void {
    const entry = { where: 'an answer of the gateway', text: '' };
    const keep = (chunk: unknown): void => {
      if (typeof chunk === 'string' || chunk instanceof Uint8Array)
        entry.text += Buffer.from(chunk as string).toString('utf8');
    };
    const [write, end] = [response.write, response.end];
    response.write = (...given: unknown[]) => {
      keep(given[0]);
      return Reflect.apply(write, response, given);
    };
    response.end = (...given: unknown[]) => {
      keep(given[0]);
      return Reflect.apply(end, response, given);
    };
    response.once('close', () => {
      seen.push({
        where: entry.where,
        text: `${JSON.stringify(response.getHeaders())}\n${entry.text}`,
      });
    });
  }

  return {
    recordToken: (token) => void tokens.add(token),
    recordSeen: (where, text) => void seen.push({ where, text }),
    watchGateway(...ports) {
      for (const port of ports) gateways.add(port);
    },
    watchIssuer: (port) => void issuers.add(port),
    watchServers() {
      if (isWatching) return;
      isWatching = true;
      channel('http.server.request.start').subscribe(onRequest);
    },
    leaks() {
      const parts = new Set([...tokens].flatMap((token) => [...partsOf(token)]));
      const ofUpstreams = received
        .filter(({ port }) => !gateways.has(port) && !issuers.has(port))
        .map(({ port, text }) => ({ where: `a request to port ${port}`, text }));
      const find = createFinder(parts);
      const found = new Map<string, Leak>();
      for (const { where, text } of [...seen, ...ofUpstreams]) {
        const around = found.has(where) ? undefined : find(text);
        if (around !== undefined) found.set(where, { where, around });
      }
      return [...found.values()];
    },
    forget() {
      for (const set of [tokens, gateways, issuers]) set.clear();
      seen.length = 0;
      received.length = 0;
    },
    get size() {
      return tokens.size;
    },
  };
}

const SHARED = Symbol.for('sallyport.canary');
const holder = globalThis as { [SHARED]?: Canary };

/** The one of this process, which is that of the test file that runs. */
holder[SHARED] ??= createCanary();
export const canary: Canary = holder[SHARED];
