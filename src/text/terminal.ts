// What is printed for a person at a terminal: colours, and lines that fit its width.

export type Paint = {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
};

function ansiStyle(code: number): (text: string) => string {
  return (text) => `\u001b[${code}m${text}\u001b[0m`;
}

function unstyled(text: string): string {
  return text;
}

/** Terminal colours, or the same functions without any (NO_COLOR, or no terminal). */
export function createPaint(hasColor: boolean): Paint {
  if (!hasColor) return { bold: unstyled, dim: unstyled, good: unstyled, warn: unstyled, bad: unstyled };
  return { bold: ansiStyle(1), dim: ansiStyle(2), good: ansiStyle(32), warn: ansiStyle(33), bad: ansiStyle(31) };
}

/**
 * The words of a text in lines that end before a column, the first of which begins at `start` and the others at `indent`. A
 * word that fits in no line is cut.
 */
export function hangingLines(text: string, start: number, indent: number, columns: number): readonly string[] {
  const width = Math.max(columns - indent, MIN_WIDTH);
  const lines: string[] = [];
  let line = '';
  let room = Math.max(columns - start, 0);
  for (const word of text.split(' ').flatMap((one) => cutWord(one, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length <= room || (line === '' && lines.length > 0)) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = word;
    room = width;
  }
  return [...lines, line];
}

/** Narrower columns would be a line for each word. */
const MIN_WIDTH = 16;

function cutWord(word: string, width: number): readonly string[] {
  return word.length <= width ? [word] : (word.match(new RegExp(`.{1,${width}}`, 'gsu')) ?? []);
}
