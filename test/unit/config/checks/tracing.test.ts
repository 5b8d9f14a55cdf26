// What the gateway file may say of tracing, and what it may not.

import { describe, expect, it } from 'vitest';
import { diagnosticLines, GOOD, read } from '../reading.js';

const URL_KEY = 'url: "https://collector.example:4318/v1/traces"';
const traced = (otlp: string, more = ''): string => `${GOOD}tracing: {otlp: {${otlp}}${more}}\n`;

describe('[TRC-06] tracing', () => {
  it('has its defaults, and reads headers by name', () => {
    const { settings } = read(traced(`${URL_KEY}, headers: {Authorization: {env: OTLP}}`), {
      env: { OTLP: 'Bearer of-the-collector' },
    });
    expect(settings?.tracing).toMatchObject({
      otlp: {
        url: new URL('https://collector.example:4318/v1/traces'),
        headers: { authorization: 'Bearer of-the-collector' },
        network: 'public',
        timeoutMs: 10_000,
      },
      sampling: 0.01,
      callers: 'none',
    });
    expect(settings?.issuers.get('corp')?.traceContext).toBe('replaced');
  });

  it('reaches a private network by plain http only where that is accepted', () => {
    const otlp = 'url: "http://10.0.0.7:4318/v1/traces", network: private';
    expect(diagnosticLines(traced(otlp)).join('\n')).toContain('plain http');
    const lines = diagnosticLines(traced(`${otlp}, plaintext: accepted`));
    expect(lines.filter((line) => line.includes(' error '))).toEqual([]);
    expect(read(traced(`${otlp}, plaintext: accepted`)).settings?.tracing?.otlp.plaintext).toBe('accepted');
  });

  it('is off where it is absent', () => expect(read(GOOD).settings?.tracing).toBeUndefined());

  it.each([
    ['no receiver', `${GOOD}tracing: {}\n`, 'the key "otlp" is missing'],
    ['plain http to anywhere', traced('url: "http://collector.example:4318/v1/traces"'), 'plain http'],
    ['a metadata address', traced('url: "https://169.254.169.254/v1/traces"'), 'never connects to this address'],
    [
      'credentials in the URL',
      traced('url: "https://user:pass@collector.example/v1/traces"'),
      'no user name or password',
    ],
    ['no path', traced('url: "https://collector.example:4318"'), 'at the path /v1/traces'],
    ['a header in the file', traced(`${URL_KEY}, headers: {authorization: plainly}`), 'expected a secret reference'],
    [
      'a header that the gateway sets',
      traced(`${URL_KEY}, headers: {content-type: {env: OTLP}}`),
      'sets this header itself',
    ],
    [
      'a header twice',
      traced(`${URL_KEY}, headers: {x-key: {env: OTLP}, X-Key: {env: OTLP}}`),
      'this header is named twice',
    ],
    ['more than everything', traced(URL_KEY, ', sampling: 1.5'), 'a number from 0 to 1'],
    [
      'an authority where nothing is encrypted',
      traced('url: "http://127.0.0.1:4318/v1/traces", network: loopback, ca: ./ca.crt'),
      'plain http',
    ],
  ])('is refused or warned of: %s', (_what, text, message) => {
    const lines = diagnosticLines(text, { env: { OTLP: 'x' } });
    expect(lines.join('\n')).toContain(message);
  });
});
