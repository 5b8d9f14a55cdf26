// The names of the files of runs: beside the configured path `audit.jsonl`, `audit-<start>-<instance>.jsonl`. The start is
// UTC with milliseconds, so that names sort in the order in which the files were begun. A compressed file has `.gz` behind
// its name. Pure: it performs no I/O.

import { basename, extname } from 'node:path';

/** Of an instance, as many characters as tell the files of a folder apart. */
const INSTANCE_CHARACTERS = 8;
const RUN_NAME = /^(.+)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-([0-9A-Za-z]{1,8})(\.[^.]*)?$/;
/** What is behind the name of a compressed file. */
export const COMPRESSED = '.gz';
const COMPRESSING = '.compressing';

/** What the name of the file of a run says. */
export type RunName = {
  readonly name: string;
  /** The configured path that it belongs to, without its folder. */
  readonly configured: string;
  /** When the file was begun, in milliseconds since the epoch, or later if a name that is older was already taken. */
  readonly startMs: number;
  readonly instance: string;
};

/** Reads the name of a file; `undefined` if it is not the file of a run. */
export function readRunName(name: string): RunName | undefined {
  if (name.endsWith(COMPRESSING)) return undefined;
  const [, stem, year, month, day, hour, minute, second, ms, instance = '', extension = ''] =
    RUN_NAME.exec(plainName(name)) ?? [];
  const startMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`);
  return Number.isNaN(startMs) ? undefined : { name, configured: `${stem}${extension}`, startMs, instance };
}

/** The name that a file had before it was compressed. */
export function plainName(name: string): string {
  return name.endsWith(COMPRESSED) ? name.slice(0, -COMPRESSED.length) : name;
}

/** The path under which the compressed form of a file is written until it is complete. No reader takes it for a log. */
export function compressingName(path: string): string {
  return `${path.slice(0, path.length - extname(path).length)}${COMPRESSING}`;
}

/** The name of the file that a run begins at a time, beside the configured path. */
export function runNameOf(path: string, startMs: number, instance: string): string {
  const extension = extname(path);
  const start = new Date(startMs).toISOString().replace(/[-:.]/g, '');
  return `${basename(path, extension)}-${start}-${shortInstance(instance)}${extension}`;
}

/** The instance as names of files have it. */
export function shortInstance(instance: string): string {
  return instance.replace(/[^0-9A-Za-z]/g, '').slice(0, INSTANCE_CHARACTERS) || '0';
}

/** The order in which runs began. Starts in the same millisecond have no order but that of their names. */
export function compareRuns(one: RunName, other: RunName): number {
  if (one.startMs !== other.startMs) return one.startMs - other.startMs;
  return one.name < other.name ? -1 : 1;
}

/** Patterns of a `.gitignore` for what gateways write beside the path `./audit.jsonl`. */
export const IGNORED_AUDIT_FILES: readonly string[] = [
  ...['/audit-*.jsonl*', '/audit.jsonl*', '/audit.lock-counters*'],
  '/audit.*.position*',
];
