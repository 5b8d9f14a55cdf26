// SVG images in the blocks of a message: where a string carries one, and the edits by which a block whose image would run
// or load something shows the source as text instead. An edit within the image would leave bytes that no viewer draws.
// Source: MCP 2025-11-25, tools (image content, embedded resources), resources (contents).

import type { TextEdit } from '../protocol/admitted-request.js';
import { type Leaf, valueEnd, type WalkCaps, walkJson } from '../protocol/json/walk.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { pointerOf } from '../text/json-members.js';
import type { Span } from '../text/span.js';
import { type Payload, readMimeType } from './binary-content.js';
import { readDataUrl } from './data-urls.js';
import { isInertSvg, isSvg, isSvgType, neutralizeSvg } from './detectors/svg.js';

/** What a block says in place of its image, before the source. */
const SHOWN_AS_SOURCE = 'This SVG image would run or load something. It is shown as its source, made inert:\n\n';

/** The inert text that takes the place of an SVG image. */
export function sourceText(svg: string): string {
  return SHOWN_AS_SOURCE + neutralizeSvg(svg);
}

/**
 * The SVG document that a member of a block carries, in whatever charset a viewer reads it: of several readings the first
 * that acts. Undefined where it carries none.
 */
export function svgIn(
  block: JsonObject,
  member: string,
  value: string,
  payload: Payload | undefined,
): string | undefined {
  const { essence } = readMimeType(block['mimeType']);
  const isClaimed = isSvgType(essence);
  if (member === 'text') return isClaimed && block['type'] === undefined ? value : undefined;
  if (payload === undefined || payload.kind === 'media') return undefined;
  if (!mayBeDrawn(block, member, essence)) return undefined;
  const isText = isClaimed && payload.kind === 'text';
  const drawn = textsOf(value, payload).filter((text, index) => (isText && index === 0) || isSvg(text));
  return drawn.length === 1 ? drawn[0] : (drawn.find((text) => !isInertSvg(text)) ?? drawn[0]);
}

function textsOf(value: string, payload: Exclude<Payload, { readonly kind: 'media' }>): readonly string[] {
  if (payload.kind !== 'none') return [payload.reading.text, ...payload.others];
  return [value, ...(readDataUrl(value)?.texts ?? []), ...payload.others];
}

/** Whether a client may draw the bytes of a member. What is declared as text is shown as such. */
function mayBeDrawn(block: JsonObject, member: string, essence: string): boolean {
  if (member === 'data') return block['type'] === 'image';
  return member === 'blob' && !/^text\/(?!xml)/.test(essence);
}

/** Whether the block can show a text in place of this member. */
export function canShowSource(block: JsonObject, member: string): boolean {
  return ['text', 'data', 'blob'].every((name) => name === member || !Object.hasOwn(block, name));
}

/** The texts shown in place of images, by the pointers of their blocks. */
export type ShownSources = Map<string, { readonly block: JsonObject; readonly text: string }>;

/** The edits of a message by which its blocks show sources, and the tokens that they remove with a member. */
export function sourceEdits(
  text: string,
  caps: WalkCaps,
  shown: ShownSources,
): { readonly edits: readonly TextEdit[]; readonly removed: readonly number[] } {
  const edits: TextEdit[] = [];
  const removed: number[] = [];
  if (shown.size === 0) return { edits, removed };
  walkJson(text, caps, (leaf) => {
    if (leaf.kind === 'number' || !MEMBERS.has(leaf.steps.at(-1))) return;
    const source = shown.get(pointerOf(leaf.steps.slice(0, -1)));
    if (source === undefined) return;
    const edit = leaf.kind === 'name' ? nameEdit(text, leaf, source) : valueEdit(leaf, source);
    if (edit === undefined) return;
    edits.push(edit);
    if (edit.text === '') removed.push(tokenBehind(text, leaf.end));
  });
  return { edits, removed };
}

/** A text is edited where it stands. */
const MEMBERS: ReadonlySet<unknown> = new Set(['type', 'mimeType', 'data', 'blob']);
const PLAIN = '"text/plain"';

type ShownSource = ShownSources extends Map<string, infer Source> ? Source : never;

/** A block has a type, the contents of a resource have none. */
function isTyped({ block }: ShownSource): boolean {
  return typeof block['type'] === 'string';
}

function nameEdit(text: string, leaf: Leaf, source: ShownSource): TextEdit | undefined {
  const member = leaf.steps.at(-1);
  if (member === 'data' || member === 'blob') return { ...spanOfLeaf(leaf), text: '"text"' };
  return member === 'mimeType' && isTyped(source) ? memberRemoval(text, leaf) : undefined;
}

function valueEdit(leaf: Leaf, source: ShownSource): TextEdit | undefined {
  const span = spanOfLeaf(leaf);
  switch (leaf.steps.at(-1)) {
    case 'mimeType':
      return isTyped(source) ? undefined : { ...span, text: PLAIN };
    case 'type':
      return { ...span, text: '"text"' };
    default:
      return { ...span, text: writeSource(source) };
  }
}

function writeSource(source: ShownSource): string {
  const written = JSON.stringify(source.text);
  const hasType = isTyped(source) || Object.hasOwn(source.block, 'mimeType');
  return hasType ? written : `${written},"mimeType":${PLAIN}`;
}

/** The offset of the value behind a member name. */
function tokenBehind(text: string, nameEnd: number): number {
  let at = nameEnd;
  while (/[\s:]/.test(text[at] ?? '')) at++;
  return at;
}

function spanOfLeaf({ start, end }: Leaf): Span {
  return { start, end };
}

/** Removes a member with the comma before it or, of the first, behind it. */
function memberRemoval(text: string, name: Leaf): TextEdit {
  const end = valueEnd(text, name.end);
  let before = name.start - 1;
  while (text.charCodeAt(before) <= 0x20) before--;
  if (text[before] === ',') return { start: before, end, text: '' };
  return { start: name.start, end: text[end] === ',' ? end + 1 : end, text: '' };
}
