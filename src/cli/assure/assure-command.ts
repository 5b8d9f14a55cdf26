// `sallyport assure`: the rows of risks and answers with the state of each control, from a running gateway if there is a
// token to ask it with, else from the configuration alone; the output says which. docs/reference/commands.md#assure;
// docs/reference/risks.md.

import { resolve } from 'node:path';
import { Option } from 'commander';
import { type Diagnostic, errorsOf, renderDiagnostics } from '../../config/diagnostics.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { toVisibleJson } from '../../text/escaping.js';
import {
  type AdminApiPorts,
  type AdminOptions,
  createSender,
  readOrigin,
  TOKEN_VARIABLE,
  withAdminOptions,
} from '../admin-client.js';
import { type CliIo, type Command, EXIT_FINE, EXIT_UNCHECKED, UsageError, withUsage } from '../program.js';
import { assess, type Basis, type ControlState, type Report, renderMarkdown, renderText } from './report.js';
import { RISK_SOURCES, type RiskSource } from './risk-rows.js';

export type AssurePorts = AdminApiPorts & {
  readonly now: () => number;
  readonly version: string;
  /** The controls as the files alone would have them; `undefined` if a diagnostic is an error. */
  readonly configured: (file: string) => Promise<{
    readonly controls: readonly ControlState[] | undefined;
    readonly diagnostics: readonly Diagnostic[];
  }>;
};

type Options = AdminOptions & {
  readonly format: 'text' | 'json' | 'markdown';
  readonly source?: RiskSource;
};

type Read = { readonly controls: readonly ControlState[]; readonly basis: Basis };

const PATH = '/api/controls';

async function runAssure(options: Options, io: CliIo, ports: AssurePorts): Promise<number> {
  const { controls, basis } = await readControls(options, io, ports);
  const about = { basis, at: new Date(ports.now()).toISOString(), version: ports.version };
  const report = assess(controls, about, options.source);
  io.stdout(render(report, options.json === true ? 'json' : options.format));
  return EXIT_FINE;
}

function render(report: Report, format: Options['format']): string {
  if (format === 'json') return `${toVisibleJson(report)}\n`;
  return format === 'markdown' ? renderMarkdown(report) : renderText(report);
}

/** Whoever gives a token or an address wants the state of what runs: nothing else is shown in its place. */
function readControls(options: Options, io: CliIo, ports: AssurePorts): Promise<Read> {
  const isLive = options.url !== undefined || options.tokenFile !== undefined || io.env[TOKEN_VARIABLE] !== undefined;
  return isLive ? askGateway(options, io, ports) : readFiles(options, io, ports);
}

async function askGateway(options: Options, io: CliIo, ports: AssurePorts): Promise<Read> {
  const send = await createSender(options, io, ports);
  const origin = await readOrigin(options, io, ports);
  const { value } = await send(PATH, { method: 'GET' });
  const rows = value['controls'];
  const controls = Array.isArray(rows) ? rows.flatMap(readControl) : [];
  if (controls.length === 0) throw new UsageError('error: what answers is not the admin listener of a gateway\n');
  return { controls, basis: { kind: 'live', origin } };
}

function readControl(row: unknown): readonly ControlState[] {
  if (!isObject(row)) return [];
  const { control, state, reason = '' } = row;
  return typeof control === 'string' && typeof state === 'string' ? [{ control, state, reason: String(reason) }] : [];
}

async function readFiles({ config = '' }: Options, io: CliIo, ports: AssurePorts): Promise<Read> {
  const { controls, diagnostics } = await ports.configured(resolve(io.cwd, config));
  if (controls === undefined)
    throw new UsageError(renderDiagnostics(errorsOf(diagnostics), 'text', io.cwd), EXIT_UNCHECKED);
  io.stderr(
    `note: no gateway was asked; to have the state of a running one, set ${TOKEN_VARIABLE} or give --token-file\n`,
  );
  return { controls, basis: { kind: 'configured', file: config } };
}

export function assureCommand(io: CliIo, ports: AssurePorts): Command {
  return {
    name: 'assure',
    summary: 'Show known risks, what answers each, and the state of its controls.',
    examples: [
      'sallyport assure -c config/gateway.yaml',
      'sallyport assure --url https://gateway.example.com:9090 --token-file admin.token --format markdown > controls.md',
      'sallyport assure --source owasp --json',
    ],
    configure(command, finish) {
      withAdminOptions(command, io)
        .addOption(
          new Option('--format <format>', 'output format').choices(['text', 'json', 'markdown']).default('text'),
        )
        .addOption(new Option('--source <source>', 'the rows of one source').choices(Object.keys(RISK_SOURCES)))
        .action(async (options: Options) => finish(await withUsage(io, () => runAssure(options, io, ports))));
    },
  };
}
