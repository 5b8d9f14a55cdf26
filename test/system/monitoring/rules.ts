// The alerting rules of config/prometheus, as tests read them.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

export const RULES = join(import.meta.dirname, '../../../config/prometheus/sallyport.rules.yaml');

export type AlertingRule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

/** Every rule, in the order of the file. */
export async function alertingRules(): Promise<readonly AlertingRule[]> {
  const { groups } = parse(await readFile(RULES, 'utf8')) as { groups: readonly { rules: readonly AlertingRule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}
