export function wordsOfPicture(svg: string): string;
export function wordsOf(printed: string): string;
