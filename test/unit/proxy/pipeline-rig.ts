// One request through the pipeline over ports of literals: every control lets it pass unless a test replaces it,
// the steps are noted in the order of the calls, and a port that no request of these tests needs throws.

import { guardArguments } from '../../../src/inspection/requests.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import { readJson, readJsonText } from '../../../src/protocol/json/json.js';
import { isObject, type JsonObject } from '../../../src/protocol/jsonrpc.js';
import {
  type Body,
  type Incoming,
  joinPieces,
  type Outgoing,
  type UpstreamResponse,
} from '../../../src/protocol/transport.js';
import { handleRequest } from '../../../src/proxy/pipeline.js';
import type { AnyPort, Ports, Snapshot } from '../../../src/proxy/ports.js';
import { FREE_TURNS } from '../../support/timing.js';
import { profile } from '../inspection/samples.js';
import { catalog, policiesOf, principal } from '../policy/samples.js';

export type Step =
  | 'authenticate'
  | 'slot'
  | 'admit'
  | 'decide'
  | 'open state'
  | 'inspect arguments'
  | 'limits'
  | 'record'
  | 'forward'
  | 'read response'
  | 'note page'
  | 'inspect response'
  | 'send'
  | 'close';

/** What the pipeline calls for a good request with state of the server, in order. */
export const GOOD_STEPS: readonly Step[] = [
  'authenticate',
  'slot',
  'admit',
  'decide',
  'open state',
  'inspect arguments',
  'limits',
  'record',
  'forward',
  'read response',
  'inspect response',
  'send',
  'close',
];

export type Sent = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  /** Of a stream: everything that was written. */
  body: string;
};

export type Run = {
  /** One that is repeated at once is noted once. */
  readonly steps: readonly Step[];
  /** Every response that was begun. */
  readonly sent: readonly Sent[];
  /** Every record that was closed. */
  readonly records: readonly RequestRecord[];
  /** Every error that was reported. */
  readonly reported: readonly unknown[];
};

export type Replaced = {
  readonly ports?: PartialPorts;
  readonly snapshot?: Partial<Snapshot>;
  readonly incoming?: Partial<Incoming>;
  /** Takes what is written to a stream; a promise of it is a client that is slow. */
  readonly take?: (text: string) => void | Promise<void>;
};

const STATELESS = '2026-07-28';

/** The tool that the request calls. */
export const TOOL = 'get_issue';

export function refuseUse(): never {
  throw new Error('this request has no use for it');
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A stateless request, as far as its method decides it. */
export function requestOf(method: string, params: JsonObject): Pick<Incoming, 'headers' | 'body' | 'httpMethod'> {
  const own = isObject(params['_meta']) ? params['_meta'] : {};
  const _meta = {
    ...own,
    'io.modelcontextprotocol/protocolVersion': STATELESS,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const name = params['name'] ?? params['uri'];
  return {
    httpMethod: 'POST',
    headers: {
      'mcp-protocol-version': STATELESS,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    },
    body: encode(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })),
  };
}

/** The text of a response to the request. */
export function resultText(result: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, result: { resultType: 'complete', ...result } });
}

const RESPONSE = {
  kind: 'response',
  status: 200,
  readBody: refuseUse,
  next: refuseUse,
  release: () => undefined,
  abort: () => undefined,
} as const;

/** A response with a JSON body. */
export function jsonResponse(text: string, status = 200): UpstreamResponse {
  const headers = { 'content-type': 'application/json' };
  return { ...RESPONSE, status, headers, readBody: () => encode(text) };
}

/** A response that is a stream, each message in a chunk of its own. */
export function eventResponse(...messages: readonly string[]): UpstreamResponse {
  const chunks = messages.map((text) => encode(`event: message\ndata: ${text}\n\n`));
  return {
    ...RESPONSE,
    headers: { 'content-type': 'text/event-stream' },
    next: () => chunks.shift(),
  };
}

/** Everybody may use everything, five times a minute. */
export const POLICIES = policiesOf([
  {
    id: 'all',
    effect: 'allow',
    who: { anyone: true },
    what: { upstreams: ['github'], tools: ['*'], prompts: ['*'], resources: ['**'] },
    limits: { rate: { count: 5, windowMs: 60_000 }, per: 'subject' },
  },
]);

export const SNAPSHOT: Snapshot = {
  id: 1,
  upstream: 'github',
  policies: POLICIES,
  versions: { config: 'config-1', policy: 'policy-1', pins: 'pins-1' },
  profile,
  profiles: new Map(),
  content: { kind: 'auto', tools: new Map() },
  listsCount: false,
  limits: {
    maxResponseBytes: 64 * 1024,
    maxStreamBytesPerMinute: 64 * 1024,
    maxValues: 1_000,
    listTtlMs: 0,
    requestTimeoutMs: 30_000,
    handshakeTimeoutMs: 30_000,
    streamIdleMs: 30_000,
    exchangeMaxMs: 600_000,
    keepAliveMs: 25_000,
  },
  legacySse: { messageUrl: 'https://mcp.example.com/github/message', isDirect: false },
  supportedVersions: { sessions: [], stateless: [STATELESS] },
  catalogFor: () => catalog({ tools: { [TOOL]: {} } }),
  mayShowApps: () => false,
  isFresh: true,
  isTrusting: false,
  reviewsPages: false,
  isKindVerified: () => true,
  challenge: () => 'Bearer',
};

const INCOMING: Incoming = {
  id: '00000000-0000-4000-8000-000000000000',
  upstream: 'github',
  ...requestOf('tools/call', { name: TOOL, arguments: {}, requestState: 'sealed' }),
  repeated: new Set(),
  query: '',
  remoteAddress: '127.0.0.1',
  signal: new AbortController().signal,
  receivedAt: 0,
  acquireSlot: () => 'regular',
  startedMs: performance.now(),
};

