// An error of an upstream of the stateless era, as its client gets it: the code that the era has for it,
// and no version offered that is not policed here. All else leaves byte for byte.
// Source: MCP 2026-07-28, error codes and versioning.

import { setMember } from '../inspect/members.js';
import { repairOf } from '../mcp/eras/stateless-errors.js';
import type { RpcError } from '../mcp/message.js';
import type { Verdict } from './subject.js';

/** The verdict on an error that was inspected. */
export function repairError(verdict: Verdict, text: string, error: RpcError): Verdict {
  if (verdict.kind !== 'own') return verdict;
  const repair = repairOf(error);
  let repaired = verdict.text ?? text;
  if (repair.code !== error.code) repaired = setMember(repaired, ['error'], 'code', repair.code);
  if (repair.supported !== undefined)
    repaired = setMember(repaired, ['error', 'data'], 'supported', repair.supported);
  return repaired === text ? verdict : { ...verdict, text: repaired, rpcCode: repair.code };
}
