// The errors of the stateless era: which HTTP status belongs to which code, so that a client of two eras
// knows what it has reached, and which codes such a server may not use. Values only.
// Source: MCP 2026-07-28, transports (HTTP status codes), error codes, backward compatibility.

import { INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION } from '../faults.js';
import { isObject, type RpcError } from '../message.js';
import { STATELESS_VERSIONS } from '../versions.js';

const OK = 200;
const BAD_REQUEST = 400;
const SERVER_ERROR = 500;

const STATUSES: ReadonlyMap<number, number> = new Map([
  [-32020, BAD_REQUEST],
  [-32021, BAD_REQUEST],
  [UNSUPPORTED_VERSION, BAD_REQUEST],
  [METHOD_NOT_FOUND, 404],
]);
/** Not found, in session eras. */
const RESOURCE_NOT_FOUND = -32002;

/**
 * The status of an answer: where the specification fixes one, that one; else what came, unless a client
 * would take it for the answer of another era.
 */
export function statusOfResponse(status: number, code: number | undefined): number {
  if (code === undefined) return OK;
  const fixed = STATUSES.get(code);
  if (fixed !== undefined) return fixed;
  return status === BAD_REQUEST || status >= SERVER_ERROR ? status : OK;
}

/** What is made of an error: the code that this era has for it, and the versions that may be offered. */
export function repairOf(error: RpcError): {
  readonly code: number;
  readonly supported?: readonly string[];
} {
  const { code, data } = error;
  if (code === RESOURCE_NOT_FOUND) return { code: INVALID_PARAMS };
  if (code !== UNSUPPORTED_VERSION || !isObject(data)) return { code };
  const offered = data['supported'];
  if (!Array.isArray(offered)) return { code };
  // An era that is not policed here is not offered here.
  const supported = STATELESS_VERSIONS.filter((version) => offered.includes(version));
  return supported.length === offered.length ? { code } : { code, supported };
}
