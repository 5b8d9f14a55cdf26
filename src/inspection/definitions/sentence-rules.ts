// All rows about sentences, in the order in which a reviewer reads what they find, and the finder of the applied ones.

import { EXFILTRATION } from './rows/exfiltration.js';
import { ORDERS } from './rows/orders.js';
import { OTHER_TOOLS, PRAISE } from './rows/other-tools.js';
import { SECRECY } from './rows/secrecy.js';
import { createFinder, type RuleRow } from './sentence-patterns.js';

const ROWS: readonly RuleRow[] = [...SECRECY, ...ORDERS, ...EXFILTRATION, ...OTHER_TOOLS];

/** All rows about sentences, also those that are off. */
export const RULE_ROWS: readonly RuleRow[] = [...ROWS, ...PRAISE];

/** What the rows find in a sentence, at most one match a row. */
export const findDemands = createFinder(ROWS);

/** What is praise beside a tool of another server with the same purpose. */
export const findPraise = createFinder(PRAISE);