/** Verified, and never to expire. */
export const CALLER = principal({
  token: {
    ...{ id: 't', formerIds: [], audience: 'https://mcp.example.com/github' },
    ...{ expiresAt: Number.POSITIVE_INFINITY, issuedAt: 0, binding: 'none' },
  },
});

/** Ports as far as a test needs them. */
export type PartialPorts = { readonly [name in AnyPort]?: Partial<Ports[name]> };

/** All of these together; where two have the same function, the last counts. */
export function joinPorts(...all: readonly PartialPorts[]): PartialPorts {
  const joined: { [name: string]: object } = {};
  for (const [name, port] of all.flatMap((ports) => Object.entries(ports))) joined[name] = { ...joined[name], ...port };
  return joined;
}

/** Ports with these functions. Every other one throws when it is called. */
function portsOf(...all: readonly PartialPorts[]): Ports {
  const joined = joinPorts(...all);
  const getFunction = (port: object, name: string) => Reflect.get(port, name) ?? refuseUse;
  const getPort = (ports: object, name: string) => new Proxy(Reflect.get(ports, name) ?? {}, { get: getFunction });
  return new Proxy(joined, { get: getPort }) as Ports;
}

const PORTS: PartialPorts = {
  identity: { authenticate: () => CALLER },
  leases: { register: () => () => undefined, countChanges: () => 0 },
  upstreams: {
    forward: () => Promise.resolve(jsonResponse(resultText({ content: [{ type: 'text', text: 'fine' }] }))),
    notePage: () => undefined,
    noteUnavailable: () => undefined,
  },
  streams: { registerResponse: () => () => undefined },
  inspection: {
    message: (input) => inspectMessage(input),
    request: (input) => guardArguments(input),
    readJson: (source) => (typeof source === 'string' ? readJsonText(source) : readJson(source)),
    loopScheduler: FREE_TURNS,
    pages: { find: () => undefined, keep: () => undefined },
    digest: () => 'digest',
  },
  limits: { take: () => ({ ok: true }) },
  sessions: { claimNumber: () => () => undefined },
  audit: { keyedHash: () => 'hash', recordDecision: () => Promise.resolve(true) },
  requestState: { open: () => 'state of the server' },
};

function textOf(body: Body): string {
  const joined = joinPieces(body);
  return typeof joined === 'string' ? joined : new TextDecoder().decode(joined);
}

/** Calls every port as it is, and notes those that are steps. */
function watchPorts(ports: Ports, note: (step: Step) => void, isForwarded: () => boolean): PartialPorts {
  const { identity, upstreams, inspection, limits, audit, requestState } = ports;
  const noting =
    <Given extends unknown[], Returned>(step: Step, run: (...given: Given) => Returned) =>
    (...given: Given): Returned => {
      note(step);
      return run(...given);
    };
  return {
    identity: { authenticate: noting('authenticate', identity.authenticate) },
    upstreams: {
      snapshot(upstream) {
        const found = upstreams.snapshot(upstream);
        if (found === undefined) return undefined;
        return {
          ...found,
          catalogFor(client) {
            // The response is checked by the same catalog.
            if (!isForwarded()) note('decide');
            return found.catalogFor(client);
          },
        };
      },
      forward: noting('forward', upstreams.forward),
      notePage: noting('note page', upstreams.notePage),
    },
    inspection: {
      request: noting('inspect arguments', inspection.request),
      message: noting('inspect response', inspection.message),
      readJson(...given) {
        note(isForwarded() ? 'read response' : 'admit');
        return inspection.readJson(...given);
      },
    },
    limits: { take: noting('limits', limits.take) },
    audit: {
      recordDecision: noting('record', audit.recordDecision),
      closeRecord: noting('close', audit.closeRecord),
    },
    requestState: { open: noting('open state', requestState.open) },
  };
}

/** Takes one request through the pipeline: by default a good call of {@link TOOL} with state of the server. */
export async function runRequest({ ports, snapshot, incoming, take }: Replaced = {}): Promise<Run> {
  const steps: Step[] = [];
  const sent: Sent[] = [];
  const records: RequestRecord[] = [];
  const reported: unknown[] = [];
  const note = (step: Step): void => {
    if (steps.at(-1) !== step) steps.push(step);
  };
  const current: Snapshot = { ...SNAPSHOT, ...snapshot };
  const own: PartialPorts = {
    upstreams: { snapshot: () => current },
    audit: {
      closeRecord: (record) => void records.push(record),
      report: (error) => void reported.push(error),
    },
  };
  const all = [PORTS, own, ports ?? {}];
  const given: Incoming = { ...INCOMING, ...incoming };
  const outgoing: Outgoing = {
    isClosed: false,
    addHeader: () => undefined,
    send(status, headers, body) {
      note('send');
      sent.push({ status, headers, body: textOf(body) });
    },
    open(status, headers) {
      sent.push({ status, headers, body: '' });
    },
    write(bytes) {
      const stream = sent.at(-1);
      if (stream !== undefined) stream.body += textOf(bytes);
      return take?.(textOf(bytes));
    },
    end: () => note('send'),
    disconnect: () => undefined,
  };
  const acquireSlot: Incoming['acquireSlot'] = (...of) => {
    note('slot');
    return given.acquireSlot(...of);
  };
  const watched = watchPorts(portsOf(...all), note, () => steps.includes('forward'));
  await handleRequest({ ...given, acquireSlot }, outgoing, portsOf(...all, watched));
  return { steps, sent, records, reported };
}
