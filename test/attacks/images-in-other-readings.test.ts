// An SVG image that runs or loads is one in whatever way a viewer comes to its text: behind a data URL that only lenient
// readers decode, in a charset that the media type does not state, behind a document type or a style sheet that an XML
// parser reads otherwise. A client is shown its source; a drawing that does nothing passes in the same spellings.

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const NAMES = 'xmlns="http://www.w3.org/2000/svg" xmlns:s="http://www.w3.org/2000/svg"';
const RUNS = `<svg ${NAMES}><s:script>run()</s:script></svg>`;
const DRAWS = `<svg ${NAMES}><s:rect width="100%" height="1"/></svg>`;

const SVG = 'image/svg+xml';
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
const utf16be = (text: string): Buffer => utf16(text).swap16();
const utf32 = (text: string): Buffer =>
  Buffer.concat([...text].map((one) => Buffer.concat([utf16(one), Buffer.alloc(2)])));
const padded = (text: string): string => `<?xml version="1.0"?><!--${'\u6f22'.repeat(2000)}-->${text}`;
const image = (data: string, mimeType = SVG): JsonObject => ({ type: 'image', data, mimeType });

/** How an image may be spelt. */
const SPELLINGS: readonly (readonly [string, (text: string) => JsonObject])[] = [
  ['a data URL', (text) => image(`data:${SVG},${encodeURIComponent(text)}`)],
  ['a data URL with a percent sign that is no triplet', (text) => image(`data:${SVG},${encodeURIComponent(text)}%%`)],
  ['a data URL with a byte that is no UTF-8', (text) => image(`data:${SVG},${encodeURIComponent(text)}%ff`)],
  [
    'a data URL in base64 with such a byte',
    (text) => image(`data:${SVG};base64,${base64(Buffer.concat([Buffer.from(text), Buffer.from([0xff])]))}`),
  ],
  ['a data URL of another charset', (text) => image(`data:${SVG};charset=utf-16le;base64,${base64(utf16(text))}`)],
  ['a data URL of a charset that is not stated', (text) => image(`data:${SVG};base64,${base64(utf16be(text))}`)],
  ['a data URL with a blank before its type', (text) => image(`data: ${SVG};base64,${base64(text)}`)],
  ['a data URL with a blank behind its type', (text) => image(`data:${SVG} ;base64,${base64(text)}`)],
  ['a data URL with a tab in its scheme', (text) => image(`da\tta:${SVG};base64,${base64(text)}`)],
  ['a data URL with a line end in its type', (text) => image(`data:image/\nsvg+xml;base64,${base64(text)}`)],
  ['a data URL with many parameters', (text) => image(`data:${SVG};a=1;b=2;c=3;d=4;e=5;base64,${base64(text)}`)],
  ['a data URL with its encoding first', (text) => image(`data:${SVG};base64;charset=utf-8,${base64(text)}`)],
  [
    'a data URL in base64url',
    (text) => image(`data:${SVG};base64,${Buffer.from(`${text}<!-->>>???-->`).toString('base64url')}`),
  ],
  [
    'a data URL in a block of another type',
    (text) => image(`data:${SVG};charset=utf-16le;base64,${base64(utf16(text))}`, 'image/png'),
  ],
  ['UTF-16', (text) => image(base64(utf16(text)))],
  ['UTF-16 that is declared as UTF-8', (text) => image(base64(utf16(text)), `${SVG}; charset=utf-8`)],
  ['UTF-16 that is declared as windows-1252', (text) => image(base64(utf16be(text)), `${SVG}; charset=windows-1252`)],
  ['UTF-16 of mostly other scripts', (text) => image(base64(utf16(padded(text))))],
  ['UTF-32 with a byte too many', (text) => image(base64(Buffer.concat([utf32(text), Buffer.alloc(1)])))],
  ['two charsets', (text) => image(base64(utf32(text)), `${SVG}; charset=utf-8; charset=utf_32_le`)],
  [
    'an image without its type behind a document type',
    (text) => image(base64(`<!DOCTYPE drawing [<!ELEMENT a ANY>]>${text}`), 'image/svg'),
  ],
];

/** What an XML parser reads otherwise than it looks. */
const HIDDEN: readonly (readonly [string, string])[] = [
  [
    'an instruction with a quote in the document type',
    `<!DOCTYPE svg [<?x ' ?>]>${RUNS.replace('</svg>', `<s:g id=' ]>'/></svg>`)}`,
  ],
  [
    'a closing tag in a section of a style sheet',
    `<svg ${NAMES}><s:style><![CDATA[ </s:style> ]]>@import "https://collect.example/a";</s:style></svg>`,
  ],
  [
    'a closing tag in a comment of a style sheet',
    `<svg ${NAMES}><s:style><!-- </s:style> -->@import "https://collect.example/a";</s:style></svg>`,
  ],
  [
    'an inclusion of a file',
    `<svg ${NAMES} xmlns:xi="http://www.w3.org/2001/XInclude"><text><xi:include parse="text" href="notes.txt"/></text></svg>`,
  ],
  [
    'an inclusion in the later namespace',
    `<svg ${NAMES} xmlns:i="http://www.w3.org/2003/XInclude"><i:include href="a.svg"/></svg>`,
  ],
];

describe('an SVG image', () => {
  const rig = sharedGateway();
  beforeAll(async () => {
    await vi.waitFor(
      async () => expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200),
      PATIENT,
    );
  });
  afterEach(() => rig.upstream.repent());

  async function blockFor(block: JsonObject): Promise<JsonObject> {
    rig.upstream.obey(onMethod('tools/call', (request) => jsonBody(resultFor(request, { content: [block] }))));
    const { content } = resultOf(await callStateless(rig.access, 'read_record', { id: 'one' }));
    return (content as readonly JsonObject[])[0] ?? {};
  }

  it.each(SPELLINGS)('that runs is shown as its source: %s', async (_what, build) => {
    const shown = await blockFor(build(RUNS));
    expect(shown['data']).toBeUndefined();
    expect(shown['text']).toMatch(/^This SVG image would run or load something/);
    expect(shown['text']).toContain('&lt;s:script>');
  });

  it.each(SPELLINGS)('that does nothing passes byte for byte: %s', async (_what, build) => {
    expect(await blockFor(build(DRAWS))).toEqual(build(DRAWS));
  });

  it.each(HIDDEN)('is shown as its source for %s', async (_what, text) => {
    const shown = await blockFor(image(base64(text)));
    expect(shown['text']).toMatch(/^This SVG image would run or load something/);
  });
});
