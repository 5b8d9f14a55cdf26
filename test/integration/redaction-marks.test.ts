// Marks of redactions on their way back: refused where they would overwrite a file, let pass with a finding elsewhere,
// and recognized by their tag alone.

import { beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, decisionOf, startRig } from '../support/gateway.js';
import { makeGithubToken } from '../support/secrets.js';
import { callStateless, type Reply, resultOf } from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

const token = makeGithubToken();
const TOOLS = ['read_file', 'write_file', 'add_comment'].map((name) => ({
  name,
  description: 'Does something.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}));
const MARK = /\[redacted:github-token#[a-z2-7]{4}\]/;

function startMarkRig(more: string): Promise<AttackRig> {
  return startRig({
    more,
    upstream: ['pinning: {maxAge: 10m}', 'content: {tools: {read_file: code, write_file: code}}'],
    prepare(upstream) {
      upstream.offer(() => TOOLS);
      upstream.answerCalls((tool) => ({
        content: [{ type: 'text', text: tool === 'read_file' ? `key: ${token}` : 'done' }],
      }));
    },
  });
}

function textOf(reply: Reply): string {
  return (resultOf(reply) as { content: readonly { readonly text: string }[] }).content[0]?.text ?? '';
}

describe('marks of redactions', () => {
  let read: string;
  const rig = shared(() => startMarkRig(''));
  beforeAll(async () => {
    read = textOf(await callStateless(rig.access, 'read_file'));
  });

  it('carry a tag', () => {
    expect(read).toMatch(MARK);
    expect(read).not.toContain(token);
  });

  it('are not written back where content is code, and the refusal says why', async () => {
    const reply = await callStateless(rig.access, 'write_file', { text: `# a file\n${read}\n` });
    expect(decisionOf(reply).reason).toBe('arguments-redacted');
    expect(textOf(reply)).toContain('had been altered');
  });

  it('pass elsewhere, because people quote what they read', async () => {
    const reply = await callStateless(rig.access, 'add_comment', { text: `It says ${read}.` });
    expect(textOf(reply)).toBe('done');
  });

  it.each([
    ['the words of documentation', 'Secrets become [redacted:github-token].'],
    ['the mark of another gateway', 'Secrets become [redacted:github-token#aaaa].'],
    ['a tag of another kind', 'Secrets become [redacted:secret#$TAG].'],
  ])('are not %s', async (_what, text) => {
    const tag = /#([a-z2-7]{4})/.exec(read)?.[1] ?? '';
    const sent = text.replace('$TAG', tag);
    expect(textOf(await callStateless(rig.access, 'write_file', { text: sent }))).toBe('done');
  });
});

describe('request.marks', () => {
  it('are let pass where the profile says so', () =>
    withStarted(
      () => startMarkRig('inspection: {profiles: {default: {request: {marks: flag}}}}\n'),
      async (rig) => {
        const text = textOf(await callStateless(rig.access, 'read_file'));
        expect(text).toMatch(MARK);
        expect(textOf(await callStateless(rig.access, 'write_file', { text }))).toBe('done');
      },
    ));
});
