// Hosts in URLs, as policies and the gateway's checks read them: the host that every reader of the URL takes, in one normal
// form, and whether it names something public. Names are converted by UTS #46 with tables of our own dependency and
// compared by rules of this file, so that no answer depends on the URL parser of the runtime: it reads ports and
// addresses, which every version of it reads alike, and no names. Nothing is resolved.
// Source: WHATWG URL, host parsing; UTS #46; RFC 3492; RFC 8375; the IANA root zone.

import { toASCII } from 'tr46';
import { bareHost, isAddressAllowed } from './addresses.js';
import { isTopLevelDomain } from './root-zone.js';

const MAX_URL_CHARS = 8192;
/**
 * The schemes whose hosts all programs parse alike. Some treat the hosts of others as opaque text (WHATWG URL,
 * special schemes).
 */
const AUTHORITY = /^(https?|wss?|ftp):\/\/([^/?#]*)/i;
/** A host and a port, after at most one user name. An address in brackets is the only host with a colon. */
const HOST = /^(?:[^@]*@)?(\[[^\]@]*\]|[^@:[\]]*)(?::([0-9]{0,5}))?$/;

/** Characters that readers of URLs drop, repair or stop at, each in its own way. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const UNCLEAR = /[\s\\\u0000-\u001f\u007f-\u009f]/u;

/**
 * A name in lower case and in Punycode (UTS #46, as WHATWG URL applies it); undefined for one that has no such form, and
 * for a label in Punycode that stands for nothing.
 */
function asciiDomain(written: string): string | undefined {
  const domain = toASCII(written, {
    checkBidi: true,
    checkHyphens: false,
    checkJoiners: true,
    transitionalProcessing: false,
    useSTD3ASCIIRules: false,
    verifyDNSLength: false,
  });
  return domain ?? undefined;
}

/** Whether a name in ASCII is one by UTS #46: each of its labels in Punycode stands for the label that it says. */
export function isDomain(name: string): boolean {
  return asciiDomain(name) !== undefined;
}

/**
 * The host of an absolute URL in its normal form: in lower case, in Punycode, an IPv4 address with four decimal
 * numbers, an IPv6 address without brackets, without a trailing dot. Undefined for a URL that readers could take
 * for different ones.
 */
export function hostOfUrl(url: string): string | undefined {
  return readAuthority(url)?.host;
}

/** The same host with the port, which is empty if it is the one of the scheme. */
export function readAuthority(url: string): { readonly host: string; readonly port: string } | undefined {
  if (url.length > MAX_URL_CHARS || UNCLEAR.test(url)) return undefined;
  const [, scheme = '', authority = ''] = AUTHORITY.exec(url) ?? [];
  const [, written = '', port = ''] = HOST.exec(authority) ?? [];
  const host = readHost(written);
  const portOnly = `${scheme}://localhost:${port}/`;
  if (host === undefined || !URL.canParse(portOnly)) return undefined;
  return { host, port: new URL(portOnly).port };
}

/** The host as every reader takes it; undefined where they could differ. */
function readHost(written: string): string | undefined {
  if (written === '' || written.includes('%') || DEVIATING.test(written)) return undefined;
  const host = normalHost(written);
  const isOctal = host !== undefined && IPV4.test(host) && LEADING_ZERO.test(written.normalize('NFKC'));
  return isOctal ? undefined : host;
}

/**
 * A host, which may be percent-encoded, in the normal form; undefined for what is no host. The form has one reading, even
 * where what was written has several: it is for a link that is passed on in this form.
 */
export function normalHost(written: string): string | undefined {
  if (written.startsWith('[')) return readAddress(written);
  const decoded = decodeOnce(written);
  const host = decoded === undefined ? undefined : asciiDomain(decoded)?.replace(/\.$/, '');
  if (host === undefined || !HOST_CHARACTERS.test(host) || host.endsWith('.')) return undefined;
  return ENDS_IN_NUMBER.test(host) ? readAddress(host) : host;
}

/** Characters that URL parsers leave in the name of a host. */
const DOMAIN = /^[a-z0-9\-._~!$&'()*+,;=]+$/;

/**
 * The host of a URL of a special scheme as libraries read it, also a name that some of them refuse: a restriction holds
 * for whoever takes it. Undefined where none does.
 */
export function libraryHost(written: string): string | undefined {
  const decoded = written.startsWith('[') ? undefined : decodeOnce(written);
  const host = decoded === undefined ? undefined : (asciiDomain(decoded) ?? decoded.toLowerCase());
  if (host === undefined || ENDS_IN_NUMBER.test(host.replace(/\.$/, ''))) return readAddress(written);
  return DOMAIN.test(host) ? host : undefined;
}

function decodeOnce(written: string): string | undefined {
  if (!written.includes('%')) return written;
  try {
    return decodeURIComponent(written);
  } catch {
    return undefined;
  }
}

/** An address in any notation, in the one that it is compared in. */
function readAddress(written: string): string | undefined {
  const url = `http://${written}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  return ADDRESS_CHARACTERS.test(hostname) ? bareHost(hostname) : undefined;
}

/** Letters whose encoding differs between IDNA 2003 and IDNA 2008 (UTS #46, deviation characters). */
const DEVIATING = /[ßẞς\u200c\u200d]/u;
/** The characters of host names. Programs disagree about where a host with any other character ends. */
const HOST_CHARACTERS = /^[a-z0-9._-]+$/;
const ADDRESS_CHARACTERS = /^(?:[0-9.]+|\[[0-9a-f:.]+\])$/;
/** A host whose last label is a number is an IPv4 address, or no host (WHATWG URL, "ends in a number"). */
const ENDS_IN_NUMBER = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;
const IPV4 = /^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$/;
/** Some readers take such a number for an octal one, and some for a decimal one. */
const LEADING_ZERO = /(?<![0-9a-z])0[0-9]/i;

/** Names of networks themselves, among them those of private ones (RFC 3172, RFC 8375). */
const INFRASTRUCTURE = 'arpa';

/**
 * Whether a URL names a public address, or a name below a top-level domain that the root zone delegates, as it is
 * written. Undefined where its host is. A name that only a private network completes or answers can still end in such a
 * label (docs/reference/policies.md#expressions).
 */
export function isPublicUrl(url: string): boolean | undefined {
  const host = hostOfUrl(url);
  if (host === undefined) return undefined;
  if (host.includes(':') || /^[0-9.]+$/.test(host)) return isAddressAllowed(host, 'public');
  const labels = host.split('.');
  const domain = labels.at(-1) ?? '';
  return labels.length > 1 && !labels.includes('') && domain !== INFRASTRUCTURE && isTopLevelDomain(domain);
}
