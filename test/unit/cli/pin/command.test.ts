import { describe, expect, it } from 'vitest';
import { pinCommand } from '../../../../src/cli/pin/command.js';
import type { Observation, PinPorts } from '../../../../src/cli/pin/lock-files.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { readLock } from '../../../../src/pins/lock-reader.js';
import { writeLock } from '../../../../src/pins/lock-yaml.js';
import { GOOD, KEY_HEX } from '../../config/reading.js';
import { digestOf, lockOf, observedOf, pinOf, toolOf, versionOf } from '../../pins/samples.js';
import { terminal } from '../console.js';

const FILE = '/srv/config/policies/pins/github.lock.yaml';
const TOOL = toolOf('get_issue');
const OTHER = toolOf('get_issue', { description: 'Reads any issue.\u001b[2J' });
const APPROVED = writeLock(lockOf([pinOf(TOOL)]));
const WAITING = writeLock(lockOf([pinOf(TOOL, 'approved', [versionOf(OTHER, 'pending')])]));

const OFFERS_TOOL: Observation = { kind: 'observed', observed: observedOf([TOOL]) };
const OFFERS_OTHER: Observation = { kind: 'observed', observed: observedOf([OTHER]) };
const UNREACHABLE: Observation = { kind: 'unreachable', why: 'timeout' };

type Case = {
  readonly lock?: string;
  readonly offers?: Observation;
  readonly gateway?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly writes?: boolean | 'elsewhere';
  /** A command without a listing that another process runs while the upstream is listed. */
  readonly meanwhile?: string;
};

async function run(line: string, given: Case = {}) {
  const io = terminal({ env: given.env ?? { KEY: KEY_HEX } });
  const files = new Map([['/srv/config/gateway.yaml', given.gateway ?? GOOD]]);
  if (given.lock !== undefined) files.set(FILE, given.lock);
  const ports: PinPorts = {
    files: {
      readFile(path) {
        const text = files.get(path);
        if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
        return new TextEncoder().encode(text);
      },
      listFolder: () => [...files.keys()],
    },
    async updateFile(path, update) {
      if (given.writes === false) throw new Error('read-only');
      if (given.writes === 'elsewhere') return `${path}.new`;
      const text = update();
      if (text !== undefined) files.set(path, text);
      return undefined;
    },
    async observe() {
      // Another command runs to its end while this one waits for the upstream.
      const between = given.meanwhile?.split(' ');
      if (between !== undefined) await runArgv(between, terminal({ env: io.env }));
      return given.offers ?? OFFERS_TOOL;
    },
    now: () => Date.UTC(2026, 10, 20, 10),
  };
  const runArgv = ([word = '', ...rest]: readonly string[], printed = io): Promise<number> =>
    buildProgram(printed, [pinCommand(printed, ports)]).run([
      ...['pin', word, '-c', 'config/gateway.yaml'],
      ...rest,
    ]);
  const code = await runArgv(line.split(' '));
  return { code, out: io.out(), err: io.err(), text: files.get(FILE) };
}

function statuses(text: string | undefined): unknown {
  const pin = readLock(FILE, text ?? '').lock?.pins.tool.get('get_issue');
  return pin && [pin.status, ...pin.variants.map(({ status }) => status)];
}

