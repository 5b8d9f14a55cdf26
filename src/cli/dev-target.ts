// The server that `sallyport dev` puts the gateway in front of: one that is reached by HTTP, or one that a command
// starts, which the adapter of `sallyport stdio` then serves from this process. Pins what it offers. If it cannot be
// listed, explains why in one sentence with what to do about it: sends the request that opens a session once more, as a
// client would, because the gateway's own listing reports only classes of errors. docs/reference/commands.md#dev; MCP
// 2025-11-25, transports.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { networkOfHost } from '../config/checks/addresses.js';
import { DEV_UPSTREAM, type DevFiles, type DevServer, HEADER_FILES, type Offered } from '../dev/files.js';
import { redactForRecord } from '../inspection/capture.js';
import { approvedVersions, type Lock } from '../pins/lock.js';
import { readLock } from '../pins/lock-reader.js';
import { isExactPattern } from '../policy/patterns.js';
import { mediaType } from '../protocol/headers.js';
import { isObject } from '../protocol/jsonrpc.js';
import { LATEST_SESSION_VERSION } from '../protocol/versions/revisions.js';
import { unpinnedIn } from '../stdio/packages.js';
import { type ProcessEnd, type ProcessPorts, serverEnvironment } from '../stdio/server-process.js';
import { onlyServer, STDIO_PATH, startStdioServer } from '../stdio/stdio-server.js';
import { cleanForeign, escapeForTerminal, maskSecrets, quoteForShell } from '../text/escaping.js';
import { countOf } from '../text/wording.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE } from './program.js';
import { newStdioToken } from './stdio.js';
import { DEFAULT_STDIO_PORT } from './stdio-plan.js';

type Header = { readonly name: string; readonly value: string };

export type TargetOptions = {
  /** A header that the upstream gets with every request. */
  readonly header?: Header;
  readonly transport?: string;
  readonly network?: 'public' | 'private' | 'loopback';
  /** Environment variables that the command gets too. */
  readonly env?: readonly string[];
  /** Folder for the files of a production setup. */
  readonly save?: string;
};

export type DevTarget = {
  readonly server: DevServer;
  /** The server as `--save` writes it, with a line about it. */
  readonly saved: { readonly server: DevServer; readonly note?: string };
  /** The command that serves it to a gateway of its own, safe on a terminal; absent if it is reached by HTTP. */
  readonly startedBy?: string;
  /** The command itself; absent if it is reached by HTTP. */
  readonly command?: readonly string[];
  /** What it is called, safe on a terminal. */
  readonly shown: string;
  /** Why it could not be listed, if more is known than the listing printed. */
  explain(printed: string): Promise<string | undefined>;
  close(): Promise<void>;
};

export type PinnedOnce = {
  /** The exit code of `pin fetch`, and what it would have printed. */
  readonly code: number;
  readonly printed: string;
  /** False if the gateway file was refused, so that no upstream was asked. */
  readonly wasAsked: boolean;
};

export const HTTP_SSE = 'http-sse';
/** Each client has a session, and so has the gateway's own listing. */
const MAX_SESSIONS = 32;
/** The first start of a command may have to download it. */
const COMMAND_TIMEOUT = '2m';

/** One header, because the gateway file has one for each upstream. */
export function readHeader(text: string, before: Header | undefined): Header {
  if (before !== undefined) throw new InvalidArgumentError('Give one header.');
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(\S.*?)[ \t]*$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Expected 'Name: value'.");
  return { name, value };
}

/** What is wrong with a URL, in one sentence. */
export function findUrlMistake(upstream: string, network: TargetOptions['network']): string | undefined {
  const shown = escapeForTerminal(upstream);
  if (!/^https?:/.test(upstream)) return `--upstream ${shown}: expected a URL such as http://127.0.0.1:3001/mcp`;
  if (!URL.canParse(upstream)) return `--upstream ${shown}: this is not a valid URL`;
  const { protocol, origin } = new URL(upstream);
  if (protocol === 'https:' || networkOfUrl(upstream, network) !== 'public') return undefined;
  return `--upstream ${escapeForTerminal(origin)}: plain http is never sent to public addresses; for a server in a private network add --network private, for one on this machine --network loopback`;
}

