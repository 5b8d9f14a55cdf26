// node scripts/size.mjs [--call] [--all]
// Prints the size and shape of the source: files and lines by folder, each concept with its home, import cycles (types
// included), concepts with a second home, banned words in declared names, and citations of pages that are not here. Exits
// 1 where any of the last four is not empty.
// --all lists each banned word and citation. --call counts the files and functions that a warm tools/call
// runs (needs dist/).

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONCEPTS, findSecondHomes } from './concepts.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const IMPORT = /^\s*(?:import|export)\s[^'"]*?from\s+'(\.[^']+)'|^\s*import\s+'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm;

function filesBelow(folder) {
  const isSource = /\.(?:ts|mts|mjs)$/;
  return readdirSync(join(root, folder), { recursive: true })
    .filter((name) => isSource.test(name))
    .map((name) => join(folder, name))
    .sort();
}

const linesOf = (text) => text.split('\n').length - 1;
const medianOf = (sorted) => sorted[sorted.length >> 1] ?? 0;

function sizesOf(folder) {
  return filesBelow(folder).map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    return { path, text, lines: linesOf(text) };
  });
}

/** Imports of a module, type-only and dynamic ones included, as paths of the repository. */
function importsOf({ path, text }) {
  return [...text.matchAll(IMPORT)].map((found) => {
    const specifier = found[1] ?? found[2] ?? found[3];
    const target = resolve(root, dirname(path), specifier);
    return relative(root, target).replace(/\.js$/, '.ts');
  });
}

/** What a module reaches by its imports, itself only where it is part of a cycle. */
function reachOf(graph, path) {
  const reached = new Set();
  const waiting = [...(graph.get(path) ?? [])];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...(graph.get(next) ?? []));
  }
  return reached;
}

/** The modules that reach themselves. */
function findCyclic(modules) {
  const graph = new Map(modules.map((module) => [module.path, importsOf(module)]));
  return [...graph.keys()].filter((path) => reachOf(graph, path).has(path));
}

/** The folder of a file of src/ that a reader looks in first; for any other, its top folder. */
const folderOf = (path) => /^src\/[^/]+(?=\/)|^[^/]+/.exec(path)?.[0] ?? path;

function printSizes(sizes) {
  const folders = new Set(sizes.map(({ path }) => folderOf(path)));
  for (const folder of folders)
    printSize(
      folder,
      sizes.filter(({ path }) => folderOf(path) === folder),
    );
  printSize(
    'src in all',
    sizes.filter(({ path }) => path.startsWith('src/')),
  );
}

function printSize(folder, files) {
  const lines = files.map((file) => file.lines).sort((a, b) => a - b);
  const sum = lines.reduce((total, count) => total + count, 0);
  console.log(`${folder}: ${files.length} files, ${sum} lines, median ${medianOf(lines)}`);
}

function printAll(title, entries) {
  console.log(`${title}: ${entries.length}`);
  for (const entry of entries) console.log(`  ${entry}`);
}

const src = sizesOf('src');
printSizes([...src, ...sizesOf('test'), ...sizesOf('scripts')]);
for (const { concept, home } of CONCEPTS) console.log(`${concept}: ${home.join(', ')}`);

const cyclic = findCyclic(src);
printAll('modules in import cycles, types included', cyclic);
const second = findSecondHomes(src);
printAll('concepts with a second home', second);
const checked = spawnSync(
  process.execPath,
  [join(root, 'scripts/check-words.mjs'), ...(process.argv.includes('--all') ? [] : ['--count'])],
  { encoding: 'utf8' },
);
process.stdout.write(checked.stdout + checked.stderr);
if (process.argv.includes('--call')) {
  const { countWarmCall } = await import('./warm-call.mjs');
  const { files, functions } = await countWarmCall();
  console.log(`a warm tools/call: ${functions} functions in ${files} files`);
}
if (cyclic.length > 0 || second.length > 0 || checked.status !== 0) process.exitCode = 1;
