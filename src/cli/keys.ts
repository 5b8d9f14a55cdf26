// `sallyport keys new` generates a gateway key, or with --signing a key for `pin sign`; `keys public` prints public
// parts. A key is printed to stdout once, when it is generated, and an existing key is never printed.
// docs/reference/commands.md.

import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { renderDiagnostics } from '../config/diagnostics.js';
import type { Files } from '../config/files.js';
import {
  KEY_BYTES,
  publicKeyInfoOf,
  publicPartOf,
  readKeyText,
  readPrivateSignerKey,
  writeKeyText,
} from '../config/key-material.js';
import { loadGateway } from '../config/load.js';
import { describeFile } from '../config/secrets.js';
import { describeReadError } from '../text/wording.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED, fail, withConfigOption } from './program.js';

type KeysPorts = {
  readonly files: Pick<Files, 'readFile'>;
};

/** A new gateway key on one line, or an Ed25519 key for signatures as PKCS #8 in PEM. */
function newKeyText({ signing }: { readonly signing?: boolean }): string {
  return signing
    ? generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    : `${writeKeyText(randomBytes(KEY_BYTES))}\n`;
}

type PublicPart = { readonly text: string; readonly jwk: object };

type KeysPublicOptions = {
  /** A key file, or `-` for stdin. Exactly one of this and `config` is given. */
  readonly file?: string | undefined;
  readonly config?: string;
  readonly json?: boolean;
};

/** Prints the public parts of a key file, of stdin, or of every key of a gateway file. */
async function runKeysPublic(options: KeysPublicOptions, io: CliIo, ports: KeysPorts): Promise<number> {
  const { file, config } = options;
  if ((file === undefined) === (config === undefined)) {
    const message = 'name a key file, - for standard input, or a gateway file with -c';
    return fail(message, EXIT_UNCHECKED, io);
  }
  const publicKeys =
    config === undefined ? await readKeyFile(file ?? '-', io, ports) : readConfiguredKeys(config, io, ports);
  if (typeof publicKeys === 'number') return publicKeys;
  const text = options.json
    ? JSON.stringify({ keys: publicKeys.map((part) => part.jwk) }, null, 2)
    : publicKeys.map((part) => part.text.trimEnd()).join('\n');
  io.stdout(text === '' ? '' : `${text}\n`);
  return EXIT_FINE;
}

async function readKeyFile(file: string, io: CliIo, ports: KeysPorts): Promise<readonly PublicPart[] | number> {
  const source = file === '-' ? 'standard input' : describeFile(file);
  const read = await readText(file, io, ports);
  if ('why' in read) return fail(`${source} ${read.why}`, EXIT_UNCHECKED, io);
  const key = readKeyText(read.text);
  if (key !== undefined) return [publicKeyInfoOf(key)];
  const signing = readPrivateSignerKey(read.text);
  if (signing.ok) return [signingPartOf(signing.key)];
  const why = 'holds no gateway key: expected 32 bytes as base64 or hex, or what `keys new` prints';
  return fail(`${source} ${why}`, EXIT_FAILED, io);
}

/** The public part of a key for `pin sign`. */
function signingPartOf(key: KeyObject): PublicPart {
  const { keyId, publicKey } = publicPartOf(key);
  const jwk = createPublicKey(publicKey).export({ format: 'jwk' });
  return { text: publicKey, jwk: { ...jwk, kid: keyId, use: 'sig' } };
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

function readConfiguredKeys(config: string, io: CliIo, ports: KeysPorts): readonly PublicPart[] | number {
  const { settings, diagnostics } = loadGateway(resolve(io.cwd, config), {
    readFile: ports.files.readFile,
    env: io.env,
  });
  if (settings !== undefined) return settings.keys.map(publicKeyInfoOf);
  io.stderr(renderDiagnostics(diagnostics, 'text', io.cwd));
  return diagnostics.some((diagnostic) => diagnostic.rule === 'unreadable') ? EXIT_UNCHECKED : EXIT_FAILED;
}

export function keysCommand(io: CliIo, ports: KeysPorts): Command {
  return {
    name: 'keys',
    summary: 'Create a gateway key or a key for signatures, or print public keys.',
    examples: [
      'sallyport keys new > sallyport-key',
      'sallyport keys public sallyport-key',
      '(umask 077; sallyport keys new --signing > signer.pem)    # a key for pin sign',
      'sallyport keys public signer.pem > signer.pub.pem',
      'sallyport keys public -c config/gateway.yaml --json',
    ],
    configure(command, finish) {
      command
        .command('new')
        .description('Print a new key.')
        .option('--signing', 'a key for pin sign: Ed25519, PKCS #8 in PEM')
        .action((options: { signing?: true }) => {
          io.stdout(newKeyText(options));
          finish(EXIT_FINE);
        });
      const description = 'the gateway file, for all of its keys';
      const isNeeded = (args: readonly string[]): boolean => args.length === 0;
      withConfigOption(command.command('public'), io, { description, isNeeded })
        .description('Print public keys.')
        .argument('[file]', 'key file, or - for standard input')
        .option('--json', 'print a JSON Web Key Set')
        .action(async (file: string | undefined, options: { config?: string; json?: true }) =>
          finish(await runKeysPublic({ ...options, file }, io, ports)),
        );
    },
  };
}
