// Checks that upstreams and aggregates of a gateway file have paths and audiences of their own.
// Reports diagnostics and changes nothing. docs/contract.md §3, "serve refuses to start when".

import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import type { ReadableGateway } from '../schema/gateway.js';
import { entriesOf, textsOf } from '../schema/readable.js';
import { quote } from '../schema/validation.js';

/** Checks upstreams and aggregates against each other. */
export function checkResources(file: ReadableGateway, report: ReportDiagnostic): void {
  const resources = resourcesOf(file);
  const clashing = checkPathsDiffer(resources, file, report);
  checkAudiencesDiffer(resources, clashing, file, report);
}

/** Suffixes that legacy SSE clients use below an upstream's path (docs/contract.md §2). */
const RESERVED_SUFFIXES = ['', '/sse', '/message'];

/** Reports resources with the path of another, and returns their own audiences, which are equal too. */
function checkPathsDiffer(
  resources: readonly Resource[],
  { publicUrl = '' }: ReadableGateway,
  report: ReportDiagnostic,
): ReadonlySet<string> {
  const clashing = new Set<string>();
  const taken = new Map<string, string>();
  const publicPath = URL.canParse(publicUrl) ? new URL(publicUrl).pathname.replace(/\/$/, '') : '';
  for (const { at, noun, path, id } of resources) {
    const ownPaths = new Set([
      ...RESERVED_SUFFIXES.map((suffix) => path + suffix),
      // The protected resource metadata is also served with the path of publicUrl inserted.
      publicPath + path,
    ]);
    const clash = [...ownPaths].map((one) => taken.get(one)).find((other) => other !== undefined);
    if (clash !== undefined) {
      report([...at, 'path'], `the path ${quote(path)} belongs to ${clash}`, 'conflict');
      clashing.add(id);
    }
    for (const one of ownPaths) taken.set(one, noun);
  }
  return clashing;
}

/**
 * INVARIANT: a token is valid for one resource only. No audience of an issuer may be accepted by two of
 * the upstreams, the aggregates and the console.
 */
function checkAudiencesDiffer(
  resources: readonly Resource[],
  clashing: ReadonlySet<string>,
  { admin }: ReadableGateway,
  report: ReportDiagnostic,
): void {
  const owners = new Map<string, string>();
  const claim = (noun: string, { issuer, audience, path }: Audience): void => {
    const key = JSON.stringify([issuer, audience]);
    const owner = owners.get(key);
    if (owner !== undefined && owner !== noun && !clashing.has(audience)) {
      report(path, `${owner} accepts this audience of ${quote(issuer)} too`, 'conflict');
    }
    owners.set(key, noun);
  };
  for (const { noun, audiences } of resources) for (const one of audiences) claim(noun, one);
  for (const [issuer, { audience }] of entriesOf(admin?.issuers)) {
    if (!audience) continue;
    claim('the console', { issuer, audience, path: ['admin', 'issuers', issuer, 'audience'] });
  }
}

/** Every audience that a token for the gateway itself may have. */
export function ownAudiences(file: ReadableGateway): ReadonlySet<string> {
  const accepted = resourcesOf(file).flatMap(({ id, audiences }) => [
    id,
    ...audiences.map(({ audience }) => audience),
  ]);
  const admins = entriesOf(file.admin?.issuers).flatMap(([, { audience }]) => audience || []);
  return new Set([...accepted, ...admins]);
}

type Audience = { readonly issuer: string; readonly audience: string; readonly path: FilePath };

/** An upstream or aggregate, with its path and its audiences. */
type Resource = {
  readonly at: FilePath;
  readonly noun: string;
  readonly path: string;
  /** `publicUrl` and the path. */
  readonly id: string;
  readonly audiences: readonly Audience[];
};

function resourcesOf({ publicUrl = '', upstreams, endpoints }: ReadableGateway): Resource[] {
  const base = publicUrl.replace(/\/$/, '');
  const resource = (kind: 'upstreams' | 'endpoints', name: string, file: Accepting): Resource => {
    const at = [kind, name];
    const path = file.path || `/${name}`;
    const noun = `the ${kind === 'upstreams' ? 'upstream' : 'endpoint'} ${quote(name)}`;
    return { at, noun, path, id: base + path, audiences: audiencesOf(at, file, base + path) };
  };
  return [
    ...entriesOf(upstreams).map(([name, file]) => resource('upstreams', name, file)),
    ...entriesOf(endpoints).map(([name, file]) => resource('endpoints', name, file)),
  ];
}

type Accepting = {
  readonly path?: string;
  readonly issuers?: readonly string[];
  readonly audiences?: { readonly [issuer: string]: readonly string[] | undefined };
};

function audiencesOf(at: FilePath, { issuers, audiences }: Accepting, id: string): Audience[] {
  return textsOf(issuers).flatMap(([, issuer]): Audience[] => {
    const mapped = audiences?.[issuer];
    if (mapped === undefined) return [{ issuer, audience: id, path: [...at, 'path'] }];
    const path = [...at, 'audiences', issuer];
    return textsOf(mapped).map(([index, audience]) => {
      return { issuer, audience, path: [...path, index] };
    });
  });
}
