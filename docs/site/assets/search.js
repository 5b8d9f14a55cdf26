// The search: every word must begin a word of the section, and headings count more than text. The sections are fetched from
// this site when somebody begins to type. Also the buttons that copy a block of code.

(() => {
  const MAX_RESULTS = 12;
  const BEFORE_HIT = 60;
  const SNIPPET = 180;
  const box = document.querySelector('.search');
  const input = box.querySelector('input');
  const list = box.querySelector('.results');
  const base = document.body.dataset.root;
  let loading;

  function prepare([path, title, heading, text]) {
    return {
      path,
      title,
      heading,
      text,
      low: { title: title.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase() },
    };
  }

  function load() {
    loading ??= fetch(`${base}search.json`)
      .then((response) => response.json())
      .then((sections) => sections.map(prepare));
    return loading;
  }

  const escapePattern = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const patternOf = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${escapePattern(word)}`, 'gu');

  /** How well a section has a word; 0 if it has not. */
  function weigh({ low }, pattern) {
    const count = (text) => (text.match(pattern) ?? []).length;
    return count(low.heading) * 12 + count(low.title) * 6 + Math.min(count(low.text), 5);
  }

  function find(sections, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const patterns = words.map(patternOf);
    const ranked = sections.flatMap((section) => {
      const weights = patterns.map((pattern) => weigh(section, pattern));
      if (weights.includes(0)) return [];
      const isReference = section.path.startsWith('decisions/') || section.path.startsWith('repository/');
      const exact = section.low.heading === query.toLowerCase() ? 40 : 0;
      return [{ section, weight: weights.reduce((sum, one) => sum + one, exact) / (isReference ? 3 : 1) }];
    });
    ranked.sort((one, other) => other.weight - one.weight);
    return ranked.slice(0, MAX_RESULTS).map(({ section }) => ({ section, patterns }));
  }

  /** A text with the words in bold, as nodes: never as markup. */
  function marked(text, patterns) {
    const low = text.toLowerCase();
    const hits = patterns
      .flatMap((pattern) => [...low.matchAll(pattern)])
      .sort((one, other) => one.index - other.index);
    const nodes = [];
    let at = 0;
    for (const hit of hits) {
      if (hit.index < at) continue;
      const mark = document.createElement('mark');
      mark.textContent = text.slice(hit.index, hit.index + hit[0].length);
      nodes.push(text.slice(at, hit.index), mark);
      at = hit.index + hit[0].length;
    }
    return [...nodes, text.slice(at)];
  }

  function snippetOf({ text, low }, patterns) {
    const first = Math.min(
      ...patterns.map((pattern) => low.text.search(pattern)).filter((index) => index >= 0),
      text.length,
    );
    const from = first === text.length ? 0 : Math.max(0, first - BEFORE_HIT);
    return `${from > 0 ? '…' : ''}${text.slice(from, from + SNIPPET)}${from + SNIPPET < text.length ? '…' : ''}`;
  }

  function item({ section, patterns }) {
    const link = document.createElement('a');
    link.href = base + section.path;
    const name = document.createElement('strong');
    name.append(...marked(section.heading, patterns));
    link.append(name);
    if (section.title !== section.heading) {
      const page = document.createElement('span');
      page.textContent = section.title;
      link.append(' ', page);
    }
    const snippet = document.createElement('small');
    snippet.append(...marked(snippetOf(section, patterns), patterns));
    link.append(snippet);
    const entry = document.createElement('li');
    entry.append(link);
    return entry;
  }

  function message(text) {
    const entry = document.createElement('li');
    entry.className = 'message';
    entry.textContent = text;
    return entry;
  }

  async function show() {
    const query = input.value.trim();
    list.hidden = query.length < 2;
    if (list.hidden) return;
    try {
      const sections = await load();
      if (input.value.trim() !== query) return;
      const found = find(sections, query);
      list.replaceChildren(...(found.length === 0 ? [message('Nothing found.')] : found.map(item)));
    } catch {
      list.replaceChildren(message('The search needs the site to be served: npm run docs.'));
    }
  }

  function move(event, step) {
    const links = [...list.querySelectorAll('a')];
    if (list.hidden || links.length === 0) return;
    event.preventDefault();
    const next = links.indexOf(document.activeElement) + step;
    if (next < 0) input.focus();
    else links[Math.min(next, links.length - 1)].focus();
  }

  box.hidden = false;
  input.addEventListener('input', () => void show());
  input.addEventListener('focus', () => void load().catch(() => undefined));
  box.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') move(event, 1);
    if (event.key === 'ArrowUp') move(event, -1);
    if (event.key === 'Enter' && event.target === input) list.querySelector('a')?.click();
    if (event.key === 'Escape') {
      list.hidden = true;
      input.focus();
    }
  });
  document.addEventListener('click', (event) => {
    if (!box.contains(event.target)) list.hidden = true;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(?:INPUT|TEXTAREA)$/.test(event.target.tagName))
      return;
    event.preventDefault();
    input.focus();
  });

  for (const block of navigator.clipboard === undefined ? [] : document.querySelectorAll('.code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 1500);
    });
    block.append(button);
  }
})();
