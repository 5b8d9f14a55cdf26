// Renders the dashboards of config/grafana, which the chart has too. Pure: it returns texts by file, and the caller writes
// them.

import { OPERATION } from './operation.js';
import { OVERVIEW } from './overview.js';
import { buildDashboard } from './panels.js';
import { SECURITY } from './security.js';

/** Every dashboard as JSON, by the name of its file. */
export function renderDashboards(): ReadonlyMap<string, string> {
  return new Map(
    [OVERVIEW, SECURITY, OPERATION].map((spec) => [
      `${spec.uid}.json`,
      `${JSON.stringify(buildDashboard(spec), undefined, 1)}\n`,
    ]),
  );
}
