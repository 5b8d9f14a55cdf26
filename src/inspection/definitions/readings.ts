// Produces every reading of a string that a model may take from it: folded, with escapes decoded, with hidden
// characters made readable, reversed, decoded from base64 or hex, and with the words of German, French, Spanish,
// Italian, Portuguese, Russian, Chinese, Japanese and Korean that matter replaced by English ones, so that the rules
// read them (no translation: word order and everything else stay). Reports the means of hiding themselves. Linear.

import {
  decodeEscapes,
  findEncodedRuns,
  foldText,
  type NormalizedText,
  originalSpan,
} from '../detectors/decoded-text.js';
import {
  hiddenText,
  isConfusable,
  REVERSED,
  skeletonOf,
  stripInvisible,
  stripTerminalSequences,
} from '../detectors/unicode.js';

/** A text to be judged, and by what it was hidden, if it was. */
export type Reading = {
  readonly text: string;
  /** How positions of the reading map to the string itself; `undefined` for what was decoded. */
  readonly origin: NormalizedText | undefined;
  readonly hiddenBy: Concealment | undefined;
};

/** Means of hiding text from a reviewer. */
export type Concealment =
  | 'tag characters'
  | 'terminal sequences'
  | 'bidirectional controls'
  | 'invisible characters'
  | 'look-alike letters'
  | 'blank space'
  | 'a comment'
  | 'encoding'
  | 'other letter forms';

const MAX_DEPTH = 2;
const PUSHED = /(?:\n[ \t]{0,40}){12}[ \t]{0,40}\S|[ \t\u00a0]{80}[^\s|]/;
const BIDI = /[\u202a-\u202e\u2066-\u2069]/;
/** Words in full-width or mathematical letters, which a reader takes for plain ones. */
const OTHER_FORMS =
  /[\uff41-\uff5a]{3}[^\n]{0,40}[\uff41-\uff5a]{3}|[\u{1d400}-\u{1d7ff}]{3}[^\n]{0,40}[\u{1d400}-\u{1d7ff}]{3}/u;
/** A comment of more than two words. */
const COMMENT = /<!--(?!\s{0,9}\S{0,40}(?:\s\S{0,40})?\s{0,9}-->)/;
const PROSE = /[a-z]{2,24}[ ,]{1,2}[a-z]{2,24}[ ,]{1,2}[a-z]{1,24}/i;

/** All readings of a string, the plain one first, and the means of hiding that it uses. */
export function readingsOf(text: string): {
  readonly readings: readonly Reading[];
  readonly concealments: ReadonlySet<Concealment>;
} {
  const readings: Reading[] = [];
  const concealments = new Set<Concealment>();
  addReadings(text, MAX_DEPTH, undefined, readings, concealments);
  return { readings, concealments };
}

function addReadings(
  text: string,
  depth: number,
  hiddenBy: Concealment | undefined,
  readings: Reading[],
  concealments: Set<Concealment>,
): void {
  for (const found of concealmentsOf(text)) concealments.add(found);
  const isOriginal = hiddenBy === undefined;
  const push = (read: string, by: Concealment | undefined, origin?: NormalizedText): void => {
    if (read.trim() !== '') readings.push({ text: read, origin, hiddenBy: by ?? hiddenBy });
  };
  const folded = foldText(text);
  const decoded = decodeEscapes(folded);
  const keep = ({ text: read }: NormalizedText, origin: NormalizedText): void =>
    push(read, undefined, isOriginal ? origin : undefined);
  keep({ ...folded, text: joinSpaced(skeletonOf(folded.text)) }, folded);
  if (decoded !== folded) keep({ ...decoded, text: skeletonOf(decoded.text) }, decoded);
  const glossed = glossText(decoded);
  if (glossed !== undefined) keep(glossed, glossed);
  for (const { read, by } of unseenTexts(text)) push(read, by);
  if (depth === 0) return;
  for (const run of findEncodedRuns(decoded.text)) {
    if (PROSE.test(run.decoded)) concealments.add('encoding');
    addReadings(run.decoded, depth - 1, 'encoding', readings, concealments);
  }
}

/** What a text says in characters that nobody sees, or in reverse. */
function unseenTexts(text: string): readonly { readonly read: string; readonly by: Concealment }[] {
  const reversed = [...text.matchAll(REVERSED)].map((match) => ({
    read: [...(match[1] ?? '')].reverse().join(''),
    by: 'bidirectional controls' as const,
  }));
  return [{ read: skeletonOf(hiddenText(text)), by: 'tag characters' }, ...reversed];
}

