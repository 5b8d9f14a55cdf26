// Renders the reference pages of metrics, reasons and audit events from the tables that the code itself uses, so that a
// page cannot deviate from them. Pure: it returns text, and the caller writes the files.

import { AUTH_FAILURES_PER_SECOND } from '../../src/audit/audit.js';
import { MAX_LINES_BETWEEN_CHECKPOINTS, VERIFIER_MAX_INTERVALS } from '../../src/audit/chain.js';
import { CALL_RESERVE, QUEUE_CAPACITY } from '../../src/audit/sink.js';
import { LEASE_TIMES } from '../../src/audit/writer-lease.js';
import { REASONS, type Rendering } from '../../src/policy/reasons.js';
import {
  METRIC_NAMES,
  METRICS,
  type MetricRow,
  OTHER,
  TOOL_LABEL,
} from '../../src/telemetry/metric-table.js';
import { MAX_FOREIGN_CHARACTERS } from '../../src/text/escaping.js';

const GENERATED =
  '<!-- Rendered from the source. Change the source, then run the tests with UPDATE_REFERENCE=1. -->';

const MS_PER_SECOND = 1000;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function metricRow(name: string, row: MetricRow): readonly string[] {
  const labels = row.labels.length === 0 ? '' : row.labels.map(code).join(' ');
  return [code(name), row.kind, labels, row.help];
}

/** docs/reference/metrics.md */
export function renderMetricsPage(): string {
  const rows = METRIC_NAMES.map((name) => metricRow(name, METRICS[name]));
  const buckets = METRIC_NAMES.flatMap((name) => {
    const row: MetricRow = METRICS[name];
    return row.buckets === undefined ? [] : [`- ${code(name)}: ${row.buckets.join(', ')}`];
  });
  return `# Metrics

${GENERATED}

The ops listener serves them at \`/metrics\`, in the Prometheus text format, together with those of the process (\`process_*\`, \`nodejs_*\`).

Label values come from the configuration, the method table and the pins, never from the wire: a value that none of them knows counts as \`${OTHER}\`. Past \`metrics.maxSeries\` sets of label values of one metric, all further ones count under \`${OTHER}\` too.

${table(['Metric', 'Kind', 'Labels', 'Meaning'], rows)}

With \`metrics.toolLabel: true\`, \`mcp_server_operation_duration_seconds\` has the label \`${TOOL_LABEL}\` as well: the name of a pinned tool, \`${OTHER}\` for every other name, empty for what is no tool.

An empty \`error_type\` means that there was no error. Otherwise it is the reason of a refusal (see [reasons](reasons.md)), a JSON-RPC code that the protocol knows, \`tool_error\` for a result with \`isError\`, or \`${OTHER}\`.

Event streams that clients open with GET are counted as decisions; their duration is not observed.

## Buckets

Upper bounds in seconds.

${buckets.join('\n')}
`;
}

function rendering(value: Rendering): string {
  switch (value.as) {
    case 'http':
      return `HTTP ${value.status}`;
    case 'challenge':
      return `HTTP ${value.status} with \`WWW-Authenticate\``;
    case 'error':
      return `HTTP ${value.status}, JSON-RPC error ${value.code}`;
    case 'not-found':
      return "the era's own “not found”";
    case 'refusal':
      return `HTTP 200: a tool result with \`isError\`, for other methods JSON-RPC error ${value.code}`;
  }
}

/** docs/reference/reasons.md */
export function renderReasonsPage(): string {
  const rows = Object.entries(REASONS).map(([name, { stage, level, text, visible, hidden }]) => {
    const shown = rendering(visible);
    const unseen = rendering(hidden);
    return [code(name), stage, level, text, shown, unseen === shown ? 'the same' : unseen];
  });
  return `# Reasons

${GENERATED}

Every refusal has one of these reasons. The audit event always names it (\`decision.reasons\`), as do the metric \`sallyport_denials_total\` and the process log; a caller learns it only where the thing is listed for that caller. A protocol fault may carry another status or code where the protocol version asks for it.

${table(['Reason', 'Stage', 'Log level', 'Text', 'Where the caller may see it', 'Where not'], rows)}
`;
}

