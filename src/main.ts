#!/usr/bin/env node
// The entry: ends with one sentence on a Node that is too old, and otherwise loads the program. A module is parsed
// with everything that it imports before any of it runs, so this file keeps to what Node 12 can parse and find.

import { readFileSync } from 'node:fs';

const EXIT_UNCHECKED = 2;

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = than.split('.').map(Number);
  return major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
}

const manifest: { readonly engines: { readonly node: string } } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);
// The lines of Node that are tested, the oldest first. Others that are newer may do.
const [oldest = ''] = /\d+\.\d+/.exec(manifest.engines.node) || [];
const current = process.versions.node;
if (isOlder(current, oldest)) {
  process.stderr.write(`Sallyport needs Node ${oldest} or later; this is Node ${current}.\n`);
  process.exitCode = EXIT_UNCHECKED;
} else {
  void import('./process.js');
}
