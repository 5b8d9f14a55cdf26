// What a running gateway keeps until it is restarted: sockets, keys, the store and the audit chain are opened once. A
// reload takes these keys from the version in force and everything else from the file. The two together were never
// checked as one file, so they are checked here: what is valid only with the new values is left out until the restart.
// docs/reference/start-and-reload.md#changes-that-wait-for-a-restart.

import { sortedJson } from '../policy/rule-text.js';
import type { FilePath, PathDiagnostic } from './diagnostics.js';
import type { GatewayConfig } from './schema/gateway.js';
import type { ListenerTls } from './secrets.js';
import type { ListenerSettings, Settings } from './settings.js';

/** The keys that take effect at a start only. Of listeners it is the address, and whether certificates are used. */
const KEPT_KEYS = ['publicUrl', 'keys', 'state', 'audit', 'admin', 'metrics'] as const;
type KeptKey = (typeof KEPT_KEYS)[number];

/** Whether what stands at a path takes effect at a start only. Certificates of listeners do not. */
export function isKept([key]: FilePath): boolean {
  return KEPT_KEYS.some((one) => one === key);
}

/** What is left out entry by entry where it cannot be used. */
const MAPS = ['upstreams', 'issuers', 'endpoints'] as const;
type MapKey = (typeof MAPS)[number];

const LISTENER_NAMES = ['data', 'ops', 'admin'] as const;

/** A gateway file in force, as far as the next reload may go on with it. */
export type KeysInForce = {
  readonly gateway: Omit<GatewayConfig, MapKey | 'inspection'>;
  readonly tls: ListenerTls;
  /** What each kept key means, by its name. Secrets are part of it: it is never shown. */
  readonly meanings: { readonly [key: string]: string };
  /** SHA-256 of the file with these values. */
  readonly hash: string;
};

/** What rules cannot have yet because a key that they need waits for a restart. */
export type Lacking = {
  /** Approvals are not yet answered by those whom the files name. */
  readonly reviewers: boolean;
  /** The files name a store that replicas share, and each still counts for itself. */
  readonly sharedState: boolean;
};

/** What the file says that is not in force before a restart. */
export type Pending = {
  /** Names of keys, in the order of this file's table. */
  readonly keys: readonly string[];
  /** What is left out because it is valid with their new values only: `upstreams.github`. */
  readonly leftOut: readonly string[];
  readonly lacking: Lacking;
};

/** The keys of a checked file that a running gateway keeps. */
export function keysOf(
  { upstreams: _u, issuers: _i, endpoints: _e, inspection: _n, ...gateway }: GatewayConfig,
  tls: ListenerTls,
  settings: Settings,
): KeysInForce {
  return { gateway, tls, meanings: meaningsOf(settings), hash: settings.hash };
}

/** What each key that a running gateway keeps means, by its name, to be compared. */
export function meaningsOf({
  publicBase,
  listeners,
  keys,
  state,
  audit,
  admin,
  metrics,
}: Settings): KeysInForce['meanings'] {
  const { listener, ...console } = admin ?? {};
  const known: { readonly [key in KeptKey | `listeners.${(typeof LISTENER_NAMES)[number]}`]: unknown } = {
    publicUrl: publicBase,
    'listeners.data': addressOf(listeners.data),
    'listeners.ops': addressOf(listeners.ops),
    'listeners.admin': listener && addressOf(listener),
    keys: keys.map(({ id }) => id),
    state,
    audit,
    admin: admin && console,
    metrics,
  };
  return Object.fromEntries(Object.entries(known).map(([key, meaning]) => [key, sortedJson(meaning) ?? '']));
}

/** Certificates may change while a listener is open; whether it uses TLS and asks for client certificates may not. */
function addressOf({ host, port, tls }: ListenerSettings): unknown {
  return [host, port, tls !== undefined, tls?.clientCa !== undefined];
}

type Meanings = Pick<KeysInForce, 'meanings'>;

