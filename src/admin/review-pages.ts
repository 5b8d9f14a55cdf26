// The pages drift and pending: which definitions need a reviewer, and one of them next to its pin, field by field, with
// what to do about it. Everything in a definition comes from an upstream and is hostile. No page approves.
// docs/reference/listeners.md#the-console; docs/reference/definitions.md.

import type { PlainResponse } from '../http/app.js';
import { foreign, foreignName, type Html, html, rowsTable, stateText } from '../http/html.js';
import { cellsOf, type ReviewRow, sortForReview } from '../pins/review-table.js';
import { isPasteable, quoteForShell } from '../text/escaping.js';
import { countOf } from '../text/wording.js';
import { type Frame, page } from './page-frame.js';
import { blockButton } from './pages.js';

/** A definition that drifted, is pending, or is withheld. */
export type ReviewItem = {
  /** Names the item in a URL: a digest of what it is. */
  readonly id: string;
  readonly upstream: string;
  readonly kind: string;
  /** Text of the upstream. */
  readonly name: string;
  /** The name by which clients know it, where the operator has given it one or presents it otherwise. */
  readonly shownAs?: string | undefined;
  /** The state of its pin, as decisions see it. */
  readonly state: string;
  /** How it differs from its pin. */
  readonly changes: readonly string[];
  /** Digests of the pinned definition and of the one that is offered. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The lock file holds it, and nobody has approved it. */
  readonly isPending: boolean;
  /** It is treated as approved because it was offered first, and nobody has approved it. */
  readonly isFirstUse: boolean;
  /** It is an approved form that the upstream does not offer to the gateway. */
  readonly isNotOffered: boolean;
};

type ReviewFinding = {
  readonly id: string;
  readonly tier: string;
  readonly kind: string;
  readonly pointer: string;
  readonly evidence: string;
  readonly reason: string;
};

/** The fields of a definition next to those of its pin. */
type FieldComparison = {
  /** The first of those that differ, by their JSON pointers; a side is absent where the field is not there. */
  readonly fields: readonly {
    readonly pointer: string;
    readonly before?: string;
    readonly after?: string;
  }[];
  /** How many fields differ, and how many do not. */
  readonly differing: number;
  readonly unchanged: number;
  /** False if there are more fields than were compared. */
  readonly isComplete: boolean;
};

export type ReviewDetail = {
  readonly item: ReviewItem;
  /** `undefined` if the comparison did not finish. */
  readonly comparison: FieldComparison | undefined;
  readonly findings: readonly ReviewFinding[];
  /** Which of the checks were not made, and why, in sentences. */
  readonly unfinished: readonly string[];
  /** In a sentence. */
  readonly clientSees: string;
  readonly commands: readonly { readonly what: string; readonly line: string }[];
  /** What to know before the commands are run. */
  readonly caution: string | undefined;
  /** Adds the definition to the lock file as pending. */
  readonly patch: string | undefined;
  /** What it does and lacks; absent where nothing is offered, or more than is read for a page. */
  readonly row?: ReviewRow | undefined;
};

/** A row of the table that opens a review. */
export type TableRow = {
  readonly row: ReviewRow;
  /** False where the scan was not made. */
  readonly areFindingsKnown: boolean;
};

type Rows = ReadonlyMap<string, TableRow>;

export type ReviewPort = {
  items(): readonly ReviewItem[];
  /** What the items do and lack, by their ids. Computed when it is asked for; none of what is not offered or too long. */
  rows(): Promise<Rows>;
  /** How many definitions are not among the items, because there are too many. */
  unlisted(): number;
  /** Computed when it is asked for. */
  detail(id: string): Promise<ReviewDetail | undefined>;
};

export const GUIDE_PATH = '/guide';

const MAX_ITEMS = 500;
const MAX_FINDINGS = 100;
/** Of one side of a field. */
const MAX_FIELD = 4_000;
/** Unchanged characters that are shown around a change. */
const CONTEXT = 400;
/** Characters of one side of a field with the text around the change, and of all fields together. */
const MAX_SIDE = MAX_FIELD + 2 * CONTEXT;
const MAX_FIELDS_TEXT = 200_000;
/** What is blocked was decided by somebody already. */
const SETTLED: ReadonlySet<string> = new Set(['blocked']);

