// Plays the tour of the demo through a gateway that stands between two recording proxies, and gives what went
// over the wire on both sides and what the audit log says, as text that is the same at every run.
// Ids, times, keyed hashes, tokens, sessions and ports become placeholders that keep identity
// (`<decision-3>`); everything else stands there as it was sent or written.

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { DEMO_USERS, type DemoUser, writeDemoFiles } from '../../src/dev/files.js';
import { startIssuer } from '../../src/dev/issuer.js';
import { runTour } from '../../src/dev/tour.js';
import { startGateway } from '../../src/gateway/gateway.js';
import { createLog } from '../../src/telemetry/log.js';
import { readAudit } from './audit-chain.js';
import { fetchPins } from './gateway.js';
import { headerOf, type RawHeader, type RecordedExchange, startRecordingProxy } from './recording-proxy.js';

/** The name under which the tour's client introduces itself. */
const CLIENT_NAME = 'sallyport-tour';
/** What the runtime's own `fetch` adds to a request of the tour: no word of ours, and new with a new Node. */
const RUNTIME_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'accept-language',
  'connection',
  'sec-fetch-mode',
  'user-agent',
]);
/** How long a refusal still holds depends on when the request came. */
const WAIT = /(?<=Try again in )\d+(?= seconds)/g;
/** The tag of a redaction mark depends on the key of the gateway. */
/** The cursor of a list, sealed. */
const CURSOR = /(?<="(?:nextCursor|cursor)":")[\w-]{40,}(?=")/g;
const TAG = /(?<=\[redacted:[a-z-]{1,40}#)[a-z2-7]{4}(?=\])/g;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

type AuditLine = { readonly [member: string]: unknown };

/** What a run of the tour left. */
export type TourRun = {
  readonly exitCode: number;
  readonly client: readonly RecordedExchange[];
  readonly upstream: readonly RecordedExchange[];
  /** How many of `upstream` came before the first request of the tour. */
  readonly upstreamBefore: number;
  /** The title of a scene, by the number of client exchanges before it. */
  readonly scenes: ReadonlyMap<number, string>;
  readonly audit: readonly AuditLine[];
  /** Texts that differ from run to run, and what stands for them. */
  readonly known: readonly (readonly [text: string, placeholder: string])[];
};

function userOf(name: DemoUser) {
  const { subject, groups, scopes } = DEMO_USERS[name];
  return { name, subject, groups: [...groups], scopes: [...scopes] };
}

/** Plays the tour once, as `npm run demo -- --exit` does, and ends everything. */
export async function playTour(): Promise<TourRun> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-golden-'));
  const issuer = await startIssuer({ users: [userOf('engineer'), userOf('support')] });
  const desk = await startDemoUpstream({ seed: 'golden' });
  const toGateway = await startRecordingProxy();
  const toUpstream = await startRecordingProxy();
  toUpstream.forwardTo(Number(new URL(desk.url).port));
  const files = await writeDemoFiles(folder, {
    publicUrl: `http://127.0.0.1:${toGateway.port}`,
    issuer: issuer.issuer,
    upstreamUrl: `http://127.0.0.1:${toUpstream.port}${new URL(desk.url).pathname}`,
    ports: { data: 0, ops: 0, admin: 0 },
    adminToken: randomUUID(),
  });
  await fetchPins(files.configFile);
  const started = await startGateway({
    file: files.configFile,
    env: {},
    log: createLog(() => undefined, 'error'),
    build: { version: '0.0.0-test', node: 'v24.0.0' },
    writeStdout: async () => undefined,
  });
  if (started.kind !== 'started') throw new Error(`the gateway did not start: ${started.kind}`);
  const { gateway } = started;
  const portOf = (wanted: string): number => gateway.listening.find(({ listener }) => listener === wanted)?.port ?? 0;
  toGateway.forwardTo(portOf('data'));
  const readLines = async (): Promise<string[]> => (await readAudit(files.auditFile)).split('\n').slice(0, -1);
  const scenes = new Map<number, string>();
  const write = (text: string): void => {
    const title = /^\n +\d+ {2}(.+)\n +expect /.exec(text)?.[1];
    if (title !== undefined) scenes.set(toGateway.exchanges().length, title);
  };
  await expect
    .poll(async () => (await fetch(`http://127.0.0.1:${portOf('ops')}/metrics`)).text())
    .toContain('sallyport_upstream_up{upstream="desk"} 1');
  const upstreamBefore = toUpstream.exchanges().length;
  const exitCode = await runTour({
    url: files.resource,
    upstream: desk,
    mint: (name, { audience = files.resource, scopes = DEMO_USERS[name].scopes } = {}) =>
      issuer.mint({ ...userOf(name), resource: audience, scopes }),
    readAudit: readLines,
    write,
    hasColor: false,
  });
  await gateway.close();
  const audit = (await readLines()).map((line) => JSON.parse(line) as AuditLine);
  const run: TourRun = {
    ...{ exitCode, scenes, audit, upstreamBefore },
    client: [...toGateway.exchanges()],
    upstream: [...toUpstream.exchanges()],
    known: [
      [`127.0.0.1:${toGateway.port}`, '<gateway>'],
      [`127.0.0.1:${toUpstream.port}`, '<upstream>'],
      [issuer.issuer, '<issuer>'],
      [desk.secrets.card, '<card>'],
      [desk.secrets.token, '<credential>'],
    ],
  };
  await toGateway.close();
  await toUpstream.close();
  await desk.close();
  await issuer.close();
  await rm(folder, { recursive: true, force: true });
  return run;
}

type Placeholders = {
  /** The placeholder of a value: the same one for the same value, numbered as it first appears. */
  of(kind: string, value: string): string;
  /** A text with everything in it replaced that differs from run to run. */
  in(text: string): string;
};

function createPlaceholders({ known, audit }: TourRun): Placeholders {
  const given = new Map<string, string>();
  const counts = new Map<string, number>();
  const decisions = new Set(audit.map((line) => memberOf(line, 'decision', 'id')));
  function placeholderOf(kind: string, value: string): string {
    const placeholder = given.get(value);
    if (placeholder !== undefined) return placeholder;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    given.set(value, `<${kind}-${count}>`);
    return `<${kind}-${count}>`;
  }
  return {
    of: placeholderOf,
    in: (text) =>
      known
        .reduce((replaced, [value, name]) => replaced.replaceAll(value, name), text)
        .replace(WAIT, '<seconds>')
        .replace(TAG, '<tag>')
        .replace(CURSOR, '<cursor>')
        .replace(UUID, (id) => placeholderOf(decisions.has(id) ? 'decision' : 'uuid', id)),
  };
}

function memberOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null ? (at as AuditLine)[name] : undefined),
    value,
  );
}

