// Reads from the name and the first sentence of a tool what it is for: the class of a verb and of an object, such as to
// store something secret. No model is asked; what belongs to no class is for nothing that another tool could be for.
// English only.

import { isObject } from '../../protocol/jsonrpc.js';
import type { ScannedDefinition } from './scan.js';
import { splitName } from './splitting.js';

const VERBS = classesFrom({
  store: 'store storage save keep remember record write add create put persist memorize stash preserve archive',
  read: 'get read fetch retrieve list find search look query recall show view lookup load',
  send: 'send post publish forward deliver share notify',
  remove: 'delete remove erase clear forget',
  change: 'update edit modify change rename',
  run: 'run execute evaluate',
  pay: 'pay transfer charge refund',
});

const OBJECTS = classesFrom({
  secret: 'secret secure password passcode passphrase credential vault private confidential sensitive',
  note: 'note memo memory reminder',
  file: 'file document folder directory attachment',
  mail: 'email mail inbox',
  message: 'message chat channel conversation',
  task: 'task todo issue ticket bug',
  event: 'event meeting calendar appointment',
  contact: 'contact',
  page: 'page wiki article',
  payment: 'payment invoice transaction money order',
  code: 'repository repo branch commit',
  table: 'database table row sql',
  web: 'web url site website internet',
  weather: 'weather forecast',
  image: 'image picture photo',
});

function classesFrom(table: { readonly [name: string]: string }): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).flatMap(([name, list]) => list.split(' ').map((term): [string, string] => [term, name])),
  );
}

const MAX_TERMS = 40;
const MAX_SENTENCE = 400;

/** What a tool is for: each a verb and an object. Empty for anything but a tool. */
export function purposesOf({
  kind,
  name,
  definition,
}: Pick<ScannedDefinition, 'kind' | 'name' | 'definition'>): readonly string[] {
  if (kind !== 'tool' || !isObject(definition)) return [];
  const { description } = definition;
  const text = typeof description === 'string' ? description.slice(0, MAX_SENTENCE) : '';
  const [sentence = ''] = text.trim().split(/[.!?\n]/);
  const terms = `${splitName(name)} ${sentence.toLowerCase()}`.split(/[^\p{L}]+/u);
  const forms = terms.slice(0, MAX_TERMS).flatMap(formsOf);
  const verbs = new Set(forms.flatMap((form) => VERBS.get(form) ?? []));
  const objects = new Set(forms.flatMap((form) => OBJECTS.get(form) ?? []));
  return [...verbs].flatMap((verb) => [...objects].map((object) => `${verb} ${object}`));
}

/** A word and what it may be an inflection of. */
function formsOf(word: string): readonly string[] {
  const root = /^(.{2,}?)(?:s|es|ed|d|ing)$/.exec(word)?.[1];
  if (root === undefined) return [word];
  return [word, root, `${root}e`, root.replace(/(.)\1$/, '$1'), root.replace(/i$/, 'y')];
}
