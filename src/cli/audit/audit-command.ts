// `sallyport audit`: the command with its subcommands, `audit hash` and `audit verify`, which verifies that audit files
// form one complete chain and prints where they do not; read.ts reads audit files. Never repairs, and writes no file.
// docs/reference/commands.md#audit; docs/reference/audit.md.

import { relative, resolve } from 'node:path';
import { type Command as Commander, Option } from 'commander';
import { type ChainHead, isStreamEpoch, readChainLine, readCheckpoint } from '../../audit/chain.js';
import { readLines, STDIN, verifyAuditFiles } from '../../audit/reader.js';
import type { ChainVerdict, VerifyOptions } from '../../audit/verify.js';
import { createKeyRing, DIGEST_PURPOSES } from '../../state/derived-keys.js';
import { makeVisible, toVisibleJson } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  type Finish,
  withConfigOption,
} from '../program.js';
import {
  type AuditFilePorts,
  type AuditQueryOptions,
  type AuditShowOptions,
  type AuditTailOptions,
  expandFiles,
  printError,
  readKeys,
  runAuditExport,
  runAuditQuery,
  runAuditShow,
  runAuditTail,
} from './read.js';

type AuditVerifyOptions = {
  readonly files: readonly string[];
  /** `EPOCH:SEQ:HASH`, a checkpoint event as JSON, or a file whose last checkpoint of each chain is used. */
  readonly head?: string;
  /** Public keys: the output of `keys public`, a JWK, PEM, or a file with one of them. */
  readonly key?: readonly string[];
  readonly json?: boolean;
};

const INLINE_HEAD = /^([\w-]{1,64}):(\d{1,15}):([0-9a-f]{64}|[\w-]{43})$/;

/** The head stated by a line: for a checkpoint, the position that it signs. */
function headOfLine(text: string): ChainHead | undefined {
  const line = readChainLine(text);
  const point = line?.type === 'checkpoint' ? readCheckpoint(line.detail) : undefined;
  return point && { epoch: point.epoch, seq: point.seq, hash: point.hash };
}

function inlineHead(text: string): ChainHead | undefined {
  const [, epoch, seq, hash] = INLINE_HEAD.exec(text.trim()) ?? [];
  if (epoch === undefined || hash === undefined) return undefined;
  return { epoch, seq: Number(seq), hash };
}

/** The heads that a text states: of a file, the last one of each chain. */
async function readHeads(text: string, cwd: string): Promise<readonly ChainHead[]> {
  const inline = inlineHead(text) ?? (text.trimStart().startsWith('{') ? headOfLine(text.trim()) : undefined);
  if (inline !== undefined) return [inline];
  const heads = new Map<string, ChainHead>();
  for await (const line of readLines(resolve(cwd, text))) {
    const head = inlineHead(line) ?? headOfLine(line);
    if (head !== undefined) heads.set(head.epoch, head);
  }
  return [...heads.values()];
}

async function readOptions(options: AuditVerifyOptions, cwd: string): Promise<VerifyOptions> {
  const heads = options.head === undefined ? [] : await readHeads(options.head, cwd);
  if (options.head !== undefined && heads.length === 0) throw new Error('no checkpoint in --head');
  const publicKeys = await readKeys(options.key ?? [], cwd);
  return {
    ...(heads.length === 0 ? {} : { heads }),
    ...(publicKeys.length === 0 ? {} : { publicKeys }),
  };
}

async function verifyFiles(options: AuditVerifyOptions, cwd: string): Promise<ChainVerdict> {
  const nameOf = (file: string): string => (file === STDIN ? 'standard input' : relative(cwd, file) || file);
  const strays: string[] = [];
  const files = await expandFiles(options.files, cwd, (file) => void strays.push(nameOf(file)));
  const verdict = await verifyAuditFiles(files, await readOptions(options, cwd), { nameOf });
  const notes = strays.map((name) => `${name}: not read, since its first line is no audit record`);
  return { ...verdict, notes: [...notes, ...verdict.notes] };
}

/** The lines that could have been rewritten undetected: printed first, whatever the result. */
function unsignedText({ unsigned, lines }: ChainVerdict, hasKey: boolean): string {
  const { lines: count, fromSeq } = unsigned;
  const lineCount = countOf(count, 'line');
  const from = fromSeq === undefined ? '' : `, from sequence number ${fromSeq} on,`;
  const consequence =
    count === 0 ? 'unsigned: 0 lines' : `unsigned: ${lineCount}${from} could have been rewritten or cut off`;
  return hasKey || count === lines
    ? consequence
    : `${consequence}; without --key, all ${lines} could have been rewritten`;
}

