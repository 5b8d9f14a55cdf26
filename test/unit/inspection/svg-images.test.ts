// SVG images: one that runs and loads nothing passes byte for byte in every carrier, any other is shown as its source.

import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import { isObject, type Json, type JsonObject } from '../../../src/protocol/jsonrpc.js';
import { effectsOfText } from '../../support/active-content.js';
import { withRules } from './samples.js';

const SVG = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"';
const svg = (inner: string, before = ''): string => `${before}<svg ${SVG}>${inner}</svg>`;
const DTD = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"';
const ELSEWHERE = 'https://collect.example/p.png';

const INERT: readonly (readonly [string, string])[] = [
  ['a plain drawing', svg('<rect width="1" height="1" fill="url(#g)"/>')],
  ['what Graphviz writes', svg('<g/>', `<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n${DTD}>\n`)],
  [
    'what an editor writes',
    `<svg ${SVG} xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:cc="http://creativecommons.org/ns#"><metadata><rdf:RDF><cc:Work rdf:about=""><cc:license rdf:resource="http://creativecommons.org/licenses/by/4.0/"/><cc:link href="https://a.example/"/></cc:Work></rdf:RDF></metadata><inkscape:grid id="g"/></svg>`,
  ],
  [
    'namespaces by entities',
    `${DTD} [<!ENTITY ns_svg "http://www.w3.org/2000/svg"><!ENTITY ns_x "http://www.w3.org/1999/xlink">]><svg xmlns="&ns_svg;" xmlns:xlink="&ns_x;"><g/></svg>`,
  ],
  ['a link', svg('<a xlink:href="https://docs.example/a"><text>docs</text></a>')],
  ['a reference within', svg('<use xlink:href="#a"/><use href="#b"/>')],
  ['an embedded picture', svg('<image href="data:image/png;base64,iVBORw0KGgo="/>')],
  ['a picture beside it', svg('<image href="a.png"/>')],
  ['a style sheet', svg('<style><![CDATA[ .a > .b { fill: url(#g); } ]]></style>')],
  ['a namespace in a style sheet', svg('<style>@namespace svg url(http://www.w3.org/2000/svg); a{}</style>')],
  ['an animation', svg('<animate attributeName="x" from="0" to="10" values="0;5;10" dur="1s"/>')],
  ['a comment', svg('<!-- Generator: a drawing program --><g/>')],
];

