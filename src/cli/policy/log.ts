// Reads the decisions of audit files for the commands that evaluate them again. The chain is verified first: nothing is
// concluded from files that were altered. docs/contract.md §1 (replay) and §8.

import { resolve } from 'node:path';
import type { AuditRecord } from '../../audit/chain.js';
import { createEventJoiner } from '../../audit/query.js';
import { type GroupsByToken, isDecision, noteGroups } from '../../audit/recorded.js';
import { type ChainVerdict, ChainVerifier } from '../../audit/verify.js';
import { parseObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { describeReadError } from '../../text/file-errors.js';
import { readLines } from '../audit/read.js';
import { readKeys } from '../audit/verify.js';
import { type CliIo, UsageError } from '../program.js';

export type LogOptions = {
  /** Audit files, the oldest first. */
  readonly log: readonly string[];
  /** Public keys that checkpoints have to be signed with. */
  readonly key?: readonly string[];
};

export type VerifiedLog = {
  readonly groups: GroupsByToken;
  /** Milliseconds since the epoch: the time of the last decision. */
  readonly lastMs: number;
  /** Every decision with all its members, in order. */
  decisions(): AsyncGenerator<AuditRecord>;
};

/**
 * Verifies the files as one chain, and says on stderr what could not be checked.
 *
 * @throws UsageError if the chain is damaged or a file cannot be read.
 */
export async function openLog({ log, key = [] }: LogOptions, io: CliIo): Promise<VerifiedLog> {
  const files = log.map((file) => resolve(io.cwd, file));
  const groups = new Map<string, Set<string>>();
  let lastMs = 0;
  const verifier = await createVerifier(key, io);
  for (const [index, file] of files.entries()) {
    for await (const { line, number } of numbered(file)) {
      verifier.push(line, log[index] ?? file, number);
      const record = parseObject(line);
      if (record === undefined || !isDecision(record)) continue;
      noteGroups(record, groups);
      lastMs = Math.max(lastMs, Date.parse(String(record['time'])) || 0);
    }
  }
  const verdict = verifier.end();
  const [damage] = verdict.faults;
  if (damage !== undefined) throw new UsageError(damageOf(damage));
  for (const text of verdict.unchecked) io.stderr(`note: not checked: ${makeVisible(text)}\n`);
  return { groups, lastMs, decisions: () => readDecisions(files) };
}

async function createVerifier(keys: readonly string[], io: CliIo): Promise<ChainVerifier> {
  try {
    const publicKeys = await readKeys(keys, io.cwd);
    return new ChainVerifier(publicKeys.length === 0 ? {} : { publicKeys });
  } catch (error) {
    throw new UsageError(describeError(error));
  }
}

function describeError(error: unknown): string {
  return `error: ${makeVisible(error instanceof Error ? error.message : 'unreadable')}\n`;
}

function damageOf({ file, line, kind, message }: ChainVerdict['faults'][number]): string {
  const what = 'the audit files are damaged, so nothing is concluded from them';
  return `error: ${what}: ${makeVisible(`${file}:${line} ${kind}: ${message}`)}\n`;
}

/** The lines of an audit file, with their numbers. Throws a usage error if the file cannot be read. */
export async function* numbered(
  file: string,
): AsyncGenerator<{ readonly line: string; readonly number: number }> {
  let number = 0;
  try {
    for await (const line of readLines(file)) {
      number += 1;
      yield { line, number };
    }
  } catch (error) {
    throw new UsageError(`error: ${makeVisible(file)} ${describeReadError(error)}\n`);
  }
}

async function* readDecisions(files: readonly string[]): AsyncGenerator<AuditRecord> {
  const join = createEventJoiner();
  for (const file of files) {
    for await (const line of readLines(file)) {
      const record = parseObject(line);
      if (record !== undefined && isDecision(record)) yield join(record, line.length).record;
    }
  }
}
