// What every page must have, read in Chromium: for those who cannot see it or use no mouse, and for those who look at it. Also
// takes pictures of pages, for people.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { withPalette } from './palette-png.js';

/** Of Chromium. */
export const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** Where pictures of the pages are written, for people who look at them; nowhere by default. */
const SHOTS = process.env['SALLYPORT_SHOTS'];
/** Whether the pictures of the guides are taken anew. */
export const TAKES_PICTURES = process.env['SALLYPORT_PICTURES'] === '1';
const PICTURES = join(import.meta.dirname, '../../docs/images');
/** What the functions that run in a page use of it; the tests are compiled without the types of browsers. */
type PageElement = {
  readonly [name in 'textContent' | 'tagName' | 'id' | 'name' | 'lang']: string;
} & {
  readonly tabIndex: number;
  readonly ariaLabel: string | null;
  readonly labels: ArrayLike<unknown>;
  readonly caption: unknown;
  readonly scrollWidth: number;
  readonly scrollHeight: number;
  readonly clientWidth: number;
  readonly parentElement: PageElement | null;
  readonly childNodes: Iterable<{ readonly nodeType: number; readonly textContent: string }>;
  querySelector(selector: string): PageElement | null;
};
export type PageGlobals = {
  readonly document: {
    readonly title: string;
    readonly documentElement: PageElement;
    readonly activeElement: PageElement;
    querySelectorAll(selector: string): Iterable<PageElement>;
  };
  readonly location: { readonly hash: string };
  getComputedStyle(element: PageElement): {
    readonly [name in 'color' | 'backgroundColor' | 'outlineStyle' | 'outlineWidth']: string;
  };
};

export type Look = { readonly width: number; readonly colorScheme: 'light' | 'dark' };

export async function shoot(page: Page, name: string, { width, colorScheme }: Look): Promise<void> {
  if (SHOTS === undefined) return;
  await mkdir(SHOTS, { recursive: true });
  await page.screenshot({
    path: join(SHOTS, `${name}-${colorScheme}-${width}.png`),
    fullPage: true,
  });
}

/** A picture of a page for the guides, at most `height` pixels high, in the colours of the page's context. */
export async function takePicture(
  page: Page,
  name: string,
  colorScheme: Look['colorScheme'],
  height: number,
): Promise<void> {
  const { width = 0 } = page.viewportSize() ?? {};
  const pageHeight = await page.evaluate(
    () => (globalThis as unknown as PageGlobals).document.documentElement.scrollHeight,
  );
  const clip = { x: 0, y: 0, width, height: Math.min(height, pageHeight) };
  const picture = await page.screenshot({ fullPage: true, clip });
  await writeFile(join(PICTURES, `${name}-${colorScheme}.png`), withPalette(picture));
}

/** What a page must have for those who cannot see it or use no mouse. Runs in the page. */
export function findBarriers(): string[] {
  const found: string[] = [];
  const { document } = globalThis as unknown as PageGlobals;
  const all = (selector: string): PageElement[] => [...document.querySelectorAll(selector)];
  if (document.documentElement.lang === '') found.push('no language');
  if (document.title === '') found.push('no title');
  if (all('main').length !== 1 || all('h1').length !== 1) found.push('not one main and one h1');
  let level = 0;
  for (const heading of all('h1, h2, h3, h4')) {
    const next = Number(heading.tagName.slice(1));
    if (next > level + 1) found.push(`a heading skips a level: ${heading.textContent}`);
    level = next;
  }
  for (const field of all('input:not([type=hidden]), select, textarea'))
    if (field.labels.length === 0) found.push(`no label: ${field.name}`);
  for (const one of all('a, button')) if (one.textContent.trim() === '') found.push('no name');
  for (const table of all('table')) {
    if (table.caption === null) found.push('a table without a caption');
    if (table.querySelector('thead th[scope=col]') === null) found.push('a table without headers');
  }
  const ids = all('[id]').map((one) => one.id);
  if (new Set(ids).size !== ids.length) found.push('an id twice');
  for (const landmark of all('nav')) if (!landmark.ariaLabel) found.push('a nav without a name');
  if (all('[tabindex]').some((one) => one.tabIndex > 0)) found.push('a tabindex above 0');
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth)
    found.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  return found;
}

/** The contrast of every text with what is behind it (WCAG 2.2 §1.4.3), where it is below 4.5. Runs in the page. */
export function findFaintText(): string[] {
  const { document, getComputedStyle } = globalThis as unknown as PageGlobals;
  const channels = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: number[]): number => {
    const [r = 0, g = 0, b = 0] = color.map((value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element: PageElement): number[] => {
    for (let at: PageElement | null = element; at !== null; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const faint: string[] = [];
  for (const element of document.querySelectorAll('body *')) {
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!isText) continue;
    const one = luminance(channels(getComputedStyle(element).color).slice(0, 3));
    const other = luminance(backgroundOf(element));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${element.textContent.slice(0, 60)}`);
  }
  return faint;
}
