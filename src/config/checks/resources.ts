// Checks that upstreams and aggregates of a gateway file have paths and audiences of their own.
// Reports diagnostics and changes nothing. docs/contract.md §3, "serve refuses to start when".

import type { FilePath, ReportDiagnostic } from '../diagnostics.js';
import { quote } from '../schema/validation.js';
import { mapAt, textAt, textsAt, valueAt } from '../yaml.js';

/** Checks upstreams and aggregates against each other. */
export function checkResources(root: unknown, report: ReportDiagnostic): void {
  checkPathsDiffer(root, report);
  checkAudiencesDiffer(root, report);
}

/** Suffixes that legacy SSE clients use below an upstream's path (docs/contract.md §2). */
const RESERVED_SUFFIXES = ['', '/sse', '/message'];

function checkPathsDiffer(root: unknown, report: ReportDiagnostic): void {
  const taken = new Map<string, string>();
  const publicPath = publicPathOf(root);
  for (const resource of resourcesOf(root)) {
    const path = pathOf(root, resource);
    const ownPaths = new Set([
      ...RESERVED_SUFFIXES.map((suffix) => path + suffix),
      // The protected resource metadata is also served with the path of publicUrl inserted.
      publicPath + path,
    ]);
    const clash = [...ownPaths].map((one) => taken.get(one)).find((other) => other !== undefined);
    if (clash !== undefined) {
      report([...resource, 'path'], `this path belongs to ${clash}`, { rule: 'conflict' });
    }
    for (const one of ownPaths) taken.set(one, nounOf(resource));
  }
}

function publicPathOf(root: unknown): string {
  const written = textAt(root, ['publicUrl']) ?? '';
  if (!URL.canParse(written)) return '';
  return new URL(written).pathname.replace(/\/$/, '');
}

/**
 * INVARIANT: a token is valid for one resource only. No audience of an issuer may be accepted by two of
 * the upstreams, the aggregates and the console.
 */
function checkAudiencesDiffer(root: unknown, report: ReportDiagnostic): void {
  const owners = new Map<string, string>();
  for (const resource of resourcesOf(root)) {
    const name = nounOf(resource);
    for (const { issuer, audience, path } of audiencesOf(root, resource)) {
      const key = JSON.stringify([issuer, audience]);
      const owner = owners.get(key);
      if (owner !== undefined && owner !== name) {
        report(path, `${owner} accepts this audience of ${quote(issuer)} too`, {
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
      `${owner} accepts this audience of ${quote(issuer)} too`,
      { rule: 'conflict' },
    );
  }
}

/** Every audience that a token for the gateway itself may have. */
export function ownAudiences(root: unknown): ReadonlySet<string> {
  const accepted = resourcesOf(root).flatMap((resource) => [
    resourceOf(root, resource),
    ...audiencesOf(root, resource).map(({ audience }) => audience),
  ]);
  const adminAudiences = Object.values(mapAt(root, ['admin', 'issuers'])).flatMap(
    (value) => textAt(value, ['audience']) ?? [],
  );
  return new Set([...accepted, ...adminAudiences]);
}

function resourceOf(root: unknown, resource: FilePath): string {
  return (textAt(root, ['publicUrl']) ?? '').replace(/\/$/, '') + pathOf(root, resource);
}

function audiencesOf(
  root: unknown,
  resource: FilePath,
): readonly { issuer: string; audience: string; path: FilePath }[] {
  const resourceId = resourceOf(root, resource);
  return textsAt(root, [...resource, 'issuers']).flatMap(([, issuer]) => {
    const path = [...resource, 'audiences', issuer];
    const mapped = textsAt(root, path);
    if (valueAt(root, path) === undefined) {
      return [{ issuer, audience: resourceId, path: [...resource, 'path'] }];
    }
    return mapped.map(([index, audience]) => ({ issuer, audience, path: [...path, index] }));
  });
}

/** The paths in the file of every upstream and aggregate, each a resource with a path and an audience. */
function resourcesOf(root: unknown): readonly FilePath[] {
  return ['upstreams', 'endpoints'].flatMap((kind) =>
    Object.keys(mapAt(root, [kind])).map((name) => [kind, name]),
  );
}

function nounOf([kind, name]: FilePath): string {
  return `the ${kind === 'upstreams' ? 'upstream' : 'endpoint'} ${quote(String(name))}`;
}

/** The configured path, or `/<name>`. */
function pathOf(root: unknown, resource: FilePath): string {
  return textAt(root, [...resource, 'path']) ?? `/${String(resource.at(-1))}`;
}
