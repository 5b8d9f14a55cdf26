// The edge's tables of one version: paths, documents, hosts and origins, made from settings alone.

import { PROOF_ALGORITHMS } from '../authn/proof-key.js';
import type { AggregateSettings, Settings, UpstreamSettings } from '../config/settings.js';
import { metadataDocument, metadataPaths } from '../edge/metadata.js';
import { createAddressOf } from '../edge/peer.js';
import { type EdgeRoute, type EdgeTables, servedHosts } from '../edge/routes.js';
import { NO_LEGACY_SSE_HERE } from '../mcp/eras/channels.js';
import type { PublicKey } from '../state/key-ring.js';

/** Where everyone may read the keys that verify what this gateway signs (contract §2). */
const KEY_SET_PATH = '/.well-known/sallyport/jwks.json';

/**
 * Builds the tables. `listenPort` is the port that is open, where the settings may say 0; `keys` are the
 * public halves of the signing keys.
 */
export function buildTables(
  settings: Settings,
  listenPort: number,
  keys: readonly PublicKey[],
): EdgeTables {
  const takesCertificates = settings.listeners.data.tls?.clientCa !== undefined;
  const routes = new Map<string, EdgeRoute>();
  const documents = new Map([[KEY_SET_PATH, keySetDocument(keys)]]);
  for (const upstream of settings.upstreams.values()) {
    const route = routeOf(upstream);
    routes.set(upstream.path, route);
    routes.set(`${upstream.path}/sse`, { ...route, legacySsePath: 'events' });
    routes.set(`${upstream.path}/message`, { ...route, legacySsePath: 'message' });
  }
  const aggregates = [...settings.aggregates.values()];
  for (const aggregate of aggregates)
    routes.set(aggregate.path, routeOfAggregate(aggregate, settings));
  const absent = new Map(
    aggregates
      .flatMap(({ path }) => [`${path}/sse`, `${path}/message`])
      .map((path) => [path, NO_LEGACY_SSE_HERE]),
  );
  const resources = [...settings.upstreams.values(), ...aggregates];
  for (const resource of resources) {
    // Where nobody authenticates there is no authorization server to name.
    if (resource.authentication === 'none') continue;
    const document = metadataDocument(resource, settings.issuers, {
      proofAlgorithms: PROOF_ALGORITHMS,
      takesCertificates,
    });
    for (const path of metadataPaths(settings.publicUrl, resource.path))
      documents.set(path, document);
  }
  const open = new Set(
    resources.filter(({ authentication }) => authentication === 'none').map(({ name }) => name),
  );
  return {
    routes,
    absent,
    documents,
    hosts: servedHosts(settings.publicUrl, listenPort),
    origins: new Set([settings.publicUrl.origin, ...settings.listeners.data.allowedOrigins]),
    refusesForwarded: (upstream) => open.has(upstream),
    addressOf: createAddressOf(settings.listeners.data.trustedProxies),
  };
}

/** RFC 7517 §5 with the keys of RFC 8037 §2. */
function keySetDocument(keys: readonly PublicKey[]): string {
  return JSON.stringify({
    keys: keys.map(({ keyId, publicKey }) => ({
      kty: 'OKP',
      crv: 'Ed25519',
      kid: keyId,
      use: 'sig',
      alg: 'EdDSA',
      x: publicKey,
    })),
  });
}

function routeOf(upstream: UpstreamSettings): EdgeRoute {
  const { maxRequestBytes, concurrency } = upstream.limits;
  return { upstream: upstream.name, maxRequestBytes, concurrency };
}

/** No member gets a larger body than its own limit allows. */
function routeOfAggregate(
  { name, backends }: AggregateSettings,
  { upstreams }: Settings,
): EdgeRoute {
  const limits = backends.flatMap(({ upstream }) => upstreams.get(upstream) ?? []);
  return {
    upstream: name,
    backends: new Map(limits.map((backend) => [backend.name, backend.limits.concurrency])),
    maxRequestBytes: Math.min(...limits.map((backend) => backend.limits.maxRequestBytes)),
    concurrency: 0,
  };
}
