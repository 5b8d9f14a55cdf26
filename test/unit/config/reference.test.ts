import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderReference } from '../../../scripts/reference/configuration.js';
import { SCHEMAS } from '../../../src/cli/validate.js';
import type { Schema } from '../../../src/config/schema/declarations.js';

// With UPDATE_REFERENCE=1 the pages are written instead of compared.
const isUpdate = process.env['UPDATE_REFERENCE'] === '1';
const REFERENCE = new URL('../../../docs/reference/', import.meta.url);

function schemaOf(name: string): Schema {
  const schema = SCHEMAS.get(name);
  if (schema === undefined) throw new Error(`no schema ${name}`);
  return schema;
}

function holdPage(name: string, text: string): void {
  const file = new URL(name, REFERENCE);
  if (isUpdate) writeFileSync(file, text);
  expect(readFileSync(file, 'utf8')).toBe(text);
}

describe('[C-18] the reference', () => {
  const page = renderReference([
    {
      title: 'Gateway file (`config/gateway.yaml`)',
      intro:
        'YAML 1.2 core, one document. Relative paths are relative to the file. Secrets are given only as `{env: NAME}` or `{file: PATH}`.',
      schema: schemaOf('gateway'),
    },
    {
      title: 'Policy files (`*.policy.yaml`)',
      intro: 'Every file of the policy folder that ends in `.policy.yaml` is one policy.',
      schema: schemaOf('policy'),
    },
  ]);

  it('says what the schemas say', () => holdPage('configuration.md', page));

  it.each([...SCHEMAS.keys()])('holds the schema %s, which modelines name', (name) => {
    holdPage(`${name}.schema.json`, `${JSON.stringify(schemaOf(name), null, 2)}\n`);
  });

  it('names each key with its default', () => {
    expect(page).toContain('| `upstreams.<name>.limits.requestTimeout` | a duration');
    expect(page).toMatch(/`upstreams\.<name>\.pinning\.maxAge` \|[^|]*\| `60s` \|/);
    expect(page).toMatch(/`publicUrl` \|[^|]*\| required \|/);
  });
});
