// Bodies that parsers of several languages may read differently: what a test feeds our reader and what an
// upstream would parse with. Whole calls of a session, each with one thing written oddly. Values only.

const GOOD =
  '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_record","arguments":{"id":"safe"},"_meta":{"x":1}}}';

/** The good call with one stretch replaced. */
function changed(from, to) {
  if (!GOOD.includes(from)) throw new Error(`not in the good call: ${from}`);
  return Buffer.from(GOOD.replace(from, () => to));
}

const raw = (...parts) => Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));

const argument = (text) => changed('"id":"safe"', text);
const params = (text) => changed('"params":{', `"params":{${text},`);
/** The levels of objects and arrays that a message may have: `MAX_JSON_DEPTH` of our reader, which a test compares. */
export const MAX_DEPTH = 259;
/** Of these, the levels around the value of an argument. */
const OUTER_DEPTH = 3;

const nested = (open, close, depth) => argument(`"a":${open.repeat(depth)}1${close.repeat(depth)}`);

const DUPLICATES = [
  ['the name twice', params('"name":"write_record"')],
  ['the name twice, one escaped', params('"n\\u0061me":"write_record"')],
  ['the name twice, one in capitals', params('"NAME":"write_record"')],
  ['the arguments twice', params('"arguments":{"id":"evil"}')],
  ['the method twice', changed('"id":7', '"method":"tools/list","id":7')],
  ['the method in another case before', changed('"id":7', '"Method":"tools/list","id":7')],
  ['the method in another case behind', changed('"params":{', '"METHOD":"ping","params":{')],
  ['the id twice', changed('"id":7', '"id":8,"id":7')],
  ['the id in another case', changed('"id":7', '"ID":8,"id":7')],
  ['the params twice', changed('"params":{', '"params":{"name":"write_record"},"params":{')],
  ['an argument twice', argument('"id":"evil","id":"safe"')],
  ['an argument twice, one escaped', argument('"\\u0069d":"evil","id":"safe"')],
  ['an argument with a Kelvin sign', argument('"id":"safe","k":1,"\u212a":2')],
  ['an argument with a long s', argument('"id":"safe","s":1,"\u017f":2')],
  ['an argument with an escaped long s', argument('"id":"safe","s":1,"\\u017F":2')],
  ['an argument with a final sigma', argument('"id":"safe","\u03c3":1,"\u03c2":2')],
  ['a deep argument twice', argument('"a":[{"b":{"c":1,"d":2,"c":3}}]')],
  ['many arguments, the last twice', argument('"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"J":2')],
  ['a NUL at the end of a name', argument('"id\\u0000":"evil","id":"safe"')],
  ['a NUL within a name', argument('"id":"safe","id\\u0000x":"evil"')],
  ['a member without a name', argument('"":1,"":2')],
];

const FOLDED = [
  ['the name only in another case', changed('"name":', '"Name":')],
  ['the arguments only in another case', changed('"arguments":', '"Arguments":')],
  ['the params only in another case', changed('"params":', '"Params":')],
  ['the method only in another case', changed('"method":', '"Method":')],
  ['_meta only in another case', changed('"_meta":', '"_META":')],
  ['a long s in the word arguments', changed('"arguments":', '"argument\u017f":')],
  ['a long s in the word params', changed('"params":', '"param\u017f":')],
  ['a progress token in another case', changed('"x":1', '"ProgressToken":"t"')],
  [
    'a version of another era in another case',
    changed('"x":1', '"io.modelcontextprotocol/PROTOCOLVERSION":"2026-07-28"'),
  ],
  ['__proto__ as an argument', argument('"__proto__":{"id":"evil"}')],
  ['__proto__ in params', params('"__proto__":{"name":"write_record"}')],
  ['__proto__ escaped', argument('"\\u005f_proto__":{"id":"evil"}')],
  ['constructor as an argument', argument('"constructor":{"prototype":{"id":"evil"}}')],
];

const STRINGS = [
  ['escapes of every kind', argument('"id":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC"')],
  ['an escaped NUL in a value', argument('"id":"safe\\u0000evil"')],
  ['a surrogate pair, escaped', argument('"id":"\\ud83d\\ude00"')],
  ['a high surrogate alone', argument('"id":"\\ud83d"')],
  ['a low surrogate alone', argument('"id":"\\ude00"')],
  ['surrogates in the wrong order', argument('"id":"\\ude00\\ud83d"')],
  ['a high surrogate before a letter', argument('"id":"\\ud83dx"')],
  ['a lone surrogate in a name', argument('"\\ud83d":1')],
  ['a surrogate in UTF-8', argument(`"id":"${'#'}"`), Buffer.from([0xed, 0xa0, 0xbd])],
  ['an overlong slash', argument(`"id":"${'#'}"`), Buffer.from([0xc0, 0xaf])],
  ['a byte that is never UTF-8', argument(`"id":"${'#'}"`), Buffer.from([0xff])],
  ['a cut sequence', argument(`"id":"${'#'}"`), Buffer.from([0xe2, 0x82])],
  ['a code point past the last', argument(`"id":"${'#'}"`), Buffer.from([0xf4, 0x90, 0x80, 0x80])],
  ['a raw line end in a string', argument('"id":"a\nb"')],
  ['a raw NUL in a string', argument('"id":"a\u0000b"')],
  ['a raw DEL and a raw line separator', argument('"id":"\u007f\u2028"')],
  ['an escape that is none', argument('"id":"\\x41"')],
  ['an escaped apostrophe', argument('"id":"\\\'"')],
  ['a short escape', argument('"id":"\\u12"')],
  ['an escape with a sign', argument('"id":"\\u+123"')],
  ['single quotes', argument("'id':'safe'")],
  ['a name without quotes', argument('id:"safe"')],
].map(([title, body, bytes]) => [title, bytes === undefined ? body : splice(body, bytes)]);

