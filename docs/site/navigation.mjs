// The order of the pages: the lists of docs/README.md, which GitHub shows as they are and the site as its navigation. And
// where a file of the repository is on the site. No dependencies: the tests of the repository read this too.

import { posix } from 'node:path';

const HEADING = /^(##|###) (.+)$/;
const ENTRY = /^- \[([^\]]+)\]\(([^)#\s]+)\)$/;

/** The page whose lists are the navigation, and which the site opens with. */
export const HOME = 'docs/README.md';
/** Where files outside docs/ are on the site. */
const OUTSIDE = 'repository';

/** The sections of the navigation, `{title, depth, entries: [{text, file}]}`, with files as paths of the repository. */
export function readNavigation(text) {
  const sections = [];
  for (const line of text.split('\n')) {
    const [, marks, title] = HEADING.exec(line) ?? [];
    if (title !== undefined) sections.push({ title, depth: marks.length, entries: [] });
    const [, name, path] = ENTRY.exec(line) ?? [];
    if (path === undefined) continue;
    sections.at(-1)?.entries.push({ text: name, file: posix.join(posix.dirname(HOME), path) });
  }
  return sections;
}

/** The pages of docs/ that the navigation does not name, and the files that it names twice. */
export function navigationProblems(sections, pages) {
  const files = sections.flatMap(({ entries }) => entries.map(({ file }) => file));
  const named = new Set([HOME, ...files]);
  return [
    ...pages.filter((page) => !named.has(page)).map((page) => `${page} is not in the navigation: list it in ${HOME}`),
    ...files.filter((file, index) => files.indexOf(file) !== index).map((file) => `${HOME} lists ${file} twice`),
  ];
}

/** The path on the site of a file of the repository; `isFolder` for the list of what is in a folder. */
export function sitePath(file, isFolder = false) {
  if (file === HOME) return 'index.html';
  const isPage = file.endsWith('.md');
  const path = isPage ? file.replace(/\.md$/, '.html') : file;
  if (file.startsWith('docs/') && (isPage || /\.(?:svg|png|json)$/.test(file))) return path.slice('docs/'.length);
  if (isFolder) return posix.join(OUTSIDE, file, 'index.html');
  return posix.join(OUTSIDE, isPage ? path : `${path}.html`);
}

/** The path of one file of the site as a link on another. */
export function relativeLink(from, to) {
  return posix.relative(posix.dirname(from), to) || posix.basename(to);
}
