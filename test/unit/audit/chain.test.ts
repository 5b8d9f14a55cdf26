import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ChainHead,
  checkpointBytes,
  checkpointDetail,
  createGroupBytes,
  readChainLine,
  readTail,
  startChain,
  tornDigest,
} from '../../../src/audit/chain.js';
import { buildEvent } from '../../../src/audit/event.js';
import type { ChainErrorKind } from '../../../src/audit/verify.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { quoteNumber } from '../../../src/text/escaping.js';
import { verifyChain } from '../../support/audit-chain.js';
import { context, NOW, ring } from './samples.js';
import { linkLine, makeFirstForm } from './sink-rig.js';

type Kind = 'call' | 'checkpoint';

const BOUNDS = { everyMs: 30_000, everyLines: 10_000 };
const publicKey = ring.publicKeys()[0]?.publicKey ?? '';

function lifecycle(event: string, detail: Record<string, string | number> = {}) {
  return buildEvent({ type: 'lifecycle', event, detail }, context);
}

function checkpointOf(head: ChainHead, signer = ring) {
  const point = { ...head, time: new Date(NOW).toISOString(), bounds: BOUNDS };
  const detail = checkpointDetail({ ...point, ...signer.sign(checkpointBytes(point)) });
  return buildEvent({ type: 'checkpoint', detail }, context);
}

/** A chain: its beginning, then what is asked for. */
function makeChain(kinds: readonly Kind[], epoch = 'epoch-1') {
  let head = startChain(epoch);
  const lines: string[] = [];
  const heads: ChainHead[] = [];
  const add = (event: ReturnType<typeof lifecycle>): void => {
    const linked = linkLine(head, event);
    head = linked.head;
    lines.push(linked.line);
    heads.push(head);
  };
  add(lifecycle('started', { public_key: publicKey }));
  for (const [index, kind] of kinds.entries()) {
    add(kind === 'call' ? lifecycle(`event-${index}`) : checkpointOf(head));
  }
  return { lines, heads, head };
}

const calls = (count: number): Kind[] => Array.from({ length: count }, () => 'call');

function kindsOf(lines: readonly string[], options = {}): ChainErrorKind[] {
  return verifyChain(lines, options).faults.map((error) => error.kind);
}

