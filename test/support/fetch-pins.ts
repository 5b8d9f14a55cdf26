// Pins what the upstreams of a gateway file offer now, by the program's own command.

import { dirname } from 'node:path';
import { runPinFetch } from '../../src/cli/pin/fetch.js';
import type { PinPorts } from '../../src/cli/pin/lock-files.js';
import { DISK_FILES } from '../../src/config/files.js';
import { observeOnce, updateFile } from '../../src/gateway/pin-ports.js';

/** Runs `pin fetch --approve`; throws with what it printed when it fails. */
export async function fetchPins(
  file: string,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  let printed = '';
  const print = (text: string): void => {
    printed += text;
  };
  const io = { stdout: print, stderr: print, env, cwd: dirname(file), isTty: false };
  const ports = {
    files: DISK_FILES,
    updateFile,
    observe: (...[upstream, gateway]: Parameters<PinPorts['observe']>) =>
      observeOnce(upstream, gateway, '0.0.0-test'),
    now: Date.now,
  };
  const code = await runPinFetch(
    { config: file, approve: true, by: 'test', note: 'test' },
    io,
    ports,
  );
  if (code !== 0) throw new Error(`pin fetch ended with ${code}: ${printed}`);
}
