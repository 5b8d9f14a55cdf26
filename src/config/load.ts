// Loads the gateway file: reads, validates and checks it, and returns either settings or every diagnostic
// of the file in one run. Fails closed: with one error there are no settings. Never throws because of a
// file's content. docs/contract.md §3.

import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import type { Locate, Position } from '../text/yaml.js';
import { checkListeners, checkPublicUrl } from './checks/addresses.js';
import { checkIssuers } from './checks/issuers.js';
import { checkAdmin, checkAudit, checkKeys, checkState } from './checks/operation.js';
import { checkResources } from './checks/resources.js';
import { backendsOf, checkAggregates, checkUpstreams } from './checks/upstreams.js';
import {
  type Diagnostic,
  fileDiagnostic,
  hasErrors,
  type PathDiagnostic,
  type ReportDiagnostic,
  sortDiagnostics,
} from './diagnostics.js';
import type { Files } from './files.js';
import type { GatewayFile } from './gateway-file.js';
import { type CompileInput, compileSettings } from './resolve.js';
import { GATEWAY_SCHEMA } from './schema/gateway.js';
import { validateShape } from './schema/validation.js';
import { readSecrets } from './secrets.js';
import type { BackendSettings, Settings } from './settings.js';
import { readListenerTls, readTlsFiles } from './tls.js';
import { locateDiagnostic, mapAt, readYamlFile, textAt, textsAt, valueAt } from './yaml.js';

type UpstreamOutline = {
  readonly name: string;
  readonly issuers: readonly string[];
  /** True if pinning is on: only pinned definitions may be used. */
  readonly strict: boolean;
};

/** An aggregate's backends and prefixes, and its position in the file. */
export type AggregateOutline = {
  readonly name: string;
  readonly backends: readonly BackendSettings[];
  readonly position: Position;
};

/**
 * What can be read of a gateway file even if parts of it are wrong: names and folders. Enough to check
 * policies and lock files in the same run, never enough to run a gateway.
 */
export type Outline = {
  /** Absolute path of the file. */
  readonly file: string;
  readonly aggregates: readonly AggregateOutline[];
  readonly upstreams: readonly UpstreamOutline[];
  readonly issuers: readonly string[];
  readonly profiles: readonly string[];
  /** Absolute path. */
  readonly policiesDir: string | undefined;
  /** Absolute path. */
  readonly pinsDir: string | undefined;
  readonly opsHost: string | undefined;
  readonly opsPort: number | undefined;
  readonly isOpsSecure: boolean;
};

/** The outline of a gateway file whose defaults are filled in. `file` is its absolute path. */
function outlineOf(root: unknown, file: string, locate: Locate): Outline {
  const folder = dirname(file);
  const policies = textAt(root, ['policies', 'dir']);
  const policiesDir = policies === undefined ? undefined : resolve(folder, policies);
  const pins = textAt(root, ['pins', 'dir']);
  const port = valueAt(root, ['listeners', 'ops', 'port']);
  return {
    file,
    aggregates: Object.keys(mapAt(root, ['endpoints'])).map((name) => ({
      name,
      backends: backendsOf(root, name),
      position: locate(['endpoints', name], 'key'),
    })),
    upstreams: Object.keys(mapAt(root, ['upstreams'])).map((name) => ({
      name,
      issuers: textsAt(root, ['upstreams', name, 'issuers']).map(([, issuer]) => issuer),
      strict: textAt(root, ['upstreams', name, 'pinning', 'mode']) !== 'off',
    })),
    issuers: Object.keys(mapAt(root, ['issuers'])),
    profiles: Object.keys(mapAt(root, ['inspection', 'profiles'])),
    policiesDir,
    pinsDir:
      pins === undefined ? policiesDir && resolve(policiesDir, 'pins') : resolve(folder, pins),
    opsHost: textAt(root, ['listeners', 'ops', 'host']),
    isOpsSecure: valueAt(root, ['listeners', 'ops', 'tls']) !== undefined,
    opsPort: typeof port === 'number' ? port : undefined,
  };
}

export type GatewaySources = {
  readonly readFile: Files['readFile'];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * `skip` checks the form of secret references without reading the secrets, for checks away from the
   * machine that runs the gateway. There are no settings then.
   */
  readonly secrets?: 'read' | 'skip';
};

export type GatewayReading = {
  /** `undefined` if a diagnostic is an error, or if secrets were skipped. */
  readonly settings: Settings | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** Present even for a file with errors, so that policies are checked in the same run. */
  readonly outline: Outline | undefined;
};

/** Reads and checks a gateway file. Diagnostics are in the order of the file. */
export function loadGateway(file: string, sources: GatewaySources): GatewayReading {
  const absolute = resolve(file);
  let bytes: Uint8Array;
  try {
    bytes = sources.readFile(absolute);
  } catch {
    const diagnostic = fileDiagnostic(file, 'unreadable', 'the file cannot be read');
    return { settings: undefined, diagnostics: [diagnostic], outline: undefined };
  }
  const { source, diagnostics } = readYamlFile(file, bytes);
  if (source === undefined) {
    return { settings: undefined, diagnostics: sortDiagnostics(diagnostics), outline: undefined };
  }
  const root = source.value;
  const found: PathDiagnostic[] = [...validateShape(GATEWAY_SCHEMA, root)];
  const read = check(root, dirname(absolute), sources, found);
  const located = found.map((diagnostic) => locateDiagnostic(file, source.locate, diagnostic));
  const result = {
    diagnostics: sortDiagnostics(located),
    outline: outlineOf(root, absolute, source.locate),
  };
  if (hasErrors(located) || read === undefined) return { settings: undefined, ...result };
  const hash = createHash('sha256').update(bytes).digest('hex');
  const settings = compileSettings({ file: absolute, root: root as GatewayFile, ...read, hash });
  return { settings, ...result };
}

function check(
  root: unknown,
  folder: string,
  sources: GatewaySources,
  found: PathDiagnostic[],
): Pick<CompileInput, 'secrets' | 'tls'> | undefined {
  const report: ReportDiagnostic = (path, message, more = {}) => {
    found.push({
      path,
      at: 'value',
      severity: 'error',
      rule: 'wrong-value',
      message,
      ...more,
    });
  };
  checkPublicUrl(root, report);
  checkListeners(root, report);
  checkKeys(root, report);
  checkIssuers(root, report);
  checkUpstreams(root, report);
  checkAggregates(root, report);
  checkResources(root, report);
  checkAudit(root, report);
  checkState(root, report);
  checkAdmin(root, report);
  if (sources.secrets === 'skip') return undefined;
  const secretSources = { files: sources, env: sources.env, folder };
  const keys = readSecrets(root, secretSources, report);
  const secrets = new Map([...keys, ...readTlsFiles(root, secretSources, keys, report)]);
  return { secrets, tls: readListenerTls(root, { files: sources, folder, secrets }, report) };
}
