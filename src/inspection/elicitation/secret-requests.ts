// Decides whether a text asks a person for a secret. The text is folded to what its reader sees and split into
// clauses. A clause that names a secret asks for it, unless it denies the request, says what happened to the
// secret, or means something else of that name. INVARIANT: doubt counts as asking.
// Source: MCP 2025-11-25, elicitation (no sensitive information through forms); UTS #39; UAX #15.

import { decodeEscapes, foldText } from '../detectors/decoded-text.js';
import { skeletonOf } from '../detectors/unicode.js';
import {
  ACTION,
  CHOICE,
  CHOSEN,
  CLAUSE_WORD,
  DENIAL_EN,
  ENDS_WEAK,
  ENDS_WEAK_ELSEWHERE,
  ENGLISH_KINDS,
  FIELD_END,
  FIELD_NAME,
  GRAMMARS,
  type Grammar,
  HARMLESS_BEFORE,
  HARMLESS_WHEN_ASKED,
  KINDS,
  LOGIN,
  MANY_MEANINGS,
  NAMED_AFTER,
  NAMING_AFTER,
  NAMING_BEFORE,
  NEEDED,
  NONE_EN,
  OF_A_LOGIN,
  OF_A_PERSON,
  OTHER_LANGUAGES,
  PLURAL,
  REQUEST,
  STATEMENT,
  TO_ACT,
  UNNEEDED_EN,
  UNSPACED_DONE,
  UNSPACED_GRAMMARS,
  UNSPACED_NAMED,
  UNSPACED_TERMS,
  UNSPACED_WEAK,
  VOIDS_EN,
  WEAK,
  WHICH_ONE,
  YES_OR_NO,
} from './form-wording.js';
import type { SecretTerms, TermMatch } from './secret-terms.js';

/**
 * The role of a text. `label`: names a field or addresses the person. `value`: a choice or a proposed value,
 * which does not ask where it only names a thing.
 */
export type TextRole = 'label' | 'value';

/** Whether a text asks for a secret in any reading that its reader may see. */
export function asksForSecret(text: string, role: TextRole = 'label'): boolean {
  return readingsOf(text).some((reading) => asksInReading(reading, role));
}

/** Whether a field of this name is for a secret. */
export function isSecretField(name: string): boolean {
  return readingsOf(name).some((reading) => {
    const written = normalizePhrase(reading);
    // `password2` counts as `password`.
    return [written, written.replace(/(?<=\p{L})\d+(?= )/gu, '')].some(
      (phrase) => FIELD_NAME.test(phrase) || FIELD_END.test(phrase) || asksInClause(phrase, 'label', false),
    );
  });
}

