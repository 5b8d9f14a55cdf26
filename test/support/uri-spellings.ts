// Spellings of one resource that some server reads as the same: a seed URI, what servers ignore, decode, resolve,
// collapse or add, and all of that in combination. A rule that restricts the resource must hold for each of them.

import * as fc from 'fast-check';

type Respelling = (uri: string) => string;

const inPath =
  (change: (path: string) => string): Respelling =>
  (uri) => {
    const [, head = '', path = '', rest = ''] = /^([a-z]+:\/\/[^/?#]*)([^?#]*)(.*)$/is.exec(uri) ?? [];
    return head === '' ? uri : head + change(path) + rest;
  };

const inHead =
  (change: (head: string) => string): Respelling =>
  (uri) =>
    uri.replace(/^[a-z]+:\/\/[^/?#]*/i, change);

function escapeOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16)}`;
}

/** What servers take no notice of, by name. Each is a spelling by itself, and they combine. */
export const RESPELLINGS: Readonly<Record<string, Respelling>> = {
  'a fragment': (uri) => (uri.includes('#') ? uri : `${uri}#part`),
  'an empty fragment': (uri) => (uri.includes('#') ? uri : `${uri}#`),
  'a query': (uri) => (/[?#]/.test(uri) ? uri : `${uri}?x=1`),
  'an empty query': (uri) => (/[?#]/.test(uri) ? uri : `${uri}?`),
  'a slash at the end': inPath((path) => `${path}/`),
  'two slashes at the end': inPath((path) => `${path}//`),
  'a dot segment at the end': inPath((path) => `${path}/.`),
  'a dot segment within': inPath((path) => `/.${path}`),
  'a folder and back': inPath((path) => `/open/..${path}`),
  'a folder and back, escaped': inPath((path) => `/open/%2e%2E${path}`),
  'a folder and back, escaped twice': inPath((path) => `/open/%252e%252e${path}`),
  'a folder and back, with an escaped slash': inPath((path) => `/open%2f..${path}`),
  'an escaped letter': inPath((path) => path.replace(/[a-z](?=[a-z]*$)/, escapeOf)),
  'an escaped slash': inPath((path) => path.replace(/(?!^)\/(?=.)/, '%2F')),
  'a slash escaped twice': inPath((path) => path.replace(/(?!^)\/(?=.)/, '%252f')),
  'an escaped backslash': inPath((path) => path.replace(/(?!^)\/(?=.)/, '%5c')),
  'two slashes within': inPath((path) => path.replace(/(?!^)\/(?=.)/, '//')),
  'an escaped NUL and more': inPath((path) => `${path}%00.txt`),
  'an escaped blank at the end': inPath((path) => `${path}%20`),
  'an escaped fragment': inPath((path) => `${path}%23part`),
  'an escaped query': inPath((path) => `${path}%3Fx=1`),
  'an escaped no-break space at the end': inPath((path) => `${path}%C2%A0`),
  'an escaped byte order mark at the end': inPath((path) => `${path}%EF%BB%BF`),
  'a dot behind a segment': inPath((path) => path.replace(/(?<=[a-z])(?=\/)/, '.')),
  'dots at the end': inPath((path) => (/[a-z]$/.test(path) ? `${path}..` : path)),
  'a blank behind a segment': inPath((path) => path.replace(/(?<=[a-z])(?=\/)/, '%20')),
  'the main stream of a file': inPath((path) => (/[a-z]$/.test(path) ? `${path}::$DATA` : path)),
  'a full-width slash': inPath((path) => path.replace(/(?!^)\/(?=.)/, '%EF%BC%8F')),
  'a parameter of a segment': inPath((path) => `${path};v=1`),
  'a parameter of a dot segment': inPath((path) => `/open/..;/${path.slice(1)}`),
  'capitals in the scheme': (uri) => uri.replace(/^[a-z]+/, (scheme) => scheme.toUpperCase()),
  'capitals in the host': inHead((head) => head.replace(/[a-z]+$/, (host) => host.toUpperCase())),
  'an escape in the host': inHead((head) => head.replace(/[a-z](?=[a-z]*$)/, escapeOf)),
  'a dot behind the host': inHead((head) => (/[a-z]$/i.test(head) ? `${head}.` : head)),
  'an empty port': inHead((head) => (/:\d*$/.test(head) ? head : `${head}:`)),
  'a port': inHead((head) => (/[a-z]$/i.test(head) ? `${head}:80` : head)),
  'a parameter of the host': inHead((head) => (/[a-z]$/i.test(head) ? `${head};v=1` : head)),
  'a user': inHead((head) => (head.includes('@') ? head : head.replace('://', '://user@'))),
};

/** Spellings that only hold by themselves: they change what the others look for. */
const REWRITTEN: Readonly<Record<string, Respelling>> = {
  'no slash behind the scheme': (uri) => uri.replace('://', ':'),
  'one slash behind the scheme': (uri) => uri.replace('://', ':/'),
  'a dot segment for a host': (uri) => uri.replace('://', '://../'),
  'three slashes behind the scheme': (uri) => uri.replace('://', ':///'),
};

/** Each single spelling of a URI, with its name. */
export function singleSpellings(uri: string): readonly (readonly [name: string, uri: string])[] {
  return Object.entries({ ...RESPELLINGS, ...REWRITTEN }).map(([name, respell]) => [name, respell(uri)] as const);
}

/** Up to four spellings in combination, in any order. */
export function combinedSpellings(uri: string): fc.Arbitrary<string> {
  const names = fc.array(fc.constantFrom(...Object.keys(RESPELLINGS)), { maxLength: 4 });
  const last = fc.option(fc.constantFrom(...Object.keys(REWRITTEN)), { freq: 4 });
  return fc.tuple(names, last).map(([some, end]) => {
    const spelt = some.reduce((text, name) => RESPELLINGS[name]?.(text) ?? text, uri);
    return end === null ? spelt : (REWRITTEN[end]?.(spelt) ?? spelt);
  });
}
