// Parts of a gateway that a test slows, bounds, breaks or replaces, by the module that has them: the one place that knows
// these modules. It is a setup file of the tests that run alone (vitest.config.ts), since a module is replaced before it
// is loaded. Whatever no test replaces is as it is in the program.

import { vi } from 'vitest';

type Modules = {
  readonly worker: typeof import('../../src/work/worker.js');
  readonly drift: typeof import('../../src/pins/drift-report.js');
  readonly versions: typeof import('../../src/gateway/config-version.js');
  readonly server: typeof import('../../src/http/data-server.js');
  readonly memory: typeof import('../../src/state/memory.js');
  readonly revocations: typeof import('../../src/state/revocations.js');
  readonly aggregates: typeof import('../../src/state/aggregate-memory.js');
  readonly redis: typeof import('../../src/state/redis.js');
  readonly sanitizer: typeof import('../../src/inspection/message-sanitizer.js');
  readonly prefilter: typeof import('../../src/inspection/prefilter/prefilter.js');
  readonly requests: typeof import('../../src/inspection/requests.js');
  readonly filters: typeof import('../../src/inspection/result-filters.js');
};

// biome-ignore lint/suspicious/noExplicitAny: the parameters of any function
type AnyFunction = (...given: any[]) => unknown;

/** Functions in place of those of a module; each gets the module as it is, and what it is called with. */
type Replacements<M> = {
  [Name in keyof M]?: M[Name] extends AnyFunction
    ? (real: M, ...given: Parameters<M[Name]>) => ReturnType<M[Name]>
    : never;
};

// The file is loaded once as setup and once by the test.
const known = globalThis as { replacements?: Record<string, Record<string, AnyFunction>>; sinkAheadMs?: number };
known.replacements ??= {};
const { replacements } = known;

/** From now on these functions are called in place of those of the module. */
export function replace<Name extends keyof Modules>(name: Name, functions: Replacements<Modules[Name]>): void {
  replacements[name] = functions as Record<string, AnyFunction>;
}

/** Sets the clock of the audit sinks forward. */
export function passTimeOfSinks(ms: number): void {
  known.sinkAheadMs = ms;
}

function replaceable(name: keyof Modules) {
  return async (load: () => Promise<object>): Promise<object> => {
    const real = await load();
    const wrap = (key: string, own: AnyFunction) =>
      function call(this: unknown, ...given: unknown[]): unknown {
        const other = replacements[name]?.[key];
        return other === undefined ? own.apply(this, given) : other(real, ...given);
      };
    const isClass = (value: AnyFunction): boolean => /^class\b/.test(Function.prototype.toString.call(value));
    return Object.fromEntries(
      Object.entries(real).map(([key, value]) => [
        key,
        typeof value === 'function' && !isClass(value) ? wrap(key, value) : value,
      ]),
    );
  };
}

vi.mock('../../src/work/worker.js', replaceable('worker'));
vi.mock('../../src/pins/drift-report.js', replaceable('drift'));
vi.mock('../../src/gateway/config-version.js', replaceable('versions'));
vi.mock('../../src/http/data-server.js', replaceable('server'));
vi.mock('../../src/state/memory.js', replaceable('memory'));
vi.mock('../../src/state/revocations.js', replaceable('revocations'));
vi.mock('../../src/state/aggregate-memory.js', replaceable('aggregates'));
vi.mock('../../src/state/redis.js', replaceable('redis'));
vi.mock('../../src/inspection/message-sanitizer.js', replaceable('sanitizer'));
vi.mock('../../src/inspection/prefilter/prefilter.js', replaceable('prefilter'));
vi.mock('../../src/inspection/requests.js', replaceable('requests'));
vi.mock('../../src/inspection/result-filters.js', replaceable('filters'));
vi.mock('../../src/audit/sink.js', async (load) => {
  const real = await load<typeof import('../../src/audit/sink.js')>();
  class AuditSink extends real.AuditSink {
    constructor(...[name, writer, ports]: ConstructorParameters<typeof real.AuditSink>) {
      super(name, writer, { ...ports, monotonicMs: () => ports.monotonicMs() + (known.sinkAheadMs ?? 0) });
    }
  }
  return { ...real, AuditSink };
});
