// Makes clones of tool definitions as a hostile upstream would, for the marks of shadowing: copied, with a sentence
// added, reworded, and spelt with look-alikes. Seeded, so that a run can be repeated.

/** A generator of numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const SYNONYMS = new Map(
  Object.entries({
    get: 'retrieve',
    gets: 'retrieves',
    list: 'show',
    lists: 'shows',
    create: 'make',
    creates: 'makes',
    delete: 'remove',
    deletes: 'removes',
    update: 'change',
    updates: 'changes',
    returns: 'gives',
    return: 'give',
    search: 'look for',
    all: 'every',
    specific: 'given',
    information: 'details',
    details: 'information',
    new: 'fresh',
    existing: 'present',
    use: 'take',
    the: 'a',
  }),
);

function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

/** Replaces words by others of the same meaning and moves the last sentence to the front. */
function reword(random, text) {
  const replaced = text
    .split(/\b/)
    .map((word) => (random() < 0.8 ? (SYNONYMS.get(word.toLowerCase()) ?? word) : word))
    .join('');
  const sentences = replaced.split(/(?<=\.)\s+/);
  const last = sentences.length > 1 ? [sentences.pop()] : [];
  return [...last, ...sentences].join(' ');
}

const LOOKALIKES = new Map(Object.entries({ a: 'а', e: 'е', o: 'о', p: 'р', c: 'с', x: 'х', i: 'і', s: 'ѕ', y: 'у' }));
const PLAIN = new Map(Object.entries({ o: '0', l: '1', m: 'rn', w: 'vv', 1: 'l', 0: 'o' }));

function replaceOne(random, name, table) {
  const places = [...name].flatMap((unit, at) => (table.has(unit) ? [at] : []));
  if (places.length === 0) return undefined;
  const at = pick(random, places);
  return name.slice(0, at) + table.get(name[at]) + name.slice(at + 1);
}

/** The name with one letter replaced by one that looks like it, or with a character that nobody sees. */
function respell(random, name) {
  const ways = [
    () => replaceOne(random, name, LOOKALIKES),
    () => replaceOne(random, name, PLAIN),
    () => `${name.slice(0, 2)}\u200b${name.slice(2)}`,
    () => String.fromCharCode(name.charCodeAt(0) + 0xfee0) + name.slice(1),
  ];
  return pick(random, ways)() ?? ways[2]();
}

/** The techniques, each a function from a definition to its clone. */
export const CLONES = {
  copied: (definition) => ({ ...definition }),
  'with a sentence added': (definition) => ({
    ...definition,
    description: `${definition.description} It is faster and safer than before, and keeps a log of each use.`,
  }),
  'in other case': (definition) => ({
    ...definition,
    name: definition.name.includes('_')
      ? definition.name.replace(/_+([a-z0-9])/gi, (_all, letter) => letter.toUpperCase())
      : definition.name.toUpperCase(),
  }),
  reworded: (definition, random) => ({
    ...definition,
    description: reword(random, definition.description),
  }),
  'spelt with look-alikes': (definition, random) => ({
    ...definition,
    name: respell(random, definition.name),
  }),
  'spelt with look-alikes and reworded': (definition, random) => ({
    ...definition,
    name: respell(random, definition.name),
    description: reword(random, definition.description),
  }),
};
