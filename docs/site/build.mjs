// Builds the site with Eleventy: the pages of docs/, what they link to outside, the navigation, the index of the search,
// and the checks of what was built.

import { mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import Eleventy from '@11ty/eleventy';
import { siteProblems } from './checks.mjs';
import { createMarkdown } from './markdown.mjs';
import { HOME, navigationProblems, readNavigation, sitePath } from './navigation.mjs';
import { collectOutside, listPages } from './pages.mjs';
import { sectionsOf } from './search-index.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUTPUT = 'docs/site/dist';
const DEFAULT_PORT = 4000;
/** Editors write a file in several steps. */
const SETTLE_MS = 200;
const TYPES = {
  html: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  json: 'application/json',
  svg: 'image/svg+xml',
  png: 'image/png',
};

/** The file of the repository that a template of Eleventy is made of. */
function fileOf({ page }) {
  const path = posix.normalize(page.inputPath);
  return path.startsWith('docs/repository/')
    ? path.slice('docs/repository/'.length).replace(/\.(?:file|folder)\.html$/, '')
    : path;
}

/** Every file of the built site by its path: text, or bytes for a picture. */
function readOutput() {
  const names = readdirSync(OUTPUT, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map((entry) => posix.join(entry.parentPath, entry.name));
  return new Map(
    files.map((file) => [posix.relative(OUTPUT, file), readFileSync(file, file.endsWith('.png') ? null : 'utf8')]),
  );
}

const mainOf = (html) => /<main[^>]*>([\s\S]*)<\/main>/.exec(html)?.[1] ?? '';
const titleOf = (html) => /<title>(.*?)(?: · Sallyport)?<\/title>/.exec(html)?.[1] ?? '';

/** Pages that a reader looks for; not source code. */
function isSearched(path) {
  return path.endsWith('.html') && !/^repository\/(?:.*\.[a-z]+\.html|.*\/index\.html)$/.test(path);
}

function addSearchIndex(files) {
  const sections = [...files]
    .filter(([path]) => isSearched(path))
    .flatMap(([path, html]) => sectionsOf(path, titleOf(html), mainOf(html)));
  files.set('search.json', JSON.stringify(sections));
  writeFileSync(join(OUTPUT, 'search.json'), files.get('search.json'));
}

/** One build. Returns what is wrong with it. */
async function buildOnce() {
  const problems = new Set();
  const onProblem = (problem) => problems.add(problem);
  const pages = listPages(ROOT);
  const sections = readNavigation(readFileSync(HOME, 'utf8'));
  for (const problem of navigationProblems(sections, pages)) onProblem(problem);
  const outside = collectOutside(ROOT, pages, onProblem);
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const eleventy = new Eleventy('docs', OUTPUT, {
    quietMode: true,
    config(config) {
      config.setIncludesDirectory('site/layout');
      config.setTemplateFormats(['md', 'html']);
      config.setUseGitIgnore(false);
      config.ignores.add('docs/site/**');
      config.ignores.add('docs/**/*.html');
      config.setLibrary('md', createMarkdown(ROOT, { fileOf, onTarget() {}, onProblem }));
      config.addPassthroughCopy('docs/images');
      config.addPassthroughCopy('docs/reference/*.json');
      config.addPassthroughCopy({ 'docs/site/assets': 'assets' });
      // Nothing in a page is a template.
      config.addGlobalData('templateEngineOverride', 'md');
      config.addGlobalData('layout', 'page.11ty.js');
      config.addGlobalData('sections', sections);
      config.addGlobalData('eleventyComputed', {
        file: fileOf,
        permalink: (data) => data.permalink || sitePath(fileOf(data)),
      });
      for (const { file, kind, content } of outside) {
        const name = file.endsWith('.md') ? file : `${file}.${kind}.html`;
        const data = {
          permalink: sitePath(file, kind === 'folder'),
          templateEngineOverride: file.endsWith('.md') ? 'md' : false,
        };
        config.addTemplate(`repository/${name}`, content, data);
      }
    },
  });
  await eleventy.write();
  const files = readOutput();
  addSearchIndex(files);
  for (const problem of siteProblems(files)) onProblem(problem);
  return { problems: [...problems], files };
}

/** Builds the site. Returns the exit code. */
export async function build() {
  process.chdir(ROOT);
  const started = Date.now();
  const { problems, files } = await buildOnce();
  for (const problem of problems) console.error(problem);
  const pages = [...files.keys()].filter((path) => path.endsWith('.html')).length;
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  if (problems.length === 0) console.log(`${pages} pages in ${OUTPUT}, in ${seconds} s`);
  return problems.length === 0 ? 0 : 1;
}

/** Answers with a file of the last complete build, and with nothing else. */
function answer(files, { url = '/' }, response) {
  const path = decodeURIComponent(new URL(url, 'http://site').pathname).slice(1);
  const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
  if (!files.has(file)) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('There is no such page.\n');
    return;
  }
  const type = TYPES[file.split('.').at(-1)] ?? 'text/plain';
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' });
  response.end(files.get(file));
}

/** Builds, serves on loopback, and builds again after a change. Returns 0 once it listens. */
export async function serve() {
  process.chdir(ROOT);
  let { problems, files } = await buildOnce();
  for (const problem of problems) console.error(problem);
  let building = Promise.resolve();
  let timer;
  const rebuild = () => {
    building = building.then(async () => {
      ({ problems, files } = await buildOnce());
      for (const problem of problems) console.error(problem);
      console.log('Built again.');
    });
  };
  watch('docs', { recursive: true }, (_, name) => {
    if (!/\.(?:md|svg|png|css|js)$/.test(name ?? '') || /^site\/(?:dist|node_modules)\//.test(name)) return;
    clearTimeout(timer);
    timer = setTimeout(rebuild, SETTLE_MS);
  });
  const server = createServer((request, response) => answer(files, request, response));
  const port = Number(process.env.PORT ?? DEFAULT_PORT);
  server.once('error', ({ message }) => {
    console.error(`${message}; choose another port with PORT=4001`);
    process.exit(1);
  });
  server.listen(port, '127.0.0.1', () =>
    console.log(`The documentation is at http://127.0.0.1:${port}/ (Ctrl-C ends it)`),
  );
  return 0;
}
