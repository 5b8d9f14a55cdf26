// Types of node-version.mjs, which is plain JavaScript because it runs before anything is installed.

export function refuseNode(version?: string): string | undefined;
