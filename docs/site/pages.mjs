// The files outside docs/ that its pages link to, so that the site is whole without the repository beside it: Markdown as
// pages, whose links are followed in turn, other files as they are, folders as lists of names.

import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { codeBlock, createMarkdown, escapeHtml } from './markdown.mjs';
import { sitePath } from './navigation.mjs';

/** Every page of docs/, as paths of the repository. */
export function listPages(root) {
  const names = readdirSync(join(root, 'docs'), { recursive: true });
  return names
    .filter((name) => name.endsWith('.md') && !name.startsWith('site/'))
    .map((name) => `docs/${name}`)
    .sort();
}

function contentOf(root, { file, kind }) {
  const heading = `<h1>${escapeHtml(file)}</h1>\n`;
  if (kind === 'file') return heading + codeBlock(readFileSync(join(root, file), 'utf8'), extname(file).slice(1));
  const entries = readdirSync(join(root, file), { withFileTypes: true });
  const names = entries.map(
    (entry) => `<li><code>${escapeHtml(entry.name)}${entry.isDirectory() ? '/' : ''}</code></li>`,
  );
  return `${heading}<p>This folder of the repository has:</p>\n<ul>\n${names.sort().join('\n')}\n</ul>\n`;
}

/** What pages link to outside docs/, as `{file, kind, content}`; the content of Markdown is Markdown. */
export function collectOutside(root, pages, onProblem) {
  const found = new Map();
  const waiting = pages.map((file) => ({ file, kind: 'file' }));
  const isOwn = ({ file }) => !sitePath(file, false).startsWith('repository/');
  const onTarget = (target) => {
    if (found.has(target.file) || isOwn(target)) return;
    found.set(target.file, target);
    waiting.push(target);
  };
  const markdown = createMarkdown(root, { onTarget, onProblem });
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
    if (next.file.endsWith('.md')) markdown.parse(readFileSync(join(root, next.file), 'utf8'), { file: next.file });
  return [...found.values()].map((target) => {
    const isPage = target.file.endsWith('.md');
    return { ...target, content: isPage ? readFileSync(join(root, target.file), 'utf8') : contentOf(root, target) };
  });
}
