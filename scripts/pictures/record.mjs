// node scripts/pictures/record.mjs [NAME…]
// Records the demo, and each of its attack scenes, in a real terminal (`script` of util-linux, 80 by 24), and writes what it
// printed to docs/images/ as SVG, dark and light. A run that does not end with 0 is no picture. Needs dist/, and is run by
// whoever changes what the demo prints; the tests compare the words.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { drawTerminal, readScreen } from './terminal-svg.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TERMINAL = { columns: 80, rows: 24 };
/** Columns that a scene uses: fewer, so that its picture can be read on a phone. */
const SCENE_COLUMNS = 68;

function runInTerminal(args) {
  const line = `stty cols ${TERMINAL.columns} rows ${TERMINAL.rows}; exec node dist/main.js ${args.join(' ')}`;
  const { status, stdout, stderr } = spawnSync('script', ['-qfec', line, '/dev/null'], { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
  return stdout;
}

function record({ name, args, command, columns, rows, title }) {
  const lines = readScreen(runInTerminal(args), TERMINAL.columns);
  for (const theme of ['dark', 'light']) {
    const file = `docs/images/${name}-${theme}.svg`;
    const svg = drawTerminal({ command, lines, columns, rows, theme, title });
    writeFileSync(`${ROOT}/${file}`, svg);
    console.log(`${file}: ${svg.length} bytes`);
  }
}

const demo = {
  name: 'demo',
  args: ['demo', '--exit'],
  command: 'npm run demo',
  title: 'The demo: calls through the gateway, each with its expected outcome and what came of it',
  ...TERMINAL,
};
const scenes = runInTerminal(['demo', '--scene', 'list'])
  .trim()
  .split(/\r?\n/)
  .map((line) => {
    const [name, title] = line.split(/ {2,}/);
    return {
      name: `scene-${name}`,
      args: ['demo', '--scene', name],
      command: `sallyport demo --scene ${name}`,
      columns: SCENE_COLUMNS,
      title: `${title}: what comes of the attack without the gateway and with it`,
    };
  });
const wanted = process.argv.slice(2);
for (const picture of [demo, ...scenes]) if (wanted.length === 0 || wanted.includes(picture.name)) record(picture);
