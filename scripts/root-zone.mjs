// node scripts/root-zone.mjs [FILE]: writes src/policy/root-zone.ts anew from the list of top-level domains that IANA
// publishes, or from a file of the same form. Run it before a release; the date of the list stands in the header of that file.

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { toASCII } from 'tr46';

const SOURCE = 'https://data.iana.org/TLD/tlds-alpha-by-domain.txt';
const TARGET = fileURLToPath(new URL('../src/policy/root-zone.ts', import.meta.url));
const HEADER = /^# Version (\d{4})(\d{2})(\d{2})\d{2}\b/;
const NAME = /^[a-z0-9-]{2,63}$/;
/** The root has had more names than this since 2015: a shorter list is cut off. */
const LEAST_NAMES = 1_200;
const LINE_CHARS = 112;

async function readSource(file) {
  if (file !== undefined) return readFile(file, 'utf8');
  const response = await fetch(SOURCE);
  if (!response.ok) throw new Error(`${SOURCE} answered ${response.status}`);
  return response.text();
}

function linesOf(names) {
  const lines = [''];
  for (const name of names) {
    const line = `${lines.at(-1)} ${name}`.trimStart();
    if (line.length > LINE_CHARS) lines.push(name);
    else lines[lines.length - 1] = line;
  }
  return lines.map((line) => `  ${line}`).join('\n');
}

const text = await readSource(process.argv[2]);
const [first = '', ...rest] = text.trim().split(/\r?\n/);
const [, year, month, day] = HEADER.exec(first) ?? [];
const names = rest.map((line) => toASCII(line.trim().toLowerCase()) ?? '').sort();
const odd = names.find((name) => !NAME.test(name));
if (year === undefined || odd !== undefined || names.length < LEAST_NAMES)
  throw new Error(`this is no list of top-level domains (${odd ?? first})`);

await writeFile(
  TARGET,
  `// The top-level domains of the IANA root zone, from the list of ${year}-${month}-${day}, written by scripts/root-zone.mjs.
// Public resolvers answer for names below these alone.

const NAMES = \`
${linesOf(names)}
\`;

const TOP_LEVEL_DOMAINS: ReadonlySet<string> = new Set(NAMES.trim().split(/\\s+/));

/** Whether the root zone delegates this label, in lower case and in Punycode. */
export function isTopLevelDomain(label: string): boolean {
  return TOP_LEVEL_DOMAINS.has(label);
}
`,
);
console.info(`${names.length} top-level domains of ${year}-${month}-${day}`);