/** One sentence about what needs a reviewer, for every page; `undefined` if nothing does. */
export function alertOf(items: readonly ReviewItem[]): string | undefined {
  const open = items.filter((item) => !SETTLED.has(item.state) && !isListedApart(item));
  if (open.length === 0) return undefined;
  const pending = open.filter(({ isPending }) => isPending).length;
  const upstreams = [...new Set(open.map(({ upstream }) => upstream))];
  const named = `${upstreams.slice(0, 3).join(', ')}${upstreams.length > 3 ? ' and others' : ''}`;
  const parts = [
    ...(open.length > pending ? [`${open.length - pending} drifted or withheld`] : []),
    ...(pending > 0 ? [`${pending} pending`] : []),
  ];
  return `Definitions of ${named} need a review: ${parts.join(', ')}.`;
}

export function driftPage(
  all: readonly ReviewItem[],
  frame: Frame,
  unlisted = 0,
  rows: Rows = new Map(),
): PlainResponse {
  const items = all.filter((item) => !isListedApart(item));
  const trusted = all.filter(({ isFirstUse }) => isFirstUse);
  const notOffered = all.filter(({ isNotOffered }) => isNotOffered);
  const main = html`<p>A definition that differs from its pin is hidden and refused until it is approved in the lock file or restored by its upstream. Until then no caller can use it, so no immediate action is required.</p>
${unlisted === 0 ? undefined : html`<p class="panel error">${countOf(unlisted, 'further definition')} ${unlisted === 1 ? 'is' : 'are'} not listed here. <code>sallyport pin diff</code> lists them all.</p>`}
${items.length === 0 ? html`<p>Everything is as pinned.</p>` : itemsTable(items, rows)}
${trusted.length === 0 ? undefined : html`<h2>Trusted on first use</h2><p>These were in the first listing of their upstream, and nobody has approved them. What is added or changed later is not trusted.</p>${itemsTable(trusted, rows)}`}
${notOffered.length === 0 ? undefined : html`<h2>Approved and not offered</h2><p>The gateway is offered other forms of these. They stay approved: they may be for other callers, or the upstream may go back to them. The guide says how such an approval ends.</p>${itemsTable(notOffered, rows)}`}`;
  return page('Drift and pending', main, { frame, current: '/drift' });
}

/** What nobody has to decide about now. */
function isListedApart({ isFirstUse, isNotOffered }: ReviewItem): boolean {
  return isFirstUse || isNotOffered;
}

/** What is riskiest first, where the rows say what that is. */
function itemsTable(all: readonly ReviewItem[], rows: Rows): Html {
  const items = sortItems(all, rows).slice(0, MAX_ITEMS);
  const hasRows = items.some(({ id }) => rows.has(id));
  const cells = items.map((item) => [
    html`<a href="/drift/${item.id}">${foreignName(item.name)}</a>`,
    item.upstream,
    item.kind,
    html`${stateText(item.state)}${item.isPending && item.state !== 'pending' ? ', pending' : undefined}`,
    item.changes.join(', ') || '–',
    ...(hasRows ? rowCells(rows.get(item.id)) : []),
  ]);
  const columns = ['Definition', 'Upstream', 'Kind', 'State', 'What changed', ...(hasRows ? ROW_COLUMNS : [])];
  const more = all.length > MAX_ITEMS ? `, of which the first ${MAX_ITEMS} are shown` : '';
  return rowsTable(`${countOf(all.length, 'definition')}${more}.`, columns, cells);
}

const ROW_COLUMNS = ['Effect', 'Free text', 'Findings', 'Size'];

function rowCells(found: TableRow | undefined): readonly string[] {
  if (found === undefined) return ROW_COLUMNS.map(() => '–');
  const [effect = '', text = '', findings = '', size = ''] = cellsOf(found.row);
  const contradicted = found.row.contradiction === undefined ? '' : ', contradicted';
  return [`${effect}${contradicted}`, text, found.areFindingsKnown ? findings : 'not known', size];
}

function sortItems(items: readonly ReviewItem[], rows: Rows): readonly ReviewItem[] {
  const byRow = new Map(
    items.flatMap((item) => {
      const found = rows.get(item.id);
      return found === undefined ? [] : [[found.row, item] as const];
    }),
  );
  const sorted = sortForReview([...byRow.keys()]).flatMap((row) => byRow.get(row) ?? []);
  return [...sorted, ...items.filter(({ id }) => !rows.has(id))];
}

