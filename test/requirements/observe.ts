// What the witness and the seals must do: audit, metrics, logs, listeners of our own, sealed values.

import type { Requirement } from './requirement.js';

export const observeRequirements: readonly Requirement[] = [
  {
    id: 'O-01',
    source: 'docs/contract.md §8',
    behaviour:
      'Both events of an exchange have the members of sallyport.audit/1 in their order and say who asked for what, what was decided and how it ended.',
  },
  {
    id: 'O-02',
    source: 'docs/contract.md §8',
    behaviour: 'mcp.decision and mcp.outcome carry one decision id and event ids of their own.',
  },
  {
    id: 'O-03',
    source: 'docs/contract.md §3, §8; docs/reference/attacks.md case 86',
    behaviour:
      'An event names the configuration, policy and pins that its exchange was decided under.',
  },
  {
    id: 'O-04',
    source: 'docs/reference/attacks.md case 90',
    behaviour:
      'An event is one line of printable ASCII whatever anyone wrote, and what a token proved is kept exactly.',
  },
  {
    id: 'O-05',
    source: 'docs/contract.md §8; docs/reference/attacks.md cases 90, 92',
    behaviour: 'What others write is masked, made visible and cut at 128 characters.',
  },
  {
    id: 'O-06',
    source: 'docs/contract.md §8',
    behaviour: 'A line is bounded however much is listed, and holds null for what JSON cannot say.',
  },
  {
    id: 'O-07',
    source: 'docs/contract.md §8',
    behaviour: 'Every other type of event is one line with the gateway and the chain around it.',
  },
  {
    id: 'O-08',
    source: 'docs/contract.md §8',
    behaviour:
      'An event names the groups of the caller that the deciding rule asks for, whether it allows or denies, and no other.',
  },
  {
    id: 'O-09',
    source: 'docs/contract.md §4, audit.capture; §8',
    behaviour:
      'The arguments that a matching require rule names are recorded, of what is allowed and of what is refused: without secrets, cut, and bounded in number.',
  },
  {
    id: 'O-10',
    source: 'docs/contract.md §8',
    behaviour:
      'Each line hashes the bytes written and the line before; an untouched chain verifies, and without a head its end is said to be unknown.',
  },
  {
    id: 'O-11',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 90',
    behaviour:
      'Any edit, deletion, move, repetition, insertion or second chain is found and its line named.',
  },
  {
    id: 'O-12',
    source: 'docs/contract.md §8',
    behaviour:
      'A chain cut or rewritten fails against a checkpoint kept elsewhere, and checkpoints must be signed by the given key.',
  },
  {
    id: 'O-13',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 89',
    behaviour: 'A torn line is accepted only where the next line records exactly its bytes.',
  },
  {
    id: 'O-14',
    source: 'docs/contract.md §8',
    behaviour: 'Rotated files verify as one chain in their order; a missing earlier file is noted.',
  },
  {
    id: 'O-15',
    source: 'docs/contract.md §1',
    behaviour:
      'audit verify exits 0, 1 or 2 and names file, line and fault; heads and keys are taken in every documented form.',
  },
  {
    id: 'O-16',
    source: 'docs/contract.md §1; docs/reference/attacks.md case 90',
    behaviour:
      'audit tail, query and show find exact values, follow rotation, and print nothing that acts on a terminal.',
  },
  {
    id: 'O-17',
    source: 'docs/contract.md §1, §8',
    behaviour: 'audit hash prints the keyed digests by which events know a value, never the value.',
  },
  {
    id: 'O-18',
    source: 'docs/contract.md §8',
    behaviour:
      'A checkpoint follows every ten thousand lines and every interval, and states both bounds under its signature; a chain whose later checkpoints were taken out fails, by the count or the time of the lines, or because its run ended without one.',
  },
  {
    id: 'O-19',
    source: 'docs/contract.md §1, §8',
    behaviour:
      'audit verify says first which lines are unsigned, and tells what it could not check (a rotated file alone, a key that was not given) from what was tampered with.',
  },
  {
    id: 'O-20',
    source: 'docs/reference/performance.md rule 6',
    behaviour:
      'One write is in flight; what arrives meanwhile is written next, together and in order.',
  },
  {
    id: 'O-21',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 89',
    behaviour:
      'A failed write refuses all that waits, loses no order, and the sink recovers by itself.',
  },
  {
    id: 'O-22',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 94',
    behaviour: 'Outcomes outlive a failure of the sink and are written before what comes later.',
  },
  {
    id: 'O-23',
    source: 'docs/contract.md §8',
    behaviour: 'The queue is bounded, and a reserve of it is kept for calls.',
  },
  {
    id: 'O-24',
    source: 'docs/reference/attacks.md case 89',
    behaviour: 'A write that does not come back refuses those who wait and those who come.',
  },
  {
    id: 'O-25',
    source: 'docs/reference/attacks.md case 94',
    behaviour: 'Closing writes all that waits, the end of the run and a signed checkpoint.',
  },
  {
    id: 'O-30',
    source: 'docs/contract.md §8',
    behaviour:
      'A line is in the file when it is said to be durable; the file is readable by its owner alone.',
  },
  {
    id: 'O-31',
    source: 'docs/contract.md §8',
    behaviour: 'A restart goes on with the chain of the file.',
  },
  {
    id: 'O-32',
    source: 'docs/reference/attacks.md case 89',
    behaviour: 'A removed, rotated or emptied file is opened anew, and the new line says so.',
  },
  {
    id: 'O-33',
    source: 'docs/reference/attacks.md case 89',
    behaviour: 'A full disk or a missing folder refuses, and recovery needs no restart.',
  },
  {
    id: 'O-34',
    source: 'docs/reference/attacks.md case 89',
    behaviour:
      'What a crash tore off is recorded wherever it cut; a file that is no audit file is never touched.',
  },
  {
    id: 'O-35',
    source: 'docs/reference/attacks.md case 89',
    behaviour: 'kill -9 leaves a verifiable chain with every line that was said to be durable.',
  },
  {
    id: 'O-36',
    source: 'docs/contract.md §8',
    behaviour: 'Lines handed to a stream are a chain of their own.',
  },
  {
    id: 'O-37',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 89',
    behaviour:
      'Nothing is written behind what another process wrote into the file, or behind a cut, until the file was taken away.',
  },
  {
    id: 'O-38',
    source: 'docs/contract.md §8',
    behaviour:
      'An audit file has one writer: a lease that is renewed, waited for, taken over when it is not renewed, and given back; who lost it writes nothing more.',
  },
  {
    id: 'O-39',
    source: 'docs/contract.md §8',
    behaviour:
      'A process counts as ended only by boot, namespace of process ids, number and start time together.',
  },
  {
    id: 'O-40',
    source: 'docs/contract.md §9',
    behaviour:
      'An exchange is counted by verdict, reason and duration of each side, with the stated buckets.',
  },
  {
    id: 'O-41',
    source: 'docs/contract.md §9',
    behaviour: 'Every metric of the contract moves, with exactly its labels.',
  },
  {
    id: 'O-42',
    source: 'docs/contract.md §9; docs/reference/attacks.md case 91',
    behaviour:
      'Names and codes from the wire make no series; past the cap everything counts under _OTHER.',
  },
  {
    id: 'O-43',
    source: 'docs/contract.md §3, §9',
    behaviour: 'Tools are labelled only where configured, and only by pinned names.',
  },
  {
    id: 'O-44',
    source: 'docs/contract.md §9',
    behaviour: 'Controls, hashes and names that are no longer so are gone from the metrics.',
  },
  {
    id: 'O-50',
    source: 'docs/reference/attacks.md cases 90, 92',
    behaviour:
      'The process log writes named fields only, one line each, without tokens or control characters.',
  },
  {
    id: 'O-51',
    source: 'docs/contract.md §9',
    behaviour: 'Each control shows its state, why, and since when.',
  },
  {
    id: 'O-60',
    source: 'docs/contract.md §2',
    behaviour: 'The ops listener serves metrics, liveness and readiness, and 404 for all else.',
  },
  {
    id: 'O-70',
    source: 'docs/contract.md §2',
    behaviour:
      'The admin listener shows nothing without a credential and a role, and every access is told.',
  },
  {
    id: 'O-71',
    source: 'docs/contract.md §2',
    behaviour: 'The admin listener answers no foreign Host and no other origin.',
  },
  {
    id: 'O-72',
    source: 'docs/contract.md §2',
    behaviour:
      'The admin page runs under a policy that allows its own script and style by hash only.',
  },
  {
    id: 'O-80',
    source: 'docs/contract.md §8',
    behaviour: 'An allowed exchange goes on only when its decision is durable.',
  },
  {
    id: 'O-81',
    source: 'docs/contract.md §8; docs/reference/attacks.md case 89',
    behaviour:
      'Where the audit cannot be written nothing reaches an upstream; of several sinks all must take it; refusals do not wait.',
  },
  {
    id: 'O-82',
    source: 'docs/contract.md §8',
    behaviour: 'Failed logins past a rate are counted and not written, and the count is recorded.',
  },
  {
    id: 'O-83',
    source: 'docs/contract.md §3, §8',
    behaviour: 'Events carry the versions in force, those of an exchange its own.',
  },
  {
    id: 'O-84',
    source: 'docs/contract.md §8',
    behaviour: 'What is written satisfies the published JSON Schema.',
  },
  {
    id: 'O-90',
    source: 'docs/contract.md §8 and §9',
    behaviour: 'The reference pages of metrics, reasons and audit are those that the code renders.',
  },
  {
    id: 'S-01',
    source: 'docs/contract.md §10',
    behaviour: 'A sealed value opens for the same purpose and bindings until it expires.',
  },
  {
    id: 'S-02',
    source: 'docs/contract.md §10',
    behaviour: 'No purpose opens what another sealed.',
  },
  {
    id: 'S-03',
    source: 'docs/contract.md §10',
    behaviour:
      'A sealed value opens for exactly the same binding strings only, without normalization.',
  },
  {
    id: 'S-04',
    source: 'docs/contract.md §10',
    behaviour:
      'A changed, respelled, cut or foreign value does not open, and nothing is said about why.',
  },
  {
    id: 'S-05',
    source: 'docs/contract.md §3 keys',
    behaviour: 'The first key seals, all open, and a removed key opens nothing more.',
  },
  {
    id: 'S-06',
    source: 'NIST SP 800-38D §8',
    behaviour: 'The same value is never sealed to the same text.',
  },
  {
    id: 'S-07',
    source: 'docs/contract.md §10; docs/reference/attacks.md case 81',
    behaviour:
      'A session id is unknown to another upstream, issuer, subject or client, and after its end.',
  },
  {
    id: 'S-08',
    source: 'docs/contract.md §8',
    behaviour: 'Keyed digests differ by purpose and by key; a ring is not made of a bad key.',
  },
  {
    id: 'S-09',
    source: 'docs/contract.md §8',
    behaviour: 'Checkpoints are signed by the key that keys public prints.',
  },
  {
    id: 'S-20',
    source: 'docs/reference/performance.md rules 5 and 9',
    behaviour:
      'A session that was opened is remembered for its owner alone, briefly and in bounds.',
  },
];
