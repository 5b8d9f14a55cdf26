// The checks of `npm run clients`: they must find each thing that may go wrong, else its table says nothing.

import { describe, expect, it } from 'vitest';
import { checkApproval, checkClient, type Outcome } from '../../../clients/check.mjs';
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

describe('the checks of a call that a user approves', () => {
  const link = (digit: string) => `http://127.0.0.1:1/.well-known/sallyport/approve/${digit.repeat(32)}`;
  const [before, after] = [
    [`Open ${link('a')}`, `It is still waiting. ${link('a')}`],
    ['done', `Open ${link('b')}`],
  ] as const;
  const approved = { expect: 'done' };

  it('[K-03] finds nothing where it passes once', () => {
    expect(checkApproval(approved, before, after)).toEqual([]);
  });

  it.each<[string, readonly string[], readonly string[]]>([
    ['a call that passes without a yes', ['done', before[1]], after],
    ['a question without a link', ['Ask somebody.', before[1]], after],
    ['a second question while one waits', [before[0], `Open ${link('b')}`], after],
    ['a yes that does not help', before, [`Open ${link('b')}`, after[1]]],
    ['a yes that counts twice', before, ['done', 'done']],
    ['a question with the old link', before, ['done', `Open ${link('a')}`]],
  ])('[K-03] finds %s', (_what, first, second) => {
    expect(checkApproval(approved, first, second)).not.toEqual([]);
  });
});
