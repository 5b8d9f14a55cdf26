// What a gateway that has started waits for before it is ready for the first time, and that it never does so again.

import { describe, expect, it } from 'vitest';
import {
  type GatewayUnderTest,
  type RunningGateway,
  startTestGateway,
  UPSTREAM,
  type UpstreamUnderTest,
} from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer } from '../support/tokens.js';
import { untilTestEnds } from '../support/with-gateway.js';

async function readyz({ opsUrl }: { readonly opsUrl: string }): Promise<readonly [number, string]> {
  const response = await fetch(`${opsUrl}/readyz`);
  return [response.status, await response.text()];
}

const READY = [200, 'ready\n'];

function startInFrontOf(
  upstream: Omit<UpstreamUnderTest, 'name'>,
  more: Partial<GatewayUnderTest> = {},
): Promise<RunningGateway> {
  const upstreams = [{ name: UPSTREAM, ...upstream }];
  return untilTestEnds(startTestGateway({ upstreams, pin: false, ...more }));
}

describe('[G-03] before it is ready for the first time, a gateway', () => {
  it('waits for the keys of its issuers, and later does without', async () => {
    const upstream = await untilTestEnds(startHostileUpstream());
    const issuer = await untilTestEnds(startTestIssuer());
    issuer.misbehave('down');
    const gateway = await startInFrontOf({ url: upstream.url }, { issuerUrl: issuer.issuer });
    expect(await readyz(gateway)).toEqual([503, 'not ready\nwaiting for the keys of 1 issuer\n']);
    expect((await fetch(`${gateway.opsUrl}/livez`)).status).toBe(200);
    expect(await gateway.metrics()).toMatch(/^sallyport_ready 0$/m);
    expect(gateway.log()).toContain('waiting for the keys of 1 issuer (test)');
    issuer.misbehave('none');
    await expect.poll(() => readyz(gateway), PATIENT).toEqual(READY);
    expect(await gateway.metrics()).toMatch(/^sallyport_ready 1$/m);
    issuer.misbehave('down');
    await gateway.reload();
    expect(await readyz(gateway)).toEqual(READY);
  });

  it('waits no longer than startup.wait, and says what it started without', async () => {
    const issuer = await untilTestEnds(startTestIssuer());
    issuer.misbehave('down');
    const nowhere = { url: 'http://127.0.0.1:9/mcp', more: ['required: true'] };
    const gateway = await startInFrontOf(nowhere, { issuerUrl: issuer.issuer, more: 'startup: {wait: 1s}' });
    const missing = 'the keys of 1 issuer and 1 required upstream\n';
    expect(await readyz(gateway)).toEqual([503, `not ready\nwaiting for ${missing}`]);
    await expect.poll(() => readyz(gateway), PATIENT).toEqual([200, `ready, degraded\nstarted without ${missing}`]);
    const degraded = /^sallyport_controls\{control="(authn|pins)",state="degraded"\} 1$/gm;
    expect((await gateway.metrics()).match(degraded)).toHaveLength(2);
  });

  it.each([
    ['is required', 'true', [503, 'not ready\nwaiting for 1 required upstream\n']],
    ['is not required', 'false', READY],
  ] as const)('that is in front of an upstream that %s and silent: required: %s', async (_, required, expected) => {
    const upstream = await untilTestEnds(startHostileUpstream());
    upstream.obey(() => ({ kind: 'hold' }));
    const more = [`required: ${required}`, 'limits: {requestTimeout: 500ms}', 'pinning: {maxAge: 2s}'];
    const gateway = await startInFrontOf({ url: upstream.url, more });
    await expect.poll(() => readyz(gateway), PATIENT).toEqual(expected);
    upstream.repent();
    await expect.poll(() => readyz(gateway), PATIENT).toEqual(READY);
    upstream.obey(() => ({ kind: 'destroy' }));
    await expect.poll(gateway.metrics, PATIENT).toMatch(/^sallyport_upstream_up\{[^}]*\} 0$/m);
    expect(await readyz(gateway)).toEqual(READY);
  });
});
