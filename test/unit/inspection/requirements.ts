// Content inspection: what is found, what passes, what is withheld.

import type { Requirement } from '../../requirements/requirement.js';

export const inspectRequirements: readonly Requirement[] = [
  row(
    '01',
    'docs/reference/attacks.md cases 68, 69; docs/contract.md §3',
    'Secrets of the published formats are found in prose, in JSON and in JSON within JSON.',
  ),
  row(
    '02',
    'docs/contract.md §3',
    'Samples from documentation, ids, hashes and cursors are not taken for secrets.',
  ),
  row(
    '03',
    'docs/reference/attacks.md case 77',
    'Every pattern that runs on traffic is bounded: no open repeat, no repeat of a repeat, no backreference.',
  ),
  row(
    '04',
    'docs/reference/performance.md rule 3',
    'Only formats whose literal anchor stands in a text are run, and none is missed by that.',
  ),
  row(
    '05',
    'docs/reference/attacks.md cases 68, 69',
    'Payment cards are found in every usual spelling, full-width, split by zero-width characters, escaped or encoded.',
  ),
  row(
    '06',
    'docs/contract.md §3',
    'Numbers that are no cards by range, length or check digit pass.',
  ),
  row('07', 'docs/contract.md §3; ISO 13616', 'IBANs are found by country, length and checksum.'),
  row(
    '08',
    'docs/contract.md §3',
    'US social security numbers are found by their rules with separators or a cue.',
  ),
  row(
    '09',
    'docs/reference/attacks.md case 70',
    'Markdown images and hostile links become inert in every form, at any depth, and their text stays.',
  ),
  row(
    '10',
    'docs/reference/attacks.md case 70',
    'Quiet links and text that is no markup stay as they are.',
  ),
  row(
    '11',
    'docs/reference/attacks.md case 70',
    'HTML that runs, loads, frames or hides is removed.',
  ),
  row(
    '12',
    'docs/reference/attacks.md case 70',
    'Code that every renderer shows as code stays; what only looks like code is neutralized.',
  ),
  row(
    '13',
    'docs/reference/attacks.md case 70',
    'Neutralizing leaves nothing active and is idempotent.',
  ),
  row(
    '14',
    'docs/reference/attacks.md case 61; UTS #51 §2; UAX #9',
    'Invisible characters are stripped, those that spelling needs are kept.',
  ),
  row(
    '15',
    'docs/reference/attacks.md case 61; docs/reference/detectors.md',
    'Terminal escape sequences are removed whatever the profile says.',
  ),
  row(
    '16',
    'docs/reference/attacks.md cases 61, 80; docs/reference/detectors.md',
    'Injection cues are seen through the disguises that are read.',
  ),
  row('17', 'docs/reference/attacks.md cases 61, 80', 'Honest text raises no cue.'),
  row(
    '18',
    'ARCHITECTURE.md, "Bytes"; docs/reference/performance.md rule 3',
    'In what the prefilter calls clean no detector finds anything, in any decoded string.',
  ),
  row(
    '19',
    'docs/reference/performance.md rule 3',
    'Ordinary text is spared the closer look; what could hide something is not.',
  ),
  row(
    '20',
    'ARCHITECTURE.md, "Bytes"',
    'An unchanged message is forwarded as the very same bytes, and beside a changed string every byte stays.',
  ),
  row(
    '21',
    'docs/reference/attacks.md case 68; docs/reference/detectors.md',
    'Secrets and personal data are redacted in every carrier, and the findings are told without them.',
  ),
  row(
    '22',
    'docs/reference/detectors.md',
    'Exempt are only the listed members, where they are defined and in their own shape, and media.',
  ),
  row(
    '23',
    'docs/reference/detectors.md',
    'A card or secret written as a number is redacted, in structured content and in its text copy alike.',
  ),
  row(
    '24',
    'docs/reference/attacks.md case 67; docs/contract.md §6',
    'A result that violates its approved outputSchema, before or after redaction, is withheld.',
  ),
  row(
    '25',
    'docs/reference/attacks.md case 68',
    'A secret cut over blocks, over a name and its value, or over values in a row never leaves whole.',
  ),
  row(
    '26',
    'docs/reference/attacks.md cases 68, 72',
    'A secret cut over two messages of an exchange: the later part is removed.',
  ),
  row(
    '27',
    'docs/contract.md §3',
    'Off, flag, redact and block do what they say, for every family.',
  ),
  row(
    '28',
    'docs/contract.md §6',
    'Members under our own prefix are removed and recorded; findings carry nothing from the wire.',
  ),
  row(
    '29',
    'docs/reference/attacks.md case 75; docs/reference/detectors.md',
    'Past a cap on depth, strings or work a message is withheld, never cut.',
  ),
  row(
    '30',
    'docs/reference/detectors.md',
    'A second, independent check withholds whatever a sabotaged first pass left.',
  ),
  row(
    '31',
    'docs/reference/attacks.md case 76',
    'An inspector that throws withholds: never the original.',
  ),
  row('32', 'docs/reference/detectors.md', 'Inspecting a second time changes nothing more.'),
  row(
    '33',
    'docs/contract.md §3',
    'Secrets in arguments are refused or flagged as the profile says.',
  ),
  row(
    '34',
    'docs/reference/attacks.md case 47',
    'The presented token is refused anywhere in the body, however it is written.',
  ),
  row(
    '35',
    'docs/contract.md §4 law 2; docs/reference/attacks.md case 57',
    'A list shows exactly what is visible, byte for byte, with its cursor.',
  ),
  row(
    '36',
    'docs/reference/attacks.md case 57; docs/contract.md §5',
    'Names that occur twice, nameless items and remote icons go; what is no list is withheld.',
  ),
  row(
    '37',
    'docs/reference/attacks.md case 82; docs/contract.md §6',
    'Lists leave private and with a capped lifetime; what was not reviewed is inspected.',
  ),
  row(
    '38',
    'docs/contract.md §5; MCP lifecycle and server/discover',
    'Handshakes tell carried capabilities and versions only.',
  ),
  row('39', 'docs/contract.md §5', 'Instructions are told only as they were approved.'),
  row(
    '40',
    'docs/reference/performance.md rule 4',
    'A page seen before is recognized by its bytes but for the id, and each policy key has its own form.',
  ),
  row('41', 'ARCHITECTURE.md, "Bytes"', 'The walk over JSON text sees what a parser sees.'),
  row('42', 'docs/contract.md §4 law 3', 'Of two profiles the strictest holds.'),
  row(
    '43',
    'docs/reference/attacks.md case 68',
    'No value made at random is taken for a sample, whatever words stand beside it.',
  ),
  row(
    '44',
    'docs/reference/attacks.md case 68',
    'A secret is removed to its last character, however long it is and wherever blocks or messages cut it.',
  ),
  row(
    '45',
    'docs/contract.md §3',
    'Identifiers, code and addresses that only begin like a secret pass.',
  ),
  row(
    '53',
    'docs/reference/attacks.md case 68',
    'Text in a payload is read and edited in whatever encoding it is.',
  ),
  row(
    '54',
    'docs/reference/attacks.md case 68',
    'Media passes where it begins as it claims; all else is read as text.',
  ),
  row(
    '55',
    'docs/reference/attacks.md case 68',
    'Encoded runs in a text are read in UTF-8, UTF-16 and Latin-1.',
  ),
];

function row(number: string, source: string, behaviour: string): Requirement {
  return { id: `I-${number}`, source, behaviour };
}