/** The guide as it is installed with this version, so that it is read where nothing else can be reached. */
export function guidePage(guide: string | undefined, frame: Frame): PlainResponse {
  const main =
    guide === undefined
      ? html`<p class="panel">The guide is not installed here. It is docs/guides/reviewing-drift.md of this version.</p>`
      : html`<pre tabindex="0" aria-label="Guide">${guide}</pre>`;
  return page('The guide “Reviewing drift”', main, { frame, current: '/drift' });
}

/** One definition. Viewers see no more of it than the audit log has. */
export function driftDetailPage(detail: ReviewDetail, frame: Frame): PlainResponse {
  const { item, clientSees, findings } = detail;
  const { upstream, kind, name, shownAs, state, changes, before, after, isPending, isFirstUse } = item;
  const mayReview = frame.roles.some((role) => role !== 'viewer');
  const facts: readonly (readonly [string, Html | string])[] = [
    ['Upstream', upstream],
    ['Kind', kind],
    ...(shownAs === undefined ? [] : [['Clients know it as', foreignName(shownAs)] as const]),
    [
      'State',
      html`${stateText(state)}${isPending ? ', in the lock file as pending' : undefined}${isFirstUse ? ', trusted on first use' : undefined}`,
    ],
    ['What changed', changesText(changes)],
    ['Pinned', digestText(before)],
    ['Offered', digestText(after)],
    ['A client sees', clientSees],
    ...(mayReview && detail.row !== undefined ? rowFacts(detail.row) : []),
  ];
  const main = html`<dl class="facts">${facts.map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl>
${mayReview ? reviewSections(detail, frame) : html`<p class="panel">Definitions and the commands to approve them are shown to reviewers. ${findings.length === 0 ? undefined : `The scan has ${countOf(findings.length, 'finding')}.`}</p>`}
<p><a class="button" href="/drift">All definitions</a></p>`;
  return page(`${upstream}: ${foreign(name, 100)}`, main, { frame, current: '/drift' });
}

function rowFacts(row: ReviewRow): readonly (readonly [string, Html | string])[] {
  const { effect, because, contradiction, notes } = row;
  const [, text = '', , size = ''] = cellsOf(row);
  const why = because === undefined ? '' : `, by ${foreign(because)}`;
  return [
    ...(effect === undefined ? [] : [['Effect', `${effect}${why}`] as const]),
    ...(contradiction === undefined ? [] : [['Contradiction', foreign(contradiction)] as const]),
    ['Free-text inputs', text],
    ['Size', `${size} characters`],
    ...(notes.length === 0 ? [] : [['Notes', notes.join('; ')] as const]),
  ];
}

function changesText(changes: readonly string[]): string {
  const text = changes.join(', ') || 'nothing';
  if (!changes.includes('unclassified')) return text;
  return `${text}: the definition could not be compared with its pin yet, or its content is not known`;
}

function digestText(digest: string | undefined): Html | string {
  return digest === undefined ? 'none' : html`<code>sha256:${digest}</code>`;
}

function reviewSections(detail: ReviewDetail, frame: Frame): Html {
  const { item, comparison, commands, caution, patch } = detail;
  return html`<h2>Findings of the scan</h2>
${findingsList(detail)}
<h2>Pinned and offered</h2>
${comparison === undefined ? html`<p class="panel error">The definition could not be compared with its pin now. Load the page again, or run the first command.</p>` : fieldsTable(comparison)}
<h2>To approve it</h2>
<p>This page never approves. The commands are run on a branch of the repository that holds the lock files; <a href="${GUIDE_PATH}">the guide “Reviewing drift”</a> explains them.</p>
${caution === undefined ? undefined : html`<p class="panel">${caution}</p>`}
<ol>${commands.map(({ what, line }) => html`<li>${what}<pre tabindex="0" aria-label="Command">${linesOf(line)}</pre></li>`)}</ol>
${patch === undefined ? undefined : html`<details><summary>The patch of the lock file</summary><p>It adds the definition as this gateway sees it, as pending, for a place from which the upstream cannot be reached: <code>git apply</code> it, then approve.</p><pre class="code" tabindex="0" aria-label="Patch">${linesOf(patch)}</pre></details>`}
<h2>To block it</h2>
<p>A block is in force everywhere within two seconds and lasts until an admin lifts it. It also refuses the version that was approved before.</p>
${blockSection(item, frame)}`;
}

