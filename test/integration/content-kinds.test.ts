// The kind of what an upstream or a tool returns, from the gateway file to what a client gets: how much of a text is
// changed, for which definitions `code` counts, and that secrets are redacted whatever the kind.

import { describe, expect, it } from 'vitest';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { digestOfListedTool } from '../support/lock-files.js';
import { makeGithubToken } from '../support/secrets.js';
import { callStateless, type Reply, resultOf } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const PINNED_SELDOM = 'pinning: {maxAge: 10m}';
const token = makeGithubToken();

function toolNamed(name: string, description = 'Reads a file.'): JsonObject {
  return { name, description, inputSchema: { type: 'object' } };
}

const PICTURE = '![a](https://collect.example/a.png?x=1)';
/** What each kind treats differently, one a line. */
const TEXT = [
  `see ${PICTURE}`,
  '```md',
  PICTURE,
  '```',
  '<script>run()</script>',
  'color \u001b[31mred\u001b[0m',
  'bidi \u202eabc\u202c',
  '\uFEFFvalue',
].join('\n');

function textOf(reply: Reply): string {
  const { content } = resultOf(reply) as { content: readonly { readonly text: string }[] };
  return content[0]?.text ?? '';
}

describe('the kind of what a tool returns', () => {
  const NAMES = ['as_upstream', 'as_code', 'as_auto', 'as_markup', 'as_text', 'for_another'];
  let served = TEXT;
  const rig = sharedGateway(() => {
    const tools = NAMES.map((name) => toolNamed(name));
    const other = digestOfListedTool(toolNamed('for_another', 'As it was reviewed.'));
    return {
      upstream: [
        PINNED_SELDOM,
        `content: {kind: code, tools: {as_code: code, as_auto: auto, as_markup: markup, as_text: text, for_another: {kind: code, digest: ${other}}}}`,
      ],
      prepare(upstream: HostileUpstream) {
        upstream.offer(() => tools);
        upstream.answerCalls(() => ({ content: [{ type: 'text', text: served }] }));
      },
    };
  });

  async function read(tool: string, text = TEXT): Promise<string> {
    served = text;
    return textOf(await callStateless(rig.access, tool));
  }

  it.each(['as_upstream', 'as_code'])('%s leaves every character', async (tool) => {
    expect(await read(tool)).toBe(TEXT);
  });

  it('code flags what it leaves', async () => {
    served = TEXT;
    const { _meta } = resultOf(await callStateless(rig.access, 'as_code')) as {
      _meta: Record<string, readonly { detector: string; action: string }[]>;
    };
    const findings = _meta['dev.sallyport/findings'] ?? [];
    expect(findings.map(({ action }) => action)).toEqual(findings.map(() => 'flag'));
    const detectors = findings.map(({ detector }) => detector);
    expect(detectors).toEqual(expect.arrayContaining(['terminal-escape', 'invisible']));
    expect(detectors.some((name) => name.startsWith('active:'))).toBe(true);
  });

  it.each(NAMES)('%s redacts secrets', async (tool) => {
    expect(await read(tool, `${TEXT}\n${token}`)).not.toContain(token);
  });

  it.each(['as_auto', 'for_another'])('%s makes inert what acts, outside of code', async (tool) => {
    const [first, , fenced, , script, colour, bidi] = (await read(tool)).split('\n');
    expect(first).not.toContain(PICTURE);
    expect(fenced).toBe(PICTURE);
    expect(script).not.toContain('<script>');
    expect([colour, bidi]).toEqual(['color red', 'bidi abc']);
  });

  it('markup has no code in which something may stay', async () => {
    expect(await read('as_markup')).not.toContain(PICTURE);
  });

  it('text leaves markup, and no character that a terminal obeys or nobody sees', async () => {
    const [first, , fenced, , script, colour, bidi] = (await read('as_text')).split('\n');
    expect([first, fenced, script]).toEqual([`see ${PICTURE}`, PICTURE, '<script>run()</script>']);
    expect([colour, bidi]).toEqual(['color red', 'bidi abc']);
  });
});

describe('code of a definition', () => {
  it('ends when the server changes the definition', async () => {
    let description = 'Reads a file.';
    const digest = digestOfListedTool(toolNamed('read_file', description));
    await withGateway(
      {
        pin: false,
        upstream: [
          'pinning: {mode: off, maxAge: 1s}',
          `content: {tools: {read_file: {kind: code, digest: ${digest}}}}`,
        ],
        prepare(upstream) {
          upstream.offer(() => [toolNamed('read_file', description)]);
          upstream.answerCalls(() => ({ content: [{ type: 'text', text: TEXT }] }));
        },
      },
      async (rig) => {
        const read = async (): Promise<string> => textOf(await callStateless(rig.access, 'read_file'));
        expect(await read()).toBe(TEXT);
        description = 'Reads a page.';
        await expect.poll(read, { timeout: 10_000 }).not.toBe(TEXT);
      },
    );
  });
});
