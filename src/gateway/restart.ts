// What a reload cannot swap, because sockets, keys and chains are opened once: such a change is rejected
// with its name, so that nobody believes it to be in force.

import type { ListenerSettings, Settings } from '../config/settings.js';

/** Why the next settings need a restart, or `undefined`. */
export function restartReason(before: Settings, after: Settings): string | undefined {
  const fixed: readonly [string, unknown, unknown][] = [
    ['publicUrl', before.publicBase, after.publicBase],
    ['listeners', addresses(before), addresses(after)],
    ['keys', before.keys.map((key) => key.id), after.keys.map((key) => key.id)],
    ['state', before.state, after.state],
    ['audit', before.audit, after.audit],
    ['admin', adminWithoutCertificates(before), adminWithoutCertificates(after)],
    ['metrics', before.metrics, after.metrics],
  ];
  const changed = fixed
    .filter(([, one, other]) => JSON.stringify(one) !== JSON.stringify(other))
    .map(([name]) => name);
  return changed.length === 0 ? undefined : `a change of ${changed.join(', ')} needs a restart`;
}

function addresses({ listeners }: Settings): unknown {
  return [addressOf(listeners.data), addressOf(listeners.ops)];
}

/** Certificates may change while a listener is open; whether it speaks TLS, and asks for them, may not. */
function addressOf({ host, port, tls }: ListenerSettings): unknown {
  return [host, port, tls !== undefined, tls?.clientCa !== undefined];
}

function adminWithoutCertificates({ admin }: Settings): unknown {
  return admin && { ...admin, listener: addressOf(admin.listener) };
}
