// The script `prepare` of package.json, which npm runs for `npm install -g .` and `npm pack` too: installs what is
// missing and builds, so that both work on a fresh clone.

import { fileURLToPath } from 'node:url';
import { refuseNode } from './node-version.mjs';

async function prepareClone() {
  const { prepare } = await import('./dependencies.mjs');
  return prepare(fileURLToPath(new URL('..', import.meta.url)));
}

const refusal = refuseNode();
if (refusal === undefined) {
  void prepareClone().then((code) => {
    process.exitCode = code;
  });
} else {
  console.error(refusal);
  process.exitCode = 2;
}
