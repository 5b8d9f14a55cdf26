// What becomes of values: numbers that could be cards, tokens with neighbours, marks, and characters that show nothing.
// Every value is made when the row runs.

import { expect } from 'vitest';
import { inspectMessage } from '../../src/inspection/responses.js';
import { compileSchema } from '../../src/policy/json-schema/validator.js';
import type { Json } from '../support/json.js';
import { cardNumber, githubToken, noise } from '../support/seeded-values.js';
import { profile, resultOf, textResult } from '../unit/inspection/samples.js';
import type { CompatRow } from './rig.js';

const GUIDE = 'docs/guides/content.md';
const card = cardNumber('compat');

/** The texts that a client gets of a result with these texts. */
function texts(...given: readonly string[]): readonly string[] {
  const outcome = inspectMessage({ ...textResult(...given), profile });
  if (outcome.kind === 'withhold') throw new Error(outcome.reason);
  if (outcome.kind === 'clean') return given;
  const { result } = outcome.value as { result: { content: { text: string }[] } };
  return result.content.map(({ text }) => text);
}

function passes(...given: readonly string[]): void {
  expect(texts(...given)).toEqual(given);
}

/** Whether data passes as structured content and as the text that repeats it. */
function dataPasses(data: Json): void {
  const message = resultOf({
    content: [{ type: 'text', text: JSON.stringify(data) }],
    structuredContent: data,
  });
  expect(inspectMessage({ ...message, profile }).kind).toBe('clean');
}

type Given = Omit<CompatRow, 'area' | 'source'> & { readonly source?: string };

const row = (given: Given): CompatRow => ({ area: 'content', source: GUIDE, ...given });

