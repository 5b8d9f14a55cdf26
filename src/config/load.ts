// Reads the gateway file into settings, or says everything that is wrong with it, in one run.
// Fails closed: with one error there are no settings. Never throws over what a file holds.
// Contract §3.

import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { checkAggregates } from './checks-endpoints.js';
import { checkIssuers } from './checks-issuers.js';
import { checkAdmin, checkAudit, checkKeys, checkState } from './checks-operation.js';
import { checkListeners, checkPublicUrl } from './checks-origins.js';
import { checkResources } from './checks-resources.js';
import { checkUpstreams } from './checks-upstreams.js';
import { type CompileInput, compileSettings } from './compile.js';
import {
  type Diagnostic,
  fileDiagnostic,
  hasErrors,
  type PathDiagnostic,
  type Report,
  sortDiagnostics,
} from './fault.js';
import type { Files } from './files.js';
import type { GatewayFile } from './gateway-file.js';
import { readListenerTls } from './listener-certificates.js';
import { type Outline, outlineOf } from './outline.js';
import { placeDiagnostic } from './positions.js';
import { GATEWAY_SCHEMA } from './schema-gateway.js';
import { readSecrets } from './secrets.js';
import type { Settings } from './settings.js';
import { readTlsFiles } from './tls-files.js';
import { validateShape } from './validation.js';
import { readYaml } from './yaml.js';

export type GatewaySources = {
  readonly readFile: Files['readFile'];
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * `skip` judges secret references by their form and reads none: for checks far from where the
   * gateway runs. There are no settings then.
   */
  readonly secrets?: 'read' | 'skip';
};

export type GatewayReading = {
  /** `undefined` where one fault is an error, or secrets were skipped. */
  readonly settings: Settings | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** What could be understood even of a wrong file, so that policies are checked in the same run. */
  readonly outline: Outline | undefined;
};

/** Reads and judges a gateway file. Faults come in the order of the file. */
export function loadGateway(file: string, sources: GatewaySources): GatewayReading {
  const absolute = resolve(file);
  let bytes: Uint8Array;
  try {
    bytes = sources.readFile(absolute);
  } catch {
    const diagnostic = fileDiagnostic(file, 'unreadable', 'the file cannot be read');
    return { settings: undefined, diagnostics: [diagnostic], outline: undefined };
  }
  const { source, diagnostics } = readYaml(file, bytes);
  if (source === undefined) {
    return { settings: undefined, diagnostics: sortDiagnostics(diagnostics), outline: undefined };
  }
  const root = source.value;
  const found: PathDiagnostic[] = [...validateShape(GATEWAY_SCHEMA, root)];
  const read = check(root, dirname(absolute), sources, found);
  const placed = found.map((diagnostic) => placeDiagnostic(file, source.locate, diagnostic));
  const result = {
    diagnostics: sortDiagnostics(placed),
    outline: outlineOf(root, absolute, source.locate),
  };
  if (hasErrors(placed) || read === undefined) return { settings: undefined, ...result };
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
  const report: Report = (path, message, more = {}) => {
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
  const places = { files: sources, env: sources.env, folder };
  const keys = readSecrets(root, places, report);
  const secrets = new Map([...keys, ...readTlsFiles(root, places, keys, report)]);
  return { secrets, tls: readListenerTls(root, { files: sources, folder, secrets }, report) };
}
