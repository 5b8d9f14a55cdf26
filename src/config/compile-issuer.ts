// Turns one issuer of a checked gateway file into settings. Judges nothing. Contract §3.

import type { FilePath } from './fault.js';
import type { IntrospectionFile, IssuerFile } from './gateway-file.js';
import { impliedBy } from './scope-hierarchy.js';
import type { IntrospectionSettings, IssuerSettings } from './settings.js';

/** What compiling takes from the rest of the file. */
export type IssuerReading = {
  readonly secretAt: (path: FilePath) => string;
  readonly durationMs: (text: string) => number;
};

/**
 * Settings of one issuer.
 *
 * @throws Error where a secret or a duration was not checked before.
 */
export function compileIssuer(
  name: string,
  file: IssuerFile,
  reading: IssuerReading,
): IssuerSettings {
  const { client, scope, groups } = file.claims;
  const { introspection } = file;
  return {
    name,
    issuer: file.issuer,
    network: file.network,
    algorithms: [...(file.algorithms ?? [])],
    tokenType: file.tokenType,
    maxLifetimeMs: reading.durationMs(file.maxLifetime),
    keysMaxAgeMs: reading.durationMs(file.keysMaxAge),
    introspection: introspection && compileIntrospection(name, introspection, reading),
    claims: { client: [client].flat(), scope: [scope].flat(), groups: [groups].flat() },
    impliedScopes: compileHierarchy(file.scopeHierarchy),
  };
}

function compileIntrospection(
  issuer: string,
  file: IntrospectionFile,
  { secretAt, durationMs }: IssuerReading,
): IntrospectionSettings {
  return {
    clientId: file.clientId,
    clientSecret: secretAt(['issuers', issuer, 'introspection', 'clientSecret']),
    authentication: file.authentication,
    endpoint: file.endpoint === undefined ? undefined : new URL(file.endpoint),
    cacheTtlMs: durationMs(file.cacheTtl),
    maxPerSecond: file.maxPerSecond,
  };
}

function compileHierarchy(file: IssuerFile['scopeHierarchy']): IssuerSettings['impliedScopes'] {
  const hierarchy = new Map(Object.entries(file));
  // Scopes come from the wire when they are looked up, so the table has no prototype.
  const implied: Record<string, readonly string[]> = Object.create(null);
  for (const scope of hierarchy.keys()) implied[scope] = impliedBy(scope, hierarchy);
  return implied;
}