describe('[L-70] pin fetch', () => {
  it('writes what is new as pending', async () => {
    const { code, out, text } = await run('fetch');
    expect(code).toBe(0);
    expect(statuses(text)).toEqual(['pending']);
    expect(out).toBe(
      `github: 0 approved, 1 pending; written to ${FILE}\n  pending tool get_issue sha256:${digestOf(TOOL)}\n`,
    );
  });

  it('approves what is offered, in the name of somebody', async () => {
    const { code, text } = await run('fetch github --approve --by alex --note reviewed');
    expect(code).toBe(0);
    const pin = readLock(FILE, text ?? '').lock?.pins.tool.get('get_issue');
    expect(pin).toMatchObject({
      status: 'approved',
      approval: { by: 'alex', at: '2026-11-20T10:00:00.000Z', note: 'reviewed' },
    });
  });

  it('keeps the approved definition beside a changed one', async () => {
    const { out, text } = await run('fetch --json', { lock: APPROVED, offers: OFFERS_OTHER });
    expect(statuses(text)).toEqual(['approved', 'pending']);
    expect(JSON.parse(out).upstreams[0]).toMatchObject({
      upstream: 'github',
      isChanged: true,
      approved: 1,
      pending: [{ kind: 'tool', name: 'get_issue', digest: digestOf(OTHER) }],
    });
    expect((await run('fetch', { lock: text ?? '', offers: OFFERS_OTHER })).out).toContain(
      'nothing changed',
    );
  });

  it('changes nothing where it cannot check', async () => {
    expect(await run('fetch', { offers: UNREACHABLE })).toMatchObject({
      code: 2,
      err: 'error: github could not be listed: timeout\n',
      text: undefined,
    });
    const broken = APPROVED.replace('Reads', 'Deletes');
    expect(await run('fetch', { lock: broken })).toMatchObject({ code: 2, text: broken });
    expect((await run('fetch --approve')).code).toBe(2);
    expect((await run('fetch --by alex')).code).toBe(2);
    expect((await run('fetch', { writes: false })).code).toBe(2);
    expect((await run('fetch', { env: {} })).code).toBe(2);
    const unknown = await run('fetch githb');
    expect(unknown).toMatchObject({ code: 2, text: undefined });
    expect(unknown.err).toContain('did you mean "github"?');
  });

  it('tells what cannot be pinned', async () => {
    const offers: Observation = { kind: 'observed', observed: observedOf([TOOL, OTHER]) };
    const { code, out } = await run('fetch', { offers });
    expect(code).toBe(1);
    expect(out).toContain('cannot be pinned: tool get_issue');
  });
});

describe('[L-71] pin diff and verify', () => {
  it('find nothing where the upstream offers what is pinned', async () => {
    expect(await run('verify', { lock: APPROVED })).toMatchObject({
      code: 0,
      out: 'github: as pinned\n',
    });
  });

  it('verify fails on drift, and on what nobody pinned', async () => {
    const { code, out } = await run('verify', { lock: APPROVED, offers: OFFERS_OTHER });
    expect(code).toBe(1);
    expect(out).toBe(
      `github tool get_issue: new-cue, description (sha256:${digestOf(TOOL)} -> sha256:${digestOf(OTHER)})\n`,
    );
    expect((await run('verify')).code).toBe(1);
    expect((await run('verify', { offers: UNREACHABLE })).code).toBe(2);
  });

  it('diff shows the lines, escaped, and does not fail', async () => {
    const { code, out } = await run('diff', { lock: APPROVED, offers: OFFERS_OTHER });
    expect(code).toBe(0);
    expect(out).toContain('  - description: Reads one issue.\n');
    expect(out).toContain('  + description: Reads any issue.\\u{1b}[2J\n');
    expect(out).not.toContain('\u001b');
  });

  it('diff --json has the classes and the lines', async () => {
    const { out } = await run('diff --json', { lock: APPROVED, offers: OFFERS_OTHER });
    expect(JSON.parse(out).upstreams[0].differences[0]).toMatchObject({
      kind: 'tool',
      name: 'get_issue',
      change: 'new-cue',
      before: digestOf(TOOL),
      after: digestOf(OTHER),
    });
  });
});

