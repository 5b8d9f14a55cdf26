// What must hold of the built site, read from its files: every link leads to a file, and to an element of it; nothing
// is fetched from another origin. No dependencies: the tests of the repository read this too.

import { posix } from 'node:path';

const ATTRIBUTE = /\s(href|src|srcset)="([^"]*)"/g;
const ID = /\sid="([^"]+)"/g;
const TAG = /<([a-z][a-z0-9-]*)((?:\s[^<>]*)?)>/g;
/** Only what a reader follows may lead away. */
const LEADS_AWAY = /^(?:https?:|mailto:)/;
const ABSOLUTE = /^(?:[a-z][a-z0-9+.-]*:|\/)/i;
/** How a style sheet or a script of ours would fetch. */
const FETCHED = /url\(\s*['"]?(?!#)[^)]*\)|@import\b|\bfetch\(\s*['"`](?:https?:)?\/\/|\bimport\(|\bimportScripts\b/g;

const decode = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"');

/** The URLs of a page as `{tag, name, url}`; what is written as text is escaped and no tag. */
function urlsOf(html) {
  return [...html.matchAll(TAG)].flatMap(([, tag, attributes]) =>
    [...attributes.matchAll(ATTRIBUTE)].flatMap(([, name, value]) => {
      const urls = name === 'srcset' ? value.split(',').map((one) => one.trim().split(/\s/)[0]) : [value];
      return urls.map((url) => ({ tag, name, url: decode(url) }));
    }),
  );
}

function targetProblem(page, url, files, idsOf) {
  const [path, fragment = ''] = url.split('#');
  const target = path === '' ? page : posix.join(posix.dirname(page), decodeURIComponent(path));
  if (!files.has(target)) return `${page} links to ${url}, which is not there`;
  if (fragment === '' || idsOf(target).has(decodeURIComponent(fragment))) return undefined;
  return `${page} links to ${url}, whose heading is not there`;
}

function urlProblem(page, { tag, url }, files, idsOf) {
  if (tag === 'a' && LEADS_AWAY.test(url)) return undefined;
  if (ABSOLUTE.test(url)) return `${page} has an absolute URL in <${tag}>: ${url}`;
  return targetProblem(page, url, files, idsOf);
}

function pageProblems(page, html, files, idsOf) {
  const ids = [...html.matchAll(ID)].map(([, id]) => id);
  return [
    ...urlsOf(html).map((found) => urlProblem(page, found, files, idsOf)),
    ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${page} has the id ${id} twice`),
    ...(/<style\b|\sstyle="|\son[a-z]+="/.test(html.replace(/>[^<]*</g, '><'))
      ? [`${page} has a style or a handler of its own, which its policy forbids`]
      : []),
  ].filter((problem) => problem !== undefined);
}

/** What is wrong with a site. `files`: every file by its path, with its text; what is no text is not read. */
export function siteProblems(files) {
  const known = new Map();
  const idsOf = (page) => {
    if (!known.has(page)) known.set(page, new Set([...(files.get(page) ?? '').matchAll(ID)].map(([, id]) => id)));
    return known.get(page);
  };
  return [...files].flatMap(([path, text]) => {
    if (path.endsWith('.html')) return pageProblems(path, text, files, idsOf);
    if (!/\.(?:css|js|svg)$/.test(path)) return [];
    return [...text.matchAll(FETCHED)]
      .filter(([found]) => !/url\(['"]?#/.test(found))
      .map(([found]) => `${path} fetches: ${found}`);
  });
}
