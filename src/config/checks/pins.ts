// Checks on signed lock files that a schema cannot express. Reports diagnostics and changes nothing.
// docs/contract.md §5.

import type { ReportDiagnostic } from '../diagnostics.js';
import type { ReadableGateway } from '../schema/gateway.js';
import { entriesOf } from '../schema/readable.js';

/** What would let an unsigned definition through although signatures are required, or require them of nobody. */
export function checkSigning({ pins, upstreams }: ReadableGateway, report: ReportDiagnostic): void {
  if (pins?.signers === undefined) {
    if (pins?.require === undefined) return;
    report(['pins', 'require'], '"require" needs "signers": nobody could sign', 'missing-key');
    return;
  }
  for (const [name, { pinning }] of entriesOf(upstreams)) {
    if (pinning?.mode !== 'trust-on-first-use') continue;
    const message =
      '"trust-on-first-use" cannot be combined with "pins.signers": definitions that are trusted on first use have no signature';
    report(['upstreams', name, 'pinning', 'mode'], message, 'conflict');
  }
}
