// A host makes a link of the address of a resource, of a server's website and of what is to be visited. Where it is a script,
// its scheme is broken as in a link of Markdown, however it is spelt. Addresses of any other scheme stay as they are.

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SCRIPTS = [
  'javascript:run()',
  'JavaScript:run()',
  ' javascript:run()',
  '\u0001javascript:run()',
  'java\tscript:run()',
  'java\nscript\r:run()',
  'vbscript:run()',
  'javascript&colon;run()',
  '&#106;avascript:run()',
  'javascript://docs.example/%0arun()',
];
const OTHERS = [
  'https://docs.example/a:b?c=javascript:x',
  'memo://one',
  'javascripts:one',
  'java:script:one',
  'file:///srv/javascript:notes',
  'data:image/svg+xml,%3Csvg/%3E',
  'urn:javascript:one',
  'jdbc:postgresql://db.example/app',
];

/** Where the protocol has an address, and how it is found again. */
const PLACES: readonly (readonly [string, (uri: string) => JsonObject, (block: JsonObject) => unknown])[] = [
  ['a link', (uri) => ({ type: 'resource_link', uri, name: 'one' }), ({ uri }) => uri],
  [
    'an embedded resource',
    (uri) => ({ type: 'resource', resource: { uri, text: 'one' } }),
    ({ resource }) => (resource as JsonObject)['uri'],
  ],
];

describe('the address of a resource', () => {
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

  const cases = (uris: readonly string[]) => PLACES.flatMap((place) => uris.map((uri) => [...place, uri] as const));

  it.each(cases(SCRIPTS))('is no script: %s %#', async (_place, build, addressIn, uri) => {
    const left = String(addressIn(await blockFor(build(uri))));
    expect(left).toContain('[:]');
    expect(left.replace('[:]', ':').length).toBeLessThanOrEqual(uri.length);
  });

  it.each(cases(OTHERS))('stays as it is: %s %#', async (_place, build, _addressIn, uri) => {
    expect(await blockFor(build(uri))).toEqual(build(uri));
  });

  it('is none where a server names its website', async () => {
    const serverInfo = { name: 'one', version: '1', websiteUrl: 'javascript:run()' };
    const initialized = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
    rig.upstream.obey(onMethod('initialize', (request) => jsonBody(resultFor(request, initialized))));
    const { reply } = await rig.openSession();
    expect(resultOf(reply)['serverInfo']).toMatchObject({ name: 'one' });
    expect(reply.text).not.toContain('javascript:');
  });

  it('is none in a list either', async () => {
    const resources = [{ uri: 'javascript:run()', name: 'one' }];
    rig.upstream.obey(onMethod('resources/list', (request) => jsonBody(resultFor(request, { resources }))));
    expect((await requestStateless(rig.access, 'resources/list')).text).not.toContain('javascript:');
  });
});
