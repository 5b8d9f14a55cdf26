import { describe, expect, it } from 'vitest';
import type { Observation, PinPorts } from '../../../../src/cli/pin/lock-files.js';
import { pinCommand } from '../../../../src/cli/pin/pin-command.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { mergeObserved, observeListing } from '../../../../src/pins/last-seen.js';
import { writeLock } from '../../../../src/pins/lock.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { envelopeOf, makeSigner, statementOf } from '../../../support/signers.js';
import { GOOD, KEY_HEX } from '../../config/reading.js';
import { digestOf, listingOf, lockOf, pinOf, textPin, toolOf, versionOf } from '../../pins/samples.js';
import { terminal } from '../console.js';

const FILE = '/srv/policies/pins/github.lock.yaml';
const OLD = toolOf('get_issue', { title: 'Issue' });
const VARIANT = toolOf('get_issue', { title: 'Issue (2)' });
const NEW = toolOf('get_issue', {
  title: 'Issue',
  description: 'Reads\u200b one \u{e0041}issue.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' }, note: {} } },
});
const LOCK = writeLock({
  ...lockOf([pinOf(OLD, 'approved', [versionOf(VARIANT, 'approved')])], textPin('Be brief.')),
  server: { name: 'github', version: '1' },
});
/** What the server offers to sessions, beside the variant that it offers to others. */
function offersOf(tools: readonly JsonObject[], variant = VARIANT, instructions = 'Be brief.') {
  const serverInfo = { name: 'github', version: instructions === 'Be brief.' ? '1' : '2' };
  const more = { instructions, serverInfo };
  return mergeObserved([
    observeListing(listingOf(tools, more)),
    observeListing(listingOf([variant], { ...more, era: '2026' })),
  ]);
}
const OFFERS = offersOf([NEW, toolOf('list_issues')], VARIANT, 'Be long.');
const alice = makeSigner('alice');
const SIGNERS = 'pins: {signers: {alice: {publicKey: {env: ALICE}}}}\n';

type Given = {
  readonly signatures?: string;
  readonly offers?: typeof OFFERS;
  readonly gateway?: string;
  /** What the gateway trusted on first use, beside the lock files. */
  readonly firstUse?: string;
};

async function run(line: string, given: Given = {}) {
  const io = terminal({ env: { KEY: KEY_HEX, ALICE: alice.publicKey } });
  const files = new Map([
    ['/srv/gateway.yaml', given.gateway ?? GOOD],
    [FILE, LOCK],
  ]);
  if (given.signatures !== undefined) files.set(FILE.replace('.yaml', '.sig.json'), given.signatures);
  if (given.firstUse !== undefined) files.set(FILE.replace('.lock.yaml', '.first-use.yaml'), given.firstUse);
  const observed: Observation = { kind: 'observed', observed: given.offers ?? OFFERS };
  const ports: PinPorts = {
    files: {
      readFile(path) {
        const text = files.get(path);
        if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
        return new TextEncoder().encode(text);
      },
      listFolder: () => [],
    },
    updateFile: () => Promise.reject(new Error('nothing is written')),
    observe: async () => observed,
    now: () => 0,
  };
  const argv = ['pin', ...line.split(' '), '-c', 'gateway.yaml'];
  const code = await buildProgram(io, [pinCommand(io, ports)]).run(argv);
  return { code, out: io.out(), err: io.err() };
}

// biome-ignore lint/suspicious/noExplicitAny: reports are read by their members
type Report = any;

/** The lines of the lock file, from 1. */
const lines = LOCK.split('\n');
const lineOf = (result: Report): string =>
  lines[result.locations[0].physicalLocation.region.startLine - 1]?.trim() ?? '';

