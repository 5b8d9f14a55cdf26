#!/usr/bin/env node
// The process: arguments, environment, streams and signals, handed to the commands. The only file that
// touches `process`; everything behind it gets what it needs as arguments.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { request } from 'undici';
import { auditCommand } from './cli/audit.js';
import { devCommand } from './cli/dev.js';
import { healthcheckCommand } from './cli/healthcheck.js';
import { keysCommand } from './cli/keys.js';
import { pinCommand } from './cli/pin.js';
import { runPinFetch } from './cli/pin-fetch.js';
import { buildProgram, type CliIo } from './cli/program.js';
import { schemaCommand } from './cli/schema.js';
import { type ServePorts, serveCommand } from './cli/serve.js';
import { validateCommand } from './cli/validate.js';
import { DISK_FILES } from './config/files.js';
import { loadGateway } from './config/load.js';
import { renderFaults } from './config/report.js';
import type { Settings } from './config/settings.js';
import { readLocksForPolicies } from './gateway/locks.js';
import { observeOnce } from './gateway/observe-once.js';
import { replaceFile } from './gateway/write-file.js';
import { startGateway } from './gateway.js';
import { createLog } from './observe/log.js';
import { compilePolicies } from './policy/compile.js';

const EXIT_BY_SIGNAL = 128;

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version }: { version?: unknown } = JSON.parse(text);
  return typeof version === 'string' ? version : 'unknown';
}

const version = readVersion();

const io: CliIo = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
  isTty: process.stdout.isTTY === true,
  async readStdin() {
    let text = '';
    for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
    return text;
  },
};

const quiet: CliIo = { ...io, stdout: () => undefined };

function writeStdout(text: string): Promise<void> {
  return new Promise((resolve, reject) =>
    process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
  );
}

/** Resolves at SIGTERM or SIGINT with 128 plus its number, as a shell reports it. */
function untilSignal(onReload: () => void): Promise<number> {
  process.on('SIGHUP', onReload);
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => resolve(EXIT_BY_SIGNAL + constants.signals[signal]));
    }
  });
}

function servePorts(level: 'info' | 'error'): ServePorts {
  const log = createLog((line) => void process.stderr.write(line), level);
  return {
    untilSignal,
    start: (file) =>
      startGateway({
        file,
        env: process.env,
        log,
        build: { version, node: process.version },
        writeStdout,
      }),
  };
}

const pinPorts = {
  files: DISK_FILES,
  writeFile: replaceFile,
  observe: (upstream: Parameters<typeof observeOnce>[0]) => observeOnce(upstream, version),
  now: Date.now,
};

async function fetchStatus(url: string, timeoutMs: number): Promise<number> {
  const { statusCode, body } = await request(url, {
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    signal: AbortSignal.timeout(timeoutMs),
  });
  await body.dump();
  return statusCode;
}

function loadSettings(file: string): Promise<{ settings: Settings | undefined; faults: string }> {
  const { settings, faults } = loadGateway(file, {
    readFile: DISK_FILES.readFile,
    env: process.env,
  });
  return Promise.resolve({ settings, faults: renderFaults(faults, 'text', io.cwd) });
}

/** Waits, or ends early with false when the process is told to end. */
function wait(ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isOver: boolean) => (): void => {
      clearTimeout(timer);
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
      resolve(isOver);
    };
    const stop = end(false);
    const timer = setTimeout(end(true), ms);
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
  });
}

const program = buildProgram(
  io,
  [
    serveCommand(io, servePorts('info')),
    devCommand(io, {
      ...servePorts('error'),
      pin: (file) =>
        runPinFetch(
          {
            config: file,
            approve: true,
            by: 'sallyport dev',
            note: 'offered when dev was started',
          },
          quiet,
          pinPorts,
        ),
    }),
    validateCommand(io, { files: DISK_FILES, compilePolicies, loadLocks: readLocksForPolicies }),
    pinCommand(io, pinPorts),
    auditCommand(io, { loadSettings, wait }),
    keysCommand(io, { files: DISK_FILES, randomBytes }),
    schemaCommand(io),
    healthcheckCommand(io, { files: DISK_FILES, fetchStatus }),
  ],
  version,
);

process.exitCode = await program.run(process.argv.slice(2));
