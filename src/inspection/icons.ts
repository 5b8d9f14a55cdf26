// The icons of tools, resources, servers and the like: which of them a client may be given, and the list without the
// others. An icon is an image that clients show without being asked, so that only one that is embedded, and neither runs
// nor loads anything, reaches them. Each icon costs only itself.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol (icons).

import { applyEdits, elementSpans, memberSpans, removalEdits, spanOf } from '../protocol/json/json.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { readDataUrl } from './data-urls.js';
import { isInertSvg, isSvg, isSvgType } from './detectors/svg.js';

export const ICONS = 'icons';

/** Formats that hold nothing but pixels. */
const EMBEDDED_PICTURE =
  /^data:image\/(?:a?png|jpe?g|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon);base64,[A-Za-z0-9+/]*={0,2}$/i;

/** Whether an object has icons that no client is given. */
export function hasOddIcons(holder: { readonly [name: string]: Json }): boolean {
  const icons = holder[ICONS];
  return icons !== undefined && areOdd(icons);
}

/** Whether a value of `icons` is anything but a list of embedded images, as the official SDKs read it. */
export function areOdd(icons: Json): boolean {
  return !Array.isArray(icons) || !icons.every(isEmbedded);
}

function isEmbedded(icon: Json): boolean {
  const source = isObject(icon) ? icon['src'] : undefined;
  if (typeof source !== 'string' || !isReadable(icon)) return false;
  return EMBEDDED_PICTURE.test(source) || isInertDataUrl(source);
}

function isInertDataUrl(source: string): boolean {
  const { essence = '', texts = [] } = readDataUrl(source) ?? {};
  return isSvgType(essence) && isSvg(texts[0] ?? '') && texts.every(isInertSvg);
}

/** Whether the members beside `src` have the types that MCP gives them. One icon that has not costs a client the list. */
function isReadable(icon: Json): boolean {
  if (!isObject(icon)) return false;
  const { mimeType = null, sizes = null, theme = null } = icon;
  return (
    (mimeType === null || typeof mimeType === 'string') &&
    (sizes === null || (Array.isArray(sizes) && sizes.every((size: Json) => typeof size === 'string'))) &&
    (theme === null || theme === 'light' || theme === 'dark')
  );
}

/** The text of a value of `icons` with only the icons that clients are given, each as it came. */
export function withoutOddIcons(text: string): { readonly text: string; readonly dropped: number } {
  const icons: Json = JSON.parse(text);
  if (!Array.isArray(icons)) return { text: '[]', dropped: 1 };
  const span = spanOf(text, []);
  const elements = span === undefined ? [] : elementSpans(text, span);
  const kept = elements.filter((_, index) => isEmbedded(icons[index] ?? null));
  return {
    text: `[${kept.map(({ start, end }) => text.slice(start, end)).join(',')}]`,
    dropped: elements.length - kept.length,
  };
}

/** The text of an object without its odd icons, and without the member where no other is left. */
export function withoutOddIconsIn(text: string): string {
  const span = spanOf(text, []);
  const icons = span && memberSpans(text, span).find(({ name }) => name === ICONS)?.value;
  if (span === undefined || icons === undefined) return text;
  const left = withoutOddIcons(text.slice(icons.start, icons.end));
  if (left.text !== '[]') return applyEdits(text, [{ ...icons, text: left.text }]);
  return applyEdits(
    text,
    removalEdits(text, span, (name) => name === ICONS),
  );
}
