// The rules of the tree, read from its imports: who may know whom, what touches the outside, where the
// branded types are made, and what a file may be called.

import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HOME, navigationProblems, readNavigation } from '../docs/site/navigation.mjs';
import { CONCEPTS, findSecondHomes } from '../scripts/concepts.mjs';
import {
  listFiles,
  type Module,
  readImports,
  readModules,
  resolveImport,
  stripComments,
} from './support/source-tree.js';

const ROOT = join(import.meta.dirname, '..', 'src');
const MIN_MODULES = 50;

/** What each folder may import directly; what it may know, its importers may know too. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  text: [],
  protocol: ['text'],
  policy: ['protocol'],
  pins: ['policy'],
  auth: ['policy'],
  http: ['policy'],
  audit: ['policy'],
  state: ['policy'],
  config: ['policy'],
  inspection: ['pins'],
  work: ['inspection'],
  upstream: ['work', 'state'],
  proxy: ['inspection'],
  telemetry: ['audit', 'config', 'http', 'state'],
  approvals: ['auth', 'http', 'upstream'],
  delivery: ['audit', 'upstream'],
  admin: ['telemetry', 'approvals'],
  stdio: ['http'],
  cli: ['config', 'audit', 'auth', 'delivery', 'stdio', 'upstream'],
  dev: ['http', 'upstream'],
};

/** Where the parts are put together: these may import everything but the development parts. */
const COMPOSITION: ReadonlySet<string> = new Set(['main.ts', 'process.ts', 'gateway']);

/** The vocabulary of settings is types that every layer with a setting reads. */
const SHARED_TYPES: ReadonlySet<string> = new Set(['config/settings.ts']);
/** How a table is bounded and a use is counted: plain structures that import nothing, which every layer may use. */
const STRUCTURES: ReadonlySet<string> = new Set(['state/bounds.ts']);
const PURE: readonly string[] = ['text', 'protocol', 'policy', 'inspection'];
const PURE_PACKAGES: ReadonlySet<string> = new Set([
  '@bufbuild/cel',
  '@bufbuild/protobuf',
  'ajv',
  'canonicalize',
  'ipaddr.js',
  're2js',
  'tr46',
  'yaml',
]);
/**
 * What one module of a pure layer uses of the runtime: digests, a comparison of values, and a channel on which the tests
 * hear of two inspections that disagree, which changes no outcome.
 */
const PURE_FUNCTIONS: ReadonlySet<string> = new Set([
  'inspection/redaction-marks.ts -> node:crypto',
  'inspection/responses.ts -> node:diagnostics_channel',
  'policy/json-schema/defaults.ts -> node:util',
  'policy/rule-text.ts -> node:crypto',
]);
/** Who may load the development issuer and the demo: never the path of `serve`. */
const DEV_IMPORTERS: ReadonlySet<string> = new Set([
  'process.ts',
  'cli/demo.ts',
  'cli/dev.ts',
  'cli/dev-issuer.ts',
  'cli/dev-save.ts',
  'cli/dev-target.ts',
]);

const BRANDS: readonly (readonly [string, RegExp, string])[] = [
  ['Principal', /\bas (?:unknown as )?Principal\b/, 'auth/principal.ts'],
  ['Allow', /\bas (?:unknown as )?Allow\b/, 'policy/decide.ts'],
  ['AuthorizedRequest', /\bas (?:unknown as )?AuthorizedRequest\b/, 'policy/obligations.ts'],
  ['AdmittedMessage', /\bas (?:unknown as )?AdmittedMessage\b/, 'protocol/admission.ts'],
];