describe('[L-97] pin diff and pin verify', () => {
  it('list approved forms that are not offered, which is no drift', async () => {
    const offers = offersOf([OLD], OLD);
    const { code, out } = await run('verify', { offers });
    expect([code, out]).toEqual([
      0,
      `github tool get_issue: a form that is approved, and not offered here (sha256:${digestOf(VARIANT)})\ngithub: as pinned\n`,
    ]);
    expect((await run('diff', { offers })).out).toContain('not offered here');
    const { upstreams } = JSON.parse((await run('verify --json', { offers })).out);
    expect(upstreams[0].notOffered).toEqual([{ kind: 'tool', name: 'get_issue', digest: digestOf(VARIANT) }]);
    const log: Report = JSON.parse((await run('verify --format sarif', { offers })).out);
    expect(log.runs[0].results).toMatchObject([{ ruleId: 'not-offered', level: 'note' }]);
    // The difference says that the form which changed is not offered.
    expect(JSON.parse((await run('verify --json')).out).upstreams[0].notOffered).toEqual([]);
  });

  it('show fields in text, and what cannot be seen', async () => {
    const { code, out } = await run('verify');
    expect(code).toBe(1);
    expect(out).toContain(
      '  /description: new-cue, description\n    - "Reads one issue."\n    + "Reads\\u{200b} one \\u{e0041}issue."\n' +
        '  /inputSchema/properties/note: input-widened\n    + {}\n',
    );
    expect(out).toContain('  the text: description\n    - "Be brief."\n    + "Be long."\n');
    expect(out).toContain('github server: server-version');
    expect(out).toContain('  /version: server-version\n    - "1"\n    + "2"\n');
    expect((await run('diff --details')).out).toContain('  /inputSchema/properties/note: input-widened\n');
    expect(out).not.toMatch(/[\u200b\u{e0041}]/u);
  });

  it('show fields in JSON, of which every character can be seen, and which is read back exactly', async () => {
    for (const line of ['verify --format json', 'verify --json', 'diff --format json']) {
      const { out } = await run(line);
      expect(out).toContain('Reads\\u200b one \\udb40\\udc41issue.');
      expect(out).not.toMatch(/[\u200b\u{e0041}]/u);
      const [found] = JSON.parse(out).upstreams;
      expect(found.signatures).toBeNull();
      expect(found.differences[0]).toMatchObject({
        name: 'get_issue',
        changes: ['new-cue', 'input-widened', 'description'],
        fields: [
          { pointer: '/description', before: OLD['description'], after: NEW['description'] },
          { pointer: '/inputSchema/properties/note', after: {}, changes: ['input-widened'] },
        ],
      });
    }
  });

  it('show fields in SARIF 2.1.0, at their lines of the lock file', async () => {
    const { code, out } = await run('verify --format sarif');
    expect(code).toBe(1);
    expect(out).not.toMatch(/[\u200b\u{e0041}]/u);
    const log: Report = JSON.parse(out);
    // What the schema of SARIF 2.1.0 requires of a log, and what GitHub requires beyond it.
    expect(log.version).toBe('2.1.0');
    expect(log.$schema).toMatch(/sarif-2\.1\.0\.json$/);
    const [first] = log.runs;
    expect(log.runs).toHaveLength(1);
    expect(first.tool.driver.name).toBe('sallyport');
    const ids = first.tool.driver.rules.map(({ id }: Report) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const result of first.results) {
      expect(['error', 'warning', 'note']).toContain(result.level);
      expect(result.message.text.length).toBeGreaterThan(10);
      expect(ids[result.ruleIndex]).toBe(result.ruleId);
      const [{ physicalLocation: at }] = result.locations;
      expect(at.artifactLocation.uri).toBe('policies/pins/github.lock.yaml');
      expect(at.region.startLine).toBeGreaterThan(0);
      expect(at.region.startColumn).toBeGreaterThan(0);
      expect(result.partialFingerprints['sallyport/v1']).toMatch(/^[0-9a-f]{64}$/);
    }
    const at = (pointer: string, kind = 'tool'): Report =>
      first.results.find(({ properties }: Report) => properties.pointer === pointer && properties.kind === kind);
    expect(at('/description')).toMatchObject({ ruleId: 'new-cue', level: 'error' });
    expect(lineOf(at('/description'))).toBe('description: "Reads one issue."');
    expect(at('/description').message.text).toBe(
      'github tool get_issue /description: new-cue, description: "Reads one issue." -> "Reads\\u{200b} one \\u{e0041}issue."',
    );
    expect(lineOf(at('/inputSchema/properties/note'))).toMatch(/^(?:properties|id|type)/);
    expect(lineOf(at('', 'instructions'))).toBe('text: "Be brief."');
    expect(at('/version', 'server')).toMatchObject({ ruleId: 'server-version', level: 'note' });
    expect(lineOf(at('/version', 'server'))).toBe('version: "1"');
    expect(first.results.some(({ ruleId }: Report) => ruleId === 'new-tool')).toBe(true);
  });

  it('name what changed of the variant that is not offered any more', async () => {
    const offers = offersOf([OLD], toolOf('get_issue', { title: 'Issue (3)' }));
    const { out } = await run('verify --format sarif', { offers });
    const [result] = JSON.parse(out).runs[0].results;
    expect(result.message.text).toContain('/title: description: "Issue (2)" -> "Issue (3)"');
    expect(lineOf(result)).toBe('title: "Issue (2)"');
  });

  it('check the signatures: verify fails without them, in every format', async () => {
    const gateway = GOOD + SIGNERS;
    const offers = offersOf([OLD]);
    const signatures = envelopeOf(statementOf(LOCK, { counter: 3 }), [alice]);
    const good = await run('verify', { gateway, offers, signatures });
    expect([good.code, good.out]).toEqual([...[0, 'github: signed by alice, counter 3\ngithub: as pinned\n']]);
    const bad = { gateway, offers, signatures: envelopeOf(statementOf('x'), [alice]) };
    const { code, out } = await run('verify', bad);
    expect([code, out]).toEqual([
      1,
      'github: the lock file is not what was signed: it was changed after its signatures were made\ngithub: as pinned\n',
    ]);
    const json = await run('verify --json', { gateway, offers });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out).upstreams[0].signatures).toEqual({
      ...{ ok: false, why: 'is not signed: github.lock.sig.json does not exist' },
    });
    const sarif = await run('verify --format sarif', { gateway, offers });
    expect(JSON.parse(sarif.out).runs[0].results).toEqual([
      expect.objectContaining({ ruleId: 'signature', level: 'error' }),
    ]);
    expect((await run('diff', { gateway, offers })).code).toBe(0);
  });
});

