// Which files make a version: the gateway file, the folders that it names, and the certificates of
// listeners and upstreams, which others renew without touching the gateway file.

import type { Settings } from '../config/settings.js';
import type { watchConfiguration } from '../config/watch.js';
import { leasePath, nextLeasePath } from '../observe/audit-lease.js';

/** What to watch for the next change. */
export function targetsOf(settings: Settings): Parameters<typeof watchConfiguration>[0]['targets'] {
  const { file, policiesDir, pinsDir, listeners, admin, audit, watchedFiles } = settings;
  const secured = [listeners.data, listeners.ops, ...(admin === undefined ? [] : [admin.listener])];
  return {
    files: [file, ...new Set([...secured.flatMap(({ tls }) => tls?.files ?? []), ...watchedFiles])],
    folders: [
      { path: policiesDir, suffix: '.policy.yaml' },
      { path: pinsDir, suffix: '.lock.yaml' },
    ],
    own: audit.sinks.flatMap((sink) =>
      sink.type === 'file' ? [sink.path, leasePath(sink.path), nextLeasePath(sink.path)] : [],
    ),
  };
}
