// Feeds odd bodies to our admission and, as they would leave, to the parsers of other languages: what was
// decided must be what an upstream reads, or the body must have been refused. Prints a row a parser.

import { randomInt } from 'node:crypto';
import { admitPost } from '../dist/protocol/admission.js';
import { applyEdits, hasInexactNumber, spanOf } from '../dist/protocol/json/json.js';
import { foldName } from '../dist/text/json-members.js';
import { corpus, mutate } from './corpus.mjs';
import { run } from './process.mjs';

const MUTANTS = 20_000;
const MAX_SHOWN = 10;
const SESSION = { version: '2025-11-25', upstreamSession: 'u-1' };

/** Numbers below one, the same for the same seed (Mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What was decided of a body, and the bytes that would leave; `undefined` where it is refused. */
function decide(body) {
  const outcome = admitPost({
    headers: { 'mcp-session-id': 's-1' },
    repeated: new Set(),
    body,
    openSession: () => SESSION,
  });
  if (outcome.kind !== 'admitted') return undefined;
  return { outcome, text: applyEdits(outcome.text, outcome.edits) };
}

/** Whether a parser's telling of a value is this value; numbers by value where `strict`. */
function isSame(told, value, strict) {
  if (typeof value === 'number')
    return told !== null && typeof told === 'object' && 'n' in told && (!strict || isNumber(told.n, value));
  if (value === null || typeof value !== 'object') return told === value;
  if (told === null || typeof told !== 'object') return false;
  if (Array.isArray(value))
    return told.a?.length === value.length && value.every((item, index) => isSame(told.a[index], item, strict));
  const members = new Map(told.o ?? []);
  const names = Object.keys(value);
  return (
    told.o !== undefined &&
    members.size === names.length &&
    names.every((name) => members.has(name) && isSame(members.get(name), value[name], strict))
  );
}

function isNumber(text, value) {
  if (/^-?\d+$/.test(text) && Number.isInteger(value)) return BigInt(text) === BigInt(value);
  return Number(text) === value;
}

/** Whether one parser read of a body what was decided. A parser that refuses reads nothing else. */
function agrees(parser, reading, { outcome, text }) {
  if (!reading.ok) return true;
  // What leaves is what was decided, without the members that were cut because they are null.
  const left = JSON.parse(text);
  const exact = {
    // A number of arguments that a double does not hold passes as it came: a rule that reads it refuses it.
    arguments: isExactAt(text, ['params', 'arguments']),
    // Such an id passes as well: a server that reads another one answers another request, which is refused.
    id: isExactAt(text, ['id']),
  };
  return parser.endsWith('structures')
    ? agreesOnCall(reading.value, { ...left, method: outcome.message.method }, exact)
    : agreesOnAll(reading.value, left, exact);
}

function isExactAt(text, path) {
  const span = spanOf(text, path);
  return span === undefined || !hasInexactNumber(text, span);
}

/** Every member, and the value of each number that is judged. */
function agreesOnAll(told, value, exact) {
  const members = new Map(told.o ?? []);
  const params = new Map(members.get('params')?.o ?? []);
  return (
    isSame(told, value, false) &&
    isSame(members.get('id') ?? null, value.id ?? null, exact.id) &&
    isSame(params.get('arguments') ?? null, value.params?.arguments ?? null, exact.arguments)
  );
}

/** What a program gets that reads into structures, where case may not matter. */
function agreesOnCall(told, { id = null, method, params = {} }, exact) {
  const { name, arguments: given = null, _meta: meta } = params;
  const progressToken = meta?.progressToken ?? null;
  return (
    told.method === method &&
    told.name === (typeof name === 'string' ? name : '') &&
    told.version === '' &&
    isSame(told.id ?? null, id, exact.id) &&
    isSame(told.arguments ?? null, given, exact.arguments) &&
    isSame(told.progressToken ?? null, progressToken, true)
  );
}

async function readAll(program, decided) {
  const [command, ...args] = program;
  const input = decided.map(({ text }) => `${Buffer.from(text).toString('hex')}\n`).join('');
  const printed = await run(command, args, { input });
  return printed
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function compareOne(program, decided) {
  const readings = await readAll(program, decided);
  if (readings.length !== decided.length) throw new Error('a parser did not answer every body');
  const faults = new Map();
  for (const [index, byParser] of readings.entries()) {
    for (const [parser, reading] of Object.entries(byParser)) {
      const own = faults.get(parser) ?? [];
      if (!agrees(parser, reading, decided[index])) own.push(decided[index].text);
      faults.set(parser, own);
    }
  }
  return faults;
}

/** Names that Go takes for one member must be one name to us. */
async function compareFolds(parser) {
  const lines = (await run(parser[0], ['folds'])).trimEnd().split('\n');
  const faults = lines.filter((line) => {
    const [point, smallest] = line.split(' ').map(Number);
    return foldName(String.fromCodePoint(point)) !== foldName(String.fromCodePoint(smallest));
  });
  return { count: lines.length, faults };
}

/** Compares with the parsers of every language that is there; resolves with how many disagree. */
export async function compareParsers({ python, go, java }) {
  const seed = randomInt(2 ** 31);
  const random = randomFrom(seed);
  const bodies = corpus.map(({ bytes }) => bytes);
  for (let i = 0; i < MUTANTS; i += 1) bodies.push(mutate(random));
  const decided = bodies.map(decide).filter((one) => one !== undefined);
  console.log(`\n${bodies.length} odd bodies (seed ${seed}), of which ${decided.length} are admitted`);
  let failures = 0;
  for (const [title, language] of [
    ['Python', python],
    ['Go', go],
    ['Java', java],
  ]) {
    if (language === undefined) {
      console.log(`${title.padEnd(33)} not run: it is not installed`);
      continue;
    }
    for (const [parser, faults] of await compareOne(language.parser, decided))
      failures += printParser(parser, 'reads what was decided', faults);
  }
  if (go !== undefined) {
    const { count, faults } = await compareFolds(go.parser);
    failures += printParser('Go case folding', `${count} code points fold alike`, faults);
  }
  return failures;
}

function printParser(parser, holds, faults) {
  console.log(`${parser.padEnd(33)} ${faults.length === 0 ? holds : `FAILED: ${faults.length}`}`);
  for (const fault of faults.slice(0, MAX_SHOWN)) console.log(`  ${JSON.stringify(fault)}`);
  return faults.length === 0 ? 0 : 1;
}
