// Reads requirements.md: what the system must do, one line each. coverage.test.ts proves that none is uncited.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Requirement = {
  /** One to three letters for the part and a number: `D-01`. Cited in test titles in brackets. */
  readonly id: string;
  /** What the running system does. */
  readonly behaviour: string;
  /** Pages of this repository, and public specifications. */
  readonly source: string;
};

const ROW = /^\| (?!id |-)(.*?) \| (.*?) \| (.*?) \|$/gm;

const text = readFileSync(join(import.meta.dirname, 'requirements.md'), 'utf8');

export const requirements: readonly Requirement[] = [...text.matchAll(ROW)].map(
  ([, id = '', behaviour = '', source = '']) => ({ id, behaviour, source }),
);
