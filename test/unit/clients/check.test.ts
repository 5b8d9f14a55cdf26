// The checks of `npm run clients`: they must find each thing that may go wrong, else its table says nothing.

import { describe, expect, it } from 'vitest';
import { checkClient, type Outcome } from '../../../clients/check.mjs';
import { makeGithubToken } from '../../support/secrets.js';

const secret = makeGithubToken();
const order = { hidden: 'wipe', unknown: 'no_such_tool' };
const upstream = { call: { name: 'read' }, leak: { name: 'notes' }, expect: 'record 1', secret };
const good: Outcome = {
  listed: ['read', 'notes'],
  called: 'record 1',
  leaked: 'The key is [redacted:token].',
  hidden: '-32602 Unknown tool: wipe',
  unknown: '-32602 Unknown tool: no_such_tool',
};

describe('the checks of clients', () => {
  it('[K-03] finds nothing where all is as it must be', () => {
    expect(checkClient(order, upstream, good)).toEqual([]);
  });

  it.each<[string, Partial<Outcome>]>([
    ['a hidden tool that is listed', { listed: ['read', 'notes', 'wipe'] }],
    ['a tool that is not listed', { listed: ['read'] }],
    ['a call that gave something else', { called: '' }],
    ['a secret that came through', { leaked: `[redacted:card] ${secret}` }],
    ['a result that was not redacted', { leaked: 'nothing here' }],
    ['a hidden tool that is told from an unknown one', { hidden: '-32602 Forbidden tool: wipe' }],
    ['a hidden tool that answers', { hidden: 'result gone', unknown: 'result gone' }],
    ['a refusal of another kind', { hidden: '-32603 no', unknown: '-32603 no' }],
  ])('[K-03] finds %s', (_what, change) => {
    expect(checkClient(order, upstream, { ...good, ...change })).not.toEqual([]);
  });
});
