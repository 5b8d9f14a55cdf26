// node scripts/assemble-scan.mjs [--check]
// Assembles src/inspection/prefilter/scan.wat and writes scan-module.ts beside it, so that a build needs no assembler.
// --check writes nothing and exits 1 where the file is not what the source gives.

import { readFileSync, writeFileSync } from 'node:fs';
import wabt from 'wabt';

const SOURCE = new URL('../src/inspection/prefilter/scan.wat', import.meta.url);
const MODULE = new URL('../src/inspection/prefilter/scan-module.ts', import.meta.url);
const HEAD = `// The module that scripts/assemble-scan.mjs makes of scan.wat, in base64. Edit scan.wat.

export const SCAN_MODULE =
`;

const { parseWat } = await wabt();
const parsed = parseWat('scan.wat', readFileSync(SOURCE, 'utf8'), { simd: true });
parsed.validate();
const { buffer } = parsed.toBinary({});
const lines = Buffer.from(buffer)
  .toString('base64')
  .match(/.{1,92}/g);
const text = `${HEAD}${lines.map((line) => `  '${line}'`).join(' +\n')};\n`;

if (process.argv.includes('--check')) {
  process.exitCode = readFileSync(MODULE, 'utf8') === text ? 0 : 1;
} else {
  writeFileSync(MODULE, text);
}
