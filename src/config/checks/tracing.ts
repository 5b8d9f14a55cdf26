// Checks on tracing that a schema cannot express: the URL is one that the gateway connects to, and no configured header
// takes the place of one that it sets. Reports diagnostics and changes nothing. docs/reference/traces.md; OTLP 1.x,
// OTLP/HTTP.

import type { ReportDiagnostic } from '../diagnostics.js';
import type { GatewayConfig } from '../schema/gateway.js';
import { checkOrigin } from './addresses.js';
import { isReserved } from './upstreams.js';

/** Where receivers take spans, unless they say otherwise (OTLP/HTTP, request). */
const USUAL_PATH = '/v1/traces';

export function checkTracing(file: GatewayConfig, report: ReportDiagnostic): void {
  const { tracing } = file;
  if (tracing === undefined) return;
  const owner = ['tracing', 'otlp'];
  const { url: written, network, plaintext, headers = {}, ca } = tracing.otlp;
  const url = checkOrigin(file, [...owner, 'url'], written, { owner, network, plaintext }, report);
  if (url?.pathname === '/') {
    const message = `spans are posted to this URL as it is written, and receivers take them at the path ${USUAL_PATH}`;
    const suggestion = `${url.origin}${USUAL_PATH}`;
    report([...owner, 'url'], message, 'wrong-value', { severity: 'warning', suggestion });
  }
  if (ca !== undefined && url?.protocol === 'http:')
    report([...owner, 'ca'], 'this receiver is reached by plain http', 'conflict', { at: 'key' });
  const known = new Set<string>();
  for (const name of Object.keys(headers)) {
    const folded = name.toLowerCase();
    const at = [...owner, 'headers', name];
    if (isReserved(folded)) report(at, 'the gateway sets this header itself', 'conflict', { at: 'key' });
    if (known.has(folded)) report(at, 'this header is named twice', 'conflict', { at: 'key' });
    known.add(folded);
  }
}
