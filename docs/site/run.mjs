// node docs/site/run.mjs [--serve]
// Builds the documentation site into docs/site/dist, from the Markdown of the repository, and with --serve shows it on
// loopback and builds again when a page is saved. Installs the locked dependencies of this folder if they are missing.
// Exits 1 if a link leads nowhere, a page is not in the navigation, or a page would fetch something from elsewhere.

import { fileURLToPath } from 'node:url';
import { install } from '../../scripts/dependencies.mjs';
import { refuseNode } from '../../scripts/node-version.mjs';

async function launch() {
  const refusal = refuseNode();
  if (refusal !== undefined) {
    console.error(refusal);
    return 2;
  }
  const installed = await install(fileURLToPath(new URL('.', import.meta.url)));
  if (installed !== 0) return installed;
  const { build, serve } = await import('./build.mjs');
  return process.argv.includes('--serve') ? serve() : build();
}

process.exitCode = await launch();
