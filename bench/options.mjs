// The arguments of `npm run bench`, read without touching anything. A fault is one sentence.

import { parseArgs } from 'node:util';

const OPTIONS = {
  quick: { type: 'boolean' },
  pairs: { type: 'boolean' },
  peer: { type: 'string' },
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  'idle-streams': { type: 'boolean' },
  tokens: { type: 'boolean' },
  against: { type: 'string' },
  hostile: { type: 'boolean' },
  attack: { type: 'string', multiple: true },
  runs: { type: 'string' },
  connections: { type: 'string' },
  scenario: { type: 'string', multiple: true },
  width: { type: 'string' },
  'max-dearer': { type: 'string' },
  'min-pairs': { type: 'string' },
  'max-pairs': { type: 'string' },
  minutes: { type: 'string' },
};
/** The first of these that is given is the mode: `--hostile` has a use for `--against`. */
const MODES = ['hostile', 'idle-streams', 'tokens', 'against'];
const HOSTILE_RUNS = 3;
const LEAST_PAIRS = 20;
const USUAL_PAIRS = 24;
const MOST_PAIRS = 60;
/** A comparison that takes longer stops with what it has: the machine is too busy for it. */
const MOST_MINUTES = 20;
/** Percentage points that an interval may be wide; less where a small difference is asked for. */
const WIDTH = 4;
const NARROW_WIDTH = 2;
const NARROW_FROM = 3;

class UsageError extends Error {}

function numberOf(values, name, otherwise, isGood, what) {
  if (values[name] === undefined) return otherwise;
  const value = Number(values[name]);
  if (values[name].trim() === '' || !Number.isFinite(value) || !isGood(value))
    throw new UsageError(`--${name} wants ${what}, not "${values[name]}".`);
  return value;
}

const isPositive = (value) => value > 0;
const isCount = (value) => Number.isInteger(value) && value > 0;

/** How many connections are open at once: latency shows between one and the number that fills a core. */
const ALL_CONNECTIONS = '1,4,8,16,32';
const MOST_CONNECTIONS = 32;

function readConnections(text) {
  const wanted = text.split(',').map(Number);
  if (!wanted.every((one) => isCount(one) && one <= MOST_CONNECTIONS))
    throw new UsageError(
      `--connections wants whole numbers from 1 to ${MOST_CONNECTIONS} such as ${ALL_CONNECTIONS}, not "${text}".`,
    );
  return [...new Set(wanted)];
}

function readAgainst(values) {
  const isNotNegative = (value) => value >= 0;
  const maxDearer = numberOf(values, 'max-dearer', undefined, isNotNegative, 'percent');
  const isNarrow = maxDearer !== undefined && maxDearer <= NARROW_FROM;
  const minPairs = numberOf(
    values,
    'min-pairs',
    USUAL_PAIRS,
    (value) => isCount(value) && value >= LEAST_PAIRS,
    `a whole number of ${LEAST_PAIRS} or more`,
  );
  return {
    kind: 'against',
    dir: values.against,
    seconds: numberOf(values, 'seconds', 0.4, isPositive, 'a number above 0'),
    connections: readConnections(values.connections ?? '32'),
    scenarios: values.scenario ?? [],
    maxWidth: numberOf(values, 'width', isNarrow ? NARROW_WIDTH : WIDTH, isPositive, 'points'),
    maxDearer,
    minutes: numberOf(values, 'minutes', MOST_MINUTES, isPositive, 'a number above 0'),
    minPairs,
    maxPairs: numberOf(
      values,
      'max-pairs',
      Math.max(MOST_PAIRS, minPairs),
      (value) => isCount(value) && value >= minPairs,
      `a whole number of ${minPairs} or more`,
    ),
  };
}

function readHostile(values) {
  return {
    kind: 'hostile',
    dir: values.against,
    attacks: values.attack ?? [],
    runs: numberOf(values, 'runs', HOSTILE_RUNS, isCount, 'a whole number above 0'),
  };
}

function readRun(values) {
  const quick = values.quick ?? false;
  return {
    kind: 'run',
    quick,
    pairs: values.pairs ?? false,
    peer: values.peer,
    connections: readConnections(values.connections ?? (quick ? String(MOST_CONNECTIONS) : ALL_CONNECTIONS)),
    scenarios: values.scenario ?? [],
    seconds: numberOf(values, 'seconds', quick ? 0.4 : 1.5, isPositive, 'a number above 0'),
    rounds: numberOf(values, 'rounds', quick ? 1 : 5, isCount, 'a whole number above 0'),
  };
}

/** Which options each mode reads; any other is a mistake that must not go unseen. */
const READS = {
  run: ['quick', 'pairs', 'peer', 'connections', 'scenario', 'seconds', 'rounds'],
  'idle-streams': [],
  tokens: [],
  hostile: ['against', 'attack', 'runs'],
  against: ['seconds', 'connections', 'scenario', 'width', 'max-dearer', 'min-pairs', 'max-pairs', 'minutes'],
};

function read(args) {
  const { values } = parseArgs({ args, options: OPTIONS });
  const mode = MODES.find((one) => values[one] !== undefined) ?? 'run';
  const stray = Object.keys(values).find((name) => name !== mode && !READS[mode].includes(name));
  if (stray !== undefined)
    throw new UsageError(`--${stray} says nothing ${mode === 'run' ? 'by itself' : `with --${mode}`}.`);
  if (values.against === '') throw new UsageError('--against wants the folder of another checkout.');
  if (mode === 'hostile') return readHostile(values);
  if (mode === 'against') return readAgainst(values);
  return mode === 'run' ? readRun(values) : { kind: mode };
}

/** What is to be run, or `{ kind: 'fault', sentence }`. */
export function readOptions(args) {
  try {
    return read(args);
  } catch (error) {
    const isOurs = error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS');
    if (!isOurs) throw error;
    return { kind: 'fault', sentence: error.message };
  }
}
