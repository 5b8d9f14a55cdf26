// Where the members of a JSON text stand, for tests that compare bytes.

export { applyEdits, memberSpans, removalEdits, spanOf } from '../../src/protocol/json/json.js';