function headerText([name, value]: RawHeader, session: string, placeholders: Placeholders): string {
  switch (name.toLowerCase()) {
    case 'date':
      return `${name}: <date>`;
    case 'mcp-session-id':
      return `${name}: ${placeholders.of(session, value)}`;
    case 'authorization':
      return `${name}: ${value.replace(/(?<= ).+/, (token) => placeholders.of('token', token))}`;
    default:
      return `${name}: ${placeholders.in(value)}`;
  }
}

/** Characters that a reader of the record might not see, by their numbers. */
function visible(text: string): string {
  return text.replace(/[^\n\x20-\x7e]/gu, (one) => `<U+${one.codePointAt(0)?.toString(16)}>`);
}

/** A request and its response, a line for each header and each line of a body. */
function exchangeText(
  exchange: RecordedExchange,
  side: 'session' | 'upstream-session',
  placeholders: Placeholders,
): string {
  const { method, path, requestHeaders, requestBody, status } = exchange;
  const sent = requestHeaders.filter(
    ([name]) => side === 'upstream-session' || !RUNTIME_HEADERS.has(name.toLowerCase()),
  );
  const body = (text: string): string[] => (text === '' ? [] : visible(placeholders.in(text)).split('\n'));
  const lines = (mark: string, head: string, headers: readonly RawHeader[], text: string) =>
    [head, ...headers.map((header) => headerText(header, side, placeholders)), ...body(text)].map((line) =>
      `${mark} ${line}`.trimEnd(),
    );
  return [
    ...lines('>', `${method} ${path}`, sent, requestBody),
    ...lines('<', String(status), exchange.responseHeaders, exchange.responseBody),
  ].join('\n');
}

/** Exchanges with the upstream that carry the tour's requests, and those that the gateway makes by itself. */
function splitUpstream(run: TourRun): {
  readonly carried: readonly RecordedExchange[];
  readonly own: readonly RecordedExchange[];
} {
  const sessions = new Set<string>();
  const isCarried = (exchange: RecordedExchange): boolean => {
    const session = headerOf(exchange.requestHeaders, 'mcp-session-id');
    if (session !== undefined) return sessions.has(session);
    if (!exchange.requestBody.includes(`"${CLIENT_NAME}"`)) return false;
    const opened = headerOf(exchange.responseHeaders, 'mcp-session-id');
    if (opened !== undefined) sessions.add(opened);
    return true;
  };
  const carried = run.upstream.filter(isCarried);
  const isEarly = new Set(run.upstream.slice(0, run.upstreamBefore));
  const own = run.upstream.filter((one) => isEarly.has(one) && !carried.includes(one));
  return { carried, own };
}