/** The network of an address; a name is assumed to be public unless `--network` is given. */
function networkOfUrl(url: string, given: TargetOptions['network']): 'public' | 'private' | 'loopback' {
  const network = given ?? networkOfHost(new URL(url).hostname);
  return network === undefined || network === 'none' ? 'public' : network;
}

export function targetOfUrl(upstream: string, { header, transport, network }: TargetOptions): DevTarget {
  const url = new URL(upstream);
  const server = {
    url: url.href,
    network: networkOfUrl(upstream, network),
    transport,
    header: header && { ...header, file: HEADER_FILES.http },
  };
  return {
    server,
    saved: { server },
    shown: escapeForTerminal(`${url.origin}${url.pathname}`),
    async explain() {
      const probed = { url, header, isLegacySse: transport === HTTP_SSE };
      return describeProbe(probed, await probeServer(probed));
    },
    close: () => Promise.resolve(),
  };
}

/** Starts the adapter; nothing of this process's environment reaches the command but what it needs. */
export async function startCommand(
  { env = [], save = '.' }: TargetOptions,
  [command = '', ...args]: readonly string[],
  io: CliIo,
  { signalGroup, killMarked }: Pick<ProcessPorts, 'signalGroup' | 'killMarked'>,
): Promise<DevTarget> {
  let firstEnd: ProcessEnd | undefined;
  const token = newStdioToken();
  const settings = {
    servers: onlyServer({ command, args, cwd: io.cwd, env: serverEnvironment(io.env, env) }),
    ...{ address: { host: '127.0.0.1', port: 0 }, token, maxSessions: MAX_SESSIONS },
  };
  const adapter = await startStdioServer(settings, {
    signalGroup,
    killMarked,
    log: (line) => io.stderr(`${line}\n`),
    redact: redactForRecord,
    onProcessEnd: (end) => {
      firstEnd ??= end;
    },
  });
  const serverAt = (port: number, bearer: string): DevServer => ({
    url: `http://127.0.0.1:${port}${STDIO_PATH}`,
    network: 'loopback',
    header: { name: 'Authorization', value: `Bearer ${bearer}`, file: HEADER_FILES.stdio },
    requestTimeout: COMMAND_TIMEOUT,
  });
  const commandLine = [command, ...args].map(quoteForShell).join(' ');
  const options = [
    `--token-file ${quoteForShell(join(save, HEADER_FILES.stdio))}`,
    ...env.map((name) => `--env ${name}`),
  ].join(' ');
  return {
    server: serverAt(adapter.port ?? 0, token),
    saved: {
      server: serverAt(DEFAULT_STDIO_PORT, newStdioToken()),
      // Arguments may be secrets, and the file holds none.
      note: `Served by: sallyport stdio ${options} -- COMMAND`,
    },
    command: [command, ...args],
    startedBy: escapeForTerminal(`sallyport stdio ${options} -- ${commandLine}`),
    shown: escapeForTerminal([command, ...args].join(' ')),
    explain: (printed) =>
      Promise.resolve(firstEnd === undefined ? describeRunning(command, printed) : describeEnd(command, firstEnd)),
    close: adapter.close,
  };
}

/** Where the server did not speak MCP, the listing advises to look at its URL (`describeListingFailure`). */
const NOT_MCP = /what it answered is not valid MCP(?: \((.*)\))?(?:; is the path of its URL right|$)/m;

/** A command has no URL: says what it answered instead, and nothing of a path. */
function describeRunning(command: string, printed: string): string | undefined {
  const found = NOT_MCP.exec(printed);
  if (found === null) return undefined;
  const [, cause] = found;
  const runs = `${escapeForTerminal(command)} runs, but did not serve MCP`;
  return cause === undefined || cause.startsWith('initialize: ')
    ? `${runs}: it answered the request initialize with something else; a stdio server writes nothing but JSON-RPC messages to standard output`
    : `${runs}: what it answered is not valid MCP (${cause})`;
}

