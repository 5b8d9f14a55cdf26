// The frame of the console's pages: the navigation, who is logged in, and what needs a review. http/html.ts makes the
// documents. docs/reference/listeners.md#the-console.

import type { PlainResponse } from '../http/app.js';
import { foreign, formTokenField, type Html, html, htmlDocument } from '../http/html.js';

/** The pages in the order of the navigation. */
export const PAGES = [
  ['/approvals', 'Approvals'],
  ['/controls', 'Controls'],
  ['/drift', 'Drift and pending'],
  ['/decisions', 'Decisions'],
  ['/upstreams', 'Upstreams'],
  ['/blocks', 'Blocks'],
] as const;

/** Whether a path is that of a page that can be opened without having seen another. */
export function isPagePath(path: string): boolean {
  return path === '/' || PAGES.some(([one]) => one === path) || APPROVAL.test(path);
}

/** The page of one approval: messages to reviewers lead there. */
export const APPROVAL = /^\/approvals\/([A-Za-z0-9_-]{16,128})$/;

/** What the frame of every page shows of the caller and of the gateway; absent before a login. */
export type Frame = {
  readonly subject: string;
  readonly roles: readonly string[];
  /** Of every form. */
  readonly formToken: string;
  /** What drifted, is pending or is withheld, as a sentence; `undefined` if nothing is. */
  readonly alert: string | undefined;
};

/** A complete page. `current` is the path of the navigation that it belongs to. */
export function page(
  title: string,
  main: Html,
  {
    frame,
    current,
    ...response
  }: {
    readonly frame?: Frame | undefined;
    readonly current?: string;
    readonly status?: number;
    readonly headers?: PlainResponse['headers'];
  } = {},
): PlainResponse {
  const header = frame && navigation(frame, current);
  return htmlDocument(title, main, { ...response, header, banner: bannerOf(frame?.alert) });
}

function bannerOf(alert: string | undefined): Html | undefined {
  if (alert === undefined) return undefined;
  return html`<aside class="banner" aria-label="Needs a review">${alert} <a href="/drift">Show drift and pending</a></aside>`;
}

function navigation({ subject, roles, formToken }: Frame, current: string | undefined): Html {
  const links = PAGES.map(
    ([path, name]) =>
      html`<li><a href="${path}"${path === current ? html` aria-current="page"` : undefined}>${name}</a></li>`,
  );
  return html`<nav aria-label="Pages"><ul>${links}</ul></nav>
<div class="who"><span>${foreign(subject, 60)} (${roles.join(', ')})</span>
<form method="post" action="/logout">${formTokenField(formToken)}<button>Log out</button></form></div>`;
}
