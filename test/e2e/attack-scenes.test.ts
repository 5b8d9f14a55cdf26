// The attack scenes of the demo, each in this process with a gateway of its own: every outcome is as expected, the pages show
// what is printed now, and a scene whose protection is taken away says that it failed.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { comparableText, textOfPicture } from '../../scripts/pictures/terminal-svg.mjs';
import { ATTACK_SCENES } from '../../src/dev/attack-scenes.js';
import { type AttackScene, runScene } from '../../src/dev/attack-stage.js';
import { startGateway } from '../../src/gateway/gateway.js';
import { createLog } from '../../src/telemetry/log.js';
import { fetchPins } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';

const LONG = 120_000;
const IMAGES = join(import.meta.dirname, '../../docs/images');
const STALE = 'the picture shows something else: run node scripts/pictures/record.mjs';

/** What each scene rests on, and what stands there once it is taken away. */
const PROTECTIONS: { readonly [scene: string]: (text: string, port: number) => string } = {
  'capability-injection': (text) => text.replace('mode: strict', 'mode: off'),
  'tool-shadowing': (text) => text.replace('mode: strict', 'mode: off'),
  'malicious-definitions': (text) => text.replace('scan: block', 'scan: warn'),
  'poisoned-page': (text) =>
    text.replace('activeContent: neutralize, invisible: strip', 'activeContent: off, invisible: off'),
  'leak-inwards': (text) => text.replace('secrets: redact, pii: redact', 'secrets: off, pii: off'),
  'leak-outwards': (text) => text.replace('secrets: block', 'secrets: off').replace(/^labels:[\s\S]*$/m, ''),
  'path-escape': (text) => text.replace(/^ +when: .*$/m, ''),
  'confused-deputy': (text) => text.replace('who: {groups: [core]}', 'who: {groups: [core, contractors]}'),
  // Both at once, because no two servers may have the same audience.
  'misredeemed-token': (text, port) =>
    text
      .replace('weather:\n', `weather:\n    audiences: {dev: ["http://127.0.0.1:${port}/payroll"]}\n`)
      .replace('payroll:\n', `payroll:\n    audiences: {dev: ["http://127.0.0.1:${port}/weather"]}\n`),
  'sse-prefix': (text) =>
    text
      .replace('issuers: [dev]\n    path', 'authentication: none\n    path')
      .replace('groups: [pupils]', 'anyone: true'),
};

let folder: string;
beforeAll(async () => {
  // Without Python: the calculator is the stub, which the picture shows.
  vi.stubEnv('PATH', '');
  folder = await mkdtemp(join(tmpdir(), 'sallyport-scenes-'));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

async function play(scene: AttackScene, weaken?: (text: string, port: number) => string, byHand = false) {
  const port = await findFreePort();
  let printed = '';
  const code = await runScene(scene, {
    folder: await mkdtemp(join(folder, `${scene.name}-`)),
    port,
    hasColor: false,
    pin: (file) => fetchPins(file, {}, { byHand }),
    async start(file) {
      const log = createLog(() => undefined, 'error');
      const build = { version: '0.0.0-test', node: 'v24.0.0' };
      const started = await startGateway({ file, env: {}, log, build, writeStdout: async () => undefined });
      return started.kind === 'started' ? started : { why: JSON.stringify(started) };
    },
    write: (text) => {
      printed += text;
    },
    ...(weaken && { amend: (text: string) => weaken(text, port) }),
  });
  return { code, printed };
}

describe('an attack scene', () => {
  it.each(ATTACK_SCENES)(
    '[D-15] $name: works at the server, fails at the gateway, and says so where the protection is gone',
    async (scene) => {
      const { code, printed } = await play(scene);
      expect(printed).toMatch(/^✓ (\d+) of \1 outcomes as expected$/m);
      expect(code).toBe(0);
      for (const theme of ['dark', 'light']) {
        const picture = await readFile(join(IMAGES, `scene-${scene.name}-${theme}.svg`), 'utf8');
        expect(textOfPicture(picture), STALE).toBe(comparableText(printed));
      }
      for (const line of printed.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
      const weakened = await play(scene, PROTECTIONS[scene.name]);
      expect(weakened.printed).toMatch(/^\d+ of \d+ outcomes differ$/m);
      expect(weakened.printed).not.toMatch(/did not start|pin fetch ended|nothing was observed/);
      expect(weakened.code).toBe(1);
    },
    LONG,
  );

  it.each(ATTACK_SCENES.filter(({ approval }) => approval !== undefined))(
    '[D-15] $name: rests on what was left unapproved, and fails once a person approves it',
    async (scene) => {
      const { code, printed } = await play(scene, undefined, true);
      expect(printed).toMatch(/^\d+ of \d+ outcomes differ$/m);
      expect(printed).toContain('expected: vault_secure_storage_service');
      expect(code).toBe(1);
    },
    LONG,
  );
});
