#!/usr/bin/env node
// Measures the scanner of definitions on rows of public data: `npm run eval -- --corpora DIR [--half tune|measure]
// [--show] [--write PAGE]`. DIR has benign-tools.jsonl, poisoned-tools.jsonl and poisoned-tools-synthetic.jsonl, a definition a line
// with `label`, `source`, `server` or `technique` besides its own members. Found means a finding of the tier block or
// review. Also counts what the detectors of content find in pii-positive.jsonl and pii-negative.jsonl, where each row
// has a text, its kind and whether it is one. Prints each mark and whether it is met; ends with 1 if one is not.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { scanDefinitions } from '../dist/inspection/definitions/scan.js';
import { findShadowing } from '../dist/inspection/definitions/shadowing.js';
import { findSensitive } from '../dist/inspection/detectors/text-sanitizer.js';
import { CLONES, randomFrom } from './clones.mjs';

const { values } = parseArgs({
  options: {
    corpora: { type: 'string' },
    half: { type: 'string' },
    show: { type: 'boolean', default: false },
    write: { type: 'string' },
  },
});
if (values.corpora === undefined) {
  process.stderr.write('error: no folder is named; use --corpora DIR\n');
  process.exit(2);
}

/** What a row says of itself; the rest is the definition. */
const ABOUT = ['label', 'source', 'licence', 'server', 'technique', 'payload', 'base', 'category'];

function readRows(name) {
  const lines = readFileSync(join(values.corpora, name), 'utf8').split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const row = JSON.parse(line);
      const about = Object.fromEntries(ABOUT.map((key) => [key, row[key]]));
      const definition = Object.fromEntries(Object.entries(row).filter(([key]) => !ABOUT.includes(key)));
      return {
        about,
        definition,
        isTuned: createHash('sha256').update(line).digest()[0] % 2 === 0,
      };
    });
}

const isChosen = ({ isTuned }) => values.half === undefined || isTuned === (values.half === 'tune');

function scan(rows) {
  const found = scanDefinitions(rows.map(({ definition }) => ({ kind: 'tool', name: definition.name, definition })));
  return found.filter(({ tier }) => tier !== 'note');
}

function show(row, findings) {
  if (!values.show) return;
  process.stdout.write(`  ${row.about.technique ?? row.about.server ?? ''} ${row.definition.name}\n`);
  for (const { tier, kind, pointer, evidence, reason } of findings) {
    process.stdout.write(`    ${tier} ${kind} ${pointer}: ${evidence}\n      ${reason}\n`);
  }
}

let isMet = true;
const marks = [];
function mark(name, count, total, isGood, wanted) {
  const share = total === 0 ? '' : ` (${((100 * count) / total).toFixed(1)} %)`;
  isMet &&= isGood;
  const state = isGood ? 'yes' : 'no';
  marks.push(`| ${name} | ${count} of ${total}${share} | ${wanted} | ${state} |`);
  process.stdout.write(`${isGood ? 'met   ' : 'missed'} ${name}: ${count} of ${total}${share}; ${wanted}\n`);
}

function measurePoisoned(name, file, least) {
  const rows = readRows(file).filter(isChosen);
  const missed = rows.filter((row) => scan([row]).length === 0);
  if (values.show && missed.length > 0) process.stdout.write(`not found in ${file}:\n`);
  for (const row of missed) show(row, []);
  const found = rows.length - missed.length;
  mark(name, found, rows.length, found >= least * rows.length, `at least ${100 * least} %`);
  return { rows, missed };
}

const { rows, missed } = measurePoisoned('synthetic techniques', 'poisoned-tools-synthetic.jsonl', 0.95);
for (const technique of [...new Set(rows.map(({ about }) => about.technique))].sort()) {
  const of = (list) => list.filter(({ about }) => about.technique === technique).length;
  process.stdout.write(`         ${technique}: ${of(rows) - of(missed)} of ${of(rows)}\n`);
}
measurePoisoned('real poisoned definitions', 'poisoned-tools.jsonl', 0.8);

const benign = readRows('benign-tools.jsonl').filter(isChosen);
const servers = new Map();
for (const row of benign) {
  const server = row.about.server ?? row.about.source;
  servers.set(server, [...(servers.get(server) ?? []), row]);
}
let alarms = 0;
let tools = 0;
for (const rowsOfServer of servers.values()) {
  const findings = scan(rowsOfServer);
  alarms += findings.length;
  for (const row of rowsOfServer) {
    const own = findings.filter(({ item }) => item.name === row.definition.name);
    if (own.length === 0) continue;
    tools += 1;
    show(row, own);
  }
}
mark(
  'false alarms, findings in benign definitions',
  alarms,
  benign.length,
  alarms <= (2 * benign.length) / 1000,
  'at most 2 in 1,000',
);
process.stdout.write(`         definitions with one: ${tools}\n`);