function findingsList({ findings, unfinished }: ReviewDetail): Html {
  const missing = unfinished.map((text) => html`<p class="panel error">${text}</p>`);
  if (findings.length === 0 && unfinished.length > 0) return html`${missing}`;
  if (findings.length === 0) return html`<p>None. This does not prove that the definition is harmless.</p>`;
  return html`${missing}<ul>${findings.slice(0, MAX_FINDINGS).map(findingText)}</ul>${findings.length > MAX_FINDINGS ? html`<p>These are the first ${MAX_FINDINGS} of ${findings.length}.</p>` : undefined}`;
}

function blockSection({ upstream, kind, name }: ReviewItem, frame: Frame): Html {
  const isNamed = ['tool', 'prompt', 'template', 'resource'].includes(kind);
  const target = isNamed ? { target: kind, upstream, name } : { target: 'upstream', upstream };
  return blockButton(target, isNamed ? `this ${kind}` : 'the whole upstream', frame);
}

function findingText({ id, tier, kind, pointer, evidence, reason }: ReviewFinding): Html {
  const shown = kind === 'shadowing' ? foreignName(evidence) : html`<code>${foreign(evidence, 400)}</code>`;
  return html`<li><span class="state ${tier}">${tier}</span> ${kind} <span class="dim">at</span> <code>${foreign(pointer) || '(the text)'}</code>: ${reason}
<br>${shown} <span class="dim small">${id}</span></li>`;
}

