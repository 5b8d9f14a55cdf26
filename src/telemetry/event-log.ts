// Which event becomes which line of the process log, and at which level.

import type { ControlState, GatewayEvents, Listeners } from '../policy/events.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import type { ApprovalChange } from '../policy/security-events.js';
import type { MaskText } from '../text/escaping.js';
import { errorCode, fullDurationText } from '../text/wording.js';
import type { Log, LogFields } from './log.js';

const CONTROL_LINES: { readonly [state in ControlState]: string } = {
  armed: 'control is armed',
  degraded: 'control is degraded',
  off: 'control is off',
};

const CONNECTION_LINES: { readonly [what in GatewayEvents['connectionFailed']['what']]: string } = {
  credentials: 'credentials for an upstream could not be obtained',
  connection: 'connection to an upstream failed',
};

const APPROVAL_LINES: { readonly [change in ApprovalChange]: string } = {
  requested: 'approval requested',
  granted: 'approval granted',
  denied: 'approval denied',
  expired: 'approval expired',
  used: 'approval used',
  void: 'approval is void',
};

const DIAGNOSTIC_LEVELS = { error: 'error', warning: 'warn', note: 'info' } as const;

const NO_THREAD =
  'until one starts, long texts are inspected on the main thread, which delays all other requests, or are withheld if a thread does not respond while starting';

function driftLine({ kind, isPinned }: GatewayEvents['drifted']): string {
  if (kind === 'server') return 'upstream reports another name of its server';
  return isPinned ? 'definition differs from its pin' : 'definition has no pin';
}

function suppressedField(suppressed: number): LogFields {
  return suppressed > 0 ? { suppressed } : {};
}

/** At the level of its reason. */
function logRefusal(log: Log, record: RequestRecord, reason: Reason, suppressed: number): void {
  const { upstream, id, decision, trace } = record;
  const { stage, detail } = decision;
  log.write(REASONS[reason].level, 'request refused', {
    ...{ upstream, decision: id, reason, stage },
    ...(trace !== undefined && { trace: trace.traceId }),
    ...(detail !== undefined && { detail }),
    ...suppressedField(suppressed),
  });
}

