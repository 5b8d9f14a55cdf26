// The frame of every page: the search, the navigation of docs/README.md, the page with its outline, and what is before and
// behind it. Everything is a link without JavaScript. The policy allows the files of this site and nothing else.

import { escapeHtml } from '../markdown.mjs';
import { HOME, relativeLink, sitePath } from '../navigation.mjs';

const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";
const HEADING = /<h([23]) id="([^"]+)">([\s\S]*?)<\/h\1>/g;
/** An outline of one heading says nothing. */
const MIN_OUTLINE = 2;

function entryList(entries, file, path) {
  const items = entries.map((entry) => {
    const current = entry.file === file ? ' aria-current="page"' : '';
    return `<li><a href="${relativeLink(path, sitePath(entry.file))}"${current}>${escapeHtml(entry.text)}</a></li>`;
  });
  return items.length === 0 ? '' : `<ul>${items.join('')}</ul>`;
}

/** Sections with those below them: the ones of level 3 belong to the last one of level 2. */
function treeOf(sections) {
  const tops = [];
  for (const section of sections) {
    if (section.depth === 2) tops.push({ ...section, below: [] });
    else tops.at(-1)?.below.push(section);
  }
  return tops;
}

const holds = (section, file) =>
  section.entries.some((entry) => entry.file === file) || section.below?.some((one) => holds(one, file));

function fold(section, file, path) {
  const below = (section.below ?? []).map((one) => fold(one, file, path)).join('');
  const isOpen = holds(section, file) || (file === HOME && section.depth === 2 && section.title !== 'Look up');
  return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(section.title)}</summary>${entryList(section.entries, file, path)}${below}</details>`;
}

function outline(content) {
  const headings = [...content.matchAll(HEADING)];
  if (headings.length < MIN_OUTLINE) return '';
  const items = headings.map(([, level, id, html]) => {
    const text = html.replace(/ <a class="anchor"[\s\S]*?<\/a>/, '').replace(/<\/?a\b[^>]*>/g, '');
    return `<li class="level-${level}"><a href="#${id}">${text}</a></li>`;
  });
  return `<nav class="outline" aria-label="On this page"><p>On this page</p><ul>${items.join('')}</ul></nav>`;
}

function neighbours(sections, file, path) {
  const entries = sections.flatMap((section) => section.entries);
  const at = entries.findIndex((entry) => entry.file === file);
  const link = (entry, label) =>
    entry === undefined
      ? '<span></span>'
      : `<a class="${label.toLowerCase()}" href="${relativeLink(path, sitePath(entry.file))}"><small>${label}</small>${escapeHtml(entry.text)}</a>`;
  if (at === -1) return '';
  return `<nav class="neighbours" aria-label="Before and behind this page">${link(entries[at - 1], 'Previous')}${link(entries[at + 1], 'Next')}</nav>`;
}

function titleOf(content, file) {
  const [, heading = escapeHtml(file)] = /<h1[^>]*>([\s\S]*?)<\/h1>/.exec(content) ?? [];
  return heading.replace(/<[^>]+>/g, '');
}

export function render({ content, sections, file, page }) {
  const path = page.url.replace(/^\//, '').replace(/(^|\/)$/, '$1index.html');
  const link = (target) => relativeLink(path, target);
  const title = titleOf(content, file);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${title}${title === 'Sallyport documentation' ? '' : ' · Sallyport'}</title>
<link rel="icon" href="${link('assets/icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${link('assets/site.css')}">
<script src="${link('assets/theme.js')}"></script>
<script src="${link('assets/search.js')}" defer></script>
</head>
<body data-root="${link('index.html').replace(/index\.html$/, '')}">
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="${link('index.html')}"><img src="${link('assets/icon.svg')}" alt="" width="26" height="26"> Sallyport</a>
<div class="search" role="search" hidden>
<input type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" spellcheck="false">
<ol class="results" hidden></ol>
</div>
<button type="button" class="theme" aria-label="Change between light and dark" hidden></button>
</header>
<div class="columns">
<details class="menu" open>
<summary>All pages</summary>
<nav aria-label="All pages">${treeOf(sections)
    .map((section) => fold(section, file, path))
    .join('')}</nav>
</details>
<main id="main" tabindex="-1">
${content}
${neighbours(sections, file, path)}
</main>
${outline(content)}
</div>
</body>
</html>
`;
}
