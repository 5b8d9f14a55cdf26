// Decides whether what a client sent is one valid message of one era. One pure classifier, whose order
// of checks is the order of the functions below; what it refuses, it refuses with the era's own code.
// It never asks who the caller is, what a policy allows, or what a tool is.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol and transports; contract §6.

import type { Admitted, MethodRule, ProtocolFault, TextEdit } from './admitted.js';
import {
  type AdmissionInput,
  type Call,
  type CarriedEra,
  type Classified,
  checkRepeated,
  classify,
  placeOf,
} from './classify.js';
import { checkSession, cutInitialize, type SessionCheck } from './eras/sessions.js';
import {
  CLIENT_INFO_KEY,
  checkNameHeader,
  claimsStateless,
  cutStateless,
} from './eras/stateless.js';
import {
  type FaultPlace,
  faultOf,
  headerMismatch,
  INVALID_REQUEST,
  invalidMessage,
  invalidParams,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
} from './faults.js';
import { type Grants, NO_GRANTS } from './grants.js';
import { readParamHeaders } from './headers.js';
import { hasInexactNumber, type JsonReading, readJson, spanOf } from './json.js';
import { type EnvelopeReading, readEnvelope } from './jsonrpc.js';
import { isObject, type Json, type JsonObject } from './message.js';
import { findMethod, isDefinedMethod } from './methods.js';
import { readParams } from './params.js';
import { type CapabilityCut, ownMetaEdits } from './removal.js';

type Text = Extract<JsonReading, { readonly ok: true }>;

const NOTHING_CUT: CapabilityCut = { edits: [], askable: [] };
const NO_HEADERS: { readonly [name: string]: string } = Object.freeze(Object.create(null));

// Numbers that are compared or judged: read differently by another parser, they name something else.
const JUDGED_NUMBERS = [
  ['id'],
  ['params', 'arguments'],
  ['params', 'inputResponses'],
  ['params', 'requestId'],
  ['params', 'progressToken'],
  ['params', '_meta', 'progressToken'],
];

/**
 * Admits one POSTed message, or says why not. Pure but for the port that opens sessions.
 *
 * @returns the message with what must be cut from it, or a fault with status, code and own text.
 * Source: MCP 2025-11-25 and 2026-07-28, transports; contract §6, row "protocol violation".
 */
export function admitMessage(input: AdmissionInput): Admitted | ProtocolFault {
  const reading = readJson(input.body);
  if (!reading.ok) return unreadable(reading.fault);
  const envelope = readEnvelope(reading.value);
  switch (envelope.kind) {
    case 'request':
    case 'notification':
      return admitCall(input, reading, envelope);
    case 'result':
    case 'error':
    case 'batch':
    case 'malformed':
      return refuseEnvelope(envelope);
  }
}

/** Admits a GET that opens the stream of a session; there is none without a session. */
export function admitStreamOpen(input: Omit<AdmissionInput, 'body'>): SessionCheck {
  return admitWithoutBody(input);
}

/** Admits a DELETE that ends a session; there is nothing to end without one. */
export function admitSessionEnd(input: Omit<AdmissionInput, 'body'>): SessionCheck {
  return admitWithoutBody(input);
}

function admitWithoutBody(input: Omit<AdmissionInput, 'body'>): SessionCheck {
  const { headers } = input;
  const isStateless = claimsStateless(undefined, headers);
  if (isStateless || headers['mcp-session-id'] === undefined) {
    const era = isStateless ? '2026' : undefined;
    return faultOf('method-forbidden', INVALID_REQUEST, 'Method not allowed', { era }, 405);
  }
  const place: FaultPlace = { era: '2025' };
  return checkRepeated(input, place) ?? checkSession(headers, input.openSession, place);
}

function unreadable(fault: Extract<JsonReading, { readonly ok: false }>['fault']): ProtocolFault {
  const place: FaultPlace = { era: undefined };
  switch (fault) {
    case 'malformed-json':
      return faultOf(fault, PARSE_ERROR, 'The body is not valid JSON in UTF-8.', place);
    case 'duplicate-key':
      return faultOf(fault, INVALID_REQUEST, 'An object has two members of one name.', place);
    case 'too-deep':
      return invalidMessage(place, 'The body nests too deeply.');
  }
}

function refuseEnvelope(envelope: Exclude<EnvelopeReading, Call>): ProtocolFault {
  const place: FaultPlace = { era: undefined };
  switch (envelope.kind) {
    case 'batch': {
      const text = 'Arrays of messages are not accepted; send one message a request.';
      return faultOf('batch-forbidden', INVALID_REQUEST, text, place);
    }
    case 'malformed':
      return invalidMessage(
        { era: undefined, id: envelope.id },
        'The body is not one valid JSON-RPC message.',
      );
    case 'result':
    case 'error':
      // No request of a server is passed on, so there is nothing that a client could answer.
      return invalidMessage(place, 'No request is waiting for this answer.');
  }
}