function concealmentsOf(text: string): readonly Concealment[] {
  const found: Concealment[] = [];
  if (hiddenText(text) !== '') found.push('tag characters');
  if (stripTerminalSequences(text).count > 0) found.push('terminal sequences');
  if (BIDI.test(text)) found.push('bidirectional controls');
  const { count, unusual } = stripInvisible(text);
  if (count + unusual > 0) found.push('invisible characters');
  if (hasMixedScripts(text)) found.push('look-alike letters');
  if (PUSHED.test(text)) found.push('blank space');
  if (OTHER_FORMS.test(text)) found.push('other letter forms');
  if (COMMENT.test(text)) found.push('a comment');
  return found;
}

/** Whether a word mixes Latin letters with letters of other scripts that look like them. */
export function hasMixedScripts(text: string): boolean {
  if (!/[^\x20-\x7e\s]/.test(text)) return false;
  return text.split(/[^A-Za-z\u0250-\u1fff\ua640-\ua7ff]+/).some((token) => {
    const units = [...token].map((unit) => unit.charCodeAt(0));
    return /[A-Za-z]/.test(token) && units.some((code) => code > 0x7f && isConfusable(code));
  });
}

const SPACED = /(?<![a-z0-9])(?:[a-z][ .\-_*]){3,400}[a-z](?![a-z0-9])/gi;

/** Where the letters of a word have other marks between them, a blank parts the words: `r.e.a.d t.h.e f.i.l.e`. */
function joinRun(run: string): string {
  const parts = /[.\-_*]/.test(run) ? run.split(/ +/) : [run];
  return parts
    .map((word) => word.replace(/[ .\-_*]/g, ''))
    .join(' ')
    .padEnd(run.length);
}

/** A text of single characters, with wider gaps between its words. */
const ALL_SPACED = /(?<!\S)(?:\S {1,3}){15,2000}\S(?!\S)/g;

/** Letters that are set apart are joined: `i g n o r e`. A double gap parts the words. The length stays. */
function joinSpaced(spaced: string): string {
  const text = spaced.replace(ALL_SPACED, (run) =>
    run
      .split(/ {2,3}/)
      .map((word) => word.replaceAll(' ', ''))
      .join(' ')
      .padEnd(run.length),
  );
  return text.replace(SPACED, joinRun);
}

/** An English word, then words of other languages in alphabetic scripts; `*` stands for any ending. */
const VOCABULARY: readonly (readonly [string, string])[] = [
  ['user', 'benutzer* nutzer* anwender* utilisateur* usuari* utente utenti utilizador* пользовател* юзер*'],
  ['never', 'niemals nichts kein keine keinen jamais nunca nada nadie nessun* niente ninguém никогда ничего'],
  ['not', 'nicht ohne sans não'],
  [
    'read',
    'lies lese lesen öffne* lisez lire ouvrez leer lee lea leia abre abra leggi leggere прочит* прочти считай открой*',
  ],
  [
    'pass',
    'übergib übergeb* übermitt* schick* sende senden leite transmet* envoyez envoie inclure incluez pasa pasar pase envía envie envíe enviar incluye incluya inserisci* invia coloque* inclua переда* отправ* вставь включи',
  ],
  [
    'tell',
    'sag sage sagen sagt erwähn* verrat* mitteil* informier* dites mentionne* informez parlez parler révél* digas diga dile menciones dica dire dillo menzion* sappia conte сообща* говори* расска* упомин*',
  ],
  ['ignore', 'ignorier* missacht* vergiss ignorez oublie* ignora olvida dimentica esqueça игнорир* забуд*'],
  ['all', 'alle todas todos toutes tous tutte tutti все всех'],
  ['previous', 'bisherig* vorherig* vorig* précédent* anterior* antérieur* precedenti прежн* предыдущ*'],
  ['instructions', 'anweisung* instruccion* istruzion* instruções указани* инструкци*'],
  ['file', 'datei dateien fichier* archivo arquivo файл*'],
  ['content', 'inhalt* contenu contenido contenuto conteúdo содержим*'],
  ['password', 'passwort* passwörter kennwort* contraseña* senha senhas парол*'],
  ['private key', 'schlüssel* clave claves chave chiave ключ*'],
  [
    'conversation',
    'unterhaltung* gespräch* conversación conversazion* conversa разговор* диалог* переписк* nachricht* messaggi mensajes',
  ],
  ['before', 'bevor vor avant antes prima перед прежде'],
  ['every', 'jedem jeder jedes chaque cada ogni кажд*'],
  ['call', 'aufruf* verwende* benutz* utiliser usar usare utilizar llamada* appel chiamata использ* вызов*'],
  ['tool', 'werkzeug* outil outils herramienta* strumento ferramenta инструмент*'],
  ['parameter', 'feld paramètre* campo parámetro* parametro parâmetro* параметр* поле'],
  ['must', 'muss musst müssen doit devez debes debe devi deve должен должна нужно'],
  ['secretly', 'heimlich unbemerkt secrètement discrètement secreto silencio segreto тайно незаметно'],
];

