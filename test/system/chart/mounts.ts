// Puts the files of a pod into a folder, as a kubelet mounts them: ConfigMaps as they were rendered, Secrets with
// contents that are made here. What no volume has is not there.

import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeAuthority } from '../../support/tls.js';
import { containerOf, podOf, type Resource } from './rendering.js';

type Item = { readonly key: string; readonly path: string };
type Volume = {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string; readonly items?: readonly Item[] };
};

/** A path of the pod that the gateway file may name. */
const PATH = /\/(?:etc|run|var\/lib)\/[^\s,}\]"']+/g;

function contentOf(key: string, certificates: Readonly<Record<string, string>>): string {
  return certificates[key] ?? randomBytes(32).toString('base64');
}

function filesOf(volume: Volume, resources: readonly Resource[]): Readonly<Record<string, string>> {
  const { configMap, secret } = volume;
  if (configMap !== undefined) {
    const map = resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap.name);
    return map?.['data'] ?? {};
  }
  if (secret === undefined) return {};
  const authority = makeAuthority();
  const { cert, key } = authority.issue({ names: ['mcp.example.com'] });
  const certificates = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert };
  const items = secret.items ?? Object.keys(certificates).map((name) => ({ key: name, path: name }));
  return Object.fromEntries(items.map((item) => [item.path, contentOf(item.key, certificates)]));
}

/** Writes the files of the gateway's container below `folder`, and changes their text by `edit`. */
export async function mountPod(
  resources: readonly Resource[],
  folder: string,
  edit: (text: string) => string = (text) => text,
): Promise<void> {
  const volumes: readonly Volume[] = podOf(resources).spec.volumes ?? [];
  for (const { name, mountPath } of containerOf(resources).volumeMounts) {
    const volume = volumes.find((one) => one.name === name);
    await mkdir(join(folder, mountPath), { recursive: true });
    for (const [file, text] of Object.entries(volume === undefined ? {} : filesOf(volume, resources))) {
      const moved = text.replace(PATH, (path) => join(folder, path));
      await writeFile(join(folder, mountPath, file), edit(moved), { mode: 0o600 });
    }
  }
}

/** The variables of the container that come from Secrets. */
export function environmentOf(resources: readonly Resource[]): Readonly<Record<string, string>> {
  const entries: { name: string; valueFrom?: { secretKeyRef?: object } }[] = containerOf(resources).env ?? [];
  const secrets = entries.filter(({ valueFrom }) => valueFrom?.secretKeyRef !== undefined);
  return Object.fromEntries(
    secrets.map(({ name }) => [
      name,
      name === 'REDIS_URL' ? 'redis://127.0.0.1:6379' : randomBytes(32).toString('hex'),
    ]),
  );
}
