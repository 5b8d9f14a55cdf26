// The scripted tour of the demo: real MCP calls through the gateway, each announced before it is made and
// compared after, then the audit of what just happened. Ends with how many outcomes were as announced.

import type { Check, Scene, Stage } from './tour-checks.js';
import {
  announceScene,
  createPaint,
  type Paint,
  printAudit,
  printCheck,
  quiet,
} from './tour-print.js';
import { SCENES } from './tour-scenes.js';

/** What the tour plays on and where it is shown. */
export type TourPorts = Stage & {
  /** Every line of the audit log so far, without line ends, oldest first. */
  readAudit(): Promise<readonly string[]>;
  write(text: string): void;
  /** False without a terminal and where NO_COLOR is set. */
  readonly hasColor: boolean;
};

/** How the tour ended: 0 when every outcome was as announced, else 1. */
export type TourExit = 0 | 1;

async function play(scene: Scene, ports: TourPorts): Promise<readonly Check[]> {
  try {
    return await scene.run(ports);
  } catch (error) {
    const seen = error instanceof Error ? error.message : 'an unknown failure';
    return [{ what: 'the scene could be played', holds: false, seen }];
  }
}

function summary(paint: Paint, failed: readonly Scene[], total: number): string {
  if (failed.length === 0) {
    return `\n${paint.good('✓')} ${paint.bold(`${total} of ${total} outcomes as announced`)}\n`;
  }
  const titles = failed.map((scene) => `  ${paint.bad('✗')} ${scene.title}\n`).join('');
  return `\n${paint.bad(`${failed.length} of ${total} outcomes differ`)}\n${titles}`;
}

/**
 * Plays every scene, prints as it goes, and leaves the upstream behaving. Resolves with the exit code;
 * a scene that throws counts as an outcome that differs.
 */
export async function runTour(ports: TourPorts): Promise<TourExit> {
  const paint = createPaint(ports.hasColor);
  const before = (await ports.readAudit()).length;
  ports.write(`${paint.bold('Sallyport')} at ${quiet(ports.url)}\n`);
  const failed: Scene[] = [];
  for (const [index, scene] of SCENES.entries()) {
    ports.write(announceScene(paint, index + 1, scene));
    const checks = await play(scene, ports);
    for (const check of checks) ports.write(printCheck(paint, check));
    if (checks.some((check) => !check.holds)) failed.push(scene);
  }
  ports.upstream.behave();
  const lines = (await ports.readAudit()).slice(before);
  ports.write(
    `\n${paint.bold('What the audit log says')} ${paint.dim(`(${lines.length} lines)`)}\n`,
  );
  ports.write(printAudit(paint, lines));
  ports.write(summary(paint, failed, SCENES.length));
  return failed.length === 0 ? 0 : 1;
}
