// A terminal for tests of commands: what they print is kept, and nothing of the process is touched.

import type { CliIo } from '../../../src/cli/program.js';

export type Printed = CliIo & { readonly out: () => string; readonly err: () => string };

export function terminal(more: Partial<CliIo> = {}): Printed {
  let out = '';
  let err = '';
  return {
    stdout: (text) => {
      out += text;
    },
    stderr: (text) => {
      err += text;
    },
    env: {},
    cwd: '/srv',
    isTty: false,
    ...more,
    out: () => out,
    err: () => err,
  };
}
