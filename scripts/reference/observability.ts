// Renders the reference pages of metrics, reasons and audit events from the tables that the code itself uses, so that a
// page cannot deviate from them. Pure: it returns text, and the caller writes the files.

import {
  AUTH_FAILURES_PER_SECOND,
  DEFINITION_EVENTS,
  EDGE_REFUSALS_PER_SECOND,
  FIRST_EVENT_MS,
} from '../../src/audit/audit.js';
import { MAX_LINES_BETWEEN_CHECKPOINTS, VERIFIER_MAX_INTERVALS } from '../../src/audit/chain.js';
import { CALL_RESERVE, QUEUE_CAPACITY } from '../../src/audit/sink.js';
import { OCSF_ROWS, OCSF_VERSION } from '../../src/delivery/ocsf.js';
import { REASONS, type Rendering } from '../../src/policy/reasons.js';
import { METRIC_NAMES, METRICS, type MetricRow, OTHER, TOOL_LABEL } from '../../src/telemetry/metric-table.js';
import { MAX_FOREIGN_CHARACTERS } from '../../src/text/escaping.js';

const GENERATED = '<!-- Rendered from the source. Change the source, then run the tests with UPDATE_REFERENCE=1. -->';

const _MS_PER_SECOND = 1000;

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

The ops listener serves these metrics at \`/metrics\` in the Prometheus text format, together with those of the process (\`process_*\`, \`nodejs_*\`).

Label values come from the configuration, the method table and the pins, never from the wire: any other value counts as \`${OTHER}\`. Beyond \`metrics.maxSeries\` combinations of label values of one metric, further ones count as \`${OTHER}\` too, except in \`sallyport_controls\`, which counts every control, however many upstreams there are.

${table(['Metric', 'Kind', 'Labels', 'Meaning'], rows)}

With \`metrics.toolLabel: true\`, \`mcp_server_operation_duration_seconds\` has the label \`${TOOL_LABEL}\` as well: the name of a pinned tool, \`${OTHER}\` for any other name, and empty if the target is not a tool.

An empty \`error_type\` means that there was no error. Otherwise it is the reason of a refusal (see [reasons](reasons.md)), a JSON-RPC code that the protocol defines, \`tool_error\` for a result with \`isError\`, or \`${OTHER}\`.

Event streams that clients open with GET are counted as decisions; their duration is not measured.

## Buckets

Upper bounds, in seconds.

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
      return '“not found” as the protocol revision defines it';
    case 'refusal':
      return `HTTP 200: a tool result with \`isError\`, for other methods JSON-RPC error ${value.code}`;
  }
}

