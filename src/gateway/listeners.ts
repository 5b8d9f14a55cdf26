// The listeners: data, ops, and admin where it is configured. Opened in that order, so that nothing says
// "ready" before calls can be served.

import type { Authenticator } from '../authn/verify.js';
import type { Settings } from '../config/settings.js';
import { createAdminServer } from '../console/admin-server.js';
import type { RevocationDesk } from '../console/revocation-api.js';
import { createDataServer, type DataServerPorts } from '../edge/server.js';
import type { ControlRow } from '../observe/controls.js';
import { createOpsServer } from '../observe/ops-server.js';
import { createAdminAccess } from './admin-access.js';
import type { Witness } from './witness.js';

export type ListenerName = 'data' | 'ops' | 'admin';
export type Listening = {
  readonly listener: ListenerName;
  readonly host: string;
  readonly port: number;
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
};

/** Makes the listeners of the settings; nothing is open before `open`. */
export function createListeners(settings: Settings, ports: ListenerPorts): Listeners {
  const { metrics, audit } = ports.witness;
  const { listeners, admin } = settings;
  const data = createDataServer(ports.data);
  const ops = createOpsServer(listeners.ops, {
    renderMetrics: metrics.render,
    isReady: ports.isReady,
  });
  const console =
    admin === undefined
      ? undefined
      : createAdminServer(admin.listener, {
          breakGlassToken: admin.breakGlassToken,
          authenticateAdmin: createAdminAccess(admin, ports.authenticator),
          controls: ports.controls,
          revocations: ports.revocations,
          onAccess: (access) => audit.event({ type: 'admin.action', ...access }),
        });
  return {
    async open(onDataPort) {
      const { host } = listeners.data;
      const port = await data.listen(host, listeners.data.port);
      onDataPort(port);
      const open: Listening[] = [{ listener: 'data', host, port }];
      open.push({ listener: 'ops', host: listeners.ops.host, port: (await ops.start()).port });
      if (console !== undefined && admin !== undefined) {
        const { host: adminHost } = admin.listener;
        open.push({ listener: 'admin', host: adminHost, port: (await console.start()).port });
      }
      return open;
    },
    closeData: (graceMs) => data.close(graceMs),
    async closeRest() {
      await console?.close();
      await ops.close();
    },
  };
}
