// Asks a Prometheus what the panels of a dashboard ask, as Grafana does. Names every panel that is empty or fails.

import type { JsonPanel, PanelTarget } from './draw.js';

export type Range = { readonly startSeconds: number; readonly endSeconds: number; readonly stepSeconds: number };

/** `values`: seconds since the epoch and a value, of which a gap has none. */
export type DrawnSeries = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [seconds: number, value: number])[];
};

export type PanelData = {
  readonly panel: JsonPanel;
  readonly series: readonly DrawnSeries[];
  /** Queries that have no value. */
  readonly empty: readonly string[];
};

type Answer = {
  readonly status: string;
  readonly error?: string;
  readonly warnings?: readonly string[];
  readonly data?: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly values?: readonly (readonly [number, string])[];
      readonly value?: readonly [number, string];
    }[];
  };
};

/** Grafana's default: four scrapes. */
const SCRAPES = 4;

/** Every variable with `All` chosen. */
function withoutVariables(expr: string, { startSeconds, endSeconds, stepSeconds }: Range): string {
  return expr
    .replaceAll('$__rate_interval', `${SCRAPES * stepSeconds}s`)
    .replaceAll('$__range', `${endSeconds - startSeconds}s`)
    .replaceAll(/\$(?:job|instance|upstream)\b/g, '.*');
}

function nameOf(legend: string, labels: Readonly<Record<string, string>>): string {
  return legend.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? '');
}

async function ask(url: string, target: PanelTarget, range: Range): Promise<readonly DrawnSeries[]> {
  const query = withoutVariables(target.expr, range);
  const times =
    target.instant === true
      ? { time: String(range.endSeconds) }
      : { start: String(range.startSeconds), end: String(range.endSeconds), step: String(range.stepSeconds) };
  const path = target.instant === true ? 'query' : 'query_range';
  const response = await fetch(`${url}/api/v1/${path}`, {
    method: 'POST',
    body: new URLSearchParams({ query, ...times }),
  });
  const answer = (await response.json()) as Answer;
  if (answer.status !== 'success') throw new Error(`${answer.error}: ${query}`);
  return (answer.data?.result ?? []).map(({ metric, values, value }) => ({
    name: nameOf(target.legendFormat ?? '', metric),
    labels: metric,
    values: (values ?? (value === undefined ? [] : [value])).map(([at, text]) => [at, Number(text)] as const),
  }));
}

/** Every series of an expression over a range of time. */
export function readExpression(url: string, expr: string, range: Range): Promise<readonly DrawnSeries[]> {
  return ask(url, { expr }, range);
}

/** What a panel shows of a range of time. */
export async function readPanel(url: string, panel: JsonPanel, range: Range): Promise<PanelData> {
  const targets = panel.targets ?? [];
  const results = await Promise.all(targets.map((target) => ask(url, target, range)));
  const series = results.map((one) => one.filter(hasValues));
  const empty = targets.flatMap(({ expr }, index) => (series[index]?.length === 0 ? [expr] : []));
  return { panel, series: series.flat(), empty };
}

function hasValues({ values }: DrawnSeries): boolean {
  return values.some(([, value]) => Number.isFinite(value));
}

/** Why nobody could read a panel; `undefined` if somebody can. */
export function problemOf({ panel, series, empty }: PanelData): string | undefined {
  if (empty.length > 0 || series.length === 0) return `${panel.title}: no value for ${empty.join(' and ')}`;
  const names = series.map(({ name }) => name);
  if (panel.type !== 'table' && names.length > 1) {
    if (names.some((name) => name.trim() === '')) return `${panel.title}: a series without a name`;
    if (new Set(names).size < names.length) return `${panel.title}: two series of one name (${names.join(', ')})`;
  }
  return undefined;
}

/** Whether a panel has the same value all the time, which may be so for a reason. */
export function isFlat({ panel, series }: PanelData): boolean {
  if (panel.type === 'table') return false;
  return series.every(({ values }) => new Set(values.map(([, value]) => value)).size <= 1);
}
