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
import { type CompileInput, compileSettings } from './resolve.js';
import { GATEWAY_SCHEMA, type ReadableGateway } from './schema/gateway.js';
import { entriesOf, readable, textsOf } from './schema/readable.js';
import { validateShape } from './schema/validation.js';
import { readSecrets } from './secrets.js';
import type { BackendSettings, Settings } from './settings.js';
import { readListenerTls, readTlsFiles } from './tls.js';
import { locateDiagnostic, readYamlFile } from './yaml.js';

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
function outlineOf(gateway: ReadableGateway, file: string, locate: Locate): Outline {
  const folder = dirname(file);
  const { policies, pins, listeners, inspection } = gateway;
  const policiesDir = policies?.dir ? resolve(folder, policies.dir) : undefined;
  return {
    file,
    aggregates: entriesOf(gateway.endpoints).map(([name, aggregate]) => ({
      name,
      backends: backendsOf(aggregate),
      position: locate(['endpoints', name], 'key'),
    })),
    upstreams: entriesOf(gateway.upstreams).map(([name, { issuers, pinning }]) => ({
      name,
      issuers: textsOf(issuers).map(([, issuer]) => issuer),
      strict: pinning?.mode !== 'off',
    })),
    issuers: Object.keys(gateway.issuers ?? {}),
    profiles: Object.keys(inspection?.profiles ?? {}),
    policiesDir,
    pinsDir: pins?.dir ? resolve(folder, pins.dir) : policiesDir && resolve(policiesDir, 'pins'),
    opsHost: listeners?.ops?.host || undefined,
    isOpsSecure: listeners?.ops?.tls !== undefined,
    opsPort: listeners?.ops?.port,
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
  const found: PathDiagnostic[] = [...validateShape(GATEWAY_SCHEMA, source.value)];
  const gateway = readable(GATEWAY_SCHEMA, source.value);
  const read = check(gateway, dirname(absolute), sources, found);
  const located = found.map((diagnostic) => locateDiagnostic(file, source.locate, diagnostic));
  const result = {
    diagnostics: sortDiagnostics(located),
    outline: outlineOf(gateway, absolute, source.locate),
  };
  if (hasErrors(located) || read === undefined) return { settings: undefined, ...result };
  const hash = createHash('sha256').update(bytes).digest('hex');
  const settings = compileSettings({ file: absolute, gateway, ...read, hash });
  return { settings, ...result };
}

const CHECKS = [
  checkPublicUrl,
  checkListeners,
  checkKeys,
  checkIssuers,
  checkUpstreams,
  checkAggregates,
  checkResources,
  checkAudit,
  checkState,
  checkAdmin,
];

function check(
  gateway: ReadableGateway,
  folder: string,
  sources: GatewaySources,
  found: PathDiagnostic[],
): Pick<CompileInput, 'secrets' | 'tls'> | undefined {
  const report: ReportDiagnostic = (path, message, rule = 'wrong-value', more = {}) => {
    const { at = 'value', severity = 'error', suggestion } = more;
    const hint = suggestion === undefined ? {} : { suggestion };
    found.push({ path, at, severity, rule, message, ...hint });
  };
  for (const checkPart of CHECKS) checkPart(gateway, report);
  if (sources.secrets === 'skip') return undefined;
  const secretSources = { files: sources, env: sources.env, folder };
  const keys = readSecrets(gateway, secretSources, report);
  const secrets = new Map([...keys, ...readTlsFiles(gateway, secretSources, keys, report)]);
  return { secrets, tls: readListenerTls(gateway, { files: sources, folder, secrets }, report) };
}
