// The process: arguments, environment, streams and signals, handed to the commands. Only this file and the entry,
// main.ts, touch `process`; everything else gets what it needs as arguments.

import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { constants } from 'node:os';
import { basename, delimiter, dirname, relative, resolve as resolvePath } from 'node:path';
import type { AdminApiPorts } from './cli/admin-client.js';
import type { PinnedOnce } from './cli/dev-target.js';
import { buildProgram, type CliIo, type Command } from './cli/program.js';
import type { LogOptions, ServePorts } from './cli/serve.js';
import { DISK_FILES } from './config/files.js';
import type { Outline } from './config/load.js';
import type { Settings, UpstreamSettings } from './config/settings.js';
import { quoteForShell } from './text/escaping.js';

const EXIT_BY_SIGNAL = 128;
/** For what a command that was ended has left under way, such as a request. */
const LEFT_UNDER_WAY_MS = 500;

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version }: { version?: unknown } = JSON.parse(text);
  return typeof version === 'string' ? version : 'unknown';
}

const version = readVersion();

/** The words that start this program in the current folder: as a command, by `npm exec`, or by the path of this file. */
function programCommand(): string {
  const { npm_command: npmCommand, PATH = '' } = process.env;
  const [, script = ''] = process.argv;
  if (npmCommand === 'exec') return 'npm exec --no -- sallyport';
  if (basename(script) === 'sallyport') {
    const isFound = PATH.split(delimiter).includes(dirname(script));
    return isFound ? 'sallyport' : quoteForShell(script);
  }
  return `node ${quoteForShell(relative(process.cwd(), script))}`;
}

const io: CliIo = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
  isTty: process.stdout.isTTY === true,
  get columns() {
    return process.stdout.columns;
  },
  program: programCommand(),
  async readStdin() {
    let text = '';
    for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
    return text;
  },
};

function writeStdout(text: string): Promise<void> {
  return new Promise((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
}

/**
 * Resolves at SIGTERM or SIGINT with 128 plus the signal's number, as a shell reports it. SIGHUP, which a terminal
 * sends when it is closed, does the same unless it means a reload. With `onNext` the second signal calls it, and the third
 * ends the process whatever it does; without, the second does.
 */
function untilSignal(onReload?: () => void, onNext?: () => void): Promise<number> {
  if (onReload !== undefined) process.on('SIGHUP', onReload);
  const hangup = onReload === undefined ? (['SIGHUP'] as const) : [];
  const signals = ['SIGTERM', 'SIGINT', ...hangup] as const;
  return new Promise((resolve) => {
    if (onNext === undefined) {
      for (const signal of signals) process.once(signal, () => resolve(EXIT_BY_SIGNAL + constants.signals[signal]));
      return;
    }
    let received = 0;
    for (const signal of signals) {
      process.on(signal, () => {
        const code = EXIT_BY_SIGNAL + constants.signals[signal];
        received += 1;
        if (received === 1) resolve(code);
        else if (received === 2) onNext();
        else process.exit(code);
      });
    }
  });
}

/** The name under which containers reach the machine that they run on, beside which `dev` is often tried. */
const CONTAINER_HOST = 'host.docker.internal';

/** The log goes to standard error. */
async function openLog(level: LogOptions['logLevel'], logFormat: LogOptions['logFormat']) {
  const { createLog } = await import('./telemetry/log.js');
  const format = logFormat ?? (process.stderr.isTTY ? 'text' : 'json');
  return createLog((line) => void process.stderr.write(line), level, format);
}

/** The log has this level unless an option says otherwise. */
function servePorts(level: 'info' | 'error', localNames: readonly string[] = []): ServePorts {
  const build = { version, node: process.version };
  return {
    untilSignal,
    async announce(texts, { logFormat }) {
      const log = await openLog('info', logFormat);
      for (const text of texts) log.write('info', text);
    },
    async start(file, { logLevel = level, logFormat }) {
      const { startGateway } = await import('./gateway/gateway.js');
      const log = await openLog(logLevel, logFormat);
      return startGateway({ file, env: process.env, log, build, writeStdout, localNames });
    },
  };
}

async function pinPorts() {
  const { gitIdentity, observeOnce, runCommand } = await import('./cli/command-ports.js');
  const { updateFile } = await import('./pins/file-update.js');
  const observe = (upstream: UpstreamSettings, gateway: Settings) => observeOnce(upstream, gateway, version);
  const git = () => gitIdentity(io.cwd);
  const ports = { files: DISK_FILES, updateFile, observe, runCommand };
  return { ...ports, now: Date.now, gitIdentity: git };
}

async function validatePorts() {
  const { readLocksForPolicies } = await import('./gateway/config-version.js');
  const { compilePolicies } = await import('./policy/compile/compile.js');
  const loadLocks = (folder: string, outline: Outline) => readLocksForPolicies(folder, outline, io.cwd);
  return { files: DISK_FILES, compilePolicies, loadLocks };
}

async function workspacePorts() {
  const { files, loadLocks } = await validatePorts();
  const { supposePrincipal } = await import('./auth/principal.js');
  return { files, loadLocks, supposePrincipal };
}

/** Questions go to stderr. Lines that were pasted at once are kept for the questions to come. */
async function terminalQuestions() {
  const { createInterface } = await import('node:readline');
  return () => {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const lines = terminal[Symbol.asyncIterator]();
    return {
      async ask(question: string): Promise<string | undefined> {
        terminal.setPrompt(question);
        terminal.prompt();
        const line = await lines.next();
        return line.done === true ? undefined : line.value;
      },
      close: () => terminal.close(),
    };
  };
}

/** A terminal shows the question on stderr, and nothing of what is typed. */
async function readPassword(question: string): Promise<string | undefined> {
  const { createInterface } = await import('node:readline');
  const { Writable } = await import('node:stream');
  const isTerminal = process.stdin.isTTY === true;
  if (isTerminal) process.stderr.write(question);
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output, terminal: isTerminal });
  try {
    const line = await lines[Symbol.asyncIterator]().next();
    return line.done === true ? undefined : line.value;
  } finally {
    lines.close();
    if (isTerminal) process.stderr.write('\n');
  }
}