describe('the chain', () => {
  it('[O-10] is whole as written, and says that its end cannot be known without a head', () => {
    const { lines, head } = makeChain([...calls(5), 'checkpoint', ...calls(2)]);
    const verdict = verifyChain(lines);
    expect(verdict).toMatchObject({ isWhole: true, lines: 9, checkpoints: 1, head });
    expect(verdict.notes.join()).toContain('only --head can show');
    const known = verifyChain(lines, { heads: [head] });
    expect(known.isWhole).toBe(true);
    expect(known.notes.join()).not.toContain('cannot be known');
  });

  it('[O-10] hashes the bytes written: prev, a line feed, and the line without its hash', () => {
    const line = makeChain(calls(1)).lines[1] ?? '';
    const [, open = '', hash] = /^(.*),"hash":"([\w-]{43})"\}\}$/.exec(line) ?? [];
    const prev = /"prev":"([\w-]{43})"$/.exec(open)?.[1];
    expect(hash).toBe(createHash('sha256').update(`${prev}\n${open}`).digest('base64url'));
  });

  it('[O-10] goes on with a chain of sallyport.audit/1, whose hashes are in hex', () => {
    const { lines, head } = makeFirstForm(['started', 'x']);
    const next = linkLine(head, lifecycle('started', { public_key: publicKey }));
    const later = linkLine(next.head, checkpointOf(next.head));
    expect(next.line).toContain(`"prev":"${head.hash}"`);
    const all = [...lines, next.line, later.line];
    expect(verifyChain(all, { heads: [head], publicKeys: [publicKey] })).toMatchObject({
      isWhole: true,
      lines: 4,
      unsigned: { lines: 0 },
    });
    expect(kindsOf(all.with(1, (all[1] ?? '').replace('"x"', '"y"')))).toEqual(['edited']);
    expect(readTail(`${lines.join('\n')}\n`).head).toEqual(head);
  });

  it('[O-11] any change of one character of any line is found', () => {
    const { lines } = makeChain([...calls(3), 'checkpoint']);
    fc.assert(
      fc.property(fc.nat(lines.length - 1), fc.nat(), fc.integer({ min: 32, max: 126 }), (at, offset, code) => {
        const line = lines[at] ?? '';
        const place = offset % line.length;
        const changed = `${line.slice(0, place)}${String.fromCharCode(code)}${line.slice(place + 1)}`;
        const tampered = lines.with(at, changed);
        expect(verifyChain(tampered).isWhole).toBe(changed === line);
      }),
    );
  });

  it('[O-11] says which line was edited, and only that one', () => {
    const { lines } = makeChain(calls(5));
    const edited = lines.with(3, (lines[3] ?? '').replace('event-2', 'event-9'));
    const { faults: errors } = verifyChain(edited, {}, 'audit.jsonl');
    expect(errors).toMatchObject([{ file: 'audit.jsonl', line: 4, kind: 'edited' }]);
  });

  it('[O-11] finds deletion, from the beginning, the middle and the end', () => {
    const { lines, head } = makeChain(calls(6));
    for (let at = 0; at < lines.length; at += 1) {
      const kinds = kindsOf(lines.toSpliced(at, 1), { heads: [head] });
      const last = at === lines.length - 1 ? 'truncated' : 'missing';
      expect(kinds).toEqual([at === 0 ? 'no-beginning' : last]);
    }
    expect(kindsOf(lines.slice(0, 3), { heads: [head] })).toEqual(['truncated']);
    expect(kindsOf([], { heads: [head] })).toContain('truncated');
    expect(kindsOf([])).toEqual(['empty']);
  });

  it('[O-11] finds lines moved, repeated, or put in', () => {
    const { lines } = makeChain(calls(6));
    const [one = '', two = ''] = lines.slice(2, 4);
    const swapped = lines.with(2, two).with(3, one);
    expect(kindsOf(swapped)).toEqual(['missing', 'reordered', 'missing']);
    expect(kindsOf(lines.toSpliced(3, 0, one))).toEqual(['reordered']);
    expect(kindsOf(lines.toSpliced(3, 0, '{"type":"lifecycle"}'))).toEqual(['torn']);
  });

  it('[O-11] finds a line written anew with a hash that fits it', () => {
    const { lines, heads } = makeChain(calls(4));
    const before = heads[1] ?? startChain('');
    const forged = linkLine(before, lifecycle('forged')).line;
    expect(kindsOf(lines.with(2, forged))).toEqual(['replaced']);
  });

  it('[O-11] finds two chains in a file', () => {
    const first = makeChain(calls(2), 'epoch-1');
    const second = makeChain(calls(2), 'epoch-2');
    expect(kindsOf([...first.lines, ...second.lines])).toEqual(['second-chain']);
  });

  it('[O-12] a chain rewritten from a point on fails against a checkpoint kept elsewhere', () => {
    const { lines, heads, head } = makeChain(calls(4));
    let forgedHead = heads[1] ?? startChain('');
    const forged = [];
    for (const name of ['x', 'y', 'z']) {
      const linked = linkLine(forgedHead, lifecycle(name));
      forgedHead = linked.head;
      forged.push(linked.line);
    }
    const rewritten = [...lines.slice(0, 2), ...forged];
    expect(verifyChain(rewritten).isWhole).toBe(true);
    expect(kindsOf(rewritten, { heads: [head] })).toEqual(['replaced']);
    expect(kindsOf(lines, { heads: [{ ...head, epoch: 'another' }] })).toEqual(['truncated']);
  });

  it('[O-12] checkpoints must be signed by the key that is given', () => {
    const { lines } = makeChain([...calls(2), 'checkpoint', 'call']);
    const other = createKeyRing([{ id: 'other', bytes: Buffer.alloc(32, 7) }]);
    const foreign = other.publicKeys()[0]?.publicKey ?? '';
    expect(kindsOf(lines, { publicKeys: [publicKey] })).toEqual([]);
    expect(kindsOf(lines, { publicKeys: [foreign, publicKey] })).toEqual([]);
    expect(kindsOf(lines, { publicKeys: [foreign] })).toContain('signature');
    expect(kindsOf(makeChain(calls(3)).lines, { publicKeys: [publicKey] })).toEqual(['signature']);
    expect(kindsOf(lines, { publicKeys: ['not a key'] })).toContain('signature');
  });

  it('[O-12] a checkpoint taken from another place of the chain is found', () => {
    const { lines, heads, head } = makeChain(calls(3));
    const stale = linkLine(head, checkpointOf(heads[1] ?? head)).line;
    expect(kindsOf([...lines, stale])).toEqual(['signature']);
    const otherChain = makeChain(calls(1), 'epoch-9');
    const kept = linkLine(head, checkpointOf(otherChain.head)).line;
    expect(kindsOf([...lines, kept])).toEqual([]);
  });

  it('[O-13] accepts a torn line only where the next line records exactly it', () => {
    const { lines, head } = makeChain(calls(2));
    const torn = '{"schema":"sallyport.audit/1","id":"0b7e';
    const recovery = (text: string) =>
      linkLine(head, lifecycle('recovered', { torn_bytes: text.length, torn_sha256: tornDigest(text) })).line;
    const good = verifyChain([...lines, torn, recovery(torn)]);
    expect(good.isWhole).toBe(true);
    expect(good.notes.join()).toContain('interrupted');
    expect(kindsOf([...lines, torn])).toEqual(['torn']);
    expect(kindsOf([...lines, torn, recovery(`${torn}x`)])).toEqual(['torn']);
    expect(kindsOf([...lines, torn, torn, recovery(torn)])).toEqual(['torn']);
    const plain = linkLine(head, lifecycle('started')).line;
    expect(kindsOf([...lines, torn, plain])).toEqual(['torn']);
  });

  it('[O-14] goes on over several files, and says when the earlier one was not given', () => {
    const { lines, head } = makeChain(calls(2));
    const next = linkLine(head, lifecycle('continued', { after_seq: head.seq }));
    const later = linkLine(next.head, lifecycle('x')).line;
    expect(kindsOf([...lines, next.line, later])).toEqual([]);
    const alone = verifyChain([next.line, later]);
    expect(alone).toMatchObject({ isWhole: false, faults: [] });
    expect(alone.notes.join()).toContain('earlier file');
    expect(kindsOf([later])).toEqual(['no-beginning']);
  });
});

