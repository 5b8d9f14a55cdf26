// The process log for operators: JSON lines, or lines of text for a terminal. It holds no secret by construction: only
// the fields declared here are written, each cleaned as foreign text, and no object, header, body or error is ever
// logged as such. The outcomes of calls belong in the audit log.

import { pino } from 'pino';
import { cleanForeign, maskSecrets } from '../text/escaping.js';

/** Longer fields are cut: enough for a path, not for a payload. */
const MAX_FIELD_CHARACTERS = 512;

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type LogLevel = (typeof LEVELS)[number];
type LogFormat = 'json' | 'text';

/** The fields that a line may have besides its event. */
const FIELDS = {
  issuer: 'text',
  upstream: 'text',
  /** Where clients reach the upstream. */
  url: 'text',
  /** The protocol revisions that it speaks. */
  protocol: 'text',
  /** How many of the items that it offers, or that are pinned, are in this state. */
  pinned: 'number',
  pending: 'number',
  unpinned: 'number',
  changed: 'number',
  /** What is named: a tool, a prompt, a template, a resource, instructions, the server. */
  kind: 'text',
  /** The name of the item, which an upstream may have chosen. */
  name: 'text',
  decision: 'text',
  /** Id of the trace. */
  trace: 'text',
  /** Id of a question to a person. */
  approval: 'text',
  reason: 'text',
  stage: 'text',
  control: 'text',
  state: 'text',
  file: 'text',
  line: 'number',
  /** Code of a system or library error, such as `ECONNREFUSED`. */
  code: 'text',
  /** One fixed sentence, cut and masked nevertheless. */
  detail: 'text',
  /** How many events like this one were neither logged nor written to the audit log since the last one that was. */
  suppressed: 'number',
} as const;

export type LogFields = {
  readonly [name in keyof typeof FIELDS]?: (typeof FIELDS)[name] extends 'text' ? string : number;
};

export interface Log {
  /** `event` is a fixed phrase of the code, never composed from input. */
  write(level: LogLevel, event: string, fields?: LogFields): void;
}

const NAMES = Object.keys(FIELDS) as readonly (keyof LogFields)[];

/** Copies declared fields only, whatever else the object holds. */
function pick(fields: LogFields): Record<string, string | number> {
  const picked: Record<string, string | number> = {};
  for (const name of NAMES) {
    const value = fields[name];
    if (typeof value === 'string') picked[name] = cleanForeign(value, maskSecrets, MAX_FIELD_CHARACTERS);
    else if (typeof value === 'number') picked[name] = value;
  }
  return picked;
}

/** A value that could be mistaken for something else is quoted. */
function fieldText([name, value]: readonly [string, string | number]): string {
  const isPlain = typeof value === 'number' || /^[\w.:/@+-]+$/.test(value);
  return `${name}=${isPlain ? value : JSON.stringify(value)}`;
}

function createTextLog(write: (line: string) => void, level: LogLevel): Log {
  const lowest = LEVELS.indexOf(level);
  return {
    write(at, event, fields = {}) {
      if (LEVELS.indexOf(at) < lowest) return;
      const texts = [event, ...Object.entries(pick(fields)).map(fieldText)];
      write(`${new Date().toISOString()} ${at.padEnd('error'.length)} ${texts.join(' ')}\n`);
    },
  };
}

/** Creates a log that passes each line, with its line end, to `write`. */
export function createLog(write: (line: string) => void, level: LogLevel = 'info', format: LogFormat = 'json'): Log {
  if (format === 'text') return createTextLog(write, level);
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
  return {
    write(at, event, fields) {
      if (!logger.isLevelEnabled(at)) return;
      logger[at](fields === undefined ? {} : pick(fields), event);
    },
  };
}
