// What the upstreams of one process share besides the event loop: the threads that read and inspect, with the keys of
// redaction marks, and the memory for buffered responses.

import type { MarkKeys } from '../inspection/redaction-marks.js';
import type { Emit } from '../policy/events.js';
import type { KeyRing } from '../state/derived-keys.js';
import type { UpstreamResources } from '../upstream/connection.js';
import { createResponseBufferQuota } from '../upstream/response-reader.js';
import { type Inspection, type OwnCredentialsOf, startInspection } from '../work/inspection.js';
import { createLoopScheduler } from '../work/turns.js';

export type SharedResources = UpstreamResources & { readonly inspection: Inspection };

/**
 * The caller closes the inspection. `ownCredentialsOf`: the gateway's credentials that an upstream received and may
 * echo.
 */
export function createSharedResources(
  emit: Emit,
  ownCredentialsOf: OwnCredentialsOf,
  ring: Pick<KeyRing, 'hmacAll'>,
): SharedResources {
  const loopScheduler = createLoopScheduler();
  const inspection = startInspection(emit, loopScheduler, ownCredentialsOf, markKeys(ring));
  return {
    loopScheduler,
    inspection,
    readJson: inspection.readJson,
    bufferQuota: createResponseBufferQuota(),
  };
}

/** The purpose of the keys from which the tags of redaction marks are derived. */
const MARK_PURPOSE = 'redaction-mark';

function markKeys(ring: Pick<KeyRing, 'hmacAll'>): MarkKeys {
  return ring.hmacAll(MARK_PURPOSE, 'tags');
}