/** For the commands that add a server: what `pin` needs, questions on a terminal, and the check of what was written. */
async function serverPorts() {
  const { networkOf } = await import('./cli/command-ports.js');
  const validate = async (config: string) =>
    (await import('./cli/validate.js')).runValidate({ config }, io, await validatePorts());
  const questions = process.stdin.isTTY === true ? await terminalQuestions() : undefined;
  return { ...(await pinPorts()), networkOf, validate, questions };
}

/** Pins for `dev`: approves what is offered at the moment it is started. */
async function pinOffered(file: string, isCareful = false): Promise<PinnedOnce> {
  const { settings, errors } = await loadSettings(file);
  // Without a place: the file is in a folder of dev's own.
  const refused = errors.map((message) => `error: ${message}\n`).join('');
  if (settings === undefined) return { code: 2, printed: refused, wasAsked: false };
  const { runPinFetch } = await import('./cli/pin/pin-command.js');
  let printed = '';
  const keep = (text: string): void => {
    printed += text;
  };
  const approval = {
    approve: true,
    acceptsReview: !isCareful,
    by: 'sallyport dev',
    note: 'offered when dev was started',
  };
  const quiet: CliIo = { ...io, stdout: keep, stderr: keep };
  const code = await runPinFetch({ config: file, ...approval }, quiet, await pinPorts());
  return { code, printed, wasAsked: true };
}

async function devPorts() {
  const questions = process.stdin.isTTY === true ? await terminalQuestions() : undefined;
  const own = { pin: pinOffered, fetchDocument, signalGroup, killMarked, questions, argv: process.argv.slice(2) };
  return { ...servePorts('error', [CONTAINER_HOST]), ...own };
}

/** Signals a process group; false if it has no process that may be signalled. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** Two rounds: a process may start another between being found and being killed. */
const KILL_ROUNDS = 2;

/** Kills the processes whose environment has a variable. Linux alone shows the environment of a process. */
async function killMarked(name: string, value: string): Promise<void> {
  const mark = `\0${name}=${value}\0`;
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const ids = (await readdir('/proc').catch(() => [])).filter((entry) => /^\d+$/.test(entry));
    for (const id of ids) if (Number(id) !== process.pid && (await hasMark(id, mark))) killProcess(Number(id));
  }
}

