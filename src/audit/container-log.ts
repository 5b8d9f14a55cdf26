// Takes audit lines out of what container runtimes write of standard output: the lines of CRI (containerd, CRI-O; Podman's
// `k8s-file`), `<time> stdout F <text>`, and those of Docker's `json-file`, `{"log":"<text>\n","stream":"stdout",…}`. Long
// lines that a runtime has split are joined. Standard error, which runtimes write into the same file, is left out. A line
// without such a wrapper is passed on as it is. Pure: it performs no I/O.

import { parseObject } from '../protocol/jsonrpc.js';

const CRI_LINE = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?::\S*)? /;
const DOCKER_START = '{"log":';

/** How every audit line begins. No line has it inside: quotation marks in its texts are escaped. */
const AUDIT_START = '{"schema":"sallyport.audit/';

/** What a wrapper says of its text. */
type Wrapped = { readonly isStdout: boolean; readonly text: string; readonly isPart: boolean };

function readCri(line: string): Wrapped | undefined {
  const [head, stream, tag] = CRI_LINE.exec(line) ?? [];
  if (head === undefined) return undefined;
  return { isStdout: stream === 'stdout', text: line.slice(head.length), isPart: tag === 'P' };
}

/** The text may have any character as an escape: it is brought back to one character a byte, as it was written. */
function readDocker(line: string): Wrapped | undefined {
  if (!line.startsWith(DOCKER_START)) return undefined;
  const { log, stream } = parseObject(Buffer.from(line, 'latin1').toString('utf8')) ?? {};
  if (typeof log !== 'string' || typeof stream !== 'string') return undefined;
  const text = Buffer.from(log, 'utf8').toString('latin1');
  const isPart = !text.endsWith('\n');
  return { isStdout: stream === 'stdout', text: isPart ? text : text.slice(0, -1), isPart };
}

/**
 * Two lines where the first has no end, because whatever wrote it was ended, and another process went on behind it in
 * the same line.
 */
function splitGlued(text: string): readonly string[] {
  const at = text.lastIndexOf(AUDIT_START);
  return at > 0 ? [text.slice(0, at), text.slice(at)] : [text];
}

/** True if the text begins like an audit line. */
export function looksLikeAuditLine(text: string): boolean {
  return text.startsWith(AUDIT_START);
}

/**
 * Creates the reader of the lines of one file, given as Latin-1 text. `add` returns the texts that end with a line: none
 * for standard error and for a part of a line. `end` returns a last part whose end is not there. A file that begins with
 * an audit line was written by a gateway: nothing in it is a wrapper, and so nothing is left out. Only where several files
 * may have been joined (`isJoined`) is each line taken for itself.
 */
export function createUnwrapper(
  maxLength: number,
  isJoined = false,
): {
  readonly add: (line: string) => readonly string[];
  readonly end: () => readonly string[];
} {
  let parts = '';
  let isNative = isJoined ? false : undefined;

  function join({ isStdout, text, isPart }: Wrapped): readonly string[] {
    if (!isStdout) return [];
    parts += text;
    // A longer line is no audit line.
    if (isPart && parts.length <= maxLength) return [];
    const entire = parts;
    parts = '';
    return splitGlued(entire);
  }

  return {
    add(line) {
      isNative ??= looksLikeAuditLine(line);
      if (isNative) return splitGlued(line);
      const wrapped = readCri(line) ?? readDocker(line);
      return wrapped === undefined ? splitGlued(line) : join(wrapped);
    },
    end() {
      const rest = parts;
      parts = '';
      return rest === '' ? [] : splitGlued(rest);
    },
  };
}
