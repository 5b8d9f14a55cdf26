import { describe, expect, it } from 'vitest';
import type { PinPorts } from '../../../../src/cli/pin/lock-files.js';
import { pinCommand } from '../../../../src/cli/pin/pin-command.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { loadGateway } from '../../../../src/config/load.js';
import { checkUsable, schemaErrorsIn } from '../../../../src/gateway/config-version.js';
import { createDefinitionCompiler } from '../../../../src/pins/catalog.js';
import { type Lock, writeLock } from '../../../../src/pins/lock.js';
import { compileSchema } from '../../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../../src/protocol/headers.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { GOOD, KEY_HEX } from '../../config/reading.js';
import { lockOf, observedOf, pinOf, toolOf } from '../../pins/samples.js';
import { terminal } from '../console.js';

const FINE = toolOf('get_issue');
/** A reference to nothing. */
const DANGLING = toolOf('list_issues', {
  inputSchema: { type: 'object', properties: { id: { $ref: '#/$defs/nothing' } } },
});
const UNREADABLE = toolOf('add_issue', { annotations: { readOnlyHint: 'true' } });
const FOR_LATER_CLIENTS = toolOf('count_issues', { outputSchema: { type: 'array' } });
const LOCK = lockOf([FINE, DANGLING, UNREADABLE, FOR_LATER_CLIENTS].map((one) => pinOf(one)));

async function run(line: string, offered: readonly JsonObject[], lock = LOCK) {
  const io = terminal({ env: { KEY: KEY_HEX } });
  const files = new Map([
    ['/srv/config/gateway.yaml', GOOD],
    ['/srv/config/policies/pins/github.lock.yaml', writeLock(lock)],
  ]);
  const ports: PinPorts = {
    files: {
      readFile(path) {
        const text = files.get(path);
        if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
        return new TextEncoder().encode(text);
      },
      listFolder: () => [...files.keys()],
    },
    updateFile: async (_path, update) => {
      update();
      return undefined;
    },
    observe: async () => ({ kind: 'observed', observed: observedOf(offered) }),
    now: () => Date.UTC(2026, 10, 20),
  };
  const [word = '', ...rest] = line.split(' ');
  const code = await buildProgram(io, [pinCommand(io, ports)]).run([
    ...['pin', word, '-c', 'config/gateway.yaml'],
    ...rest,
  ]);
  return { code, out: io.out(), err: io.err() };
}

/** What validate and the start say of the approved definitions. */
function usableIn(outline: Parameters<typeof schemaErrorsIn>[0], locks: ReadonlyMap<string, Lock>) {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  return checkUsable('/srv/pins', outline, schemaErrorsIn(outline, locks, compile));
}

/** RE2 has no lookahead. */
const LOOKING_AHEAD = toolOf('tag_issue', {
  inputSchema: { type: 'object', properties: { tag: { type: 'string', pattern: '^(?!x)' } } },
  outputSchema: { type: 'object', properties: { id: { pattern: '(a)\\1' } } },
});

describe('[L-46] a pattern that is not checked', () => {
  const pending = lockOf([pinOf(FINE), pinOf(LOOKING_AHEAD, 'pending')]);
  const approved = lockOf([pinOf(FINE), pinOf(LOOKING_AHEAD)]);

  it.each([
    ['fetch --approve --by alex', pending],
    ['fetch', pending],
    ['approve github --all --by alex', pending],
    ['approve github tag_issue --by alex', pending],
    ['fetch', approved],
    ['verify', approved],
    ['diff', approved],
  ])('is printed with its place, and what that means: pin %s', async (line, lock) => {
    const { err } = await run(line, [FINE, LOOKING_AHEAD], lock);
    const what =
      'note: github tool tag_issue is checked but for one pattern, so that texts which do not match it pass the gateway: ';
    expect(err).toContain(`${what}inputSchema/properties/tag/pattern: "^(?!x)": in a pattern of the schema, `);
    expect(err).toContain(`${what}outputSchema/properties/id/pattern: "(a)\\\\1": `);
    expect(err).not.toContain('warning: github tool');
    expect(err).not.toContain('tool get_issue');
  });

  it('is a note of validate and of the start, however many there are', () => {
    const { outline } = loadGateway('/srv/config/gateway.yaml', {
      readFile: () => new TextEncoder().encode(GOOD),
      env: {},
      secrets: 'skip',
    });
    if (outline === undefined) throw new Error('the gateway file has mistakes');
    const many = Array.from({ length: 30 }, (_, at) => ({ ...LOOKING_AHEAD, name: `tag_${at}` }));
    const locks = new Map([['github', lockOf(many.map((one) => pinOf(one)))]]);
    const found = usableIn(outline, locks);
    expect(new Set(found.map(({ severity }) => severity))).toEqual(new Set(['note']));
    const withOne = new Map([['github', lockOf([...many, DANGLING].map((one) => pinOf(one)))]]);
    expect(usableIn(outline, withOne)[0]).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('list_issues'),
    });
  });
});

const ALL = [FINE, DANGLING, UNREADABLE, FOR_LATER_CLIENTS];

describe('[L-46] an approved definition that cannot be used', () => {
  it.each(['fetch --approve --by alex', 'verify', 'diff'])(
    'is named with the place and the error, and the others are not: pin %s',
    async (line) => {
      const { err } = await run(line, ALL);
      expect(err).toMatch(/^warning: github tool list_issues cannot be used, .*: inputSchema\/properties\/id\S*: \S/m);
      expect(err).toContain(
        'warning: github tool add_issue cannot be used, and is neither listed nor callable: annotations/readOnlyHint: expected boolean, got string\n',
      );
      expect(err).toMatch(/^warning: github tool count_issues is left out of lists .*: outputSchema/m);
      expect(err).not.toContain('tool get_issue');
    },
  );

  it('is in the JSON of pin fetch', async () => {
    const { out } = await run('fetch --json', ALL);
    const { schemaErrors } = JSON.parse(out).upstreams[0];
    expect(schemaErrors).toMatchObject([
      { name: 'add_issue', effect: 'unusable', pointer: '/annotations/readOnlyHint' },
      { name: 'count_issues', effect: 'sessions' },
      { name: 'list_issues', effect: 'unusable' },
    ]);
  });

  it('is a warning of validate and of the start', () => {
    const { outline } = loadGateway('/srv/config/gateway.yaml', {
      readFile: () => new TextEncoder().encode(GOOD),
      env: {},
      secrets: 'skip',
    });
    if (outline === undefined) throw new Error('the gateway file has mistakes');
    const found = usableIn(outline, new Map([['github', LOCK]]));
    expect(found.map(({ severity, message }) => `${severity} ${message}`).sort()).toEqual([
      expect.stringMatching(/^note .*github\/count_issues/),
      expect.stringMatching(/^warning .*github\/add_issue.* expected boolean, got string/),
      expect.stringMatching(/^warning .*github\/list_issues.* inputSchema\/properties\/id/),
    ]);
    expect(usableIn(outline, new Map([['github', lockOf([pinOf(FINE)])]]))).toEqual([]);
  });
});