describe('[L-97] pin diff and pin verify of an upstream that is trusted on first use', () => {
  const gateway = GOOD.replace('issuers: [corp]', 'issuers: [corp]\n    pinning: {mode: trust-on-first-use}');
  const [TRUSTED, LATER] = [toolOf('list_issues'), toolOf('create_issue')];
  const at = '2026-11-20T10:00:00.000Z';
  const firstUse = writeLock({
    ...lockOf([
      // The lock file decides about this name.
      ...[pinOf(NEW), pinOf(TRUSTED)].map((pin) => {
        return { ...pin, approval: { by: 'trust-on-first-use', at } };
      }),
    ]),
  });
  const AS_TRUSTED = offersOf([OLD, TRUSTED]);

  it('list apart what was trusted, which is no drift', async () => {
    const given = { gateway, firstUse, offers: AS_TRUSTED };
    const { code, out } = await run('verify', given);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^github tool list_issues: trusted on first use on 2026-11-20T10:00:00\.000Z, not reviewed \(sha256:[0-9a-f]{64}\)$/m,
    );
    expect(out).toContain('github: no drift, 1 not reviewed (trust on first use)');
    expect(out).not.toContain('get_issue');
    const shown = await run('diff --details', given);
    expect(shown.out).toContain('+ description: Reads one issue.');
    expect(shown.err).toContain('pin fetch');
    const [upstream]: Report = JSON.parse((await run('verify --json', given)).out).upstreams;
    expect([upstream.differences, upstream.firstUse]).toMatchObject([
      [],
      [{ kind: 'tool', name: 'list_issues', at, isRecorded: true }],
    ]);
    const [result]: Report = JSON.parse((await run('verify --format sarif', given)).out).runs[0].results;
    expect(result).toMatchObject({ ruleId: 'first-use', level: 'note' });
  });

  it('fail on what was added or changed after the first use', async () => {
    for (const offers of [
      offersOf([OLD, TRUSTED, LATER]),
      offersOf([OLD, toolOf('list_issues', { description: 'Lists all.' })]),
    ]) {
      const { code, out } = await run('verify', { gateway, firstUse, offers });
      expect(code).toBe(1);
      expect(out).toMatch(/tool (?:create_issue: new-tool|list_issues: description)/);
      expect(out).toContain('github: 1 not reviewed (trust on first use)');
    }
  });

  it('say so where what was trusted is not known here, and cannot tell it from what came later', async () => {
    const { code, out, err } = await run('verify', { gateway, offers: AS_TRUSTED });
    expect(code).toBe(0);
    expect(err).toContain('there is no github.first-use.yaml beside the lock files');
    expect(out).toContain('not in the lock file; trusted if it was in the first listing of the gateway');
    const changed = offersOf([NEW, TRUSTED]);
    expect((await run('verify', { gateway, offers: changed })).code).toBe(1);
  });

  it('cannot check where the record is damaged, or of another upstream', async () => {
    for (const damaged of ['{', firstUse.replace('upstream: github', 'upstream: gitlab')]) {
      const { code, err } = await run('verify', { gateway, firstUse: damaged, offers: AS_TRUSTED });
      expect(code).toBe(2);
      expect(err).toContain('github.first-use.yaml cannot be read as the record');
    }
  });
});
