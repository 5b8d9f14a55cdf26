// Renders the reference page of the gateway file and the policy file from their JSON Schemas. Pure text;
// a test fails if the published page differs from the schemas.

import { type Schema, SECRET_TITLE } from '../../src/config/schema/declarations.js';

type Row = {
  readonly key: string;
  readonly type: string;
  readonly fallback: string;
  readonly text: string;
};

/** The page as Markdown, with one section per schema. */
export function renderReference(
  sections: readonly { readonly title: string; readonly intro: string; readonly schema: Schema }[],
): string {
  const parts = sections.map(({ title, intro, schema }) => {
    const rows = rowsOf(schema, '').map(renderRow).join('\n');
    return `## ${title}\n\n${intro}\n\n| key | value | default | meaning |\n|---|---|---|---|\n${rows}\n`;
  });
  return `# Configuration reference\n\nGenerated from the JSON Schemas; \`sallyport schema NAME\` prints them.\n\n${parts.join('\n')}`;
}

function renderRow(row: Row): string {
  return `| \`${row.key}\` | ${escapeCell(row.type)} | ${row.fallback} | ${escapeCell(row.text)} |`;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function rowsOf(schema: Schema, prefix: string): readonly Row[] {
  const properties = membersOf(schema['properties']);
  const required = new Set(listOf(schema['required']));
  const own = [...properties].flatMap(([name, child]) => rowsOfKey(`${prefix}${name}`, child, required.has(name)));
  return [...own, ...rowsOfShapes(schema, prefix, properties)];
}

function rowsOfKey(key: string, schema: Schema, isRequired: boolean): readonly [Row, ...Row[]] {
  const row: Row = {
    key,
    type: typeOf(schema),
    fallback: fallbackOf(schema, isRequired),
    text: textOf(schema),
  };
  // The page explains secret references once; their rows name them by title only.
  if (schema['title'] === SECRET_TITLE) return [row];
  return [row, ...rowsBelow(key, schema)];
}

function rowsBelow(key: string, schema: Schema): readonly Row[] {
  const values = schema['additionalProperties'];
  if (isSchema(values)) return rowsOf(values, `${key}.<name>.`);
  const items = schema['items'];
  const ownKeys = schema['properties'] === undefined ? [] : rowsOf(schema, `${key}.`);
  if (isSchema(items)) return [...ownKeys, ...rowsOf(items, `${key}[].`)];
  return rowsOf(schema, `${key}.`);
}

/** Rows of the keys of a union's shapes; a key that several shapes have is listed once. */
function rowsOfShapes(schema: Schema, prefix: string, shown: ReadonlyMap<string, Schema>): readonly Row[] {
  const shapes = listOf(schema['oneOf']).filter(isSchema);
  if (shapes.length === 0) return [];
  const tag = String((schema['discriminator'] as Schema)['propertyName']);
  const seen = new Set(shown.keys());
  const tags = shapes.map((shape) => constOf(membersOf(shape['properties']).get(tag)));
  const rows: Row[] = [{ key: `${prefix}${tag}`, type: tags.join(', '), fallback: 'required', text: textOf(schema) }];
  seen.add(tag);
  for (const shape of shapes) {
    const required = new Set(listOf(shape['required']));
    for (const [name, child] of membersOf(shape['properties'])) {
      if (seen.has(name)) continue;
      seen.add(name);
      const [row, ...below] = rowsOfKey(`${prefix}${name}`, child, required.has(name));
      const owners = tags.filter((_, index) => holdsKey(shapes[index], name));
      const text = `With \`${tag}\` ${owners.join(' or ')}: ${row.text}`;
      rows.push(owners.length === tags.length ? row : { ...row, text }, ...below);
    }
  }
  return rows;
}

function holdsKey(shape: Schema | undefined, name: string): boolean {
  return membersOf(shape?.['properties']).has(name);
}

function constOf(schema: Schema | undefined): string {
  return `\`${String(schema?.['const'])}\``;
}

function typeOf(schema: Schema): string {
  const title = schema['title'];
  const options = schema['enum'];
  if (Array.isArray(options)) return options.map((option) => `\`${option}\``).join(', ');
  if (schema['const'] !== undefined) return `\`${String(schema['const'])}\``;
  if (typeof title === 'string') return title;
  const items = schema['items'];
  if (schema['type'] === 'array' && isSchema(items) && items['type'] === 'string') {
    return `list of ${typeOf(items)}`;
  }
  return listOf([schema['type'] ?? 'any'].flat())
    .map((type) => NOUNS.get(String(type)) ?? String(type))
    .join(' or ');
}

const NOUNS: ReadonlyMap<string, string> = new Map([
  ['object', 'map'],
  ['array', 'list'],
  ['string', 'text'],
  ['boolean', '`true`, `false`'],
]);

function fallbackOf(schema: Schema, isRequired: boolean): string {
  if (isRequired) return 'required';
  const fallback = schema['default'];
  if (fallback === undefined || JSON.stringify(fallback) === '{}') return '';
  return `\`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\``;
}

/** What looks like an element of HTML is not shown, unless it is code. */
function textOf(schema: Schema): string {
  const text = typeof schema['description'] === 'string' ? schema['description'] : '';
  return text.replace(/(`[^`]*`)|</g, (_, code?: string) => code ?? '\\<');
}

function membersOf(value: unknown): ReadonlyMap<string, Schema> {
  return new Map(Object.entries(isSchema(value) ? value : {}) as [string, Schema][]);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