/** The keys whose values in the files wait for a restart. */
export function pendingKeys(inForce: Meanings, read: Meanings): readonly string[] {
  const [before, after] = [inForce.meanings, read.meanings];
  // Where the console itself is new or goes, its listener is no second key.
  const isOpened = before['admin'] !== '' && after['admin'] !== '';
  return Object.keys(after).filter((key) => after[key] !== before[key] && (key !== 'listeners.admin' || isOpened));
}

/** The file with the kept keys as they are in force. */
export function withKeysInForce(
  gateway: GatewayConfig,
  tls: ListenerTls,
  inForce: KeysInForce,
): { readonly gateway: GatewayConfig; readonly tls: ListenerTls } {
  const kept = Object.fromEntries(KEPT_KEYS.map((key) => [key, inForce.gateway[key]]));
  const keptTls: { -readonly [Name in keyof ListenerTls]: ListenerTls[Name] } = {};
  const listeners = { ...gateway.listeners };
  for (const name of LISTENER_NAMES) {
    const { host, port, tls: open } = inForce.gateway.listeners[name];
    const { tls: written, ...rest } = gateway.listeners[name];
    const used = written && open ? withClientCa(written, open) : open;
    // Each listener has keys of its own beside these.
    Object.assign(listeners, { [name]: { ...rest, host, port, ...(used && { tls: used }) } });
    const [next, before] = [tls[name], inForce.tls[name]];
    const settings = next && before ? withClientCa(next, before) : before;
    if (settings !== undefined) keptTls[name] = settings;
  }
  return { gateway: { ...gateway, ...kept, listeners }, tls: keptTls };
}

/** A certificate is renewed whatever waits; whether client certificates are asked for is decided at the start. */
function withClientCa<Tls extends { readonly clientCa?: string | undefined }>(next: Tls, inForce: Tls): Tls {
  const isSame = (next.clientCa === undefined) === (inForce.clientCa === undefined);
  return isSame ? next : { ...next, clientCa: inForce.clientCa };
}

/** Finds what is wrong with a file, of which only errors count here. */
type FindErrors = (gateway: GatewayConfig) => readonly PathDiagnostic[];

/**
 * The file without the upstreams, issuers and endpoints that are not valid in it, and the names of these. Any other key
 * with an error has the value in force.
 */
export function leaveOutInvalid(
  gateway: GatewayConfig,
  inForce: KeysInForce,
  findErrors: FindErrors,
): { readonly gateway: GatewayConfig; readonly leftOut: readonly string[] } {
  const leftOut = new Set<string>();
  let rest = gateway;
  // What runs already is not built anew: an error in it waits for the restart too.
  const isInForce = ([key]: FilePath, file: GatewayConfig): boolean =>
    KEPT_KEYS.some((kept) => kept === key && file[kept] === inForce.gateway[kept]);
  for (;;) {
    const errors = findErrors(rest).filter((found) => found.severity === 'error' && !isInForce(found.path, rest));
    const before = leftOut.size;
    for (const { path } of errors) {
      const [key = '', name] = path;
      const map = MAPS.find((one) => one === key);
      if (map !== undefined && typeof name === 'string') {
        leftOut.add(`${map}.${name}`);
        const { [name]: _, ...others } = rest[map] as Readonly<Record<string, never>>;
        rest = { ...rest, [map]: others };
      } else {
        leftOut.add(String(key));
        rest = { ...rest, [key]: (inForce.gateway as Readonly<Record<string, unknown>>)[key] };
      }
    }
    if (errors.length === 0) return { gateway: rest, leftOut: [...leftOut] };
    if (leftOut.size === before) throw new Error('what is in force is not valid');
  }
}

/** What rules that the files have need in vain. */
export function lackingOf(files: Settings, inForce: Settings): Lacking {
  const reviewers = ({ admin }: Settings): string =>
    sortedJson(admin && [admin.publicUrl, admin.issuers, admin.breakGlassToken]) ?? '';
  return {
    reviewers: files.admin !== undefined && reviewers(files) !== reviewers(inForce),
    sharedState: files.state.type !== 'memory' && inForce.state.type === 'memory',
  };
}