function splice(body, bytes) {
  const at = body.indexOf('#');
  return raw(body.subarray(0, at), bytes, body.subarray(at + 1));
}

const NUMBERS = [
  ...['0', '-0', '1.0', '1e2', '1E+2', '0.1', '123456789012345', '9007199254740991'],
  ...['9007199254740992', '9007199254740993', '-9007199254740993', '18446744073709551616'],
  ...['1e400', '-1e400', '1e-400', '0.1000000000000000055', '1e308', '5e-324', '2e-324', '100e-2'],
  ...['01', '+1', '.5', '1.', '1e', '0x10', '1_000', 'NaN', 'Infinity', '-Infinity', '--1', '1e1.5'],
  ...['\u0661', '1n', '-', 'tru', 'True', 'None', 'undefined', 'nul', 'TRUE'],
].map((literal) => [`the value ${literal}`, argument(`"id":${literal}`)]);

const IDS = [
  '7.0',
  '7e0',
  '1e400',
  '9007199254740993',
  '9007199254740992',
  '-0',
  'null',
  'true',
  '[7]',
  '"7"',
  '""',
  '7.5',
].map((literal) => [`the id ${literal}`, changed('"id":7', `"id":${literal}`)]);

const FRAMING = [
  ['nothing odd', raw(GOOD)],
  ['a byte order mark', raw(Buffer.from([0xef, 0xbb, 0xbf]), GOOD)],
  ['UTF-16', Buffer.from(GOOD, 'utf16le')],
  ['UTF-16 with its mark', raw(Buffer.from([0xff, 0xfe]), Buffer.from(GOOD, 'utf16le'))],
  ['white space around', raw(' \t\r\n', GOOD, '\n\r\t ')],
  ['white space within', raw(GOOD.replaceAll(':', ' :\t').replaceAll(',', ' ,\r\n'))],
  ['a form feed before', raw('\f', GOOD)],
  ['a no-break space before', raw('\u00a0', GOOD)],
  ['a NUL behind', raw(GOOD, '\u0000')],
  ['a second message behind', raw(GOOD, '\n', GOOD.replace('read_record', 'write_record'))],
  ['a comma behind', raw(GOOD, ',')],
  ['a brace behind', raw(GOOD, '}')],
  ['a record separator before', raw('\u001e', GOOD)],
  ['a guard against hijacking before', raw(")]}',\n", GOOD)],
  ['the last brace missing', raw(GOOD.slice(0, -1))],
  ['nothing at all', raw('')],
  ['a comment before', raw('/* evil */', GOOD)],
  ['a comment within', argument('"id":"safe"/*,*/')],
  ['a line comment within', argument('"id":"safe"//\n')],
  ['a comma too many', argument('"id":"safe",')],
  ['a comma too many in an array', argument('"id":[1,]')],
  ['a comma missing', argument('"id":"safe" "x":1')],
  ['a string in two pieces', argument('"id":"sa" "fe"')],
  ['an array of one', raw('[', GOOD, ']')],
  ['a string that holds it', raw(JSON.stringify(GOOD))],
  ['brackets crossed', argument('"id":[{]}')],
];

const DEPTH = [
  ['arrays as deep as allowed', nested('[', ']', MAX_DEPTH - OUTER_DEPTH)],
  ['arrays one too deep', nested('[', ']', MAX_DEPTH - OUTER_DEPTH + 1)],
  ['objects too deep', nested('{"a":', '}', MAX_DEPTH + 1)],
  ['arrays that overflow a stack', nested('[', ']', 100_000)],
  ['arrays that never close', argument(`"a":${'['.repeat(5_000)}`)],
];

/** Every body with what is odd about it. */
export const corpus = [...DUPLICATES, ...FOLDED, ...STRINGS, ...NUMBERS, ...IDS, ...FRAMING, ...DEPTH].map(
  ([title, bytes]) => ({ title, bytes }),
);

/** The call that every body of the corpus is a spelling of. */
export const goodCall = GOOD;

const PIECES = [
  ...['{', '}', '[', ']', ':', ',', '"', '\\', ' ', '\n', '0', '1', 'e', '.', '-', '\\u0000', '\\ud83d'],
  ...['"id":', '"ID":', '"name":"x",', '"Name":"x",', '"arguments":{},', '"method":"ping",', '\u017f'],
  ...['\ufeff', '\u0000', '{}', '[]', 'null', 'true', '1e400', '9007199254740993', '__proto__', '_meta'],
];

/** A body with a few random pieces put in, taken out or doubled; `random` gives numbers below one. */
export function mutate(random) {
  let text = GOOD;
  const count = 1 + Math.floor(random() * 3);
  for (let i = 0; i < count; i += 1) {
    const at = Math.floor(random() * (text.length + 1));
    const span = Math.floor(random() * 24);
    const piece = PIECES[Math.floor(random() * PIECES.length)];
    const kind = Math.floor(random() * 4);
    if (kind === 0) text = text.slice(0, at) + piece + text.slice(at);
    else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + (span % 4));
    else if (kind === 2) text = text.slice(0, at) + text.slice(at, at + span) + text.slice(at);
    else text = text.slice(0, at) + text.slice(at, at + span).toUpperCase() + text.slice(at + span);
  }
  return Buffer.from(text);
}
