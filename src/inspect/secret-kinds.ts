// Finds the words of a vocabulary in a clause, letters set apart and words run together: a walk along a tree of
// letters, since one expression of all words takes a tenth of a second to compile. Linear; knows no grammar.

/** A word found: with the blank before it, without the one behind it. */
export type KindMatch = { readonly 0: string; readonly index: number };

export type KindSearch = {
  /** What may stand behind a word before the next blank: sticky. */
  readonly ending: RegExp;
  /** Other forms, each a sticky pattern from one blank up to another: before the words, and behind them. */
  readonly before?: RegExp;
  readonly behind?: RegExp;
};

/** Words that name secrets. Texts are lower-case words between single blanks, with one at each end. */
export type Kinds = {
  /** The matches in order, not overlapping, found as they are asked for. */
  matches(phrase: string): IterableIterator<KindMatch>;
  isIn(phrase: string): boolean;
  /** The text without them. */
  without(phrase: string): string;
};

/** Shorter words stand as one word, or with all letters set apart: others would be found by chance. */
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

/** Where the longest word ends that begins behind the blank at `at`; -1 where none does. */
function wordEnd(phrase: string, at: number, tree: Node, ending: RegExp): number {
  let node: Node | undefined = tree;
  let blanks = 0;
  let end = -1;
  let place = at + 1;
  while (place < phrase.length) {
    if (phrase[place] === ' ' && place > at + 1) {
      blanks++;
      place++;
    }
    node = node.next.get(phrase[place] ?? '');
    if (node === undefined) break;
    place++;
    if (isWord(node.length, blanks)) end = Math.max(end, matchAt(ending, phrase, place));
  }
  return end;
}

function isWord(length: number, blanks: number): boolean {
  if (length < MIN_LOOSE && blanks > 0) return length > 0 && blanks === length - 1;
  return length > 0;
}

/** Where the match of a sticky pattern ends that begins at `at`; -1 where there is none. */
function matchAt(pattern: RegExp | undefined, phrase: string, at: number): number {
  if (pattern === undefined) return -1;
  pattern.lastIndex = at;
  return pattern.test(phrase) ? pattern.lastIndex : -1;
}

/** The words of a vocabulary, and the forms given. */
export function createKinds(vocabulary: readonly string[], search: KindSearch): Kinds {
  const tree = treeOf(vocabulary);
  const { ending, before, behind } = search;

  function endFrom(phrase: string, at: number): number {
    const first = matchAt(before, phrase, at);
    if (first >= 0) return first;
    const second = wordEnd(phrase, at, tree, ending);
    return second >= 0 ? second : matchAt(behind, phrase, at);
  }

  function* matches(phrase: string): IterableIterator<KindMatch> {
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
