// How long that runs which a test starts: as long as one test, or as long as all tests of a file or a `describe`. It is
// closed in either case, whatever happens meanwhile.

import { afterAll, beforeAll, onTestFinished } from 'vitest';
import {
  type AttackRig,
  type GatewayUnderTest,
  type RigOptions,
  type RunningGateway,
  startRig,
  startTestGateway,
} from './gateway.js';

type Closable = { close(): unknown };
type Start<T> = () => Promise<T>;
type Run<T, R> = (started: T) => R | Promise<R>;
/** Alone in front of the upstreams that it names, or with a hostile upstream of its own. */
type Config = GatewayUnderTest | RigOptions;

/** Starts it for `run`, and closes it also if that throws. */
export async function withStarted<T extends Closable, R>(start: Start<T>, run: Run<T, R>): Promise<R> {
  const started = await start();
  try {
    return await run(started);
  } finally {
    await started.close();
  }
}

/** A server that the current test needs, closed when the test has finished. */
export async function untilTestEnds<T extends Closable>(starting: Promise<T>): Promise<T> {
  const started = await starting;
  onTestFinished(async () => {
    await started.close();
  });
  return started;
}

/**
 * Starts it before the first test of the file or `describe` that calls this, and closes it after the last. What is
 * returned stands for it: hooks and tests may use it, and what is started later.
 */
export function shared<T extends Closable>(start: Start<T>): T {
  let started: T | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(async () => {
    await started?.close();
    started = undefined;
  });
  const current = (): T & object => {
    if (started === undefined) throw new Error('it does not run yet: hooks and tests may use it');
    return started;
  };
  return new Proxy({} as T & object, {
    get: (_, member) => Reflect.get(current(), member),
    set: (_, member, value) => Reflect.set(current(), member, value),
    has: (_, member) => Reflect.has(current(), member),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor(_, member) {
      const own = Reflect.getOwnPropertyDescriptor(current(), member);
      return own && { ...own, configurable: true };
    },
  });
}

function start(config: Config): Promise<Closable> {
  return 'upstreams' in config ? startTestGateway(config) : startRig(config);
}

/** Runs a test with a gateway of its own. */
export function withGateway<R>(config: GatewayUnderTest, run: Run<RunningGateway, R>): Promise<R>;
export function withGateway<R>(config: RigOptions, run: Run<AttackRig, R>): Promise<R>;
export function withGateway<R>(config: Config, run: (started: never) => R | Promise<R>): Promise<R> {
  return withStarted(() => start(config), run as Run<Closable, R>);
}

/** One gateway for all tests of the file or `describe` that calls this. A config of what runs by then is a function. */
export function sharedGateway(config: () => GatewayUnderTest | Promise<GatewayUnderTest>): RunningGateway;
export function sharedGateway(config?: RigOptions | (() => RigOptions | Promise<RigOptions>)): AttackRig;
export function sharedGateway(config: Config | (() => Config | Promise<Config>) = {}): Closable {
  return shared(async () => start(typeof config === 'function' ? await config() : config));
}
