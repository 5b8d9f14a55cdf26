// Run by the scripts `prepack` and `postpack` of package.json. The packed manifest has no script `prepare`: npm warns of it
// wherever the package is installed, where there is nothing to prepare.

import { readFileSync, writeFileSync } from 'node:fs';

const BEFORE = '    "build": "tsc",\n';
const PREPARE = '    "prepare": "node scripts/prepare.mjs",\n';

const manifest = new URL('../package.json', import.meta.url);
const text = readFileSync(manifest, 'utf8');
const without = text.replace(PREPARE, '');
writeFileSync(manifest, process.argv[2] === 'packed' ? without : without.replace(BEFORE, BEFORE + PREPARE));
