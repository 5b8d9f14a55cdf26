// Draws a panel of a dashboard as a plain SVG: what Grafana shows of it, near enough to see whether its labels, units
// and legends can be read. Pure.

import type { DrawnSeries, PanelData, Range } from './run.js';

export type PanelTarget = { readonly expr: string; readonly legendFormat?: string; readonly instant?: boolean };

/** What is read of a panel in the JSON of a dashboard. */
export type JsonPanel = {
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly PanelTarget[];
  readonly transformations?: readonly {
    readonly options: {
      readonly indexByName: Readonly<Record<string, number>>;
      readonly renameByName: Readonly<Record<string, string>>;
    };
  }[];
  readonly options?: { readonly legend?: { readonly calcs: readonly string[] } };
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string;
      readonly decimals?: number;
      readonly max?: number;
      readonly mappings?: readonly {
        readonly options: Readonly<Record<string, { readonly text: string; readonly color: string }>>;
      }[];
      readonly thresholds?: { readonly steps: readonly { readonly value: number | null; readonly color: string }[] };
      readonly custom?: { readonly lineInterpolation?: string; readonly stacking?: { readonly mode: string } };
    };
  };
};

const COLUMN_PX = 60;
const ROW_PX = 40;
const TEXT = '#24292f';
const FAINT = '#6e7781';
const COLORS: Readonly<Record<string, string>> = {
  green: '#2e8b57',
  yellow: '#d4a100',
  orange: '#e07b00',
  red: '#c4302b',
  blue: '#1f60c4',
  gray: '#8c959f',
};
const PALETTE = [
  '#1f60c4',
  '#e07b00',
  '#2e8b57',
  '#c4302b',
  '#8f3bb8',
  '#d4a100',
  '#0a9aa5',
  '#7b5b3a',
  '#d44a90',
  '#57606a',
];

function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

