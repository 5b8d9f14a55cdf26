// Tells what a link needs from what is a secret anywhere: the signature of a signed link, which opens that link alone,
// and the user name in an address without a password. Both are found as kinds of their own, so that a profile can let
// them pass. What works outside its link (an API key, a password, a token of another kind) stays a secret.
// Source: AWS Signature Version 4 (query string authentication); Google Cloud Storage signed URLs; Azure service SAS;
// RFC 3986 §3.2.1 and §3.4; the providers' pages on shared links.

import type { Span } from '../../text/span.js';
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
const PARTS: ReadonlySet<string> = new Set(['aws-access-key', 'azure-sas', 'jwt', 'secret', LINK_SIGNATURE]);

const MAX_LINK_CHARS = 8192;
const LINK_END = /[\s"'<>`]/;
const SCHEME = /https?:\/\//gi;
const MIN_SCHEME_CHARS = 'http://'.length;

/** Gives the hits that are parts of signed links that kind. */
export function withSignedLinks(text: string, hits: readonly Hit[]): readonly Hit[] {
  if (!hits.some(({ kind }) => PARTS.has(kind))) return hits;
  const links = linksIn(text);
  return hits.flatMap((hit) => {
    if (PARTS.has(hit.kind) && isPartOfSignedLink(text, links, hit)) return { ...hit, kind: SIGNED_LINK };
    return hit.kind === LINK_SIGNATURE ? [] : hit;
  });
}

function isPartOfSignedLink(text: string, links: readonly Span[], { start, end }: Hit): boolean {
  const link = linkAround(text, links, start);
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
      signed.parameter.test(parameter) && signed.host?.test(host) !== false && signed.link?.test(link.text) !== false,
  );
}

/** The HTTP links of a text, in one pass over it; one inside another ends with that. */
function linksIn(text: string): readonly Span[] {
  const links: Span[] = [];
  let end = 0;
  for (const { index: start } of text.matchAll(SCHEME)) {
    if (start >= end) {
      const length = text.slice(start).search(LINK_END);
      end = length < 0 ? text.length : start + length;
    }
    links.push({ start, end });
  }
  return links;
}

/** The last HTTP link that begins before a position and holds it. */
function linkAround(
  text: string,
  links: readonly Span[],
  at: number,
): { readonly start: number; readonly text: string } | undefined {
  let low = 0;
  let high = links.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((links[middle]?.start ?? at) + MIN_SCHEME_CHARS <= at) low = middle + 1;
    else high = middle;
  }
  const link = links[low - 1];
  if (link === undefined || link.end < at || at - link.start > MAX_LINK_CHARS) return undefined;
  const end = Math.min(link.end, at + MAX_LINK_CHARS);
  return { start: link.start, text: text.slice(link.start, end) };
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
