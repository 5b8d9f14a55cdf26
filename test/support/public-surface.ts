// What users of the program rely on by name, read from the tables that the program itself uses and from a
// running gateway: metrics, reasons, stages, controls, methods, fields of audit events, configuration keys,
// and the words of the command line. Descriptions for people are left out.

import { Command } from 'commander';
import { vi } from 'vitest';
import { EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../../src/cli/program.js';
import { SCHEMAS } from '../../src/cli/validate.js';
import { FINDINGS_MEMBER } from '../../src/inspection/responses.js';
import { REASONS, type Rendering } from '../../src/policy/reasons.js';
import { OWN_META_PREFIX } from '../../src/protocol/capabilities.js';
import { METHODS, REFUSED_METHODS } from '../../src/protocol/methods.js';
import { DECISION_MEMBER } from '../../src/protocol/responses.js';
import { METRICS, type MetricRow, OTHER, TOOL_LABEL } from '../../src/telemetry/metric-table.js';
import { CONTROL_STATES } from '../../src/telemetry/metrics.js';
import type { RunningGateway } from './gateway.js';

/** A section of the record: entries by name. */
export type Section = { readonly [entry: string]: unknown };

/** Keywords of a schema that only people read. */
const PROSE: ReadonlySet<string> = new Set(['description', 'title']);

/** A value without its prose, at any depth. */
function withoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutProse);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([keyword]) => !PROSE.has(keyword));
  return Object.fromEntries(kept.map(([keyword, one]) => [keyword, withoutProse(one)]));
}

