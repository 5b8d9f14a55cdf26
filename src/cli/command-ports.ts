// What commands do outside the process: list an upstream once, write lock files, run a command that signs, and read who
// git says is working; for `init`, find where a host name resolves to, and whether an issuer has metadata that names it
// and is a Keycloak. Connections opened here are closed here. RFC 8414 §3 and §3.3.

import { execFileSync, spawn } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { metadataUrls } from '../auth/issuer.js';
import { gatewayKeys } from '../config/key-material.js';
import type { IssuerSettings, Network, Settings, UpstreamSettings } from '../config/settings.js';
import { mergeObserved, type Observed, observeListing } from '../pins/last-seen.js';
import { bareHost, isAddressAllowed } from '../policy/addresses.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { createKeyRing } from '../state/derived-keys.js';
import { escapeForTerminal } from '../text/escaping.js';
import {
  assertionSigner,
  connectUpstream,
  createSingleUpstreamResources,
  describeListingFailure,
  listingNotes,
} from '../upstream/connection.js';
import { listProfilesOnce } from '../upstream/discovery/discovery.js';
import type { SendRequest } from '../upstream/exchange.js';
import { createGuardedFetch } from '../upstream/safe-fetch.js';

type ObserveOnceOutcome =
  | {
      readonly kind: 'observed';
      readonly observed: Observed;
      /** What of it could not be read, one clause each. */
      readonly notes: readonly string[];
    }
  | { readonly kind: 'unreachable'; readonly why: string };

/** What a listing shows besides definitions. */
export type ObserveEvents = {
  readonly onConnected?: (socket: Socket) => void;
  /** `askedMs`: when the request was sent, in milliseconds since the epoch. */
  readonly onHeaders?: (headers: { readonly [name: string]: string | undefined }, askedMs: number) => void;
};

/** Calls `onHeaders` with the headers of each response. */
function watching(send: SendRequest, onHeaders: NonNullable<ObserveEvents['onHeaders']>): SendRequest {
  return async (input) => {
    const askedMs = Date.now();
    const response = await send(input);
    if ('headers' in response) onHeaders(response.headers, askedMs);
    return response;
  };
}

/** Lists what the upstream offers now, in every era that it speaks and for every client profile. Never rejects. */
export async function observeOnce(
  upstream: UpstreamSettings,
  gateway: Pick<Settings, 'keys' | 'publicBase'>,
  gatewayVersion: string,
  { onConnected, onHeaders = () => undefined }: ObserveEvents = {},
): Promise<ObserveOnceOutcome> {
  const guardedFetch = createGuardedFetch();
  const connectionErrors: string[] = [];
  const { client, sessions, openRequest, sessionVersions } = connectUpstream(upstream, {
    guardedFetch,
    // No listener is open in this process.
    isOwnListener: () => false,
    onConnected,
    now: Date.now,
    ...createSingleUpstreamResources(),
    signer: assertionSigner(createKeyRing(gatewayKeys(gateway))),
    issuer: gateway.publicBase,
    onCredential: () => undefined,
    onTokenRequest: () => undefined,
    onConnectionError: (_what, detail) => connectionErrors.push(detail),
  });
  const { handshakeTimeoutMs: requestTimeoutMs } = upstream.limits;
  try {
    const outcome = await listProfilesOnce(
      { requestTimeoutMs, gatewayVersion, sessionVersions, apps: upstream.apps },
      { openRequest: () => watching(openRequest(), onHeaders), now: Date.now },
    );
    if (outcome.kind === 'listed')
      return {
        kind: 'observed',
        observed: mergeObserved(outcome.listings.map(observeListing)),
        notes: [...new Set(outcome.listings.flatMap(listingNotes))],
      };
    const [connectionError] = connectionErrors;
    return { kind: 'unreachable', why: describeListingFailure(outcome, connectionError) };
  } finally {
    await sessions.close();
    await client.close();
    await guardedFetch.close();
  }
}

const GIT_TIMEOUT_MS = 2_000;

