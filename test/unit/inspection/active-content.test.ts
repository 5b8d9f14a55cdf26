// Active content in random documents, against the readings of real renderers: they go through four Markdown renderers
// and an HTML parser, and nothing that inspection lets pass may load, run, or link to a script. `ACTIVE_DOCUMENTS` and
// `ACTIVE_SEED` ask for more, as `npm run test:all` does.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { tryDocuments } from '../../support/active-content.js';
import { writeShape } from '../../support/active-shapes.js';
import { profile, textResult } from './samples.js';

const QUERY = 'q'.repeat(80);

describe('active content', () => {
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