function describeEnd(command: string, { how, lastLines }: ProcessEnd): string {
  const tail = lastLines.map((line) => `\n  ${line}`).join('');
  const last = tail === '' ? 'nothing was written to standard error' : `its last lines were:${tail}`;
  return `${escapeForTerminal(command)} did not serve MCP: ${how}; ${last}`;
}

function printStart({ startedBy, shown, command = [] }: DevTarget, io: CliIo): void {
  if (startedBy !== undefined) io.stdout(`starting   ${shown}\n`);
  for (const warning of unpinnedIn(command)) io.stderr(`warning: ${escapeForTerminal(warning)}\n`);
}

/** Pins what the server offers. Resolves with the exit code, if that ends the program. */
export async function pinServer(
  target: DevTarget,
  files: DevFiles,
  { io, ended }: { readonly io: CliIo; readonly ended: Promise<number> },
  pin: (configFile: string) => Promise<PinnedOnce>,
): Promise<number | undefined> {
  printStart(target, io);
  const pinned = await Promise.race([pin(files.configFile), ended]);
  if (typeof pinned === 'number') return pinned;
  const { code, printed, wasAsked } = pinned;
  // The gateway file calls every server the same; whoever started dev knows it by URL or command.
  const named = printed.replace(`error: ${DEV_UPSTREAM.name} `, () => `error: ${target.shown} `);
  // Exit 1: what cannot be pinned stays hidden, and the rest can be tried.
  const isUsable = code === EXIT_FINE || code === EXIT_FAILED;
  const why = isUsable || !wasAsked ? undefined : await Promise.race([target.explain(printed), ended]);
  if (typeof why === 'number') return why;
  if (code === EXIT_FINE) io.stdout(listingNotesIn(printed));
  else io.stderr(why === undefined ? named : `error: ${why}\n`);
  return isUsable ? undefined : code;
}

const LISTING_NOTE = `note: ${DEV_UPSTREAM.name}: `;
const LEFT_OUT = 'left out: ';

/** What of the lists could not be read, one line each, as `pin fetch` has printed it. */
function listingNotesIn(printed: string): string {
  const notes = printed.split('\n').filter((line) => line.startsWith(LISTING_NOTE));
  const lines = notes.map((line) => {
    const note = line.slice(LISTING_NOTE.length);
    return note.startsWith(LEFT_OUT) ? `left out   ${note.slice(LEFT_OUT.length)}\n` : `missing    ${note}\n`;
  });
  return lines.join('');
}

/** The lock file, and the names that were approved, by kind. A name that reads as a pattern would grant more than itself in a rule. */
export async function readOffered({
  lockFile,
}: DevFiles): Promise<{ readonly offered: Offered; readonly lock: Lock | undefined }> {
  const { lock } = readLock(lockFile, await readFile(lockFile, 'utf8'));
  const namesOf = (kind: keyof Lock['pins']): readonly string[] =>
    [...(lock?.pins[kind] ?? [])].filter(([, pin]) => approvedVersions(pin).length > 0).map(([name]) => name);
  const [tools, prompts] = [namesOf('tool'), namesOf('prompt')];
  const offered = {
    tools: tools.filter(isExactPattern),
    prompts: prompts.filter(isExactPattern),
    templates: namesOf('template'),
    patterns: [...tools, ...prompts].filter((name) => !isExactPattern(name)),
  };
  return { offered, lock };
}

/** What is not approved and therefore hidden, one line each, with the reason. Safe on a terminal. */
export function describeHidden(lock: Lock | undefined): readonly string[] {
  if (lock === undefined) return [];
  const { tool, prompt, template, resource } = lock.pins;
  return Object.entries({ tool, prompt, template, resource }).flatMap(([kind, pins]) =>
    [...pins]
      .filter(([, pin]) => approvedVersions(pin).length === 0)
      .map(([name, { status }]) => `${kind} ${cleanForeign(name)}: ${HIDDEN_BECAUSE[status]}`),
  );
}

const HIDDEN_BECAUSE = {
  pending: 'not approved, because of what the scan found in its definition',
  blocked: 'blocked in the lock file',
  approved: 'not approved',
} as const;