function isObject(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every path of a schema with the keywords that stand there: `issuers.<name>.algorithms[]`. */
function pathsOf(schema: Section): Section {
  const paths: Record<string, unknown> = {};
  const walk = (at: Section, path: string): void => {
    const own: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(at)) {
      if (PROSE.has(keyword)) continue;
      if (keyword === 'properties' && isObject(value)) {
        for (const [name, child] of Object.entries(value))
          if (isObject(child)) walk(child, path === '' ? name : `${path}.${name}`);
      } else if (keyword === 'additionalProperties' && isObject(value)) walk(value, `${path}.<name>`);
      else if (keyword === 'items' && isObject(value)) walk(value, `${path}[]`);
      else if (keyword === 'oneOf' && Array.isArray(value)) {
        for (const [index, child] of value.entries()) walk(child, `${path}(${index + 1})`);
      } else own[keyword] = withoutProse(value);
    }
    if (path in paths) throw new Error(`two schemas at ${path}`);
    paths[path] = own;
  };
  walk(schema, '');
  return Object.fromEntries(Object.entries(paths).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function schemaSection(name: string): Section {
  const schema = SCHEMAS.get(name);
  if (schema === undefined) throw new Error(`no schema ${name}`);
  return pathsOf(schema);
}

/** The whole command line, as `process.ts` builds it: nothing of it is run. */
async function readCommandLine(): Promise<Command> {
  const built: Command[] = [];
  const parse = vi.spyOn(Command.prototype, 'parseAsync').mockImplementation(function (this: Command) {
    built.push(this);
    return Promise.resolve(this);
  });
  const { argv, exitCode } = process;
  try {
    process.argv = [process.execPath, 'sallyport', '--help'];
    await import('../../src/process.js');
  } finally {
    process.argv = argv;
    process.exitCode = exitCode;
    parse.mockRestore();
  }
  const [program] = built;
  if (program === undefined) throw new Error('the program read no command line');
  return program;
}

/** Every command by its words, with its arguments and options. */
function commandsOf(command: Command, before = ''): Section {
  const name = `${before}${command.name()}`;
  const options = command.options.map(({ flags, mandatory, argChoices, defaultValue, envVar, hidden }) => ({
    flags,
    ...(mandatory ? { required: true } : {}),
    ...(argChoices === undefined ? {} : { choices: argChoices }),
    ...(defaultValue === undefined ? {} : { default: defaultValue }),
    ...(envVar === undefined ? {} : { env: envVar }),
    ...(hidden ? { hidden } : {}),
  }));
  const args = command.registeredArguments.map((one) => ({
    name: `${one.name()}${one.variadic ? '...' : ''}`,
    required: one.required,
    ...(one.argChoices === undefined ? {} : { choices: one.argChoices }),
  }));
  const own = { aliases: command.aliases(), arguments: args, options };
  const below = command.commands.map((child) => commandsOf(child, `${name} `));
  return Object.assign({ [name]: own }, ...below);
}

function metricSection(): Section {
  const rows = Object.entries<MetricRow>(METRICS).map(([name, { kind, labels, buckets }]) => {
    const bounds = buckets === undefined ? {} : { buckets };
    return [name, { type: kind, labels, ...bounds }] as const;
  });
  return Object.fromEntries(rows);
}

/** How a refusal looks on the wire. */
function wireText(rendering: Rendering): string {
  switch (rendering.as) {
    case 'http':
      return `HTTP ${rendering.status}`;
    case 'challenge':
      return `HTTP ${rendering.status} with WWW-Authenticate`;
    case 'error':
      return `HTTP ${rendering.status}, JSON-RPC error ${rendering.code}`;
    case 'not-found':
      return 'not found, as the protocol version has it';
    case 'refusal':
      return `HTTP 200, result with isError or JSON-RPC error ${rendering.code}`;
  }
}

/** The reasons in their order, which is append-only. */
function reasonSection(): Section {
  const rows = Object.entries(REASONS).map(([name, { stage, level, text, visible, hidden }]) => {
    return [name, { stage, level, text, listed: wireText(visible), unlisted: wireText(hidden) }] as const;
  });
  return Object.fromEntries(rows);
}

/** The methods of MCP by sender and name, each with the eras that carry it. */
function methodSection(): Section {
  const rows: Record<string, unknown[]> = {};
  const add = (name: string, row: unknown): void => {
    rows[name] = [...(rows[name] ?? []), row];
  };
  for (const { method, from, type, eras, versions } of METHODS)
    add(`${from} ${method}`, { type, eras, ...(versions === undefined ? {} : { versions }) });
  for (const { method, from } of REFUSED_METHODS) add(`${from} ${method}`, 'refused');
  return rows;
}

/** The members that lines of the audit log have, by the type of the line. */
function writtenSection(lines: readonly Section[]): Section {
  const paths = new Map<string, Set<string>>();
  const walk = (value: unknown, path: string, found: Set<string>): void => {
    if (Array.isArray(value)) for (const one of value) walk(one, `${path}[]`, found);
    else if (isObject(value))
      for (const [name, one] of Object.entries(value)) walk(one, path === '' ? name : `${path}.${name}`, found);
    else found.add(path);
  };
  for (const line of lines) {
    const found = paths.get(String(line['type'])) ?? new Set<string>();
    walk(line, '', found);
    paths.set(String(line['type']), found);
  }
  const rows = [...paths].map(([type, found]) => [type, [...found].sort()] as const);
  return Object.fromEntries(rows.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Paths that are not of MCP, by listener; of those marked, the body is as fixed as the rest. */
const PATHS = [
  ['data', '/.well-known/oauth-protected-resource/desk', true],
  ['data', '/.well-known/sallyport/jwks.json', false],
  ['data', '/no-such-path', false],
  ['ops', '/livez', true],
  ['ops', '/readyz', true],
  ['ops', '/metrics', false],
  ['ops', '/no-such-path', true],
  ['admin', '/', false],
  ['admin', '/api/controls', false],
  ['admin', '/api/revocations', false],
  ['admin', '/no-such-path', true],
] as const;
/** What differs from response to response, or is the runtime's. */
const UNRECORDED = /^(?:date|connection|keep-alive|content-length|sallyport-decision)$/;

/** What each path answers to a GET, with its headers. */
export async function readPaths(
  running: RunningGateway,
  adminToken: string,
): Promise<{ readonly [path: string]: unknown }> {
  const rows: Record<string, unknown> = {};
  for (const [listener, path, hasFixedBody] of PATHS) {
    const port = running.gateway.listening.find((one) => one.listener === listener)?.port;
    const authorization = listener === 'admin' ? { authorization: `Bearer ${adminToken}` } : {};
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: authorization });
    const body = (await response.text())
      .replaceAll(running.publicUrl, '<gateway>')
      .replaceAll(running.issuer.issuer, '<issuer>');
    rows[`GET ${path} at ${listener}`] = {
      status: response.status,
      headers: Object.fromEntries(
        [...response.headers]
          .filter(([one]) => !UNRECORDED.test(one))
          // The name and the attributes of a cookie are public, its value is random.
          .map(([one, value]) => [one, one === 'set-cookie' ? value.replace(/=[^;]*/, '=') : value]),
      ),
      ...(hasFixedBody ? { body } : {}),
    };
  }
  return rows;
}

/** All of it. `controls` are the names that a running gateway reports, `lines` those of its audit log. */
export async function readPublicSurface(
  controls: readonly string[],
  lines: readonly Section[],
  paths: Section,
): Promise<{ readonly [section: string]: Section }> {
  return {
    record: { 'written by': 'test/golden.test.ts with UPDATE_GOLDEN=1; not to be edited by hand' },
    metrics: metricSection(),
    labels: { overflow: OTHER, tool: TOOL_LABEL },
    reasons: reasonSection(),
    stages: { names: [...new Set(Object.values(REASONS).map(({ stage }) => stage))].sort() },
    controls: { names: controls, states: CONTROL_STATES },
    meta: { prefix: OWN_META_PREFIX, decision: DECISION_MEMBER, findings: FINDINGS_MEMBER },
    methods: methodSection(),
    audit: schemaSection('audit'),
    written: writtenSection(lines),
    paths,
    gateway: schemaSection('gateway'),
    policy: schemaSection('policy'),
    lock: schemaSection('lock'),
    schemas: { names: [...SCHEMAS.keys()] },
    commands: commandsOf(await readCommandLine()),
    exit: { fine: EXIT_FINE, failed: EXIT_FAILED, unchecked: EXIT_UNCHECKED },
  };
}

/** The text of the record: one entry a line, so that a change is a change of one line. */
export function renderSurface(surface: { readonly [section: string]: Section }): string {
  const sections = Object.entries(surface).map(([name, entries]) => {
    const rows = Object.entries(entries).map(
      ([entry, value]) => `    ${JSON.stringify(entry)}: ${JSON.stringify(value)}`,
    );
    return `  ${JSON.stringify(name)}: {\n${rows.join(',\n')}\n  }`;
  });
  return `{\n${sections.join(',\n')}\n}\n`;
}