function label(x: number, y: number, text: string, more = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escapeMarkup(text)}</text>`;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || (Number.isInteger(value) && size < 1000)) return String(value);
  if (size >= 100) return value.toFixed(0);
  return size >= 1 ? value.toFixed(2).replace(/\.?0+$/, '') : String(Number(value.toPrecision(2)));
}

/** The largest of some steps that a value reaches, with what it is of it. */
function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  const [factor, unit] = steps.find(([from]) => size >= from) ?? steps.at(-1) ?? [1, ''];
  return `${digits(value / factor)}${unit}`;
}

const THOUSANDS = [
  [1e9, ' Bil'],
  [1e6, ' Mil'],
  [1e3, ' K'],
  [1, ''],
] as const;

/** A value as Grafana writes it in this unit. */
export function written(value: number, unit = 'short', decimals?: number): string {
  if (!Number.isFinite(value)) return 'no data';
  if (value === 0) return unit === 'percentunit' ? '0%' : `0${suffixOf(unit)}`;
  switch (unit) {
    case 's':
      return scaled(value, [
        [86_400, ' d'],
        [3_600, ' h'],
        [60, ' min'],
        [1, ' s'],
        [1e-3, ' ms'],
        [1e-6, ' µs'],
      ]);
    case 'bytes':
      return scaled(value, [
        [2 ** 40, ' TiB'],
        [2 ** 30, ' GiB'],
        [2 ** 20, ' MiB'],
        [2 ** 10, ' KiB'],
        [1, ' B'],
      ]);
    case 'percentunit':
      return `${decimals === undefined ? digits(value * 100) : (value * 100).toFixed(decimals)}%`;
    default:
      return value < 1 ? `${digits(value)}${suffixOf(unit)}` : `${scaled(value, THOUSANDS)}${suffixOf(unit)}`;
  }
}

function suffixOf(unit: string): string {
  const known: Readonly<Record<string, string>> = {
    reqps: ' req/s',
    ops: ' ops/s',
    eps: ' evt/s',
    s: ' s',
    bytes: ' B',
  };
  return known[unit] ?? '';
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(11, 16);
}

type Box = { readonly left: number; readonly top: number; readonly width: number; readonly height: number };

const TICKS = 4;
/** What round numbers are multiples of, from a size on. */
const BASES: Readonly<Record<string, readonly number[]>> = {
  bytes: [2 ** 40, 2 ** 30, 2 ** 20, 2 ** 10, 1],
  s: [86_400, 3_600, 60, 1],
};

/** The distance of the lines of the grid: round, and at most five reach the value. */
function spacing(value: number, unit: string | undefined): number {
  if (value <= 0) return 1;
  const base = (BASES[unit ?? ''] ?? []).find((size) => value >= size) ?? 1;
  const least = value / base / (TICKS + 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= least * 0.999) ?? 10) * power * base;
}
const LEGEND_LINE_PX = 15;
const FIGURE_PX = 80;
const MAX_LEGEND = 8;

function timeAxis({ left, top, width, height }: Box, { startSeconds, endSeconds }: Range): string {
  return Array.from({ length: TICKS + 1 }, (_, at) => {
    const x = left + (width * at) / TICKS;
    const time = clock(startSeconds + ((endSeconds - startSeconds) * at) / TICKS);
    return label(x, top + height + 14, time, `text-anchor="middle" fill="${FAINT}"`);
  }).join('');
}

type Stacked = DrawnSeries & { readonly base: readonly number[] };

/** The values of each series on those of the series before it, which are its base. */
function stacked(series: readonly DrawnSeries[]): readonly Stacked[] {
  const below = new Map<number, number>();
  return series.map((one) => {
    const base = one.values.map(([at]) => below.get(at) ?? 0);
    const values = one.values.map(([at, value], index) => {
      const sum = (base[index] ?? 0) + (Number.isFinite(value) ? value : 0);
      below.set(at, sum);
      return [at, sum] as const;
    });
    return { ...one, values, base };
  });
}

function pathOf(
  values: DrawnSeries['values'],
  { x, y, stepSeconds, isStepped }: Scale & { readonly stepSeconds: number; readonly isStepped: boolean },
): string {
  let last: readonly [number, number] | undefined;
  let path = '';
  for (const [at, value] of values) {
    if (!Number.isFinite(value)) {
      last = undefined;
      continue;
    }
    const isJoined = last !== undefined && at - last[0] <= stepSeconds * 1.5;
    const corner = isJoined && isStepped ? `H${x(at).toFixed(1)}` : '';
    path += `${corner}${isJoined ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    last = [at, value];
  }
  return path;
}

/** What is between a stacked series and its base. */
function areaOf({ values, base }: Stacked, { x, y }: Scale): string {
  const point = (at: number, value: number): string => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
  const there = values.map(([at, value]) => point(at, value));
  const back = values.map(([at], index) => point(at, base[index] ?? 0)).reverse();
  return `M${[...there, ...back].join('L')}Z`;
}

type Scale = { readonly x: (seconds: number) => number; readonly y: (value: number) => number };

function finite(series: DrawnSeries): readonly number[] {
  return series.values.flatMap(([, value]) => (Number.isFinite(value) ? [value] : []));
}

/** What a legend may say of a series. */
const FIGURES: Readonly<Record<string, readonly [title: string, (values: readonly number[]) => number]>> = {
  mean: ['mean', (values) => values.reduce((sum, value) => sum + value, 0) / values.length],
  max: ['max', (values) => Math.max(...values)],
  lastNotNull: ['last', (values) => values.at(-1) ?? Number.NaN],
};