function fieldsTable(comparison: FieldComparison): Html {
  const { differing, unchanged, isComplete } = comparison;
  const incomplete = isComplete
    ? undefined
    : html`<p class="panel error">The definition has more fields than are compared for a page. The first command compares them all.</p>`;
  if (differing === 0)
    return html`${incomplete}<p>No ${isComplete ? '' : 'compared '}field differs: only the notation, or only the digest of the definition is known.</p>`;
  const fields = shownFields(comparison.fields);
  const rows = fields.map(({ pointer, before, after }) => {
    const [old, next] = sidesOf(before, after);
    return html`<tr><th scope="row"><code>${foreign(pointer) || '(the text)'}</code></th><td class="old" data-label="Pinned">${old}</td><td class="new" data-label="Offered">${next}</td></tr>
`;
  });
  const more = differing > fields.length ? `, of which the first ${fields.length} are shown` : '';
  return html`${incomplete}<div class="table"><table class="rows sides"><caption>${countOf(differing, 'field')} ${differing === 1 ? 'differs' : 'differ'}${more}; ${unchanged} ${unchanged === 1 ? 'does' : 'do'} not.</caption>
<thead><tr><th scope="col">Field</th><th scope="col">Pinned</th><th scope="col">Offered</th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

/** The first fields, as many as fit into the text of a page. */
function shownFields(fields: FieldComparison['fields']): FieldComparison['fields'] {
  let left = MAX_FIELDS_TEXT;
  return fields.filter(({ before = '', after = '' }) => {
    const isShown = left > 0;
    left -= Math.min(before.length, MAX_SIDE) + Math.min(after.length, MAX_SIDE);
    return isShown;
  });
}

const NO_FIELD = html`<span class="dim">(absent)</span>`;

/** Both sides with what differs marked: what lies between the common beginning and the common end. */
function sidesOf(before: string | undefined, after: string | undefined): readonly [Html, Html] {
  if (before === undefined || after === undefined) return [oneSide(before, 'del'), oneSide(after, 'ins')];
  const [start, end] = commonEnds(before, after);
  const [from, to] = [Math.max(0, start - CONTEXT), before.length - end];
  const begin = `${from > 0 ? '\u2026' : ''}${linesOf(before.slice(from, start))}`;
  const close = `${linesOf(before.slice(to, to + CONTEXT))}${end > CONTEXT ? '\u2026' : ''}`;
  const middle = (side: string): string => linesOf(side.slice(start, side.length - end), MAX_FIELD);
  return [html`${begin}<del>${middle(before)}</del>${close}`, html`${begin}<ins>${middle(after)}</ins>${close}`];
}

function oneSide(text: string | undefined, as: 'del' | 'ins'): Html {
  if (text === undefined) return NO_FIELD;
  const shown = linesOf(text, MAX_FIELD);
  return as === 'del' ? html`<del>${shown}</del>` : html`<ins>${shown}</ins>`;
}

/** The lengths of the common beginning and the common end of two texts, neither of which splits a surrogate pair. */
function commonEnds(old: string, next: string): readonly [number, number] {
  const most = Math.min(old.length, next.length);
  let start = 0;
  while (start < most && old.charCodeAt(start) === next.charCodeAt(start)) start += 1;
  if (start > 0 && isHighSurrogate(old.charCodeAt(start - 1))) start -= 1;
  let end = 0;
  while (end < most - start && old.charCodeAt(old.length - 1 - end) === next.charCodeAt(next.length - 1 - end))
    end += 1;
  if (end > 0 && isLowSurrogate(old.charCodeAt(old.length - end))) end -= 1;
  return [start, end];
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Text with its own line ends; everything else that is invisible is shown. */
function linesOf(text: string, max = Number.POSITIVE_INFINITY): string {
  const isLong = text.length > max;
  const shown = (isLong ? text.slice(0, max) : text)
    .split('\n')
    .map((line) => foreign(line, Number.POSITIVE_INFINITY))
    .join('\n');
  return isLong ? `${shown}\u2026 (${text.length} characters)` : shown;
}

type LockFileFacts = {
  /** The folder of the lock files in their repository. */
  readonly folder: string;
  readonly hasLockFile: boolean;
  /** False if the form that is offered cannot be pinned. */
  readonly hasDigest: boolean;
};

type Commands = Pick<ReviewDetail, 'commands' | 'caution'>;

/** The commands of the guide to reviewing drift, for one definition. */
export function reviewCommands(
  item: ReviewItem,
  findings: readonly ReviewFinding[],
  { folder, hasLockFile, hasDigest }: LockFileFacts,
): Commands {
  const { upstream, kind, name, after } = item;
  // A name of a megabyte is not read character by character.
  const isLong = name.length > MAX_NAME;
  const isNamed = !isLong && isPasteable(name);
  const look = { what: 'Look at the difference.', line: commandLine('pin', 'diff', upstream) };
  const fetch = {
    what: 'Write the first lock file, with everything that is offered as pending.',
    line: commandLine('pin', 'fetch', upstream),
  };
  const rest = [
    {
      what: 'Sign the lock file, where signers are configured.',
      line: commandLine('pin', 'sign', upstream, '--key', 'signer.pem'),
    },
    {
      what: 'Open the pull request.',
      line: `git add ${quoteForShell(folder)} && git commit -m ${quoteForShell(`Approve ${isNamed ? name : `a ${kind}`} of ${upstream}`)} && git push -u origin HEAD`,
    },
  ];
  if (kind === 'server') {
    const line = `${commandLine('pin', 'fetch', upstream, '--approve')} --note 'WHY'`;
    const approve = {
      what: 'Approve what the server calls itself, and everything it offers now.',
      line,
    };
    return { commands: [look, approve, ...rest], caution: FETCH_APPROVES_ALL };
  }
  if (after === undefined) return { commands: [look], caution: NOTHING_TO_APPROVE };
  if (!hasDigest) return { commands: [look], caution: NO_DIGEST_OFFERED };
  if (!isNamed) return { commands: [look], caution: isLong ? TOO_LONG : NOT_PASTEABLE };
  const accept = findings.filter(({ tier }) => tier === 'block').flatMap(({ id }) => ['--accept', id]);
  const line = `${commandLine('pin', 'approve', upstream, name, '--kind', kind, '--digest', `sha256:${after}`, ...accept)} --note 'WHY'`;
  const approve = {
    what: 'Approve exactly this definition. Put the reason in place of WHY.',
    line,
  };
  return {
    commands: [look, ...(hasLockFile ? [] : [fetch]), approve, ...rest],
    caution: accept.length === 0 ? undefined : ACCEPTS_FINDINGS,
  };
}

const FETCH_APPROVES_ALL =
  'The identity of a server is approved together with everything that it offers. Review the other definitions first.';
const NOTHING_TO_APPROVE = 'The upstream does not offer it any more, so there is nothing to approve.';
const NO_DIGEST_OFFERED =
  'The definition cannot be pinned: its name is offered twice, or it has no canonical form. The upstream has to be mended.';
const NOT_PASTEABLE =
  'The name has characters that a terminal does not show as they are, so that no command with it can be copied.';
/** Longer names are in no command. */
const MAX_NAME = 1_024;
const TOO_LONG = 'The name is too long for a command to be copied.';
const ACCEPTS_FINDINGS =
  'The scan has findings of the tier block. The command accepts them by name: run it only if a review shows that each is meant well.';

function commandLine(...terms: readonly string[]): string {
  return ['sallyport', ...terms.map(quoteForShell)].join(' ');
}
