export function textOfPicture(svg: string): string;
export function comparableText(printed: string): string;
