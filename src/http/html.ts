// The HTML of the console and of approvals: a template that escapes every value, the form in which text of others is
// shown, and the frame of a page. The pages contain no script, and their one style is allowed by its hash.
// CSP Level 3; WHATWG HTML; WCAG 2.2 (landmarks, headings, labels, visible focus, reflow at 320 px).

import { createHash } from 'node:crypto';
import { escapeForTerminal, makeVisible } from '../text/escaping.js';
import type { PlainResponse } from './app.js';

/** Markup that is safe to send. INVARIANT: made by `html` alone. */
export class Html {
  readonly #markup: string;

  /** For `html` and for constants of this file. */
  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

type Value = Html | string | number | undefined | readonly Value[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function markupOf(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(markupOf).join('');
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/**
 * A template whose values are escaped, for text and for attributes in quotation marks. Lists are joined, `undefined` is
 * nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  let markup = strings[0] ?? '';
  for (const [index, value] of values.entries()) markup += markupOf(value) + (strings[index + 1] ?? '');
  return new Html(markup);
}

/** Text of others is shortened to this where nothing else is said. */
const MAX_SHOWN = 200;

/** One line of text that somebody else wrote: invisible and mistakable characters as escapes, and shortened. */
export function foreign(text: string, max = MAX_SHOWN): string {
  const isLong = text.length > max;
  const shown = makeVisible(escapeForTerminal(isLong ? text.slice(0, max) : text));
  return isLong ? `${shown}\u2026 (${text.length} characters)` : shown;
}

/** Letters outside ASCII may look like others, so that a name with one is followed by its escaped form. */
export function foreignName(name: string): Html {
  const shown = foreign(name);
  const ascii = shown.replace(/[^\x20-\x7e]/gu, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
  return ascii === shown ? html`<code>${shown}</code>` : html`<code>${shown}</code> (<code>${ascii}</code>)`;
}

const STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1c2024; --dim: #5a6270; --line: #c9ced6; --panel: #f3f5f8; --link: #0a56b0; --good: #17693a; --warn: #855400; --bad: #ab1620; --old: #fbe9ea; --new: #e5f4e9 }
@media (prefers-color-scheme: dark) { :root { --back: #15181c; --text: #e3e6ea; --dim: #a4adb9; --line: #3c434d; --panel: #1f242a; --link: #85b8ff; --good: #6fd197; --warn: #e8b45a; --bad: #ff8f8f; --old: #3b2225; --new: #1b3325 } }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back) }
a { color: var(--link) }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.skip { position: absolute; left: -100rem } .skip:focus { left: 1rem; top: .5rem; background: var(--back); padding: .3rem .6rem; z-index: 1 }
body > header { border-bottom: 1px solid var(--line); background: var(--panel); padding: .6rem 1rem; display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: center }
body > header p { margin: 0 } .brand { font-weight: 700 }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: 0; padding: 0 }
nav a { display: inline-block; padding: .2rem 0; text-decoration: none } nav a:hover { text-decoration: underline }
nav a[aria-current] { font-weight: 700; color: var(--text); border-bottom: 3px solid var(--link) }
.who { margin-left: auto; display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; color: var(--dim); font-size: .9rem }
main { max-width: 78rem; margin: 0 auto; padding: 1rem }
main:focus { outline: none }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .4rem 0 .8rem; overflow-wrap: anywhere } h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere }
p, li, dd { max-width: 46rem } p { margin: .5rem 0 }
.panel, .banner { border-left: 4px solid var(--warn); background: var(--panel); padding: .5rem .8rem; margin: 0 0 1rem } .banner { max-width: none; margin: 0; border-left-width: 8px; padding: .5rem 1rem }
.error { border-left-color: var(--bad) } .done { border-left-color: var(--good) }
.table { overflow-x: auto } table { border-collapse: collapse; width: 100% } caption { text-align: left; color: var(--dim); padding: .2rem 0 }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
th { font-weight: 600 } thead th { border-bottom-width: 2px; white-space: nowrap } th .small { font-weight: 400 } table.sides { table-layout: fixed } table.sides th:first-child { width: 22% }
code, pre { font: .9em/1.45 ui-monospace, monospace; overflow-wrap: anywhere } pre { background: var(--panel); border: 1px solid var(--line); padding: .6rem .8rem; margin: .4rem 0; white-space: pre-wrap; overflow: auto; max-height: 32rem }
pre.code { white-space: pre } pre.whole { max-height: none } .elsewhere { font-style: italic } .note { color: var(--bad) } mark { background: var(--old); color: inherit; outline: 1px solid var(--bad) } .code-point { font-size: .85em; color: var(--bad) }
.armed, .allow { color: var(--good) } .degraded, .review, .withheld, .changed, .pending, .unpinned, .absent { color: var(--warn) } .off, .deny, .block, .refused, .blocked, .poisoned, .invalid, .shadowed { color: var(--bad) } .state { font-weight: 600; white-space: nowrap }
.dim { color: var(--dim) } .small { font-size: .88rem }
td.old { background: var(--old) } td.new { background: var(--new) } td.old, td.new { padding-left: .5rem; border-left: 4px solid var(--back); white-space: pre-wrap }
del, ins { text-decoration: none; font-weight: 700 } del { text-decoration: line-through }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: .5rem 0 } dt { color: var(--dim) } dd { margin: 0; overflow-wrap: anywhere }
form.fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .6rem 1rem; align-items: end; margin: .6rem 0 } form.stack { display: grid; gap: .6rem; max-width: 30rem; margin: .6rem 0 } .who form { margin: 0 }
label { display: block; font-size: .9rem; color: var(--dim) }
input, select, button { font: inherit; color: inherit; width: 100%; padding: .35rem .6rem; border: 1px solid var(--dim); border-radius: 4px; background: var(--back); min-height: 2.4rem }
button { width: auto; cursor: pointer; background: var(--panel); justify-self: start } button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600 } .button { display: inline-block; padding: .35rem .9rem; border: 1px solid var(--dim); border-radius: 4px; background: var(--panel); text-decoration: none }
summary { cursor: pointer; color: var(--link); padding: .2rem 0 } main > p:last-child { margin-top: 1.5rem }
@media (max-width: 44rem) {
  .who { margin-left: 0 } dl.facts { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .5rem }
  table.rows thead { position: absolute; left: -100rem } table.rows tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0 } table.rows th, table.rows td { display: block; border: 0; padding: .05rem 0; text-align: left }
  table.rows td[data-label]::before { content: attr(data-label) ": "; color: var(--dim); font-size: .88rem } table.rows td:empty { display: none } table.rows td.old, table.rows td.new { padding: .3rem .5rem; margin: .2rem 0 } table.sides th:first-child { width: auto }
}
`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Nothing is loaded, framed or run; forms are sent here alone. */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  // Not no-referrer, which would make browsers send the origin of every form as null.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const;

/** The field of every form that binds it to its session. */
export function formTokenField(token: string): Html {
  return html`<input type="hidden" name="form" value="${token}">`;
}

/** A complete document. */
export function htmlDocument(
  title: string,
  main: Html,
  {
    header,
    banner,
    status = 200,
    headers = {},
  }: {
    /** Follows the name of the program. */
    readonly header?: Html | undefined;
    readonly banner?: Html | undefined;
    readonly status?: number;
    readonly headers?: PlainResponse['headers'];
  } = {},
): PlainResponse {
  const body = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · Sallyport</title><style>${new Html(STYLE)}</style></head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="brand">Sallyport</p>
${header}
</header>
${banner}
<main id="main" tabindex="-1">
<h1>${title}</h1>
${main}
</main>
</body>
</html>
`;
  return { status, headers: { ...PAGE_HEADERS, ...headers }, body: body.toString() };
}