describe('[L-72] pin approve and block', () => {
  const approve = `approve github get_issue --digest sha256:${digestOf(OTHER)} --by alex`;

  it('approves the reviewed digest', async () => {
    const { code, out, text } = await run(approve, { lock: WAITING, offers: OFFERS_OTHER });
    expect([code, out]).toEqual([0, 'approved github tool get_issue\n']);
    expect(statuses(text)).toEqual(['approved']);
  });

  it('refuses a definition that has moved on', async () => {
    const { code, err, text } = await run(approve, { lock: WAITING, offers: OFFERS_TOOL });
    expect(code).toBe(1);
    expect(err).toContain(`there is: sha256:${digestOf(TOOL)}`);
    expect(text).toBe(WAITING);
    expect((await run(approve, { lock: APPROVED, offers: OFFERS_OTHER })).code).toBe(1);
    expect((await run(approve)).code).toBe(1);
  });

  it('needs neither secrets nor the upstream, but says so', async () => {
    for (const given of [{ env: {} }, { offers: UNREACHABLE }]) {
      const { code, err, text } = await run(approve, { lock: WAITING, ...given });
      expect(code).toBe(0);
      expect(err).toContain('note: the lock file alone was asked');
      expect(statuses(text)).toEqual(['approved', 'approved']);
    }
  });

  it('takes a whole digest and a name only', async () => {
    for (const line of [
      'approve github get_issue --digest sha256:12 --by alex',
      `approve github get_issue --digest ${digestOf(OTHER)} --by alex`,
      `approve github get_issue --digest sha256:${digestOf(OTHER)}`,
      'approve github get_issue --by alex',
      `approve gitlab get_issue --digest sha256:${digestOf(OTHER)} --by alex`,
    ]) {
      expect(await run(line, { lock: WAITING })).toMatchObject({ code: 2, text: WAITING });
    }
  });

  it('keeps a block that came while the upstream was listed, whatever else is written', async () => {
    const given = { lock: WAITING, offers: OFFERS_OTHER, meanwhile: 'block github get_issue' };
    for (const line of ['fetch', 'fetch --approve --by alex', approve]) {
      expect(statuses((await run(line, given)).text)).toEqual(['blocked', 'pending']);
    }
    const refused = await run(approve, given);
    expect([refused.code, refused.out]).toEqual([1, '']);
    expect(refused.err).toContain('was blocked since this command began');
    const blocked = (await run('block github get_issue', given)).text ?? '';
    const lifted = await run(approve, { lock: blocked, offers: OFFERS_OTHER });
    expect([lifted.code, statuses(lifted.text)]).toEqual([0, ['approved', 'blocked']]);
  });

  it('says by what file another command holds the lock file, and changes nothing', async () => {
    for (const line of ['fetch', approve, 'block github get_issue']) {
      const { code, err, text } = await run(line, { lock: WAITING, writes: 'elsewhere' });
      expect([code, text]).toEqual([2, WAITING]);
      expect(err).toContain(`if none is running, remove ${FILE}.new`);
    }
  });

  it('blocks a name', async () => {
    const { code, text } = await run('block github get_issue', { lock: WAITING });
    expect(code).toBe(0);
    expect(statuses(text)).toEqual(['blocked', 'pending']);
    expect((await run('block github unknown', { lock: WAITING })).code).toBe(1);
  });
});

describe('[CRD-12] what a server calls itself', () => {
  const KNOWN = { name: 'github', version: '1' };
  const lock = writeLock({ ...lockOf([pinOf(TOOL)]), server: KNOWN });
  const offers = (serverInfo: Record<string, string>): Observation => ({
    kind: 'observed',
    observed: observedOf([TOOL], { serverInfo }),
  });

  it('is drift with another name: shown by diff, failed by verify', async () => {
    const given = { lock, offers: offers({ ...KNOWN, name: 'evil\u001b[2J' }) };
    const shown = await run('diff', given);
    expect(shown.out).toContain('github server server: server (sha256:');
    expect(shown.out).toContain('evil');
    expect(shown.out).not.toContain('\u001b');
    expect((await run('verify', given)).code).toBe(1);
  });

  it('is shown with another version, and fails nothing', async () => {
    const given = { lock, offers: offers({ ...KNOWN, version: '2' }) };
    expect((await run('diff', given)).out).toContain('server-version');
    const verified = await run('verify', given);
    expect(verified.out).toContain('server-version');
    expect(verified.code).toBe(0);
    expect((await run('fetch', given)).text).toContain('  version: "2"');
  });
});
