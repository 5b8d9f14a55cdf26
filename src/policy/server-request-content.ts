// The conditions of rules on the content of a server request: the host of a link, and the context and the tools of a
// sampling request. Reads the content strictly and compares it with a rule. Ambiguous content matches no allow rule, and
// every deny and require rule. Pure.
// Source: MCP 2025-11-25, sampling (includeContext, tools), elicitation (URL mode);
// docs/reference/policies.md#server-requests-by-content.

import { isObject, type JsonObject, type ServerRequestName } from '../protocol/jsonrpc.js';
import { foldName } from '../text/json-members.js';
import { readAuthority } from './hosts.js';
import { matchesPattern, type Pattern } from './patterns.js';

/**
 * The content as far as rules read it. `tools` is `some` where the question is whether this caller may be sent any tools.
 * `unclear` is content that can be read in more than one way.
 */
export type ServerRequestContent =
  | 'unclear'
  | {
      /** Host of the link, with its port unless that is 443. */
      readonly linkHost?: string;
      readonly includeContext?: string;
      readonly tools?: readonly string[] | 'some';
    };

/** The conditions of a rule on the content; an absent member is no condition. */
export type ServerRequestTerms = {
  readonly linkHosts?: readonly LinkHost[] | undefined;
  readonly includeContext?: ReadonlySet<string> | undefined;
  /** `none`: the request has no tools. */
  readonly tools?: readonly Pattern[] | 'none' | undefined;
};

/** A host, or with `isSuffix` every name below it: `.example.com`. */
export type LinkHost = { readonly text: string; readonly isSuffix: boolean };

const CONTEXTS: ReadonlySet<unknown> = new Set(['none', 'thisServer', 'allServers']);
const NOTHING: ServerRequestContent = Object.freeze({});

/**
 * Reads the content that rules can have conditions on.
 * @param link the link in the form in which the client gets it; undefined if it may not pass
 */
export function readServerRequestContent(
  name: ServerRequestName,
  params: JsonObject,
  link: string | undefined,
): ServerRequestContent {
  if (name === 'elicitation/url') return hasMisspelt(params, LINK) ? 'unclear' : readLinkHost(link);
  return name === 'sampling' ? readSampling(params) : NOTHING;
}

function readLinkHost(link: string | undefined): ServerRequestContent {
  const linkHost = link === undefined ? undefined : hostOfLink(link);
  return linkHost === undefined ? 'unclear' : { linkHost };
}

/** The host of a URL in normal form, with its port unless that is the one of the scheme. */
export function hostOfLink(link: string): string | undefined {
  const read = readAuthority(link);
  if (read === undefined) return undefined;
  const { host, port } = read;
  const written = host.includes(':') ? `[${host}]` : host;
  return port === '' ? written : `${written}:${port}`;
}

const PARAMS = ['includeContext', 'tools'];
const TOOL = ['name'];
const LINK = ['url'];

/** Whether a member differs from one of these in case alone: some readers take it for that one. */
function hasMisspelt(members: JsonObject, names: readonly string[]): boolean {
  return Object.keys(members).some((member) =>
    names.some((name) => member !== name && foldName(member) === foldName(name)),
  );
}

function readSampling(params: JsonObject): ServerRequestContent {
  const { includeContext = 'none', tools = [] } = params;
  if (hasMisspelt(params, PARAMS) || !CONTEXTS.has(includeContext) || !Array.isArray(tools)) return 'unclear';
  const names = tools.map((tool: unknown) => (isObject(tool) && !hasMisspelt(tool, TOOL) ? tool['name'] : undefined));
  return names.every((name) => typeof name === 'string')
    ? { includeContext: String(includeContext), tools: names }
    : 'unclear';
}

/**
 * Whether the conditions of a rule on the content hold; `restricts` for deny and require rules. Of several tools, an
 * allow rule needs all to be named, and any other rule one. Content that is not known yet matches every allow rule and
 * no other rule, so that a client may declare what could be allowed.
 */
export function fitsTerms(
  terms: ServerRequestTerms | undefined,
  name: ServerRequestName,
  content: ServerRequestContent | undefined,
  restricts: boolean,
): boolean {
  if (!hasTerms(terms, name)) return true;
  if (content === undefined) return !restricts;
  if (content === 'unclear') return restricts;
  if (name === 'elicitation/url') return namesHost(terms.linkHosts, content.linkHost);
  const { includeContext, tools } = content;
  const fitsContext = includeContext === undefined ? !restricts : terms.includeContext?.has(includeContext);
  const fitsTools = tools === undefined ? !restricts : namesTools(terms.tools, tools, restricts);
  return (terms.includeContext === undefined || fitsContext === true) && (terms.tools === undefined || fitsTools);
}

/** Whether a rule has conditions on the content of this kind of request. */
export function hasTerms(terms: ServerRequestTerms | undefined, name: ServerRequestName): terms is ServerRequestTerms {
  if (terms === undefined) return false;
  if (name === 'elicitation/url') return terms.linkHosts !== undefined;
  return name === 'sampling' && (terms.includeContext !== undefined || terms.tools !== undefined);
}

function namesHost(hosts: readonly LinkHost[] = [], host = ''): boolean {
  return hosts.some(({ text, isSuffix }) => (isSuffix ? host.endsWith(text) : host === text));
}

function namesTools(
  named: ServerRequestTerms['tools'] = [],
  tools: readonly string[] | 'some',
  restricts: boolean,
): boolean {
  if (named === 'none') return tools !== 'some' && tools.length === 0;
  if (tools === 'some') return !restricts || named.some(({ text }) => text === '*');
  const isNamed = (tool: string) => named.some((pattern) => matchesPattern(pattern, tool));
  return restricts ? tools.some(isNamed) : tools.every(isNamed);
}
