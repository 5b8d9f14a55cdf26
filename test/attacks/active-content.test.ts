// Active content against the readings of real renderers: four Markdown renderers and an HTML parser. What was once let
// pass byte for byte is named here, and nothing of it may load, run, or link to a script. Random documents:
// test/unit/inspection/active-content.test.ts.

import { describe, expect, it } from 'vitest';
import { effectsOfText, GLUES } from '../support/active-content.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const IMAGE = '![a](https://e.example/p.png)';
const WIDE = ' '.repeat(40);
const QUERY = 'q'.repeat(80);

/** Each was let pass without a finding. */
const SAMPLES: readonly (readonly [string, ...string[]])[] = [
  ['a fence that a no-break space keeps open', `\`\`\`\nx\n\`\`\`\u00a0\n\`\`\`\n${IMAGE}\n`],
  ['a fence that an ideographic space keeps open', `\`\`\`\nx\n\`\`\`\u3000\n\`\`\`\n${IMAGE}\n`],
  ['a fence that a line separator keeps open', `\`\`\`\nx\n\`\`\`\u2028\n\`\`\`\n${IMAGE}\n`],
  ['a line of a no-break space within a paragraph', `one \`\n\u00a0\n\` ${IMAGE} \``],
  ['a line of a no-break space within HTML', `<div>\n\u00a0\n\`\`\`\n<img src=//e.example/p>\n\`\`\`\n</div>`],
  ['a carriage return in a code span', `\`a\r\r${IMAGE}\r\r\``],
  ['a backtick in an address', `http://a.example/\` ${IMAGE} \``],
  ['a backtick in an address without a scheme', `www.a.example/\` ${IMAGE} \``],
  ['a backtick in an instruction', `a <? \` ?> ${IMAGE} \``],
  ['a backtick in a declaration', `a <!A \` > ${IMAGE} \``],
  ['a backtick in a character data section', `a <![CDATA[ \` ]]> ${IMAGE} \``],
  ['a backtick in a target', `[a](\`)${IMAGE}[b](\`)`],
  ['a backtick in a target on the next line', `[a](\n\`)${IMAGE}\``],
  ['a target on the next line of a note', '[^1]: [a](\n`)![x](//e.example/`p`)'],
  ['a target with a tag behind it on the next line of a note', '[^1]: [a](\n`)<img src=//e.example/p>`'],
  ['a target on the next line of a quoted note', '> [^1]: [a](\n> `)<img src=//e.example/p>`'],
  ['a target on the next line of a word in a note', '[^1]: y[a](\n`)<img src=//e.example/p>`'],
  ['a target on the next line of a definition in a paragraph', 'x\n[b]: y[a](\n`)<img src=//e.example/p>`'],
  ['a target on the next line of no definition', '[b]: [a](\n`)<img src=//e.example/p>`'],
  ['a target on the next line of no definition in a list', '- [b]: [a](\n  `)<img src=//e.example/p>`'],
  ['a target on the next line of no definition in a heading', '[b]: [a](\n`)<img src=//e.example/p>`\n==='],
  ['a target on the next line of a list', '- [a](\n  `)<img src=//e.example/p>`'],
  ['a target on the next line of a quote', '> [a](\n> `)<img src=//e.example/p>`'],
  ['a backtick in an autolink', `<\`a@b.example>${IMAGE}\``],
  ['a fence in the title of a definition', `[a]: /b "\n\`\`\`\n"\n${IMAGE}\n\`\`\``],
  ['many blanks before the sign of style', `<p style${WIDE}="background:url(https://e.example)">x`],
  ['many blanks before the sign of an event', `<p onclick${WIDE}="alert(1)">x</p>`],
  ['many blanks before the sign of a link', `<a href${WIDE}="javascript:alert(1)">x</a>`],
  ['a quote within an unquoted value', "<div a=x=' b='>' onclick=alert(1)>x</div>"],
  ['an attribute behind the mark of a quote', '> <b\n> onclick=alert(1)>x</b>'],
  ['a tag that the next paragraph ends', "<div title='\n\n' onclick=alert(1) "],
  ['a tag without an end', '<div onclick=alert(1)\n\nx'],
  ['a definition with a reference', '[x]\n\n[x]: javascript&colon;alert(1)'],
  ['a definition behind the mark of a quote', '> [x]:\n> javascript:alert(1)\n\n[x]'],
  ['a definition with brackets in its label', '[x\\]]\n\n[x\\]]: <javascript:alert(1)>'],
  ['a target behind the mark of a quote', '> [x](\n> javascript&colon;alert(1))'],
  ['a tag that is open behind preformatted text', 'a <pre> `! [a]<a onclick="alert(1)"\n\n'],
  [
    'an attribute behind the name of a tag that is too long to be read',
    `<div>\n<${'a'.repeat(65)}b="x onclick=alert(1)>y"z>`,
  ],
  ['an escaped image in the text of a link', '[!\\[a\\](https://e.example/p.png)](y)'],
  ['an image in two texts', 'see !', '[a](https://e.example/p.png)'],
  ['a tag in two texts', 'see <im', 'g src=https://e.example/p.png>'],
  ['a target in three texts', '[a](java', 'script', ':alert(1))'],
  ['a fence of one text in another', '```', `\`\`\`\n${IMAGE}\n\`\`\``],
  ['a fence that texts joined by a blank end', '`\n\n\u00a0\n```<iframe src=//e.example>', '``', '`\n'],
  ['a target behind a label', '][a](\n`)``![x](//e.example/`p`)'],
  ['a label that ends in a span', `[[\`]](<b>)\`\`\`${IMAGE}\\\`\n`],
];

const rig = sharedGateway();

/** The result that a client gets of a tool that returns these texts. */
async function received(texts: readonly string[]): Promise<JsonObject> {
  rig.upstream.answerCalls(() => ({ content: texts.map((text) => ({ type: 'text', text })) }));
  return resultOf(await callStateless(rig.access, 'read_record', { id: 'one' }));
}

/** The texts that a client gets, none if they are withheld. */
async function passed(texts: readonly string[]): Promise<readonly string[]> {
  const { content, isError } = await received(texts);
  return isError === true ? [] : (content as readonly { readonly text: string }[]).map(({ text }) => text);
}

describe('active content', () => {
  it.each(SAMPLES)('[X-70, I-13] is made inert and not withheld: %s', async (_what, ...texts) => {
    const before = GLUES.flatMap((glue) => effectsOfText(texts.join(glue)));
    expect(before).not.toEqual([]);
    const left = await passed(texts);
    expect(left).toHaveLength(texts.length);
    for (const glue of GLUES) expect(effectsOfText(left.join(glue))).toEqual([]);
    for (const text of left) expect(effectsOfText(text)).toEqual([]);
    expect(await passed(left)).toEqual(left);
  });

  it.each([
    ['an attribute of Rust in a fence', '```rust\n#![allow(dead_code)]\nlet x = vec![a](b);\n```\n'],
    ['an attribute of Rust in a span', 'Write `#![allow(x)]` and `vec![a](b)` here.'],
    ['an image in a fence', `Before.\n\n\`\`\`md\n${IMAGE}\n![a][b]\n\`\`\`\n\nAfter \`x\`.\n`],
    ['a shortcut image with its definition in a fence', '~~~\n![a]\n\n[a]: https://e.example/p.png\n~~~'],
    ['a fence in a longer fence', `\`\`\`\`md\n\`\`\`\n${IMAGE}\n\`\`\`\n\`\`\`\`\n`],
    ['a fence with lines of a carriage return and a feed', `a\r\n\r\n\`\`\`\r\n${IMAGE}\r\n\`\`\`\r\nb\r\n`],
    ['a span behind a link', `See [the docs](https://docs.example/a) on \`${IMAGE}\`.`],
    ['a span in a list', `- use \`${IMAGE}\`\n- or \`<img src=x>\`\n`],
    ['brackets in spans', `Use \`]\`, \`x[0](1)\` and \`${IMAGE}\`.`],
    ['a span with a backtick', `Use \`\` a \` ${IMAGE} \`\` in it.`],
  ])('[I-12] code to every renderer passes byte for byte, without a finding: %s', async (_what, text) => {
    expect(effectsOfText(text)).toEqual([]);
    const { content, _meta } = await received([text]);
    expect(content).toEqual([{ type: 'text', text }]);
    expect(_meta).not.toHaveProperty(['dev.sallyport/findings']);
  });

  it('[I-10] an address in data stays, beside prose too', async () => {
    const data = JSON.stringify({ url: `https://e.example/?${QUERY}${QUERY}`, next: [1] });
    expect(await passed([data])).toEqual([data]);
    expect(await passed(['Found one!', data, 'Done <b>now</b>.'])).toEqual(['Found one!', data, 'Done <b>now</b>.']);
  });

  it('[I-10] an address in prose stays byte for byte, however long its query', async () => {
    const text = `see https://e.example/a?${QUERY}, www.e.example/?${QUERY} and [a](https://e.example/?${QUERY})`;
    expect(await passed([text])).toEqual([text]);
  });
});