/** Letters that no decomposition makes Latin: with strokes, or look-alikes from rarer scripts. */
const MORE_LOOKALIKES: ReadonlyMap<string, string> = new Map(
  (
    'øo đd łl ħh ŧt ƀb ɍr ɏy ɇe ɉj ɨi ʉu ſs ʂs ɕc ɗd ɓb ɠg ƥp ƭt ƴy ȿs ꝑp ƿp ɒa ɐa ʋv ɯw ꞅs ꞓc ꞵb ' +
    'ꓑp ꓮa ꓢs ꓪw ꓳo ꓣr ꓓd ꓚc ꓰe ꓝf ꓖg ꓧh ꓲi ꓙj ꓗk ꓡl ꓟm ꓠn ꓔt ꓴu ꓦv ꓫx ꓬy ꓜz ꓐb ' +
    'ⲣp ⲁa ⲥc ⲟo ⲉe ⲕk ⲙm ⲛn ⲧt ⲭx ⳽s ⲓi ρp'
  )
    .split(' ')
    .map((pair) => [pair.slice(0, -1), pair.slice(-1)]),
);
const MARKUP = /<[/!?a-z][^<>]{0,500}>/gi;
const LATIN_MARK = /[\u0300-\u036f\u20d0-\u20f0]/g;
const TURNS_ROUND = /[\u202b\u202e\u2067]/;
/** Letters in squares and circles, and regional indicators, have no compatibility form. */
const ENCLOSED: readonly number[] = [0x1f150, 0x1f170, 0x1f1e6];
const ALPHABET = 26;
const CODE_OF_A = 0x61;
const EMPHASIS = /(?<=[\p{L}\p{N}])[*_~`^|\\"'\u00b7\u2022]+(?=[\p{L}\p{N}])/gu;
const LEET: ReadonlyMap<string, string> = new Map([
  ...['0o', '1i', '3e', '4a', '5s', '7t', '@a', '$s', '!i', '|l', '\u20ace'].map(
    (pair) => [pair.charAt(0), pair.charAt(1)] as const,
  ),
]);
const LEET_SIGN = /[0-9@$!|\u20ac]/;
const BEYOND_ASCII = /[^\t\n\r\x20-\x7e]/;
const LEET_WORD = /[a-z0-9@$!|\u20ac]*[a-z][a-z0-9@$!|\u20ac]*/gi;

function readingsOf(text: string): readonly string[] {
  const seen = decodeEscapes(foldText(text)).text;
  const readings = new Set<string>();
  const add = (reading: string): void => {
    const folded = foldLetters(reading);
    readings.add(folded);
    readings.add(folded.replace(EMPHASIS, ''));
    readings.add(folded.replace(LEET_WORD, readDigits));
  };
  add(seen.replace(MARKUP, ' '));
  if (seen.includes('<')) add(seen.replace(MARKUP, ''));
  if (TURNS_ROUND.test(text)) add([...seen].reverse().join(''));
  return [...readings];
}

function foldLetters(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text;
  // Marks are removed from Latin letters only; those of kana are composed again.
  const plain = text.normalize('NFKD').replace(LATIN_MARK, '').normalize('NFC');
  let folded = '';
  for (const character of skeletonOf(skeletonOf(plain).replace(/\u00df/g, 'ss'))) {
    folded += MORE_LOOKALIKES.get(character) ?? foldEnclosed(character);
  }
  return folded;
}

function foldEnclosed(character: string): string {
  if (character.length === 1) return character;
  const code = character.codePointAt(0) ?? 0;
  const base = ENCLOSED.find((first) => code >= first && code < first + ALPHABET);
  return base === undefined ? character : String.fromCharCode(CODE_OF_A + code - base);
}

/** Signs that end a sentence rather than stand for a letter. */
const END_SIGNS: ReadonlySet<string | undefined> = new Set(['!', '|']);

/** Reads `p4ssw0rd` as letters. A number on its own stays one. */
function readDigits(word: string): string {
  if (!LEET_SIGN.test(word)) return word;
  let end = word.length;
  while (END_SIGNS.has(word[end - 1])) end--;
  return [...word.slice(0, end)].map((character) => LEET.get(character) ?? character).join('');
}

/** The boundary between a Latin word and a script that does not separate words: `请输入PIN`. */
const SCRIPT_BORDER = /(?<=[a-z0-9])(?=[\u3040-\u30ff\u3400-\u9fff])|(?<=[\u3040-\u30ff\u3400-\u9fff])(?=[a-z0-9])/g;

/** What a text may say to its reader, each reading as lower-case words between single blanks. */
export function phrasesOf(text: string): readonly string[] {
  return readingsOf(text).map(normalizePhrase);
}

/** Lower-case words between single blanks. `apiKey` and `api_key` become two words. */
function normalizePhrase(text: string): string {
  const parted = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
  return ` ${(BEYOND_ASCII.test(parted) ? parted.replace(SCRIPT_BORDER, ' ') : parted)
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `;
}

const SENTENCE = /(?<=[.!?;:\u2026])\s+|(?<=[。！？；：])|\n\s*\n|\n\s*(?=[-*\u2022]|\d+[.)])/;
const CLAUSE =
  /[,;:，、；：()[\]{}\u2013\u2014]+(?=\s|[^\x20-\x7e]|$)|\s[-\u2013\u2014]+\s|[([{]|\s(?:but|however|so|then|and then|aber|sondern|mais|pero|sino)\s/i;
/** The rest of a list after a denial: `never enter your password, PIN or token`. */
const REST_OF_LIST =
  /^(?: (?:or|and|nor|any|other|your|our|the|a|an|here|in|this|form|chat|field|box|message|with|to|anyone|anybody|oder|und|ihre?n?|hier|ou|et|votre|ici|y|o|ni|su|aqui))* $/;
/** `type it below` after a sentence that named a secret. */
const PRONOUN =
  / (?<!(?:never|not|dont|t|nor|without) )(?:enter|type|paste|insert|provide|supply|give|share|send|submit|input|write|fill|put|drop|tell|what is|what s)(?: (?:us|me|in))?(?: (?:the|your|its))?(?: (?:current|old|new|existing|same|other|full|whole))? (?:it|them|one|yours|that|this one|this here)(?= )(?! (?:a|an|another) )/;

const STRONG_KINDS = [ENGLISH_KINDS, ...KINDS.map(({ kinds }) => kinds)];
const ALL_KINDS = [...STRONG_KINDS, WEAK];

function asksInReading(reading: string, role: TextRole): boolean {
  const lower = reading.toLowerCase();
  if (OTHER_LANGUAGES.some((password) => password.test(lower))) return true;
  let hasNamed = false;
  for (const sentence of reading.split(SENTENCE)) {
    const phrase = normalizePhrase(sentence);
    if ((hasNamed || STRONG_KINDS.some((kinds) => kinds.isIn(phrase))) && PRONOUN.test(phrase)) {
      return true;
    }
    if (asksInSentence(sentence, role)) return true;
    hasNamed ||= namesSecret(phrase);
  }
  return false;
}

/** Checks each clause separately, except for a list whose beginning was denied. */
function asksInSentence(sentence: string, role: TextRole): boolean {
  const end = sentence.trim().slice(-1);
  const isQuestion = end === '?' || end === '\uff1f';
  const isAnnounced = end === ':' || end === '\uff1a';
  const at = isAnnounced ? 'label' : role;
  let isDenied = false;
  for (const clause of sentence.split(CLAUSE)) {
    const phrase = normalizePhrase(clause);
    if (isDenied && !isQuestion && !isAnnounced && isRestOfList(phrase)) continue;
    if (asksInClause(phrase, at, isQuestion)) return true;
    isDenied ||= deniesInEnglish(phrase) || deniesInOtherLanguages(phrase);
  }
  return false;
}

/**
 * Whether two consecutive texts ask for a secret only together: `GitHub one-time` and `code`. A secret named in
 * one of them is left to the check of that text.
 */
export function asksAcross(first: string, second: string): boolean {
  const start = first.slice(-MAX_JOINED).replace(/[\s.:;,\-\u2026]+$/, '');
  const joined = `${start} ${second.slice(0, MAX_JOINED)}`;
  return (
    first !== '' &&
    second !== '' &&
    isNamedIn(joined) &&
    !isNamedIn(first.slice(-MAX_JOINED)) &&
    !isNamedIn(second.slice(0, MAX_JOINED)) &&
    asksForSecret(joined)
  );
}

const MAX_JOINED = 200;

function isNamedIn(text: string): boolean {
  return readingsOf(text).some((reading) => {
    const phrase = normalizePhrase(reading);
    return (
      STRONG_KINDS.some((kinds) => kinds.isIn(phrase)) || UNSPACED_TERMS.some(({ kinds }) => phrase.search(kinds) >= 0)
    );
  });
}

function namesSecret(phrase: string): boolean {
  return ALL_KINDS.some((kinds) => kinds.isIn(phrase));
}

function isRestOfList(phrase: string): boolean {
  let rest = phrase;
  for (const kinds of ALL_KINDS) rest = kinds.without(rest);
  return REST_OF_LIST.test(rest);
}

/** Each mention costs a look at its surroundings, so a clause with more of them counts as asking. */
const MAX_MENTIONS = 200;

function asksInClause(phrase: string, role: TextRole, isQuestion: boolean): boolean {
  if (ALL_KINDS.some((kinds) => hasMany(phrase, kinds))) return true;
  return (
    asksInEnglish(phrase, role, isQuestion) ||
    asksWeakly(phrase, role) ||
    asksInOtherLanguages(phrase, role) ||
    asksInUnspacedScript(phrase, role)
  );
}

function hasMany(phrase: string, kinds: SecretTerms): boolean {
  const matches = kinds.matches(phrase);
  for (let count = 0; count < MAX_MENTIONS; count++) if (matches.next().done === true) return false;
  return true;
}

const WINDOW = 160;
const MAX_TERMS_BEFORE = 9;

/** The nearest word before a secret that says what is done with it. */
type GoverningTerm = 'request' | 'choice' | 'action' | 'name' | 'none';

function asksInEnglish(phrase: string, role: TextRole, isQuestion: boolean): boolean {
  if (!ENGLISH_KINDS.isIn(phrase)) return false;
  const isDenied = deniesInEnglish(phrase);
  for (const match of ENGLISH_KINDS.matches(phrase)) {
    const kind = match[0];
    const before = phrase.slice(Math.max(0, match.index - WINDOW), match.index);
    const after = phrase.slice(match.index + kind.length, match.index + kind.length + WINDOW);
    if (isSecretAsked({ kind, before, after, phrase, role, isQuestion, isDenied })) return true;
  }
  return false;
}

/** Whether a secret's word names something else: `password reset link`, but not `password name`. */
function isOtherName(kind: string, after: string): boolean {
  if (/^ (?:a|an|its) (?:new )?(?:name|label|title|description|alias) /.test(after)) return true;
  return NAMING_AFTER.test(after) && !(CHOSEN.test(kind) && NAMED_AFTER.test(after));
}

type Mention = {
  readonly kind: string;
  readonly before: string;
  readonly after: string;
  readonly phrase: string;
  readonly role: TextRole;
  readonly isQuestion: boolean;
  readonly isDenied: boolean;
};

function isSecretAsked(mention: Mention): boolean {
  const { kind, before, after, phrase, isQuestion, isDenied } = mention;
  if (isDenied || isUnneeded(before, after) || isOtherName(kind, after)) return false;
  if (LOGIN.test(before)) return mention.role === 'label' || / (?:your|my) /.test(before);
  const governor = governorOf(before, kind);
  switch (governor) {
    case 'name':
      return false;
    case 'request':
      return true;
    case 'choice':
      return isChosen(kind, isQuestion);
    case 'action':
      return false;
    case 'none':
  }
  if (isFollowedByAction(after)) return false;
  const isStatement = STATEMENT.test(after) || /^ be [a-z]+ed /.test(after) || (isQuestion && YES_OR_NO.test(phrase));
  if (isStatement) return NEEDED.test(after) || asksAfter(after);
  return mention.role === 'label' || isLabelled(mention);
}

/** Choices and proposed values are labels where they address the person. */
function isLabelled({ kind, before, after, phrase }: Mention): boolean {
  if (/ (?:your|my|our)(?: [^ ]+){0,3}$/.test(before) || NEEDED.test(after)) return true;
  return phrase.length > kind.length + MAX_CHOICE_CHARS;
}

const MAX_CHOICE_CHARS = 40;

function isChosen(kind: string, isQuestion: boolean): boolean {
  return CHOSEN.test(kind) && !isQuestion;
}

function governorOf(before: string, kind: string): GoverningTerm {
  const precedingTerms = before.trim().split(' ').slice(-MAX_TERMS_BEFORE);
  for (let at = precedingTerms.length - 1; at >= 0; at--) {
    const governor = governing(precedingTerms[at] ?? '', precedingTerms[at - 1] ?? '', kind);
    if (governor !== undefined) return governor;
  }
  return 'none';
}

function governing(word: string, previous: string, kind: string): GoverningTerm | undefined {
  if (/^(?:of|for|on|behind|to)$/.test(word) && isNaming(previous, kind)) return 'name';
  if (CLAUSE_WORD.test(word)) return 'none';
  if (CHOICE.test(word) && previous !== 'to') return 'choice';
  if (ACTION.test(word)) return 'action';
  return REQUEST.test(word) ? 'request' : undefined;
}

function isNaming(noun: string, kind: string): boolean {
  return NAMING_BEFORE.test(noun) || (noun === 'number' && PLURAL.test(kind));
}

/** `token to revoke`, `key do you want to rotate`. */
function isFollowedByAction(after: string): boolean {
  const [, verb = ''] = TO_ACT.exec(after) ?? [];
  if (ACTION.test(verb)) return true;
  const [which] = WHICH_ONE.exec(after) ?? [];
  if (which === undefined) return false;
  return after
    .trim()
    .split(' ')
    .slice(2, 8)
    .some((word) => ACTION.test(word) && !/^us/.test(word));
}

/** `your password is what you must enter`, but not `your password was changed enter your name`. */
function asksAfter(after: string): boolean {
  const followingTerms = after.trim().split(' ');
  return followingTerms.some((word, at) => {
    const object = followingTerms[at + 1];
    return at > 0 && REQUEST.test(word) && (object === undefined || OBJECT.test(object));
  });
}

const OBJECT = /^(?:it|them|one|yours|here|below|now|first|end|us)$/;

function isUnneeded(before: string, after: string): boolean {
  if (UNNEEDED_EN.test(after)) return true;
  if (!NONE_EN.test(before)) return false;
  return !/ (?:cannot|can t|not|unable|impossible|nothing|nobody|stop|blocked) /.test(before + after);
}

function deniesInEnglish(phrase: string): boolean {
  if (VOIDS_EN.test(phrase)) return false;
  const denials = denialsIn(phrase);
  if (denials.length === 0) return false;
  // Every requesting word must be denied.
  let rest = phrase;
  for (const denial of denials) rest = rest.replace(denial, '');
  return !rest
    .trim()
    .split(' ')
    .some((word) => ASKS_AGAIN.test(word));
}

/** The denials in a phrase: `never ask you to enter`, `not need`. */
function denialsIn(phrase: string): readonly string[] {
  return [...phrase.matchAll(DENIAL_EN)].flatMap(([denial, first = '', second]) => {
    if (!REQUEST.test(first)) return [];
    const isBoth = second === undefined || REQUEST.test(second);
    return [isBoth ? denial : denial.slice(0, -` to ${second}`.length)];
  });
}

const ASKS_AGAIN =
  /^(?:enter|type|paste|insert|provide|supply|give|send|submit|input|tell|write|put|fill|confirm|verify|need|needs|require|requires|required|needed)$/;

function asksWeakly(phrase: string, role: TextRole): boolean {
  if (!WEAK.isIn(phrase)) return false;
  const isDenied = deniesInEnglish(phrase) || deniesInOtherLanguages(phrase);
  for (const match of WEAK.matches(phrase)) {
    const end = match.index + match[0].length;
    const before = phrase.slice(Math.max(0, match.index - WINDOW), match.index);
    const after = phrase.slice(end, end + WINDOW);
    if (isDenied || NAMING_AFTER.test(after) || isUnneeded(before, after)) continue;
    if (isWeakAsked(match[0], before, after, role)) return true;
  }
  return false;
}

const MAX_LABEL_TERMS = 4;
const NEAR = 4;

function isWeakAsked(kind: string, before: string, after: string, role: TextRole): boolean {
  const isPlural = /s$/.test(kind) && kind !== ' pass';
  if (!isPlural && (isAskedFor(kind, after) || isWeakAskedElsewhere(before, after))) return true;
  if (HARMLESS_WHEN_ASKED.test(before) || !ENDS_WEAK.test(after)) return false;
  const near = before.trim().split(' ').slice(-NEAR).join(' ');
  const governor = governorOf(` ${near}`, kind);
  if (governor === 'request') return !isPlural || / (?:your|my) /.test(before);
  if (governor === 'choice') return isChosen(kind, false);
  if (governor !== 'none' || isPlural || HARMLESS_BEFORE.test(before)) return false;
  if (/^(?: (?:is|are))? (?:needed|required|necessary|requested|missing|please)(?= )/.test(after)) {
    return true;
  }
  return isWeakLabel(kind, before, after, role);
}

/** `Which PIN do you use?` */
function isAskedFor(kind: string, after: string): boolean {
  return kind === ' pin' && /^ (?:do|did|have) you (?:use|have|set|chosen?) /.test(after);
}

/** Whether the phrase says nothing else: `API token`, `PIN:`. */
function isWeakLabel(kind: string, before: string, after: string, role: TextRole): boolean {
  if (!/^(?: (?:here|below|please|is))? $/.test(after)) return false;
  if (role === 'value') return / (?:your|my)(?: [^ ]+)?$/.test(before);
  const isShort = before.trim().split(' ').length < MAX_LABEL_TERMS;
  return isShort && (OF_A_LOGIN.test(before) || !MANY_MEANINGS.test(kind));
}

/** `Bitte TAN eingeben`, `Introduzca el PIN de su tarjeta`. */
function isWeakAskedElsewhere(before: string, after: string): boolean {
  if (!OF_A_PERSON.test(before) || !ENDS_WEAK_ELSEWHERE.test(after)) return false;
  const around = `${before} ${after}`;
  return KINDS.some(({ language }) => {
    const { request, other } = GRAMMARS[language];
    return (hasWord(around, request) || / wie lautet /.test(around)) && !hasWord(around, other);
  });
}

function asksInOtherLanguages(phrase: string, role: TextRole): boolean {
  return KINDS.some(({ language, kinds }) => {
    const mentions = [...kinds.matches(phrase)];
    if (mentions.length === 0) return false;
    const grammar = GRAMMARS[language];
    const isDenied = mayDeny(phrase, grammar);
    if (isDenied && mentions.every((mention) => isDeniedNear(phrase, mention, grammar))) return false;
    if (hasWord(phrase, grammar.request)) return true;
    if (hasWord(phrase, grammar.other)) return false;
    return role === 'label' || kinds.without(phrase).trim() !== '';
  });
}

function hasWord(phrase: string, wanted: RegExp): boolean {
  return phrase.split(' ').some((word) => wanted.test(word));
}

const MAX_DENIED_AFTER = 4;

/** Whether a denial in the clause could apply to a secret at all. Checked once per clause. */
function mayDeny(phrase: string, { denial, request, voids }: Grammar): boolean {
  const all = phrase.split(' ');
  return (
    all.some((word) => denial.test(word)) &&
    !all.some((word) => voids.test(word)) &&
    all.filter((word) => request.test(word)).length <= 1
  );
}

/** `niemals Ihr Passwort`, `Passwort wird nicht benötigt`: nothing else stands between denial and secret. */
function isDeniedNear(phrase: string, { 0: kind, index }: TermMatch, { denial, between, request }: Grammar): boolean {
  const before = phrase
    .slice(Math.max(0, index - WINDOW), index)
    .split(' ')
    .reverse();
  const after = phrase.slice(index + kind.length, index + kind.length + WINDOW).split(' ');
  const isJoining = (word: string): boolean => between.test(word) || request.test(word) || word === '';
  const reaches = (run: readonly string[], most: number): boolean => {
    const end = run.findIndex((word) => denial.test(word));
    return end >= 0 && end <= most && run.slice(0, end).every(isJoining);
  };
  // No request may follow the secret before the denial: `Passwort eingeben nicht speichern`.
  const end = after.findIndex((word) => denial.test(word));
  return (
    reaches(before, MAX_TERMS_BEFORE) ||
    (reaches(after, MAX_DENIED_AFTER) && !after.slice(0, end).some((word) => request.test(word)))
  );
}

function asksInUnspacedScript(phrase: string, role: TextRole): boolean {
  const text = phrase.replaceAll(' ', '').replace(UNSPACED_DONE, '').replace(UNSPACED_NAMED, '');
  if (UNSPACED_WEAK.test(text) && asksWeaklyInUnspacedScript(text)) return true;
  return UNSPACED_TERMS.some(({ language, kinds }) => {
    if (text.search(kinds) < 0) return false;
    const { request, denied, voids, other } = UNSPACED_GRAMMARS[language];
    const requestCount = text.match(request)?.length ?? 0;
    if (requestCount <= 1 && denied.test(text) && !voids.test(text)) return false;
    if (requestCount > 0) return true;
    if (other.test(text)) return false;
    return role === 'label' || text.replace(kinds, '') !== '';
  });
}

/** `请输入PIN`, but not `PIN已更改`. */
function asksWeaklyInUnspacedScript(text: string): boolean {
  return UNSPACED_TERMS.some(({ language }) => {
    const { request, denied, other } = UNSPACED_GRAMMARS[language];
    return text.search(request) >= 0 && !denied.test(text) && !other.test(text);
  });
}

function deniesInOtherLanguages(phrase: string): boolean {
  return KINDS.some(({ language }) => {
    const grammar = GRAMMARS[language];
    return (
      mayDeny(phrase, grammar) &&
      ALL_KINDS.some((kinds) => [...kinds.matches(phrase)].some((mention) => isDeniedNear(phrase, mention, grammar)))
    );
  });
}
