// What metrics and spans may say of a request: values of the configuration, of the method table, of pins and of the table of
// reasons. Whatever else stands in a record is `_OTHER`, so that no client or upstream can choose a value.

import { REASONS } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import { findMethod } from '../protocol/methods.js';
import { OTHER } from './metric-table.js';

/** JSON-RPC and MCP error codes allowed as an error type; upstreams may invent others. */
const KNOWN_CODES: ReadonlySet<number> = new Set([
  -32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32021, -32022, -32042,
]);

/** The code of a JSON-RPC error, or `_OTHER`. */
export function codeName(code: number): string {
  return KNOWN_CODES.has(code) ? String(code) : OTHER;
}

/** Why a request failed, or was refused; empty if neither. */
export function errorType({ decision, result }: RequestRecord): string {
  if (decision.verdict === 'deny' || decision.action !== 'forwarded') {
    return decision.reasons[0] ?? 'internal';
  }
  if (result.status !== 'error') return '';
  return result.rpcCode === undefined ? 'tool_error' : codeName(result.rpcCode);
}

/** The error type of the upstream's own response, whatever the gateway made of it. */
export function upstreamErrorType({ decision, result }: RequestRecord): string {
  const forwardReason = decision.reasons.find((reason) => REASONS[reason].stage === 'forward');
  if (forwardReason !== undefined) return forwardReason;
  if (result.status !== 'error') return '';
  return result.rpcCode !== undefined && KNOWN_CODES.has(result.rpcCode) ? String(result.rpcCode) : 'tool_error';
}

/** The method, if clients of the era have it. */
export function methodName({ client: { era }, target: { method } }: RequestRecord): string {
  const isKnown = era !== undefined && method !== undefined && findMethod(era, 'client', method) !== undefined;
  return isKnown ? method : OTHER;
}

/** The tool's name, if it was reviewed; empty where the target is not a tool. */
export function toolName(record: RequestRecord): string {
  return record.target.kind === 'tool' ? pinnedName(record) : '';
}

/** The name of what was asked for, if it was reviewed. */
export function pinnedName({ target: { pin, name = OTHER } }: RequestRecord): string {
  return pin === undefined ? OTHER : name;
}