export const rows: readonly CompatRow[] = [
  row({
    id: 'decimals-are-no-cards',
    source: 'RFC 8259 §6',
    given: 'A server returns doubles, prices and coordinates whose digits pass the check of cards.',
    verdict: 'accepts',
    sees: 'The client gets each number as it was written.',
    run: () => {
      dataPasses({ execution_time: Number(`3.${card.slice(1)}`), price: `${card}.25` });
      passes(`took 3.${card} s`, `{"execution_time": 0.${card}}`, `${card}e-3`);
    },
  }),
  row({
    id: 'ids-are-no-cards',
    given: 'A server returns ids of 16 digits, as numbers and as texts under names that are no cue.',
    verdict: 'accepts',
    sees: 'The client gets the ids.',
    run: () => {
      dataPasses({ id: Number(card), order_id: card, rows: [{ ref: card }, { ref: card }] });
      passes(`id,ref\n${card},${card}`, `id: ${card}`, `https://x.example/s?a=${card}`);
      passes(`dur=4us trace=${card}`, 'id: 7');
    },
  }),
  row({
    id: 'uuids-and-timestamps-are-no-cards',
    source: 'RFC 9562; RFC 3339',
    given: 'A server returns UUIDs and timestamps in nanoseconds.',
    verdict: 'accepts',
    sees: 'The client gets them as they are.',
    run: () => {
      passes(`${card.slice(0, 8)}-${card.slice(8, 12)}-4${card.slice(12, 15)}-8000-${card.slice(0, 12)}`);
      dataPasses({ ts: `${card}000`, at: Number(card) });
    },
  }),
  row({
    id: 'cards-in-prose',
    given: 'A server returns a card number in prose or under a name that speaks of cards.',
    verdict: 'changes',
    sees: 'The client gets a mark in place of the number, and everything else.',
    run: () => {
      expect(texts(`it was ${card}, paid`)).toEqual(['it was [redacted:card], paid']);
      expect(texts(JSON.stringify({ cardNumber: card, x: 1 }))).toEqual(['{"cardNumber":"[redacted:card]","x":1}']);
    },
  }),
  row({
    id: 'card-under-a-schema-of-numbers',
    source: 'MCP, tools, outputSchema',
    given: 'A card number is a number under a card name, and the output schema admits only numbers.',
    verdict: 'changes',
    sees: 'The client gets a valid result: without the member if it is optional, else with 0 in its place.',
    run: () => {
      const properties = { card: { type: 'integer' }, pan: { type: 'integer' } };
      const compiled = compileSchema({ type: 'object', properties, required: ['pan'] });
      if (!compiled.ok) throw new Error(compiled.why);
      const structuredContent = { a: 1, card: Number(card), pan: Number(card) };
      const message = resultOf({ content: [], structuredContent });
      const outcome = inspectMessage({ ...message, profile, output: compiled.schema });
      expect(outcome).toMatchObject({ kind: 'changed' });
      const { result } = JSON.parse(outcome.kind === 'changed' ? outcome.text : '{}');
      expect(result.structuredContent).toEqual({ a: 1, pan: 0 });
    },
  }),
  row({
    id: 'a-token-and-its-neighbours',
    given: 'A token stands between other words, or ends in one block before another.',
    verdict: 'changes',
    sees: 'The client gets a mark in place of the token alone.',
    run: () => {
      const token = githubToken('compat');
      expect(texts(`use ${token}, then`, 'done')).toEqual(['use [redacted:github-token], then', 'done']);
      expect(texts(token, 'done')).toEqual(['[redacted:github-token]', 'done']);
    },
  }),
  row({
    id: 'a-token-with-invisible-characters',
    given: 'Zero-width characters stand inside a token.',
    verdict: 'changes',
    sees: 'The client gets a mark in place of the whole token.',
    run: () => {
      const token = githubToken('cut');
      const cut = `${token.slice(0, 9)}\u200b${token.slice(9, 20)}\u2060${token.slice(20)}`;
      expect(texts(`use ${cut} now`)).toEqual(['use [redacted:github-token] now']);
    },
  }),
  row({
    id: 'words-as-a-password',
    given: 'A password consists of words and a number joined by dashes.',
    verdict: 'changes',
    sees: 'The client gets a mark in its place, while names of resources such as `http-01-token` pass.',
    run: () => {
      const passphrase = ['velvet', 'garden', '99', 'walnut'].join('-');
      expect(texts(`password: ${passphrase}`)).toEqual(['password: [redacted:secret]']);
      passes('Token: "http-01-token",', 'secret: web-01-tls-cert');
    },
  }),
  row({
    id: 'words-of-marks',
    given: 'Documentation or a log shows a mark of a redaction that is not from this gateway.',
    verdict: 'accepts',
    sees: 'The client gets the words.',
    run: () => passes('password=[redacted:secret]', 'see [redacted:npm-token#abcd]'),
  }),
  row({
    id: 'characters-of-scripts-and-files',
    source: 'UAX #9; UTS #51',
    given: 'A text has a byte order mark, joiners in emoji and Persian, soft hyphens and form feeds.',
    verdict: 'accepts',
    sees: 'The client gets every character.',
    run: () => passes('\ufeffa\f', '👩\u200d👩\u200d👧', 'می\u200cخواهم', 'Donau\u00addampf'),
  }),
  row({
    id: 'characters-that-hide',
    source: 'UAX #9; ECMA-48',
    given: 'A text has tags, controls that reorder it, or whole terminal sequences, with C1 controls too.',
    verdict: 'changes',
    sees: 'The client gets the text without them.',
    run: () => {
      const tags = [...'run'].map((unit) => String.fromCodePoint(0xe0000 + unit.charCodeAt(0)));
      expect(texts(`see${tags.join('')} it`)).toEqual(['see it']);
      expect(texts('a\u202ebc\u202c d')).toEqual(['abc d']);
      expect(texts('\u001b[1;31mred\u001b[0m \u009b2Kx \u001b]0;title\u0007y')).toEqual(['red x y']);
    },
  }),
  row({
    id: 'signed-links',
    source: 'Google Cloud Storage, signed URLs',
    given: 'A server returns a link with a signature.',
    verdict: 'accepts',
    sees: 'The client gets the link, with a finding.',
    run: () => {
      const signature = noise('gcs', 128, '0123456789abcdef');
      const link = `https://storage.googleapis.com/b/o?X-Goog-Expires=9&X-Goog-Signature=${signature}`;
      const outcome = inspectMessage({ ...textResult(`see ${link}`), profile });
      expect(outcome.kind === 'withhold' ? [] : outcome.findings).toMatchObject([
        { detector: 'link:signed-link', action: 'flag' },
      ]);
      passes(`see ${link}`);
    },
  }),
  row({
    id: 'credentials-by-notation',
    source: 'RFC 7617; RFC 6265; the manuals of PostgreSQL, curl and Docker',
    given: 'A text has a password in a sentence, in a header, in a cookie, in the file of a program or in a command.',
    verdict: 'changes',
    sees: 'The client gets the text without the password alone.',
    run: () => {
      const secret = noise('notation', 18);
      const pair = Buffer.from(`deploy:${secret}`).toString('base64');
      for (const write of [
        (x: string) => `The password for staging is ${x}.`,
        (x: string) => `API key: ${x}`,
        (x: string) => `Cookie: theme=dark; sid=${x}; lang=en`,
        (x: string) => `db.internal:5432:orders:deploy:${x}`,
        (x: string) => `machine api.example.com login deploy password ${x}`,
        (x: string) => `curl -u deploy:${x} https://api.example.com`,
        (x: string) => `PGPASSWORD=${x} psql`,
      ]) {
        const [kept = ''] = texts(write(secret));
        expect(kept.replace(/\[redacted:[a-z-]+\]/, secret)).toBe(write(secret));
        expect(kept).not.toContain(secret);
      }
      expect(texts(`Authorization: Basic ${pair}`)[0]).not.toContain(pair);
    },
  }),
  row({
    id: 'documentation-of-credentials',
    source: 'RFC 7617 §2; the pages of MDN on cookies',
    given: 'A text explains passwords, headers, cookies and commands with samples and variables.',
    verdict: 'accepts',
    sees: 'The client gets the text.',
    run: () => {
      passes('The password is wrong.', 'The password is at least 12 characters long.');
      passes('API key: <your-key>', 'PGPASSWORD=$PASSWORD psql', 'SMTP_PASS=changeme');
      passes(`Authorization: Basic ${Buffer.from('user:password').toString('base64')}`);
      passes('Cookie: name=value; name2=value2', 'curl -u user:password https://x.example');
    },
  }),
  row({
    id: 'references-to-secrets',
    source: 'the manifests of Kubernetes and the documentation of managers of secrets',
    given: 'A manifest or a program says where a secret is kept, or has a sample in base64.',
    verdict: 'accepts',
    sees: 'The client gets the text.',
    run: () => {
      passes('secretKey: MY_ENV_VAR1\nsessionToken: IQoJ...Ek8=');
      passes('- secret: root-ca5');
      passes('password: "urn:k8s:secret:redis:password"', 'password: op://vault/item-2/password');
      passes('SecretKey: targetSecretKey1,', 'Secret = esv1meta.SecretKeySelector{}');
      passes(`password: ${Buffer.from('mypassword').toString('base64')} # mypassword`);
    },
  }),
  row({
    id: 'secrets-split-over-a-list',
    given: 'A text is a list in JSON, and a token stands in two of its strings.',
    verdict: 'changes',
    sees: 'The client gets the list without the two pieces.',
    run: () => {
      const token = githubToken('listed');
      const pieces = ['first', token.slice(0, 18), token.slice(18), 'last'];
      const mark = '[redacted:github-token]';
      expect(texts(JSON.stringify(pieces))).toEqual([JSON.stringify(['first', mark, mark, 'last'])]);
    },
  }),
  row({
    id: 'shares-as-targets',
    source: 'WHATWG URL §4.4; CommonMark 0.31 §2.4',
    given: 'An image leads to a share of a network, and a link does.',
    verdict: 'changes',
    sees: 'The client gets an image that does not load; the link stays as it is.',
    run: () => {
      expect(texts('![x](\\\\host\\share)')).toEqual(['!\\[x](\\\\host\\share)']);
      expect(texts('!', '[x](\\\\host\\share)')).toEqual(['!\\', '[x](\\\\host\\share)']);
      passes('[x](\\\\host\\share)');
    },
  }),
];
