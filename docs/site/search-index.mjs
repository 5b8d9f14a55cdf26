// What the search looks through: the sections of every page as plain text.

const SECTION = /<h([1-4]) id="([^"]+)"[^>]*>([\s\S]*?)<\/h\1>/g;
const ENTITIES = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };

function textOf(html) {
  return html
    .replace(/<a class="anchor"[\s\S]*?<\/a>/g, '')
    .replace(/<[^>]+>/g, (tag) => (/^<\/?(?:code|em|strong|a|span|wbr)\b/.test(tag) ? '' : ' '))
    .replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity])
    .replace(/\s+/g, ' ')
    .trim();
}

/** The sections of a page, `[path with anchor, title of the page, heading, text]`. */
export function sectionsOf(path, title, html) {
  const headings = [...html.matchAll(SECTION)];
  return headings.map((found, index) => {
    const [matched, , id, heading] = found;
    const text = textOf(html.slice(found.index + matched.length, headings[index + 1]?.index));
    return [index === 0 ? path : `${path}#${id}`, title, textOf(heading), text];
  });
}
