// The order of the stations is kept by types: what a station wants can be had only from the one before.
// Each line marked @ts-expect-error must not compile; the type check of the tests fails when one does.

import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/policy/decide.js';
import type { Allow, Decision, Deny } from '../../../src/policy/decision.js';
import { type AuthorizedRequest, type EnforcePorts, enforce } from '../../../src/policy/obligations.js';
import type { Principal } from '../../../src/policy/principal.js';
import { type Caller, closeToken, openToken } from '../../../src/policy/principal.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import type { PolicyQuery } from '../../../src/policy/rules.js';
import type { AdmittedMessage } from '../../../src/protocol/admitted-request.js';
import { policiesOf } from './samples.js';

declare const admitted: AdmittedMessage;
declare const caller: Principal;
declare const authorized: AuthorizedRequest;
declare const ports: EnforcePorts;
declare const allow: Allow;
declare const deny: Deny;
declare const decision: Decision;
declare const question: PolicyQuery;
declare const recorded: NonNullable<RequestRecord['principal']>;

const forward = (_cleared: AuthorizedRequest): void => {};
const carry = (_token: Caller['token']): void => {};

// Never called: the compiler alone reads it.
function mistakes(): void {
  void enforce(allow, admitted, caller, ports);
  // @ts-expect-error a deny is no allow
  void enforce(deny, admitted, caller, ports);
  // @ts-expect-error a decision that nobody looked at is no allow
  void enforce(decision, admitted, caller, ports);
  const written = { verdict: 'allow', policy: 'p', rule: 'r', obligations: [] } as const;
  // @ts-expect-error an object of the same shape is no allow
  void enforce(written, admitted, caller, ports);
  // @ts-expect-error a message that was not admitted
  void enforce(allow, { kind: 'admitted' }, caller, ports);
  // @ts-expect-error a caller that was not verified
  void enforce(allow, admitted, { subject: 'ada' }, ports);
  // @ts-expect-error an allow is not cleared
  forward(allow);
  // @ts-expect-error what it answers may be a deny, and comes later
  forward(enforce(allow, admitted, caller, ports));
  const owed = { maxResultBytes: 1, profiles: [] };
  // @ts-expect-error an object of the same shape is not cleared
  forward({ admitted, principal: caller, allow, responseObligations: owed });
  forward(authorized);
  // @ts-expect-error a copy of an authorized request is none: it could hold another message
  forward({ ...authorized });
  // @ts-expect-error nor is a copy of an admitted message admitted
  void enforce(allow, { ...admitted, edits: [] }, caller, ports);
  // @ts-expect-error nor is a copy of a principal the verified caller
  void enforce(allow, admitted, { ...caller, subject: 'ada' }, ports);
  // @ts-expect-error nor is what a record says of the caller, so nothing acts for a caller whom it names
  void enforce(allow, admitted, recorded, ports);
  // @ts-expect-error nor is a copy of an allow one
  void enforce({ ...allow, obligations: [] }, admitted, caller, ports);
  carry(closeToken('token'));
  // @ts-expect-error a token that stands open is not carried
  carry('token');
  // @ts-expect-error and a closed one is made by closing
  carry({});
  // @ts-expect-error and read by nobody who was not given it to open
  void closeToken('token').toUpperCase();
  // @ts-expect-error policies are compiled, not written
  decide({ hash: '', ruleCount: 0 }, question);
}

describe('a closed token', () => {
  it('shows in no text [CRD-05]', () => {
    const closed = closeToken('canary');
    for (const text of [JSON.stringify({ closed }), String(closed), JSON.stringify([closed])])
      expect(text).not.toContain('canary');
    expect(Object.keys(closed)).toEqual([]);
    expect(openToken(closed)).toBe('canary');
  });
});

describe('brands', () => {
  it('lets only what a station made reach the next [P-66]', () => {
    expect(mistakes).toBeTypeOf('function');
    expect(policiesOf([]).ruleCount).toBe(0);
  });
});