/** docs/reference/ocsf.md */
export function renderOcsfPage(): string {
  return `# Audit events as OCSF

${GENERATED}

With \`format: ocsf\` a sink delivers each audit line as an event of the [Open Cybersecurity Schema Framework](https://schema.ocsf.io/${OCSF_VERSION}/classes/api_activity) ${OCSF_VERSION}, class API Activity; \`sallyport audit export\` prints files in this form. Every type of event is in this class, so that one query finds all. \`raw_data\` has the line itself: written out again, the lines verify as the file does. Attributes without a value are left out.

${table(
  ['Attribute', 'Value'],
  [...OCSF_ROWS.map(({ attribute, from }) => [code(attribute), from]), [code('raw_data'), 'the line, byte for byte']],
)}

A decision and its outcome have the same \`metadata.correlation_uid\`. A line that is delivered twice has the same \`metadata.uid\`.
`;
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

Every refusal has one of these reasons. The audit event always names it (\`decision.reasons\`), as do the metric \`sallyport_denials_total\` and the process log; a caller learns the reason only if the target is listed for that caller. Protocol errors use another status or code if the protocol revision requires it. [Troubleshooting](../guides/troubleshooting.md) has cause and cure for each reason.

${table(['Reason', 'Stage', 'Log level', 'Text', 'If the target is listed for the caller', 'Otherwise'], rows)}
`;
}

const MEMBERS: readonly (readonly [string, string])[] = [
  ['schema', '`sallyport.audit/2`; `sallyport.audit/1` in lines of earlier versions.'],
  ['id', 'Id of this event (UUID).'],
  ['time', 'RFC 3339, UTC, milliseconds.'],
  ['type', 'See below.'],
  [
    'gateway',
    '`instance` (the name of this gateway, its host name and the port of its data listener, which stays the same when it is restarted), `host`, `run` (a UUID; lines of earlier versions have it as `instance`), `epoch` (this chain), `version` of the program, hashes of `config`, `policy` and `pins`. Events of a request have the epoch; `mcp.decision` also has the first 16 digits of the hashes under which it was decided.',
  ],
  [
    'actor',
    'What the token proved: `iss sub client_id act[] token{id,aud,scopes,exp,binding} groups_used`. `token.id` is a keyed hash; `exp` is in seconds since the epoch. `groups_used`: groups of the caller that the deciding rule names under `who`, at most 32; empty if it names none or no rule decided. Absent without a verified caller.',
  ],
  [
    'client',
    '`ip`, `era`, `session` (a keyed hash), and separately `self_reported`: what the client states about itself.',
  ],
  [
    'target',
    '`upstream method name kind definition pin request_id`: what was requested, the digest of its definition as last observed (absent if it equals the pin), and the digest of its pin. For a message through an endpoint of several upstreams also `endpoint`; if it is refused before its upstream is known, `upstream` is the endpoint. Of a tool that clients know by another name ([presentation](definitions.md#presentation)) also `shown_as`: the name by which it was called. Of a subscription also `uris`: the resources that it names, the first 64 of them; a finding `subscription` names by JSON pointer each of those that was left out.',
  ],
  [
    'args',
    '`digest` (keyed), `bytes`, `keys`; `violations` of a refusal `arguments-invalid`, which name at most eight arguments by JSON pointer and the keyword of the schema that they fail (`undeclared`: the definition does not declare it, and `*` stands for its name; `undescribed`: a rule reads a member that the definition does not describe; `inexact`: a rule reads a number that a double does not hold; `presented`: it is fixed or hidden by the [presentation](definitions.md#presentation) of the tool), never by value; and what rules `capture`: the values of at most 64 arguments by their JSON pointers, for allowed and refused calls. Objects and arrays are recorded as JSON.',
  ],
  [
    'decision',
    '`id verdict action mode stage policy rule reasons causes approval detail shadow`. `detail` says in one clause what was wrong with what the server or the caller sent, such as `404 to prompts/list`. `causes` are the decisions because of which a flow refused. `approval` is the id of the approval that was used, that is waited for, or because of which the request was refused. Both events of a request have the same id, and so does the refusal on the wire. An absent `action` means forwarded; an absent `mode` means `enforce`. An entry of `shadow` says what a policy that is not enforced would have decided: `verdict policy rule reason`; without `policy` it is what all policies together would have, under `policies.mode: observe`.',
  ],
  [
    'approval',
    'In `approval.*`: `id asked_by rules rules_digest parties waits_for party proof person{iss,sub} shown asked_at expires_at answered_at usable_until remembered_until remembered`. `asked_by` is the id of the decision that asked. `rules` are the rules and flows that ask, `rules_digest` the digest of their texts, `parties` who is asked (`caller`, `reviewer`), and `waits_for`, while the question stands, who has not said yes. `person` answered as `party`, proved by `proof`: `login` (in a browser), `token` (with a recent `auth_time`) or `client`, which names no person. `shown` is the SHA-256 of what the person was shown. Times are RFC 3339.',
  ],
  ['findings', 'Findings of detectors: `detector direction path count action`. The content itself is never recorded.'],
  [
    'result',
    '`status http rpc_code bytes digest altered list{advertised,visible}`, in `mcp.outcome`. `altered` is true if the client got something else than the upstream sent; `findings` say what was changed or left out.',
  ],
  ['latency_ms', '`total auth policy inspect upstream`, in `mcp.outcome`.'],
  ['trace', '`trace_id span_id`.'],
  [
    'detail',
    'In events that do not belong to a request: everything that has no member of its own. In `mcp.decision` only of a refusal before authentication, and only if there were any: `suppressed`, how many earlier ones were only counted.',
  ],
  ['chain', '`seq prev hash`, always last.'],
];

const TYPES: readonly (readonly [string, string])[] = [
  [
    'mcp.decision',
    'Before anything is forwarded. An allowed request waits until this line is durable, as `audit.durability` defines.',
  ],
  ['mcp.outcome', 'Once, at the end of every request, including refused ones.'],
  [
    'auth.failure',
    'No valid token, or a token that could not be verified. `detail.suppressed`: earlier failures that were only counted. Of a token that was refused, `detail` has `expected_issuer`, `expected_audience` and `expected_type`, as configured, and `presented_issuer`, `presented_audience` and `presented_type` (for `token-lifetime` also `expected_lifetime`, the maximum, and `presented_lifetime`, in seconds), which the token says of itself, unverified, masked and cut at 128 characters. Several values are separated by spaces. The token itself is never recorded.',
  ],
  [
    'pin.drift',
    'A definition differs from its pin, or a server changed its self-description (kind `server`). `detail.change` is the type of change, `detail.suppressed` how many earlier events of this type and upstream were only counted.',
  ],
  [
    'pin.approval',
    'A reload brought a lock file that approves a definition which was not approved before: `actor.sub` is who approved it, `target.definition` its digest, `detail.note` why. A start writes none.',
  ],
  [
    'pin.block',
    'The same for a definition that is blocked; `actor.sub` is null where the lock file does not say who blocked it.',
  ],
  [
    'pin.finding',
    'The scan found something in a definition that nobody approved, or could not scan it. `detail` has the id of the finding, its kind, tier and action (`withhold` or `flag`), the JSON pointer and the evidence, and `suppressed` like `pin.drift`. Written once while it lasts, within its rate.',
  ],
  [
    'pin.first-use',
    'A definition is trusted because the first listing showed it (`pinning.mode: trust-on-first-use`). `target.definition` is its digest.',
  ],
  [
    'approval.requested',
    'A person is asked to approve a request. Events of approvals have the caller as `actor` (without its token), `target.upstream method name pin`, the keyed digest of the arguments as they would be forwarded, and `decision.id`: that of the decision that asked. `sallyport audit query --approval ID` prints them together with the decisions that name the approval.',
  ],
  [
    'approval.granted',
    'A yes. While others are needed, `approval.waits_for` names them. It counts only after this line is durable, as the line of an allowed request. With `proof: client`, `detail.note` says “answered by the client, perhaps without a person”.',
  ],
  ['approval.denied', 'A no.'],
  [
    'approval.expired',
    'Not everybody answered in time (`approval.waits_for` says who), or a yes was not used in time (`approval.waits_for` is empty). Of all replicas, one writes it.',
  ],
  [
    'approval.used',
    'A request passes because of a yes: `decision.id` is that of this request. It waits for this line too. With `approval.remembered`, the yes with this id was given for an earlier call and counted again.',
  ],
  [
    'config.reload',
    'Files changed: `detail.result` is `applied` or `rejected`. `detail.config policy pins` are the hashes of what is in force after it, and `files_config files_policy files_pins` those of the files. While something waits for a restart: the keys in `pending`, what is left out because of them in `left_out`, and closed rules in `closed`.',
  ],
  ['admin.action', 'An access to the admin listener, including refused ones.'],
  [
    'lifecycle',
    '`detail.event`: `started` (with the public key), `stopped`, `continued` (the run goes on in its next file), `recovered` (in files of earlier versions: bytes that are not a record, with length and digest), `resumed` (after an error of the sink, with the number of refused events).',
  ],
  [
    'checkpoint',
    'Signed: `detail.epoch seq hash at every_ms every_lines key_id signature`. With `detail.event: removed` and `file`, without the bounds, it says that `audit.retain` removes the file that ends with that line.',
  ],
];

const { burst: BURST, perSecond: PER_SECOND } = DEFINITION_EVENTS;
const FIRST_HOURS = FIRST_EVENT_MS / 3_600_000;

/** Who can cause each type, and what bounds it. */
const RATES: readonly (readonly string[])[] = [
  [
    '`mcp.decision`, `mcp.outcome`',
    'A verified caller with each request; an upstream with each request that it makes of a client.',
    'Always.',
  ],
  [
    'the same, refused before authentication',
    'Anyone.',
    `${EDGE_REFUSALS_PER_SECOND} requests per second in all, two events each.`,
  ],
  ['`auth.failure`, and `admin.action` without a subject', 'Anyone.', `${AUTH_FAILURES_PER_SECOND} per second in all.`],
  [
    '`pin.drift`, `pin.finding`, of a name in the lock file or trusted on first use',
    'An upstream with each listing.',
    `The first in ${FIRST_HOURS} h of each name and class of change (from each pin) or kind and tier of finding: always. Others: ${BURST} at once, then ${PER_SECOND} per second, for each upstream.`,
  ],
  [
    '`pin.drift`, `pin.finding`, of any other name',
    'An upstream with each listing.',
    `${BURST} at once, then ${PER_SECOND} per second, for each upstream; half of it only for what was not written in ${FIRST_HOURS} h.`,
  ],
  ['`pin.first-use`', 'An upstream with its first listing.', 'Once for each definition of that listing.'],
  [
    '`pin.approval`, `pin.block`, `config.reload`, `admin.action` with a subject',
    'Operators, reviewers and viewers.',
    'Always.',
  ],
  [
    '`approval.*`',
    'A verified caller with a request that needs an approval, within the bounds of what may wait; whoever answers.',
    'Always.',
  ],
  ['`lifecycle`', 'Starts, stops, and a sink that failed or whose file was moved.', 'Always.'],
  ['`checkpoint`', 'The time, and the number of lines.', 'Always.'],
];

/** docs/reference/audit.md */
export function renderAuditPage(): string {
  const named = (rows: readonly (readonly [string, string])[]) => rows.map(([name, text]) => [code(name), text]);
  return `# Audit events

${GENERATED}

One event is one line of JSON, in printable ASCII. \`sallyport schema audit\` prints the JSON Schema. No payload, token or secret is ever written; digests of arguments and results are keyed, and \`sallyport audit hash VALUE -c FILE\` prints the digests of a known value.

## Members, in order

${table(['Member', 'Content'], named(MEMBERS))}

Events of a request omit members that are null or empty. Of actor, target and decision, \`mcp.outcome\` has only who called what and how it ended (\`iss sub client_id\`, \`upstream endpoint method name\`, \`id verdict action stage reasons\`), followed by findings, result and latency; the rest is in the line of its decision. \`sallyport audit query\` and \`show\` join the two lines: with \`--json\` their output has every member, like lines of \`sallyport.audit/1\`, with three exceptions: hashes of files stay truncated, \`stage\` is left out if the request was forwarded, and the version is only in lines of other types (that of the last \`lifecycle\` line \`started\` applies). Instance, host and run are completed from an earlier line of the same chain. If the line of the decision is in none of the named files, members that only it has are printed as null, or left out if they are never null (\`client.ip\`), and a note on standard error counts these outcomes. An outcome whose decision could not be written contains everything itself. Without \`--json\`, \`show\` leaves out members that are null or empty, and of an outcome those that it has just printed of the decision.

Text from outside (unknown names, self-reported names, URIs, argument names, captured values) is redacted (\`[redacted:<kind>]\`), escaped (\`\\u{202e}\`) and truncated to ${MAX_FOREIGN_CHARACTERS} characters. Nothing is kept of a captured value whose name suggests a secret (\`password\`, \`token\`). What a token proved is kept exactly.

## Types

${table(['Type', 'When'], named(TYPES))}

## Rates

Who causes each type, and how often it is written. What is above a rate is counted: \`detail.suppressed\` of the next event of its type says how many, and so does the metric \`sallyport_audit_events_total\` with the result \`suppressed\`. The process log leaves out what is only counted, and has the field \`suppressed\`.

${table(['Type', 'Caused by', 'Written'], RATES)}

A sink queues at most ${QUEUE_CAPACITY} events; ${CALL_RESERVE} of these slots are reserved for calls, and failures of authentication never use them. An event for which no sink has room is counted with the result \`lost\`: it was not written, so the number stays, and the next event of its definition and kind is still the first.

A server with many definitions can neither suppress the first drift of one name of the lock file by changing the others, nor by inventing names; besides the rate it can have written, for each name in an hour, at most 11 classes of drift from each pin, and 28 findings that differ in kind or tier. A server that invents more names than the rate admits can suppress the first event of another invented name; except with \`pinning.mode: off\`, no such definition can be used.

## Delivery

Sinks of the types \`syslog\`, \`otlp\` and \`http\` get every line of the first file sink, in order and at least once: a receiver that was away gets what waited. They read the files behind the gateway and delay no call; \`audit.onFailure\` does not concern them. How far each is stands in \`audit.<name>.position\` beside the files. A new receiver, or one whose position was removed or whose name was changed, begins with the file that the run has opened; the control \`audit-delivery:<name>\` names it. That control is \`degraded\`, and says since when and why, once a receiver has taken nothing for a minute although lines wait, or has not caught up for a minute and lacks lines that are older than that. Of a folder that several gateways write to, each delivers everything. A line that is delivered again is recognized by its \`id\`, both lines of a request by \`decision.id\`.

| Type | A batch counts when | Details |
| --- | --- | --- |
| \`syslog\` | the receiver has ended the connection that carried it | RFC 5424, octet counting. The name of the application is \`sallyport\`, the process the chain (\`gateway.epoch\`), the message id the type. In place of a line that is longer than \`maxMessage\`, its id, time, type and place in the chain are sent; it is counted as refused. A proxy in between confirms in the place of the receiver. |
| \`otlp\` | the response is 200 | OTLP/HTTP with JSON. The body of a record is the line. Records that \`partialSuccess\` names as rejected are refused lines. |
| \`http\` | the status is 2xx | Lines of JSON. \`webhook-id\` is a digest of the batch; with \`secret\` there are \`webhook-timestamp\` and \`webhook-signature\` as [Standard Webhooks](https://www.standardwebhooks.com) defines them. |

With \`format: ocsf\` the line is an [OCSF event](ocsf.md). A batch that is refused for what is in it (400, 413, 415, 422) is divided until the refused line stands alone, and so is a line that is answered with another error several times. If the receiver takes another line in between, the refused one is passed over, counted (\`sallyport_audit_delivered_total\` with the result \`refused\`) and told by the control \`audit-delivery:<name>\` for an hour; it stays in the file. Anything else is tried again, in smaller parts and with pauses of up to 30 s, for as long as the files are there. The control is \`degraded\` while lines wait for more than a minute. A stopping gateway delivers for up to 3 s; the next one goes on. A receiver that is killed may lose what it has read and not yet stored.

## When the log cannot be written

An allowed request is not forwarded before its decision is durable, and with \`audit.onFailure: block\`, the default, every request that would reach an upstream, lists included, is refused while it cannot be (\`audit-unavailable\`). No request waits for an outcome. The control \`audit\` shows the durability in force. \`synced\` without a sink of type file is an error. With stdout as the only sink, \`block\` requires an explicit \`durability: handed-over\` on that sink.

## The chain

A line ends in \`,"chain":{"seq":n,"prev":"…","hash":"…"}}\`. \`hash\` is the SHA-256, in base64url (in lines of \`sallyport.audit/1\` in lower-case hex), of \`prev\` as written in the line, a line feed, and the bytes of the line up to and excluding \`,"hash":"…"}}\`. \`prev\` is the \`hash\` of the previous line. The first line of a chain has \`seq\` 0 and 64 zeros as \`prev\`; it is a \`lifecycle\` event with the instance, the host, the run, the epoch and the public key. Each run of the gateway has its own chain in each sink.

A file sink at the path \`audit.jsonl\` writes \`audit-<start>-<run>.jsonl\` beside it: the start in UTC with milliseconds, and the first eight characters of the run. The first line of a file (\`started\` in the first file of a run, \`continued\` in the others) links it to the file before:

| Member of \`detail\` | Content |
| --- | --- |
| \`file\` | The name of the file. |
| \`after_file\` | The newest file that was there, or \`none\`. |
| \`after_epoch after_seq after_hash\` | The last complete line of that file. |
| \`at every_ms every_lines key_id signature\` | A checkpoint of that line, signed by the run that found it. |
| \`torn_bytes torn_sha256\` | Only if bytes follow that line: their length and SHA-256. An interrupted write left them, and they are not repaired. |
| \`skipped\` | Only if newer files were passed over: their names. They have no complete line, as a start leaves them that was cut off before its first, or they belong to another user, or their first line says another name. |
| \`why\` | Only in \`continued\`: \`size\` or \`age\` (rotation), \`vanished\` or \`replaced\` (the file was moved away or removed), \`resized\` (somebody else has cut it or written into it), \`torn\` (a failed write could not be undone). |

\`audit verify\` takes the folder, the configured path, which stands for all its files, or files in their order, and checks that each file follows the one it names. A file that is missing is an error, unless a signed checkpoint says that it was removed, or it is older than all that are given. In that case it is not checked without \`--key\`; with \`--key\`, the deletion of the oldest files without such a checkpoint is a note, and the exit code is 0. In a folder, a file with the configured name whose first line is no record is an error, also if that name has a suffix; any other \`.jsonl\` file like that is a note. Files of earlier versions, which the gateway continued at every start, verify as before; their \`recovered\` lines record bytes that are not a record.

A checkpoint signs the following text with Ed25519 under the gateway key: \`sallyport.checkpoint/2\`, the epoch, the sequence number and hash of the previous line, the time, \`every_ms\` and \`every_lines\`, each followed by a line feed. The next checkpoint is due after that time (\`audit.checkpoint.every\`) or that number of lines (${MAX_LINES_BETWEEN_CHECKPOINTS}), whichever comes first. Checkpoints of earlier versions (\`sallyport.checkpoint/1\`) state no bounds. Of a file that is removed, the text is \`sallyport.removal/1\`, the name of the file, the epoch, the sequence number, the hash and the time. With several sinks, each also contains the checkpoints of the others.

\`audit verify\` first states how many lines, from which sequence number on, are unsigned: whoever can write the file could have rewritten or removed those without a trace. What may follow a checkpoint is bounded; what was removed is not. It is an error if more lines, or more time, than ${VERIFIER_MAX_INTERVALS} intervals allow follow a checkpoint of form 2, or if a run that ended (\`stopped\`) has no checkpoint after its end. The run that follows signs the end of the file that it finds. With \`--key\`, this covers that end only if the run before has a checkpoint of its own under a given key, or no more lines or time than those intervals from its first line on; otherwise its lines are unsigned, and that is an error. A pause without lines counts as one interval and is a note. After a checkpoint of form 1 all this is a note; a checkpoint of form 1 after one of form 2 is an error.

Checkpoints are also kept in a second place: another sink, and the metric \`sallyport_audit_chain_seq\`.

| Exit code | Meaning |
| --- | --- |
| 0 | The chain is complete and everything was verified. |
| 1 | Not complete: modified or damaged. |
| 2 | Not checked. The line \`not checked: give --key or the older file\` names what is missing: the file follows one that was not given, or checkpoints use a key that was not given, as after a change of keys. A file that cannot be read has the same exit code. |

A start names the key of its run; a checkpoint of that run under another key is an error. Whoever can write the file can also write such a start: if every key that the gateway had is given, lines that are \`not checked\` for lack of a key are forged. A checkpoint vouches for the lines before it and for its own \`detail\`; the next one vouches for the other members of its line.

Lines that are missing at the end are detected only with a checkpoint kept elsewhere: \`--head EPOCH:SEQ:HASH\`, the event itself, or a file that contains it (of a file, the last checkpoint of each chain counts). A chain that was rewritten completely is detected only with a public key kept elsewhere: \`--key\`.

## Space

A call costs two lines, 1.8 KB together, and 0.18 KB compressed. So 10 calls per second are 1.6 GB a day, or 0.16 GB compressed; kept for 30 days, 47 GB or, with the files of the last day uncompressed, 6 GB. A volume should have a tenth more than that.

With \`audit.rotate.compress: gzip\`, a file that no run writes any more becomes \`audit-….jsonl.gz\`: not before every configured receiver has its lines, in the background, and with the time of its last line. \`verify\`, \`query\`, \`show\` and \`tail\` read both. The original is removed when the compressed file is complete, synced and was read back; where both are there after a crash, the original counts. A shipper of your own that reads the files must be done before a file is compressed (about a minute after it was last written), so leave compression off with one.

\`audit.retain\` keeps a file that a configured receiver does not have yet, and all newer ones; the control \`audit\` names it then, after \`audit-delivery:<name>\` has said that lines wait. The control \`audit-space\` is \`degraded\` while the volume has less free space than \`audit.minFree\` percent (by default 10, or 5 GiB if that is less), and the metric \`sallyport_audit_free_bytes\` says how much there is. When the volume is full, calls are refused ([when the log cannot be written](#when-the-log-cannot-be-written)).

## Streams: standard output and replicas

With the sink \`stdout\`, standard output has audit lines and nothing else; everything that the program prints otherwise goes to standard error. The epoch of a chain in a stream begins with \`stream-\`, so that lines of several replicas and of several runs may stand between each other: each line belongs to the chain that it names. The first line of a run (\`started\`) is followed by a checkpoint at once.

\`audit verify\`, \`query\` and \`show\` read such streams as they are (a file that begins with an audit line was written by a gateway and has no wrappers, so a wrapped line in it is an error): from several files, a folder (names with \`.jsonl\` or \`.log\`, also with a suffix), or standard input; as the gateway wrote them, in the format of CRI (\`<time> stdout F …\`, with long lines in parts) or of Docker's \`json-file\`, compressed by gzip or not. Standard error in them is left out. A line that is no record is passed over, with a note that counts them; a record that lacks shows in its chain. Each of the commands groups what it prints by instance: \`verify\` prints runs, lines and the head of each, \`query\` prints its rows under the name of the instance (\`--instance\` selects one), and \`show\` and \`--json\` name it in each event.

In a stream no run can read what the run before it has written, so it cannot sign its end as it does in files. A run that follows another of its instance is accepted only if that one ended with \`stopped\` and a checkpoint behind it:

| Found | Verdict |
| --- | --- |
| A run without that end, followed by another run of its instance (killed, or cut off) | Not checked (exit code 2). The run is named with the number of its unsigned lines, and how many followed them is not known. |
| The same, and no run of its instance follows | A note with that number: it still runs, was killed, or was cut off. |
| The beginning of a run is not there | Not checked without \`--key\`, a note with it; an error if an earlier run of the instance is there. |
| A run that says that it began before the one that stands before it in the same file | Not checked: the runs were moved, or the clock was set back. |
| A record without its end | Not checked, as after a kill during a write. |
| A run that began before another of its instance had ended | \`two gateways of one name\`; no error. |
| Lines edited, missing or moved, another line of a number that was read before, a line that names another instance than its chain, a signature by another key | An error (exit code 1). |
| Lines that stand there again, byte for byte: known by a line that was read before and the hashes that lead to it | Counted once, with a note. |

The same holds for what a receiver of \`audit.sinks\` has stored, in one file or several: a file whose first record is not the first line of the file itself (its \`detail.file\`) was written by somebody else, and each of its lines belongs to the chain that \`gateway.epoch\` names. Between the runs of an instance the links between files are checked too: a run that follows another signs its end. In the file of a run itself, another chain and a repeated line are errors.

What the stream alone cannot show: that a whole run, or the newest lines, were taken out. A head kept elsewhere shows both. All replicas that have one key can write in the name of each other. Lines of earlier versions on standard output do not have such epochs; verify their runs one by one.

## Writers never share a file

A file is opened so that it must not exist, with mode 0600, and symbolic links are not followed. The gateway must be allowed to create files in the folder and to list it, otherwise it does not start. A name is newer than every other, also if the clock was set back; names that lie more than a day ahead of the clock and of the last line are passed over, and the control \`audit\` names them. A pipe or a device at the configured path is written to only if no files of earlier runs are beside it; outside \`/dev\` no link to one is followed, and \`synced\` is refused. A start on a full disk leaves no file behind.

Several gateways may write to one folder. Two that follow the same line, or one that went on after another had begun, are reported as two writers by \`audit verify\`; this is no error. While both run, the control \`audit\` of each is \`degraded\` and names the file of the other. Replicas that each write to a folder of their own have no such degraded control.

With \`audit.durability: written\`, the default, a line is durable once a completed write has handed it to the operating system: it survives the end of the process. With \`synced\` it is on disk and survives a power failure too. After a power failure under \`written\`, lines of about the last half minute may be missing, and if the disk wrote out of order, \`audit verify\` reports what is missing in the middle. Under \`written\` the gateway does not learn of errors that occur when the system later writes the lines to disk or to a network file system; choose \`synced\` where that matters.

Before each write the file must be at its path and end where this gateway left it; otherwise it goes on in its next file. What somebody else wrote into a file, or cut off, stays as it is: \`audit verify\` reports it, and the control \`audit\` is \`degraded\` until the gateway is restarted. The control is \`degraded\` too after a file that is being written was moved away, removed or replaced, although no line is lost by a move; move only files that are no longer written, and do not use \`copytruncate\`.
`;
}
