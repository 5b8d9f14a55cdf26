// `sallyport keys new` generates a gateway key; `keys public` prints public parts. A key is printed to stdout
// once, when it is generated, and an existing key is never printed. docs/contract.md §1.

import { resolve } from 'node:path';
import { renderDiagnostics } from '../config/diagnostics.js';
import type { Files } from '../config/files.js';
import {
  KEY_BYTES,
  type PublicKeyInfo,
  publicKeyInfoOf,
  readKeyText,
  writeKeyText,
} from '../config/keys.js';
import { loadGateway } from '../config/load.js';
import { describeFile } from '../config/secrets.js';
import { describeReadError } from '../text/file-errors.js';
import { withConfigOption } from './config-file.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from './program.js';

export type KeysPorts = {
  readonly files: Pick<Files, 'readFile'>;
  randomBytes(count: number): Uint8Array;
};

/** Prints a new key on one line. */
function runKeysNew(_: object, io: CliIo, ports: KeysPorts): Promise<number> {
  io.stdout(`${writeKeyText(ports.randomBytes(KEY_BYTES))}\n`);
  return Promise.resolve(EXIT_FINE);
}

export type KeysPublicOptions = {
  /** A key file, or `-` for stdin. Exactly one of this and `config` is given. */
  readonly file?: string;
  readonly config?: string;
  readonly json?: boolean;
};

/** Prints the public parts of a key file, of stdin, or of every key of a gateway file. */
async function runKeysPublic(
  options: KeysPublicOptions,
  io: CliIo,
  ports: KeysPorts,
): Promise<number> {
  const { file, config } = options;
  if ((file === undefined) === (config === undefined)) {
    io.stderr('error: name a key file, - for standard input, or a gateway file with -c\n');
    return EXIT_UNCHECKED;
  }
  const publicKeys =
    config === undefined
      ? await readKeyFile(file ?? '-', io, ports)
      : readConfiguredKeys(config, io, ports);
  if (typeof publicKeys === 'number') return publicKeys;
  const text = options.json
    ? JSON.stringify({ keys: publicKeys.map((part) => part.jwk) }, null, 2)
    : publicKeys.map((part) => part.text).join('\n');
  io.stdout(text === '' ? '' : `${text}\n`);
  return EXIT_FINE;
}

async function readKeyFile(
  file: string,
  io: CliIo,
  ports: KeysPorts,
): Promise<readonly PublicKeyInfo[] | number> {
  const source = file === '-' ? 'standard input' : describeFile(file);
  const read = await readText(file, io, ports);
  if ('why' in read) {
    io.stderr(`error: ${source} ${read.why}\n`);
    return EXIT_UNCHECKED;
  }
  const key = readKeyText(read.text);
  if (key !== undefined) return [publicKeyInfoOf(key)];
  io.stderr(
    `error: ${source} holds no gateway key: expected 32 bytes as base64 or hex, or what \`keys new\` prints\n`,
  );
  return EXIT_FAILED;
}

async function readText(
  file: string,
  io: CliIo,
  ports: KeysPorts,
): Promise<{ readonly text: string } | { readonly why: string }> {
  try {
    if (file === '-') return { text: (await io.readStdin?.()) ?? '' };
    return { text: new TextDecoder().decode(ports.files.readFile(resolve(io.cwd, file))) };
  } catch (error) {
    return { why: describeReadError(error) };
  }
}

function readConfiguredKeys(
  config: string,
  io: CliIo,
  ports: KeysPorts,
): readonly PublicKeyInfo[] | number {
  const { settings, diagnostics } = loadGateway(resolve(io.cwd, config), {
    readFile: ports.files.readFile,
    env: io.env,
  });
  if (settings !== undefined) return settings.keys.map(publicKeyInfoOf);
  io.stderr(renderDiagnostics(diagnostics, 'text', io.cwd));
  return diagnostics.some((diagnostic) => diagnostic.rule === 'unreadable')
    ? EXIT_UNCHECKED
    : EXIT_FAILED;
}

export function keysCommand(io: CliIo, ports: KeysPorts): Command {
  return {
    name: 'keys',
    summary: 'Create a gateway key, or print public keys.',
    examples: [
      'sallyport keys new > sallyport-key',
      'sallyport keys public sallyport-key',
      'sallyport keys public -c config/gateway.yaml --json',
    ],
    configure(command, finish) {
      command
        .command('new')
        .description('Print a new key.')
        .action(async () => finish(await runKeysNew({}, io, ports)));
      const description = 'the gateway file, for all of its keys';
      const isNeeded = (args: readonly string[]): boolean => args.length === 0;
      withConfigOption(command.command('public'), io, { description, isNeeded })
        .description('Print public keys.')
        .argument('[file]', 'key file, or - for standard input')
        .option('--json', 'print a JSON Web Key Set')
        .action(async (file: string | undefined, options: { config?: string; json?: true }) =>
          finish(
            await runKeysPublic({ ...options, ...(file === undefined ? {} : { file }) }, io, ports),
          ),
        );
    },
  };
}
