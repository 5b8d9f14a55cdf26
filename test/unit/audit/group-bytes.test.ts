import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startChain } from '../../../src/audit/chain.js';
import { createGroupBytes } from '../../../src/audit/group-commit.js';
import { quoteNumber } from '../../../src/text/escaping.js';
import { verifyChain } from '../../support/audit-chain.js';
import { lifecycle, linkLine } from './sink-rig.js';

describe('createGroupBytes', () => {
  it('[O-20] lays out the very lines that linking one by one makes, however large the group', () => {
    const group = createGroupBytes(startChain('epoch'));
    let head = startChain('epoch');
    for (const count of [1, 3, 400, 2]) {
      group.begin(head, false);
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

  it('[O-20] ends an unfinished line first, and what it makes is a whole chain', () => {
    const group = createGroupBytes(startChain('epoch'));
    group.begin(startChain('epoch'), true);
    group.add(lifecycle('started'));
    group.add(lifecycle('next'));
    const [first, ...lines] = group.bytes().toString('latin1').trimEnd().split('\n');
    expect(first).toBe('');
    expect(verifyChain(lines)).toMatchObject({ isWhole: true, lines: 2 });
  });
});

describe('quoteNumber', () => {
  it('law: is the number rounded to three decimals, as JSON', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.double({ noNaN: true }), fc.double({ min: 0, max: 1e6, noNaN: true })),
        (value) => {
          fc.pre(Number.isFinite(value * 1000));
          const rounded = Number.isInteger(value) ? value : Math.round(value * 1000) / 1000;
          expect(Number(JSON.parse(quoteNumber(value))) === rounded).toBe(true);
        },
      ),
    );
  });
});
