// Work on large lock files beside the event loop, in jobs of bounded size: reading and writing what was trusted on first
// use, and finding out which definitions can be used.

import type { DefinitionOutcomes, DefinitionToCompile, LockToRead } from '../inspection/jobs.js';
import type { DefinitionCompiler } from '../pins/catalog.js';
import type { LockWork } from '../pins/first-use.js';
import { jsonParts, writeLockInParts } from '../pins/lock.js';
import { readLockInParts } from '../pins/lock-reader.js';
import type { SchemaOptions } from '../policy/definitions.js';
import type { DefinitionTasks } from '../work/inspection.js';
import { approvedDefinitions } from './config-version.js';

type LockWorkPorts = {
  readonly definitions: DefinitionTasks;
  readonly compile: DefinitionCompiler;
  readonly formatsAt: (upstream: string) => SchemaOptions['formats'];
};

export function createLockWork({ definitions, compile, formatsAt }: LockWorkPorts): LockWork {
  async function run<Task extends 'lock' | 'pins'>(task: Task, text: string, upstream: string) {
    const outcome: DefinitionOutcomes[Task] | undefined = await definitions(task, text, upstream);
    if (outcome === undefined) throw new Error('the thread for it ended, or has too much to do');
    return outcome;
  }

  return {
    read(upstream, file, text) {
      return readLockInParts(text, (part) =>
        run('lock', JSON.stringify({ file, part } satisfies LockToRead), upstream),
      );
    },
    write: (lock) => writeLockInParts(lock, (pins) => run('pins', pins, lock.upstream)),
    async check(lock) {
      const formats = formatsAt(lock.upstream);
      const all = approvedDefinitions(lock);
      const compiled = all.map(({ kind, version }): DefinitionToCompile => {
        return { kind, definition: version.definition, formats };
      });
      let at = 0;
      for (const part of jsonParts(compiled)) {
        const outcome = await definitions('usable', part, lock.upstream);
        // Without an outcome it is not known how many there were.
        if (outcome === undefined) return;
        for (const isUsable of outcome) {
          const one = all[at++];
          if (one !== undefined) compile.learn({ ...one, formats, isUsable });
        }
      }
    },
  };
}