export function countOffered({ tools, prompts, templates }: Offered): string {
  const counts = [countOf(tools.length, 'tool'), countOf(prompts.length, 'prompt')];
  if (templates.length > 0) counts.push(countOf(templates.length, 'template'));
  return counts.join(', ');
}

type ProbedServer = {
  readonly url: URL;
  /** It speaks HTTP+SSE, where a session is opened by a GET. */
  readonly isLegacySse: boolean;
  readonly header: Header | undefined;
};

/** A response by its form alone: nothing of its values is shown, which may be secrets. */
type ProbedBody =
  | { readonly kind: 'mcp' }
  /** A JSON-RPC error, by its code. */
  | { readonly kind: 'refusal'; readonly code: number }
  /** Other JSON: the first names of an object, or what it is instead. */
  | { readonly kind: 'other'; readonly names: readonly string[]; readonly type: string };

/** What came back: a response, or the code of the error. */
type ProbeOutcome =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly contentType: string;
      readonly location: string | undefined;
      /** Whether `WWW-Authenticate` came with it. */
      readonly hasChallenge: boolean;
      /** What a JSON response of status 200 is; absent if it was not read. */
      readonly body?: ProbedBody;
    }
  | { readonly kind: 'error'; readonly code: string };

const PROBE_TIMEOUT_MS = 10_000;
const MAX_PROBED_BYTES = 64 * 1024;
const MAX_PROBED_NAMES = 5;
const MAX_NAME_CHARACTERS = 40;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: LATEST_SESSION_VERSION,
    capabilities: {},
    clientInfo: { name: 'sallyport', version: '0' },
  },
};

/** Sends the request; follows no redirect. Does not reject. */
async function probeServer({ url, isLegacySse, header }: ProbedServer): Promise<ProbeOutcome> {
  const headers = {
    accept: isLegacySse ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(header === undefined ? {} : { [header.name]: header.value }),
  };
  const post = {
    method: 'POST',
    body: JSON.stringify(INITIALIZE),
    headers: { ...headers, 'content-type': 'application/json' },
  };
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), PROBE_TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      ...(isLegacySse ? { headers } : post),
      redirect: 'manual',
      signal: ending.signal,
    });
    const { status, headers: received } = response;
    const location = received.get('location') ?? undefined;
    const contentType = mediaType(received.get('content-type') ?? '');
    const hasChallenge = received.has('www-authenticate');
    const outcome = { kind: 'response', status, contentType, location, hasChallenge } as const;
    if (isLegacySse || status !== 200 || contentType !== 'application/json') return outcome;
    return { ...outcome, body: describeBody(await readStart(response)) };
  } catch (error) {
    return { kind: 'error', code: ending.signal.aborted ? 'timeout' : errorCodeOf(error) };
  } finally {
    clearTimeout(timer);
    // The rest of the body, an endless stream perhaps, is not read.
    ending.abort();
  }
}

/** The body, if it is short; of a longer one, its start. */
async function readStart({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > MAX_PROBED_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, MAX_PROBED_BYTES);
}

function describeBody(text: string): ProbedBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'other', names: [], type: 'text that is not JSON' };
  }
  if (Array.isArray(value)) return { kind: 'other', names: [], type: 'a JSON list' };
  if (!isObject(value)) return { kind: 'other', names: [], type: 'a JSON value' };
  const { jsonrpc, result, error } = value;
  if (jsonrpc === '2.0' && isObject(result) && Object.hasOwn(result, 'protocolVersion')) return { kind: 'mcp' };
  if (jsonrpc === '2.0' && isObject(error) && Object.hasOwn(error, 'code'))
    return { kind: 'refusal', code: Number(error['code']) };
  return {
    kind: 'other',
    names: Object.keys(value).slice(0, MAX_PROBED_NAMES),
    type: 'a JSON object',
  };
}

function errorCodeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return 'no code';
  if (cause.name === 'HTTPParserError') return String(('code' in cause && cause.code) || 'HPE');
  // Some errors have words alone, such as "bad port".
  return 'code' in cause ? String(cause.code) : cleanForeign(cause.message);
}

const CERTIFICATE = /CERT|SELF_SIGNED|VERIFY|UNABLE_TO_GET_ISSUER/;
const NOT_TLS = /^(?:ERR_SSL_|EPROTO)/;

