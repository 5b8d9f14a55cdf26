// The listeners: data, ops, and admin where it is configured. Opened in that order, so that nothing says
// "ready" before calls can be served.

import type { Authenticator } from '../authn/verify.js';
import type { ListenerSettings, Settings } from '../config/settings.js';
import { createAdminServer } from '../console/admin-server.js';
import type { RevocationDesk } from '../console/revocation-api.js';
import { createDataServer, type DataServerPorts } from '../edge/server.js';
import type { ControlRow } from '../observe/controls.js';
import type { ListenerAddress } from '../observe/http-listener.js';
import { createOpsServer } from '../observe/ops-server.js';
import { createAdminAccess } from './admin-access.js';
import { secureOptions } from './listener-tls.js';
import type { Witness } from './witness.js';

export type ListenerName = 'data' | 'ops' | 'admin';
export type Listening = {
  readonly listener: ListenerName;
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
};

export type ListenerPorts = {
  readonly data: DataServerPorts;
  readonly witness: Witness;
  readonly authenticator: () => Authenticator;
  readonly isReady: () => boolean;
  /** The state of all controls, looked at now. */
  readonly controls: () => readonly ControlRow[];
  readonly revocations: RevocationDesk;
};

export type Listeners = {
  /** Opens all; told of the data port as soon as it is known, before the first request. */
  open(onDataPort: (port: number) => void): Promise<readonly Listening[]>;
  /** Ends data first, within `graceMs`; the others serve until `closeRest`. */
  closeData(graceMs: number): Promise<void>;
  closeRest(): Promise<void>;
  /** Takes up the certificates of the next settings. */
  renew(next: Settings): void;
};

/** Makes the listeners of the settings; nothing is open before `open`. */
export function createListeners(settings: Settings, ports: ListenerPorts): Listeners {
  const { metrics, audit } = ports.witness;
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
      const port = await data.listen(listeners.data.host, listeners.data.port);
      onDataPort(port);
      const open: Listening[] = [openAs('data', listeners.data, port)];
      open.push(openAs('ops', listeners.ops, (await ops.start()).port));
      if (console !== undefined && admin !== undefined) {
        open.push(openAs('admin', admin.listener, (await console.start()).port));
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

function openAs(listener: ListenerName, { host, tls }: ListenerSettings, port: number): Listening {
  return { listener, host, port, isSecure: tls !== undefined };
}

function isOther(one: ListenerSettings, other: ListenerSettings): boolean {
  return JSON.stringify(one.tls) !== JSON.stringify(other.tls);
}

function withTls(listener: ListenerSettings, clients: 'asked' | 'required'): ListenerAddress {
  return { host: listener.host, port: listener.port, secure: secureOptions(listener.tls, clients) };
}
