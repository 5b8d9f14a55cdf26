// Checks manifests against the schemas of Kubernetes, and against the CRDs of the Gateway API and of the Prometheus
// operator, which `.ci/run` fetches. Unknown members are mistakes, as for an API server that validates strictly.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { TOOLS } from '../programs.js';
import type { Resource } from './rendering.js';

/** The oldest that the chart admits and the newest there is. The same versions are in `.ci/run`. */
export const KUBERNETES_VERSIONS = ['1.27', '1.37'] as const;
const SCHEMAS = join(TOOLS, 'manifest-schemas-1.37-v1.6.3-v0.95.2');

type Schema = { readonly [key: string]: unknown };

const custom = new Map<string, ValidateFunction>();
const builtIn = new Map<string, Ajv2020>();

/** What is wrong with a manifest; nothing if it is valid. */
export function findMistakes(resource: Resource, version: (typeof KUBERNETES_VERSIONS)[number]): readonly string[] {
  const validate = resource.apiVersion.endsWith('.com/v1') || resource.apiVersion.startsWith('gateway.');
  const check = validate ? customCheck(resource) : builtInCheck(resource, version);
  check(resource);
  const of = `${resource.kind} ${resource.metadata.name}`;
  return (check.errors ?? []).map(
    ({ instancePath, message, params }) => `${of} ${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

function readSchema(...path: readonly string[]): Schema {
  const file = join(SCHEMAS, ...path);
  if (!existsSync(file)) throw new Error(`${file} is missing; .ci/run fetches the schemas of manifests`);
  return parse(readFileSync(file, 'utf8')) as Schema;
}

/** The patterns of Go may begin with a flag. */
const regExp = Object.assign(
  (pattern: string, flags: string) => {
    const plain = pattern.replace('(?i)', '');
    return new RegExp(plain, plain === pattern ? flags : `${flags}i`);
  },
  { code: '' },
);

function newAjv(): Ajv2020 {
  return new Ajv2020({ strict: false, validateFormats: false, allErrors: true, inlineRefs: false, code: { regExp } });
}

function builtInCheck({ apiVersion, kind }: Resource, version: string): ValidateFunction {
  const folder = `kubernetes-${version}`;
  let ajv = builtIn.get(version);
  if (ajv === undefined) {
    ajv = newAjv();
    ajv.addSchema(
      JSON.parse(readFileSync(join(SCHEMAS, folder, '_definitions.json'), 'utf8')),
      '/api/_definitions.json',
    );
    builtIn.set(version, ajv);
  }
  // rbac.authorization.k8s.io/v1 is rbac-v1 there.
  const group = apiVersion.replace(/^([^./]*)(?:\.[^/]*)?\//, '$1-');
  const name = `${kind.toLowerCase()}-${group}.json`;
  const known = ajv.getSchema(`/api/${name}`);
  if (known !== undefined) return known as ValidateFunction;
  const schema = JSON.parse(readFileSync(join(SCHEMAS, folder, name), 'utf8'));
  ajv.addSchema({ ...schema, $id: `/api/${name}` });
  return ajv.getSchema(`/api/${name}`) as ValidateFunction;
}

function customCheck({ apiVersion, kind }: Resource): ValidateFunction {
  const name = `${apiVersion} ${kind}`;
  const known = custom.get(name);
  if (known !== undefined) return known;
  const [group = '', version = ''] = apiVersion.split('/');
  const file = readdirSync(SCHEMAS).find((one) => one.startsWith(`${group}_${kind.toLowerCase()}s`));
  if (file === undefined) throw new Error(`no CRD of ${name}`);
  const { spec } = readSchema(file) as { spec: { versions: { name: string; schema: { openAPIV3Schema: Schema } }[] } };
  const served = spec.versions.find((one) => one.name === version);
  if (served === undefined) throw new Error(`no version ${version} of ${kind}`);
  const check = newAjv().compile(closed(served.schema.openAPIV3Schema) as Schema);
  custom.set(name, check);
  return check;
}

/** A structural schema of a CRD with unknown members as mistakes: what it does not name is dropped by an API server. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const members = Object.entries(schema as Schema).map(([key, value]) => [key, closed(value)]);
  const copy = Object.fromEntries(members) as Record<string, unknown>;
  const isOpen = 'x-kubernetes-preserve-unknown-fields' in copy || 'additionalProperties' in copy;
  const isObject = copy['type'] === 'object' && typeof copy['properties'] === 'object';
  return isObject && !isOpen ? { ...copy, additionalProperties: false } : copy;
}