const ACTIVE: readonly (readonly [string, string])[] = [
  ['a script', svg('<script>a()</script>')],
  ['a script of another prefix', `<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:script>a()</s:script></s:svg>`],
  ['a script of a prefix of its own', svg('<x:script xmlns:x="http://www.w3.org/2000/svg">a()</x:script>')],
  [
    'a prefix behind an entity',
    `<!DOCTYPE svg [<!ENTITY n "http://www.w3.org/2000/svg">]><svg ${SVG}><x:script xmlns:x="&n;">a()</x:script></svg>`,
  ],
  ['a script of a page', svg('<x:img xmlns:x="http://www.w3.org/1999/xhtml" src="a"/>')],
  ['a handler', svg('<g onclick="a()"/>')],
  ['a handler on the root', `<svg ${SVG} onload="a()"/>`],
  [
    'a handler element',
    svg(
      '<handler type="application/ecmascript" ev:event="load" xmlns:ev="http://www.w3.org/2001/xml-events">a()</handler>',
    ),
  ],
  ['a foreign object', svg('<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">a</p></foreignObject>')],
  ['an image from elsewhere', svg(`<image href="${ELSEWHERE}"/>`)],
  ['an image by a linking attribute', svg(`<image xlink:href="${ELSEWHERE}"/>`)],
  [
    'a linking attribute of another prefix',
    svg(`<image x:href="${ELSEWHERE}" xmlns:x="http://www.w3.org/1999/xlink"/>`),
  ],
  ['an image by references', svg('<image href="https&#58;//collect.example/p.png"/>')],
  [
    'an image by an entity',
    `<!DOCTYPE svg [<!ENTITY h "https://collect.example/p">]><svg ${SVG}><image href="&h;"/></svg>`,
  ],
  ['an image in a filter', svg(`<filter id="f"><feImage href="//collect.example/p.png"/></filter>`)],
  ['a use', svg(`<use href="${ELSEWHERE}#a"/>`)],
  ['a use of data', svg('<use href="data:image/svg+xml,%3Csvg/%3E#a"/>')],
  ['a gradient from elsewhere', svg('<linearGradient href="https://collect.example/g.svg#a"/>')],
  ['an import', svg(`<style>@import "${ELSEWHERE}";</style>`)],
  ['an import in a section', svg(`<style><![CDATA[@import url(${ELSEWHERE});]]></style>`)],
  [
    'an import by an entity',
    `<!DOCTYPE svg [<!ENTITY h "@import url(https://collect.example/p);">]><svg ${SVG}><style>&h;</style></svg>`,
  ],
  ['a namespace that is none', svg(`<style>a{list-style:\\;\\@namespace url(${ELSEWHERE})}</style>`)],
  [
    'a style of another prefix',
    `<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:style>a{fill:url(${ELSEWHERE})}</s:style></s:svg>`,
  ],
  ['a style attribute', svg(`<g style="fill:url(${ELSEWHERE})"/>`)],
  ['a painted attribute', svg(`<g mask="url(${ELSEWHERE})"/>`)],
  ['a link to a script', svg('<a href="javascript:a()"><text>a</text></a>')],
  ['a link to a script by references', svg('<a xlink:href="java&#115;cript:a()"><text>a</text></a>')],
  ['an animation of a link', svg('<a><set attributeName="href" to="javascript:a()"/></a>')],
  ['an animation of an image', svg(`<image><animate attributeName="href" values="a;${ELSEWHERE}"/></image>`)],
  ['an instruction for a style sheet', svg('<g/>', `<?xml version="1.0"?><?xml-stylesheet href="${ELSEWHERE}"?>`)],
  ['a transformation', svg('<g/>', '<?xml-stylesheet type="text/xsl" href="#a"?>')],
  [
    'an entity of another file',
    svg('<text>&x;</text>', '<!DOCTYPE svg [<!ENTITY x SYSTEM "https://collect.example/x">]>'),
  ],
  ['a parameter entity', svg('<g/>', '<!DOCTYPE svg [<!ENTITY % x SYSTEM "https://collect.example/x"> %x;]>')],
  ['an entity with markup', svg('&x;', '<!DOCTYPE svg [<!ENTITY x "<script>a()</script>">]>')],
  ['an entity with hidden markup', svg('&x;', '<!DOCTYPE svg [<!ENTITY x "&#60;script>a()&#60;/script>">]>')],
  ['an attribute by default', svg('<g/>', '<!DOCTYPE svg [<!ATTLIST svg onload CDATA "a()">]>')],
  ['definitions from elsewhere', svg('<g/>', '<!DOCTYPE svg SYSTEM "https://collect.example/x.dtd">')],
  ['another base', `<svg ${SVG} xml:base="https://collect.example/"><image href="a.png"/></svg>`],
  ['an encoding in which signs differ', svg('<g/>', '<?xml version="1.0" encoding="ISO-2022-JP"?>')],
];

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const image = (text: string): JsonObject => ({
  type: 'image',
  data: base64(text),
  mimeType: 'image/svg+xml',
  annotations: { priority: 1 },
});

