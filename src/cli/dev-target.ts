// The servers that `sallyport dev` puts the gateway in front of: each is reached by HTTP, or started by a command, which
// the adapter of `sallyport stdio` then serves from this process. Pins what they offer. If one cannot be listed, explains
// why in one sentence with what to do about it: sends the request that opens a session once more, as a client would,
// because the gateway's own listing reports only classes of errors. docs/reference/commands.md#dev; MCP 2025-11-25,
// transports.

import { readFile } from 'node:fs/promises';
import { networkOfHost } from '../config/checks/addresses.js';
import type { DevFiles, DevServer, Offered } from '../dev/files.js';
import { redactForRecord } from '../inspection/capture.js';
import { approvedVersions, type Lock } from '../pins/lock.js';
import { readLock } from '../pins/lock-reader.js';
import { isExactPattern } from '../policy/patterns.js';
import { mediaType } from '../protocol/headers.js';
import { isObject } from '../protocol/jsonrpc.js';
import { LATEST_SESSION_VERSION } from '../protocol/versions/revisions.js';
import { unpinnedIn } from '../stdio/packages.js';
import { type ProcessEnd, type ProcessPorts, serverEnvironment } from '../stdio/server-process.js';
import { REFUSED_TO_INITIALIZE } from '../stdio/server-sessions.js';
import { onlyServer, STDIO_PATH, startStdioServer } from '../stdio/stdio-server.js';
import { cleanForeign, escapeForTerminal, makeVisible, maskSecrets, quoteForShell } from '../text/escaping.js';
import { countOf, fullDurationText } from '../text/wording.js';
import type { Header, Network, WantedServer } from './dev-servers.js';
import { type CliIo, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from './program.js';
import { HTTP_SSE } from './servers/server-options.js';
import { newStdioToken } from './stdio.js';

export type DevTarget = {
  /** How the gateway reaches it now. `file` of its header is named after it. */
  readonly server: DevServer;
  /** The command that serves it; absent if it is reached by HTTP. */
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

/** Each client has a session, and so has the gateway's own listing. */
const MAX_SESSIONS = 32;
/** The first start of a command may have to download it. */
export const COMMAND_TIMEOUT = '2m';

/** What is wrong with a URL, in one sentence. */
export function findUrlMistake(upstream: string, network: Network | undefined): string | undefined {
  const shown = escapeForTerminal(upstream);
  if (!/^https?:/.test(upstream)) return `--upstream ${shown}: expected a URL such as http://127.0.0.1:3001/mcp`;
  if (!URL.canParse(upstream)) return `--upstream ${shown}: this is not a valid URL`;
  const { protocol, origin } = new URL(upstream);
  if (protocol === 'https:' || networkOfUrl(upstream, network) !== 'public') return undefined;
  return `--upstream ${escapeForTerminal(origin)}: plain http is never sent to public addresses; for a server in a private network add --network private, for one on this machine --network loopback`;
}

/** The network of an address; a name is assumed to be public unless `--network` is given. */
function networkOfUrl(url: string, given: Network | undefined): Network {
  const network = given ?? networkOfHost(new URL(url).hostname);
  return network === undefined || network === 'none' ? 'public' : network;
}

type HttpServer = Extract<WantedServer, { readonly kind: 'http' }>;

export function targetOfUrl({ name, url: text, header, headerVariable, transport, network }: HttpServer): DevTarget {
  const url = new URL(text);
  return {
    server: {
      name,
      url: url.href,
      network: networkOfUrl(text, network),
      transport,
      header: header && { ...header, file: `secrets/${name}-header`, env: headerVariable },
    },
    shown: escapeForTerminal(`${url.origin}${url.pathname}`),
    async explain() {
      const probed = { url, header, isLegacySse: transport === HTTP_SSE };
      const outcome = await probeServer(probed);
      return (await findLegacySse(probed, outcome)) ?? describeProbe(probed, outcome);
    },
    close: () => Promise.resolve(),
  };
}

type StartedCommand = {
  readonly name: string;
  /** Where it is started; nothing of this process's environment reaches it but what it needs and `env` names. */
  readonly cwd: string;
  readonly env?: readonly string[];
  /** What its lines begin with. */
  readonly label?: string;
  /** The process of the first session is that of the next one that is opened alike. */
  readonly keepsFirst?: boolean;
};

/** Starts the adapter of one command. */
export async function startCommand(
  { name, cwd, env = [], label = '', keepsFirst = false }: StartedCommand,
  [command = '', ...args]: readonly string[],
  io: CliIo,
  { signalGroup, killMarked }: Pick<ProcessPorts, 'signalGroup' | 'killMarked'>,
): Promise<DevTarget> {
  let firstEnd: ProcessEnd | undefined;
  const token = newStdioToken();
  const settings = {
    servers: onlyServer({ command, args, cwd, env: serverEnvironment(io.env, env) }, label),
    ...{ address: { host: '127.0.0.1', port: 0 }, token, maxSessions: MAX_SESSIONS, keepsFirst },
  };
  const adapter = await startStdioServer(settings, {
    signalGroup,
    killMarked,
    log: (line) => io.stderr(`${line}\n`),
    redact: redactForRecord,
    onProcessEnd: (end) => {
      // It runs; what it answered says more than how it was ended then.
      if (end.how !== REFUSED_TO_INITIALIZE) firstEnd ??= end;
    },
  });
  return {
    server: {
      name,
      url: `http://127.0.0.1:${adapter.port ?? 0}${STDIO_PATH}`,
      network: 'loopback',
      header: { name: 'Authorization', value: `Bearer ${token}`, file: `secrets/${name}-stdio` },
      requestTimeout: COMMAND_TIMEOUT,
    },
    command: [command, ...args],
    shown: makeVisible(escapeForTerminal([command, ...args].map(quoteForShell).join(' '))),
    explain: (printed) =>
      Promise.resolve(firstEnd === undefined ? describeRunning(command, printed) : describeEnd(command, firstEnd)),
    close: adapter.close,
  };
}

/** Starts what has to be started, and says where each is reached. */
export async function openTargets(
  servers: readonly WantedServer[],
  io: CliIo,
  ports: Pick<ProcessPorts, 'signalGroup' | 'killMarked'>,
): Promise<readonly DevTarget[]> {
  const label = (name: string): string => (servers.length === 1 ? '' : `${name} `);
  const opened = servers.map((server) => {
    if (server.kind === 'http') return targetOfUrl(server);
    const { name, argv, env, cwd = io.cwd } = server;
    const values = [...env].map(([key, from]) => [key, 'env' in from ? io.env[from.env] : from.value] as const);
    const own = { ...io, env: { ...io.env, ...Object.fromEntries(values) } };
    const how = { label: label(name), keepsFirst: true };
    return startCommand({ name, cwd, env: [...env.keys()], ...how }, argv, own, ports);
  });
  return await Promise.all(opened);
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

function printStart({ shown, command }: DevTarget, of: string, io: CliIo): void {
  if (command === undefined) return;
  io.stdout(`starting   ${of}${shown}\n`);
  for (const warning of unpinnedIn(command)) io.stderr(`warning: ${of}${escapeForTerminal(warning)}\n`);
}

/** What became of the servers: those that are served, with what they offer. */
export type PinnedServer = {
  readonly target: DevTarget;
  readonly offered: Offered;
  readonly lock: Lock | undefined;
};

/**
 * Pins what the servers offer, and prints what cannot be. One that cannot be listed costs itself alone. Resolves with the
 * exit code, if that ends the program.
 */
export async function pinServers(
  targets: readonly DevTarget[],
  files: DevFiles,
  { io, ended }: { readonly io: CliIo; readonly ended: Promise<number> },
  pin: (configFile: string) => Promise<PinnedOnce>,
): Promise<readonly PinnedServer[] | number> {
  const isAlone = targets.length === 1;
  for (const target of targets) printStart(target, isAlone ? '' : `${target.server.name}: `, io);
  const pinned = await Promise.race([pin(files.configFile), ended]);
  if (typeof pinned === 'number') return pinned;
  const { code, printed, wasAsked } = pinned;
  if (!wasAsked) {
    io.stderr(printed);
    return code;
  }
  const reading = Promise.all(targets.map((target) => readPinning(target, files, { ...pinned, isAlone })));
  const all = await Promise.race([reading, ended]);
  if (typeof all === 'number') return all;
  for (const { answer, noted = '' } of all) {
    io.stderr(answer);
    io.stdout(noted);
  }
  const served = all.flatMap(({ server }) => (server === undefined ? [] : [server]));
  if (served.length > 0) return served;
  return code === EXIT_FINE || code === EXIT_FAILED ? EXIT_UNCHECKED : code;
}

/** What became of one server, and what is to be told of it. */
type Pinning = { readonly server?: PinnedServer; readonly answer: string; readonly noted?: string };

async function readPinning(
  target: DevTarget,
  files: DevFiles,
  { printed, code, isAlone }: PinnedOnce & { readonly isAlone: boolean },
): Promise<Pinning> {
  const own = linesOf(printed, target.server.name, isAlone);
  const read = await readOffered(files.lockFileOf(target.server.name)).catch(() => undefined);
  if (read === undefined) return { answer: await describeUnlisted(target, own, isAlone) };
  const server = { target, ...read };
  // What cannot be pinned stays hidden, and the rest can be tried.
  if (isAlone && code !== EXIT_FINE) return { server, answer: own };
  return { server, answer: '', noted: listingNotesIn(own, target.server.name, isAlone) };
}

/** The lines about one server, of what was printed about all. */
function linesOf(printed: string, name: string, isAlone: boolean): string {
  if (isAlone) return printed;
  const lines = printed
    .split('\n')
    .filter((line) =>
      [`${name} `, `${name}: `].some((start) => line.replace(/^(?:error|note|warning): /, '').startsWith(start)),
    );
  return lines.map((line) => `${line}\n`).join('');
}

/** Why a server could not be listed. */
async function describeUnlisted(target: DevTarget, printed: string, isAlone: boolean): Promise<string> {
  const { server, shown } = target;
  const why = await target.explain(printed);
  const of = isAlone ? '' : `${server.name}: `;
  // The gateway file has its name; whoever started dev knows it by URL or command.
  return why === undefined
    ? printed.replace(`error: ${server.name} `, () => `error: ${of}${shown} `)
    : `error: ${of}${why}\n`;
}

const LEFT_OUT = 'left out: ';

/** What of the lists could not be read, one line each, as `pin fetch` has printed it. */
function listingNotesIn(printed: string, name: string, isAlone: boolean): string {
  const start = `note: ${name}: `;
  const of = isAlone ? '' : `${name}: `;
  const notes = printed.split('\n').filter((line) => line.startsWith(start));
  const lines = notes.map((line) => {
    const note = line.slice(start.length);
    return note.startsWith(LEFT_OUT) ? `left out   ${of}${note.slice(LEFT_OUT.length)}\n` : `missing    ${of}${note}\n`;
  });
  return lines.join('');
}

/** The lock file, and the names that were approved, by kind. A name that reads as a pattern would grant more than itself in a rule. */
async function readOffered(lockFile: string): Promise<{ readonly offered: Offered; readonly lock: Lock | undefined }> {
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

/** What is not approved and therefore hidden, with the reason. Safe on a terminal. */
export function hiddenIn(
  lock: Lock | undefined,
): readonly { readonly kind: string; readonly name: string; readonly why: string }[] {
  if (lock === undefined) return [];
  const { tool, prompt, template, resource } = lock.pins;
  return Object.entries({ tool, prompt, template, resource }).flatMap(([kind, pins]) =>
    [...pins]
      .filter(([, pin]) => approvedVersions(pin).length === 0)
      .map(([name, { status }]) => ({ kind, name: cleanForeign(name), why: HIDDEN_BECAUSE[status] })),
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

/** A response by its form alone: of its values, which may be secrets, only the text of an error is shown. */
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
      /** How the text of an error begins, without secrets and safe on a terminal. */
      readonly answer?: string;
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
    if (status >= 400) return { ...outcome, answer: firstLineOf(contentType, await readStart(response)) };
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

const TEXT_TYPES: ReadonlySet<string> = new Set(['text/plain', 'application/json', '']);
const MAX_ANSWER_CHARACTERS = 160;

/** What a server says of an error: its first line, or the message of a JSON-RPC error. */
function firstLineOf(contentType: string, text: string): string {
  if (!TEXT_TYPES.has(contentType)) return '';
  const message = messageIn(text) ?? text.split('\n').find((line) => line.trim() !== '') ?? '';
  return cleanForeign(redactForRecord(message.trim()), maskSecrets, MAX_ANSWER_CHARACTERS);
}

function messageIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const { error, message = error } = isObject(value) ? value : {};
    const inner = isObject(message) ? message['message'] : message;
    return typeof inner === 'string' ? inner : undefined;
  } catch {
    return undefined;
  }
}

/** Before the statuses that a server without streamable HTTP answers a POST with. */
const NO_POST: ReadonlySet<number> = new Set([400, 404, 405, 406]);

/** A server of the older transport, known by the stream that it opens at a GET. */
async function findLegacySse(probed: ProbedServer, outcome: ProbeOutcome): Promise<string | undefined> {
  if (probed.isLegacySse || outcome.kind !== 'response' || !NO_POST.has(outcome.status)) return undefined;
  const opened = await probeServer({ ...probed, isLegacySse: true });
  const isStream = opened.kind === 'response' && opened.status === 200 && opened.contentType === 'text/event-stream';
  return isStream ? `${shownUrl(probed.url)} speaks HTTP+SSE; add --transport http-sse` : undefined;
}

function shownUrl({ origin, pathname }: URL): string {
  return cleanForeign(`${origin}${pathname}`, undefined, 300);
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
  const shown = shownUrl(url);
  if (outcome.kind === 'error') return `${shown} ${describeProbeError(url, outcome.code)}`;
  const { status, contentType, location, hasChallenge, answer } = outcome;
  const answered = `${shown} answered ${status}`;
  if ((status === 401 || status === 403) && (hasChallenge || header !== undefined)) {
    const advice =
      header === undefined
        ? "it wants credentials; try --header 'Authorization: Bearer TOKEN'"
        : `it does not accept the header ${header.name} that was given`;
    return `${answered}: ${advice}`;
  }
  if (status >= 300 && status < 400) return `${answered}: ${describeRedirect(location, url)}`;
  if (status >= 400) return withAnswer(`${answered}${describeStatus(status, url, isLegacySse)}`, answer);
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

function withAnswer(text: string, answer = ''): string {
  return answer === '' ? text : `${text}; it says: ${answer}`;
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
      return `did not answer within ${fullDurationText(PROBE_TIMEOUT_MS)}`;
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
