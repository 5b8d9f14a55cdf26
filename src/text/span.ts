// A part of a text, as every reader of this program names it: positions of UTF-16 code units, or of bytes where the text
// is a buffer. The end is the first position behind the part.

export type Span = { readonly start: number; readonly end: number };
