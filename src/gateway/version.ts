// One version of what is configured: settings, policies and lock files, read together and taken
// together. Whole or not at all: with one error there is no version, and the running one stays.

import type { Fault } from '../config/fault.js';
import { hasErrors } from '../config/fault.js';
import { DISK_FILES } from '../config/files.js';
import { loadGateway } from '../config/load.js';
import { loadPolicies } from '../config/policies.js';
import type { Settings } from '../config/settings.js';
import { createCatalogue } from '../pins/catalogue.js';
import type { CompileDefinition } from '../pins/definition-compiler.js';
import type { Lock } from '../pins/lock.js';
import { loadLocks } from '../pins/lock-folder.js';
import { compilePolicies } from '../policy/compile.js';
import type { PolicyDocument } from '../policy/document.js';
import type { PolicySet } from '../policy/question.js';

/** A version that may be used: nothing in it is invalid. */
export type Version = {
  readonly settings: Settings;
  readonly policies: PolicySet;
  readonly locks: ReadonlyMap<string, Lock>;
  readonly hashes: { readonly config: string; readonly policy: string; readonly pins: string };
};

export type VersionReading = {
  readonly version: Version | undefined;
  readonly faults: readonly Fault[];
};

type Sources = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly compile: CompileDefinition;
};

/** Reads the gateway file and everything that it names. All mistakes of all files come in one run. */
export async function loadVersion(file: string, sources: Sources): Promise<VersionReading> {
  const gateway = loadGateway(file, { readFile: DISK_FILES.readFile, env: sources.env });
  const { settings } = gateway;
  if (settings === undefined) return { version: undefined, faults: gateway.faults };
  const folder = await loadLocks(settings.pinsDir, {
    readFile: DISK_FILES.readFile,
    readDir: DISK_FILES.listFolder,
  });
  const compile = (documents: readonly PolicyDocument[], hash: string) =>
    compilePolicies(documents, contextOf(settings, folder.locks, hash, sources.compile));
  const policies = loadPolicies(settings.policiesDir, { files: DISK_FILES, compile });
  const faults = [...gateway.faults, ...policies.faults, ...folder.faults];
  if (policies.policies === undefined || hasErrors(faults)) return { version: undefined, faults };
  const hashes = { config: settings.hash, policy: policies.hash, pins: folder.hash };
  return {
    version: { settings, policies: policies.policies, locks: folder.locks, hashes },
    faults,
  };
}

function contextOf(
  settings: Settings,
  locks: ReadonlyMap<string, Lock>,
  hash: string,
  compile: CompileDefinition,
): Parameters<typeof compilePolicies>[1] {
  const upstreams = [...settings.upstreams.values()];
  return {
    hash,
    upstreams: upstreams.map(({ name, issuers, pinning }) => ({
      name,
      issuers,
      strict: pinning.mode === 'strict',
    })),
    profiles: [...settings.profiles.keys()],
    issuers: [...settings.issuers.keys()],
    pins: (upstream) => {
      const lock = locks.get(upstream);
      if (lock === undefined) return undefined;
      return createCatalogue({
        upstream,
        lock,
        observed: undefined,
        mode: 'strict',
        onDrift: 'hide-tool',
        compile,
      });
    },
  };
}
