// The skeleton of a text: letters of other scripts that look like Latin ones, read as those. For
// comparing with cues only; never shown and never sent.
// Source: UTS #39 §4 (confusable detection); own small table of Cyrillic, Greek, Armenian and Cherokee.

const PAIRS =
  'аa еe оo рp сc уy хx іi ѕs јj ԁd һh ԛq ԝw ӏl ѵv гr тt мm кk вb нh пn ѡw ꙅs ԍg ғf ҫc ' +
  'АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ІI ЅS ЈJ ԌG ҮY ѴV ԚQ ԜW ' +
  'αa εe ιi κk νv οo ρp τt υu χx ωw ηn γy ϲc ' +
  'ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ' +
  'օo ոn սu ցg հh ѐe ёe ıi ɑa ɡg ɩi ʟl ʀr ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ᴍm ɴn ᴏo ᴘp ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz ' +
  'ᎪA ᏴB ᏟC ᎠD ᎬE ᏀG ᎻH ᎥI ᎫJ ᏦK ᏞL ᎷM ᏢP ᏒR ᏚS ᎢT ᏙV ᎳW';

const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  PAIRS.split(' ').map((pair) => [pair.slice(0, -1), pair.slice(-1)]),
);

/** True for a UTF-16 unit that looks like a Latin letter and is none. */
export function isConfusable(code: number): boolean {
  return LOOKALIKES.has(String.fromCharCode(code));
}

const NON_ASCII = /[^\x20-\x7e\s]/;

/** The text with look-alikes read as Latin letters. */
export function skeletonOf(text: string): string {
  if (!NON_ASCII.test(text)) return text;
  let read = '';
  for (const unit of text) read += LOOKALIKES.get(unit) ?? unit;
  return read;
}
