// Metrics of gateways over time, as a Prometheus would have scraped them, although minutes pass in milliseconds: every
// scrape of a run stands for one half a minute after the one before. Times that metrics name are moved with it.

import type { RunningGateway } from '../../support/gateway.js';

export const STEP_SECONDS = 30;
export const JOB = 'sallyport';

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const MS_PER_SECOND = 1000;

type Scrape = { readonly instance: string; readonly text: string };
type Step = { readonly atMs: number; readonly scrapes: readonly Scrape[] };

/** Where a moment of the run is in the time of the recording; both in seconds. */
function moveTime(steps: readonly Step[], startSeconds: number): (seconds: number) => number {
  const real = steps.map(({ atMs }) => atMs / MS_PER_SECOND);
  const first = real[0] ?? 0;
  return (seconds) => {
    if (seconds <= first) return startSeconds - (first - seconds);
    const next = real.findIndex((at) => at >= seconds);
    const last = real.at(-1) ?? first;
    if (next === -1) return startSeconds + (real.length - 1) * STEP_SECONDS + (seconds - last);
    const [before, after] = [real[next - 1] ?? first, real[next] ?? last];
    const share = after === before ? 0 : (seconds - before) / (after - before);
    return startSeconds + (next - 1 + share) * STEP_SECONDS;
  };
}

export type Recording = {
  /** Scrapes every gateway once. */
  scrape(): Promise<void>;
  /** What an instance said last. */
  newest(instance: string): string;
  /** Everything so far in the text format of OpenMetrics, as if it had ended then. */
  write(endSeconds: number): { readonly text: string; readonly startSeconds: number };
};

/** Records these gateways under the names of their instances. */
export function startRecording(gateways: ReadonlyMap<string, RunningGateway>): Recording {
  const steps: Step[] = [];
  return {
    async scrape() {
      const scrapes = [...gateways].map(async ([instance, gateway]) => ({ instance, text: await gateway.metrics() }));
      steps.push({ atMs: Date.now(), scrapes: await Promise.all(scrapes) });
    },
    newest: (instance) => steps.at(-1)?.scrapes.find((scrape) => scrape.instance === instance)?.text ?? '',
    write(endSeconds) {
      const startSeconds = endSeconds - (steps.length - 1) * STEP_SECONDS;
      const moved = moveTime(steps, startSeconds);
      const lines = steps.flatMap(({ scrapes }, index) =>
        scrapes.flatMap(({ instance, text }) =>
          text.split('\n').flatMap((line) => {
            const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
            if (name === '') return [];
            const isTime = /_(?:timestamp|time)_seconds$/.test(name) && Number(value) > 0;
            const all = [`job="${JOB}"`, `instance="${instance}"`, ...(labels === '' ? [] : [labels])].join(',');
            const at = startSeconds + index * STEP_SECONDS;
            return [`${name}{${all}} ${isTime ? moved(Number(value)) : value} ${at}`];
          }),
        ),
      );
      return { text: `${lines.join('\n')}\n# EOF\n`, startSeconds };
    },
  };
}
