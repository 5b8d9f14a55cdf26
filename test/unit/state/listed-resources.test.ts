import { describe, expect, it } from 'vitest';
import { createListedResources } from '../../../src/state/listed-resources.js';

const BOTH = ['left', 'right'];
const page = (upstream: string, uris: readonly string[], isLast = true) => ({
  ...{ upstream, uris, isLast },
});

describe('[MRG-05] what was listed', () => {
  it('tells whose a resource is once every member has shown its whole list', () => {
    const listed = createListedResources();
    listed.note('caller', page('right', ['a://1']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://2'], false));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://3']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual(['right']);
    expect(listed.recall('caller', 'a://3', BOTH)).toEqual(['left']);
    expect(listed.recall('caller', 'a://4', BOTH)).toEqual([]);
    expect(listed.recall('another', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://1']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual(BOTH);
  });

  it('is forgotten as a whole, so that no list crowds out that of another member', () => {
    const listed = createListedResources(2);
    listed.note('caller', page('left', ['a://1']));
    listed.note('caller', page('right', ['a://2', 'a://3']));
    expect(listed.recall('caller', 'a://2', BOTH)).toEqual([]);
    expect(listed.recall('caller', 'a://2', ['right'])).toEqual(['right']);
    listed.note('caller', page('right', ['a://4', 'a://5', 'a://6']));
    expect(listed.recall('caller', 'a://4', ['right'])).toEqual([]);
  });

  it('is forgotten with too many callers too, though their lists be empty', () => {
    const listed = createListedResources(3);
    listed.note('first', page('left', ['a://1']));
    listed.note('second', page('left', []));
    expect(listed.recall('first', 'a://1', ['left'])).toEqual(['left']);
    listed.note('third', page('left', []));
    expect(listed.recall('first', 'a://1', ['left'])).toEqual([]);
  });
});