/** False for processes of other users, and for those that have ended: theirs cannot be read. */
async function hasMark(id: string, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${id}/environ`, 'latin1').catch(() => '');
  return `\0${environment}`.includes(mark);
}

function killProcess(id: number): void {
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

const MAX_CLIENT_DOCUMENT_BYTES = 16 * 1024;
const CLIENT_DOCUMENT_TIMEOUT_MS = 5_000;

/** Fetches the metadata document of a client whose client id is a URL: over public https, or plain http on loopback. */
async function fetchDocument(url: URL): Promise<unknown> {
  const { createGuardedFetch } = await import('./upstream/safe-fetch.js');
  const guarded = createGuardedFetch();
  const outcome = await guarded.fetchJson(url, {
    network: url.protocol === 'http:' ? 'loopback' : 'public',
    maxBytes: MAX_CLIENT_DOCUMENT_BYTES,
    timeoutMs: CLIENT_DOCUMENT_TIMEOUT_MS,
  });
  await guarded.close();
  return outcome.ok ? outcome.value : undefined;
}

/** Asks a gateway for its health. Any certificate is accepted, because nothing secret is sent. */
async function fetchStatus(url: string, timeoutMs: number, host?: string): Promise<number> {
  const [http, https] = await Promise.all([import('node:http'), import('node:https')]);
  const { get } = url.startsWith('https:') ? https : http;
  const named = host === undefined ? {} : { headers: { host }, servername: host.replace(/:\d+$/, '') };
  const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(timeoutMs), ...named };
  return new Promise((resolve, reject) => {
    get(url, options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on('error', reject);
  });
}

/**
 * The gateway file that a running `serve` of this program was given by -c; `undefined` where none or several run, or
 * where it was given none. Linux alone shows the arguments of a process.
 */
async function servedConfigs(): Promise<readonly string[]> {
  const { configOfServe } = await import('./cli/serve.js');
  const ids = (await readdir('/proc').catch(() => [])).filter((entry) => /^\d+$/.test(entry));
  const found = await Promise.all(
    ids.map(async (id) => {
      const given = (await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')).split('\0');
      if (!given.includes('serve')) return [];
      const cwd = await readlink(`/proc/${id}/cwd`).catch(() => '/');
      const file = configOfServe(given, (path) => resolvePath(cwd, path) === process.argv[1]);
      return file === undefined ? [] : [resolvePath(cwd, file)];
    }),
  );
  return [...new Set(found.flat())];
}

const ADMIN_TIMEOUT_MS = 10_000;

/** Certificates are verified as usual, because a token is sent; NODE_EXTRA_CA_CERTS names a private authority. */
function adminApiPorts(): AdminApiPorts {
  return {
    files: DISK_FILES,
    async ask(url, { method, token, body }) {
      const response = await fetch(url, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        redirect: 'manual',
        signal: AbortSignal.timeout(ADMIN_TIMEOUT_MS),
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, text: await response.text() };
    },
  };
}

async function loadSettings(
  file: string,
): Promise<{ settings: Settings | undefined; diagnostics: string; errors: readonly string[] }> {
  const { loadGateway } = await import('./config/load.js');
  const { errorsOf, renderDiagnostics } = await import('./config/diagnostics.js');
  const { readFile } = DISK_FILES;
  const { settings, diagnostics } = loadGateway(file, { readFile, env: process.env });
  const errors = errorsOf(diagnostics).map(({ message }) => message);
  return { settings, diagnostics: renderDiagnostics(diagnostics, 'text', io.cwd), errors };
}

/** Waits; resolves early with false when the process receives a signal to end. */
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

/** Each command is loaded on demand: a health check must not cost the start of a gateway. */
const COMMANDS: { readonly [name: string]: () => Promise<Command> } = {
  async serve() {
    const { serveCommand } = await import('./cli/serve.js');
    return serveCommand(io, servePorts('info'));
  },
  async dev() {
    const { devCommand } = await import('./cli/dev.js');
    return devCommand(io, await devPorts());
  },
  async demo() {
    const { demoCommand } = await import('./cli/demo.js');
    return demoCommand(io, await devPorts());
  },
  async stdio() {
    const { stdioCommand } = await import('./cli/stdio.js');
    const setUmask = (mask: number): number => process.umask(mask);
    return stdioCommand(io, { untilSignal, signalGroup, killMarked, setUmask });
  },
  async 'demo-server'() {
    const { demoServerCommand } = await import('./cli/dev.js');
    return demoServerCommand(io, servePorts('error'));
  },
  async 'demo-issuer'() {
    const { demoIssuerCommand } = await import('./cli/dev.js');
    return demoIssuerCommand(io, { ...servePorts('error'), fetchDocument });
  },
  async 'dev-issuer'() {
    const { devIssuerCommand } = await import('./cli/dev-issuer.js');
    return devIssuerCommand(io, { untilSignal, fetchDocument, readPassword });
  },
  async validate() {
    const { validateCommand } = await import('./cli/validate.js');
    const tryOnline = async (settings: Settings) => {
      const online = await import('./cli/online/try-online.js');
      return online.tryOnline(settings, io, { pins: await pinPorts(), version, now: Date.now });
    };
    return validateCommand(io, { ...(await validatePorts()), tryOnline });
  },
  async test() {
    const { testCommand } = await import('./cli/policy/test.js');
    return testCommand(io, await workspacePorts());
  },
  async explain() {
    const { explainCommand } = await import('./cli/policy/explain.js');
    return explainCommand(io, await workspacePorts());
  },
  async access() {
    const { accessCommand } = await import('./cli/policy/access.js');
    return accessCommand(io, await workspacePorts());
  },
  async replay() {
    const { replayCommand } = await import('./cli/policy/replay.js');
    return replayCommand(io, await workspacePorts());
  },
  async pin() {
    const { pinCommand } = await import('./cli/pin/pin-command.js');
    const questions = process.stdin.isTTY === true ? await terminalQuestions() : undefined;
    return pinCommand(io, { ...(await pinPorts()), questions });
  },
  async audit() {
    const { auditCommand } = await import('./cli/audit/audit-command.js');
    return auditCommand(io, { loadSettings, wait });
  },
  async keys() {
    const { keysCommand } = await import('./cli/keys.js');
    return keysCommand(io, { files: DISK_FILES });
  },
  async init() {
    const { initCommand } = await import('./cli/servers/init-command.js');
    const { checkIssuer } = await import('./cli/command-ports.js');
    return initCommand(io, { ...(await serverPorts()), checkIssuer });
  },
  async add() {
    const { addCommand } = await import('./cli/servers/add-command.js');
    return addCommand(io, { ...(await serverPorts()), signalGroup, killMarked });
  },
  async remove() {
    const { removeCommand } = await import('./cli/servers/remove-command.js');
    return removeCommand(io, await validatePorts());
  },
  async list() {
    const { listCommand } = await import('./cli/servers/list-command.js');
    const { probeAddress } = await import('./cli/stdio.js');
    const isListening = async (address: Parameters<typeof probeAddress>[0]) => (await probeAddress(address)) === 'open';
    return listCommand(io, { ...adminApiPorts(), ...(await workspacePorts()), isListening });
  },
  async completion() {
    const { completionCommand } = await import('./cli/completion.js');
    return completionCommand(io);
  },
  async schema() {
    const { schemaCommand } = await import('./cli/validate.js');
    return schemaCommand(io);
  },
  async block() {
    const { blockCommand } = await import('./cli/block.js');
    return blockCommand(io, adminApiPorts());
  },
  async unblock() {
    const { unblockCommand } = await import('./cli/block.js');
    return unblockCommand(io, adminApiPorts());
  },
  async approvals() {
    const { approvalsCommand } = await import('./cli/approvals.js');
    return approvalsCommand(io, adminApiPorts());
  },
  async assure() {
    const { assureCommand } = await import('./cli/assure/assure-command.js');
    const configured = async (file: string) => {
      const { readConfiguredControls } = await import('./gateway/configured-controls.js');
      return readConfiguredControls(file, Date.now);
    };
    return assureCommand(io, { ...adminApiPorts(), now: Date.now, version, configured });
  },
  async healthcheck() {
    const { healthcheckCommand } = await import('./cli/serve.js');
    return healthcheckCommand(io, { files: DISK_FILES, fetchStatus, servedConfigs });
  },
};

/** Loads the requested command, or all of them where help or a suggestion needs their names. */
function loadCommands(asked: string | undefined): Promise<readonly Command[]> {
  // What is completed are all commands.
  const isOne = asked !== undefined && asked !== 'completion' && Object.hasOwn(COMMANDS, asked);
  const load = isOne ? COMMANDS[asked] : undefined;
  return Promise.all(load === undefined ? Object.values(COMMANDS).map((one) => one()) : [load()]);
}

/**
 * A reader such as `head` that has seen enough ends a command as SIGPIPE would, without a word. A terminal that was
 * closed takes no output either, but its SIGHUP ends the command in order.
 */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EIO') return;
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_BY_SIGNAL + constants.signals.SIGPIPE);
}

const argv = process.argv.slice(2);
// A gateway goes on: where its audit log goes to standard output, a write that fails is a failure of the sink.
if (argv[0] !== 'serve') {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endWithReader);
}
const program = buildProgram(io, await loadCommands(argv[0]), version);
process.exitCode = await program.run(argv);
// Whoever ends dev while a server is being listed, or a scene while it plays, does not wait for that.
if ((argv[0] === 'dev' || argv[0] === 'demo') && process.exitCode > EXIT_BY_SIGNAL)
  setTimeout(() => process.exit(), LEFT_UNDER_WAY_MS).unref();