function admitCall(input: AdmissionInput, text: Text, call: Call): Admitted | ProtocolFault {
  const meta = metaOf(call);
  const classified = classify(input, call, meta);
  if (classified.kind === 'fault') return classified;
  const place = placeOf(classified.era, call);
  const rule = findRule(classified.era, call, place);
  if ('kind' in rule) return rule;
  const params = readParams(rule.method, call.params, classified.era);
  if (!params.ok) return invalidParams(place, params.why);
  if (text.suspectNumbers && isAmbiguous(text.text)) {
    return invalidParams(place, 'A number loses its value when it is read as a double.');
  }
  const paramHeaders = checkMirrors(input, classified.era, call, place);
  if (isFault(paramHeaders)) return paramHeaders;
  const own = ownMetaEdits(text.text, meta);
  const cut = cutEra(input, classified, text.text, call, meta);
  return admit({
    kind: 'admitted',
    era: classified.era,
    version: classified.version,
    message: call,
    rule,
    target: params.target,
    args: params.args,
    session: classified.session,
    askable: cut.askable,
    bytes: input.body,
    text: text.text,
    nameHeader: classified.era === '2026' ? input.headers['mcp-name']?.trim() : undefined,
    edits: own.edits.length === 0 ? cut.edits : merge(cut.edits, own.edits),
    paramHeaders,
    selfReported: selfReported(call, meta),
    removed: own.removed,
  });
}

/** The one place where a message is marked as admitted. */
function admit(message: { readonly [key in Exclude<keyof Admitted, symbol>]: Admitted[key] }) {
  return message as Admitted;
}

/** The message with further edits, which its restoring or its narrowing by policy asks for. */
export function amendAdmitted(admitted: Admitted, edits: readonly TextEdit[]): Admitted {
  return edits.length === 0 ? admitted : { ...admitted, edits: merge(admitted.edits, edits) };
}

function findRule(era: CarriedEra, call: Call, place: FaultPlace): MethodRule | ProtocolFault {
  const rule = findMethod(era, 'client', call.method);
  if (rule?.type === call.kind) return rule;
  if (rule?.type === 'request') {
    return invalidMessage(place, 'This method is a request and needs an id.');
  }
  const reason = isDefinedMethod(call.method) ? 'method-forbidden' : 'method-unknown';
  return faultOf(reason, METHOD_NOT_FOUND, 'Method not found', place, refusalStatus(era, call));
}

/** A 404 in a session means that the session is lost, and a notification has no answer but its status. */
function refusalStatus(era: CarriedEra, call: Call): number {
  if (era === '2026') return 404;
  return call.kind === 'request' ? 200 : 400;
}

function checkMirrors(
  input: AdmissionInput,
  era: CarriedEra,
  call: Call,
  place: FaultPlace,
): Admitted['paramHeaders'] | ProtocolFault {
  if (era === '2025') return NO_HEADERS;
  const fault = checkNameHeader(call.method, call.params, input.headers, place);
  if (fault !== undefined) return fault;
  return (
    readParamHeaders(input.headers, input.repeated) ??
    headerMismatch(place, 'A header that mirrors an argument is repeated or malformed.')
  );
}

function isFault(value: Admitted['paramHeaders'] | ProtocolFault): value is ProtocolFault {
  return value['kind'] === 'fault';
}

function isAmbiguous(text: string): boolean {
  return JUDGED_NUMBERS.some((path) => {
    const span = spanOf(text, path);
    return span !== undefined && hasInexactNumber(text, span);
  });
}

/** What of the client's capabilities stays. Policy is asked only where some are declared. */
function cutEra(
  input: AdmissionInput,
  { era, version, session }: Classified,
  text: string,
  call: Call,
  meta: JsonObject | undefined,
): CapabilityCut {
  const grants = (): Grants => input.grants?.() ?? NO_GRANTS;
  if (era === '2026') return cutStateless(text, meta, grants);
  if (call.method === 'initialize') {
    return cutInitialize(text, call.params ?? {}, version, grants);
  }
  return session?.askable === undefined ? NOTHING_CUT : { edits: [], askable: session.askable };
}

function merge(one: readonly TextEdit[], other: readonly TextEdit[]): readonly TextEdit[] {
  return [...one, ...other].sort((left, right) => left.start - right.start);
}

function metaOf(call: Call): JsonObject | undefined {
  const meta = call.params?.['_meta'];
  return isObject(meta) ? meta : undefined;
}

function selfReported(call: Call, meta: JsonObject | undefined): Admitted['selfReported'] {
  const client: Json | undefined =
    call.method === 'initialize' ? call.params?.['clientInfo'] : meta?.[CLIENT_INFO_KEY];
  if (!isObject(client)) return undefined;
  const { name, version } = { name: client['name'], version: client['version'] };
  if (typeof name !== 'string' || typeof version !== 'string') return undefined;
  return { name, version };
}