const MEMBERS: readonly (readonly [string, string])[] = [
  ['schema', '`sallyport.audit/2`; `sallyport.audit/1` in lines of earlier versions.'],
  ['id', 'Id of this event, a UUID.'],
  ['time', 'RFC 3339, UTC, milliseconds.'],
  ['type', 'See below.'],
  [
    'gateway',
    '`instance` (this run), `epoch` (this chain), `version` of the program, hashes of `config`, `policy` and `pins`. Events of an exchange have the epoch, and `mcp.decision` the first 16 digits of the hashes that it was decided under.',
  ],
  [
    'actor',
    'What the token proved: `iss sub client_id act[] token{id,aud,scopes,exp,binding} groups_used`. `token.id` is a keyed hash; `exp` is in seconds since the epoch. `groups_used`: groups of the caller that the deciding rule names under `who`, allow or deny, at most 32; empty where it names none, or no rule decided. Left out without a verified caller.',
  ],
  [
    'client',
    '`ip`, `era`, `session` (a keyed hash), and apart from them `self_reported`: what the client says of itself.',
  ],
  [
    'target',
    '`upstream method name kind definition pin request_id`: what was asked for, the digest of its definition as last seen (left out where it is the pinned one), and of the one pinned. `endpoint` too, where the message came through an endpoint of several upstreams; what is refused there before it is known whose it is has the endpoint as `upstream`.',
  ],
  [
    'args',
    '`digest` (keyed), `bytes`, `keys`, and what rules ask to be `captured`: the values of at most 64 arguments by their JSON pointers, of what is allowed and of what is refused. Objects and lists stand there as JSON.',
  ],
  [
    'decision',
    '`id verdict action mode stage policy rule reasons shadow`. Both events of an exchange carry the same id, and so does the refusal on the wire. Without `action`, it was forwarded; without `mode`, it is `enforce`.',
  ],
  ['findings', 'What detectors saw: `detector direction path count action`. Never what was found.'],
  ['result', '`status http rpc_code bytes digest list{advertised,visible}`, in `mcp.outcome`.'],
  ['latency_ms', '`total auth policy inspect upstream`, in `mcp.outcome`.'],
  ['trace', '`trace_id span_id`.'],
  ['detail', 'Only in events that are not of an exchange: what has no member of its own.'],
  ['chain', '`seq prev hash`, always last.'],
];

const TYPES: readonly (readonly [string, string])[] = [
  [
    'mcp.decision',
    'Before anything leaves. An allowed exchange waits until this line is durable, as `audit.durability` says.',
  ],
  ['mcp.outcome', 'Once, at the end of every exchange, refusals included.'],
  [
    'auth.failure',
    'No valid token, or none that could be verified. `detail.suppressed`: failures before it that were counted only. Of a token that was refused, `detail` has `expected_issuer`, `expected_audience` and `expected_type`, as configured, and `presented_issuer`, `presented_audience` and `presented_type`, which the token says of itself, unverified, masked and cut at 128 characters. Several values are separated by spaces. The token itself is never recorded.',
  ],
  [
    'pin.drift',
    'A definition differs from its pin, or a server calls itself otherwise (kind `server`). `detail.change` says in what way.',
  ],
  [
    'pin.approval',
    'A reload brought a lock file that approves a definition which was not approved before: `actor.sub` is who approved it, `target.definition` its digest, `detail.note` why. A start writes none.',
  ],
  [
    'pin.block',
    'The same for a definition that is blocked; `actor.sub` is null where the lock file does not say who blocked it.',
  ],
  ['config.reload', 'Files changed: `detail.result` is `applied` or `rejected`.'],
  ['admin.action', 'An access to the admin listener, refused ones too.'],
  [
    'lifecycle',
    '`detail.event`: `started` (with the public key), `stopped`, `continued` (the file was removed, rotated or emptied), `recovered` (bytes that are no record, by length and digest), `resumed` (after a fault of the sink, with the count of refused events).',
  ],
  ['checkpoint', 'Signed: `detail.epoch seq hash at every_ms every_lines key_id signature`.'],
];

