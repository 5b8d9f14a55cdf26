// The concepts of the source and the one home of each. Where a script can tell a second home by what only the mechanism
// itself has to name (a library, a function of the platform, a shape), `sign` says how, and size.mjs fails if it appears
// elsewhere. A row without `sign` is for readers.

/** `home`: files, or folders that end with a slash. */
export const CONCEPTS = [
  { concept: 'order of the stages of a request', home: ['src/proxy/pipeline.ts', 'src/proxy/stages.ts'] },
  { concept: 'check of a message of an upstream', home: ['src/proxy/upstream-messages.ts'] },
  { concept: 'what is written in the record of a request', home: ['src/policy/record.ts'] },
  { concept: 'value that is usually there at once', home: ['src/text/after.ts'] },
  { concept: 'what a rule decides', home: ['src/policy/clauses.ts', 'src/policy/decision-order.ts'] },
  { concept: 'reasons of refusals', home: ['src/policy/reasons.ts'] },
  { concept: 'text that a reader of a message sees', home: ['src/inspection/message-map.ts'] },
  { concept: 'row of detection', home: ['src/inspection/detector-row.ts'] },
  { concept: 'pattern of words in a sentence', home: ['src/inspection/definitions/sentence-patterns.ts'] },
  { concept: 'recheck of what leaves', home: ['src/inspection/responses.ts'] },
  {
    concept: 'part of a text',
    home: ['src/text/span.ts'],
    sign: /\{ readonly start: number; readonly end: number \}/,
  },
  { concept: 'strict JSON', home: ['src/protocol/json/'] },
  { concept: 'YAML', home: ['src/text/yaml.ts', 'src/text/yaml-edit.ts'], sign: /from 'yaml'/ },
  {
    concept: 'keys of the configuration',
    home: ['src/config/schema/'],
    sign: /from '(?:ajv|@sinclair\/typebox)/,
  },
  { concept: 'JSON Schema of tools', home: ['src/policy/json-schema/'] },
  {
    concept: 'CEL',
    home: ['src/policy/cel.ts', 'src/policy/cel-language.ts', 'src/policy/cel-types.ts'],
    sign: /from '@bufbuild\/cel'/,
  },
  { concept: 'regular expressions of policies', home: ['src/policy/patterns.ts'], sign: /from 're2js'/ },
  { concept: 'host names', home: ['src/policy/hosts.ts'], sign: /from 'tr46'/ },
  { concept: 'spellings of URIs', home: ['src/policy/uris.ts'] },
  {
    concept: 'HTTP servers',
    home: ['src/http/app.ts'],
    sign: /from 'node:https?';[\s\S]*\bcreateServer\(|\bfastify\(/,
  },
  {
    concept: 'HTTP clients',
    home: ['src/upstream/client.ts', 'src/upstream/response-reader.ts', 'src/upstream/safe-fetch.ts'],
    sign: /from 'undici'/,
  },
  { concept: 'MCP client', home: ['src/upstream/exchange.ts', 'src/upstream/legacy-sse-requests.ts'] },
  { concept: 'event streams', home: ['src/protocol/sse.ts'] },
  { concept: 'sealed values', home: ['src/state/sealed-token.ts'], sign: /\bcreate(?:Cipher|Decipher)iv\(/ },
  {
    concept: 'keyed digests',
    home: ['src/state/derived-keys.ts', 'src/inspection/redaction-marks.ts'],
    sign: /\bcreateHmac\(/,
  },
  { concept: 'shared store', home: ['src/state/redis.ts'], sign: /from 'ioredis'/ },
  { concept: 'bounded tables', home: ['src/state/bounds.ts'] },
  { concept: 'what runs and what is recent, by session', home: ['src/state/replica-tables.ts'] },
  { concept: 'records that all replicas share and change', home: ['src/state/shared-table.ts'] },
  { concept: 'what becomes of an approval', home: ['src/approvals/service.ts'] },
  { concept: 'who may answer what needs an approval', home: ['src/policy/approval.ts'] },
  { concept: 'queue and budget of work beside the event loop', home: ['src/work/queue.ts'] },
  { concept: 'turns of the event loop', home: ['src/work/turns.ts'] },
  {
    concept: 'reading of a configuration version',
    home: ['src/gateway/config-version.ts', 'src/gateway/version-reader.ts'],
  },
  { concept: 'worker threads', home: ['src/work/'], sign: /from 'node:worker_threads'/ },
  { concept: 'digest of a definition', home: ['src/pins/digest.ts'], sign: /from 'canonicalize'/ },
  { concept: 'signature of a lock file', home: ['src/pins/signature.ts'] },
  { concept: 'what features report', home: ['src/policy/events.ts'] },
  { concept: 'metrics', home: ['src/telemetry/metrics.ts'], sign: /from 'prom-client'/ },
  { concept: 'process log', home: ['src/telemetry/log.ts'], sign: /from 'pino'/ },
  { concept: 'audit chain', home: ['src/audit/chain.ts'] },
  { concept: 'nearest name', home: ['src/text/wording.ts'] },
  { concept: 'escaping for terminals', home: ['src/text/escaping.ts'] },
];

const isIn = (path, home) => home.some((one) => (one.endsWith('/') ? path.startsWith(one) : path === one));

/** Files that have the sign of a concept outside its home, and homes that do not exist, as lines. */
export function findSecondHomes(modules) {
  const paths = modules.map(({ path }) => path);
  return CONCEPTS.flatMap(({ concept, home, sign }) => [
    ...home.filter((one) => !paths.some((path) => isIn(path, [one]))).map((one) => `${concept}: ${one} does not exist`),
    ...modules
      .filter(({ path, text }) => sign?.test(text) && !isIn(path, home))
      .map(({ path }) => `${concept}: ${path}, beside ${home.join(', ')}`),
  ]);
}
