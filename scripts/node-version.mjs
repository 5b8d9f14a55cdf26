// Says whether this Node can run the project. Imported before anything else, so it keeps to what Node 12 can parse
// and find; the version itself stands in package.json alone.

import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [oldest = ''] = /\d+\.\d+/.exec(manifest.engines.node) || [];

/** The sentence for a version that is too old; `undefined` for one that will do. */
export function refuseNode(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = oldest.split('.').map(Number);
  const isOlder = major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
  return isOlder ? `Sallyport needs Node ${oldest} or later; this is Node ${version}.` : undefined;
}
