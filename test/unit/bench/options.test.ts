// The arguments of `npm run bench`: what is mistyped is said, not left out.

import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../bench/options.mjs';

describe('the arguments of the bench', () => {
  it('[PRF-09] without a mode are those of a run', () => {
    expect(readOptions([])).toEqual({
      kind: 'run',
      quick: false,
      pairs: false,
      peer: undefined,
      connections: [1, 4, 8, 16, 32],
      scenarios: [],
      seconds: 1.5,
      rounds: 5,
    });
    expect(readOptions(['--quick'])).toMatchObject({
      quick: true,
      connections: [32],
      seconds: 0.4,
      rounds: 1,
    });
    expect(readOptions(['--peer', 'program'])).toMatchObject({ kind: 'run', peer: 'program' });
  });

  it('[PRF-09] compare with a folder: 24 pairs, 60 at most, 4 points, 20 minutes', () => {
    expect(readOptions(['--against', '../before'])).toEqual({
      kind: 'against',
      dir: '../before',
      seconds: 0.4,
      connections: [32],
      scenarios: [],
      maxWidth: 4,
      maxDearer: undefined,
      minPairs: 24,
      maxPairs: 60,
      minutes: 20,
    });
  });

  it.each([
    ['5', 4],
    ['3.5', 4],
    ['3', 2],
    ['0', 2],
  ])('[PRF-09] with --max-dearer %s allow a width of %i points', (maxDearer, maxWidth) => {
    const options = readOptions(['--against', 'x', '--max-dearer', maxDearer]);
    expect(options).toMatchObject({ maxDearer: Number(maxDearer), maxWidth });
  });

  it('[PRF-09] may narrow a comparison', () => {
    const args = ['--against', 'x', '--width', '2', '--connections', '1,32', '--min-pairs', '80'];
    expect(readOptions([...args, '--scenario', '1 KB call'])).toMatchObject({
      maxWidth: 2,
      connections: [1, 32],
      minPairs: 80,
      maxPairs: 80,
      scenarios: ['1 KB call'],
    });
  });

  it('[PRF-10] attack this build or another, with all attacks or some', () => {
    expect(readOptions(['--hostile'])).toEqual({
      kind: 'hostile',
      dir: undefined,
      attacks: [],
      runs: 3,
    });
    const args = ['--hostile', '--against', 'x', '--attack', 'one', '--attack', 'two'];
    expect(readOptions([...args, '--runs', '1'])).toEqual({
      kind: 'hostile',
      dir: 'x',
      attacks: ['one', 'two'],
      runs: 1,
    });
  });

  it.each([
    ['an unknown one', ['--agianst', 'x'], '--agianst'],
    ['no folder', ['--against'], '--against'],
    ['an empty folder', ['--against', ''], '--against'],
    ['too few pairs', ['--against', 'x', '--min-pairs', '19'], '--min-pairs'],
    ['a bound below the least', ['--against', 'x', '--max-pairs', '20'], '--max-pairs'],
    ['no number', ['--against', 'x', '--width', 'narrow'], '--width'],
    ['an empty number', ['--against', 'x', '--max-dearer='], '--max-dearer'],
    ['other connections', ['--against', 'x', '--connections', '8,64'], '--connections'],
    ['two modes', ['--against', 'x', '--tokens'], '--against'],
    ['pairs of a run under attack', ['--hostile', '--width', '2'], '--width'],
    ['an attack without the mode', ['--attack', 'one'], '--attack'],
    ['one that this mode does not read', ['--against', 'x', '--quick'], '--quick'],
    ['one that needs a mode', ['--max-dearer', '5'], '--max-dearer'],
    ['no rounds', ['--rounds', '0'], '--rounds'],
  ])('[PRF-09] refuse %s in one sentence that names it', (_what, args, name) => {
    const options = readOptions(args);
    expect(options.kind).toBe('fault');
    expect('sentence' in options ? options.sentence : '').toContain(name);
  });
});
