import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { createHistogram } from '../../../src/telemetry/metrics.js';

const ABOUT = { name: 'wait_seconds', help: 'How long.', labelNames: ['who'] };

describe('createHistogram', () => {
  it('renders cumulative buckets, the sum and the count of each series', async () => {
    const registry = new Registry();
    const { series, clear } = createHistogram(ABOUT, [0.1, 1], registry);
    const one = series(['a "quoted" name']);
    for (const value of [0.1, 0.05, 0.5, 7, Number.NaN]) one.observe(value);
    series(['idle']);
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