/** Names with figures, as the legend of Grafana has them. */
function legendOf(series: readonly DrawnSeries[], box: Box, { options, fieldConfig }: JsonPanel): string {
  const figures = (options?.legend?.calcs ?? []).flatMap((name) =>
    FIGURES[name] === undefined ? [] : [FIGURES[name]],
  );
  const columns = figures.map((_, at) => box.left + box.width - (figures.length - 1 - at) * FIGURE_PX);
  const head = figures.map(([title], at) =>
    label(columns[at] ?? 0, box.top, title, `text-anchor="end" fill="${FAINT}"`),
  );
  const lines = series.slice(0, MAX_LEGEND).map((one, index) => {
    const y = box.top + LEGEND_LINE_PX * (index + 1);
    const room = Math.floor((box.width - figures.length * FIGURE_PX - 4) / 6);
    const name = one.name.length > room ? `${one.name.slice(0, room - 1)}…` : one.name;
    const values = figures.map(([, figure], at) =>
      label(columns[at] ?? 0, y, written(figure(finite(one)), fieldConfig?.defaults.unit), 'text-anchor="end"'),
    );
    const color = PALETTE[index % PALETTE.length];
    return `<rect x="${box.left}" y="${y - 9}" width="10" height="10" fill="${color}"/>${label(box.left + 16, y, name)}${values.join('')}`;
  });
  const more = series.length - MAX_LEGEND;
  const rest = more > 0 ? label(box.left + 16, box.top + LEGEND_LINE_PX * (MAX_LEGEND + 1), `and ${more} more`) : '';
  return [...head, ...lines, rest].join('');
}