type Cell = Html | string;

/**
 * A table whose rows become blocks on a narrow screen. The first cell of a row is its header; `caption` says what the
 * table holds.
 */
export function rowsTable(caption: string, columns: readonly string[], rows: readonly (readonly Cell[])[]): Html {
  const row = ([first = '', ...cells]: readonly Cell[]): Html => html`<tr><th scope="row">${first}</th>${cells.map(
    (cell, index) => html`<td data-label="${columns[index + 1] ?? ''}">${cell}</td>`,
  )}</tr>
`;
  return html`<div class="table"><table class="rows"><caption>${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>${rows.map(row)}</tbody></table></div>`;
}

/** A state in words, coloured by its class; the word alone says it. */
export function stateText(state: string): Html {
  return html`<span class="state ${state}">${state}</span>`;
}

/** A moment as people read it, in UTC. */
export function timeText(rfc3339: string): Html {
  const shown = rfc3339.slice(0, 19).replace('T', ' ');
  return html`<time datetime="${rfc3339}">${shown}\u00a0UTC</time>`;
}

/** Sends a browser on with GET, RFC 9110 §15.4.4. `location` is a path or a serialized URL. */
export function seeOther(location: string, headers: PlainResponse['headers'] = {}): PlainResponse {
  return { status: 303, headers: { ...PAGE_HEADERS, ...headers, location }, body: '' };
}

/**
 * Sends a browser on to another site after a form, by a page: browsers hold `form-action` also against where a form is
 * redirected to, and issuers redirect further than anybody here knows. `url` is serialized.
 */
export function continueAt(url: string, title: string, headers: PlainResponse['headers'] = {}): PlainResponse {
  const main = html`<p><a class="button" href="${url}">Continue</a></p>`;
  return htmlDocument(title, main, { headers: { ...headers, refresh: `0; url=${url}` } });
}
