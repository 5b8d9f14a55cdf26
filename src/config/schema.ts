// The published JSON Schemas by name: what `sallyport schema NAME` prints and modelines point to.
// Values only. Contract §1 names them.

import { AUDIT_SCHEMA } from './schema-audit.js';
import { GATEWAY_SCHEMA } from './schema-gateway.js';
import { LOCK_SCHEMA } from './schema-lock.js';
import type { Schema } from './schema-parts.js';
import { POLICY_SCHEMA } from './schema-policy.js';

/** Every published schema, in the order of the reference page. */
export const SCHEMAS: ReadonlyMap<string, Schema> = new Map([
  ['gateway', GATEWAY_SCHEMA],
  ['policy', POLICY_SCHEMA],
  ['lock', LOCK_SCHEMA],
  ['audit', AUDIT_SCHEMA],
]);