function drawSeries({ panel, series }: PanelData, range: Range, size: { width: number; height: number }): string {
  const { unit, max, custom } = panel.fieldConfig?.defaults ?? {};
  const isStacked = custom?.stacking?.mode === 'normal';
  const isStepped = custom?.lineInterpolation === 'stepAfter';
  const shown = series.filter((one) => finite(one).length > 0);
  const legendHeight = LEGEND_LINE_PX * (Math.min(shown.length, MAX_LEGEND + 1) + 1);
  const box = { left: 78, top: 36, width: size.width - 98, height: size.height - 36 - 24 - legendHeight };
  const drawn = isStacked ? stacked(shown) : shown.map((one): Stacked => ({ ...one, base: [] }));
  const step = spacing(max ?? Math.max(...drawn.flatMap(finite)), unit);
  const lines = Math.ceil((max ?? Math.max(...drawn.flatMap(finite))) / step - 1e-9) || 1;
  const top = step * lines;
  const scale = {
    x: (at: number) => box.left + (box.width * (at - range.startSeconds)) / (range.endSeconds - range.startSeconds),
    y: (value: number) => box.top + box.height * (1 - value / top),
  };
  const grid = Array.from({ length: lines + 1 }, (_, at) => {
    const value = step * at;
    const y = scale.y(value);
    return `<line x1="${box.left}" x2="${box.left + box.width}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="#d8dee4"/>${label(box.left - 6, y + 4, written(value, unit), `text-anchor="end" fill="${FAINT}"`)}`;
  });
  const paths = drawn.map((one, index) => {
    const path = pathOf(one.values, { ...scale, stepSeconds: range.stepSeconds, isStepped });
    const color = PALETTE[index % PALETTE.length];
    const area = isStacked ? `<path d="${areaOf(one, scale)}" fill="${color}" fill-opacity="0.3"/>` : '';
    return `${area}<path d="${path}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
  });
  const legend = legendOf(shown, { ...box, top: box.top + box.height + 30 }, panel);
  return [...grid, timeAxis(box, range), ...paths, legend].join('\n');
}

function drawStat({ panel, series }: PanelData, size: { width: number; height: number }): string {
  const { unit, decimals, thresholds } = panel.fieldConfig?.defaults ?? {};
  const value = (series[0] && finite(series[0]).at(-1)) ?? Number.NaN;
  const color = thresholds?.steps.findLast(({ value: from }) => from === null || value >= from)?.color ?? 'blue';
  const more = `text-anchor="middle" font-size="28" font-weight="600" fill="${COLORS[color] ?? TEXT}"`;
  return label(size.width / 2, size.height / 2 + 22, written(value, unit, decimals), more);
}

function drawStates({ panel, series }: PanelData, range: Range, size: { width: number; height: number }): string {
  const options = panel.fieldConfig?.defaults.mappings?.[0]?.options ?? {};
  const names = Math.max(...series.map(({ name }) => name.length)) * 6.5;
  const box = { left: 20 + names, top: 40, width: size.width - 40 - names, height: size.height - 100 };
  const height = box.height / series.length;
  const perSecond = box.width / (range.endSeconds - range.startSeconds + range.stepSeconds);
  const rows = series.map(({ name, values }, index) => {
    const y = box.top + height * index;
    const cells = values.map(([at, value]) => {
      const color = COLORS[options[String(value)]?.color ?? ''] ?? '#000000';
      const x = box.left + (at - range.startSeconds) * perSecond;
      return `<rect x="${x.toFixed(1)}" y="${(y + 3).toFixed(1)}" width="${(range.stepSeconds * perSecond + 0.3).toFixed(1)}" height="${(height - 6).toFixed(1)}" fill="${color}"/>`;
    });
    return `${label(box.left - 6, y + height / 2 + 4, name, 'text-anchor="end"')}${cells.join('')}`;
  });
  const texts = Object.values(options).map(
    ({ text, color }, index) =>
      `<rect x="${20 + index * 100}" y="${size.height - 27}" width="10" height="10" fill="${COLORS[color] ?? '#000000'}"/>${label(36 + index * 100, size.height - 18, text)}`,
  );
  return [...rows, timeAxis(box, range), ...texts].join('\n');
}

function drawTable({ panel, series }: PanelData, size: { width: number; height: number }): string {
  const { indexByName = {}, renameByName = {} } = panel.transformations?.[0]?.options ?? {};
  const names = Object.keys(indexByName).sort((a, b) => (indexByName[a] ?? 0) - (indexByName[b] ?? 0));
  const width = (size.width - 40) / names.length;
  const room = Math.floor(width / 6.8);
  const lines = [
    names.map((name) => renameByName[name] ?? name),
    ...series.map(({ labels, values }) =>
      names.map((name) => (name === 'Value' ? written(values.at(-1)?.[1] ?? Number.NaN) : (labels[name] ?? ''))),
    ),
  ];
  const cells = lines.slice(0, Math.floor((size.height - 50) / 20)).flatMap((line, row) =>
    line.map((text, column) => {
      const cut = text.length > room ? `${text.slice(0, room - 1)}…` : text;
      return label(20 + column * width, 56 + row * 20, cut, row === 0 ? `fill="${FAINT}"` : '');
    }),
  );
  return cells.join('\n');
}

/** A panel as an SVG of its own. */
export function drawPanel(data: PanelData, range: Range): string {
  const { panel } = data;
  const size = { width: panel.gridPos.w * COLUMN_PX - 10, height: panel.gridPos.h * ROW_PX - 10 };
  const inner =
    panel.type === 'stat'
      ? drawStat(data, size)
      : panel.type === 'state-timeline'
        ? drawStates(data, range, size)
        : panel.type === 'table'
          ? drawTable(data, size)
          : drawSeries(data, range, size);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" font-family="sans-serif" font-size="11" fill="${TEXT}">
<rect width="100%" height="100%" fill="#ffffff" stroke="#d0d7de"/>
${label(12, 20, panel.title, 'font-size="13" font-weight="600"')}
${inner}
</svg>
`;
}

/** A page with the panels of a dashboard where Grafana has them. `drawn`: SVGs by panel. */
export function drawPage(title: string, rows: readonly JsonPanel[], drawn: ReadonlyMap<JsonPanel, string>): string {
  const at = ({ x, y }: JsonPanel['gridPos']): string =>
    `position:absolute;left:${x * COLUMN_PX}px;top:${y * ROW_PX + 40}px`;
  const heads = rows.map(
    (row) => `<b style="${at(row.gridPos)};font:600 15px sans-serif">${escapeMarkup(row.title)}</b>`,
  );
  const panels = [...drawn].map(([panel, svg]) => `<div style="${at(panel.gridPos)}">${svg}</div>`);
  return `<!doctype html><meta charset="utf-8"><title>${escapeMarkup(title)}</title><body style="margin:10px 16px;position:relative;background:#f6f8fa"><h2 style="font:600 18px sans-serif">${escapeMarkup(title)}</h2>${heads.join('')}${panels.join('')}\n`;
}