/** Where an image stands: the message, and the block in it as it leaves. */
const CARRIERS: readonly (readonly [string, (text: string) => JsonObject, readonly (string | number)[]])[] = [
  ['an image', (text) => result({ content: [image(text), { type: 'text', text: 'a' }] }), ['result', 'content', 0]],
  [
    'an image whose type comes last',
    (text) =>
      result({
        content: [{ mimeType: 'IMAGE/SVG+XML; charset=utf-8', data: base64(text), type: 'image' }],
      }),
    ['result', 'content', 0],
  ],
  [
    'an image in the answer of a prompt',
    (text) => result({ messages: [{ role: 'user', content: image(text) }] }),
    ['result', 'messages', 0, 'content'],
  ],
  [
    'an image in a question',
    (text) => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage' },
      params: { maxTokens: 1, messages: [{ role: 'user', content: image(text) }] },
    }),
    ['params', 'messages', 0, 'content'],
  ],
  [
    'an image that is not encoded',
    (text) => result({ content: [{ ...image(''), data: text }] }),
    ['result', 'content', 0],
  ],
  [
    'an image as a data URL',
    (text) => result({ content: [{ ...image(''), data: `data:image/svg+xml;base64,${base64(text)}` }] }),
    ['result', 'content', 0],
  ],
  [
    'a blob of an embedded resource',
    (text) =>
      result({
        content: [
          {
            type: 'resource',
            resource: { uri: 'x:a', mimeType: 'image/svg+xml', blob: base64(text) },
          },
        ],
      }),
    ['result', 'content', 0, 'resource'],
  ],
  [
    'a blob without a type',
    (text) => result({ contents: [{ uri: 'x:a', blob: base64(text) }] }),
    ['result', 'contents', 0],
  ],
  [
    'the text of a resource',
    (text) => result({ contents: [{ uri: 'x:a', mimeType: 'image/svg+xml', text }] }),
    ['result', 'contents', 0],
  ],
];

function result(members: JsonObject): JsonObject {
  return { jsonrpc: '2.0', id: 1, result: members };
}

function inspect(message: JsonObject, rules: Parameters<typeof withRules>[0] = {}) {
  return inspectMessage({
    text: JSON.stringify(message),
    value: message,
    profile: withRules(rules),
  });
}

function at(value: Json, steps: readonly (string | number)[]): JsonObject {
  const found = steps.reduce<Json>((one, step) => (one as never)[step], value);
  if (!isObject(found)) throw new Error('no block');
  return found;
}

const cases = <Row extends readonly [string, string]>(rows: readonly Row[]) =>
  CARRIERS.flatMap(([where, build, steps]) => rows.map(([what, text]) => [where, what, build(text), steps] as const));

