// Parsers that agree: odd bodies go through admission, and what leaves is read by models of the parsers
// that upstreams have. `npm run clients` does the same with those of Python and Go themselves.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { corpus, goodCall, MAX_DEPTH, mutate } from '../../../clients/corpus.mjs';
import { admitPost } from '../../../src/protocol/admission.js';
import type { AdmittedMessage } from '../../../src/protocol/admitted-request.js';
import { applyEdits, MAX_JSON_DEPTH } from '../../../src/protocol/json/json.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import {
  MODEL_PARSERS,
  memberOf,
  type Parser,
  readNodes,
  readsAs,
  withExactCase,
} from '../../support/model-parsers.js';
import { opener, SESSION } from './admission.js';

function admit(body: Uint8Array): AdmittedMessage | undefined {
  const outcome = admitPost({
    headers: { 'mcp-session-id': 's-1' },
    repeated: new Set(),
    body,
    openSession: opener(SESSION),
  });
  return outcome.kind === 'admitted' ? outcome : undefined;
}

/** What a program behind this parser takes the call for: the members that decide. */
function disagreement(parser: Parser, text: string, expected: Json): string | undefined {
  const node = readNodes(text);
  const value = expected as { readonly [name: string]: Json };
  const params = (value['params'] ?? {}) as { readonly [name: string]: Json };
  const meta = (params['_meta'] ?? {}) as { readonly [name: string]: Json };
  const nodes = memberOf(parser, node, 'params');
  const metaNode = memberOf(parser, nodes, '_meta');
  const version = 'io.modelcontextprotocol/protocolVersion';
  const differing = [
    ...['jsonrpc', 'id', 'method'].filter((name) => !readsAs(parser, memberOf(parser, node, name), value[name])),
    ...['name', 'uri', 'task', 'requestState'].filter(
      (name) => !readsAs(parser, memberOf(parser, nodes, name), params[name]),
    ),
    // Names of arguments are the tool's own: which of them may not have a twin in another case is a matter of policy.
    ...['arguments'].filter((name) => !readsAs(withExactCase(parser), memberOf(parser, nodes, name), params[name])),
    ...['progressToken', version].filter((name) => !readsAs(parser, memberOf(parser, metaNode, name), meta[name])),
  ];
  return differing.length === 0 ? undefined : `${parser.title}: ${differing.join(', ')}`;
}

function disagreements(body: Uint8Array): readonly string[] {
  const admitted = admit(body);
  if (admitted === undefined) return [];
  const leaving = applyEdits(admitted.text, admitted.edits);
  const expected = JSON.parse(leaving) as Json;
  return MODEL_PARSERS.map((parser) => disagreement(parser, leaving, expected)).filter((each) => each !== undefined);
}

function disagreementsUnguarded(body: Uint8Array): readonly string[] {
  const text = new TextDecoder().decode(body);
  const expected = JSON.parse(text) as Json;
  return MODEL_PARSERS.map((parser) => disagreement(parser, text, expected)).filter((each) => each !== undefined);
}

const titled = (title: string): Uint8Array => corpus.find((one) => one.title === title)?.bytes ?? new Uint8Array();

describe('a body that parsers may read differently', () => {
  it('[K-01] is as deep in the corpus as our reader allows', () => {
    expect(MAX_DEPTH).toBe(MAX_JSON_DEPTH);
  });

  it.each(['an argument with a Kelvin sign', 'an argument with a long s', 'many arguments, the last twice'])(
    '[K-01] passes where only names of the tool differ in case: %s',
    (title) => {
      expect(admit(titled(title))).toBeDefined();
    },
  );

  it.each(corpus)('[K-01] is refused or read alike: $title', ({ bytes }) => {
    expect(disagreements(bytes)).toEqual([]);
  });

  it('[K-01] is refused or read alike wherever pieces are put in, taken out or doubled', () => {
    let admittedCount = 0;
    fc.assert(
      fc.property(fc.infiniteStream(fc.double({ min: 0, max: 0.999_999, noNaN: true })), (draws) => {
        const body = mutate(() => Number(draws.next().value));
        if (admit(body) !== undefined) admittedCount += 1;
        expect(disagreements(body)).toEqual([]);
      }),
      { numRuns: 3_000 },
    );
    expect(admittedCount).toBeGreaterThan(0);
  });

  it('[K-01] would be read differently were it let through', () => {
    for (const title of [
      'the name twice',
      'the name twice, one escaped',
      'the method in another case before',
      'a NUL within a name',
      'the arguments only in another case',
      'a long s in the word arguments',
      'a progress token in another case',
      'a version of another era in another case',
    ]) {
      expect(admit(titled(title)), title).toBeUndefined();
      expect(disagreementsUnguarded(titled(title)), title).not.toEqual([]);
    }
  });

  it.each([
    'a byte order mark',
    'UTF-16',
    'a NUL behind',
    'a second message behind',
    'a surrogate in UTF-8',
    'an overlong slash',
    'a high surrogate alone',
    'a lone surrogate in a name',
    'the value NaN',
    'arrays one too deep',
    'objects too deep',
    'arrays that overflow a stack',
    '__proto__ as an argument',
    '__proto__ escaped',
    'a raw NUL in a string',
    'a comma too many',
  ])('[K-01] is refused, since some parser reads it otherwise: %s', (title) => {
    expect(titled(title).byteLength).toBeGreaterThan(0);
    expect(admit(titled(title))).toBeUndefined();
  });

  it.each([
    'nothing odd',
    'white space around',
    'white space within',
    'escapes of every kind',
    'a surrogate pair, escaped',
    'a raw DEL and a raw line separator',
    'the value 1.0',
    'the value 1E+2',
    'the value 9007199254740991',
    // Numbers that nothing reads are the server's own: policy refuses them where a rule reads them.
    'the value 1e400',
    'the value 9007199254740993',
    'arrays as deep as allowed',
    'constructor as an argument',
    'a member without a name, once',
  ])('[K-01] passes byte for byte where nobody reads it otherwise: %s', (title) => {
    const body =
      title === 'a member without a name, once'
        ? new TextEncoder().encode(goodCall.replace('"id":"safe"', '"id":"safe","":1'))
        : titled(title);
    const outcome = admit(body);
    expect(outcome?.edits).toEqual([]);
    expect(outcome?.text).toBe(new TextDecoder().decode(body));
  });
});
