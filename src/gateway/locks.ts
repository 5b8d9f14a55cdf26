// Lock files as policies are judged against them: what is pinned, before anything was seen upstream.

import type { Diagnostic } from '../config/fault.js';
import { DISK_FILES } from '../config/files.js';
import type { Outline } from '../config/outline.js';
import { mirroredParameters } from '../mcp/headers.js';
import { createCatalogue } from '../pins/catalogue.js';
import { type CompileDefinition, createDefinitionCompiler } from '../pins/definition-compiler.js';
import type { Lock } from '../pins/lock.js';
import { loadLocks } from '../pins/lock-folder.js';
import type { Catalogue } from '../policy/definition.js';
import { compileSchema } from '../policy/schema.js';
import { checkMergedNames } from './merged-names.js';

/** What is pinned for an upstream; `undefined` where it has no lock file. */
export function pinsOf(
  locks: ReadonlyMap<string, Lock>,
  compile: CompileDefinition,
): (upstream: string) => Catalogue | undefined {
  return (upstream) => {
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
  };
}

/** Reads the lock files of a folder for `validate`. */
export async function readLocksForPolicies(
  folder: string,
  outline: Pick<Outline, 'file' | 'aggregates'>,
): Promise<{
  readonly upstreams: Iterable<string>;
  readonly diagnostics: readonly Diagnostic[];
  readonly pins: (upstream: string) => Catalogue | undefined;
}> {
  const { locks, diagnostics } = await loadLocks(folder, {
    readFile: DISK_FILES.readFile,
    readDir: DISK_FILES.listFolder,
  });
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const pins = pinsOf(locks, compile);
  const alike = checkMergedNames(outline, pins, 'error');
  return { upstreams: locks.keys(), diagnostics: [...diagnostics, ...alike], pins };
}
