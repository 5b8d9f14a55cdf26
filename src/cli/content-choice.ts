// Which kinds of content `init` and `dev` choose for a server: `code` for tools that return the content of files and
// nothing else, and for a whole server of local files that the user started. The choice is printed and written into the
// gateway file with the digests of the definitions, so that a definition that is new or changed later has no part in it.
// docs/reference/commands.md; docs/guides/content.md.

import { returnsFilesOnly, startsFileServer } from '../inspection/file-tools.js';
import { approvedVersions, type Lock, type Pin, versionsOf } from '../pins/lock.js';
import { cleanForeign, quoteYaml } from '../text/escaping.js';

export type ContentChoice = {
  /** The lines of the key `content` of the upstream, not indented. */
  readonly lines: readonly string[];
  /** The choice in one sentence without its end, safe on a terminal. */
  readonly shown: string;
};

const ONLY_SECRETS = 'nothing is changed there but secrets and personal data';
/** Hosts draw what this one returns, and a picture may be active. */
const MEDIA_TOOL = 'read_media_file';
const MAX_SHOWN = 8;

/**
 * The choice for the definitions of a lock file, or `undefined` if nothing is `code`. `command`: what the user started the
 * server with. `isApproved`: only approved definitions count.
 */
export function chooseContent(
  lock: Lock | undefined,
  {
    command,
    named = [],
    isApproved,
  }: {
    readonly command?: readonly string[] | undefined;
    /** Tools that are known to return files, whatever their definitions say. */
    readonly named?: readonly string[] | undefined;
    readonly isApproved: boolean;
  },
): ContentChoice | undefined {
  const tools = [...(lock?.pins.tool ?? [])];
  if (command !== undefined && startsFileServer(command)) return localFileServer(tools);
  const chosen = tools.flatMap(([name, pin]) => {
    const versions = isApproved ? approvedVersions(pin) : versionsOf(pin);
    const isCode =
      versions.length > 0 && (named.includes(name) || versions.every(({ definition }) => returnsFilesOnly(definition)));
    return isCode ? [{ name, digests: versions.map(({ sha256 }) => sha256) }] : [];
  });
  if (chosen.length === 0) return undefined;
  const names = chosen.map(({ name }) => cleanForeign(name)).slice(0, MAX_SHOWN);
  const more = chosen.length > MAX_SHOWN ? ` and ${chosen.length - MAX_SHOWN} more` : '';
  return {
    lines: [
      `# These return files, so ${ONLY_SECRETS} (docs/guides/content.md).`,
      'content:',
      '  tools:',
      ...chosen.map(({ name, digests }) => `    ${quoteYaml(name)}: ${codeFor(digests)}`),
    ],
    shown: `code for ${names.join(', ')}${more}: ${ONLY_SECRETS}`,
  };
}

function codeFor(digests: readonly string[]): string {
  const written = digests.map(quoteYaml).join(', ');
  return `{kind: code, digest: ${digests.length === 1 ? written : `[${written}]`}}`;
}

function localFileServer(tools: readonly (readonly [string, Pin])[]): ContentChoice {
  const hasMedia = tools.some(([name]) => name === MEDIA_TOOL);
  return {
    lines: [
      `# A server of local files: ${ONLY_SECRETS} (docs/guides/content.md).`,
      `content: {kind: code${hasMedia ? `, tools: {${MEDIA_TOOL}: auto}` : ''}}`,
    ],
    shown: `code for everything${hasMedia ? ` but ${MEDIA_TOOL}` : ''}, as it serves local files: ${ONLY_SECRETS}`,
  };
}
