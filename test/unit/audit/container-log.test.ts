// Which lines are taken for wrappers of a container runtime: in what a gateway wrote itself, none.

import { describe, expect, it } from 'vitest';
import { createUnwrapper } from '../../../src/audit/container-log.js';

const LINE = '{"schema":"sallyport.audit/1","seq":1}';
const CRI_ERROR = '2030-01-01T00:00:00.000000000Z stderr F planted';
const DOCKER_ERROR = '{"log":"planted\\n","stream":"stderr"}';
const MAX = 1_000;

function unwrap(lines: readonly string[], isJoined?: boolean): readonly string[] {
  const { add, end } = createUnwrapper(MAX, isJoined);
  return [...lines.flatMap(add), ...end()];
}

describe('[O-94] lines of containers', () => {
  it.each([CRI_ERROR, DOCKER_ERROR])('are none in a file that begins with an audit line: %s', (planted) => {
    expect(unwrap([LINE, planted, LINE])).toEqual([LINE, planted, LINE]);
  });

  it('are read behind others where files may have been joined', () => {
    const cri = `2030-01-01T00:00:00.000000000Z stdout F ${LINE}`;
    expect(unwrap([LINE, cri, CRI_ERROR], true)).toEqual([LINE, LINE]);
    expect(unwrap([CRI_ERROR, cri])).toEqual([LINE]);
  });
});
