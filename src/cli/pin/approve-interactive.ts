// `sallyport pin approve -i`: steps through what is pending at an upstream on a terminal, in the order of the table of
// `pin diff`, and approves at the end what a person chose, as if each had been named with its digest. What the scan would
// keep from an approval it keeps here too. docs/guides/reviewing-drift.md.

import { isAbout } from '../../inspection/definitions/scan.js';
import { type PinDigest, pendingOf, pinOf } from '../../pins/approval.js';
import { approvedVersions, type Lock, versionsOf } from '../../pins/lock.js';
import { type ReviewRow, reviewRow, sortForReview } from '../../pins/review-table.js';
import { presentationOf, shownName } from '../../policy/presentation.js';
import { wrapText } from '../../text/wording.js';
import { type CliIo, EXIT_FINE, EXIT_UNCHECKED, fail } from '../program.js';
import type { Questions } from '../servers/questions.js';
import { type PinApproveOptions, runPinApprove } from './approve.js';
import { pendingText } from './differences.js';
import {
  checkUpstream,
  findingsText,
  type PinPorts,
  readGateway,
  readLockFile,
  readOthers,
  readOutline,
  scanPins,
} from './lock-files.js';
import { reviewTableText } from './review-table.js';

type Step = { readonly row: ReviewRow; readonly pin: PinDigest; readonly text: string; readonly found: string };

export async function runPinApproveInteractive(
  options: Omit<PinApproveOptions, 'names'>,
  io: CliIo,
  ports: PinPorts,
): Promise<number> {
  const { upstream, config } = options;
  const questions = ports.questions?.();
  if (questions === undefined) return fail('-i needs a terminal', EXIT_UNCHECKED, io);
  try {
    const outline = readOutline(config, io, ports);
    if (outline === undefined || !checkUpstream(upstream, outline.upstreams, io)) return EXIT_UNCHECKED;
    const read = readLockFile(outline.folder, upstream, io, ports);
    if (read === 'invalid') return EXIT_UNCHECKED;
    const steps = read.lock === undefined ? [] : stepsOf(read.lock, options, io, ports);
    if (steps.length === 0) {
      io.stderr(`Nothing is pending in the lock file of ${upstream}.\n`);
      return EXIT_FINE;
    }
    io.stderr(reviewTableText(steps.map(({ row }) => row)));
    const chosen = await choose(steps, questions, io);
    if (chosen.length === 0) io.stderr('Nothing was approved.\n');
    return chosen.length === 0 ? EXIT_FINE : await runPinApprove({ ...options, names: [], chosen }, io, ports);
  } finally {
    questions.close();
  }
}

function stepsOf(
  lock: Lock,
  { upstream, config, kind }: Omit<PinApproveOptions, 'names'>,
  io: CliIo,
  ports: PinPorts,
): readonly Step[] {
  const pending = pendingOf(lock).filter((one) => (kind ?? one.kind) === one.kind);
  const findings = scanPins(lock, pending, readOthers(config, upstream, io, ports));
  const { outline } = readGateway(config, io, ports, 'skip');
  const presentation = presentationOf(outline?.upstreams.find(({ name }) => name === upstream)?.tools ?? {});
  const steps = pending.flatMap((pin): Step[] => {
    const held = pinOf(lock, pin);
    const version = versionsOf(held).find(({ sha256 }) => sha256 === pin.digest);
    const [before] = approvedVersions(held);
    if (version === undefined) return [];
    const shownAs = pin.kind === 'tool' ? shownName(presentation, pin.name) : undefined;
    const own = findings.filter((one) => isAbout(one, pin));
    const subject = { ...pin, definition: version.definition, isChanged: before !== undefined, changes: [] };
    const row = reviewRow({ ...subject, findings: own, shownAs });
    return [{ row, pin, text: pendingText(upstream, pin, before, version), found: findingsText(findings, pin) }];
  });
  const byRow = new Map(steps.map((step) => [step.row, step]));
  return sortForReview([...byRow.keys()]).flatMap((row) => byRow.get(row) ?? []);
}

/** What a person approves; the end of the input, or `q`, leaves the rest. */
async function choose(steps: readonly Step[], questions: Questions, io: CliIo): Promise<readonly PinDigest[]> {
  const chosen: PinDigest[] = [];
  for (const [at, step] of steps.entries()) {
    io.stderr(`\n${at + 1} of ${steps.length}\n${reviewTableText([step.row])}${step.found}`);
    const answer = await askOne(step, questions, io);
    if (answer === 'quit') break;
    if (answer === 'approve') chosen.push(step.pin);
  }
  return chosen;
}

const ANSWERS: Readonly<Record<string, 'approve' | 'skip' | 'show' | 'quit'>> = {
  ...{ a: 'approve', approve: 'approve', s: 'skip', skip: 'skip', '': 'skip' },
  ...{ v: 'show', show: 'show', q: 'quit', quit: 'quit' },
};

async function askOne({ text, row }: Step, questions: Questions, io: CliIo): Promise<'approve' | 'skip' | 'quit'> {
  for (;;) {
    const line = await questions.ask('[a]pprove, [s]kip, [v] show, [q]uit: ');
    const answer = line === undefined ? 'quit' : ANSWERS[line.trim().toLowerCase()];
    if (answer === 'show') io.stderr(`${text}${row.notes.flatMap((note) => wrapText(`note: ${note}`)).join('\n')}\n`);
    else if (answer !== undefined) return answer;
  }
}
