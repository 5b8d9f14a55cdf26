// One version of what is configured: settings, policies and lock files, read together and taken
// together. Whole or not at all: with one error there is no version, and the running one stays.

import { type Diagnostic, hasErrors } from '../config/fault.js';
import { DISK_FILES } from '../config/files.js';
import { loadGateway } from '../config/load.js';
import type { Outline } from '../config/outline.js';
import { loadPolicies } from '../config/policies.js';
import type { Settings } from '../config/settings.js';
import type { CompileDefinition } from '../pins/definition-compiler.js';
import type { Lock } from '../pins/lock.js';
import { loadLocks } from '../pins/lock-folder.js';
import { compilePolicies } from '../policy/compile.js';
import type { PolicySet } from '../policy/question.js';
import { pinsOf } from './locks.js';
import { checkMergedNames } from './merged-names.js';

/** A version that may be used: nothing in it is invalid. */
export type Version = {
  readonly settings: Settings;
  readonly policies: PolicySet;
  readonly locks: ReadonlyMap<string, Lock>;
  readonly hashes: { readonly config: string; readonly policy: string; readonly pins: string };
};

export type VersionReading = {
  readonly version: Version | undefined;
  readonly diagnostics: readonly Diagnostic[];
};

type Sources = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly compile: CompileDefinition;
};

/**
 * Reads the gateway file and everything that it names. All mistakes of all files come in one run.
 * `policyInForce` is the hash of the policies that run: pins that changed make them no mistake (contract
 * §4, law 4), or whoever takes a tool out of a lock file would leave it callable.
 */
export async function loadVersion(
  file: string,
  sources: Sources,
  policyInForce?: string,
): Promise<VersionReading> {
  const { settings, diagnostics, outline } = loadGateway(file, {
    readFile: DISK_FILES.readFile,
    env: sources.env,
  });
  if (outline === undefined) return { version: undefined, diagnostics };
  const pins =
    outline.pinsDir === undefined
      ? undefined
      : await loadLocks(outline.pinsDir, {
          readFile: DISK_FILES.readFile,
          readDir: DISK_FILES.listFolder,
        });
  const pinned = pinsOf(pins?.locks ?? new Map(), sources.compile);
  const policies =
    outline.policiesDir === undefined
      ? undefined
      : readPolicies(outline.policiesDir, outline, pinned, policyInForce);
  // Once it runs, names that look alike are hidden, and what is taken out of a lock file must take effect.
  const severity = policyInForce === undefined ? 'error' : 'warning';
  const alike = checkMergedNames(outline, pinned, severity);
  const found = [
    ...diagnostics,
    ...(policies?.diagnostics ?? []),
    ...(pins?.diagnostics ?? []),
    ...alike,
  ];
  if (
    settings === undefined ||
    policies?.policies === undefined ||
    pins === undefined ||
    hasErrors(found)
  ) {
    return { version: undefined, diagnostics: found };
  }
  const hashes = { config: settings.hash, policy: policies.hash, pins: pins.hash };
  return {
    version: { settings, policies: policies.policies, locks: pins.locks, hashes },
    diagnostics: found,
  };
}

function readPolicies(
  folder: string,
  outline: Outline,
  pins: ReturnType<typeof pinsOf>,
  policyInForce: string | undefined,
): ReturnType<typeof loadPolicies<PolicySet>> {
  const { upstreams, issuers, profiles } = outline;
  return loadPolicies(folder, {
    files: DISK_FILES,
    compile: (documents, hash) =>
      compilePolicies(documents, {
        hash,
        upstreams,
        issuers,
        profiles,
        pins,
        areInForce: hash === policyInForce,
      }),
  });
}
