// What a detector of values returns: where in a text something stands, and of what kind it is. It holds no text.

/** The span of something found in a text. */
export type Hit = { readonly kind: string; readonly start: number; readonly end: number };
