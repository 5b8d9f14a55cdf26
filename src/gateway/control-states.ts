// Says of every control whether it is armed, from what the parts report of themselves. A control that is
// weaker than configured is `degraded`, one that the configuration turns off is `off`; both say why.

import type { InspectionProfile, Settings } from '../config/settings.js';
import type { Controls } from '../observe/controls.js';
import type { Metrics } from '../observe/metrics.js';
import type { Identity } from './identity.js';
import type { UpstreamRuntime } from './upstream-runtime.js';

export type ControlSources = {
  readonly settings: Settings;
  readonly identity: Identity;
  readonly runtimes: Iterable<UpstreamRuntime>;
  /** `undefined` while every sink works. */
  readonly auditFault: string | undefined;
};

const MS_PER_SECOND = 1000;

/** Brings the table of controls, and the metrics that say the same, up to date. */
export function refreshControls(
  controls: Controls,
  metrics: Metrics,
  sources: ControlSources,
): void {
  const { settings, identity } = sources;
  controls.set('edge', 'armed');
  controls.set('policy', 'armed');
  controls.set('metrics', 'armed');
  controls.set(
    'admin',
    settings.admin === undefined ? 'off' : 'armed',
    settings.admin === undefined ? 'not configured' : '',
  );
  const fault = sources.auditFault;
  const isBlocking = settings.audit.onFailure === 'block';
  if (fault !== undefined) controls.set('audit', 'degraded', fault);
  else
    controls.set(
      'audit',
      isBlocking ? 'armed' : 'degraded',
      isBlocking ? '' : 'calls pass unrecorded when it fails (onFailure: continue)',
    );
  for (const [name, source] of identity.keySources) {
    const { state, failure, lastSuccessAt } = source.status();
    controls.set(`authn:${name}`, state, failure ?? (state === 'armed' ? '' : 'no keys yet'));
    if (lastSuccessAt !== undefined) metrics.jwksSuccess(name, lastSuccessAt / MS_PER_SECOND);
  }
  for (const profile of settings.profiles.values()) setProfile(controls, profile);
  for (const runtime of sources.runtimes) setPins(controls, runtime);
}

/** Takes out the controls of what a reload removed. */
export function removeControls(controls: Controls, before: Settings, after: Settings): void {
  for (const name of before.issuers.keys())
    if (!after.issuers.has(name)) controls.remove(`authn:${name}`);
  for (const name of before.upstreams.keys())
    if (!after.upstreams.has(name)) controls.remove(`pins:${name}`);
  for (const name of before.profiles.keys())
    if (!after.profiles.has(name)) controls.remove(`inspection:${name}`);
}

function setProfile(controls: Controls, { name, request, result }: InspectionProfile): void {
  const actions = {
    'request secrets': request.secrets,
    secrets: result.secrets,
    pii: result.pii.action,
    activeContent: result.activeContent,
    invisible: result.invisible,
    injection: result.injection,
  };
  const off = Object.entries(actions).flatMap(([family, action]) =>
    action === 'off' ? [family] : [],
  );
  if (off.length === 0) return controls.set(`inspection:${name}`, 'armed');
  controls.set(
    `inspection:${name}`,
    off.length === Object.keys(actions).length ? 'off' : 'degraded',
    `off: ${off.join(', ')}`,
  );
}

function setPins(controls: Controls, runtime: UpstreamRuntime): void {
  const { name, pinning } = runtime.settings;
  if (pinning.mode === 'off') controls.set(`pins:${name}`, 'off', 'pinning.mode is off');
  else if (runtime.isFresh()) controls.set(`pins:${name}`, 'armed');
  else
    controls.set(
      `pins:${name}`,
      'degraded',
      'the definitions were not verified within pinning.maxAge',
    );
}
