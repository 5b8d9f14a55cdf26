// What every row of detection says of itself, whichever interpreter reads it: an id, by which it is found in
// docs/reference/detectors.md; the class that a finding names; its language; where it comes from; and texts that it
// must and must not match, which one test runs. A row with `isOff` is listed and never applied. Rows stand in
// detectors/{secret-formats,injection-phrases,known-names}.ts, elicitation/form-wording.ts and definitions/rows/.

/** `any`: the row reads signs and names, in whatever language they stand. */
export type RowLanguage = 'any' | 'en' | 'de' | 'fr' | 'es' | 'it' | 'pt' | 'ru' | 'ja' | 'zh' | 'ko';

export type DetectorRow = {
  /** Unique among all rows. */
  readonly id: string;
  readonly class: string;
  readonly language: RowLanguage;
  /** The publication, or the way of writing, that it was made for. */
  readonly source: string;
  readonly matches: readonly string[];
  readonly passes: readonly string[];
  readonly isOff?: true;
};

/** The rows that are applied. */
export function appliedRows<Row extends Pick<DetectorRow, 'isOff'>>(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ isOff }) => isOff !== true);
}
