// What programs may read in bytes that have left a gateway: parsers of JSON that take another of two members, decoders
// that go further than they should, file systems and servers that write names in one form. None of this is the code that
// checks them. They read more than any one program does, and judge nothing.

import { posix } from 'node:path';
import { type DefaultTreeAdapterTypes, parseFragment } from 'parse5';
import type { Json } from './json.js';
import { MODEL_PARSERS, memberOf, type Node, type Parser, readNodes } from './model-parsers.js';

/** A value as a program gets it that reads every member through this parser. */
function readWith(parser: Parser, node: Node): Json {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'array':
      return node.items.map((item) => readWith(parser, item));
    case 'object': {
      const names = [...new Set(node.members.map(([name]) => name))];
      return Object.fromEntries(names.map((name) => [name, readWith(parser, memberOf(parser, node, name) ?? node)]));
    }
  }
}

/** The values at a path of names, where `*` is every item of a list, as each of the parsers finds them. */
export function valuesAt(json: string, path: readonly string[]): readonly (Json | undefined)[] {
  const root = readNodes(json.replace(/^\ufeff/, ''));
  return MODEL_PARSERS.flatMap((parser) => nodesAt(parser, [root], path).map((node) => node && readWith(parser, node)));
}

function nodesAt(
  parser: Parser,
  nodes: readonly (Node | undefined)[],
  path: readonly string[],
): readonly (Node | undefined)[] {
  let found = nodes;
  for (const name of path)
    found = found.flatMap((node): readonly (Node | undefined)[] => {
      if (name !== '*') return [memberOf(parser, node, name)];
      return node?.kind === 'array' ? node.items : [];
    });
  return found;
}

/** Every text in a JSON text, names too, of whichever of equal members; and those of a result as a host joins them. */
export function textsIn(json: string): readonly string[] {
  const texts: string[] = [];
  const shown: string[] = [];
  const collect = (node: Node, name: string): void => {
    if (node.kind === 'scalar') {
      texts.push(typeof node.value === 'string' ? node.value : JSON.stringify(node.value));
      if (['text', 'message', 'data'].includes(name) && typeof node.value === 'string') shown.push(node.value);
    }
    if (node.kind === 'array') for (const item of node.items) collect(item, name);
    if (node.kind === 'object')
      for (const [own, member] of node.members) {
        texts.push(own);
        collect(member, own);
      }
  };
  collect(readNodes(json.replace(/^\ufeff/, '')), '');
  return [...texts, shown.join(''), shown.join(' ')];
}

type Reader = (text: string) => string;

const NOT_SHOWN = /\p{Default_Ignorable_Code_Point}|\p{Cc}/gu;
const replaceRuns =
  (runs: RegExp, decode: Reader): Reader =>
  (text) =>
    text.replace(runs, (run) => {
      const decoded = decode(run);
      return /^[\t\n\r\x20-\x7e\u00a0-\uffff]+$/.test(decoded) ? decoded : run;
    });
const decodePercent = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return unescape(escapes);
    }
  });

function textOfHtml(text: string): string {
  const { childNodes } = parseFragment(text.replaceAll('<', '&lt;'));
  return (childNodes as DefaultTreeAdapterTypes.ChildNode[])
    .map((node) => ('value' in node ? node.value : ''))
    .join('');
}

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };
const unescapeJson: Reader = (text) =>
  text.replace(/\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|u\{([0-9a-f]{1,6})\}|(.))/gi, (own, ...found) => {
    const [four, two, any, sign] = found as (string | undefined)[];
    const hex = four ?? two ?? any;
    if (hex === undefined) return CONTROLS[sign ?? ''] ?? sign ?? own;
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : own;
  });

/** What readers of texts make of one. */
export const TEXT_READERS: readonly Reader[] = [
  (text) => text.normalize('NFKC'),
  (text) => text.replace(NOT_SHOWN, ''),
  decodePercent,
  textOfHtml,
  unescapeJson,
  replaceRuns(/[A-Za-z0-9+/_-]{20,}={0,2}/g, (run) => Buffer.from(run, 'base64').toString()),
  replaceRuns(/(?:[0-9a-f]{2}){10,}/gi, (run) => Buffer.from(run, 'hex').toString()),
];

/** A text and what comes of it by so many readers, one behind the other. */
export function readingsOf(text: string, depth: number): ReadonlySet<string> {
  if (text.length < MIN_READ) return new Set([text]);
  return closureOf(text, TEXT_READERS, depth);
}

function closureOf(text: string, readers: readonly Reader[], depth: number): ReadonlySet<string> {
  const found = new Set([text]);
  let last: readonly string[] = [text];
  for (let step = 0; step < depth && found.size < MAX_READINGS; step++) {
    last = last.flatMap((one) => readers.map((read) => read(one))).filter((one) => !found.has(one));
    for (const one of last) found.add(one);
  }
  return found;
}

const MAX_READINGS = 2_000;
/** Nothing that is looked for is shorter, however it is written. */
const MIN_READ = 16;

