// Splits a line into words by the quoting rules of a POSIX shell (XCU §2.2), and does nothing else of what a shell does:
// what a shell would replace or act upon outside quotes is an error that names it, but patterns of file names, which a
// shell leaves as they are where they match nothing.

/** The words, or what keeps the line from being split as a clause. */
export type SplitLine = { readonly argv: readonly string[] } | { readonly error: string };

/** Blanks; text in single quotes; in double quotes; an escaped character; plain characters. */
const PART = /([ \t\r\n]+)|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|[^ \t\r\n'"\\]+/gy;
const VARIABLE = /\$(?:\w+|[{(@*#?$!-])/;
/** What ends a command, joins it with others, or leads its input and output elsewhere. */
const OPERATOR = /[|&;<>()]/;

export function splitCommandLine(line: string): SplitLine {
  const argv: string[] = [];
  let word: string | undefined;
  let end = 0;
  for (const match of line.matchAll(PART)) {
    const [part, blank, , double] = match;
    end += part.length;
    const mistake = findActive(part, double, word === undefined);
    if (mistake !== undefined) return { error: mistake };
    if (blank === undefined) word = withPart(word, match);
    else if (word !== undefined) argv.push(word);
    if (blank !== undefined) word = undefined;
  }
  if (end < line.length) return { error: describeEnd(line.charAt(end)) };
  return { argv: word === undefined ? argv : [...argv, word] };
}

function withPart(word: string | undefined, [part, , single, double, escaped]: RegExpMatchArray): string | undefined {
  // An escaped line end joins two lines.
  if (escaped === '\n') return word;
  return (word ?? '') + (single ?? unescapeDouble(double) ?? escaped ?? part);
}

function describeEnd(mark: string): string {
  return mark === '\\' ? 'nothing follows the \\ at its end' : `a quote (${mark}) is not closed`;
}

/** In double quotes a backslash escapes these alone. */
function unescapeDouble(text: string | undefined): string | undefined {
  return text?.replace(/\\([$`"\\\n])/g, (_, character: string) => (character === '\n' ? '' : character));
}

/** What a shell would act upon in a part; `undefined` if it takes it as it is. */
function findActive(part: string, double: string | undefined, isFirst: boolean): string | undefined {
  const isPlain = !/^[ \t\r\n'"\\]/.test(part);
  const open = double === undefined ? part : double.replace(/\\[\s\S]/g, '');
  if (!isPlain && double === undefined) return undefined;
  const [variable] = VARIABLE.exec(open) ?? [];
  if (variable !== undefined || open.includes('`'))
    return `no shell is run, so ${variable ?? '`'} is not replaced; put it in single quotes if it is meant as it stands`;
  if (!isPlain) return undefined;
  const [operator = /^[~#]/.exec(isFirst ? part : '')?.[0]] = OPERATOR.exec(part) ?? [];
  return (
    operator && `no shell is run, so ${operator} has no meaning here; put it in quotes if it is meant as it stands`
  );
}
