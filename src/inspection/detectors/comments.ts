// Finds the HTML comments that every renderer of Markdown and every HTML parser takes for such, with the same end. What
// stands in them is neither shown nor run; where one of them may disagree there is none.
// Source: HTML §13.2.5.43 to §13.2.5.52 (comments); CommonMark 0.31 §4.6 (HTML blocks, kind 2), §6.6 (raw HTML).

const MAX_LINE_CHARS = 1024;
/** A fence in a comment may end one that began before it. */
const FENCE = /[\r\n][^\p{L}\r\n]*(?:`{3}|~{3})/u;

/**
 * The offset behind the comment that begins at `at`; undefined where somebody may not read it as one. The caller knows
 * that no tag and no raw-text element is open there. `firstDefinition`: where the first `]:` is, or -1.
 */
export function sureCommentEnd(text: string, at: number, firstDefinition: number): number | undefined {
  const dashes = text.indexOf('--', at + 4);
  // Two dashes end a comment for some readers, whatever follows them.
  if (dashes < 0 || text[dashes + 2] !== '>') return undefined;
  const content = text.slice(at + 4, dashes);
  if (/^-?>|-$|^$/.test(content)) return undefined;
  // One renderer continues the title of a definition over any line.
  if (firstDefinition >= 0 && firstDefinition < at && /["')]/.test(content)) return undefined;
  const head = headOf(text, at);
  if (head === undefined) return undefined;
  const isBlock = /^ {0,3}$/.test(head);
  if (isBlock ? FENCE.test(content) : /[\r\n`|]/.test(content) || !isPlainHead(head)) return undefined;
  return dashes + 3;
}

/** What precedes a comment in its line. */
function headOf(text: string, at: number): string | undefined {
  const before = text.slice(Math.max(0, at - MAX_LINE_CHARS), at);
  const start = Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r')) + 1;
  return start === 0 && at > MAX_LINE_CHARS ? undefined : before.slice(start);
}

/** Whether nothing in the line can include what follows: no span, target, title, table or address that is open. */
function isPlainHead(head: string): boolean {
  return !/[`|\\]|\]\(|\]\[|\]:|^\s*["'(]|(?::|www\.)[^\s]*$/i.test(head);
}
