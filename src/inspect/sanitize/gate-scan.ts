// The fast pass of the prefilter at work: lays a text out in the memory of its module and gives the places
// that need a look. Where the engine has no vectors, or a text is too long or too full of places, there is
// no answer, and gate.ts reads the text itself.

import {
  MAX_TEXT_UNITS,
  MEMORY_BYTES,
  OUT_AT,
  RUN_FLAG,
  TEXT_AT,
  VECTOR_BYTES,
} from './gate-layout.js';
import { fillTables } from './gate-memory.js';
import { LOCALS, SCAN_CODE } from './gate-scan-code.js';
import { writeModule } from './wasm-text.js';

/** Stands for every character beyond ASCII. */
export const BEYOND = 0x7f;
const MAX_ASCII = 0x7e;
const BLANK = 0x20;

/** What the engine offers of WebAssembly, as far as it is needed here. */
type Engine = {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
  ) => {
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      readonly scan: (from: number, end: number) => number;
    };
  };
};

export type GateScan = {
  /** Lays a text out for `scan`; false where it is too long. */
  take(text: string): boolean;
  /**
   * How many places from `from` to `end` of the text need a look; they stand in `places` until the next call,
   * and some may lie behind `end`. Negative where they are too many. What lies before `from` is not known
   * to be the beginning of a run.
   */
  scan(from: number, end: number): number;
  /** Each the position of a character; with RUN_FLAG one within or just behind the start of a run. */
  readonly places: Int32Array;
  /** The characters of the text that was scanned last. */
  readonly units: Uint8Array;
};

export { RUN_FLAG };

const encoder = new TextEncoder();

/** Makes the pass; `undefined` where the engine cannot run it. */
export function createGateScan(): GateScan | undefined {
  const { WebAssembly: engine } = globalThis as { readonly WebAssembly?: Engine };
  if (engine === undefined) return undefined;
  try {
    const bytes = writeModule(LOCALS, SCAN_CODE, MEMORY_BYTES);
    const { memory, scan } = new engine.Instance(new engine.Module(bytes)).exports;
    const all = new Uint8Array(memory.buffer);
    fillTables(all);
    const units = new Uint8Array(memory.buffer, TEXT_AT, MAX_TEXT_UNITS);
    return {
      units,
      places: new Int32Array(memory.buffer, OUT_AT),
      scan,
      take(text) {
        const { length } = text;
        if (length > MAX_TEXT_UNITS) return false;
        layOut(text, units);
        // Blanks ask for nothing, so what the last step reads behind the text adds no place.
        all.fill(BLANK, TEXT_AT + length, TEXT_AT + length + 2 * VECTOR_BYTES);
        return true;
      },
    };
  } catch {
    return undefined;
  }
}

/** Writes the characters of a text as bytes. Of ASCII, the bytes of UTF-8 are the characters. */
export function layOut(text: string, units: Uint8Array): void {
  const { length } = text;
  const { read, written } = encoder.encodeInto(text, units);
  if (read === length && written === length) return;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    units[at] = code <= MAX_ASCII ? code : BEYOND;
  }
}
