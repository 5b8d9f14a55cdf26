// What a schema cannot say about upstreams: their paths, who vouches for callers, which audiences.
// Reports and changes nothing. Contract §3, "serve refuses to start when".

import { isLoopbackHost, judgePath, suggestPath } from './addresses.js';
import { checkUpstreamUrl, isLoopbackGateway } from './checks-origins.js';
import type { FilePath, Report } from './fault.js';
import { quote } from './schema-faults.js';
import { nearestWord } from './suggestion.js';
import { mapAt, textAt, textsAt, valueAt } from './tree.js';
import { readDurationMs } from './units.js';

/** Headers that the gateway or the connection owns: a static credential may not take their place. */
const OWNED_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'content-encoding', 'te', 'trailer'],
  ...[
    'transfer-encoding',
    'upgrade',
    'keep-alive',
    'accept',
    'accept-encoding',
    'origin',
    'expect',
  ],
  ...['last-event-id', 'forwarded', 'via', 'traceparent', 'tracestate', 'baggage'],
]);
const OWNED_HEADER_PREFIXES = ['mcp-', 'proxy-', 'sec-', 'x-forwarded-', 'sallyport-'];

/** Checks every upstream by itself and all of them together. */
export function checkUpstreams(root: unknown, report: Report): void {
  for (const name of Object.keys(mapAt(root, ['upstreams']))) {
    checkUpstreamUrl(root, name, report);
    checkPath(root, name, report);
    checkVouchers(root, name, report);
    checkIntrospected(root, name, report);
    checkAudienceNames(root, name, report);
    checkProfileName(root, name, report);
    checkTimes(root, name, report);
    checkHeader(root, ['upstreams', name, 'credentials'], report);
    checkHeader(root, ['upstreams', name, 'pinning', 'credentials'], report);
  }
  checkPathsDiffer(root, report);
  checkAudiencesDiffer(root, report);
}

/** The path of an upstream: what is written, or `/<name>`. */
export function pathOfUpstream(root: unknown, name: string): string {
  return textAt(root, ['upstreams', name, 'path']) ?? `/${name}`;
}

function checkPath(root: unknown, name: string, report: Report): void {
  const path = ['upstreams', name, 'path'];
  const written = textAt(root, path);
  const fault = written === undefined ? undefined : judgePath(written);
  if (written === undefined || fault === undefined) return;
  const suggestion = suggestPath(written);
  report(path, fault, suggestion === undefined ? {} : { suggestion });
}

function checkVouchers(root: unknown, name: string, report: Report): void {
  const path = ['upstreams', name];
  const isOpen = textAt(root, [...path, 'authentication']) === 'none';
  const hasIssuers = valueAt(root, [...path, 'issuers']) !== undefined;
  if (isOpen) checkOpen(root, path, hasIssuers, report);
  else if (!hasIssuers) {
    report(path, 'the key "issuers" is missing: somebody must vouch for callers', {
      at: 'key',
      rule: 'missing-key',
    });
  }
  const known = Object.keys(mapAt(root, ['issuers']));
  for (const [index, issuer] of textsAt(root, [...path, 'issuers'])) {
    checkName([...path, 'issuers', index], 'issuer', issuer, known, report);
  }
}

/** A token that does not say whose it is must not be shown to issuers in turn (RFC 7662 §4). */
function checkIntrospected(root: unknown, name: string, report: Report): void {
  const path = ['upstreams', name, 'issuers'];
  const asked = textsAt(root, path).filter(
    ([, issuer]) => valueAt(root, ['issuers', issuer, 'introspection']) !== undefined,
  );
  for (const [index] of asked.slice(1)) {
    report([...path, index], 'one issuer of an upstream may be introspected, not several', {
      rule: 'conflict',
    });
  }
}

function checkOpen(root: unknown, path: FilePath, hasIssuers: boolean, report: Report): void {
  const at = [...path, 'authentication'];
  if (hasIssuers) {
    report(at, 'an upstream has issuers or "authentication: none", not both', { rule: 'conflict' });
  }
  if ((textAt(root, [...path, 'binding']) ?? 'none') !== 'none') {
    report([...path, 'binding'], 'without authentication there is no token to be bound', {
      rule: 'conflict',
    });
  }
  const host = textAt(root, ['listeners', 'data', 'host']);
  if (host !== undefined && !isLoopbackHost(host)) {
    report(at, '"authentication: none" needs a data listener on loopback', { rule: 'unsafe' });
  }
  if (!isLoopbackGateway(root)) {
    report(at, '"authentication: none" needs a loopback publicUrl', { rule: 'unsafe' });
  }
}

function checkAudienceNames(root: unknown, name: string, report: Report): void {
  const accepted = textsAt(root, ['upstreams', name, 'issuers']).map(([, issuer]) => issuer);
  for (const issuer of Object.keys(mapAt(root, ['upstreams', name, 'audiences']))) {
    if (accepted.includes(issuer)) continue;
    const suggestion = nearestWord(issuer, accepted);
    report(
      ['upstreams', name, 'audiences', issuer],
      `${quote(issuer)} is not among the issuers of this upstream`,
      { at: 'key', rule: 'unknown-name', ...(suggestion === undefined ? {} : { suggestion }) },
    );
  }
}

