// The commands of the program in this process, on the files of a test and with the ports that process.ts gives them.
// Commands that wait for signals or questions are run by processes.ts, as programs of their own.

import { supposePrincipal } from '../../src/auth/principal.js';
import { auditCommand } from '../../src/cli/audit/audit-command.js';
import { observeOnce } from '../../src/cli/command-ports.js';
import { pinCommand } from '../../src/cli/pin/pin-command.js';
import { explainCommand } from '../../src/cli/policy/explain.js';
import { replayCommand } from '../../src/cli/policy/replay.js';
import { testCommand } from '../../src/cli/policy/test.js';
import { buildProgram, type CliIo, type Command } from '../../src/cli/program.js';
import { healthcheckCommand } from '../../src/cli/serve.js';
import { validateCommand } from '../../src/cli/validate.js';
import { DISK_FILES } from '../../src/config/files.js';
import { readLocksForPolicies } from '../../src/gateway/config-version.js';
import { updateFile } from '../../src/pins/file-update.js';
import { compilePolicies } from '../../src/policy/compile/compile.js';
import type { Ended } from './processes.js';

const WORKSPACE = { files: DISK_FILES, loadLocks: readLocksForPolicies, supposePrincipal };

type Settings = {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** How `healthcheck` asks; it must not with a command that asks nobody. */
  readonly fetchStatus?: (url: string) => Promise<number>;
};

function commandsOf(io: CliIo, { fetchStatus }: Settings): readonly Command[] {
  return [
    pinCommand(io, {
      ...{ files: DISK_FILES, updateFile, now: Date.now },
      observe: (upstream, gateway) => observeOnce(upstream, gateway, '0.0.0-test'),
    }),
    validateCommand(io, { files: DISK_FILES, compilePolicies, loadLocks: readLocksForPolicies }),
    testCommand(io, WORKSPACE),
    explainCommand(io, WORKSPACE),
    replayCommand(io, WORKSPACE),
    auditCommand(io, {
      loadSettings: () => Promise.reject(new Error('the audit files are named')),
      wait: () => Promise.resolve(false),
    }),
    healthcheckCommand(io, {
      files: DISK_FILES,
      fetchStatus: fetchStatus ?? (() => Promise.reject(new Error('nobody is asked'))),
      servedConfigs: () => Promise.resolve([]),
    }),
  ];
}

/** Runs one command line, given without the name of the program. */
export async function runCommand(argv: readonly string[], settings: Settings): Promise<Ended> {
  const printed = { stdout: '', stderr: '' };
  const keep = (stream: keyof typeof printed) => (text: string) => {
    printed[stream] += text;
  };
  const { cwd, env = {} } = settings;
  const io: CliIo = { stdout: keep('stdout'), stderr: keep('stderr'), env, cwd, isTty: false };
  const code = await buildProgram(io, commandsOf(io, settings)).run(argv);
  return { code, ...printed };
}
