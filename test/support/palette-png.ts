// Makes the PNG of a screen smaller, without a program for it: a palette of the 256 most frequent colours, to which the
// rare ones, at the edges of letters, are rounded. W3C PNG (third edition) §9 (filtering), §11.2 (PLTE, IDAT).

import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;
/** Length, type and checksum of a chunk. */
const FRAME_BYTES = 12;
const CHANNELS = 3;
const MAX_COLORS = 256;
const RGB = 2;
const PALETTE = 3;

function readChunks(png: Buffer): readonly { readonly type: string; readonly data: Buffer }[] {
  const chunks = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += FRAME_BYTES + length;
  }
  return chunks;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** What a filter adds to a byte: by the bytes left of it, above it, and above that left of it. */
function predict(filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  if (filter !== 4) return 0;
  const [toLeft, toUp, toCorner] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

/** The bytes of the pixels, row by row. */
function unfilter(raw: Buffer, rowBytes: number, rows: number): Buffer {
  const pixels = Buffer.alloc(rowBytes * rows);
  for (let row = 0; row < rows; row += 1) {
    const from = row * rowBytes;
    const filter = raw[from + row] ?? 0;
    for (let x = 0; x < rowBytes; x += 1) {
      const at = from + x;
      const isInner = x >= CHANNELS;
      const left = isInner ? (pixels[at - CHANNELS] ?? 0) : 0;
      const up = row > 0 ? (pixels[at - rowBytes] ?? 0) : 0;
      const corner = isInner && row > 0 ? (pixels[at - rowBytes - CHANNELS] ?? 0) : 0;
      pixels[at] = (raw[at + row + 1] ?? 0) + predict(filter, left, up, corner);
    }
  }
  return pixels;
}

const parts = (color: number): [number, number, number] => [color >> 16, (color >> 8) & 0xff, color & 0xff];

function distance(one: number, other: number): number {
  const [r, g, b] = parts(one);
  const [r2, g2, b2] = parts(other);
  return (r - r2) ** 2 + (g - g2) ** 2 + (b - b2) ** 2;
}

/** The same picture with at most 256 colours. `png` has eight bits for each of red, green and blue, as Chromium writes it. */
export function withPalette(png: Buffer): Buffer {
  const chunks = readChunks(png);
  const header = Buffer.from(chunks.find(({ type }) => type === 'IHDR')?.data ?? []);
  if (header[8] !== 8 || header[9] !== RGB || header[12] !== 0) throw new Error('not the PNG of a screen');
  const [width, rows] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const raw = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const pixels = unfilter(raw, width * CHANNELS, rows);
  const colors = Array.from({ length: width * rows }, (_, index) => pixels.readUIntBE(index * CHANNELS, CHANNELS));
  const counts = new Map<number, number>();
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  const palette = [...counts].sort(([, one], [, other]) => other - one).map(([color]) => color);
  const kept = palette.slice(0, MAX_COLORS);
  const indexes = new Map(kept.map((color, index) => [color, index]));
  for (const color of palette.slice(MAX_COLORS)) {
    const distances = kept.map((other) => distance(color, other));
    indexes.set(color, distances.indexOf(Math.min(...distances)));
  }
  const indexed = Buffer.alloc((width + 1) * rows);
  for (const [at, color] of colors.entries()) indexed[at + Math.floor(at / width) + 1] = indexes.get(color) ?? 0;
  header[9] = PALETTE;
  return Buffer.concat([
    png.subarray(0, SIGNATURE_BYTES),
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(kept.flatMap(parts))),
    chunk('IDAT', deflateSync(indexed, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