describe('an SVG image', () => {
  it.each(cases(INERT))('that acts in nothing passes byte for byte: %s, %s', (_where, _what, message) => {
    const outcome = inspect(message);
    expect(outcome.findings.filter(({ action }) => action !== 'flag')).toEqual([]);
    const left = outcome.kind === 'changed' ? outcome.text : JSON.stringify(message);
    const original = JSON.stringify(message);
    expect(left.replace(/"_meta":\{"dev\.sallyport\/findings":\[[^\]]*\]\},/, '')).toBe(original);
  });

  it.each(cases(ACTIVE))('that acts is shown as its source: %s, %s', (_where, _what, message, steps) => {
    const outcome = inspect(message);
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    expect(outcome.findings.map(({ detector }) => detector)).toContain('active:svg');
    const { text, data, blob, type, mimeType, ...rest } = at(outcome.value, steps);
    expect([data, blob]).toEqual([undefined, undefined]);
    expect([type, mimeType]).toEqual('type' in at(message, steps) ? ['text', undefined] : [undefined, 'text/plain']);
    const { data: _d, blob: _b, text: _t, type: _k, mimeType: _m, ...before } = at(message, steps);
    expect(rest).toEqual(before);
    expect(text).toMatch(/^This SVG image would run or load something/);
    expect(effectsOfText(String(text))).toEqual([]);
    expect(String(text)).toMatch(/&lt;|\[:\]/);
  });

  it.each(ACTIVE)('can be had again from its source: %s', (_what, source) => {
    const outcome = inspect(result({ content: [image(source)] }));
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    const { text } = at(outcome.value, ['result', 'content', 0]);
    const shown = String(text).slice(String(text).indexOf('\n\n') + 2);
    const undone = shown.replaceAll('&lt;', '<').replaceAll('[:]', ':');
    expect(undone).toBe(source);
  });

  it.each(ACTIVE)('passes with a flag where content is only flagged: %s', (_what, source) => {
    const message = result({ content: [image(source)] });
    const outcome = inspect(message, { activeContent: 'flag' });
    expect(JSON.stringify(outcome)).toContain('active:svg');
    if (outcome.kind === 'withhold') throw new Error(outcome.reason);
    const value = outcome.kind === 'changed' ? outcome.value : message;
    expect(at(value, ['result', 'content', 0])).toEqual(image(source));
  });

  it.each(ACTIVE)('is withheld where content is blocked: %s', (_what, source) => {
    expect(inspect(result({ content: [image(source)] }), { activeContent: 'block' }).kind).toBe('withhold');
  });

  it('in structured content stays a string of its member, made inert', () => {
    const [, source = ''] = ACTIVE[0] ?? [];
    const outcome = inspect(result({ content: [], structuredContent: image(source) }));
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    const { data, type } = at(outcome.value, ['result', 'structuredContent']);
    expect(type).toBe('image');
    expect(Buffer.from(String(data), 'base64').toString()).toContain('&lt;script>');
  });

  it('with text beside it keeps its members', () => {
    const [, source = ''] = ACTIVE[0] ?? [];
    const outcome = inspect(result({ contents: [{ uri: 'x:a', blob: base64(source), text: 'a' }] }));
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    const { blob, text } = at(outcome.value, ['result', 'contents', 0]);
    expect(text).toBe('a');
    expect(Buffer.from(String(blob), 'base64').toString()).toContain('&lt;script>');
  });

  it.each([
    ['openings', '<a '],
    ['comments', '<!--'],
    ['sections', '<![CDATA['],
    ['instructions', '<?xml-stylesheet '],
    ['document types', '<!DOCTYPE svg ['],
    ['comments in a document type', '<!DOCTYPE svg [<!--'],
    ['style sheets', '<style>'],
    ['quotes', '<a b="'],
    ['entities', `<!DOCTYPE svg [<!ENTITY x "${'x'.repeat(1000)}">]><a b="&x;&x;&x;&x;">`],
  ])('is read in one pass: many %s', (_what, piece) => {
    const source = `<svg>${piece.repeat(Math.ceil(200_000 / piece.length))}`;
    expect(['changed', 'clean']).toContain(inspect(result({ content: [image(source)] })).kind);
  });
});

describe('an icon that is SVG', () => {
  const icon = (text: string, isEncoded: boolean): JsonObject => ({
    src: isEncoded ? `data:image/svg+xml;base64,${base64(text)}` : `data:image/svg+xml,${encodeURIComponent(text)}`,
  });
  const link = (icons: Json): JsonObject =>
    result({ content: [{ type: 'resource_link', uri: 'x:a', name: 'a', icons }] });

  it.each(INERT)('stays where it acts in nothing: %s', (_what, text) => {
    const outcome = inspect(link([icon(text, true), icon(text, false)]));
    expect(outcome).toMatchObject({ kind: 'clean', findings: [] });
  });

  it.each(ACTIVE)('goes alone where it acts: %s', (_what, text) => {
    const [, inert = ''] = INERT[0] ?? [];
    const kept = icon(inert, true);
    const outcome = inspect(link([icon(text, true), kept, icon(text, false)]));
    if (outcome.kind !== 'changed') throw new Error(outcome.kind);
    expect(at(outcome.value, ['result', 'content', 0])['icons']).toEqual([kept]);
    expect(outcome.findings).toMatchObject([{ detector: 'remote-icons', action: 'drop', count: 2 }]);
  });
});