/** The requests of the tour by scene, in their order: the client waits for each response. */
function clientText(run: TourRun, placeholders: Placeholders): string {
  return run.client
    .map((exchange, index) => {
      const title = run.scenes.get(index);
      const head = title === undefined ? '' : `## ${title}\n\n`;
      return `${head}${exchangeText(exchange, 'session', placeholders)}\n`;
    })
    .join('\n');
}

/** The gateway's own exchanges: who asks first is not defined, and how often is not either. */
function ownText(own: readonly RecordedExchange[], placeholders: Placeholders): string {
  const texts = own.map((exchange) =>
    exchangeText(exchange, 'upstream-session', placeholders)
      .replace(/"id":(?:\d+|"[^"]*")/g, '"id":<id>')
      .replace(/<(upstream-session|uuid)-\d+>/g, '<$1>'),
  );
  return [...new Set(texts)]
    .sort()
    .map((text) => `${text}\n`)
    .join('\n');
}

/** What is written in place of a member of an audit line: a kind with a number, or a bare placeholder. */
const AUDIT_PLACEHOLDERS: ReadonlyMap<string, string> = new Map([
  ['gateway.pins', 'pins'],
  ['actor.token.id', 'token-id'],
  ['client.session', 'session-digest'],
  ['args.digest', 'digest'],
  ['result.digest', 'digest'],
]);
const AUDIT_BLANKS =
  /^(?:id|time|gateway\.(?:instance|host|run|epoch|config)|actor\.token\.exp|latency_ms\.\w+|chain\.\w+|detail\.(?:epoch|hash|at|file|key_id|public_key|signature))$/;

function auditMember(value: unknown, path: string, placeholders: Placeholders): unknown {
  if (value === null) return null;
  if (AUDIT_BLANKS.test(path)) return `<${path.split('.').at(-1)}>`;
  const kind = AUDIT_PLACEHOLDERS.get(path);
  if (kind !== undefined) return placeholders.of(kind, String(value));
  if (typeof value === 'string') return placeholders.in(value);
  if (Array.isArray(value)) return value.map((one) => auditMember(one, path, placeholders));
  if (typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      auditMember(one, path === '' ? name : `${path}.${name}`, placeholders),
    ]),
  );
}

/** One line of the audit log, a member a line. */
function auditText(line: AuditLine, placeholders: Placeholders): string {
  const members = Object.entries(auditMember(line, '', placeholders) as AuditLine);
  return members.map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`).join('');
}

/**
 * The audit log. Lines of one decision stand together, in the order of the decisions: an outcome is written
 * after its response has left, and so before or after the next decision. Other lines keep their order.
 */
function auditSections(run: TourRun, placeholders: Placeholders): readonly [string, string] {
  const byDecision = new Map<string, string[]>();
  const others: string[] = [];
  for (const line of run.audit) {
    const id = memberOf(line, 'decision', 'id');
    const text = auditText(line, placeholders);
    if (typeof id !== 'string') others.push(text);
    else byDecision.set(id, [...(byDecision.get(id) ?? []), text]);
  }
  return [[...byDecision.values()].flat().join('\n'), others.join('\n')];
}

/** Whether each line of the log follows on the one before: the record itself leaves numbers and hashes out. */
export function isChained({ audit }: TourRun): boolean {
  return audit.every((line, index) => {
    const before = audit[index - 1];
    if (memberOf(line, 'chain', 'seq') !== index) return false;
    return before === undefined || memberOf(line, 'chain', 'prev') === memberOf(before, 'chain', 'hash');
  });
}

/** The record of a run: the same text for the same behaviour. */
export function renderTour(run: TourRun): string {
  const placeholders = createPlaceholders(run);
  const { carried, own } = splitUpstream(run);
  const client = clientText(run, placeholders);
  const upstream = carried.map((one) => exchangeText(one, 'upstream-session', placeholders));
  const [decisions, others] = auditSections(run, placeholders);
  return [
    'Written by test/golden.test.ts with UPDATE_GOLDEN=1; not to be edited by hand.',
    '# Between the client of the tour and the gateway',
    client,
    '# Between the gateway and the upstream, on behalf of the client',
    upstream.map((text) => `${text}\n`).join('\n'),
    '# Between the gateway and the upstream before the tour, on its own behalf, sorted',
    ownText(own, placeholders),
    '# Audit lines by decision',
    decisions,
    '# Other audit lines',
    others,
  ].join('\n\n');
}
