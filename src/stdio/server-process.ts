// One stdio MCP server as a child process: its lines in both directions, its standard error, and its end. Lines are
// bounded in length, the child is the leader of a process group of its own, and the group ends with it. Knows nothing
// of JSON. Source: MCP 2025-11-25, stdio transport; environments by allow-list (MCP security best practices).

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanForeign, maskSecrets } from '../text/escaping.js';

/** What is run. Nothing of the gateway's own environment is in `env`. */
export type ServerCommand = {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
};

export type ProcessPorts = {
  /** Signals every process of a group; 0 only asks. False if the group has no process. */
  signalGroup(group: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean;
  /** Kills every process whose environment has the variable with this value, on a system that tells. Never rejects. */
  killMarked(name: string, value: string): Promise<void>;
  /** Takes one line for people, without a line end and safe on a terminal. */
  log(line: string): void;
  /** Replaces the secrets of a line that the server wrote. */
  redact(line: string): string;
};

/** How a server ended: one clause, and the last lines of its standard error. */
export type ProcessEnd = { readonly how: string; readonly lastLines: readonly string[] };

export type ProcessHandlers = {
  /** One line of standard output, without its end. */
  onLine(line: Buffer): void;
  /** Called once, whether it ended by itself or was ended. */
  onEnd(end: ProcessEnd): void;
};

export type ServerProcess = {
  /**
   * Writes one line; false if the server does not read what was sent before, or has ended. With `mayUseReserve`, twice as
   * much may wait to be read.
   */
  send(line: string, mayUseReserve?: boolean): boolean;
  /** Stops and resumes reading standard output. */
  pause(): void;
  resume(): void;
  /** Ends the process group. Resolves when it is gone; `how` is the end that is reported, if it still runs. */
  end(how: string): Promise<void>;
};

/** Variables that most programs need, on any system; none of them holds a secret. */
const PASSED_VARIABLES = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'],
  ...['TERM', 'TMPDIR', 'TEMP', 'TMP', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'],
  // Files of certificate authorities: behind a proxy that ends TLS, npx and uvx reach no registry without them.
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
  ...['SystemRoot', 'SystemDrive', 'ComSpec', 'PATHEXT', 'USERPROFILE', 'APPDATA', 'LOCALAPPDATA'],
];

/** The environment of a server: the variables that programs need, and those that are named. */
export function serverEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): Readonly<Record<string, string>> {
  const passed = [...PASSED_VARIABLES, ...names].flatMap((name) => {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(passed);
}

/** A longer line of standard output ends the server: nobody could say which request it answered. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Standard input that waits to be read; beyond it the server counts as stuck. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const MAX_STDERR_CHARACTERS = 1_000;
/** Read of a line that is shown to fewer, so that a secret at the cut is known by its whole form. */
const MAX_READ_CHARACTERS = 4_000;
/** The longest of today's keys have some fifty. */
const MAX_KEY_LINES = 200;
const MAX_STDERR_LINES_PER_MINUTE = 200;
const MINUTE_MS = 60_000;
const LAST_LINES = 8;
/** From SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 3_000;
const POLL_MS = 50;
/** Output that was written before the end is read for this long; a child of the server may keep the pipe open. */
const REMAINDER_MS = 500;
const LF = 10;

/**
 * Splits bytes into lines; false once a line is too long. An unfinished line is kept in one buffer that doubles, so that
 * one that arrives byte by byte takes no more memory than any other.
 */
export function createLineSplitter(maxBytes: number, onLine: (line: Buffer) => void): (chunk: Buffer) => boolean {
  let pending = Buffer.alloc(0);
  let pendingBytes = 0;
  function keep(bytes: Buffer): void {
    const neededBytes = pendingBytes + bytes.length;
    if (neededBytes > pending.length) {
      const larger = Buffer.alloc(Math.max(neededBytes, 2 * pending.length));
      pending.copy(larger, 0, 0, pendingBytes);
      pending = larger;
    }
    bytes.copy(pending, pendingBytes);
    pendingBytes = neededBytes;
  }
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const tail = chunk.subarray(start, end);
      if (pendingBytes + tail.length > maxBytes) return false;
      if (pendingBytes === 0) onLine(tail);
      else {
        keep(tail);
        const line = pending.subarray(0, pendingBytes);
        pending = Buffer.alloc(0);
        pendingBytes = 0;
        onLine(line);
      }
      start = end + 1;
    }
    if (pendingBytes + chunk.length - start > maxBytes) return false;
    keep(chunk.subarray(start));
    return true;
  };
}

/** Passes on at most so many lines a minute, and says how many were left out. */
export function createLineLimit(
  maxPerMinute: number,
  now: () => number,
  print: (line: string) => void,
): (line: string) => void {
  let sinceMs = now();
  let printed = 0;
  let dropped = 0;
  return (line) => {
    if (now() - sinceMs >= MINUTE_MS) {
      if (dropped > 0) print(`${dropped} lines were left out`);
      sinceMs = now();
      printed = 0;
      dropped = 0;
    }
    printed += 1;
    if (printed <= maxPerMinute) print(line);
    else dropped += 1;
    if (printed === maxPerMinute + 1) print('too many lines; the rest of this minute is left out');
  };
}

