import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { run } from './programs.js';

let upstream: Awaited<ReturnType<typeof startDemoUpstream>>;
let running: RunningGateway;

beforeAll(async () => {
  upstream = await startDemoUpstream({});
  running = await startTestGateway({ upstreams: [{ name: 'desk', url: upstream.url }] });
});

afterAll(async () => {
  await running?.close();
  await upstream?.close();
});

describe('the metrics', () => {
  it('[R-20] pass promtool, but for the process defaults of the library', async () => {
    await fetch(running.url('desk'), { method: 'POST' });
    const text = await running.metrics();
    const own = text
      .split('\n')
      .filter((line) => /^(# (HELP|TYPE) )?(sallyport_|mcp_)/.test(line))
      .join('\n');
    expect(own).toContain('sallyport_controls');
    const checked = await run('promtool', ['check', 'metrics'], { input: `${own}\n` });
    expect(checked.stderr).toBe('');
    expect(checked.code).toBe(0);
  });
});
