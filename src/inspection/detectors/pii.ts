// Finds payment cards, IBANs and US social security numbers in one text. Each kind needs evidence beyond its
// form: a check digit and an issuer range, a checksum and the country's length, or the numbering rules with
// separators or a cue word. A number that is part of another one (a decimal, a UUID, an identifier, an amount), or that
// stands under a name that speaks of something else, is not a card. Never changes a text.
// Source: ISO/IEC 7812-1 (annex B, Luhn); ISO 13616-1 and its SWIFT registry; ISO/IEC 7064 (mod 97-10); SSA POMS
// RM 10201.

import type { PiiKind } from '../../config/settings.js';
import type { Span } from '../../text/span.js';
import type { Hit } from './hit.js';
import { CARD_CUE, CARD_NAME, OTHER_MEANINGS, PROSE_NAME, SSN_CUE } from './known-names.js';
import { createValueNames, type FindValueName, type ValueName } from './value-names.js';

const LENGTHS =
  'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 ' +
  'DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 ' +
  'IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 ' +
  'MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 ' +
  'SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30';

/** Length of an IBAN in characters, by country code. */
export const IBAN_LENGTHS: ReadonlyMap<string, number> = new Map(
  LENGTHS.split(' ').map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

const MIN_CARD_DIGITS = 13;
const MAX_CARD_DIGITS = 19;
const CUE_WINDOW = 48;
/** Issuer ranges: first and last prefix, and the lengths issued under them. */
const ISSUERS: readonly (readonly [string, string, readonly number[]])[] = [
  ['4', '4', [13, 16, 19]],
  ['51', '55', [16]],
  ['2221', '2720', [16]],
  ['34', '34', [15]],
  ['37', '37', [15]],
  ['300', '305', [14]],
  ['36', '36', [14]],
  ['38', '39', [14]],
  ['3528', '3589', [16, 17, 18, 19]],
  ['6011', '6011', [16, 17, 18, 19]],
  ['644', '659', [16, 17, 18, 19]],
  ['62', '62', [16, 17, 18, 19]],
  ['5018', '5018', [15, 16, 19]],
  ['5020', '5020', [15, 16, 19]],
  ['5038', '5038', [15, 16, 19]],
  ['6304', '6304', [15, 16, 19]],
  ['6759', '6763', [15, 16, 19]],
];

const PREFIX_DIGITS = 4;

/** For each prefix of four digits, the lengths issued under it as a bit set. */
const LENGTHS_BY_PREFIX = new Uint32Array(10 ** PREFIX_DIGITS);
for (const [first, last, lengths] of ISSUERS) {
  const low = Number(first.padEnd(PREFIX_DIGITS, '0'));
  const high = Number(last.padEnd(PREFIX_DIGITS, '9'));
  for (let prefix = low; prefix <= high; prefix++) {
    for (const length of lengths) {
      LENGTHS_BY_PREFIX[prefix] = (LENGTHS_BY_PREFIX[prefix] ?? 0) | (1 << length);
    }
  }
}

function isIssued(digits: string): boolean {
  const lengths = LENGTHS_BY_PREFIX[Number(digits.slice(0, PREFIX_DIGITS))] ?? 0;
  return (lengths & (1 << digits.length)) !== 0;
}

function isIssuedPrefix(digits: string, at: number): boolean {
  return LENGTHS_BY_PREFIX[Number(digits.slice(at, at + PREFIX_DIGITS))] !== 0;
}

/** The Luhn check (ISO/IEC 7812-1, annex B). */
export function hasLuhnDigit(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 0x30;
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

const DIGIT_RUN = /\d(?:[ .-]?\d){12}/g;
const DIGITS = /\d{1,64}/g;

/** Payment cards, written without separators, in their usual groups, or in any groups after a cue word. */
function findCards(text: string, name: string | undefined): Hit[] {
  const hits: Hit[] = [];
  let names: FindValueName | undefined;
  const nameOf: FindValueName = (start, end) => {
    if (name !== undefined && isEntireText(text, start, end)) return { kind: 'member', name };
    names ??= createValueNames(text);
    return names(start, end);
  };
  DIGIT_RUN.lastIndex = 0;
  for (let match = DIGIT_RUN.exec(text); match !== null; match = DIGIT_RUN.exec(text)) {
    const groups = groupsFrom(text, match.index);
    const last = groups.at(-1);
    addCards(text, groups, nameOf, hits);
    DIGIT_RUN.lastIndex = last === undefined ? match.index + 1 : last.end;
  }
  return hits;
}

function isEntireText(text: string, start: number, end: number): boolean {
  return text.slice(0, start).trim() === '' && text.slice(end).trim() === '';
}

/** Groups of digits with one separator between them, from the digit at `from`. */
function groupsFrom(text: string, from: number): Span[] {
  const groups: Span[] = [];
  let at = from;
  for (;;) {
    DIGITS.lastIndex = at;
    const match = DIGITS.exec(text);
    if (match === null || match.index !== at) return groups;
    let end = at + match[0].length;
    while (isDigit(text.charCodeAt(end))) end++;
    groups.push({ start: at, end });
    if (!isSeparator(text.charAt(end))) return groups;
    at = end + 1;
  }
}

function isSeparator(unit: string): boolean {
  return unit === ' ' || unit === '-' || unit === '.';
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** A run of groups, its digits joined, and the offset of each group in them. */
type DigitRun = {
  readonly text: string;
  readonly groups: readonly Span[];
  readonly digits: string;
  readonly offsets: readonly number[];
  readonly nameOf: FindValueName;
};

function addCards(text: string, groups: readonly Span[], nameOf: FindValueName, hits: Hit[]): void {
  const digits = groups.map((group) => text.slice(group.start, group.end)).join('');
  const offsets = [0];
  for (const { start, end } of groups) offsets.push((offsets.at(-1) ?? 0) + end - start);
  const run: DigitRun = { text, groups, digits, offsets, nameOf };
  for (let first = 0; first < groups.length; ) {
    const last = lastGroupOfCard(run, first);
    const head = groups[first];
    const tail = last === undefined ? undefined : groups[last];
    if (head !== undefined && tail !== undefined && last !== undefined) {
      hits.push({ kind: 'card', start: head.start, end: tail.end });
      first = last + 1;
    } else {
      first++;
    }
  }
}

function lastGroupOfCard(run: DigitRun, first: number): number | undefined {
  const start = run.offsets[first] ?? 0;
  if (!isIssuedPrefix(run.digits, start)) return undefined;
  for (let at = first; at < run.groups.length; at++) {
    const end = run.offsets[at + 1] ?? 0;
    if (end - start > MAX_CARD_DIGITS) return undefined;
    if (end - start < MIN_CARD_DIGITS || !isCardNumber(run.digits.slice(start, end))) continue;
    if (isWrittenAsCard(run, first, at)) return at;
  }
  return undefined;
}

/** Whether digits have an issued range and length and a valid check digit. */
export function isCardNumber(digits: string): boolean {
  if (digits.length < MIN_CARD_DIGITS || digits.length > MAX_CARD_DIGITS) return false;
  return isIssued(digits) && hasLuhnDigit(digits) && new Set(digits).size > 1;
}

/**
 * Whether a cue stands before a number, and not at the end of a longer word that begins further away. The mark of a
 * redaction is not a cue, although it names its kind.
 */
function isCuedBy(cue: RegExp, text: string, start: number): boolean {
  const before = text.slice(Math.max(0, start - 2 * CUE_WINDOW), start).replace(/\[redacted:[^\]]{1,48}\]/g, '');
  cue.lastIndex = Math.max(0, before.length - CUE_WINDOW);
  return cue.test(before);
}

const USUAL_GROUPS = new Set(['4-4-4-4', '4-6-5', '4-6-4', '4-4-4-4-3', '4-4-4-1', '6-13']);

function isWrittenAsCard(run: DigitRun, first: number, last: number): boolean {
  const { text, groups } = run;
  const start = groups[first]?.start ?? 0;
  const end = groups[last]?.end ?? 0;
  const isCued = isCuedBy(CARD_CUE, text, start);
  if (first === last) return isBareCard(run, { start, end }, isCued);
  const separator = text.charAt(groups[first]?.end ?? 0);
  if (!isEvenlySeparated(run, first, last, separator)) return false;
  if (separator === '-' && isPartOfIdentifier(text, start, end)) return false;
  if (isUsualGrouping(groups.slice(first, last + 1).map(sizeOf), separator)) {
    return !isInSeries(run, first, last);
  }
  return isCued && separator !== '.';
}

/** The groups in which cards are printed, or digit by digit, or in pairs. */
function isUsualGrouping(sizes: readonly number[], separator: string): boolean {
  // Two groups with a dot between them are a decimal.
  if (separator === '.' && sizes.length === 2) return false;
  if (USUAL_GROUPS.has(sizes.join('-'))) return true;
  const [size = 0] = sizes;
  return separator !== '.' && size <= 2 && sizes.every((one) => one === size);
}

function isEvenlySeparated({ text, groups }: DigitRun, first: number, last: number, separator: string): boolean {
  return groups.slice(first, last).every(({ end }) => text.charAt(end) === separator);
}

/** A UUID, or the dashes of another identifier. */
function isPartOfIdentifier(text: string, start: number, end: number): boolean {
  return (
    /[A-Za-z0-9_]-?$/.test(text.slice(Math.max(0, start - 2), start)) ||
    /^-?[A-Za-z0-9_]/.test(text.slice(end, end + 2))
  );
}

/** Four groups and the expiry or the year beside them are still one card. */
const MAX_GROUPS_OF_CARD = 5;

/**
 * Whether groups belong to a longer series of numbers of the same size, such as the row of a table. Cards in a row are
 * no such series.
 */
function isInSeries(run: DigitRun, first: number, last: number): boolean {
  const size = sizeOf(run.groups[first]);
  const groups = run.groups.slice(first, last + 1);
  if (!groups.every((group) => sizeOf(group) === size)) return false;
  const { from, to } = seriesAround(run, first);
  const most = size <= 2 ? groups.length : MAX_GROUPS_OF_CARD;
  if (to - from <= most) return false;
  for (let at = from; at + 4 <= to; at += 4) {
    const block = run.digits.slice(run.offsets[at] ?? 0, run.offsets[at + 4] ?? 0);
    if (!isCardNumber(block)) return true;
  }
  return size <= 2;
}

/** The groups of the same size with the same separators around one. `to` is the first behind them. */
function seriesAround({ text, groups }: DigitRun, first: number): { readonly from: number; readonly to: number } {
  const size = sizeOf(groups[first]);
  const separator = text.charAt(groups[first]?.end ?? 0);
  const belongs = (at: number): boolean =>
    sizeOf(groups[at]) === size && text.charAt(groups[at]?.end ?? 0) === separator;
  let from = first;
  while (from > 0 && belongs(from - 1)) from--;
  let to = first;
  while (belongs(to)) to++;
  return { from, to: sizeOf(groups[to]) === size ? to + 1 : to };
}

function sizeOf(group: Span | undefined): number {
  return group === undefined ? 0 : group.end - group.start;
}

/** After these characters digits go on with something else: a word, a path, an amount, a phone number. */
const BOUND_BEFORE = /(?:[A-Za-z0-9_@#$\u20ac\u00a3\u00a5+/\\-]|(?:^|[^\d,])\d{1,3},|(?:^|[^A-Za-z])\.)$/;
const ESCAPED_LINE = /\\[nrt]$/;
/** Before these, they are the beginning of something else. */
const BOUND_BEHIND = /^(?:[A-Za-z_%/@]|-[A-Za-z_])/;

/** Whether digits without separators are a card: no part of anything else, and no value of another name. */
function isBareCard({ text, nameOf }: DigitRun, { start, end }: Span, isCued: boolean): boolean {
  const before = text.slice(Math.max(0, start - 5), start);
  const behind = text.slice(end, end + 2);
  if (/\d\.$/.test(before) || /^\.\d/.test(behind)) return false;
  const named = nameOf(start, end);
  const isNamed = named === undefined ? undefined : isNameOfCard(named, isCued);
  if (isNamed !== undefined) return isNamed;
  if (isCued || ESCAPED_LINE.test(before)) return true;
  return !BOUND_BEFORE.test(before) && !BOUND_BEHIND.test(behind);
}

/** Whether a name speaks of a card; undefined where the number is one in prose. */
function isNameOfCard({ kind, name }: ValueName, isCued: boolean): boolean | undefined {
  if (kind === 'item') return false;
  if (isCardName(name)) return true;
  if (kind === 'label') return !isCued && isOtherLabel(name) ? false : undefined;
  if (PROSE_NAME.test(spacedName(name)) || (kind === 'key' && isCued)) return undefined;
  return kind === 'column' && isCued;
}

/** Words of a name, in lower case: `creditCardNo`, `credit_card_no` and `Credit card no.` are the same. */
function spacedName(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .join(' ')
    .trim();
}

/** Whether a member, key or heading speaks of a payment card, or only of a number. */
export function isCardName(name: string): boolean {
  return CARD_NAME.test(spacedName(name));
}

/** Whether what stands before a colon names something else than a card. Words of prose do not. */
function isOtherLabel(label: string): boolean {
  return OTHER_MEANINGS.test(spacedName(label)) || /[a-z0-9][A-Z]|[\w$]\.[\w$]|_|^[$@]/.test(label);
}

const IBAN_START = /(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}[ -]?[A-Za-z0-9]/g;
const MAX_IBAN_CHARS = 34;

/** IBANs of the registered countries, with or without groups. */
function findIbans(text: string): Hit[] {
  const hits: Hit[] = [];
  IBAN_START.lastIndex = 0;
  for (let match = IBAN_START.exec(text); match !== null; match = IBAN_START.exec(text)) {
    const end = ibanEnd(text, match.index);
    if (end === undefined) continue;
    hits.push({ kind: 'iban', start: match.index, end });
    IBAN_START.lastIndex = end;
  }
  return hits;
}

function ibanEnd(text: string, start: number): number | undefined {
  const length = IBAN_LENGTHS.get(text.slice(start, start + 2).toUpperCase());
  if (length === undefined) return undefined;
  const { compact, end } = readGroups(text, start, length);
  if (compact.length !== length || ALPHANUMERIC.test(text.charAt(end))) return undefined;
  const isOneCase = compact === compact.toUpperCase() || compact === compact.toLowerCase();
  if (!isOneCase || !hasMod97(compact.toUpperCase())) return undefined;
  return text[end] === '-' || text[start - 1] === '-' || isInUuid(text, start) ? undefined : end;
}

const UUID_CHARS = 36;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;

/** Whether the character at `at` lies in a UUID, whose groups may look like an account number. */
function isInUuid(text: string, at: number): boolean {
  const from = Math.max(0, at - UUID_CHARS);
  for (const { index } of text.slice(from, at + UUID_CHARS).matchAll(UUID)) {
    if (from + index <= at && at < from + index + UUID_CHARS) return true;
  }
  return false;
}

const ALPHANUMERIC = /[A-Za-z0-9]/;

/** Up to `length` letters and digits from `start`, skipping single blanks and dashes. */
function readGroups(text: string, start: number, length: number): { readonly compact: string; readonly end: number } {
  let compact = '';
  let at = start;
  for (; compact.length < length && at - start < 2 * MAX_IBAN_CHARS; at++) {
    const unit = text.charAt(at);
    if (ALPHANUMERIC.test(unit)) compact += unit;
    else if ((unit !== ' ' && unit !== '-') || !ALPHANUMERIC.test(text.charAt(at + 1))) break;
  }
  return { compact, end: at };
}

/** The checksum of ISO/IEC 7064, mod 97-10, over the rearranged number. */
function hasMod97(iban: string): boolean {
  let rest = 0;
  for (const unit of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(unit, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

const SSN = /(?<![\d.-])(\d{3})([-. ]?)(\d{2})\2(\d{4})(?![\d]|[-.]\d)/g;
const SSN_CUE_BEFORE = new RegExp(SSN_CUE, 'gi');

/** Whether a member name denotes a social security number. */
export function isSsnName(name: string): boolean {
  return SSN_CUE.test(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2'));
}

/** Numbers published in advertisements, which belong to no person. */
const PUBLISHED_SSNS = new Set(['078051120', '219099999', '123456789']);

/** US social security numbers: with separators, or after a cue word or name. */
export function findSsns(text: string, name?: string): Hit[] {
  const hits: Hit[] = [];
  const isNamed = name !== undefined && isSsnName(name);
  SSN.lastIndex = 0;
  for (let match = SSN.exec(text); match !== null; match = SSN.exec(text)) {
    const [matched, area = '', separator = '', group = '', serial = ''] = match;
    if (!isAssignable(area, group, serial)) continue;
    const { index } = match;
    const end = index + matched.length;
    if (isNamed || isCuedBy(SSN_CUE_BEFORE, text, index) || isSeparatedSsn(text, { start: index, end }, separator)) {
      hits.push({ kind: 'ssn', start: index, end });
    }
  }
  return hits;
}

/**
 * Whether the separators alone show a number of this kind: dashes outside identifiers, or blanks and dots where no other
 * number, word or sign of a number stands directly beside it.
 */
function isSeparatedSsn(text: string, { start, end }: Span, separator: string): boolean {
  if (separator === '-') return !isPartOfIdentifier(text, start, end);
  if (separator === '') return false;
  const isBeside =
    /[\dA-Za-z_$,/+]$|\d[ \t,|;]{1,8}$/.test(text.slice(Math.max(0, start - 9), start)) ||
    /^(?:[A-Za-z_%]|[ \t,|;]{1,8}-?\d|[.,]\d)/.test(text.slice(end, end + 10));
  return !isBeside;
}

function isAssignable(area: string, group: string, serial: string): boolean {
  if (area === '000' || area === '666' || area.startsWith('9')) return false;
  if (group === '00' || serial === '0000') return false;
  return !PUBLISHED_SSNS.has(area + group + serial);
}

/** Personal data of the given kinds. `name` is the member name before the text. */
export function findPersonal(text: string, kinds: readonly PiiKind[], name?: string): Hit[] {
  const cards = kinds.includes('card') ? findCards(text, name) : [];
  const ibans = kinds.includes('iban') ? findIbans(text) : [];
  return cards.concat(ibans, kinds.includes('ssn') ? findSsns(text, name) : []);
}