/** `user.name <user.email>` as git is configured for a folder; `undefined` without git or without one of them. */
export function gitIdentity(folder: string): string | undefined {
  const read = (key: string): string =>
    execFileSync('git', ['config', '--get', key], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: GIT_TIMEOUT_MS,
    }).trim();
  try {
    return `${read('user.name')} <${read('user.email')}>`;
  } catch {
    return undefined;
  }
}

const COMMAND_TIMEOUT_MS = 120_000;
const MAX_PRINTED = 64 * 1024;

/**
 * Runs a shell command with this input, which signs with a key that the gateway never reads. Its standard input is a
 * file, because a command may open `/dev/stdin` by name, which is an error for the sockets that Node makes for pipes.
 * What it writes to its standard error is shown. Never rejects.
 */
export async function runCommand(
  command: string,
  input: Uint8Array,
): Promise<{ readonly printed: string } | { readonly why: string }> {
  let folder: string | undefined;
  try {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-sign-'));
    const path = join(folder, 'input');
    await writeFile(path, input, { mode: 0o600 });
    const stdin = await open(path, 'r');
    return await spawnShell(command, stdin.fd).finally(() => stdin.close());
  } catch {
    return { why: 'could not be given its input: the folder for temporary files is not writable' };
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

function spawnShell(command: string, stdin: number): Promise<{ readonly printed: string } | { readonly why: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, {
      shell: true,
      stdio: [stdin, 'pipe', 'inherit'],
      timeout: COMMAND_TIMEOUT_MS,
    });
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      if (printed.length < MAX_PRINTED) printed += text;
    });
    child.on('error', () => resolve({ why: 'could not be started' }));
    child.on('close', (code, signal) => resolve(code === 0 ? { printed } : { why: `ended with ${signal ?? code}` }));
  });
}

/** From the narrowest to the widest: what is allowed in `public` is allowed in `private` too. */
const NETWORKS = ['loopback', 'public', 'private'] as const satisfies readonly Network[];

/** The narrowest network that contains every address of the host; `public` if it has none or one in no network. */
export async function networkOf(url: string): Promise<Network> {
  const host = bareHost(new URL(url).hostname);
  try {
    const addresses = await lookup(host, { all: true });
    const contains = (network: Network): boolean =>
      addresses.every(({ address }) => isAddressAllowed(address, network));
    return NETWORKS.find(contains) ?? 'public';
  } catch {
    return 'public';
  }
}

const METADATA_BOUNDS = { maxBytes: 64 * 1024, timeoutMs: 5_000 };

/** How the token endpoint of every realm of a Keycloak ends. */
const KEYCLOAK_TOKEN_PATH = '/protocol/openid-connect/token';

type IssuerCheck =
  /** `error`: why its metadata cannot be used, for each URL that was tried. */
  { readonly error: string } | { readonly error?: never; readonly isKeycloak: boolean };

/** Reads the metadata of an issuer. */
export async function checkIssuer(issuer: IssuerSettings): Promise<IssuerCheck> {
  const { fetchJson, close } = createGuardedFetch();
  const errors: string[] = [];
  try {
    for (const url of metadataUrls(issuer.issuer)) {
      const outcome = await fetchJson(url, {
        network: issuer.network,
        plaintext: issuer.plaintext,
        ...METADATA_BOUNDS,
      });
      const error = outcome.ok ? mismatchOf(outcome.value, issuer) : outcome.detail;
      if (outcome.ok && error === undefined) return { isKeycloak: isKeycloak(outcome.value) };
      errors.push(`${url.href} ${error}`);
    }
    return { error: errors.join('; ') };
  } finally {
    await close();
  }
}

function isKeycloak(metadata: Json): boolean {
  const endpoint = isObject(metadata) ? metadata['token_endpoint'] : undefined;
  return typeof endpoint === 'string' && endpoint.endsWith(KEYCLOAK_TOKEN_PATH);
}

/** Issuers are compared as strings, without normalization (RFC 8414 §3.3). */
function mismatchOf(metadata: Json, { issuer }: IssuerSettings): string | undefined {
  const named = isObject(metadata) ? metadata['issuer'] : undefined;
  if (named === issuer) return undefined;
  return typeof named === 'string' ? `names the issuer "${escapeForTerminal(named)}"` : 'names no issuer';
}
