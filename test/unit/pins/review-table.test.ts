import { describe, expect, it } from 'vitest';
import { type ReviewSubject, reviewRow, sortForReview } from '../../../src/pins/review-table.js';

const subject = (name: string, more: Partial<ReviewSubject> = {}): ReviewSubject => ({
  ...{ kind: 'tool', name, digest: '', isChanged: false, changes: [], findings: [], definition: {} },
  ...more,
});

describe('the rows of a review', () => {
  it('count the parameters that take any text, at any depth that a schema has', () => {
    const inputSchema = {
      properties: {
        a: { type: 'string' },
        b: { type: 'string', enum: ['x'] },
        c: { type: 'array', items: { type: 'string' } },
        d: { properties: { e: { type: ['string', 'null'] }, f: { type: 'integer' } } },
        g: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        h: {},
      },
    };
    expect(reviewRow(subject('x', { definition: { inputSchema } })).freeText).toBe(5);
    expect(reviewRow(subject('x', { kind: 'instructions', definition: 'Be brief.' }))).toMatchObject({
      ...{ freeText: 0, size: 9, notes: [] },
    });
  });

  it('note what is missing', () => {
    const properties = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`p${at}`, {}]));
    const definition = { description: ' ', annotations: { title: 'T' }, inputSchema: { properties } };
    expect(reviewRow(subject('x', { definition })).notes).toEqual([
      ...['no description', 'no outputSchema', '12 parameters without a description', '12 parameters'],
    ]);
  });

  it('come with findings first, then what changed, then what writes, then what takes text', () => {
    const text = { inputSchema: { properties: { a: { type: 'string' } } } };
    const rows = [
      subject('get_a'),
      subject('get_b', { definition: text }),
      subject('delete_c'),
      subject('get_d', { isChanged: true }),
      subject('get_e', { findings: [{ tier: 'review' }] }),
      subject('get_f', { findings: [{ tier: 'note' }] }),
    ].map(reviewRow);
    expect(sortForReview(rows).map(({ name }) => name)).toEqual([
      ...['get_e', 'get_d', 'delete_c', 'get_b', 'get_a', 'get_f'],
    ]);
  });
});
