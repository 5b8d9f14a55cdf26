// The listeners: data, ops, and admin where it is configured. All are open or none: the first that cannot be
// opened is named with its address, and ends the start. Until the rest of the gateway has started, the data
// listener refuses every call, and the ops listener says that it is not ready.

import type { Authenticator } from '../authn/verify.js';
import type { ListenerSettings, Settings } from '../config/settings.js';
import { createAdminServer } from '../console/admin-server.js';
import type { RevocationService } from '../console/revocation-api.js';
import { createDataServer, type DataServerPorts } from '../edge/server.js';
import type { ControlRow } from '../observe/controls.js';
import type { ListenerAddress } from '../observe/http-listener.js';
import { createOpsServer } from '../observe/ops-server.js';
import { createAdminAccess } from './admin-access.js';
import { secureOptions } from './listener-tls.js';
import type { Observability } from './witness.js';

export type ListenerName = 'data' | 'ops' | 'admin';
export type Listening = {
  readonly listener: ListenerName;
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
};

export type ListenerPorts = {
  readonly data: DataServerPorts;
  readonly observability: Observability;
  readonly authenticator: () => Authenticator;
  readonly isReady: () => boolean;
  /** The state of all controls, looked at now. */
  readonly controls: () => readonly ControlRow[];
  readonly revocations: RevocationService;
};

export type Listeners = {
  /**
   * Opens all; told of the data port as soon as it is known, before the first request. Rejects with
   * ListenerFault where one cannot be opened; `closeData` and `closeRest` then close the others.
   */
  open(onDataPort: (port: number) => void): Promise<readonly Listening[]>;
  /** Ends data first, within `graceMs`; the others serve until `closeRest`. */
  closeData(graceMs: number): Promise<void>;
  closeRest(): Promise<void>;
  /** Takes up the certificates of the next settings. */
  renew(next: Settings): void;
};

/** Makes the listeners of the settings; nothing is open before `open`. */
export function createListeners(settings: Settings, ports: ListenerPorts): Listeners {
  const { metrics, audit } = ports.observability;
  const { listeners, admin } = settings;
  let current = settings;
  const data = createDataServer(ports.data, secureOptions(listeners.data.tls, 'asked'));
  const ops = createOpsServer(withTls(listeners.ops, 'asked'), {
    renderMetrics: metrics.render,
    isReady: ports.isReady,
  });
  const console =
    admin === undefined
      ? undefined
      : createAdminServer(withTls(admin.listener, 'required'), {
          breakGlassToken: admin.breakGlassToken,
          authenticateAdmin: createAdminAccess(admin, ports.authenticator),
          controls: ports.controls,
          revocations: ports.revocations,
          onAccess: (access) => audit.event({ type: 'admin.action', ...access }),
        });
  return {
    async open(onDataPort) {
      const { host, port } = listeners.data;
      const dataPort = await openOne('data', listeners.data, () => data.listen(host, port));
      onDataPort(dataPort.port);
      const open: Listening[] = [dataPort];
      open.push(await openOne('ops', listeners.ops, async () => (await ops.start()).port));
      if (console !== undefined && admin !== undefined) {
        const startConsole = async () => (await console.start()).port;
        open.push(await openOne('admin', admin.listener, startConsole));
      }
      return open;
    },
    renew(next) {
      const before = current;
      current = next;
      const { data: nextData, ops: nextOps } = next.listeners;
      if (isOther(before.listeners.data, nextData)) {
        const secure = secureOptions(nextData.tls, 'asked');
        if (secure !== undefined) data.renew(secure);
      }
      if (isOther(before.listeners.ops, nextOps)) ops.renew(withTls(nextOps, 'asked').secure);
      const [last, shown] = [before.admin?.listener, next.admin?.listener];
      if (last !== undefined && shown !== undefined && isOther(last, shown)) {
        console?.renew(withTls(shown, 'required').secure);
      }
    },
    closeData: (graceMs) => data.close(graceMs),
    async closeRest() {
      await console?.close();
      await ops.close();
    },
  };
}

/** A listener could not be opened. */
export class ListenerError extends Error {
  override readonly name = 'ListenerFault';
}

const WHY: ReadonlyMap<unknown, string> = new Map([
  ['EADDRINUSE', 'the port is taken'],
  ['EACCES', 'this user may not open the port'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
]);

async function openOne(
  listener: ListenerName,
  { host, port, tls }: ListenerSettings,
  start: () => Promise<number>,
): Promise<Listening> {
  try {
    return { listener, host, port: await start(), isSecure: tls !== undefined };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const why = WHY.get(code) ?? 'it cannot be opened';
    const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    throw new ListenerError(
      `the ${listener} listener cannot listen on ${place}: ${why} (${String(code ?? error)})`,
    );
  }
}

function isOther(one: ListenerSettings, other: ListenerSettings): boolean {
  return JSON.stringify(one.tls) !== JSON.stringify(other.tls);
}

function withTls(listener: ListenerSettings, clients: 'asked' | 'required'): ListenerAddress {
  return { host: listener.host, port: listener.port, secure: secureOptions(listener.tls, clients) };
}