describe('readTail', () => {
  it('[O-13] finds the last whole line wherever a crash cut the file', () => {
    const { lines, heads } = makeChain(calls(3));
    const text = `${lines.join('\n')}\n`;
    const ends = lines.map((_, index) => lines.slice(0, index + 1).join('\n').length);
    for (let cut = ends[0] ?? 0; cut <= text.length; cut += 7) {
      const tail = readTail(text.slice(0, cut));
      const complete = ends.filter((end) => end <= cut).length;
      expect(tail.head).toEqual(heads[complete - 1]);
      expect(tail.torn).toBe(text.slice((ends[complete - 1] ?? 0) + 1, cut));
    }
  });

  it('[O-13] takes neither garbage nor a changed line for a whole one', () => {
    const { lines, heads } = makeChain(calls(1));
    const changed = (lines[1] ?? '').replace('event-0', 'event-1');
    expect(readTail(`${lines[0]}\n${changed}\n`)).toMatchObject({ head: heads[0], torn: changed });
    expect(readTail('not ours\n').head).toBeUndefined();
    expect(readTail('').head).toBeUndefined();
    expect(readChainLine('{"chain":{"seq":0}}')).toBeUndefined();
  });
});

describe('createGroupBytes', () => {
  it('[O-20] lays out the very lines that linking one by one makes, however large the group', () => {
    const group = createGroupBytes(startChain('epoch'));
    let head = startChain('epoch');
    for (const count of [1, 3, 400, 2]) {
      group.begin(head);
      let expected = '';
      for (let index = 0; index < count; index += 1) {
        const event = lifecycle(`event-${index}`);
        const linked = linkLine(head, event);
        head = linked.head;
        expected += `${linked.line}\n`;
        group.add(event);
      }
      expect(group.bytes().toString('latin1')).toBe(expected);
      expect(group.head()).toEqual(head);
    }
  });

  it('[O-20] makes a whole chain', () => {
    const group = createGroupBytes(startChain('epoch'));
    group.begin(startChain('epoch'));
    group.add(lifecycle('started'));
    group.add(lifecycle('next'));
    const lines = group.bytes().toString('latin1').trimEnd().split('\n');
    expect(verifyChain(lines)).toMatchObject({ isWhole: true, lines: 2 });
  });
});

describe('quoteNumber', () => {
  it('law: is the number rounded to three decimals, as JSON', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double({ noNaN: true }), fc.double({ min: 0, max: 1e6, noNaN: true })), (value) => {
        fc.pre(Number.isFinite(value * 1000));
        const rounded = Number.isInteger(value) ? value : Math.round(value * 1000) / 1000;
        expect(Number(JSON.parse(quoteNumber(value))) === rounded).toBe(true);
      }),
    );
  });
});
