// How a page of Markdown becomes HTML: anchors as GitHub makes them, links between files as links between pages, tables
// that scroll by themselves, and code in colours. The Markdown stays what GitHub reads.

import { statSync } from 'node:fs';
import { join, posix } from 'node:path';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import nginx from 'highlight.js/lib/languages/nginx';
import typescript from 'highlight.js/lib/languages/typescript';
import yaml from 'highlight.js/lib/languages/yaml';
import MarkdownIt from 'markdown-it';
import { relativeLink, sitePath } from './navigation.mjs';

for (const [name, language] of Object.entries({ bash, json, nginx, typescript, yaml }))
  hljs.registerLanguage(name, language);
const LANGUAGES = {
  sh: 'bash',
  bash: 'bash',
  json: 'json',
  nginx: 'nginx',
  ts: 'typescript',
  mjs: 'typescript',
  yaml: 'yaml',
  yml: 'yaml',
};
/** The elements that a page may write as HTML; a `<name>` outside of code would vanish. */
const ELEMENTS = new Set(['picture', 'source', 'img', 'wbr', 'br', 'details', 'summary', 'kbd', 'sub', 'sup']);
/** A cell with more characters has a least width: its table scrolls rather than having columns of one word. */
const LONG_CELL = 60;
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|#)/i;

/** Code in colours where its language is known, else escaped. */
export function highlight(text, name) {
  const language = LANGUAGES[name];
  return language === undefined ? escapeHtml(text) : hljs.highlight(text, { language }).value;
}

export function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

export function codeBlock(text, name) {
  return `<div class="code"><pre tabindex="0"><code>${highlight(text, name)}</code></pre></div>\n`;
}

function kindOf(root, file) {
  try {
    return statSync(join(root, file)).isDirectory() ? 'folder' : 'file';
  } catch {
    return undefined;
  }
}

/** The text of a heading without its marks. */
const plainText = (inline) => inline.children.map((token) => (token.type === 'image' ? '' : token.content)).join('');

/** The anchors of GitHub: lower case, without punctuation, with hyphens for blanks, and a number if there was one. */
function slugger() {
  const seen = new Map();
  return (text) => {
    const slug = text
      .toLowerCase()
      .trim()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\s-]/gu, '')
      .replaceAll(' ', '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  };
}

/** The heading tokens of a page with their levels, texts and anchors. */
function headingsOf(tokens) {
  const slugOf = slugger();
  return tokens.flatMap((token, index) => {
    if (token.type !== 'heading_open') return [];
    const text = plainText(tokens[index + 1]);
    return [{ token, close: tokens[index + 2], level: Number(token.tag.slice(1)), text, id: slugOf(text) }];
  });
}

const SCREEN = /<picture>[\s\S]*?<img src="([^"]+\.png)"[\s\S]*?<\/picture>/g;
const URL_ATTRIBUTE = /\b(src|srcset|href)="([^"]+)"/g;

/**
 * Rewrites the links of a page that has the path `file` in the repository. `onTarget` is told of every file and folder
 * that a link leads to, `onProblem` of what is wrong.
 */
function linkRewriter(root, file, { onTarget, onProblem }) {
  return (url) => {
    if (ELSEWHERE.test(url)) return url;
    const [path, fragment] = url.split('#');
    const target = posix.join(posix.dirname(file), decodeURIComponent(path)).replace(/\/$/, '');
    const kind = target.startsWith('..') ? undefined : kindOf(root, target);
    if (kind === undefined) {
      onProblem(`${file} links to ${url}, which is not in the repository`);
      return url;
    }
    onTarget({ file: target, kind });
    const link = relativeLink(sitePath(file), sitePath(target, kind === 'folder'));
    return fragment === undefined ? link : `${link}#${fragment}`;
  };
}

function rewriteHtml(token, file, rewrite, onProblem) {
  // Comments are for tests and generators.
  const html = token.content.replace(/<!--[\s\S]*?-->\n?/g, '');
  for (const [, name] of html.matchAll(/<\/?([a-zA-Z][\w-]*)/g))
    if (!ELEMENTS.has(name.toLowerCase()))
      onProblem(`${file} has <${name}>, which GitHub and browsers do not show: put it into code`);
  const rewritten = html.replace(URL_ATTRIBUTE, (_, name, url) => `${name}="${rewrite(url)}"`);
  // A screen is read in its own size: on a phone it is shown too small.
  return rewritten.replace(SCREEN, (picture, url) => `<a href="${url}">${picture}</a>`);
}

function rewriteUrls(token, rewrite) {
  for (const name of ['href', 'src']) {
    const url = token.attrGet(name);
    if (url !== null) token.attrSet(name, rewrite(url));
  }
}

function alignByClass(token) {
  const style = token.attrGet('style');
  if (style === null) return;
  token.attrs = token.attrs.filter(([name]) => name !== 'style');
  token.attrSet('class', style.replace('text-align:', 'align-'));
}

function widenLongCells(tokens) {
  for (const [index, token] of tokens.entries())
    if (token.type === 'td_open' && tokens[index + 1].content.length > LONG_CELL) token.attrJoin('class', 'long');
}

/** The reader of Markdown. Its environment has `file`, the path of the page in the repository. */
export function createMarkdown(root, listeners) {
  const markdown = new MarkdownIt({ html: true, linkify: false });
  markdown.core.ruler.push('site', ({ tokens, env }) => {
    const file = env.file ?? listeners.fileOf(env);
    const rewrite = linkRewriter(root, file, listeners);
    for (const token of tokens.flatMap((one) => [one, ...(one.children ?? [])])) {
      if (token.type.startsWith('html_')) token.content = rewriteHtml(token, file, rewrite, listeners.onProblem);
      else rewriteUrls(token, rewrite);
      alignByClass(token);
    }
    widenLongCells(tokens);
    for (const { token, id } of headingsOf(tokens)) token.attrSet('id', id);
  });
  const { rules } = markdown.renderer;
  rules.fence = (tokens, index) => codeBlock(tokens[index].content, tokens[index].info.trim());
  rules.code_block = (tokens, index) => codeBlock(tokens[index].content, '');
  rules.table_open = () => '<div class="table" tabindex="0" role="region" aria-label="Table"><table>\n';
  rules.table_close = () => '</table></div>\n';
  rules.heading_close = (tokens, index) => {
    const open = tokens[index - 2];
    const id = escapeHtml(open.attrGet('id') ?? '');
    const link = open.tag === 'h1' ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this heading">#</a>`;
    return `${link}</${open.tag}>\n`;
  };
  return markdown;
}
