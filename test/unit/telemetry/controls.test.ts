import { describe, expect, it } from 'vitest';
import { createEvents } from '../../../src/policy/events.js';
import { createControls } from '../../../src/telemetry/controls.js';
import { NOW } from '../audit/samples.js';

describe('createControls', () => {
  it('[O-51] shows each control, its state, why, and since when', () => {
    let nowMs = NOW;
    const notified: string[] = [];
    const controls = createControls({
      now: () => nowMs,
      emit: createEvents(
        [
          {
            controlChanged: ({ control, state }) => void notified.push(`${control} ${state}`),
            controlRemoved: ({ control }) => void notified.push(`${control} removed`),
          },
        ],
        () => undefined,
      ).emit,
    });
    controls.set('policy', 'armed');
    controls.set('authn:corp', 'armed');
    nowMs += 1000;
    controls.set('policy', 'armed');
    controls.set('authn:corp', 'degraded', 'keys not refreshed');
    nowMs += 1000;
    controls.set('authn:corp', 'degraded', 'keys gone');
    controls.set('admin', 'off', 'not configured');
    controls.remove('policy');
    expect(controls.snapshot()).toEqual([
      {
        control: 'admin',
        state: 'off',
        reason: 'not configured',
        since: '2026-11-20T09:30:02.123Z',
      },
      {
        control: 'authn:corp',
        state: 'degraded',
        reason: 'keys gone',
        since: '2026-11-20T09:30:01.123Z',
      },
    ]);
    expect(notified).toEqual([
      'policy armed',
      'authn:corp armed',
      'authn:corp degraded',
      'authn:corp degraded',
      'admin off',
      'policy removed',
    ]);
  });
});