/** `mask` is for names that an upstream chose, in addition to what the log masks itself. */
export function createLogListeners(log: Log, mask: MaskText): Listeners {
  return {
    ended({ record, suppressed }) {
      const [reason] = record.decision.reasons;
      if (reason !== undefined && suppressed !== undefined) logRefusal(log, record, reason, suppressed);
    },
    failed: ({ decision, trace, error }) =>
      log.write('error', 'request failed', {
        ...{ decision, code: errorCode(error) },
        ...(trace !== undefined && { trace: trace.traceId }),
      }),

    approval({ change, approval, answer, decisionId = approval.decisionId }) {
      const { id, subject, demand } = approval;
      const party = answer === undefined ? '' : `by the ${answer.party}; `;
      log.write(change === 'used' ? 'debug' : 'info', APPROVAL_LINES[change], {
        ...{ upstream: subject.upstream, decision: decisionId, approval: id },
        detail: `${party}${demand.rules.join(', ')}`,
      });
    },

    reachable({ pins, protocols, ...at }) {
      const fields = { ...at, protocol: protocols.join(', ') };
      if (pins === undefined) {
        log.write('info', 'upstream is reachable', { ...fields, detail: 'pinning is off' });
        return;
      }
      log.write('info', 'upstream is reachable', {
        ...fields,
        pinned: pins.get('approved') ?? 0,
        pending: pins.get('pending') ?? 0,
        unpinned: pins.get('unpinned') ?? 0,
        changed: pins.get('changed') ?? 0,
      });
    },
    unlisted: (fields) => log.write('warn', 'upstream could not be listed', fields),
    partlyListed: (fields) => log.write('warn', 'part of a listing cannot be used', fields),
    hanging({ upstream, isHanging }) {
      if (isHanging) log.write('warn', 'upstream hangs: requests are refused at once until it answers', { upstream });
      else log.write('info', 'upstream no longer hangs', { upstream });
    },
    sessionReopened: (fields) => log.write('info', 'session was lost by the upstream and opened anew', fields),
    connectionFailed: ({ what, ...fields }) => log.write('error', CONNECTION_LINES[what], fields),
    loginImpossible: (fields) => log.write('warn', 'nobody can log in to answer an approval', fields),
    loginRefused: ({ suppressed, ...fields }) =>
      log.write('warn', 'a login to answer an approval was refused', { ...fields, ...suppressedField(suppressed) }),
    issuerIncomplete: (fields) => log.write('warn', 'part of the keys or metadata of an issuer cannot be used', fields),

    reviewersNotified({ outcome, webhook, detail }) {
      if (outcome === 'delivered') return;
      log.write('warn', 'reviewers were not told of a request that waits', {
        ...{ name: webhook, state: outcome },
        ...(detail === undefined ? {} : { detail }),
      });
    },

    drifted(event) {
      const { upstream, kind, name, change, suppressed } = event;
      if (suppressed === undefined) return;
      const fields = { upstream, kind, name: mask(name), detail: change };
      log.write('warn', driftLine(event), { ...fields, ...suppressedField(suppressed) });
    },
    serverUpdated: (fields) => log.write('info', 'upstream reports another version of its server', fields),
    found({ upstream, kind, name, found, isGrave, reason, suppressed }) {
      if (suppressed === undefined || !isGrave) return;
      const fields = { upstream, kind, name: mask(name), detail: `${found}: ${reason}` };
      const line = 'the scan found a reason to withhold a definition that nobody approved';
      log.write('warn', line, { ...fields, ...suppressedField(suppressed) });
    },
    unusable: ({ name, ...fields }) => log.write('warn', 'definition cannot be used', { ...fields, name: mask(name) }),
    driftUnreported: ({ upstream, error }) =>
      log.write('error', 'drift could not be reported', { upstream, code: errorCode(error) }),

    reloaded({ why, diagnostics, waiting }) {
      for (const { file, line, message, severity } of diagnostics)
        log.write(DIAGNOSTIC_LEVELS[severity], `configuration ${severity}`, { file, line, detail: message });
      if (why === undefined) log.write('info', 'configuration reloaded');
      else log.write('error', 'configuration reload rejected; the previous version stays in force', { detail: why });
      if (waiting !== undefined) log.write('warn', 'configuration waits for a restart', { detail: waiting });
    },
    filesUnwatched: ({ error }) =>
      log.write('error', 'configuration files could not be read again', { code: errorCode(error) }),
    controlChanged({ control, state, reason, isExpected, isRoutine }) {
      // What is off was turned off by the configuration.
      const changed = state === 'degraded' && !isExpected ? 'warn' : 'info';
      log.write(isRoutine ? 'debug' : changed, CONTROL_LINES[state], {
        control,
        state,
        ...(reason && { detail: reason }),
      });
    },
    workerThread({ isThere }) {
      if (isThere) log.write('info', 'inspection worker thread started again');
      else log.write('warn', 'inspection worker thread could not be started', { detail: NO_THREAD });
    },
    nodeOutdated: ({ detail }) => log.write('warn', 'this version of Node gets no security fixes', { detail }),
    storeYoung: ({ reason }) =>
      log.write('warn', 'the shared store has no history for flows and budgets yet', { detail: reason }),
    started: ({ version, file }) => log.write('info', 'gateway started', { detail: `version ${version}`, file }),
    readinessChanged({ isReady, detail, isExpected }) {
      const level = detail === '' || isExpected ? 'info' : 'warn';
      log.write(level, isReady ? 'gateway is ready' : 'gateway is not ready', detail === '' ? {} : { detail });
    },
    stopping({ delayMs, drainMs }) {
      const accepting = delayMs > 0 ? `requests are accepted for ${fullDurationText(delayMs)} more; then ` : '';
      log.write('info', 'gateway is stopping', {
        detail: `${accepting}requests in progress have ${fullDurationText(drainMs)} to finish`,
      });
    },
    stopped: () => log.write('info', 'gateway stopped'),
  };
}