/**
 * Makes the lines of one output fit to be shown: without secrets, visible and cut; empty for what is not shown. The lines
 * of a private key after the first are left out, because they have no form that a detector would know.
 */
export function createLineCleaner(redact: ProcessPorts['redact'], maxCharacters: number): (line: string) => string {
  let left = 0;
  return (line) => {
    if (left > 0) {
      left = line.includes('-----END ') ? 0 : left - 1;
      return '';
    }
    if (/-----BEGIN [A-Z ]{0,40}PRIVATE KEY/.test(line) && !line.includes('-----END ')) left = MAX_KEY_LINES;
    return cleanForeign(redact(line.replace(/\r$/, '')), maskSecrets, maxCharacters);
  };
}

/** Standard error: labelled, cleaned and bounded; the last lines are kept for the report of the end. */
function followStandardError(
  child: ChildProcessWithoutNullStreams,
  { log, redact }: Pick<ProcessPorts, 'log' | 'redact'>,
): readonly string[] {
  const lastLines: string[] = [];
  const clean = createLineCleaner(redact, MAX_STDERR_CHARACTERS);
  const print = createLineLimit(MAX_STDERR_LINES_PER_MINUTE, Date.now, log);
  let pending = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${pending}${text}`.split('\n');
    pending = (lines.pop() ?? '').slice(0, MAX_READ_CHARACTERS);
    for (const line of lines) {
      const shown = clean(line.slice(0, MAX_READ_CHARACTERS));
      if (shown === '') continue;
      lastLines.push(shown);
      if (lastLines.length > LAST_LINES) lastLines.shift();
      print(`stderr: ${shown}`);
    }
  });
  return lastLines;
}

/** The first line without the byte order mark that some runtimes write before it (RFC 8259 §8.1). */
function withoutMark(line: Buffer): Buffer {
  return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line;
}

function describeSpawnError(error: NodeJS.ErrnoException, command: string): string {
  const name = cleanForeign(command);
  if (error.code === 'ENOENT') return `the command "${name}" was not found`;
  if (error.code === 'EACCES') return `the command "${name}" is not executable`;
  return `the command "${name}" could not be started (${error.code ?? 'no code'})`;
}

/** Starts a server. It is told to the handlers alone if it cannot be started. */
export function startServerProcess(
  { command, args, cwd, env }: ServerCommand,
  handlers: ProcessHandlers,
  { signalGroup, log, redact }: Omit<ProcessPorts, 'killMarked'>,
): ServerProcess {
  // No shell: arguments are passed as they are. Detached: the leader of a process group of its own.
  const child = spawn(command, [...args], { cwd, env: { ...env }, detached: true, stdio: 'pipe' });
  const lastLines = followStandardError(child, { log, redact });
  let ending: string | undefined;
  let isOver = false;
  let gone: Promise<void> | undefined;

  function finish(how: string): void {
    if (isOver) return;
    isOver = true;
    // A process that left the group may hold the other ends; nothing of it is awaited or shown any more.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    handlers.onEnd({ how: ending ?? how, lastLines: [...lastLines] });
  }

  /** SIGTERM to the group, SIGKILL to what is left of it. */
  async function endGroup(): Promise<void> {
    const { pid } = child;
    if (pid === undefined || !signalGroup(pid, 'SIGTERM')) return;
    for (let waitedMs = 0; waitedMs < KILL_AFTER_MS; waitedMs += POLL_MS) {
      await sleep(POLL_MS);
      if (!signalGroup(pid, 0)) return;
    }
    signalGroup(pid, 'SIGKILL');
  }

  function end(how: string): Promise<void> {
    ending ??= how;
    child.stdin.end();
    gone ??= endGroup().then(() => finish(how));
    return gone;
  }

  let isFirstLine = true;
  const split = createLineSplitter(MAX_LINE_BYTES, (line) => {
    const text = isFirstLine ? withoutMark(line) : line;
    isFirstLine = false;
    if (!isOver && ending === undefined) handlers.onLine(text);
  });
  child.stdout.on('data', (chunk: Buffer) => {
    if (ending === undefined && !split(chunk)) void end(`it wrote a line of more than ${MAX_LINE_BYTES} bytes`);
  });
  // A server that has gone reports a broken pipe here; its end is reported below.
  child.stdin.on('error', () => undefined);
  child.on('error', (error) => finish(describeSpawnError(error, command)));
  child.on('exit', (code, signal) => {
    const how = signal === null ? `it ended with exit code ${code}` : `it ended by ${signal}`;
    child.once('close', () => finish(how));
    setTimeout(() => finish(how), REMAINDER_MS);
    // What it started must not outlive it.
    gone ??= endGroup();
  });

  return {
    send(line, mayUseReserve = false) {
      if (isOver || ending !== undefined || !child.stdin.writable) return false;
      if (child.stdin.writableLength > MAX_WAITING_BYTES * (mayUseReserve ? 2 : 1)) return false;
      child.stdin.write(`${line}\n`);
      return true;
    },
    pause: () => void child.stdout.pause(),
    resume: () => void child.stdout.resume(),
    end,
  };
}
