// Active content against the readings of real renderers. What was once let pass byte for byte is named
// here; random documents go through four Markdown renderers and an HTML parser, and nothing that the
// gateway lets pass may load, run, or link to a script. `ACTIVE_DOCUMENTS` and `ACTIVE_SEED` ask for more,
// as `npm run test:all` does.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../src/inspection/responses.js';
import { effectsOfText, GLUES, tryDocuments } from '../support/active-content.js';
import { writeShape } from '../support/active-shapes.js';
import { profile, textResult } from '../unit/inspection/samples.js';

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

function passed(texts: readonly string[]): readonly string[] {
  const outcome = inspectMessage({ ...textResult(...texts), profile });
  if (outcome.kind === 'withhold') return [];
  if (outcome.kind === 'clean') return texts;
  const { result } = outcome.value as { result: { content: { text: string }[] } };
  return result.content.map(({ text }) => text);
}

describe('active content', () => {
  it.each(SAMPLES)('[X-70] is made inert and not withheld: %s', (_what, ...texts) => {
    const before = GLUES.flatMap((glue) => effectsOfText(texts.join(glue)));
    expect(before).not.toEqual([]);
    const left = passed(texts);
    expect(left).toHaveLength(texts.length);
    for (const glue of GLUES) expect(effectsOfText(left.join(glue))).toEqual([]);
    for (const text of left) expect(effectsOfText(text)).toEqual([]);
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
  ])('[I-12] code to every renderer passes byte for byte, without a finding: %s', (_what, text) => {
    expect(effectsOfText(text)).toEqual([]);
    const outcome = inspectMessage({ ...textResult(text), profile });
    expect(outcome).toMatchObject({ kind: 'clean', findings: [] });
  });

  it('[I-10] an address in data stays, beside prose too', () => {
    const data = JSON.stringify({ url: `https://e.example/?${QUERY}${QUERY}`, next: [1] });
    expect(passed([data])).toEqual([data]);
    expect(passed(['Found one!', data, 'Done <b>now</b>.'])).toEqual(['Found one!', data, 'Done <b>now</b>.']);
  });

  it('[I-10] an address in prose stays byte for byte, however long its query', () => {
    const text = `see https://e.example/a?${QUERY}, www.e.example/?${QUERY} and [a](https://e.example/?${QUERY})`;
    expect(passed([text])).toEqual([text]);
  });

  it('[X-70, I-13] nothing in random documents loads, runs or links to a script', () => {
    const seed = Number(process.env['ACTIVE_SEED'] ?? 20_261_122);
    const documents = Number(process.env['ACTIVE_DOCUMENTS'] ?? 2_000);
    // A run that is asked for is thorough: each document goes through every renderer.
    const trial = tryDocuments(seed, documents, documents > 20_000 ? 'each' : 'in-turn');
    // Said in any case: what is found must be found again.
    console.info(`active content: seed ${seed}, ${JSON.stringify({ ...trial, failures: trial.failures.length })}`);
    expect(trial.failures).toEqual([]);
    expect(trial.passed).toBeGreaterThan(documents / 20);
    expect(trial.withheld).toBeLessThan(documents / 20);
  }, 7_200_000);

  it('[X-70, I-13] nothing in documents of the shapes that were once let pass does either', () => {
    const trial = tryDocuments(1, 2000, 'in-turn', writeShape);
    expect(trial.failures).toEqual([]);
    expect(trial.withheld).toBeLessThan(trial.documents / 20);
  });
});

describe('the work of looking for active content', () => {
  const MANY = 100_000;
  it.each([
    ['brackets', '['],
    ['openings of images', '!['],
    ['closed brackets', '[]'],
    ['definitions', '[a]:'],
    ['declarations', '<!'],
    ['instructions', '<?'],
    ['openings of tags', '<a '],
    ['quotes in tags', '<a b="'],
    ['tags behind blanks', `<a${' '.repeat(100)}`],
    ['backticks in pairs', '` `` '],
    ['longer and longer backticks', Array.from({ length: 60 }, (_, at) => '`'.repeat(at)).join(' ')],
    ['fences', '```\n'],
    ['fences in lists', '- ```\n'],
    ['fences that are no end', '```x\n```\u00a0\n'],
    ['queries', 'a.b?'],
    ['user names', 'http://a&'],
    ['addresses in one another', 'http://a.bc'],
    ['dots', 'a.'],
    ['hosts behind a slash', '/a.bc.bc'],
    ['blanks in a definition', `[a]: b "${' '.repeat(5000)}x`],
    ['marks of quotes', '>'],
    ['notes', '[^1]:'],
    ['carriage returns', '\r'],
    ['targets', '](a'],
    ['comments', '<!--'],
    ['addresses without a host', 'www.('],
    ['tags in quotes', '"<'],
  ])('[PRF-07] ends soon for many %s', (_what, piece) => {
    const text = `\`\`\n${piece.repeat(Math.ceil(MANY / piece.length))}?${QUERY} \`\`\``;
    for (const texts of [[text], [text.slice(0, MANY / 2), text.slice(MANY / 2)]]) {
      const outcome = inspectMessage({ ...textResult(...texts), profile });
      expect(['clean', 'changed', 'withhold']).toContain(outcome.kind);
    }
  });
});
