import { describe, expect, it } from 'vitest';
import type { Settings } from '../../../src/config/settings.js';
import { createGauges } from '../../../src/gateway/gauges.js';
import { createEvents, type GatewayEvents } from '../../../src/policy/events.js';
import { makeAuthority } from '../../support/tls.js';

describe('[G-01] the expiry of certificates', () => {
  it('is reported of every certificate that the configuration names, for listeners, servers and receivers alike', () => {
    const ca = makeAuthority().cert;
    const tls = { cert: ca, key: '', clientCa: ca };
    const client = { ca, client: { cert: ca, key: '' } };
    const settings = {
      listeners: { data: { tls }, ops: {} },
      admin: { listener: { tls } },
      upstreams: new Map([['github', { name: 'github', tls: client }]]),
      audit: { deliveries: [{ name: 'siem', tls: client }] },
      webhooks: [
        { name: 'team', ca },
        { name: 'public', ca: undefined },
      ],
      tracing: { otlp: { ca } },
    } as unknown as Settings;
    let reported: GatewayEvents['certificatesRead']['certificates'] = [];
    const { emit } = createEvents(
      [
        {
          certificatesRead({ certificates }) {
            reported = certificates;
          },
        },
      ],
      () => undefined,
    );
    createGauges({ emit, settings: () => settings, runtimes: () => [], sessions: { count: () => new Map() } })();
    expect(reported.map(({ use, name }) => `${use} ${name}`)).toEqual([
      ...['listener data', 'listener-ca data', 'listener admin', 'listener-ca admin'],
      ...['upstream github', 'upstream-ca github', 'audit-delivery siem', 'audit-delivery-ca siem'],
      ...['webhook-ca team', 'tracing-ca otlp'],
    ]);
    for (const { expiresAtSeconds } of reported) expect(expiresAtSeconds).toBeGreaterThan(0);
  });
});
