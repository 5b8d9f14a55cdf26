// The table of controls as the files alone would have it: everything that is reached answers, and nothing has happened
// yet. It says what is off or weakened by choice, and nothing of what runs. docs/reference/risks.md.

import type { Diagnostic } from '../config/diagnostics.js';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import { createDefinitionCompiler } from '../pins/catalog.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import { approvalRules } from '../policy/rules.js';
import { mirroredParameters } from '../protocol/headers.js';
import { ALONE } from '../state/memory.js';
import { type ControlRow, createControls, refreshControls } from '../telemetry/controls.js';
import type { Version } from './config-version.js';
import { createVersionReader } from './version-reader.js';

export type ConfiguredControls = {
  /** `undefined` if a diagnostic is an error. */
  readonly controls: readonly ControlRow[] | undefined;
  readonly diagnostics: readonly Diagnostic[];
};

/** Reads the files, without any secret, and evaluates the controls. Opens nothing. */
export async function readConfiguredControls(file: string, now: () => number): Promise<ConfiguredControls> {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const reader = createVersionReader(file, { env: {}, compile, secrets: 'leave-out' });
  try {
    const { version, diagnostics } = await reader.read();
    return { controls: version && controlsOf(version, now), diagnostics };
  } finally {
    await reader.close();
  }
}

const ARMED = { state: 'armed', detail: '' } as const;
const NO_CREDENTIAL = { state: 'off', detail: 'credentials: none' } as const;

function runtimeOf(settings: UpstreamSettings) {
  return {
    settings,
    presenter: { states: () => [settings.credentials.type === 'none' ? NO_CREDENTIAL : ARMED] },
    firstUse: { describe: () => 'what is offered first is trusted' },
    observed: () => ({}),
    isFresh: () => true,
    isUp: () => true,
    listingNotes: () => [],
  };
}

function storeOf({ state }: Settings) {
  return state.type === 'memory' ? ALONE : ({ state: 'armed', reason: '', isUnreachable: false } as const);
}

function controlsOf({ settings, policies }: Version, now: () => number): readonly ControlRow[] {
  const emit = () => undefined;
  const controls = createControls({ now, emit });
  const runtimes = new Map([...settings.upstreams].map(([name, upstream]) => [name, runtimeOf(upstream)]));
  refreshControls(controls, emit, {
    settings,
    nowMs: now(),
    identity: {
      issuers: settings.issuers,
      statuses: () => new Map([...settings.issuers.keys()].map((name) => [name, { state: 'armed' }])),
      hidesPersons: () => false,
    },
    runtimes: { get: (name) => runtimes.get(name), all: () => runtimes.values() },
    aggregates: { countHidden: () => 0 },
    auditError: undefined,
    auditSpace: new Map(),
    deliveries: settings.audit.deliveries.map(({ name, plaintext }) => ({
      ...{ name, from: 'the start', isPlain: plaintext === 'accepted' },
      ...{ error: undefined, waitingBytes: 0, waitingSinceMs: undefined, refused: undefined },
      ...{ behindSinceMs: undefined, takenAtMs: undefined },
    })),
    describePins: () => [],
    reloadError: undefined,
    unsettled: [],
    fixed: '',
    store: storeOf(settings),
    unsigned: new Set(),
    counterError: undefined,
    shadow: policies.shadow,
    blocks: [],
    tracingError: undefined,
    listenerErrors: [],
    budgets: policies.budgets,
    approvals: approvalRules(policies),
  });
  return controls.snapshot();
}
