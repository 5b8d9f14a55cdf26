// Finds terms for secrets in a phrase, with letters set apart and words run together: the terms are written without
// blanks, and the phrase is walked once from each blank. Linear; form-wording.ts has the terms.

/** A term found, with the blank before it and without the one after it. */
export type TermMatch = { readonly 0: string; readonly index: number };

/** What may stand around a term. */
type TermSearch = {
  /** What may follow a term before the next blank. Sticky. */
  readonly ending: RegExp;
  /** Further forms, tried before and after the terms: sticky patterns from one blank to another. */
  readonly before?: RegExp;
  readonly behind?: RegExp;
};

/** Terms for secrets. Texts are lower-case words between single blanks, with a blank at each end. */
export type SecretTerms = {
  /** The matches in order, without overlaps, found lazily. */
  matches(phrase: string): IterableIterator<TermMatch>;
  isIn(phrase: string): boolean;
  /** The text without the terms. */
  without(phrase: string): string;
};

/** Shorter terms match only as one word or with all letters set apart; otherwise they would match by chance. */
const MIN_LOOSE = 6;

type Node = { readonly next: Map<string, Node>; length: number };

function treeOf(vocabulary: readonly string[]): Node {
  const root: Node = { next: new Map(), length: 0 };
  for (const word of vocabulary) {
    let node = root;
    for (const letter of word) {
      const known = node.next.get(letter) ?? { next: new Map(), length: 0 };
      node.next.set(letter, known);
      node = known;
    }
    node.length = word.length;
  }
  return root;
}

/** The end of the longest term that begins after the blank at `at`, or -1. */
function wordEnd(phrase: string, at: number, tree: Node, ending: RegExp): number {
  let node: Node | undefined = tree;
  let blanks = 0;
  let end = -1;
  let position = at + 1;
  while (position < phrase.length) {
    if (phrase[position] === ' ' && position > at + 1) {
      blanks++;
      position++;
    }
    node = node.next.get(phrase[position] ?? '');
    if (node === undefined) break;
    position++;
    if (isWord(node.length, blanks)) end = Math.max(end, matchAt(ending, phrase, position));
  }
  return end;
}

function isWord(length: number, blanks: number): boolean {
  if (length < MIN_LOOSE && blanks > 0) return length > 0 && blanks === length - 1;
  return length > 0;
}

/** The end of the sticky pattern's match at `at`, or -1. */
function matchAt(pattern: RegExp | undefined, phrase: string, at: number): number {
  if (pattern === undefined) return -1;
  pattern.lastIndex = at;
  return pattern.test(phrase) ? pattern.lastIndex : -1;
}

// Builds the search for a vocabulary. Terms are walked as a tree of letters, because compiling one regular
// expression of all terms takes a tenth of a second. Linear.
export function createTerms(vocabulary: readonly string[], search: TermSearch): SecretTerms {
  const tree = treeOf(vocabulary);
  const { ending, before, behind } = search;

  function endFrom(phrase: string, at: number): number {
    const first = matchAt(before, phrase, at);
    if (first >= 0) return first;
    const second = wordEnd(phrase, at, tree, ending);
    return second >= 0 ? second : matchAt(behind, phrase, at);
  }

  function* matches(phrase: string): IterableIterator<TermMatch> {
    for (let at = phrase.indexOf(' '); at >= 0; ) {
      const end = endFrom(phrase, at);
      if (end >= 0) yield { 0: phrase.slice(at, end), index: at };
      at = phrase.indexOf(' ', end >= 0 ? end : at + 1);
    }
  }

  return {
    matches,
    isIn: (phrase) => matches(phrase).next().done !== true,
    without(phrase) {
      let kept = '';
      let from = 0;
      for (const { 0: kind, index } of matches(phrase)) {
        kept += phrase.slice(from, index);
        from = index + kind.length;
      }
      return kept + phrase.slice(from);
    },
  };
}

export function splitTerms(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
