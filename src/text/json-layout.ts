// JSON text laid out on lines for a person, token by token: strings and numbers stay as they are written, so that what is
// read is what is sent. Linear; for text that is valid JSON.

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/gs;
const INDENT = '  ';
/** Deeper values are not indented further, so that the layout cannot be much longer than the text. */
const MAX_INDENT = 32;
const OPENS: ReadonlySet<string> = new Set(['{', '[']);
const CLOSES: ReadonlySet<string> = new Set(['}', ']']);

/** Whether a token begins a line: the first in an object or a list, each after a comma, and the end of what is not empty. */
function beginsLine(token: string, before: string): boolean {
  return before === ',' || OPENS.has(before) !== CLOSES.has(token);
}

/** The text with a line for each member and element. `show` writes one token. */
export function layOutJson(text: string, show: (token: string) => string): string {
  const parts: string[] = [];
  let depth = 0;
  let before = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (CLOSES.has(token)) depth -= 1;
    if (beginsLine(token, before)) parts.push('\n', INDENT.repeat(Math.min(depth, MAX_INDENT)));
    if (OPENS.has(token)) depth += 1;
    parts.push(token === ':' ? ': ' : show(token));
    before = token;
  }
  return parts.join('');
}
