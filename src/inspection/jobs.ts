// Defines the parts of inspection that can run outside the event loop: jobs of plain data, and the function that
// runs a job on this thread or another. Scheduling and transfer are not decided here.

import { compileDefinition } from '../pins/catalog.js';
import type { Change } from '../pins/comparison.js';
import { type ComparedLeaves, compareLeaves } from '../pins/diff.js';
import { type NamedPin, writePins } from '../pins/lock.js';
import { classifyPair, type DefinitionPair } from '../pins/lock-differences.js';
import { type LockReading, readLock } from '../pins/lock-reader.js';
import type { PinKind, SchemaOptions } from '../policy/definitions.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import { mirroredParameters } from '../protocol/headers.js';
import { divideJson, type JsonPart } from '../protocol/json/incremental.js';
import { MAX_JSON_DEPTH, readJsonText } from '../protocol/json/json.js';
import type { JsonError } from '../protocol/json/strict-scan.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { readServerJson } from '../protocol/odd-items.js';
import { type DefinitionFinding, scanDefinitions } from './definitions/scan.js';
import { findShadowingOf } from './definitions/shadowing.js';
import type { MarkKeys } from './redaction-marks.js';
import { type GuardInput, type GuardOutcome, guardClean, guardFully } from './requests.js';
import {
  type FullInspectionInput,
  type FullInspectionOutcome,
  type InspectionInput,
  type InspectionOutcome,
  inspectFully,
  passIfClean,
} from './responses.js';

/**
 * Content inspection for the request pipeline: synchronous unless a text is long and not surely clean. Waiting
 * texts are queued per upstream and caller; `caller` identifies the one for whom the upstream was asked.
 */
export type InspectionPort = {
  /** What tags the marks of this gateway. */
  readonly marks?: MarkKeys | undefined;
  /** Like `inspectMessage`, never throws or rejects. */
  message(input: InspectionInput, upstream: string, caller?: string): InspectionOutcome | Promise<InspectionOutcome>;
  /** Like `guardArguments`, never throws or rejects. */
  request(input: GuardInput, upstream: string, caller?: string): GuardOutcome | Promise<GuardOutcome>;
};

/** Longer texts are fully inspected off the event loop: a hostile text of this length takes some 50 ms. */
export const LONG_TEXT_CHARS = 4 * 1024;
/** Longer texts are also parsed and prefiltered off the event loop: a hostile megabyte takes some 100 ms. */
export const LARGE_TEXT_CHARS = 256 * 1024;

/** What each task on definitions of upstreams returns. They are jobs, because definitions can be long and hostile. */
export type DefinitionOutcomes = {
  /** What the scan finds in a list of `ScannedDefinition` of one server, read together. */
  readonly scan: readonly DefinitionFinding[];
  /** Which definitions of `ShadowingInput` can be taken for those of other upstreams. */
  readonly shadowing: readonly DefinitionFinding[];
  /** The classes of each `DefinitionPair` of a list. */
  readonly classes: readonly (readonly Change[])[];
  /** The fields in which the two definitions of `FormsToCompare` differ. */
  readonly fields: ComparedLeaves;
  /** Of each `DefinitionToCompile` of a list, whether calls can be checked by it. */
  readonly usable: readonly boolean[];
  /** The lock of `LockToRead`. */
  readonly lock: LockReading;
  /** The lines of a list of `NamedPin` in a lock file. */
  readonly pins: string;
};

export type DefinitionTask = keyof DefinitionOutcomes;

/** Two forms of a definition. One that does not exist is absent. */
export type FormsToCompare = {
  readonly before?: JsonObject | string | undefined;
  readonly after?: JsonObject | string | undefined;
};

/** A lock file, or a part of one. */
export type LockToRead = { readonly file: string; readonly part: string };

/** A definition and what its schemas are compiled for. */
export type DefinitionToCompile = {
  readonly kind: PinKind;
  readonly definition: JsonObject;
  readonly formats?: SchemaOptions['formats'];
};

const SCHEMA_COMPILERS = { compileSchema, mirroredParameters };