/** One sentence; `undefined` if nothing is wrong with what came back. */
function describeProbe({ url, isLegacySse, header }: ProbedServer, outcome: ProbeOutcome): string | undefined {
  const shown = cleanForeign(`${url.origin}${url.pathname}`, undefined, 300);
  if (outcome.kind === 'error') return `${shown} ${describeProbeError(url, outcome.code)}`;
  const { status, contentType, location, hasChallenge } = outcome;
  const answered = `${shown} answered ${status}`;
  if ((status === 401 || status === 403) && (hasChallenge || header !== undefined)) {
    const advice =
      header === undefined
        ? "it wants credentials; try --header 'Authorization: Bearer TOKEN'"
        : `it does not accept the header ${header.name} that was given`;
    return `${answered}: ${advice}`;
  }
  if (status >= 300 && status < 400) return `${answered}: ${describeRedirect(location, url)}`;
  if (status >= 400) return `${answered}${describeStatus(status, url, isLegacySse)}`;
  const typed = `${answered} with ${contentType || 'no content type'}`;
  return outcome.body === undefined
    ? describeType(typed, contentType, outcome, isLegacySse)
    : describeJson(typed, outcome.body, url);
}

/** Says what a JSON response to `initialize` is, if it does not open a session. */
function describeJson(answered: string, body: ProbedBody, { pathname }: URL): string | undefined {
  if (body.kind === 'mcp') return undefined;
  if (body.kind === 'refusal') return `${answered} to the request initialize: the JSON-RPC error ${body.code}`;
  const names = body.names.map((name) => `"${cleanForeign(name, maskSecrets, MAX_NAME_CHARACTERS)}"`);
  const what = names.length === 0 ? body.type : `${body.type} with ${names.join(', ')}`;
  const hint = pathname === '/mcp' ? 'what is the path of its MCP endpoint?' : 'is the path /mcp?';
  return `${answered} to the request initialize: ${what}, which is not an answer of MCP; ${hint}`;
}

function describeStatus(status: number, { pathname }: URL, isLegacySse: boolean): string {
  if (status === 404) return pathname === '/mcp' ? '; what is the path of its MCP endpoint?' : '; is the path /mcp?';
  if (status === 405 && !isLegacySse) return ' to POST; an HTTP+SSE server needs --transport http-sse';
  return ' to the request that opens a session';
}

function describeType(
  answered: string,
  contentType: string,
  { status }: Extract<ProbeOutcome, { readonly kind: 'response' }>,
  isLegacySse: boolean,
): string | undefined {
  if (contentType === 'text/html') return `${answered}, a web page; is the path /mcp?`;
  const expected = isLegacySse ? ['text/event-stream'] : ['application/json', 'text/event-stream'];
  if (status < 300 && expected.includes(contentType)) return undefined;
  return `${answered}, which is not MCP; is the path /mcp?`;
}

function describeProbeError(url: URL, code: string): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused the connection; is the server running, and is this its port?';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `cannot be reached: the name ${cleanForeign(url.hostname)} does not resolve`;
    case 'timeout':
      return `did not answer within ${PROBE_TIMEOUT_MS / 1000} seconds`;
  }
  if (CERTIFICATE.test(code))
    return `has a certificate that is not trusted (${code}); for an authority of your own set NODE_EXTRA_CA_CERTS, or in the gateway file tls.ca`;
  if (NOT_TLS.test(code)) return `does not speak TLS (${code}); is the URL http://?`;
  if (url.protocol === 'http:' && /^(?:HPE|UND_ERR_SOCKET|ECONNRESET)/.test(code))
    return `does not speak HTTP (${code}); is the URL https://?`;
  return `cannot be reached (${code})`;
}

function describeRedirect(location: string | undefined, url: URL): string {
  if (location === undefined || !URL.canParse(location, url.href)) return 'a redirect, which is not followed';
  const target = new URL(location, url);
  const shown = cleanForeign(`${target.origin}${target.pathname}`, undefined, 300);
  return `it redirects to ${shown}, and redirects are not followed; give that URL`;
}
