// Types of checks.mjs, which is plain JavaScript because the site is built without a compiler.

export declare function siteProblems(files: ReadonlyMap<string, string | Buffer>): readonly string[];
