import { describe, expect, it } from 'vitest';
import { createListedResources } from '../../../src/state/replica-tables.js';

const BOTH = ['left', 'right'];
const page = (upstream: string, uris: readonly string[], nextCursor?: string, cursor?: string) => ({
  ...{ upstream, uris, cursor, nextCursor },
});

describe('[MRG-05] what was listed', () => {
  it('tells whose a resource is once every member has shown its whole list', () => {
    const listed = createListedResources();
    listed.note('caller', page('right', ['a://1']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://2'], 'two'));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://3'], undefined, 'two'));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual(['right']);
    expect(listed.recall('caller', 'a://3', BOTH)).toEqual(['left']);
    expect(listed.recall('caller', 'a://4', BOTH)).toEqual([]);
    expect(listed.recall('another', 'a://1', BOTH)).toEqual([]);
    listed.note('caller', page('left', ['a://1']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual(BOTH);
  });

  it('is forgotten as a whole, so that no list crowds out that of another member', () => {
    const listed = createListedResources({ maxUrisPerCaller: 2 });
    listed.note('caller', page('left', ['a://1']));
    listed.note('caller', page('right', ['a://2', 'a://3']));
    expect(listed.recall('caller', 'a://2', BOTH)).toEqual([]);
    expect(listed.recall('caller', 'a://2', ['right'])).toEqual(['right']);
    listed.note('caller', page('right', ['a://4', 'a://5', 'a://6']));
    expect(listed.recall('caller', 'a://4', ['right'])).toEqual([]);
  });

  it('is forgotten with too many callers too, though their lists be empty', () => {
    const listed = createListedResources({ maxUris: 3 });
    listed.note('first', page('left', ['a://1']));
    listed.note('second', page('left', []));
    expect(listed.recall('first', 'a://1', ['left'])).toEqual(['left']);
    listed.note('third', page('left', []));
    expect(listed.recall('first', 'a://1', ['left'])).toEqual([]);
  });

  it('[H-09] is not forgotten for another caller who lists too much', () => {
    const listed = createListedResources();
    listed.note('first', page('left', ['a://1']));
    const uris = Array.from({ length: 60_000 }, (_, at) => `b://${at}`);
    for (let at = 0; at < uris.length; at += 500)
      listed.note('other', page('left', uris.slice(at, at + 500), `c${at}`));
    listed.note('third', page('left', uris));
    expect(listed.recall('first', 'a://1', ['left'])).toEqual(['left']);
  });

  it('[H-09] is forgotten of the caller who asked least lately, where all together are too many', () => {
    const listed = createListedResources({ maxUris: 6 });
    for (const key of ['one', 'two', 'three']) listed.note(key, page('left', ['a://1']));
    listed.note('one', page('right', []));
    listed.note('four', page('left', ['a://1']));
    const known = ['one', 'two', 'three', 'four'].map((key) =>
      listed.recall(key, 'a://1', ['left']),
    );
    expect(known).toEqual([['left'], [], ['left'], ['left']]);
  });

  it('stays where it is listed again', () => {
    const listed = createListedResources({ maxUrisPerCaller: 3 });
    listed.note('caller', page('right', ['a://1']));
    for (let at = 0; at < 3; at += 1) listed.note('caller', page('left', ['a://2', 'a://3']));
    expect(listed.recall('caller', 'a://1', BOTH)).toEqual(['right']);
  });

  it('tells nothing of a list with a gap: another may own what was not seen here', () => {
    const listed = createListedResources({ maxUrisPerCaller: 4 });
    // A page that another replica saw.
    listed.note('one', page('left', ['a://1'], 'two'));
    listed.note('one', page('left', ['a://3'], undefined, 'three'));
    expect(listed.recall('one', 'a://1', ['left'])).toEqual([]);
    // A first page that was forgotten for what another member listed.
    listed.note('two', page('left', ['a://1'], 'two'));
    listed.note('two', page('right', ['a://1', 'a://2', 'a://3', 'a://4']));
    listed.note('two', page('right', ['a://1', 'a://5', 'a://6', 'a://7']));
    listed.note('two', page('left', [], undefined, 'two'));
    expect(listed.recall('two', 'a://1', BOTH)).toEqual([]);
    // A URI too long to be kept, on a page before the last.
    listed.note('three', page('left', [`a://${'x'.repeat(4096)}`], 'two'));
    listed.note('three', page('left', ['a://1'], undefined, 'two'));
    expect(listed.recall('three', 'a://1', ['left'])).toEqual([]);
  });
});
