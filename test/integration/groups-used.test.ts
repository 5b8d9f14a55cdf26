// Which groups of a caller the audit says a decision rested on: those that the deciding rule asks for and the
// caller has, whether the rule lets the caller in or keeps it out.

import { describe, expect, it } from 'vitest';
import { UPSTREAM } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CROWD = Array.from({ length: 40 }, (_, at) => `crowd-${at}`);
const POLICY = `version: 1
policy: groups
rules:
  - id: engineers
    effect: allow
    who: {issuers: [test], groups: [eng, ops, leads]}
    what: {upstreams: [${UPSTREAM}], tools: [read_record]}
  - id: crowd
    effect: allow
    who: {issuers: [test], groups: [${CROWD.join(', ')}]}
    what: {upstreams: [${UPSTREAM}], tools: [read_record]}
  - id: one-by-name
    effect: allow
    who: {issuers: [test], subjects: [named]}
    what: {upstreams: [${UPSTREAM}], tools: [read_record]}
  - id: no-contractors
    effect: deny
    who: {issuers: [test], groups: [contractors, interns]}
    what: {upstreams: [${UPSTREAM}], tools: [read_record]}
`;

const rig = sharedGateway({ policies: { groups: POLICY } });

/** Both events of a call of this caller. */
async function eventsOfCall(sub: string, groups: readonly string[]): Promise<readonly unknown[]> {
  const access = rig.as(await rig.gateway.token(UPSTREAM, { sub, groups }));
  await callStateless(access, 'read_record', { id: 'one' });
  const events = async () =>
    (await rig.gateway.audit())
      .filter(({ actor, type }) => actor?.['sub'] === sub && type.startsWith('mcp.'))
      .map(({ actor, decision, type }) => [type, decision?.['verdict'], decision?.['rule'], actor?.['groups_used']]);
  await expect.poll(async () => (await events()).length, PATIENT).toBe(2);
  return events();
}

describe('[O-08] the groups that were used', () => {
  it('are those of the caller that the rule which allows asks for, in both events', async () => {
    expect(await eventsOfCall('ann', ['leads', 'eng', 'football'])).toEqual([
      ['mcp.decision', 'allow', 'engineers', ['eng', 'leads']],
      ['mcp.outcome', 'allow', 'engineers', ['eng', 'leads']],
    ]);
  });

  it('are those that the rule which denies asks for', async () => {
    expect(await eventsOfCall('ben', ['eng', 'interns'])).toEqual([
      ['mcp.decision', 'deny', 'no-contractors', ['interns']],
      ['mcp.outcome', 'deny', 'no-contractors', ['interns']],
    ]);
  });

  it('are none where the rule asks for no group, or no rule decided', async () => {
    expect(await eventsOfCall('named', ['football'])).toEqual([
      ['mcp.decision', 'allow', 'one-by-name', []],
      ['mcp.outcome', 'allow', 'one-by-name', []],
    ]);
    expect(await eventsOfCall('cas', ['football'])).toEqual([
      ['mcp.decision', 'deny', null, []],
      ['mcp.outcome', 'deny', null, []],
    ]);
    const access = rig.as(await rig.gateway.token(UPSTREAM, { sub: 'dee', groups: ['eng'] }));
    await requestStateless(access, 'server/discover', {});
    const groups = async () =>
      (await rig.gateway.audit())
        .filter(({ actor }) => actor?.['sub'] === 'dee')
        .map(({ actor }) => actor?.['groups_used']);
    await expect.poll(groups, PATIENT).toEqual([[], []]);
  });

  it('are no more than a line may hold', async () => {
    const [, outcome] = (await eventsOfCall('eve', CROWD)) as [unknown, readonly unknown[]];
    expect(outcome[3]).toEqual(CROWD.slice(0, 32));
  });
});