function isUsable({ kind, definition, formats }: DefinitionToCompile): boolean {
  return !('schemaError' in compileDefinition(SCHEMA_COMPILERS, kind, definition, formats));
}

/** Runs a task on JSON of its input. */
export function runDefinitionTask({
  task,
  text,
}: {
  readonly task: DefinitionTask;
  readonly text: string;
}): DefinitionOutcomes[DefinitionTask] {
  switch (task) {
    case 'scan':
      return scanDefinitions(JSON.parse(text));
    case 'shadowing':
      return findShadowingOf(JSON.parse(text));
    case 'classes':
      return (JSON.parse(text) as readonly DefinitionPair[]).map(classifyPair);
    case 'fields': {
      const { before, after } = JSON.parse(text) as FormsToCompare;
      return compareLeaves(before, after);
    }
    case 'usable':
      return (JSON.parse(text) as readonly DefinitionToCompile[]).map(isUsable);
    case 'lock': {
      const { file, part } = JSON.parse(text) as LockToRead;
      return readLock(file, part);
    }
    case 'pins':
      return writePins(JSON.parse(text) as readonly NamedPin[]);
  }
}

/**
 * A job of plain data. The value of a message is parsed again from its text. `needsPrefilter` is true where the
 * text has not been prefiltered yet.
 */
export type InspectionJob =
  | {
      readonly kind: 'message';
      readonly input: Omit<FullInspectionInput, 'value'>;
      readonly needsPrefilter: boolean;
    }
  | { readonly kind: 'request'; readonly input: GuardInput; readonly needsPrefilter: boolean }
  | {
      readonly kind: 'read';
      readonly input: ReadInput;
    }
  /** The text is JSON of the input of the task. */
  | {
      readonly kind: 'definitions';
      readonly input: { readonly task: DefinitionTask; readonly text: string };
    };

type ReadInput = {
  readonly text: string;
  readonly maxValues: number;
  readonly isServerList: boolean;
};

export type JobResult =
  | {
      readonly kind: 'message';
      readonly outcome: FullInspectionOutcome;
      /** For a large changed text, the chunks from which its value can be built incrementally. */
      readonly parts: JsonPart | undefined;
    }
  | { readonly kind: 'request'; readonly outcome: GuardOutcome }
  | { readonly kind: 'read'; readonly outcome: DividedReading }
  | { readonly kind: 'definitions'; readonly outcome: DefinitionOutcomes[DefinitionTask] };

/** The result of reading a text as JSON, with the chunks from which its value can be built incrementally. */
type DividedReading =
  | { readonly ok: false; readonly error: JsonError }
  | {
      readonly ok: true;
      readonly suspectNumbers: boolean;
      readonly values: number;
      readonly parts: JsonPart;
      /** The text of the reading, where it is not that of the job. */
      readonly rest: string | undefined;
    };

/** Runs a job. Never throws, provided that the text of a message is valid JSON. */
export function runJob(job: InspectionJob): JobResult {
  switch (job.kind) {
    case 'request': {
      const earlyOutcome = job.needsPrefilter ? guardClean(job.input) : undefined;
      return { kind: 'request', outcome: earlyOutcome ?? guardFully(job.input) };
    }
    case 'message': {
      const input = { ...job.input, value: JSON.parse(job.input.text) };
      const earlyOutcome = job.needsPrefilter ? passIfClean(input) : undefined;
      const outcome = earlyOutcome ?? inspectFully(input);
      const isDivided = job.needsPrefilter && outcome.kind === 'changed';
      const parts = isDivided ? divideJson(outcome.text) : undefined;
      return { kind: 'message', outcome, parts };
    }
    case 'read':
      return { kind: 'read', outcome: readInParts(job.input) };
    case 'definitions':
      return { kind: 'definitions', outcome: runDefinitionTask(job.input) };
  }
}

function readInParts({ text, maxValues, isServerList }: ReadInput): DividedReading {
  const read = isServerList ? readServerJson : readJsonText;
  const reading = read(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
  if (!reading.ok) return reading;
  const { suspectNumbers, values } = reading;
  const rest = reading.text === text ? undefined : reading.text;
  return { ok: true, suspectNumbers, values, parts: divideJson(reading.text), rest };
}
