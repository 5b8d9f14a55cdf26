import { afterEach, expect, test } from 'vitest';
import { mergeFetched } from '../../../src/pins/approval.js';
import { createCatalog, createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { mergeObserved, type Observed, observeListing } from '../../../src/pins/last-seen.js';
import { writeLock } from '../../../src/pins/lock.js';
import { readLock } from '../../../src/pins/lock-reader.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../src/protocol/headers.js';
import { createUpstreamClient } from '../../../src/upstream/client.js';
import {
  type CredentialSource,
  createCredentialSource,
  createPresenter,
} from '../../../src/upstream/credentials/credentials.js';
import { listOnce, type OneListing } from '../../../src/upstream/discovery/discovery.js';
import { createSendRequest } from '../../../src/upstream/exchange.js';
import { connectOptionsFor } from '../../../src/upstream/safe-fetch.js';
import { startListingUpstream } from '../../support/mcp-servers.js';
import { startEverything, startSdkV2Server } from '../../support/sdk-servers.js';
import { APPROVAL } from '../pins/samples.js';

const TIMEOUT_MS = 10_000;
const refuse = () => Promise.reject(new Error('no issuer is asked'));
const NO_ISSUER = {
  guardedFetch: { fetchJson: refuse, postForm: refuse },
  now: Date.now,
  requestTimeoutMs: TIMEOUT_MS,
  onError: () => undefined,
  onCredential: () => undefined,
  onTokenRequest: () => undefined,
};
const NONE = createCredentialSource({ type: 'none' }, NO_ISSUER);

let closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

function list(url: string, own: CredentialSource = NONE): Promise<OneListing> {
  const client = createUpstreamClient({
    url: new URL(url),
    presenter: createPresenter({ callerSource: NONE, gatewaySource: own }),
    limits: {
      requestTimeoutMs: TIMEOUT_MS,
      handshakeTimeoutMs: TIMEOUT_MS,
      streamIdleMs: TIMEOUT_MS,
      concurrency: 4,
    },
    connect: connectOptionsFor('loopback'),
  });
  closing.push(() => client.close());
  const request = createSendRequest(client, 'gateway');
  const settings = { requestTimeoutMs: TIMEOUT_MS, gatewayVersion: '0' };
  return listOnce(settings, { request, now: Date.now });
}

function observedIn(outcome: OneListing): Observed {
  if (outcome.kind !== 'listed') throw new Error(outcome.why);
  return mergeObserved(outcome.listings.map(observeListing));
}

/** States of all tools once what was seen is approved, written, and read again. */
function statesOf(observed: Observed): Set<string> {
  const fetched = mergeFetched({
    upstream: 'demo',
    lock: undefined,
    observed,
    approval: APPROVAL,
  });
  expect(fetched.unusable).toEqual([]);
  const { lock, diagnostics } = readLock('demo.lock.yaml', writeLock(fetched.lock));
  expect(diagnostics).toEqual([]);
  const catalog = createCatalog({
    upstream: 'demo',
    lock,
    observed,
    mode: 'strict',
    onDrift: 'hide-tool',
    undeclaredArguments: 'declared',
    compile: createDefinitionCompiler({ compileSchema, mirroredParameters }),
  });
  const names = catalog.names('tool');
  expect(names.length).toBeGreaterThan(0);
  return new Set(names.map((name) => catalog.statusOf('tool', name).state));
}

test('[L-38] the reference server of the session era is listed, pinned and approved', async () => {
  const everything = await startEverything();
  closing.push(everything.close);
  const observed = observedIn(await list(everything.url));
  expect(observed.listings.map(({ era }) => era)).toEqual(['2025']);
  expect(statesOf(observed)).toEqual(new Set(['approved']));
});

test('[L-38] an SDK v2 server is listed in every era that it serves', async () => {
  for (const [legacy, eras] of [
    ['reject', ['2026']],
    ['stateless', ['2025', '2026']],
  ] as const) {
    const server = await startSdkV2Server({ legacy });
    closing.push(server.close);
    const observed = observedIn(await list(server.url));
    expect(observed.listings.map(({ era }) => era)).toEqual(eras);
    expect(statesOf(observed)).toEqual(new Set(['approved']));
  }
});

test('[L-39] its own credential is shown, and only to the upstream that it is for', async () => {
  const upstream = await startListingUpstream();
  closing.push(upstream.close);
  const value = `Bearer ${'own'.repeat(3)}`;
  const own = { type: 'static', header: 'authorization', value } as const;
  const listed = await list(upstream.url, createCredentialSource(own, NO_ISSUER));
  expect(listed.kind).toBe('listed');
  expect(upstream.asked.length).toBeGreaterThan(0);
  for (const { headers } of upstream.asked) expect(headers.authorization).toBe(value);
});

test('[L-39] an upstream that is not there, or redirects, is unreachable', async () => {
  const upstream = await startListingUpstream();
  upstream.script.intercept = (_, response) => {
    response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end();
    return true;
  };
  expect(await list(upstream.url)).toEqual({
    kind: 'unreachable',
    why: 'protocol',
    detail: 'redirect to http://127.0.0.1:9/',
  });
  await upstream.close();
  expect(await list(upstream.url)).toEqual({
    kind: 'unreachable',
    why: 'unavailable',
    isSpoken: false,
    detail: undefined,
  });
});