/** Where revisions may be told apart: the families themselves, and what translates between them. */
const ERA_FOLDERS = ['protocol/versions/', 'upstream/adapters/'];
/** Names an era or a revision, or compares one: with a literal, with another, or by identity of its family. */
const ERA_COMPARISONS: readonly RegExp[] = [
  /(['"])20\d\d(?:-\d\d-\d\d)?\1/g,
  /\b[eE]ra\b\s*[!=]==(?!\s*undefined)/g,
  /[!=]==\s*(?:[\w.?]+\.)?[eE]ra\b/g,
  /[!=]==\s*(?:\w+_)?(?:SESSION|STATELESS|LEGACY_SSE)(?:_VERSION)?\b/g,
  /\bprotocolVersion(?:'\])?\s*[!=]==(?!\s*(?:undefined|'string'))/g,
  /\bisStateless\b/g,
];
type Exceptions = Readonly<Record<string, { readonly count: number; readonly why: string }>>;
/** How often a file outside them does so nevertheless, and why. A file that is not here never does. */
const ERA_EXCEPTIONS: Exceptions = {
  'protocol/methods.ts': { count: 18, why: 'the table of methods has a column of eras' },
  'dev/demo-protocol.ts': { count: 25, why: 'the demo is a server of both eras' },
  'dev/scripted-server.ts': { count: 4, why: 'the demo is a server of both eras' },
};

/** Asks how an upstream is reached: by its transport, or by the way that a session takes. */
const WAY_COMPARISONS: readonly RegExp[] = [
  /(['"])(?:http-sse|streamable-http)\1/g,
  /\b(?:target|openedSession)\.kind\b\s*[!=]==\s*'(?:upstream|gateway|legacy-sse|bridged)'/g,
  /\.isDirect\b/g,
];
/** The same for the ways to an upstream. */
const WAY_EXCEPTIONS: Exceptions = {
  'cli/servers/server-options.ts': { count: 2, why: 'the option `--transport`' },
  'config/schema/upstream.ts': { count: 3, why: 'the key `transport`' },
  'gateway/ports.ts': {
    count: 1,
    why: 'a reply in a session of the gateway itself is claimed elsewhere',
  },
  'gateway/snapshot.ts': { count: 1, why: 'says so in `legacySse.isDirect`' },
  'upstream/connection.ts': { count: 2, why: 'opens the connections of a transport' },
  'upstream/runtimes.ts': { count: 1, why: 'creates the adapters' },
  'proxy/features/table.ts': { count: 2, why: 'the two features of legacy SSE' },
  'proxy/features/task-requests.ts': { count: 1, why: 'a server of legacy SSE has no tasks' },
  'proxy/legacy-sse/stream.ts': { count: 1, why: 'opens the stream of the upstream, or a bridge' },
  'proxy/response-filter.ts': { count: 1, why: 'checks the id that an upstream issued' },
  'proxy/stages.ts': { count: 1, why: 'a server of legacy SSE gets no elicitation' },
  'upstream/client.ts': { count: 2, why: 'the id or the path by which a server knows a session' },
};

/** What a barrel has none of. */
const OWN_EXPORT = /\bexport\s+(?:async\s+)?(?:function|const|class|interface|type\s+\w+\s*[=<])/;

/** Names that say nothing. */
const FORBIDDEN_TERMS = ['util', 'utils', 'helper', 'helpers', 'common', 'misc'];

const modules = readModules(ROOT);
const byPath: ReadonlyMap<string, Module> = new Map(modules.map((module) => [module.path, module]));

function reach(layer: string): ReadonlySet<string> {
  const reached = new Set<string>([layer]);
  for (const known of reached) for (const next of MAY_IMPORT[known] ?? []) reached.add(next);
  return reached;
}

type Edge = { from: string; to: string; isTypeOnly: boolean };

const edges: readonly Edge[] = modules.flatMap((module) =>
  module.imports.flatMap((imported) => {
    const to = resolveImport(module.path, imported.specifier);
    return to === undefined ? [] : [{ from: module.path, to, isTypeOnly: imported.isTypeOnly }];
  }),
);

function layerOf(path: string): string {
  return path.split('/')[0] ?? path;
}

function isLayerViolation(edge: Edge): boolean {
  const from = layerOf(edge.from);
  if (COMPOSITION.has(from) || DEV_IMPORTERS.has(edge.from)) return false;
  if (STRUCTURES.has(edge.to)) return false;
  if (edge.isTypeOnly && SHARED_TYPES.has(edge.to)) return ['text', 'protocol', 'policy'].includes(from);
  return !reach(from).has(layerOf(edge.to));
}

/** The first cycle among imports, those of types included, as a path of modules. */
function findCycle(): readonly string[] | undefined {
  const done = new Set<string>();
  const trail: string[] = [];
  function visit(path: string): readonly string[] | undefined {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return undefined;
    trail.push(path);
    for (const edge of edges) {
      if (edge.from !== path) continue;
      const cycle = visit(edge.to);
      if (cycle !== undefined) return cycle;
    }
    trail.pop();
    done.add(path);
    return undefined;
  }
  for (const module of modules) {
    const cycle = visit(module.path);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

describe('the reader of imports', () => {
  it('[D-10] sees static, type-only, bare, dynamic and re-exported modules, and no comments', () => {
    const text = [
      "import { a, type B } from './one.js';",
      "import type { C } from './two.js';",
      "import { type D } from './three.js';",
      "import './four.js';",
      "const five = await import('./five.js');",
      "export { six } from './six.js';",
      "// import { seven } from './seven.js';",
      '/* import eight from "./eight.js"; */',
    ].join('\n');
    const found = readImports(text).map((one) => [one.specifier, one.isTypeOnly, one.isReExport]);
    expect(found).toEqual([
      ['./one.js', false, false],
      ['./two.js', true, false],
      ['./three.js', true, false],
      ['./six.js', false, true],
      ['./four.js', false, false],
      ['./five.js', false, false],
    ]);
  });

  it('[D-10] empties strings and regular expressions, so that only code is judged', () => {
    const code = stripComments("const a = 'process.env'; const b = /process\\//; // process", false);
    expect(code).not.toContain('process');
  });
});

describe('the tree', () => {
  it(`[D-10] was seen: more than ${MIN_MODULES} modules, all of whose imports exist`, () => {
    expect(modules.length).toBeGreaterThan(MIN_MODULES);
    expect(edges.length).toBeGreaterThan(MIN_MODULES);
    const lost = edges.filter((edge) => !byPath.has(edge.to));
    expect(lost.map((edge) => `${edge.from} -> ${edge.to}`)).toEqual([]);
  });

  it('[D-10] has only known layers', () => {
    const known = new Set([...Object.keys(MAY_IMPORT), ...COMPOSITION]);
    const strange = modules.filter((module) => !known.has(module.layer));
    expect(strange.map((module) => module.path)).toEqual([]);
  });

  it('[D-10] imports along the layers', () => {
    const violations = edges.filter(isLayerViolation);
    expect(violations.map((edge) => `${edge.from} -> ${edge.to}`)).toEqual([]);
  });

  it('[D-10] has structures for all layers that import nothing', () => {
    const imports = [...STRUCTURES].map((path) => byPath.get(path)?.imports);
    expect(imports).toEqual([...STRUCTURES].map(() => []));
  });

  it('[D-10] keeps I/O out of the pure layers', () => {
    const violations = modules
      .filter((module) => PURE.includes(module.layer))
      .flatMap((module) =>
        module.imports
          .map((imported) => imported.specifier)
          .filter((name) => !name.startsWith('.') && !isPurePackage(name))
          .map((name) => `${module.path} -> ${name}`),
      )
      .filter((violation) => !PURE_FUNCTIONS.has(violation));
    expect(violations).toEqual([]);
  });

  it('[D-10] loads the development parts from the command alone', () => {
    const violations = edges.filter(
      (edge) => layerOf(edge.to) === 'dev' && layerOf(edge.from) !== 'dev' && !DEV_IMPORTERS.has(edge.from),
    );
    expect(violations.map((edge) => `${edge.from} -> ${edge.to}`)).toEqual([]);
  });

  // All that `serve` loads: the entry and the process, and what they and its command import at any time.
  it('[D-10] [A-68] loads nothing of the development parts for serve', () => {
    const others = ['cli/demo.ts', 'cli/dev.ts', 'cli/dev-issuer.ts', 'cli/dev-save.ts', 'cli/dev-target.ts'];
    const entries = ['main.ts', 'cli/serve.ts', 'gateway/gateway.ts', 'telemetry/log.ts'];
    const loaded = new Set(entries);
    // The process imports each command when it is asked for.
    for (const path of loaded)
      for (const { from, to, isTypeOnly } of edges)
        if (from === path && !isTypeOnly && from !== 'process.ts') loaded.add(to);
    expect(loaded.size).toBeGreaterThan(MIN_MODULES);
    const development = [...loaded].filter((path) => layerOf(path) === 'dev' || others.includes(path));
    expect(development).toEqual([]);
  });

  it('[D-10] has no cycle', () => {
    expect(findCycle()).toBeUndefined();
  });
});

function isPurePackage(name: string): boolean {
  const parts = name.split('/');
  const base = name.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? name);
  return PURE_PACKAGES.has(base);
}

describe('each module', () => {
  function offenders(isViolation: (module: Module) => boolean): string[] {
    return modules.filter(isViolation).map((module) => module.path);
  }

  it('[D-10] leaves the process to two files', () => {
    const touches = /\bprocess\s*[.[]/;
    const imports = (module: Module) =>
      module.imports.some((one) => ['node:process', 'process'].includes(one.specifier));
    const found = offenders((module) => touches.test(module.code) || imports(module));
    expect(found).toEqual(['main.ts', 'process.ts']);
  });

  it('[D-10] has no default export and no barrel', () => {
    expect(offenders((module) => /\bexport\s+default\b/.test(module.code))).toEqual([]);
    const barrels = offenders(
      (module) =>
        module.path.endsWith('index.ts') ||
        (module.imports.some((imported) => imported.isReExport) && !OWN_EXPORT.test(module.code)),
    );
    expect(barrels).toEqual([]);
  });

  it.each(BRANDS)('[D-10] makes %s in one place', (_name, cast, home) => {
    const found = offenders((module) => cast.test(module.code));
    expect(found.filter((path) => path !== home)).toEqual([]);
    expect(found).toContain(home);
  });

  it('[D-10] supposes a principal only for commands that send nothing, and for what is shown of a decision', () => {
    const found = offenders((module) => /\bsupposePrincipal\b/.test(module.code));
    const others = found.filter((path) => !path.startsWith('cli/policy/'));
    const explanation = 'admin/decision-explanation.ts';
    const port = 'audit/recorded.ts';
    expect(others).toEqual([explanation, port, 'auth/principal.ts', 'process.ts']);
    // Rules are explained there; nothing is decided, and nothing that sends is known.
    const known = modules.find(({ path }) => path === explanation);
    expect(known?.code).not.toMatch(/\b(?:decide|decideRequest|authorize|verdictOf)\b/);
    const sending = known?.imports.filter(({ specifier }) => /\/(?:proxy|upstream)\//.test(specifier));
    expect(sending).toEqual([]);
  });

  const countIn = (patterns: readonly RegExp[], text: string) =>
    patterns.reduce((sum, pattern) => sum + [...text.matchAll(pattern)].length, 0);

  function countsOutside(folders: readonly string[], patterns: readonly RegExp[]) {
    const found = modules
      .filter(({ path }) => !folders.some((folder) => path.startsWith(folder)))
      .map(({ path, text }) => [path, countIn(patterns, stripComments(text, true))] as const);
    return Object.fromEntries(found.filter(([, count]) => count > 0));
  }

  function countsOf(exceptions: Exceptions) {
    return Object.fromEntries(Object.entries(exceptions).map(([path, { count }]) => [path, count]));
  }

  it.each([
    "if (admitted.era === '2026') x();",
    "era !== '2025'",
    'if (one.era === other.era) x();',
    'protocol === STATELESS',
    'version !== LEGACY_SSE_VERSION',
    "version >= '2025-06-18'",
  ])('[D-10] knows a comparison of eras or revisions: %s', (sample) => {
    expect(countIn(ERA_COMPARISONS, sample)).toBeGreaterThan(0);
  });

  it('[D-10] compares no era and no revision outside the folders that exist for that', () => {
    expect(countsOutside(ERA_FOLDERS, ERA_COMPARISONS)).toEqual(countsOf(ERA_EXCEPTIONS));
  });

  it('[D-10] asks how an upstream is reached only where that is chosen', () => {
    const found = countsOutside(['upstream/adapters/'], WAY_COMPARISONS);
    expect(found).toEqual(countsOf(WAY_EXCEPTIONS));
  });

  it("[D-10] [CRD-05] opens a caller's token in the token exchange alone", () => {
    const found = offenders((module) => /\bopenToken\b/.test(module.code));
    expect(found).toEqual(['policy/principal.ts', 'upstream/credentials/credentials.ts']);
  });

  it('[D-10] calls each error by the name of its class', () => {
    const named = /\bclass (\w+) extends Error \{\s*override readonly name = '(\w+)'/g;
    const classes = modules.flatMap(({ text }) =>
      [...text.matchAll(named)].map(([, className, name]) => [className, name]),
    );
    expect(classes).not.toEqual([]);
    expect(classes.filter(([className, name]) => className !== name)).toEqual([]);
  });

  it('[D-10] leaves to the access lease to verify a caller again, and to hold what was allowed', () => {
    const verify = offenders((module) => /\bidentity\.authenticate\(/.test(module.code));
    expect(verify).toEqual([
      'proxy/access-lease.ts',
      'proxy/aggregate/backend-requests.ts',
      'proxy/aggregate/pipeline.ts',
      'proxy/stages.ts',
    ]);
    const register = offenders((module) => /\bleases\.register\(/.test(module.code));
    expect(register).toEqual(['proxy/access-lease.ts']);
  });

  // An accessor gives each object that has it a hidden class of its own, which outlives the request: one of them in
  // the check of a response made a call about a sixth dearer (docs/reference/performance.md).
  it('[D-10] makes no accessor on the objects of a request', () => {
    const isOfRequest = (module: Module) => /^proxy\/[^/]+\.ts$/.test(module.path);
    expect(modules.filter(isOfRequest).length).toBeGreaterThan(10);
    const hasAccessor = (module: Module) => /^\s+[gs]et #?\w+\(/m.test(module.code);
    expect(offenders((module) => isOfRequest(module) && hasAccessor(module))).toEqual([]);
    expect(offenders(hasAccessor).length).toBeGreaterThan(0);
  });

  // What ajv keeps in order to optimize its code uses up the hidden classes of plain objects, for the whole process.
  it('[D-10] lets no schema compiler optimize its code', () => {
    const compilers = modules.filter(({ code }) => /\bnew Ajv/.test(code));
    expect(compilers.map(({ path }) => path)).toEqual(['config/schema/validation.ts']);
    expect(compilers.filter(({ code }) => !/\boptimize: false\b/.test(code))).toEqual([]);
  });

  it('[D-10] opens with a comment that says what it decides', () => {
    const opening = (text: string) => text.replace(/^#!.*\n/, '');
    expect(offenders((module) => !opening(module.text).trimStart().startsWith('// '))).toEqual([]);
  });

  it('[D-10] is named by a kebab-case noun without empty words', () => {
    const name = (module: Module) => (module.path.split('/').at(-1) ?? '').replace(/\.ts$/, '');
    expect(offenders((module) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name(module)))).toEqual([]);
    const empty = offenders((module) =>
      name(module)
        .split('-')
        .some((word) => FORBIDDEN_TERMS.includes(word)),
    );
    expect(empty).toEqual([]);
  });
});

describe('the concepts', () => {
  const homes = CONCEPTS.flatMap(({ home }) => home.map((one) => (one.endsWith('/') ? `${one}a.ts` : one)));
  const empty = homes.map((path) => ({ path, text: '' }));

  it('[D-10] have one home each, which exists', () => {
    const read = modules.map(({ path, text }) => ({ path: `src/${path}`, text }));
    expect(findSecondHomes(read)).toEqual([]);
    expect(findSecondHomes([])).toHaveLength(CONCEPTS.flatMap(({ home }) => home).length);
  });

  it.each([
    ["import { createServer } from 'node:http';\ncreateServer();", 'HTTP servers'],
    ["import { request } from 'undici';", 'HTTP clients'],
    ["import { parse } from 'yaml';", 'YAML'],
    ['const one = createCipheriv(name, key, nonce);', 'sealed values'],
    ['type Part = { readonly start: number; readonly end: number };', 'part of a text'],
  ])('[D-10] are missed in a second place: %s', (text, concept) => {
    const found = findSecondHomes([...empty, { path: 'src/proxy/second.ts', text }]);
    expect(found).toEqual([expect.stringContaining(`${concept}: src/proxy/second.ts`)]);
  });
});

describe('the tests through the public surface', () => {
  const files = ['integration', 'attacks'].flatMap((folder) =>
    listFiles(join(import.meta.dirname, folder), '.ts').map((name) => join(import.meta.dirname, folder, name)),
  );

  // What they need of the inside, such as how to start a gateway, test/support has.
  it('[D-10] know neither the source nor the tests of its parts', () => {
    expect(files.length).toBeGreaterThan(0);
    const knowing = files.filter((file) => /['"](?:\.\.\/)+(?:src|unit)\//.test(readFileSync(file, 'utf8')));
    expect(knowing).toEqual([]);
  });
});

/** The pages of docs/, without the program that builds their site. */
function docPages(root: string): string[] {
  const files = listFiles(join(root, 'docs'), '.md').filter((file) => !file.startsWith('site/'));
  return files.map((file) => `docs/${file}`);
}

describe('the documentation', () => {
  it('[GU-10] has every page in its navigation', () => {
    const root = join(ROOT, '..');
    const sections = readNavigation(readFileSync(join(root, HOME), 'utf8'));
    expect(navigationProblems(sections, docPages(root))).toEqual([]);
  });
});

describe('the package', () => {
  /** Names that npm packs always. */
  const ALWAYS = ['README.md', 'LICENSE', 'package.json'];
  const { files } = JSON.parse(readFileSync(join(ROOT, '../package.json'), 'utf8')) as { files: readonly string[] };
  const packed = [...ALWAYS, ...files];
  const isPacked = (path: string) => packed.some((one) => path === one || path.startsWith(`${one}/`));
  const toolFolders = ['src/', 'test/', 'conformance/'];

  it('[D-10] has what its pages link to, but for the source and its tests', () => {
    const root = join(ROOT, '..');
    const pages = packed.flatMap((name) => {
      if (name.endsWith('.md')) return [name];
      return name === 'docs' ? docPages(root) : [];
    });
    expect(pages.length).toBeGreaterThan(50);
    const lost = pages.flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)#\s:]+)[^):]*\)/g)]
        .map(([, link = '']) => relative(root, join(root, dirname(page), link)))
        .filter((to) => !isPacked(to) && !toolFolders.some((folder) => to.startsWith(folder)))
        .map((to) => `${page}: ${to}`),
    );
    expect(lost).toEqual([]);
  });
});
