// What the dashboards of config/grafana are made of: queries with the selection of the variables, panels of three kinds,
// and a dashboard with its variables, by Grafana's own builders. Pure.

import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphDrawStyle,
  LegendDisplayMode,
  LegendPlacement,
  LineInterpolation,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  FieldColorBuilder,
  FieldColorModeId,
  MappingType,
  type Panel,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as StateBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as SeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

const SOURCE = { type: 'prometheus', uid: '$datasource' };
const COLUMNS = 24;
const HEIGHT = 8;
const STAT_HEIGHT = 4;
/** Columns of a panel that does not say. */
const WIDTHS = { series: 8, stat: 4, states: 12, table: 12 } as const;

type Color = 'green' | 'yellow' | 'orange' | 'red' | 'blue' | 'gray';

/** An expression with its legend. `{own` stands for the selected gateways, `{at` for those and the selected upstreams. */
export type Query = { readonly expr: string; readonly legend: string };

type Common = {
  readonly title: string;
  /** What it shows that its title does not say. */
  readonly description?: string;
  /** One of Grafana's names of units. */
  readonly unit: string;
  /** Of 24 columns. */
  readonly width?: number;
};

/** Lines over time. */
export type SeriesPanel = Common & {
  readonly kind: 'series';
  readonly queries: readonly Query[];
  readonly isStacked?: boolean;
  /** The value stays until the next one. */
  readonly isStepped?: boolean;
  readonly max?: number;
};

/** The newest value, coloured from a value on. */
export type StatPanel = Common & {
  readonly kind: 'stat';
  readonly expr: string;
  readonly colors: readonly (readonly [from: number | null, Color])[];
  readonly decimals?: number;
};

/** What a few values mean, over time. */
export type StatePanel = Omit<Common, 'unit'> & {
  readonly kind: 'states';
  readonly queries: readonly Query[];
  readonly states: Readonly<Record<number, readonly [text: string, Color]>>;
};

/** The labels of the series that there are now. */
export type TablePanel = Omit<Common, 'unit'> & {
  readonly kind: 'table';
  readonly expr: string;
  /** The labels to show, with their titles; `Value` is the value. */
  readonly columns: Readonly<Record<string, string>>;
};

export type PanelSpec = SeriesPanel | StatPanel | StatePanel | TablePanel;
export type RowSpec = { readonly title: string; readonly panels: readonly PanelSpec[] };
export type DashboardSpec = {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly rows: readonly RowSpec[];
};

/** Stands in the first row of every dashboard on which somebody looks for what is wrong. */
export const DEGRADED_CONTROLS: StatPanel = {
  kind: 'stat',
  title: 'Degraded controls',
  unit: 'short',
  expr: 'sum(sallyport_controls{own, state="degraded"})',
  colors: [
    [null, 'green'],
    [1, 'yellow'],
  ],
};

const OWN = 'job=~"$job", instance=~"$instance"';
const AT = `${OWN}, upstream=~"$upstream"`;

/** Puts the selection of the variables into an expression. */
export function select(expr: string): string {
  return expr.replaceAll(/\{own\b/g, `{${OWN}`).replaceAll(/\{at\b/g, `{${AT}`);
}

/** The quantiles of a histogram, a query each. `by`: further labels, of which the legend shows the first. */
export function quantiles(metric: string, shares: readonly number[], by: readonly string[] = []): readonly Query[] {
  return shares.map((share) => ({
    expr: `histogram_quantile(${share}, sum by (${[...by, 'le'].join(', ')}) (rate(${metric}_bucket{${by.includes('upstream') ? 'at' : 'own'}}[$__rate_interval])))`,
    legend: [...by.map((label) => `{{${label}}}`), `p${share * 100}`].join(' '),
  }));
}

const REFS = ['A', 'B', 'C', 'D', 'E', 'F'];

function rangeQuery({ expr, legend }: Query, at: number): DataqueryBuilder {
  return new DataqueryBuilder()
    .datasource(SOURCE)
    .refId(REFS[at] ?? '')
    .expr(select(expr))
    .legendFormat(legend)
    .range();
}

function instantQuery(expr: string): DataqueryBuilder {
  return new DataqueryBuilder()
    .datasource(SOURCE)
    .refId('A')
    .expr(select(expr))
    .format(PromQueryFormat.Table)
    .instant();
}

function widthOf({ kind, width }: PanelSpec): number {
  return width ?? WIDTHS[kind];
}

const TOOLTIP = new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending);

function buildSeries(panel: SeriesPanel): SeriesBuilder {
  const { queries, isStacked = false, isStepped = false, max } = panel;
  const legend = new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.Table)
    .placement(LegendPlacement.Bottom)
    .showLegend(true)
    .calcs(widthOf(panel) < WIDTHS.series ? ['lastNotNull'] : ['mean', 'max', 'lastNotNull']);
  const built = new SeriesBuilder()
    .unit(panel.unit)
    .min(0)
    .height(HEIGHT)
    .span(widthOf(panel))
    .drawStyle(GraphDrawStyle.Line)
    .lineInterpolation(isStepped ? LineInterpolation.StepAfter : LineInterpolation.Linear)
    .lineWidth(1)
    .fillOpacity(isStacked ? 40 : 8)
    .showPoints(VisibilityMode.Never)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName))
    .stacking(new StackingConfigBuilder().mode(isStacked ? StackingMode.Normal : StackingMode.None).group('A'))
    .legend(legend)
    .tooltip(TOOLTIP)
    .targets(queries.map(rangeQuery));
  return max === undefined ? built : built.max(max);
}

