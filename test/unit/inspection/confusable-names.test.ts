import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { confusableForm, findConfusableNames } from '../../../src/inspection/confusable-names.js';

describe('[MRG-14] what a name looks like', () => {
  it.each([
    'send_email',
    'sendEmail',
    'send-email',
    'SEND.EMAIL',
    's\u0435nd_\u0435m\u0430il',
    'send\u200b_email',
    'send_ema\u00adil',
    'ｓｅｎｄ_email',
    'se\u0301nd_email',
  ])('%s looks like send_email', (name) => {
    expect(confusableForm(name)).toBe('sendemail');
  });

  it('differs where letters differ, and tells signs apart', () => {
    expect(confusableForm('send_email')).not.toBe(confusableForm('send_emails'));
    expect(confusableForm('a1')).toBe(confusableForm('al'));
    expect(confusableForm('++')).not.toBe(confusableForm('--'));
  });

  it('is its own look', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        const look = confusableForm(name);
        expect(confusableForm(look)).toBe(look);
      }),
    );
  });
});

describe('[MRG-14] names that look alike', () => {
  it('are those of several members, never those of one', () => {
    const found = findConfusableNames([
      { prefix: 'git_', names: ['hub_search', 'status', 'Status'] },
      { prefix: 'github_', names: ['search', 'status'] },
      { prefix: 'web_', names: ['search'] },
    ]);
    expect(found).toEqual([
      [
        { backend: 0, name: 'hub_search' },
        { backend: 1, name: 'search' },
      ],
    ]);
  });
});