const inPath =
  (change: Reader): Reader =>
  (uri) => {
    const [, head = '', path = '', rest = ''] = /^([a-z][a-z0-9+.-]*:(?:\/\/[^/?#]*)?)([^?#]*)(.*)$/is.exec(uri) ?? [];
    return head === '' ? uri : head + change(path) + rest;
  };

const bySegment = (path: string, read: Reader): string => path.split('/').map(read).join('/');

/** What servers make of a URI before they look for the resource. */
const URI_READERS: readonly Reader[] = [
  decodePercent,
  (uri) => uri.normalize('NFKC'),
  (uri) => uri.replaceAll('\\', '/'),
  (uri) => uri.split('#', 1)[0] ?? '',
  (uri) => uri.split('?', 1)[0] ?? '',
  (uri) => uri.split('\0', 1)[0] ?? '',
  (uri) => uri.trim(),
  (uri) => uri.replace(/^[a-z][a-z0-9+.-]*:\/*[^/?#]*/i, (head) => head.toLowerCase()),
  (uri) => uri.replace(/^([a-z][a-z0-9+.-]*:)\/*(?=[^/])/i, '$1//'),
  (uri) => uri.replace(/^([^/?#]*:\/\/)[^/?#]*@/, '$1'),
  (uri) => uri.replace(/^([^/?#]*:\/\/[^/?#:]*):\d*(?=[/?#]|$)/, '$1'),
  inPath((path) => (path === '' ? path : posix.normalize(path))),
  inPath((path) => path.replace(/\/+$/, '')),
  inPath((path) => bySegment(path, (segment) => segment.replace(/;.*$/, ''))),
  inPath((path) => bySegment(path, (one) => (/^\.+$/.test(one) ? one : one.replace(/[. ]+$/, '')))),
  (uri) => (URL.canParse(uri) ? new URL(uri).href : uri),
];

/** A URI and what comes of it at servers that read it in several ways, one behind the other. */
export function resourcesReadIn(uri: string): ReadonlySet<string> {
  return closureOf(uri, URI_READERS, URI_DEPTH);
}

const URI_DEPTH = 4;

/** The hosts that readers of URLs find in one. */
export function hostsReadIn(link: string): readonly string[] {
  // Names are looked up as IDNA maps them.
  const dotted = link.normalize('NFKC').replace(/[\u3002\uff0e\uff61]/g, '.');
  const readings = [link, dotted, dotted.replaceAll('\\', '/'), dotted.replace(/[\t\n\r]/g, '')];
  const hosts = readings.flatMap((one, index) => {
    const [, authority = ''] = /^[a-z]+:\/\/([^/?#]*)/i.exec(one) ?? [];
    const [first = '', second = ''] = authority.split('@');
    const last = authority.slice(authority.lastIndexOf('@') + 1);
    const own = authority.includes('@') ? [second, last] : [first];
    const parsed = URL.canParse(one) ? [new URL(one).hostname] : [];
    return index === 0 ? parsed : [...own, ...parsed];
  });
  return hosts.map((host) => decodePercent(host).replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase());
}

// Paths

function decodeOnce(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

function resolveUrl(path: string): string {
  return new URL(path, 'http://host/srv/').pathname.slice('/srv/'.length);
}

const forward = (path: string): string => path.replaceAll('\\', '/');

/** How programs read a relative path below `/srv/`, each as a path in which only dot segments are left. */
export const PATH_READERS: Readonly<Record<string, (path: string) => string>> = {
  'a POSIX file system': (path) => path,
  Windows: (path) => forward(path),
  'Windows, without dots and blanks at the end': (path) =>
    bySegment(forward(path), (one) => (/^\.{1,2}$/.test(one) ? one : one.replace(/[. ]+$/, '')) || '.'),
  'a handler that decodes once': decodeOnce,
  'a handler that decodes twice': (path) => decodeOnce(decodeOnce(path)),
  'a handler that decodes on Windows': (path) => forward(decodeOnce(path)),
  'a handler of bytes': (path) => unescape(path),
  'a form': (path) => decodeOnce(path.replaceAll('+', ' ')),
  'a reader of URLs': (path) => resolveUrl(path),
  'a reader of URLs that decodes': (path) => decodeOnce(resolveUrl(path)),
  'a reader that decodes, then reads a URL': (path) => resolveUrl(decodeOnce(path)),
  'a cut at the query': (path) => path.split('?', 1)[0] ?? '',
  'a cut at the fragment': (path) => path.split('#', 1)[0] ?? '',
  'a cut of the decoded path': (path) => decodeOnce(path).split(/[?#]/, 1)[0] ?? '',
  'a servlet container': (path) => bySegment(path, (one) => decodeOnce(one.replace(/;.*$/, ''))),
  'a proxy that joins slashes': (path) => path.replace(/\/{2,}/g, '/'),
  'a proxy that decodes and joins slashes': (path) => decodeOnce(path).replace(/\/{2,}/g, '/'),
  'a reader of compatibility forms': (path) => decodeOnce(path).normalize('NFKC'),
  'a file system without invisible characters': (path) => path.replace(/\p{Default_Ignorable_Code_Point}/gu, ''),
  'a program that trims': (path) => path.trim(),
  'a program in C': (path) => decodeOnce(path).split('\0', 1)[0] ?? '',
};

/** Every message in what a client received: the body, or the data of each event. */
export function messagesIn(text: string): readonly string[] {
  if (text.startsWith('{')) return [text];
  return text
    .split(/\r\n|[\r\n]/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).trim())
    .filter((data) => data !== '');
}
