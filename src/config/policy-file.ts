// Turns a policy file that its schema has accepted into the document that policy/ compiles:
// rates and sizes become numbers, what only concerns the file is left out. Judges nothing.

import type { LimitsDocument, PolicyDocument, RuleDocument } from '../policy/document.js';
import { readRate, readSizeBytes } from './units.js';

type RuleFile = Omit<RuleDocument, 'limits' | 'maxResultBytes'> & {
  readonly limits?: { readonly rate: string; readonly per: LimitsDocument['per'] };
  readonly maxResultBytes?: string | number;
};

type PolicyFile = {
  readonly policy: string;
  readonly rules: readonly RuleFile[];
};

/**
 * The document of a checked policy file.
 *
 * @throws Error where the value was not checked before: a rate or a size cannot be read.
 */
export function documentOf(file: string, checked: unknown): PolicyDocument {
  const { policy, rules } = checked as PolicyFile;
  return {
    file,
    policy,
    rules: rules.map(ruleOf),
  };
}

function ruleOf(rule: RuleFile): RuleDocument {
  const { limits, maxResultBytes, ...rest } = rule;
  return {
    ...rest,
    ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
    ...(maxResultBytes === undefined ? {} : { maxResultBytes: bytesOf(maxResultBytes) }),
    // The schema tells the three effects and their keys apart.
  } as RuleDocument;
}

function limitsOf({ rate, per }: NonNullable<RuleFile['limits']>): LimitsDocument {
  const read = readRate(rate);
  if (read === undefined) throw new Error('a rate was not checked before use');
  return { rate: read, per };
}

function bytesOf(size: string | number): number {
  const bytes = typeof size === 'number' ? size : readSizeBytes(size);
  if (bytes === undefined) throw new Error('a size was not checked before use');
  return bytes;
}
