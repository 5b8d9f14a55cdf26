// Tells what a link needs from what is a secret anywhere: the signature of a signed link, which opens that link alone,
// and the user name in an address without a password. Both are found as kinds of their own, so that a profile can let
// them pass. What works outside its link (an API key, a password, a token of another kind) stays a secret.
// Source: AWS Signature Version 4 (query string authentication); Google Cloud Storage signed URLs; Azure service SAS;
// RFC 3986 §3.2.1 and §3.4; the providers' pages on shared links.

import type { Hit } from './hit.js';
import { LINK_SIGNATURE } from './secret-formats.js';

/** A parameter that makes a link a signed one, or a secret that belongs to it. */
export const SIGNED_LINK = 'signed-link';
/** The user name of an address without a password. */
export const ADDRESS_USER = 'address-user';

const LINK_KINDS: ReadonlySet<string> = new Set([SIGNED_LINK, ADDRESS_USER]);

/** Whether a kind says that a link was found, not a secret. */
export function isLinkKind(kind: string): boolean {
  return LINK_KINDS.has(kind);
}

type SignedLink = {
  /** The host must match. Absent: any. */
  readonly host?: RegExp;
  /** The link must match, so that it is signed. Absent: the host suffices. */
  readonly link?: RegExp;
  /** The parameters that open this link and nothing else. */
  readonly parameter: RegExp;
};

const SIGNED_LINKS: readonly SignedLink[] = [
  // Signature version 4 of S3 and of those that follow it, and the same of GCS.
  {
    link: /[?&;]X-(?:Amz|Goog|Oss|Tos|Obs)-Signature=/i,
    parameter: /^X-(?:Amz|Goog|Oss|Tos|Obs)-[a-z-]{1,40}$/i,
  },
  // Version 2 of S3, GCS and OSS; CloudFront.
  {
    link: /[?&;](?:Expires|Policy)=[\s\S]*[?&;]Signature=|[?&;]Signature=[\s\S]*[?&;](?:Expires|Policy)=/i,
    parameter:
      /^(?:AWSAccessKeyId|GoogleAccessId|OSSAccessKeyId|Key-Pair-Id|Policy|Signature|x-amz-security-token|security-token)$/i,
  },
  // A shared access signature of Azure.
  { link: /[?&;](?:sv|se|sp|sr|skoid)=/, parameter: /^sig$/ },
  // Meetings and shares whose link holds their passcode.
  {
    host: /(?:^|\.)(?:zoom\.us|zoomgov\.com|zoom\.com|zoom\.com\.cn|pan\.baidu\.com)$/i,
    parameter: /^pwd$/,
  },
  {
    host: /(?:^|\.)(?:githubusercontent\.com|codeload\.github\.com)$/i,
    parameter: /^(?:token|jwt)$/,
  },
  { host: /^firebasestorage\.googleapis\.com$/i, parameter: /^token$/ },
  { link: /^[^?#]*\/storage\/v1\/(?:object|render\/image)\/sign\//, parameter: /^token$/ },
  // A badge, for which these services have tokens of their own.
  {
    host: /(?:^|\.)(?:codecov\.io|circleci\.com)$/i,
    link: /^[^?#]*\.(?:svg|png)\?/,
    parameter: /^(?:token|circle-token)$/,
  },
  { host: /(?:^|\.)(?:sharepoint\.com|svc\.ms)$/i, parameter: /^tempauth$/ },
];

/** Kinds of secrets that may be a part of a signed link. */
const PARTS: ReadonlySet<string> = new Set([
  'aws-access-key',
  'azure-sas',
  'jwt',
  'secret',
  LINK_SIGNATURE,
]);

const MAX_LINK_CHARS = 8192;
const LINK_END = /[\s"'<>`]/;

/** Gives the hits that are parts of signed links that kind. */
export function withSignedLinks(text: string, hits: readonly Hit[]): readonly Hit[] {
  if (!hits.some(({ kind }) => PARTS.has(kind))) return hits;
  return hits.flatMap((hit) => {
    if (PARTS.has(hit.kind) && isPartOfSignedLink(text, hit)) return { ...hit, kind: SIGNED_LINK };
    return hit.kind === LINK_SIGNATURE ? [] : hit;
  });
}

function isPartOfSignedLink(text: string, { start, end }: Hit): boolean {
  const link = linkAround(text, start);
  if (link === undefined || end > link.start + link.text.length) return false;
  const before = link.text.slice(0, start - link.start);
  const from = Math.max(...['?', '&', ';', '#'].map((sign) => before.lastIndexOf(sign)));
  const query = link.text.search(/[?#]/);
  if (query < 0 || from < query) return false;
  const parameter = /^([A-Za-z0-9_.-]{1,64})=/.exec(link.text.slice(from + 1, from + 66))?.[1];
  const rest = link.text.slice(start - link.start, end - link.start);
  if (parameter === undefined || /[?&;#]/.test(rest)) return false;
  const host = /^https?:\/\/([^/?#@:]*)/i.exec(link.text)?.[1] ?? '';
  return SIGNED_LINKS.some(
    (signed) =>
      signed.parameter.test(parameter) &&
      signed.host?.test(host) !== false &&
      signed.link?.test(link.text) !== false,
  );
}

/** The HTTP link around a position. */
function linkAround(
  text: string,
  at: number,
): { readonly start: number; readonly text: string } | undefined {
  const window = text.slice(Math.max(0, at - MAX_LINK_CHARS), at);
  const scheme = /https?:\/\/[^\s"'<>`]*$/i.exec(lastWord(window));
  if (scheme === null) return undefined;
  const start = at - scheme[0].length;
  const ahead = text.slice(at, at + MAX_LINK_CHARS);
  const length = ahead.search(LINK_END);
  return { start, text: text.slice(start, length < 0 ? at + ahead.length : at + length) };
}

/** What stands behind the last character that no link holds. */
function lastWord(window: string): string {
  let from = window.length;
  while (from > 0 && !LINK_END.test(window.charAt(from - 1))) from--;
  const word = window.slice(from);
  const scheme = Math.max(word.lastIndexOf('http://'), word.lastIndexOf('https://'));
  return scheme < 0 ? word : word.slice(scheme);
}

const USER = /(?<=[a-z]:\/\/)([^\s/?#:@"'<>`\\[\]]{1,256})(?=@[a-z0-9[])/gi;

/** The user names of addresses that have no password. */
export function findAddressUsers(text: string): Hit[] {
  if (!text.includes('://')) return [];
  return [...text.matchAll(USER)].map(({ index, 0: user }) => ({
    kind: ADDRESS_USER,
    start: index,
    end: index + user.length,
  }));
}