/** docs/reference/audit.md */
export function renderAuditPage(): string {
  const named = (rows: readonly (readonly [string, string])[]) =>
    rows.map(([name, text]) => [code(name), text]);
  return `# Audit events

${GENERATED}

One event is one line of JSON, in printable ASCII. \`sallyport schema audit\` prints the JSON Schema. No payload, token or secret is ever written; digests of arguments and results are keyed, and \`sallyport audit hash VALUE -c FILE\` finds a known value by them.

## Members, in their order

${table(['Member', 'Content'], named(MEMBERS))}

Events of an exchange leave out what is null or empty. Of actor, target and decision, \`mcp.outcome\` has what says who called what and how that ended (\`iss sub client_id\`, \`upstream endpoint method name\`, \`id verdict action stage reasons\`), then its findings, result and latency; the rest stands in the line of its decision. \`sallyport audit query\` and \`show\` join the two: what they print, with \`--json\` too, has every member, as lines of \`sallyport.audit/1\` have, except that the hashes of files stay cut, \`stage\` is left out where the request was forwarded, and instance and version stand only in lines of other types: they are those of the last \`lifecycle\` line \`started\` before it. Where the line of the decision is in none of the files that were named, what only that line says is printed as null, or left out if it is never null (\`client.ip\`), and a note on standard error counts these outcomes. An outcome whose decision could not be written has everything itself.

What others write (unknown names, self-reported names, URIs, argument names, captured values) loses secrets and personal data (\`[redacted:<kind>]\`), is made visible (\`\\u{202e}\`) and cut at ${MAX_FOREIGN_CHARACTERS} characters. Of a captured value behind a name that says "secret" (\`password\`, \`token\`), nothing is kept. What a token proved is kept exactly.

## Types

${table(['Type', 'When'], named(TYPES))}

At most ${AUTH_FAILURES_PER_SECOND} failed logins a second are written. A sink holds at most ${QUEUE_CAPACITY} events that wait; ${CALL_RESERVE} of these places are kept for calls.

## The chain

A line ends in \`,"chain":{"seq":n,"prev":"…","hash":"…"}}\`. \`hash\` is the SHA-256, in base64url (in lines of \`sallyport.audit/1\` in lower-case hex), of \`prev\` as it stands there, a line feed, and the bytes of the line up to and without \`,"hash":"…"}}\`. \`prev\` is the \`hash\` of the line before. The first line of a chain has \`seq\` 0 and 64 zeros as \`prev\`; it is a \`lifecycle\` event that carries the instance, the epoch and the public key. Each sink has a chain of its own.

A restart goes on with the chain that it finds. When a write was interrupted, the next line is a \`lifecycle\` event \`recovered\` with the length and the SHA-256 of the bytes that are no record. When the file was rotated, the new one begins with \`continued\`, and \`audit verify\` takes the files in their order.

A checkpoint signs, with Ed25519 under the gateway key, the text \`sallyport.checkpoint/2\`, the epoch, the number and hash of the line before it, the time, \`every_ms\` and \`every_lines\`, each ended by a line feed. The next one is due after that time (\`audit.checkpoint.every\`) or that many lines (${MAX_LINES_BETWEEN_CHECKPOINTS}), whichever comes first. Checkpoints of earlier versions (\`sallyport.checkpoint/1\`) state no bounds. With several sinks, each one also keeps the checkpoints of the others.

\`audit verify\` says first how many lines, from which sequence number on, are unsigned: whoever can write the file could have rewritten or cut off those without a trace. What may stand there is bounded, not how much was cut off: more lines, or more of their own time, than ${VERIFIER_MAX_INTERVALS} intervals allow behind a checkpoint of form 2 is a fault, as is a run that ended (\`stopped\`) without a checkpoint behind its end. A pause without lines counts as one interval, and is a note. After a checkpoint of form 1 all this is a note; one of form 1 behind one of form 2 is a fault.

| Exit | Meaning |
| --- | --- |
| 0 | A whole chain, and everything was checked. |
| 1 | Not whole: tampered with, or damaged. |
| 2 | Not checked. A line \`not checked: give --key or the older file\` names what is missing: a file that begins in the middle of a chain, as after a rotation, or checkpoints under a key that was not given, as after a change of keys. The same code stands for a file that cannot be read. |

A start names the key of its run, and a checkpoint of that run under another one is a fault. Whoever can write the file can write such a start too: where every key that the gateway had is given, lines that are \`not checked\` for want of a key are forged. A checkpoint vouches for the lines before it and for what its \`detail\` states; the other members of its own line are vouched for by the next one.

Lines missing at the end show only against a checkpoint kept elsewhere: \`--head EPOCH:SEQ:HASH\`, the event itself, or a file that holds it. A chain that was written anew as a whole shows only against a public key kept elsewhere: \`--key\`.

## One writer for each file

Next to an audit file stands its lease, \`audit.jsonl.lease\`: a small file that names the instance, host and process that write. It is renewed every ${LEASE_TIMES.renewEveryMs / MS_PER_SECOND} s and removed at a clean end; the gateway must be allowed to create files in the folder, or it does not start. Where the path is a link, the lease stands next to the file that it names. A start that finds the lease of another gateway waits for it, at most ${LEASE_TIMES.waitMs / MS_PER_SECOND} s, and then ends with exit code 1 and a sentence that says who holds it. A lease that was not renewed for ${LEASE_TIMES.staleMs / MS_PER_SECOND} s may be taken over; one whose process has certainly ended, on this machine and in this namespace of process ids, at once. Clocks are not trusted alone: unless its process has ended, a lease is watched for as long as its holder would rely on it without renewing it (${(2 * LEASE_TIMES.renewEveryMs) / MS_PER_SECOND} s), however old it looks. While it is replaced, \`audit.jsonl.lease.next\` stands there too. A gateway whose lease was taken over writes nothing more until it is started anew. Reading commands never touch a lease.

With \`audit.durability: written\`, the default, a line is durable when a completed write has handed it to the operating system: it survives the death of the process. With \`synced\` it is on the disk, and survives the loss of power too. After a loss of power under \`written\`, lines of the last half minute or so may be missing, and where the disk wrote out of order, \`audit verify\` says what is missing in the middle. Under \`written\`, the gateway does not learn of an error that the system meets later, when it puts the lines on the disk or on the server of a network file system; choose \`synced\` where that matters.

Before each write the file must end where this gateway left it. A file that was moved away, removed or emptied (\`mv\`, \`copytruncate\`) is gone on with, without a signal. Where another process wrote into it, or cut it, nothing is written: the control \`audit\` is degraded, \`audit.onFailure\` applies, and moving the file away is what ends it. Prefer \`mv\`: what is written between the copy and the cut of \`copytruncate\` is lost, and the chain says so. A process that is held up for longer than ${LEASE_TIMES.staleMs / MS_PER_SECOND} s in the middle of a write can still end that one write; both gateways find it before their next.
`;
}