function buildStat(panel: StatPanel): StatBuilder {
  const { unit, expr, colors, decimals } = panel;
  const steps = colors.map(([value, color]) => ({ value, color }));
  const built = new StatBuilder()
    .unit(unit)
    .height(STAT_HEIGHT)
    .span(widthOf(panel))
    .noValue('none')
    .graphMode(BigValueGraphMode.Area)
    .colorMode(BigValueColorMode.Value)
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.Thresholds))
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
    .reduceOptions(new ReduceDataOptionsBuilder().values(false).calcs(['lastNotNull']).fields(''))
    .targets([rangeQuery({ expr, legend: '' }, 0)]);
  return decimals === undefined ? built : built.decimals(decimals);
}

function mappingOf(states: StatePanel['states']): ValueMapping {
  const options = Object.entries(states).map(([value, [text, color]], index) => [value, { text, color, index }]);
  return { type: MappingType.ValueToText, options: Object.fromEntries(options) };
}

function buildStates(panel: StatePanel): StateBuilder {
  return new StateBuilder()
    .height(HEIGHT)
    .span(widthOf(panel))
    .mergeValues(true)
    .showValue(VisibilityMode.Never)
    .fillOpacity(70)
    .lineWidth(0)
    .mappings([mappingOf(panel.states)])
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true)
        .calcs([]),
    )
    .tooltip(TOOLTIP)
    .targets(panel.queries.map(rangeQuery));
}

function buildTable(panel: TablePanel): TableBuilder {
  const { expr, columns } = panel;
  const names = Object.keys(columns);
  const organize = {
    id: 'organize',
    options: {
      excludeByName: { Time: true, ...(names.includes('Value') ? {} : { Value: true }) },
      indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
      renameByName: columns,
    },
  };
  return new TableBuilder()
    .height(HEIGHT)
    .span(widthOf(panel))
    .targets([instantQuery(expr)])
    .withTransformation(organize);
}

function buildPanel(panel: PanelSpec) {
  switch (panel.kind) {
    case 'series':
      return buildSeries(panel);
    case 'stat':
      return buildStat(panel);
    case 'states':
      return buildStates(panel);
    case 'table':
      return buildTable(panel);
  }
}

function variable(name: string, label: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .datasource(SOURCE)
    .query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ selected: true, text: 'All', value: '$__all' });
}

/** Every panel has an id of its own, in their order, so that links to one stay. */
function withIds(dashboard: Dashboard): Dashboard {
  const panels = (dashboard.panels ?? []).map((panel, index) => ({ ...panel, id: index + 1 }) as Panel);
  return { ...dashboard, panels };
}

/** Puts rows, panels and variables together. */
export function buildDashboard({ uid, title, description, rows }: DashboardSpec): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['sallyport'])
    .timezone('browser')
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: 'now-6h', to: 'now' })
    .refresh('1m')
    .link(
      new DashboardLinkBuilder('Sallyport')
        .type(DashboardLinkType.Dashboards)
        .tags(['sallyport'])
        .asDropdown(false)
        .keepTime(true)
        .includeVars(true),
    )
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(variable('job', 'Job', 'label_values(sallyport_build_info, job)'))
    .withVariable(variable('instance', 'Gateway', 'label_values(sallyport_build_info{job=~"$job"}, instance)'))
    .withVariable(variable('upstream', 'MCP server', `label_values(sallyport_decisions_total{${OWN}}, upstream)`));
  for (const row of rows) {
    const width = row.panels.reduce((sum, panel) => sum + widthOf(panel), 0);
    if (width % COLUMNS !== 0)
      throw new Error(`the panels of "${row.title}" do not fill their lines: ${width} columns`);
    builder.withRow(new RowBuilder(row.title));
    for (const panel of row.panels) {
      const built = buildPanel(panel).title(panel.title).datasource(SOURCE);
      builder.withPanel(panel.description === undefined ? built : built.description(panel.description));
    }
  }
  return withIds(builder.build());
}