/** The same for scripts without spaces between words, by characters. */
const TERMS: readonly (readonly [string, string])[] = [
  ['user', '用户 使用者 ユーザー 利用者 사용자'],
  [
    'never tell user',
    '不要告诉 不要告訴 不要提及 不要透露 勿告知 请勿告知 别告诉 知らせないで 言わないで 伝えないで 알리지 말하지',
  ],
  ['never', '不要 请勿 勿'],
  ['mention', '提及 提到 透露 告诉 告知'],
  ['answer', '回复 回答'],
  ['system prompt', '系统提示词 系统提示'],
  ['read', '读取 讀取 打开 閱讀 読み 読ん 読む 읽고 읽어 읽은'],
  ['pass', '传递 傳遞 发送 發送 放入 填入 附加 渡し 入れ 送信 送っ 含め 전달 보내 넣어'],
  ['ignore', '忽略 无视 無視 무시'],
  ['all', '所有 全部 すべて 全て 모든'],
  ['previous', '之前的 先前 以前の これまで 이전'],
  ['instructions', '指令 指示 说明 지시'],
  ['file', '文件 檔案 ファイル 파일'],
  ['content', '内容 內容 내용'],
  ['password', '密码 密碼 パスワード 비밀번호'],
  ['private key', '私钥 私鑰 密钥 秘密鍵 개인키'],
  ['conversation', '对话 對話 聊天记录 会話 대화'],
  ['before', '之前 使用前 前に 전에'],
  ['must', '必须 務必 请先 必ず 반드시'],
  ['parameter', '参数 參數 パラメータ 引数 매개변수'],
  ['secretly', '悄悄 秘密地 偷偷 密かに 몰래'],
];

const dictionary = new Map<string, string>();
for (const [english, list] of VOCABULARY) for (const word of list.split(' ')) dictionary.set(word, english);
const terms = new Map<string, string>();
for (const [english, list] of TERMS) for (const term of list.split(' ')) terms.set(term, english);
const MAX_TERM = Math.max(...[...terms.keys()].map(({ length }) => length));
const MIN_WORD = 3;
const MIN_STEM = 4;
const MAX_WORD = 24;
/** Fewer known words are a coincidence. */
const MIN_GLOSSED = 3;

const WORD = /[\p{L}]+|[^\p{L}]+/gu;
const UNSPACED = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;

/** The text with its foreign words replaced; `undefined` where there are too few of them. */
function glossText(text: NormalizedText): NormalizedText | undefined {
  const out = new Gloss(text);
  for (const match of text.text.matchAll(WORD)) {
    const [piece] = match;
    if (UNSPACED.test(piece)) glossUnspaced(piece, match.index, out);
    else out.put(piece, glossOf(piece), match.index);
  }
  return out.finish();
}

function glossOf(word: string): string | undefined {
  if (word.length < MIN_WORD || word.length > MAX_WORD) return undefined;
  const lower = word.toLowerCase();
  const exact = dictionary.get(lower);
  if (exact !== undefined) return exact;
  for (let end = lower.length; end >= MIN_STEM; end--) {
    const english = dictionary.get(`${lower.slice(0, end)}*`);
    if (english !== undefined) return english;
  }
  return undefined;
}

function glossUnspaced(piece: string, from: number, out: Gloss): void {
  for (let at = 0; at < piece.length; ) {
    let length = Math.min(MAX_TERM, piece.length - at);
    while (length > 1 && !terms.has(piece.slice(at, at + length))) length--;
    const term = piece.slice(at, at + length);
    out.put(term, terms.get(term), from + at);
    at += length;
  }
}

class Gloss {
  readonly #read: NormalizedText;
  #text = '';
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #glossed = new Set<string>();

  constructor(read: NormalizedText) {
    this.#read = read;
  }

  put(piece: string, english: string | undefined, from: number): void {
    const written = english === undefined ? piece : ` ${english} `;
    if (english !== undefined) this.#glossed.add(english);
    for (let at = 0; at < written.length; at++) {
      const isOwn = english === undefined;
      const start = isOwn ? from + at : from;
      const span = originalSpan(this.#read, start, isOwn ? start + 1 : from + piece.length);
      this.#starts.push(span.start);
      this.#ends.push(span.end);
    }
    this.#text += written;
  }

  finish(): NormalizedText | undefined {
    if (this.#glossed.size < MIN_GLOSSED) return undefined;
    const map = { starts: Int32Array.from(this.#starts), ends: Int32Array.from(this.#ends) };
    return { text: this.#text.replace(/[。！？；]/g, ';').replace(/[、，：]/g, ','), map };
  }
}
