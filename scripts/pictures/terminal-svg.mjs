// Draws what a terminal shows as SVG: real text in a monospaced font, in a dark or a light theme, as a still or as an animation
// that fills the screen line by line, ends in a readable still and loops. Also reads the words of such a picture, so that a
// test can compare them with what is printed now.

const THEMES = {
  dark: {
    back: '#0d1117',
    edge: '#3d444d',
    plain: '#e6edf3',
    dim: '#9198a1',
    good: '#3fb950',
    warn: '#d29922',
    bad: '#ff7b72',
  },
  light: {
    back: '#ffffff',
    edge: '#d1d9e0',
    plain: '#1f2328',
    dim: '#59636e',
    good: '#116329',
    warn: '#7d4e00',
    bad: '#cf222e',
  },
};

/** Classes by the codes of the program's colours (src/text/terminal.ts). */
const STYLES = { 1: 'bold', 2: 'dim', 31: 'bad', 32: 'good', 33: 'warn' };

const FONT_SIZE = 14;
const ADVANCE = 8.4;
const LINE_HEIGHT = 19;
const PADDING = 16;
const HOLD_SECONDS = 8;

/** The lines of what a terminal was sent, each a list of styled runs; longer ones are continued below as it does. */
export function readScreen(printed, columns) {
  return printed
    .replaceAll('\r', '')
    .replace(/\n+$/, '')
    .split('\n')
    .flatMap((line) => wrapRuns(runsOf(line), columns));
}

const COLOR = new RegExp(`${String.fromCodePoint(0x1b)}\\[(\\d+)m`);

function runsOf(line) {
  let style = '';
  return line.split(COLOR).flatMap((part, index) => {
    if (index % 2 === 0) return part === '' ? [] : [{ text: part, style }];
    style = STYLES[part] ?? '';
    return [];
  });
}

function wrapRuns(runs, columns) {
  const lines = [[]];
  let used = 0;
  for (const { text, style } of runs) {
    for (const letter of text) {
      if (used === columns) {
        lines.push([]);
        used = 0;
      }
      const line = lines.at(-1);
      const last = line.at(-1);
      if (last?.style === style) last.text += letter;
      else line.push({ text: letter, style });
      used += 1;
    }
  }
  return lines;
}

/** Draws a still of all lines or, with `rows`, an animation on a screen of so many rows. */
export function drawTerminal({ command, lines, columns, rows, theme, title }) {
  const colors = THEMES[theme];
  const all = [
    [
      { text: '$ ', style: 'dim' },
      { text: command, style: 'bold' },
    ],
    [],
    ...lines,
  ];
  const shown = rows ?? all.length;
  const width = Math.round(columns * ADVANCE + 2 * PADDING);
  const height = shown * LINE_HEIGHT + 2 * PADDING;
  const texts = all.flatMap((line, row) => textsOf(line, row)).join('\n');
  const style = [
    `text{font:${FONT_SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${colors.plain}}`,
    '.bold{font-weight:600}',
    ...['dim', 'good', 'warn', 'bad'].map((name) => `.${name}{fill:${colors[name]}}`),
    ...(rows === undefined ? [] : animationOf(all, rows)),
  ].join('\n');
  const frame = `width="${width - 1}" height="${height - 1}" rx="8" fill="${colors.back}" stroke="${colors.edge}"`;
  const body =
    rows === undefined
      ? texts
      : `<clipPath id="screen"><rect x="1" y="${PADDING}" width="${width - 2}" height="${shown * LINE_HEIGHT}"/></clipPath>
<g clip-path="url(#screen)"><g class="scroll">
${texts}
<rect class="cover" x="1" y="${PADDING}" width="${width - 2}" height="${all.length * LINE_HEIGHT}" fill="${colors.back}"/>
</g></g>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">${escaped(title)}</title>
<style>
${style}
</style>
<rect x=".5" y=".5" ${frame}/>
${body}
</svg>
`;
}

/** Each run that has no wide gap, at its column and with its width: no font moves it. */
function textsOf(line, row) {
  const y = PADDING + row * LINE_HEIGHT + FONT_SIZE;
  let column = 0;
  return line.flatMap(({ text, style }) => {
    const start = column;
    column += [...text].length;
    return [...text.matchAll(/\S+(?: \S+)*/g)].map((found) => {
      const x = decimal(PADDING + (start + [...text.slice(0, found.index)].length) * ADVANCE);
      const length = decimal([...found[0]].length * ADVANCE);
      const named = style === '' ? '' : ` class="${style}"`;
      return `<text x="${x}" y="${y}" textLength="${length}"${named}>${escaped(found[0])}</text>`;
    });
  });
}

function decimal(number) {
  return String(Math.round(number * 10) / 10);
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Seconds after which the line behind this one is printed: enough to read an announcement. */
function pauseAfter(line) {
  const text = line.map((run) => run.text).join('');
  if (text.trim() === '') return 0;
  return text.startsWith('$ ') || /^ +expect /.test(text) ? 0.7 : 0.12;
}

/** Uncovers one line after the other and scrolls once the screen is full. Without motion: the last screen. */
function animationOf(lines, rows) {
  let seconds = 0;
  const moments = lines.flatMap((line, index) => {
    const pause = pauseAfter(line);
    const moment = { at: seconds, printed: index + 1 };
    seconds += pause;
    return pause === 0 && index < lines.length - 1 ? [] : [moment];
  });
  const duration = seconds + HOLD_SECONDS;
  const scrollAt = (printed) => -Math.max(0, printed - rows) * LINE_HEIGHT;
  const frames = (toY) =>
    moments.map(({ at, printed }) => `${((100 * at) / duration).toFixed(2)}%{transform:translateY(${toY(printed)}px)}`);
  const coverAt = (printed) => printed * LINE_HEIGHT;
  const end = lines.length;
  const loop = `${duration.toFixed(1)}s step-end infinite`;
  return [
    `.scroll{transform:translateY(${scrollAt(end)}px);animation:scroll ${loop}}`,
    `.cover{transform:translateY(${coverAt(end)}px);animation:cover ${loop}}`,
    `@keyframes scroll{${frames(scrollAt).join('')}}`,
    `@keyframes cover{${frames(coverAt).join('')}}`,
    '@media (prefers-reduced-motion:reduce){.scroll,.cover{animation:none}}',
  ];
}

/** The words of a picture behind its command, as one text. */
export function textOfPicture(svg) {
  const texts = [...svg.matchAll(/<text x="[^"]*" y="(\d+)"[^>]*>([^<]*)<\/text>/g)];
  const printed = texts.filter(([, y]) => Number(y) !== PADDING + FONT_SIZE).map(([, , text]) => text);
  return comparableText(printed.join(' ').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'));
}

/** The words of what is printed, as one text, without what differs from run to run. */
export function comparableText(printed) {
  return printed
    .replace(/\s+/g, ' ')
    .replace(/\d\d:\d\d:\d\d/g, 'TIME')
    .replace(/127\.0\.0\.1:\d+\/desk/g, 'GATEWAY')
    .replace(/of its \d+ lines/, 'of its lines')
    .replace(/The calculator is .*?(?= not covered)/, 'CALCULATOR')
    .trim();
}
