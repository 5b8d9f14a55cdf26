type Module = { readonly path: string; readonly text: string };
export declare const CONCEPTS: readonly {
  readonly concept: string;
  readonly home: readonly string[];
  readonly sign?: RegExp;
}[];
export declare function findSecondHomes(modules: readonly Module[]): readonly string[];
