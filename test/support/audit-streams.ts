// Streams of audit lines as replicas write them to standard output, and `sallyport audit` on them.

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAudit } from '../../src/audit/audit.js';
import { createAuditFile, createAuditStream } from '../../src/audit/file.js';
import { auditCommand } from '../../src/cli/audit/audit-command.js';
import { buildProgram } from '../../src/cli/program.js';
import { createKeyRing, type KeyRing } from '../../src/state/derived-keys.js';
import { countingMeters, sampleRecord, versions } from '../unit/audit/samples.js';

export function newKeys(): KeyRing {
  return createKeyRing([{ id: 'stream', bytes: randomBytes(32) }]);
}

export type StreamOptions = {
  readonly keys: KeyRing;
  /** The name of the instance; its host is what is before the colon. */
  readonly instance: string;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  readonly calls?: number;
  /** The run ends without a last line; so many calls come after its last checkpoint. */
  readonly killedAfter?: number;
  /** Where the run writes a file, which follows those that are there; without it, the run writes a stream. */
  readonly folder?: string;
};

const CALL_MS = 100;

/** The lines of one run: `started`, its checkpoint, calls of two lines each, and its end. */
export async function writeRun(options: StreamOptions): Promise<string[]> {
  const { keys, instance, startMs, calls = 3, killedAfter, folder } = options;
  let text = '';
  let nowMs = startMs;
  const run = randomUUID();
  const path = join(folder ?? '', 'audit.jsonl');
  const before = folder === undefined ? [] : await readdir(folder);
  /** What was written until now. */
  async function lines(): Promise<string[]> {
    const added = folder === undefined ? [] : (await readdir(folder)).filter((name) => !before.includes(name));
    for (const name of added) text = await readFile(join(folder ?? '', name), 'latin1');
    return text.trimEnd().split('\n');
  }
  const [host = ''] = instance.split(':');
  const audit = createAudit({
    settings: {
      sinks: [folder === undefined ? { type: 'stdout' } : { type: 'file', path }],
      deliveries: [],
      ...{ durability: 'written', onFailure: 'block', checkpointEveryMs: 3_600_000 },
      ...{ rotate: { size: 1e9, ageMs: 1e9 }, retainMs: undefined },
    },
    replica: { instance, host, run },
    ...{ version: '0.1.0', versions, signer: keys, now: () => nowMs, meters: countingMeters() },
    newWriter: () =>
      folder === undefined
        ? createAuditStream((more) => {
            text += more;
            return Promise.resolve();
          })
        : createAuditFile(path, { instance: run, now: () => nowMs }),
  });
  async function call(): Promise<void> {
    nowMs += CALL_MS;
    const record = sampleRecord({ id: randomUUID() });
    await audit.decision(record);
    audit.outcome(record, 1);
  }
  await audit.start();
  for (let index = 0; index < calls; index += 1) await call();
  if (killedAfter === undefined) await audit.close();
  else {
    audit.checkpoint();
    for (let index = 0; index < killedAfter; index += 1) await call();
    // The outcome of the last call is still in memory when the process is killed.
    const written = await lines();
    await audit.close();
    const [own] = folder === undefined ? [] : (await readdir(folder)).filter((name) => !before.includes(name));
    if (own !== undefined) await writeFile(join(folder ?? '', own), `${written.join('\n')}\n`);
    return written;
  }
  return lines();
}

/** Lines of several replicas as a collector merges them: in turn, each in its own order. */
export function interleave(...streams: readonly (readonly string[])[]): string[] {
  const longest = Math.max(...streams.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => streams.flatMap((lines) => lines.slice(at, at + 1))).flat();
}

export type Audited = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** Runs `sallyport audit ARGS` with files of these names and contents in a folder, which `FOLDER` stands for. */
export async function runAudit(
  args: readonly string[],
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<Audited> {
  const cwd = await mkdtemp(join(tmpdir(), 'sallyport-streams-'));
  const out = { code: 0, stdout: '', stderr: '' };
  const io = {
    stdout(text: string) {
      out.stdout += text;
    },
    stderr(text: string) {
      out.stderr += text;
    },
    ...{ env: {}, cwd, isTty: false },
  };
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(cwd, name), content, 'latin1');
    const ports = {
      loadSettings: () => Promise.resolve({ settings: undefined, diagnostics: '' }),
      wait: () => Promise.resolve(false),
    };
    const program = buildProgram(io, [auditCommand(io, ports)], '0.1.0');
    const named = args.map((arg) => (arg === 'FOLDER' ? cwd : arg));
    const code = await program.run(['audit', ...named]);
    return { ...out, code };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** As containerd writes lines: a long one in parts. */
export function asCri(lines: readonly string[], stream = 'stdout', partLength = 16_384): string[] {
  return lines.flatMap((line, index) => {
    const time = new Date(Date.UTC(2030, 0, 1) + index).toISOString().replace('Z', '123456Z');
    const parts = splitEvery(line, partLength);
    return parts.map((part, at) => `${time} ${stream} ${at === parts.length - 1 ? 'F' : 'P'} ${part}`);
  });
}

/** As Docker's driver `json-file` writes lines: a long one in parts. */
export function asDocker(lines: readonly string[], stream = 'stdout', partLength = 16_384): string[] {
  const escaped = (text: string) => text.replace(/</g, '\\u003c').replace(/>/g, '\\u003e').replace(/&/g, '\\u0026');
  return lines.flatMap((line, index) =>
    splitEvery(`${line}\n`, partLength).map((log) =>
      escaped(JSON.stringify({ log, stream, time: new Date(Date.UTC(2030, 0, 1) + index).toISOString() })),
    ),
  );
}

function splitEvery(text: string, length: number): string[] {
  const parts = text.match(new RegExp(`[^]{1,${length}}`, 'g'));
  return parts === null ? [''] : [...parts];
}