/** A line for each instance, if they are several, or several runs in a stream; its head is that of its last run. */
function instanceTexts({ instances }: ChainVerdict): readonly string[] {
  const isStream = instances.some(({ runs }) => runs.length > 1 && runs.some(({ head }) => isStreamEpoch(head.epoch)));
  if (instances.length < 2 && !isStream) return [];
  return instances.map(({ instance, runs }) => {
    const total = (name: 'lines' | 'checkpoints' | 'unsigned') => runs.reduce((sum, run) => sum + run[name], 0);
    const { epoch = '', seq = 0, hash = '' } = runs.at(-1)?.head ?? {};
    const counts = [countOf(runs.length, 'run'), countOf(total('lines'), 'line')].join(', ');
    const signed = `${countOf(total('checkpoints'), 'signed checkpoint')}, ${total('unsigned')} unsigned`;
    return `instance ${instance}: ${counts}, ${signed}, head ${epoch}:${seq}:${hash}`;
  });
}

function report(verdict: ChainVerdict, hasKey: boolean, io: CliIo): void {
  const instances = instanceTexts(verdict);
  io.stdout(`${unsignedText(verdict, hasKey)}\n`);
  for (const { file, line, kind, message } of verdict.faults) {
    io.stdout(`${makeVisible(`${file}:${line} ${kind}: ${message}`)}\n`);
  }
  for (const text of verdict.twoWriters) io.stdout(`${makeVisible(text)}\n`);
  for (const text of verdict.unchecked) io.stdout(`${makeVisible(`not checked: ${text}`)}\n`);
  if (verdict.isWhole) {
    const { head } = verdict;
    const at =
      instances.length > 0 || head === undefined
        ? ''
        : `, head ${makeVisible(`${head.epoch}:${head.seq}:${head.hash}`)}`;
    io.stdout(
      `complete: the chain of ${countOf(verdict.lines, 'line')} with ${countOf(verdict.checkpoints, 'signed checkpoint')} was verified${at}\n`,
    );
  }
  for (const text of instances) io.stdout(`${makeVisible(text)}\n`);
  // What could not be checked was printed above, with the note that says why.
  const notes = verdict.notes.filter((note) => !verdict.unchecked.some((text) => text.includes(note)));
  for (const note of notes) io.stderr(`note: ${makeVisible(note)}\n`);
}

/** Verifies files, in the given order. */
export async function runAuditVerify(options: AuditVerifyOptions, io: CliIo): Promise<number> {
  try {
    const verdict = await verifyFiles(options, io.cwd);
    if (options.json) io.stdout(`${toVisibleJson(verdict)}\n`);
    else report(verdict, (options.key ?? []).length > 0, io);
    if (verdict.faults.length > 0) return EXIT_FAILED;
    return verdict.isWhole ? EXIT_FINE : EXIT_UNCHECKED;
  } catch (error) {
    return printError(error, io);
  }
}

type AuditHashOptions = {
  readonly value: string;
  readonly config: string;
  readonly json?: boolean;
};

/** Prints the keyed digests by which audit events record a value, for each key and purpose. */
async function runAuditHash(options: AuditHashOptions, io: CliIo, ports: AuditFilePorts): Promise<number> {
  const { settings, diagnostics } = await ports.loadSettings(resolve(io.cwd, options.config));
  if (settings === undefined || settings.keys.length === 0) {
    io.stderr(settings === undefined ? diagnostics : 'error: this gateway file names no key\n');
    return EXIT_UNCHECKED;
  }
  const ring = createKeyRing(settings.keys);
  const rows = DIGEST_PURPOSES.flatMap((purpose) =>
    ring.hmacAll(purpose, options.value).map((digest, index) => ({
      purpose,
      key: settings.keys[index]?.id ?? '',
      digest,
    })),
  );
  if (options.json) io.stdout(`${JSON.stringify(rows)}\n`);
  else for (const { purpose, key, digest } of rows) io.stdout(`${digest}  ${purpose}  ${key}\n`);
  return EXIT_FINE;
}

const FILES_ARGUMENT = 'audit files, oldest first, or the folder that they are in; - for standard input';

