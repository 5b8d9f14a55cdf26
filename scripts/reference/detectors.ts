// Renders the tables of rows in docs/reference/detectors.md from the rows that the detectors apply. Pure: it takes the
// page and returns it with these tables; the caller writes the file.

import { FOREIGN_ROWS } from '../../src/inspection/definitions/rows/foreign-vocabulary.js';
import { MARKER_ROWS } from '../../src/inspection/definitions/rows/markers.js';
import { PARAMETER_ROWS } from '../../src/inspection/definitions/rows/parameter-names.js';
import { RULE_ROWS } from '../../src/inspection/definitions/sentence-rules.js';
import type { DetectorRow } from '../../src/inspection/detector-row.js';
import { INJECTION_ROWS } from '../../src/inspection/detectors/injection-phrases.js';
import { NAME_ROWS } from '../../src/inspection/detectors/known-names.js';
import { SECRET_FORMAT_ROWS } from '../../src/inspection/detectors/secret-formats.js';
import { WORDING_ROWS } from '../../src/inspection/elicitation/form-wording.js';

const [BEGIN, END] = ['<!-- rows: begin -->', '<!-- rows: end -->'];

/** A family of rows: what it is, the file that holds it, and its rows. */
type Family = { readonly title: string; readonly file: string; readonly rows: readonly Listed[] };
type Listed = Pick<DetectorRow, 'id' | 'class' | 'language' | 'isOff'>;

export const DETECTOR_FAMILIES: readonly Family[] = [
  {
    title: 'Formats of secrets',
    file: 'src/inspection/detectors/secret-formats.ts',
    rows: SECRET_FORMAT_ROWS.map(({ kind, ...row }) => ({ ...row, class: kind, language: 'any' })),
  },
  {
    title: 'Names of values',
    file: 'src/inspection/detectors/known-names.ts',
    rows: NAME_ROWS,
  },
  {
    title: 'Cues of injected instructions',
    file: 'src/inspection/detectors/injection-phrases.ts',
    rows: [...INJECTION_ROWS.phrases, ...INJECTION_ROWS.structures],
  },
  { title: 'Sentences of definitions', file: 'src/inspection/definitions/rows/', rows: RULE_ROWS },
  {
    title: 'Tags, commands and pictures in definitions',
    file: 'src/inspection/definitions/rows/markers.ts',
    rows: MARKER_ROWS,
  },
  {
    title: 'Names of parameters in definitions',
    file: 'src/inspection/definitions/rows/parameter-names.ts',
    rows: PARAMETER_ROWS,
  },
  {
    title: 'Words of other languages in definitions',
    file: 'src/inspection/definitions/rows/foreign-vocabulary.ts',
    rows: FOREIGN_ROWS,
  },
  {
    title: 'Wording of forms that ask for secrets',
    file: 'src/inspection/elicitation/form-wording.ts',
    rows: WORDING_ROWS,
  },
];

/** The page with the tables of the rows that there are now. */
export function withDetectorRows(page: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error('the page has no place for the rows');
  const tables = DETECTOR_FAMILIES.map(tableOf).join('\n\n');
  return `${page.slice(0, from + BEGIN.length)}\n${tables}\n${page.slice(to)}`;
}

/** A line for each class and language, with the ids of its rows. */
function tableOf({ title, file, rows }: Family): string {
  const groups = new Map<string, string[]>();
  for (const { id, class: name, language, isOff } of rows) {
    const key = `| \`${name}\` | ${language} |`;
    groups.set(key, [...(groups.get(key) ?? []), isOff === true ? `\`${id}\` (off)` : `\`${id}\``]);
  }
  const lines = [...groups].map(([key, ids]) => `${key} ${ids.join(' ')} |`);
  return [`#### ${title}`, `\`${file}\``, '', '| Class | Language | Rows |', '| --- | --- | --- |', ...lines].join(
    '\n',
  );
}
