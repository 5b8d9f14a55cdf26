// Renders the README of the chart from its values.yaml: every value with its default and the comment above it. Pure: it
// returns text, and the caller writes the file.

import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';

type Row = { readonly name: string; readonly fallback: string; readonly meaning: string };

/** Defaults that are longer are read in values.yaml. */
const MAX_DEFAULT = 90;
/** Where a comment speaks to editors and not of a value. */
const DIRECTIVE = /^ yaml-language-server:.*$\n*/m;

function meaningOf(comment: string | null | undefined): string {
  const lines = (comment ?? '').replace(DIRECTIVE, '').split('\n');
  return lines
    .map((line) => line.trim())
    .join(' ')
    .trim()
    .replaceAll('|', '\\|');
}

/** A value on one line, as it may be written in a file of values. */
function fallbackOf(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_DEFAULT || text.includes('\\n') ? 'see values.yaml' : `\`${text}\``;
}

/**
 * The rows of one value. A map in block style is a group: its members have rows of their own. One in flow style, and an
 * empty one, is a value.
 *
 * @throws Error if a value has no comment: nobody would learn of it.
 */
function rowsOf({ key, value }: Pair, prefix: string, before: string | null | undefined): readonly Row[] {
  if (!isScalar(key)) throw new Error('a value without a name');
  const name = `${prefix}${String(key.value).replaceAll('.', '\\.')}`;
  const meaning = meaningOf(key.commentBefore ?? before);
  const isGroup = isMap(value) && !value.flow && value.items.length > 0;
  if (!isGroup) {
    if (meaning === '') throw new Error(`helm/values.yaml does not say what ${name} is`);
    const plain = (value as { toJSON(): unknown } | null)?.toJSON() ?? null;
    return [{ name, fallback: fallbackOf(plain), meaning }];
  }
  const own = meaning === '' ? [] : [{ name, fallback: '', meaning }];
  // Files are named by their users, so they have no rows.
  if (name === 'config') return own.map((row) => ({ ...row, fallback: 'see values.yaml' }));
  return [...own, ...rowsIn(value, `${name}.`)];
}

/** A comment above the first member of a map belongs to the map in YAML, and to the member for its reader. */
function rowsIn(map: YAMLMap, prefix: string): readonly Row[] {
  return map.items.flatMap((pair, index) => rowsOf(pair as Pair, prefix, index === 0 ? map.commentBefore : undefined));
}

export function renderChartReadme(values: string): string {
  const { contents, commentBefore } = parseDocument(values);
  if (!isMap(contents)) throw new Error('helm/values.yaml is not a map');
  if (commentBefore !== null && commentBefore !== undefined && commentBefore.replace(DIRECTIVE, '').trim() !== '')
    throw new Error('helm/values.yaml begins with a comment that belongs to no value');
  const rows = rowsIn(contents, '').map(
    ({ name, fallback, meaning }) => `| \`${name}\` | ${fallback} | ${meaning} |\n`,
  );
  return `# The chart

<!-- Rendered from values.yaml. Change its comments, then run the tests with UPDATE_REFERENCE=1. -->

[Container and cluster](../docs/guides/container-and-cluster.md#kubernetes) says how to install the chart, how many
replicas to run and where audit lines go. It needs Kubernetes 1.27 or later. These are its values; others are refused.

| Value | Default | Meaning |
|---|---|---|
${rows.join('')}`;
}
