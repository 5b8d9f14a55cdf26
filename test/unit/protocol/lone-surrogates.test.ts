import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonText } from '../../../src/protocol/json/json.js';
import { mendLoneSurrogates, readMended } from '../../../src/protocol/lone-surrogates.js';
import { LEFT_OUT } from '../../../src/protocol/odd-items.js';

const LONE = /\p{Surrogate}/gu;

const HALF = '\ud83d';

function mend(message: unknown): unknown {
  const mended = mendLoneSurrogates(JSON.stringify(message));
  return mended && { message: JSON.parse(mended.text), ...mended, text: undefined };
}

describe('a message with half of a surrogate pair', () => {
  it.each([
    ['a text', { result: { content: [{ text: `a${HALF}` }] } }, 'result/content/0/text'],
    ['data', { result: { structuredContent: { uri: HALF } } }, 'result/structuredContent/uri'],
    ['an error', { error: { code: 1, message: HALF } }, 'error/message'],
    ['a description', { result: { tools: [{ description: HALF }] } }, 'result/tools/0/description'],
    ['a title of a resource', { result: { resources: [{ name: HALF }] } }, 'result/resources/0/name'],
  ])('has U+FFFD in %s', (_, message, place) => {
    const complete = JSON.parse(JSON.stringify(message).replaceAll('\\ud83d', '\\ufffd'));
    expect(mend(message)).toEqual({
      message: complete,
      replaced: [place.split('/').map((step) => (/^\d+$/.test(step) ? Number(step) : step))],
      leftOut: [],
      text: undefined,
    });
  });

  const ITEM = { uri: 'file:///a', text: 'ok' };
  it.each([
    [
      'a content whose URI',
      { result: { contents: [{ uri: HALF, text: HALF }, ITEM] } },
      { result: { contents: [ITEM] } },
    ],
    [
      'a block whose resource',
      { result: { content: [ITEM, { type: 'resource', resource: { uri: HALF } }] } },
      { result: { content: [ITEM] } },
    ],
    [
      'a block whose link',
      { result: { content: [{ type: 'resource_link', uri: HALF }] } },
      { result: { content: [] } },
    ],
    [
      'a tool whose name',
      { result: { tools: [{ name: 'a' }, { name: HALF }, { name: 'b' }] } },
      { result: { tools: [{ name: 'a' }, LEFT_OUT['lone-surrogate'], { name: 'b' }] } },
    ],
    [
      'a tool of which a property',
      {
        result: {
          tools: [{ name: 'a', inputSchema: { properties: { [HALF]: {} } } }, { name: 'b' }],
        },
      },
      { result: { tools: [LEFT_OUT['lone-surrogate'], { name: 'b' }] } },
    ],
    [
      'a resource whose URI',
      { result: { resources: [{ name: 'a', uri: HALF }] } },
      { result: { resources: [LEFT_OUT['lone-surrogate']] } },
    ],
    ['a cursor that', { result: { tools: [], nextCursor: HALF } }, { result: { tools: [] } }],
    [
      'members whose names',
      { result: { structuredContent: { [HALF]: 1, a: 2, '\ude00': HALF } } },
      { result: { structuredContent: { a: 2 } } },
    ],
    [
      'a member of `_meta` whose name',
      { result: { _meta: { [HALF]: 1 }, content: [] } },
      { result: { _meta: {}, content: [] } },
    ],
  ])('loses %s has it, and nothing beside', (_, message, left) => {
    expect(mend(message)).toMatchObject({ message: left, replaced: [] });
    expect(mend(message)).not.toMatchObject({ leftOut: [] });
  });

  it.each([
    ['id', { id: HALF, result: {} }],
    ['method', { method: `a${HALF}` }],
    ['progress token', { method: 'notifications/progress', params: { progressToken: HALF } }],
    ['URI of a notification', { method: 'notifications/resources/updated', params: { uri: HALF } }],
    ['task id', { result: { task: { taskId: HALF } } }],
    ['state to be returned', { result: { requestState: HALF } }],
  ])('is not mended where its %s has it', (_, message) => {
    expect(mend(message)).toBeUndefined();
  });

  it('is not mended where too many containers have something to leave out', () => {
    const list = Array.from({ length: 17 }, () => ({ [HALF]: 1 }));
    expect(mend({ result: { structuredContent: list } })).toBeUndefined();
    expect(mend({ result: { structuredContent: list.slice(1) } })).toBeDefined();
  });

  it('is refused as before where something else is wrong with it', () => {
    for (const text of ['{"a":"\\ud83d"', '["\\ud83d" "b"]', '{"a":"\\ud83d","x":1,"x":2}'])
      expect(readMended(text, (source) => readJsonText(String(source)))).toMatchObject({
        ok: false,
      });
  });

  it('is whole JSON afterwards, in which all else is as it was', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '\\', '"', HALF, '\ude00', '\n', '😀') });
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        text,
        fc.integer(),
        fc.array(tie('any')),
        fc.dictionary(fc.constantFrom('a', 'b', 'uri'), tie('any')),
      ),
    })).any;
    fc.assert(
      fc.property(value, (structuredContent) => {
        const sent = JSON.stringify({ id: 1, result: { structuredContent } });
        const reading = readMended(sent, (source) => readJsonText(String(source)));
        if (reading instanceof Promise || !reading.ok) throw new Error('unread');
        const complete = JSON.stringify({ id: 1, result: { structuredContent } }, (_, one) =>
          typeof one === 'string' ? one.replace(LONE, '\ufffd') : one,
        );
        expect(JSON.stringify(reading.value)).toBe(complete);
      }),
    );
  });
});