function checkProfileName(root: unknown, name: string, report: Report): void {
  const profile = textAt(root, ['upstreams', name, 'inspect']);
  if (profile === undefined) return;
  const known = ['default', ...Object.keys(mapAt(root, ['inspection', 'profiles']))];
  checkName(['upstreams', name, 'inspect'], 'inspection profile', profile, known, report);
}

/** An exchange that must end before its first byte may come would always end so. */
function checkTimes(root: unknown, name: string, report: Report): void {
  const limits = ['upstreams', name, 'limits'];
  const [first, whole] = ['requestTimeout', 'exchangeMax'].map((key) =>
    readDurationMs(textAt(root, [...limits, key]) ?? ''),
  );
  if (first === undefined || whole === undefined || first <= whole) return;
  report([...limits, 'exchangeMax'], '"exchangeMax" is shorter than "requestTimeout"', {
    rule: 'conflict',
  });
}

function checkName(
  path: FilePath,
  kind: string,
  name: string,
  known: readonly string[],
  report: Report,
): void {
  if (known.includes(name)) return;
  const suggestion = nearestWord(name, known);
  report(path, `unknown ${kind} ${quote(name)}`, {
    rule: 'unknown-name',
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

function checkHeader(root: unknown, path: FilePath, report: Report): void {
  const header = textAt(root, [...path, 'header'])?.toLowerCase();
  if (header === undefined) return;
  const isOwned =
    OWNED_HEADERS.has(header) || OWNED_HEADER_PREFIXES.some((prefix) => header.startsWith(prefix));
  if (isOwned) {
    report([...path, 'header'], 'the gateway sets this header itself', { rule: 'conflict' });
  }
}

/** Suffixes that clients of the HTTP+SSE transport use below an upstream's path (contract §2). */
const TAKEN_SUFFIXES = ['', '/sse', '/message'];

function checkPathsDiffer(root: unknown, report: Report): void {
  const names = Object.keys(mapAt(root, ['upstreams']));
  const taken = new Map<string, string>();
  const publicPath = publicPathOf(root);
  for (const name of names) {
    const path = pathOfUpstream(root, name);
    const own = new Set([
      ...TAKEN_SUFFIXES.map((suffix) => path + suffix),
      // Its metadata document is also served with the path of publicUrl inserted.
      publicPath + path,
    ]);
    const clash = [...own].map((one) => taken.get(one)).find((other) => other !== undefined);
    if (clash !== undefined) {
      report(['upstreams', name, 'path'], `this path belongs to the upstream ${quote(clash)}`, {
        rule: 'conflict',
      });
    }
    for (const one of own) taken.set(one, name);
  }
}

function publicPathOf(root: unknown): string {
  const written = textAt(root, ['publicUrl']) ?? '';
  if (!URL.canParse(written)) return '';
  return new URL(written).pathname.replace(/\/$/, '');
}

/** INVARIANT: one token opens one upstream. An audience of one issuer belongs to one upstream. */
function checkAudiencesDiffer(root: unknown, report: Report): void {
  const owners = new Map<string, string>();
  for (const name of Object.keys(mapAt(root, ['upstreams']))) {
    for (const { issuer, audience, path } of audiencesOf(root, name)) {
      const key = JSON.stringify([issuer, audience]);
      const owner = owners.get(key);
      if (owner !== undefined && owner !== name) {
        report(path, `the upstream ${quote(owner)} accepts this audience of ${quote(issuer)} too`, {
          rule: 'conflict',
        });
      }
      owners.set(key, name);
    }
  }
  for (const [issuer, value] of Object.entries(mapAt(root, ['admin', 'issuers']))) {
    const audience = textAt(value, ['audience']);
    const owner = owners.get(JSON.stringify([issuer, audience]));
    if (audience === undefined || owner === undefined) continue;
    report(
      ['admin', 'issuers', issuer, 'audience'],
      `the upstream ${quote(owner)} accepts this audience of ${quote(issuer)} too`,
      { rule: 'conflict' },
    );
  }
}

function audiencesOf(
  root: unknown,
  name: string,
): readonly { issuer: string; audience: string; path: FilePath }[] {
  const own = (textAt(root, ['publicUrl']) ?? '').replace(/\/$/, '') + pathOfUpstream(root, name);
  return textsAt(root, ['upstreams', name, 'issuers']).flatMap(([, issuer]) => {
    const path = ['upstreams', name, 'audiences', issuer];
    const mapped = textsAt(root, path);
    if (valueAt(root, path) === undefined) {
      return [{ issuer, audience: own, path: ['upstreams', name, 'path'] }];
    }
    return mapped.map(([index, audience]) => ({ issuer, audience, path: [...path, index] }));
  });
}
