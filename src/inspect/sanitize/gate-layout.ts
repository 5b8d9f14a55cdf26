// Where the tables, the text and the noted places of the fast pass stand in its memory, and what the bits
// of a kind mean. Numbers only.

export const VECTOR_BYTES = 16;
/** How many characters in a row the buckets of anchors know; buckets come by eights, one vector of bits each. */
export const POSITIONS = 4;
export const GROUPS = 1;
export const BUCKETS = 8 * GROUPS;

/** Kinds of characters by their lower and upper half: each bit is a set of lower and of upper halves. */
export const LOW_AT = 0;
export const HIGH_AT = 16;
/** Eight bytes that fold both cases of a letter into one. */
export const FOLD_AT = 32;
export const BUCKETS_AT = 64;
/** By key of three characters: the number of its list of anchors, 0 for none. */
export const KEYS_AT = 1024;
export const KEYS_BYTES = 1 << 15;
/**
 * By a sign or digit and the character behind it: 0 nothing to look at, 1 a closer look, 2 the last digit
 * of a group, 3 a digit before another, 4 the sign of an escaped line end.
 */
export const PAIRS_AT = KEYS_AT + KEYS_BYTES;
export const PAIRS_BYTES = 1 << 14;
/** The address of each list, then the lists: masks and values of eight bytes, ended by an empty mask. */
export const LISTS_AT = PAIRS_AT + PAIRS_BYTES;
export const ENTRIES_AT = LISTS_AT + 1024;
export const ENTRY_BYTES = 16;

/** Places that one pass may note. */
export const MAX_PLACES = 16_384;
export const OUT_AT = 128 * 1024;
/** The text stands behind a gap, for what is read before its first character. */
export const TEXT_AT = OUT_AT + 4 * MAX_PLACES + 64;
export const MAX_TEXT_UNITS = 256 * 1024;
export const MEMORY_BYTES = TEXT_AT + MAX_TEXT_UNITS + 4 * VECTOR_BYTES;

/** A noted place that lies in a run of token characters. */
export const RUN_FLAG = 1 << 30;

export const TOKEN_BITS = 0b0001_1111;
export const DIGIT_BITS = 0b0000_0100;
export const ANCHOR_BITS = 0b1110_0000;
