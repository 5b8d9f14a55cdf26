// What metrics repeat of the gateway's state each time its controls are looked at, besides the controls: the expiry of
// certificates, how old approvals of definitions are, and sessions. Reads what is in memory, and decides nothing.

import { readCertificates } from '../config/key-material.js';
import type { Settings, TlsSettings, UpstreamTls } from '../config/settings.js';
import { oldestApprovalMs } from '../pins/approval.js';
import type { Lock } from '../pins/lock.js';
import type { Emit, GatewayEvents } from '../policy/events.js';
import type { SessionCount } from '../state/opened-sessions.js';

type Certificates = GatewayEvents['certificatesRead']['certificates'];

/** A PEM text of the configuration. `use`: whose certificates they are, and for what; `name`: what they belong to. */
type NamedPem = { readonly use: string; readonly name: string; readonly pem: string | undefined };

type GaugeSources = {
  readonly emit: Emit;
  readonly settings: () => Settings;
  readonly runtimes: () => Iterable<{ readonly settings: { readonly name: string }; lock(): Lock | undefined }>;
  readonly sessions: Pick<SessionCount, 'count'>;
};

const MS_PER_SECOND = 1000;

/** Every certificate that the configuration names. */
function certificatesOf({ listeners, admin, upstreams, audit, webhooks, tracing }: Settings): readonly NamedPem[] {
  const ofListener = (name: string, tls: TlsSettings | undefined): readonly NamedPem[] => [
    { use: 'listener', name, pem: tls?.cert },
    { use: 'listener-ca', name, pem: tls?.clientCa },
  ];
  const ofClient = (use: string, name: string, { ca, client }: UpstreamTls): readonly NamedPem[] => [
    { use, name, pem: client?.cert },
    { use: `${use}-ca`, name, pem: ca },
  ];
  return [
    ...Object.entries(listeners).flatMap(([name, { tls }]) => ofListener(name, tls)),
    ...ofListener('admin', admin?.listener.tls),
    ...[...upstreams.values()].flatMap(({ name, tls }) => ofClient('upstream', name, tls)),
    ...audit.deliveries.flatMap(({ name, tls }) => ofClient('audit-delivery', name, tls)),
    ...webhooks.map(({ name, ca }) => ({ use: 'webhook-ca', name, pem: ca })),
    { use: 'tracing-ca', name: 'otlp', pem: tracing?.otlp.ca },
  ];
}

/** Creates what reports them. A certificate is read once, because several hundred upstreams may name the same one. */
export function createGauges({ emit, settings, runtimes, sessions }: GaugeSources): () => void {
  let reported: Settings | undefined;
  let expiries: ReadonlyMap<string, number | undefined> = new Map();
  const approvals = new WeakMap<Lock, number | undefined>();

  function reportCertificates(current: Settings): void {
    const next = new Map<string, number | undefined>();
    const certificates: Certificates[number][] = [];
    for (const { use, name, pem } of certificatesOf(current)) {
      if (pem === undefined) continue;
      const expiresAtSeconds = next.get(pem) ?? expiries.get(pem) ?? firstExpiry(pem);
      next.set(pem, expiresAtSeconds);
      if (expiresAtSeconds !== undefined) certificates.push({ use, name, expiresAtSeconds });
    }
    expiries = next;
    emit('certificatesRead', { certificates });
  }

  function approvedAtMs(lock: Lock): number | undefined {
    if (!approvals.has(lock)) approvals.set(lock, oldestApprovalMs(lock));
    return approvals.get(lock);
  }

  return () => {
    const current = settings();
    if (current !== reported) reportCertificates(current);
    reported = current;
    for (const runtime of runtimes()) {
      const lock = runtime.lock();
      const atMs = lock === undefined ? undefined : approvedAtMs(lock);
      if (atMs !== undefined)
        emit('pinsDated', { upstream: runtime.settings.name, oldestSeconds: atMs / MS_PER_SECOND });
    }
    emit('sessionsCounted', { counts: sessions.count() });
  };
}

/** When the first of these certificates expires, in seconds since the epoch. */
function firstExpiry(pem: string): number | undefined {
  const expiries = (readCertificates(pem) ?? []).map(({ validTo }) => Date.parse(validTo) / MS_PER_SECOND);
  return expiries.length === 0 ? undefined : Math.min(...expiries);
}
