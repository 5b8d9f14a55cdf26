// Renders the chart, as a release `edge` in the namespace `mcp`.

import { copyFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { helmProgram, must, run } from '../programs.js';

export const CHART = join(import.meta.dirname, '../../../helm');
const VALUES = join(import.meta.dirname, 'values');
const RELEASE = ['--namespace', 'mcp', '--kube-version', '1.31.0'];
/** Without destinations the chart renders nothing; what else a test says comes behind it. */
const ANY_EGRESS = ['--set-json', 'networkPolicy.egress="any"'];

// biome-ignore lint/suspicious/noExplicitAny: a manifest is read by its members
type Any = any;

export type Resource = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [key: string]: Any;
};

export function parseManifests(text: string): readonly Resource[] {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Resource | null);
  return documents.filter((resource) => resource !== null);
}

export async function templateText(...args: string[]): Promise<string> {
  return must(helmProgram(), ['template', 'edge', CHART, ...RELEASE, ...args]);
}

const EXAMPLE = join(import.meta.dirname, '../../../config/examples/kubernetes');

/** What the command of the example renders, with the options that its README gives. */
export async function templateExample(): Promise<string> {
  const readme = await readFile(join(EXAMPLE, 'README.md'), 'utf8');
  const [, options = ''] = /helm install sallyport \S+ ([^`]+)/.exec(readme) ?? [];
  const args = options
    .replaceAll("'", '')
    .split(/\\?\s+/)
    .filter(Boolean);
  return must(helmProgram(), ['template', 'edge', CHART, ...RELEASE, ...args], { cwd: EXAMPLE });
}

export function template(...args: string[]): Promise<readonly Resource[]> {
  return templateOf(CHART, ...args);
}

export async function templateOf(chart: string, ...args: string[]): Promise<readonly Resource[]> {
  return parseManifests(await must(helmProgram(), ['template', 'edge', chart, ...RELEASE, ...ANY_EGRESS, ...args]));
}

/** What helm says of a chart that it does not render. */
export async function refusal(...args: string[]): Promise<string> {
  const outcome = await run(helmProgram(), ['template', 'edge', CHART, ...RELEASE, ...ANY_EGRESS, ...args]);
  if (outcome.code === 0) throw new Error(`${args.join(' ')} is rendered`);
  return outcome.stderr;
}

/** The notes that an installation prints, which helm renders for no command that needs no cluster. */
export async function notes(...args: string[]): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'sallyport-chart-'));
  try {
    await cp(CHART, copy, { recursive: true });
    await copyFile(join(CHART, 'templates/NOTES.txt'), join(copy, 'notes.txt'));
    const shown = 'kind: Notes\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get "notes.txt") . | toJson }}\n';
    await writeFile(join(copy, 'templates/notes.yaml'), shown);
    const only = ['--show-only', 'templates/notes.yaml'];
    const rendered = await must(helmProgram(), ['template', 'edge', copy, ...RELEASE, ...ANY_EGRESS, ...only, ...args]);
    return String(parseManifests(rendered)[0]?.['text']);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** The sets of values, by name: the file of each. */
export async function valueSets(): Promise<readonly (readonly [string, string])[]> {
  const files = await readdir(VALUES);
  return files.sort().map((file) => [file.replace('.yaml', ''), join(VALUES, file)] as const);
}

export function find(resources: readonly Resource[], kind: string, name?: string): Resource {
  const found = resources.find((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  if (found === undefined) throw new Error(`no ${kind} ${name ?? ''} rendered`);
  return found;
}

export function workloadOf(resources: readonly Resource[]): Resource {
  const [workload] = resources.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  if (workload === undefined) throw new Error('no workload rendered');
  return workload;
}

/** The template of the pods: metadata and spec. */
export function podOf(resources: readonly Resource[]): Any {
  return workloadOf(resources)['spec'].template;
}

/** The container of the gateway. */
export function containerOf(resources: readonly Resource[]): Any {
  return podOf(resources).spec.containers[0];
}
