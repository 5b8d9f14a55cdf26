// Types of navigation.mjs, which is plain JavaScript because the site is built without a compiler.

export type Section = {
  readonly title: string;
  readonly depth: number;
  readonly entries: readonly { readonly text: string; readonly file: string }[];
};
export declare const HOME: string;
export declare function readNavigation(text: string): readonly Section[];
export declare function navigationProblems(sections: readonly Section[], pages: readonly string[]): readonly string[];
export declare function sitePath(file: string, isFolder?: boolean): string;
export declare function relativeLink(from: string, to: string): string;
