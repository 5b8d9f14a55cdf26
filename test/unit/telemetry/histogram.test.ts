import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { createFamily } from '../../../src/telemetry/metrics.js';

const ROW = { kind: 'histogram', help: 'How long.', labels: ['who'], buckets: [0.1, 1] } as const;

describe('a histogram', () => {
  it('renders cumulative buckets, the sum and the count of each series', async () => {
    const registry = new Registry();
    const { write, clear } = createFamily('wait_seconds', ROW, registry, 10);
    for (const value of [0.1, 0.05, 0.5, 7, Number.NaN]) write(value, 'a "quoted" name');
    write(Number.NaN, 'idle');
    expect(await registry.metrics()).toBe(
      [
        '# HELP wait_seconds How long.',
        '# TYPE wait_seconds histogram',
        'wait_seconds_bucket{le="0.1",who="a \\"quoted\\" name"} 2',
        'wait_seconds_bucket{le="1",who="a \\"quoted\\" name"} 3',
        'wait_seconds_bucket{le="+Inf",who="a \\"quoted\\" name"} 4',
        'wait_seconds_sum{who="a \\"quoted\\" name"} 7.65',
        'wait_seconds_count{who="a \\"quoted\\" name"} 4',
        'wait_seconds_bucket{le="0.1",who="idle"} 0',
        'wait_seconds_bucket{le="1",who="idle"} 0',
        'wait_seconds_bucket{le="+Inf",who="idle"} 0',
        'wait_seconds_sum{who="idle"} 0',
        'wait_seconds_count{who="idle"} 0',
        '',
      ].join('\n'),
    );
    clear();
    expect(await registry.metrics()).not.toContain('_bucket');
  });
});