/** Adds -c, which is needed where no audit file is named after the first `named` arguments. */
function withFileOptions(command: Commander, io: CliIo, named: number): Commander {
  return withConfigOption(command, io, {
    description: 'the gateway file, for the path of its audit files',
    isNeeded: (args) => args.length <= named,
  });
}

function configureReadCommands(command: Commander, io: CliIo, ports: AuditFilePorts, finish: Finish): void {
  withFileOptions(command.command('tail').description('Show the last events.'), io, 0)
    .argument('[files...]', FILES_ARGUMENT)
    .option('-f, --follow', 'wait for further events and show them')
    .option('--json', 'print the lines unchanged')
    .action(async (files: string[], options: Omit<AuditTailOptions, 'files'>) =>
      finish(await runAuditTail({ ...options, files }, io, ports)),
    );
  withFileOptions(command.command('query').description('Print the events that match.'), io, 0)
    .argument('[files...]', FILES_ARGUMENT)
    .option('--type <type>', 'event type, for example mcp.decision')
    .option('--subject <subject>', 'exact subject of the caller')
    .option('--upstream <name>', 'name of the upstream')
    .option('--instance <name>', 'name of the gateway that wrote the event')
    .option('--reason <reason>', 'reason of a refusal')
    .option('--altered', 'only results that were changed on their way to the client')
    .option('--approval <id>', 'only events of an approval, and decisions that name it')
    .option('--trace <id>', 'only requests of a trace')
    .option('--since <time>', 'start time: RFC 3339, or a duration before now, for example 30m')
    .option('--json', 'print JSON, with all members of each event')
    .action(async (files: string[], options: Omit<AuditQueryOptions, 'files'>) =>
      finish(await runAuditQuery({ ...options, files }, io, ports)),
    );
  const show = command.command('show').description('Print one event, or all events of one decision or approval.');
  withFileOptions(show, io, 1)
    .argument('<id>', 'id of a decision, an approval or an event')
    .argument('[files...]', FILES_ARGUMENT)
    .option('--json', 'print JSON, with all members of each event')
    .action(async (id: string, files: string[], options: Omit<AuditShowOptions, 'id' | 'files'>) =>
      finish(await runAuditShow({ ...options, id, files }, io, ports)),
    );
}

function configureVerifyCommands(command: Commander, io: CliIo, ports: AuditFilePorts, finish: Finish): void {
  command
    .command('verify')
    .description('Verify that the files are complete and unchanged.')
    .argument('<files...>', FILES_ARGUMENT)
    .option('--head <checkpoint>', 'checkpoint kept elsewhere: EPOCH:SEQ:HASH, JSON, or a file')
    .option(
      '--key <public...>',
      'public keys that checkpoints must be signed with, or files that contain them; stands behind <files>',
    )
    .option('--json', 'print the verdict as JSON')
    .action(async (files: string[], options: Omit<AuditVerifyOptions, 'files'>) =>
      finish(await runAuditVerify({ ...options, files }, io)),
    );
  const hash = command.command('hash').description('Print the keyed digests of a value.');
  withConfigOption(hash, io, { description: 'the gateway file, for its keys' })
    .argument('<value>', 'value to look for')
    .option('--json', 'print JSON')
    .action(async (value: string, options: Omit<AuditHashOptions, 'value'>) =>
      finish(await runAuditHash({ ...options, value }, io, ports)),
    );
  const exported = command.command('export').description('Print the events in another form, one line each.');
  withConfigOption(exported, io, { description: 'the gateway file, for the path of its audit files' })
    .argument('[files...]', FILES_ARGUMENT)
    .addOption(new Option('--format <format>', 'form of the events').choices(['ocsf']).default('ocsf'))
    .action(async (files: string[], options: { readonly config?: string }) =>
      finish(await runAuditExport({ ...options, files }, io, ports)),
    );
}

/** The command `audit` with its subcommands. */
export function auditCommand(io: CliIo, ports: AuditFilePorts): Command {
  return {
    name: 'audit',
    summary: 'Read audit files and verify their chain.',
    examples: [
      'sallyport audit tail -f -c config/gateway.yaml',
      'sallyport audit query /var/lib/sallyport --reason denied-by-rule --since 1h',
      'sallyport audit show 0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11 /var/lib/sallyport',
      'sallyport audit verify /var/lib/sallyport --key sallyport-public-1:…',
    ],
    configure(command, finish) {
      configureReadCommands(command, io, ports, finish);
      configureVerifyCommands(command, io, ports, finish);
    },
  };
}
