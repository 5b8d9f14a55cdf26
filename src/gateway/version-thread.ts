// The thread that reads a configuration version: all files are read and checked there, and what can be sent comes back,
// lock by lock, so that no message takes long to receive.

import { toTransfer } from '../config/transfer.js';
import { createDefinitionCompiler } from '../pins/catalog.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import { mirroredParameters } from '../protocol/headers.js';
import { serveJobs } from '../work/thread.js';
import { readFiles } from './config-version.js';
import type { LockPart, VersionJob, VersionResult } from './version-reader.js';

serveJobs(async ({ file, env, inForce, known }: VersionJob, postPart): Promise<VersionResult> => {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const onLock = (lock: LockPart['lock'], text: string, check: () => LockPart['checked']): void => {
    if (known.get(lock.upstream) !== text) postPart({ lock, text, checked: check() } satisfies LockPart);
  };
  const { parts: _unsent, ...reading } = await readFiles(file, { env, compile, onLock }, inForce);
  return { kind: 'version', reading: toTransfer(reading) };
});
