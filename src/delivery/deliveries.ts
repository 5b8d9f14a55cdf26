// The receivers of the audit lines of a gateway: made from the settings, started behind the audit log, ended behind it.
// docs/reference/audit.md#delivery

import type { Socket } from 'node:net';
import type { OwnFile } from '../audit/sink.js';
import type { AuditSettings, DeliverySettings } from '../config/settings.js';
import type { Emit } from '../policy/events.js';
import { createGuardedFetch } from '../upstream/safe-fetch.js';
import { type Delivery, type DeliveryState, type Receiver, startDelivery } from './delivery.js';
import { createHttpReceiver, createOtlpReceiver } from './http.js';
import { createSyslogReceiver } from './syslog.js';

export type Deliveries = {
  /** Begins. The file sink has to be open. */
  start(): void;
  states(): readonly (DeliveryState & { readonly name: string; readonly isPlain: boolean })[];
  /** True if every receiver has all of a file. */
  hasDelivered(file: string): Promise<boolean>;
  /** Delivers what the audit log has written last, as far as that succeeds within a bounded time. */
  close(): Promise<void>;
};

type DeliveriesPorts = {
  readonly now: () => number;
  readonly emit: Emit;
  readonly isOwnListener: (socket: Socket) => boolean;
  /** The file that the file sink writes. */
  readonly ownFile: () => OwnFile | undefined;
};

/** Opens nothing before `start`. */
export function createDeliveries({ sinks, deliveries }: AuditSettings, ports: DeliveriesPorts): Deliveries {
  const { now, emit, isOwnListener, ownFile } = ports;
  const [auditPath] = sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const running: Delivery[] = [];

  function open(settings: DeliverySettings): Receiver {
    if (settings.type === 'syslog') return createSyslogReceiver(settings, isOwnListener);
    const fetch = createGuardedFetch({ isOwnListener, tls: settings.tls });
    const create = settings.type === 'otlp' ? createOtlpReceiver : createHttpReceiver;
    return create(settings, fetch, now);
  }

  return {
    start() {
      if (auditPath === undefined) return;
      for (const settings of deliveries) {
        const { name } = settings;
        const onLines = (result: 'delivered' | 'refused', count: number) =>
          emit('auditDelivered', { sink: name, result, count });
        running.push(startDelivery({ name, auditPath, receiver: open(settings), ownFile, now, onLines }));
      }
    },
    states: () =>
      running.map((delivery, index) => ({
        ...delivery.state(),
        name: delivery.name,
        isPlain: deliveries[index]?.plaintext === 'accepted',
      })),
    async hasDelivered(file) {
      // Before the start nothing is known of what a receiver has.
      if (running.length < deliveries.length && auditPath !== undefined) return false;
      for (const delivery of running) if (!(await delivery.hasDelivered(file))) return false;
      return true;
    },
    close: async () => {
      await Promise.all(running.map((delivery) => delivery.close()));
    },
  };
}