const toScanned = ({ definition }) => ({ kind: 'tool', name: definition.name, definition });
const upstreams = [...servers].map(([upstream, list]) => ({
  upstream,
  definitions: list.map(toScanned),
}));
const shadowing = findShadowing(upstreams);
const ofNames = shadowing.filter(({ how }) => how === 'names');
const ofTools = shadowing.filter(({ how }) => how !== 'names');
for (const { items, evidence, reason } of values.show ? shadowing : []) {
  const names = items.map(({ upstream, name }) => `${upstream}/${name}`).join(' and ');
  process.stdout.write(`  ${names}\n    ${reason} ${evidence}\n`);
}
mark('false alarms of shadowing, over all pairs', ofTools.length, benign.length, ofTools.length <= 6, 'at most 6');
const pairs = (upstreams.length * (upstreams.length - 1)) / 2;
mark('pairs of upstreams with equal names', ofNames.length, pairs, true, 'counted');
const named = ofNames.reduce((sum, { covers }) => sum + covers.length, 0);
process.stdout.write(`         equal names in them: ${named}\n`);

const SEED = 20_261_122;
for (const [technique, makeClone] of Object.entries(CLONES)) {
  const random = randomFrom(SEED);
  const cloned = benign.filter(({ definition }) => definition.description && definition.name);
  const missed = cloned.filter(({ definition }) => {
    const clone = { definition: makeClone(definition, random) };
    // That the names are equal is found of every clone that keeps its own.
    const findings = findShadowing([
      { upstream: 'own', definitions: [toScanned({ definition })] },
      { upstream: 'clone', definitions: [toScanned(clone)] },
    ]).filter(({ how }) => how !== 'names');
    if (findings.length === 0 && values.show) {
      process.stdout.write(`  ${clone.definition.name}: ${clone.definition.description}\n`);
    }
    return findings.length === 0;
  });
  const found = cloned.length - missed.length;
  mark(`clones, ${technique}`, found, cloned.length, missed.length === 0, 'all');
}
const CONTENT_KINDS = { CREDIT_CARD: 'card', IBAN: 'iban', US_SSN: 'ssn' };
const WANTED_CONTENT = { secrets: true, pii: Object.values(CONTENT_KINDS) };
const readContent = (name) => readRows(name).map(({ definition }) => definition);
const kindsIn = ({ text }) => new Set(findSensitive(text, WANTED_CONTENT).map(({ kind }) => kind));

/** Counts for comparison with another build; they are no marks. */
function count(name, found, total) {
  process.stdout.write(`       ${name}: ${found} of ${total}\n`);
}

const positive = readContent('pii-positive.jsonl');
for (const [entity, kind] of Object.entries(CONTENT_KINDS)) {
  const own = positive.filter((row) => row.entity === entity);
  count(`found, ${kind}`, own.filter((row) => kindsIn(row).has(kind)).length, own.length);
}
for (const name of ['pii-negative', 'benign-outputs', 'injected-outputs']) {
  const texts = readContent(`${name}.jsonl`);
  for (const kind of Object.values(CONTENT_KINDS)) {
    count(`${kind} in ${name}`, texts.filter((row) => kindsIn(row).has(kind)).length, texts.length);
  }
  const withSecret = texts.filter((row) => [...kindsIn(row)].some((kind) => !WANTED_CONTENT.pii.includes(kind)));
  count(`secrets in ${name}`, withSecret.length, texts.length);
}

if (values.write !== undefined) writePage(values.write);

/** Replaces the table of marks in a page, and names the public repositories from which the rows come. */
function writePage(page) {
  const files = ['benign-tools', 'poisoned-tools', 'poisoned-tools-synthetic'];
  const sources = files.flatMap((file) =>
    readRows(`${file}.jsonl`).map(({ about }) => (about.source ?? about.base ?? '').split(':')[0]),
  );
  const named = [...new Set(sources)].filter((source) => /^[\w.-]+\/[\w.-]+$/.test(source)).sort();
  const table = [
    '| Mark | Result | Wanted | Met |',
    '| --- | --- | --- | --- |',
    ...marks,
    '',
    `The rows are definitions of ${named.join(', ')}; the payloads of the synthetic rows are this project's own.`,
  ].join('\n');
  const [begin, end] = ['<!-- npm run eval: begin -->', '<!-- npm run eval: end -->'];
  const text = readFileSync(page, 'utf8');
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${page} has no place for the marks`);
  writeFileSync(page, `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`);
}
process.exitCode = isMet ? 0 : 1;
