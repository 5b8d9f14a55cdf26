// A folder for what a gateway file refers to: secrets, keys, certificates. Everything in it is made at run
// time and goes with it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type SecretFiles = {
  /** Writes a file and returns its path, quoted as YAML takes it. */
  write(name: string, text: string): Promise<string>;
  close(): Promise<void>;
};

export async function makeSecretFiles(): Promise<SecretFiles> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-secrets-'));
  return {
    async write(name, text) {
      const path = join(folder, name);
      await writeFile(path, text);
      return JSON.stringify(path);
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
