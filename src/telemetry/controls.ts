// The table of controls: whether each is armed, from the states that the components report. A control that is weaker
// than configured is `degraded`, one that the configuration turns off is `off`; both carry a reason. Metrics and the
// admin listener show the table. Nothing is turned on or off here.

import { isLoopbackHost } from '../config/checks/addresses.js';
import { BUILT_IN_PROFILES } from '../config/profiles.js';
import type {
  AdminSettings,
  AggregateSettings,
  InspectionProfile,
  IssuerSettings,
  Network,
  Settings,
  UpstreamSettings,
} from '../config/settings.js';
import type { ApprovalTerms } from '../policy/approval.js';
import { BLOCK_TARGETS, type BlockTarget } from '../policy/blocks.js';
import type { ControlState, Emit, EventName } from '../policy/events.js';
import type { Shadow } from '../policy/rules.js';
import type { StoreStatus } from '../state/memory.js';
import { type Block, endOf } from '../state/revocations.js';
import { countOf, firstOf, sizeText } from '../text/wording.js';

/**
 * A control by name; one of several with what it protects: an issuer, an upstream, a profile, an aggregate, a listener.
 */
type ControlName =
  | 'policy'
  | 'configuration'
  | 'audit'
  | 'metrics'
  | 'admin'
  | 'edge'
  | 'store'
  | 'pin-signatures'
  | 'blocks'
  | 'budgets'
  | 'approvals'
  | 'tracing'
  | `authn:${string}`
  | `audience:${string}`
  | `pins:${string}`
  | `upstream-connection:${string}`
  | `upstream-credentials:${string}`
  | `upstream-identity:${string}`
  | `binding:${string}`
  | 'tls:data'
  | 'audit-space'
  | `audit-delivery:${string}`
  | `inspection:${string}`
  | `endpoint:${string}`;

/** A row of the table of controls. */
export type ControlRow = {
  readonly control: string;
  readonly state: ControlState;
  /**
   * Why it is not armed, or what it promises while it is; mostly empty when it is armed. Fixed texts, of a rejected
   * reload the first error in the files, and of blocks what administrators wrote.
   */
  readonly reason: string;
  /** RFC 3339: since when it is in this state. */
  readonly since: string;
};

export interface Controls {
  set(control: ControlName, state: ControlState, reason?: string): void;
  /** Removes a control that is no longer configured. */
  remove(control: ControlName): void;
  /** All controls, sorted by name. */
  snapshot(): readonly ControlRow[];
}

type ControlPorts = {
  readonly now: () => number;
  readonly emit: Emit;
};

/** Creates an empty table. Every change of a state or a reason is an event. */
export function createControls({ now, emit }: ControlPorts): Controls {
  const rows = new Map<string, ControlRow>();
  return {
    set(control, state, reason = '') {
      const known = rows.get(control);
      if (known?.state === state && known.reason === reason) return;
      const since = known?.state === state ? known.since : new Date(now()).toISOString();
      const row = { control, state, reason, since };
      rows.set(control, row);
      const isExpected = isUnlisted(row);
      const isRoutine = isExpected || (state !== 'degraded' && (known === undefined || isUnlisted(known)));
      emit('controlChanged', { control, state, reason, isExpected, isRoutine });
    },
    remove(control) {
      if (rows.delete(control)) emit('controlRemoved', { control });
    },
    snapshot: () => [...rows.values()].sort((a, b) => (a.control < b.control ? -1 : 1)),
  };
}

/** Whether a control waits for the first listing, as at every start. */
function isUnlisted({ reason }: Pick<ControlRow, 'reason'>): boolean {
  return reason === NOT_LISTED_YET;
}

/** The controls of a start in one line; the degraded ones are logged by name. */
export function countControls(rows: readonly ControlRow[]): string {
  const waiting = rows.filter(isUnlisted).length;
  const of = (state: ControlState): number => rows.filter((row) => row.state === state && !isUnlisted(row)).length;
  const parts = [`${of('armed')} armed`, `${of('degraded')} degraded`, `${of('off')} off`];
  if (waiting > 0) parts.push(`${waiting} known after the first listing`);
  return `controls: ${parts.join(', ')}`;
}

/** A control in one line. */
export function describeControl({ control, state, reason }: ControlRow): string {
  return `control ${control} is ${state}${reason === '' ? '' : `: ${reason}`}`;
}

type IssuerStatus = {
  readonly state: ControlState;
  readonly failure?: string | undefined;
  readonly lastSuccessAt?: number | undefined;
  readonly isDevelopment?: boolean;
};

/** An issuer, with the state of its keys or of its introspection. `lastSuccessAt`: milliseconds since the epoch. */
type IssuerStatuses = {
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  statuses(): ReadonlyMap<string, IssuerStatus>;
  hidesPersons(issuer: string): boolean;
};

type UpstreamStatus = {
  readonly settings: UpstreamSettings;
  readonly presenter: { states(): readonly { readonly state: ControlState; readonly detail: string }[] };
  /** What is trusted because it was offered first, in words. */
  readonly firstUse: { describe(): string };
  /** `undefined` before the first listing. */
  observed(): object | undefined;
  isFresh(): boolean;
  isUp(): boolean;
  readonly breaker?: { readonly status: { readonly isOpen: boolean } };
  /** What of the last listings could not be read, one clause each. */
  listingNotes(): readonly string[];
};

export type ControlSources = {
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly settings: Settings;
  readonly identity: IssuerStatuses;
  readonly runtimes: { get(upstream: string): UpstreamStatus | undefined; all(): Iterable<UpstreamStatus> };
  readonly aggregates: { countHidden(name: string): number };
  /** `undefined` while every sink works. */
  readonly auditError: string | undefined;
  /** The space of the volumes of the audit files, by sink. */
  readonly auditSpace: ReadonlyMap<string, { readonly freeBytes: number; readonly totalBytes: number }>;
  /** The receivers of audit lines. */
  readonly deliveries: readonly DeliverySource[];
  /** Why the pins of an upstream are not as they should be, in words; empty if they are. */
  readonly describePins: (upstream: UpstreamSettings) => readonly string[];
  /** Why the last reload was rejected; `undefined` if the files are those in force. */
  readonly reloadError: string | undefined;
  /** What of the files waits for a restart, and which files are lost, in words. */
  readonly unsettled: readonly string[];
  /** What a change of files cannot bring about, in words; empty if there is nothing. */
  readonly fixed: string;
  readonly store: StoreStatus;
  /** The upstreams whose lock file was refused at the last reload because of its signatures. */
  readonly unsigned: ReadonlySet<string>;
  /** Why the counters of lock files do not outlive the process; `undefined` if they do. */
  readonly counterError: string | undefined;
  /** The policies in force that are not enforced. */
  readonly shadow: Shadow | undefined;
  readonly blocks: readonly Block[];
  /** Why spans do not arrive; `undefined` while they do. */
  readonly tracingError: string | undefined;
  /** The events for which a listener has thrown. */
  readonly listenerErrors: Iterable<EventName>;
  /** The names of the budgets of all policies. */
  readonly budgets: readonly string[];
  /** The rules and flows in force that ask a person, and whom. */
  readonly approvals: readonly ApprovalRule[];
};

type DeliverySource = {
  readonly name: string;
  /** The first file that is delivered. */
  readonly from: string | undefined;
  /** Without TLS in a private network. */
  readonly isPlain: boolean;
  /** Why lines wait. */
  readonly error: string | undefined;
  readonly waitingBytes: number;
  /** When the oldest line was written that waits, in milliseconds since the epoch. */
  readonly waitingSinceMs: number | undefined;
  /** Since when it has lacked lines without a break. */
  readonly behindSinceMs: number | undefined;
  /** When it took something last. */
  readonly takenAtMs: number | undefined;
  readonly refused: { readonly count: number; readonly why: string } | undefined;
};

/** `rule`: `policy/rule` or `policy/flow`. */
export type ApprovalRule = { readonly rule: string; readonly terms: ApprovalTerms };

const MS_PER_SECOND = 1000;
/** Why a control is degraded at every start, until the first listing ends. */
const NOT_LISTED_YET = 'the upstream has not been listed yet';

/** Brings the table of controls up to date, and reports what metrics repeat of it. */
export function refreshControls(controls: Controls, emit: Emit, sources: ControlSources): void {
  const { settings } = sources;
  controls.set('edge', 'armed');
  setPolicy(controls, sources);
  setConfiguration(controls, sources);
  setSignatures(controls, sources);
  setMetrics(controls, sources.listenerErrors);
  if (settings.admin === undefined) controls.set('admin', 'off', 'admin is not configured');
  else controls.set('admin', 'armed');
  setAudit(controls, settings, sources.auditError);
  setAuditSpace(controls, emit, sources);
  for (const delivery of sources.deliveries) setDelivery(controls, emit, delivery, sources.nowMs);
  controls.set('store', sources.store.state, sources.store.reason);
  setBudgets(controls, sources);
  setApprovals(controls, sources);
  setTracing(controls, sources);
  emit('storeChecked', { isUnreachable: sources.store.isUnreachable });
  setBlocks(controls, emit, sources.blocks, sources.store.state !== 'off');
  setIssuers(controls, emit, sources);
  setTls(controls, settings);
  for (const upstream of settings.upstreams.values()) {
    setAudience(controls, upstream);
    setBinding(controls, upstream);
    setConnection(controls, upstream, sources);
  }
  for (const profile of settings.profiles.values()) if (isProfileUsed(settings, profile)) setProfile(controls, profile);
  for (const runtime of sources.runtimes.all()) {
    setPins(controls, runtime, sources.describePins(runtime.settings));
    setUpstreamCredentials(controls, runtime, settings);
  }
  for (const aggregate of settings.aggregates.values()) {
    setAudience(controls, aggregate);
    setBinding(controls, aggregate);
    setAggregate(controls, aggregate, sources);
  }
}

/** Removes the controls of what a reload removed. */
export function removeControls(controls: Controls, before: Settings, after: Settings): void {
  const gone = (kind: 'issuers' | 'upstreams' | 'aggregates'): readonly string[] =>
    [...before[kind].keys()].filter((name) => !after[kind].has(name));
  for (const name of gone('issuers')) controls.remove(`authn:${name}`);
  for (const name of gone('upstreams')) for (const control of OF_UPSTREAMS) controls.remove(`${control}:${name}`);
  for (const name of gone('aggregates')) {
    controls.remove(`endpoint:${name}`);
    controls.remove(`audience:${name}`);
    controls.remove(`binding:${name}`);
  }
  for (const name of before.profiles.keys()) {
    const kept = after.profiles.get(name);
    if (kept === undefined || !isProfileUsed(after, kept)) controls.remove(`inspection:${name}`);
  }
}

const OF_UPSTREAMS = [
  'upstream-connection',
  'pins',
  'audience',
  'binding',
  'upstream-credentials',
  'upstream-identity',
] as const;

/** Whether all events were counted and logged. What was decided is not affected. */
function setMetrics(controls: Controls, failed: Iterable<EventName>): void {
  const names = [...failed];
  if (names.length === 0) controls.set('metrics', 'armed');
  else controls.set('metrics', 'degraded', `events that were not counted or logged: ${names.join(', ')}`);
}

/** Whether what was spent is remembered. Only where a rule has a budget. */
function setBudgets(controls: Controls, { budgets, settings, store }: ControlSources): void {
  const what = 'what was spent is kept in memory and forgotten when the process ends';
  if (budgets.length === 0) controls.remove('budgets');
  else if (settings.state.type === 'memory') controls.set('budgets', 'degraded', what);
  else if (store.isUnreachable) controls.set('budgets', 'degraded', 'calls that cost something are refused: no store');
  else controls.set('budgets', 'armed');
}

/** Whether somebody can answer what rules ask, whether a person has to, and whether the questions are kept. */
function setApprovals(controls: Controls, { approvals, settings, store, identity }: ControlSources): void {
  if (approvals.length === 0) {
    controls.set('approvals', 'off', 'no rule and no flow asks for an approval');
    return;
  }
  const unreviewed = canReview(settings) ? [] : approvals.filter(({ terms }) => terms.by === 'reviewer');
  const byClients = approvals.filter(({ terms }) => terms.by === 'caller' && terms.proof === 'client');
  const reasons = [
    ...(unreviewed.length === 0
      ? []
      : [
          `nobody can review, because no group of admin.issuers has the role reviewer or admin: ${namesOf(unreviewed)}`,
        ]),
    ...hiddenAnswers(approvals, settings, identity),
    ...(byClients.length === 0 ? [] : [`answered by clients, perhaps without a person: ${namesOf(byClients)}`]),
    ...(store.isUnreachable ? ['what needs an approval is refused, and nothing can be answered: no store'] : []),
  ];
  // What is forgotten is asked again, so that nothing passes because of it.
  const isForgotten = settings.state.type === 'memory';
  const kept = isForgotten
    ? ['state.type: memory, so questions and answers end with the process, and other replicas do not know of them']
    : [];
  controls.set('approvals', reasons.length === 0 ? 'armed' : 'degraded', [...reasons, ...kept].join('; '));
}

/** The issuers whose people cannot answer, because it could not be told who they are. */
function hiddenAnswers(
  approvals: readonly ApprovalRule[],
  { issuers, admin }: Settings,
  { hidesPersons }: IssuerStatuses,
): readonly string[] {
  const asksReviewers = approvals.some(({ terms }) => terms.by === 'reviewer');
  const asksForLogins = approvals.some(({ terms }) => terms.by === 'caller' && terms.proof === 'login');
  const answers = (name: string): boolean =>
    (asksReviewers && mayReview(admin?.issuers[name])) || (asksForLogins && issuers.get(name)?.login !== undefined);
  const hidden = [...issuers.keys()].filter((name) => answers(name) && hidesPersons(name)).sort();
  if (hidden.length === 0) return [];
  return [
    `nobody can approve who logs in at ${firstOf(hidden, MAX_NAMED)}, which gives each client another subject for the same person: name the claim that tells it in issuers.<name>.login.match`,
  ];
}

/** Whether spans reach their receiver. No request waits for that. */
function setTracing(controls: Controls, { settings: { tracing }, tracingError }: ControlSources): void {
  if (tracing === undefined) controls.set('tracing', 'off', 'tracing is not configured');
  else if (tracingError !== undefined) controls.set('tracing', 'degraded', tracingError);
  else controls.set('tracing', 'armed');
}

/** Whether anybody can be a reviewer who grants; the break-glass token only denies. */
function canReview({ admin }: Settings): boolean {
  return Object.values(admin?.issuers ?? {}).some(mayReview);
}

function mayReview(issuer: AdminSettings['issuers'][string] | undefined): boolean {
  return issuer !== undefined && issuer.roles.reviewer.length + issuer.roles.admin.length > 0;
}

function namesOf(rules: readonly ApprovalRule[]): string {
  return firstOf(rules.map(({ rule }) => rule).sort(), MAX_NAMED);
}

/** Reports TLS of the data listener only; TLS that is terminated elsewhere cannot be checked here. */
function setTls(controls: Controls, { listeners: { data } }: Settings): void {
  if (data.tls === undefined)
    controls.set('tls:data', 'off', 'listeners.data.tls is not configured: the listener speaks plain HTTP');
  else if (data.tls.expiresAtMs <= Date.now()) controls.set('tls:data', 'degraded', 'the certificate has expired');
  else controls.set('tls:data', 'armed');
}

/** What the upstream demands of every token. A bound token has to be proved under every demand. */
function setBinding(
  controls: Controls,
  { name, binding, authentication }: Pick<UpstreamSettings, 'name' | 'binding' | 'authentication'>,
): void {
  if (authentication === 'none') controls.set(`binding:${name}`, 'off', 'authentication: none');
  else if (binding === 'none') controls.set(`binding:${name}`, 'off', 'binding: none');
  else controls.set(`binding:${name}`, 'armed');
}

function setAudit(controls: Controls, { audit }: Settings, error: string | undefined): void {
  if (error !== undefined) controls.set('audit', 'degraded', error);
  else if (audit.onFailure === 'block') controls.set('audit', 'armed', durabilityOf(audit));
  else controls.set('audit', 'degraded', 'audit.onFailure: continue lets calls pass while nothing can be recorded');
}

const GIB = 1024 ** 3;
/** Unless it is configured, so much of a volume is to be free. */
const MIN_FREE_PERCENT = 10;
const MAX_MIN_FREE_BYTES = 5 * GIB;

/** Whether the volumes of the audit files have room: where one is full, calls are refused. */
function setAuditSpace(controls: Controls, emit: Emit, { auditSpace, settings }: ControlSources): void {
  const reasons = [...auditSpace].flatMap(([sink, { freeBytes, totalBytes }]) => {
    emit('auditSpaceChecked', { sink, freeBytes });
    const { minFree } = settings.audit;
    const share = ((minFree ?? MIN_FREE_PERCENT) / 100) * totalBytes;
    const wanted = minFree === undefined ? Math.min(share, MAX_MIN_FREE_BYTES) : share;
    return freeBytes >= wanted
      ? []
      : `the volume of ${sink} has ${sizeText(freeBytes)} free, less than ${sizeText(wanted)}`;
  });
  if (auditSpace.size > 0) controls.set('audit-space', reasons.length === 0 ? 'armed' : 'degraded', reasons.join('; '));
}

/** A receiver that was away for less, as while both sides start, is no reason to look. */
const MAX_LAG_MS = 60_000;

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Why a receiver lacks lines, if it has lacked them for too long. */
function lagReasons(delivery: DeliverySource, lagMs: number, nowMs: number): readonly string[] {
  const { error, waitingSinceMs, behindSinceMs, takenAtMs } = delivery;
  if (behindSinceMs === undefined || nowMs - behindSinceMs <= MAX_LAG_MS) return [];
  const sinceMs = Math.max(behindSinceMs, takenAtMs ?? 0);
  if (nowMs - sinceMs > MAX_LAG_MS) {
    const waiting = waitingSinceMs === undefined ? '' : `; lines since ${isoOf(waitingSinceMs)} wait`;
    return [`nothing was delivered since ${isoOf(sinceMs)}: ${error ?? 'the receiver does not answer'}${waiting}`];
  }
  return lagMs > MAX_LAG_MS ? [`it falls behind: since ${isoOf(behindSinceMs)} it has not had all lines`] : [];
}

/** Whether a receiver of audit lines has them. */
function setDelivery(controls: Controls, emit: Emit, delivery: DeliverySource, nowMs: number): void {
  const { name, waitingBytes, waitingSinceMs, refused, from, isPlain } = delivery;
  const lagMs = waitingSinceMs === undefined ? 0 : Math.max(0, nowMs - waitingSinceMs);
  emit('auditDeliveryChecked', { sink: name, waitingBytes, lagSeconds: lagMs / MS_PER_SECOND });
  const reasons = [
    ...(isPlain ? ['lines are not encrypted, and the receiver is not authenticated'] : []),
    ...lagReasons(delivery, lagMs, nowMs),
    ...(refused === undefined
      ? []
      : [`refused since the start: ${countOf(refused.count, 'line')} (${refused.why}), which are in the files alone`]),
  ];
  const begin = from === undefined ? '' : `delivers what was recorded from ${from} on`;
  controls.set(`audit-delivery:${name}`, reasons.length === 0 ? 'armed' : 'degraded', reasons.join('; ') || begin);
}

/** What a decision survives before anything leaves, which an armed control promises. */
function durabilityOf({ sinks, durability }: Settings['audit']): string {
  if (sinks.every(({ type }) => type === 'stdout'))
    return 'handed-over: a decision counts once standard output has taken it';
  return durability === 'synced'
    ? 'synced: a decision survives power loss'
    : 'written: a decision survives the death of the process, not power loss';
}

/** The policies are those in force, or older than the files because what was read last has errors. */
function setPolicy(controls: Controls, { reloadError, shadow }: Pick<ControlSources, 'reloadError' | 'shadow'>): void {
  const shadowed = (shadow?.policies ?? []).map(({ policy }) => policy);
  const isOff = shadow?.unenforced !== undefined;
  const reasons = [
    ...(isOff
      ? [
          'policies.mode: observe: no rule and no flow refuses a request of a client; what the rules would decide is only recorded, and for flows nothing is remembered; sensitive fields stay in force',
        ]
      : []),
    ...(shadowed.length === 0 ? [] : [`mode: shadow, not enforced: ${firstOf(shadowed, MAX_NAMED)}`]),
    ...(reloadError === undefined
      ? []
      : [`the last reload was rejected and the previous version stays in force: ${reloadError}`]),
  ];
  const weakened = isOff ? 'off' : 'degraded';
  controls.set('policy', reasons.length === 0 ? 'armed' : weakened, reasons.join('; '));
}

/** The gateway file may say more than is in force, because some keys take effect at a start only. */
function setConfiguration(controls: Controls, { unsettled, fixed }: Pick<ControlSources, 'unsettled' | 'fixed'>): void {
  if (unsettled.length === 0) controls.set('configuration', 'armed', fixed);
  else controls.set('configuration', 'degraded', unsettled.join('; '));
}

const MAX_NAMED = 10;

function setSignatures(controls: Controls, { settings: { signing }, unsigned, counterError }: ControlSources): void {
  const control = 'pin-signatures';
  if (signing === undefined) controls.set(control, 'off', 'pins.signers is not configured');
  else if (unsigned.size > 0) {
    const what = 'the previous version stays in force, because of refused signatures of the lock files of';
    controls.set(control, 'degraded', `${what}: ${[...unsigned].sort().join(', ')}`);
  } else if (counterError !== undefined) controls.set(control, 'degraded', counterError);
  else controls.set(control, 'armed');
}

type Reach = { readonly network: Network };
type Weakness = 'plaintext' | 'sidecar';

/**
 * Why what is reached under these URLs is not known to be what was configured: plain http in a private network, or
 * loopback beside a public `publicUrl`; `undefined` if it is. While the gateway itself is on loopback, everybody who can
 * reach loopback can reach the gateway too.
 */
function weaknessOf(urls: readonly URL[], { network }: Reach, { publicUrl }: Settings): Weakness | undefined {
  if (network === 'loopback') return isLoopbackHost(publicUrl.hostname) ? undefined : 'sidecar';
  return urls.some(({ protocol }) => protocol === 'http:') ? 'plaintext' : undefined;
}

const ISSUER_WEAKNESSES: { readonly [weakness in Weakness]: string } = {
  plaintext: 'reached by plain http: whoever controls the private network can mint tokens that are accepted here',
  sidecar:
    'reached on loopback beside a public publicUrl: whoever can listen on that loopback port can mint tokens that are accepted here',
};
const CONNECTION_WEAKNESSES: { readonly [weakness in Weakness]: string } = {
  plaintext:
    'plain http in a private network: requests, results and credentials are not encrypted, and the server is not authenticated',
  sidecar: 'on loopback beside a public publicUrl: whatever listens on that loopback port is taken for the server',
};

function setConnection(
  controls: Controls,
  upstream: UpstreamSettings,
  { settings, runtimes }: Pick<ControlSources, 'settings' | 'runtimes'>,
): void {
  // A Unix socket is no network.
  const weakness = upstream.socket === undefined ? weaknessOf([upstream.url], upstream, settings) : undefined;
  const control = `upstream-connection:${upstream.name}` as const;
  const reasons = [
    ...(runtimes.get(upstream.name)?.breaker?.status.isOpen === true ? [HANGING] : []),
    ...(weakness === undefined ? [] : [CONNECTION_WEAKNESSES[weakness]]),
  ];
  controls.set(control, reasons.length === 0 ? 'armed' : 'degraded', reasons.join('; '));
}

/** Why requests to an upstream are refused at once. */
const HANGING = 'requests are refused at once, because the upstream answers neither them nor pings of the gateway';

const DEVELOPMENT = 'by its own metadata a development issuer: whoever may change its files can be anybody here';

function setIssuers(controls: Controls, emit: Emit, { identity, settings }: ControlSources): void {
  for (const [name, status] of identity.statuses()) {
    const issuer = identity.issuers.get(name);
    const reasons = [...statusReasons(status), ...(issuer === undefined ? [] : issuerReasons(issuer, settings))];
    controls.set(`authn:${name}`, reasons.length === 0 ? 'armed' : 'degraded', reasons.join('; '));
    if (issuer !== undefined) reportKeys(emit, issuer, status.lastSuccessAt);
  }
}

function statusReasons({ state, failure, isDevelopment }: IssuerStatus): readonly string[] {
  if (state !== 'armed') return [failure ?? 'its keys have not been fetched yet'];
  return isDevelopment === true ? [DEVELOPMENT] : [];
}

function issuerReasons(issuer: IssuerSettings, settings: Settings): readonly string[] {
  const urls = [new URL(issuer.issuer), issuer.introspection?.endpoint ?? []].flat();
  const weakness = weaknessOf(urls, issuer, settings);
  return weakness === undefined ? [] : [ISSUER_WEAKNESSES[weakness]];
}

function reportKeys(emit: Emit, { name, keysMaxAgeMs }: IssuerSettings, atMs: number | undefined): void {
  if (atMs === undefined) return;
  const untilSeconds = (atMs + keysMaxAgeMs) / MS_PER_SECOND;
  emit('keysFetched', { issuer: name, atSeconds: atMs / MS_PER_SECOND, untilSeconds });
}

/**
 * RFC 8707 §2: a token is issued for a resource. Where an issuer cannot express that, its tokens may have been meant
 * for something else with the same audience.
 */
function setAudience(
  controls: Controls,
  upstream: Pick<UpstreamSettings, 'name' | 'authentication' | 'issuers' | 'audiences' | 'resource'>,
): void {
  const { name, authentication, issuers, audiences, resource } = upstream;
  if (authentication === 'none') {
    controls.set(`audience:${name}`, 'off', 'authentication: none');
    return;
  }
  const mapped = issuers.filter((issuer) => audiences[issuer]?.join('\n') !== resource);
  if (mapped.length === 0) controls.set(`audience:${name}`, 'armed');
  else {
    const why = 'are accepted for the audiences configured for it, not for the resource identifier';
    controls.set(`audience:${name}`, 'degraded', `tokens of ${mapped.join(', ')} ${why}`);
  }
}

/** The credentials sent to the upstream: the state for callers, or the degraded one of any of them. */
function setUpstreamCredentials(
  controls: Controls,
  { settings: upstream, presenter }: UpstreamStatus,
  settings: Settings,
): void {
  const { name, identity } = upstream;
  const states = presenter.states();
  const shown = states.find(({ state }) => state === 'degraded') ?? states[0];
  const weakness = credentialsWeaknessOf(upstream, settings);
  const control = `upstream-credentials:${name}` as const;
  if (shown !== undefined && (shown.state === 'degraded' || weakness === undefined))
    controls.set(control, shown.state, shown.detail);
  else if (weakness !== undefined) {
    const what = 'the authorization server is reached';
    controls.set(control, 'degraded', `${what} ${CONNECTION_WEAKNESSES[weakness]}`);
  }
  if (identity === undefined) controls.set(`upstream-identity:${name}`, 'off', 'identity is not configured');
  else controls.set(`upstream-identity:${name}`, 'armed');
}

/** The weakest connection to an authorization server from which credentials for the upstream are requested. */
function credentialsWeaknessOf({ credentials, pinning }: UpstreamSettings, settings: Settings): Weakness | undefined {
  return [credentials, pinning.credentials]
    .flatMap((one) => ('request' in one ? one.request : []))
    .map((request) => weaknessOf([new URL(request.server.url)], request, settings))
    .find((weakness) => weakness !== undefined);
}

/** A profile that nobody wrote counts only where an upstream is inspected by it. */
function isProfileUsed({ upstreams }: Settings, profile: InspectionProfile): boolean {
  if (!BUILT_IN_PROFILES.includes(profile)) return true;
  return [...upstreams.values()].some(({ inspect }) => inspect === profile.name);
}

function setProfile(controls: Controls, { name, request, result }: InspectionProfile): void {
  const actions = {
    'request secrets': request.secrets,
    'request links': request.links,
    secrets: result.secrets,
    links: result.links,
    pii: result.pii.action,
    activeContent: result.activeContent,
    invisible: result.invisible,
    injection: result.injection,
  };
  const off = Object.entries(actions).flatMap(([family, action]) => (action === 'off' ? [family] : []));
  const all = Object.keys(actions).length;
  if (off.length === 0) controls.set(`inspection:${name}`, 'armed');
  else {
    const state = off.length === all ? 'off' : 'degraded';
    controls.set(`inspection:${name}`, state, `turned off: ${off.join(', ')}`);
  }
}

/** Notes of a listing that the control states; the log has all. */
const MAX_LISTING_NOTES = 5;

/** What differs or is withheld is hidden and refused, and somebody has to look at it. The reasons name it. */
function setPins(controls: Controls, runtime: UpstreamStatus, problems: readonly string[]): void {
  const { name, pinning } = runtime.settings;
  const reasons = [...problems];
  if (pinning.mode === 'off') {
    const scan = pinning.scan === 'block' ? [] : [`pinning.scan: ${pinning.scan}`];
    controls.set(`pins:${name}`, 'off', ['pinning.mode: off', ...scan, ...reasons].join('; '));
    return;
  }
  if (runtime.observed() === undefined) reasons.unshift(NOT_LISTED_YET);
  else if (!runtime.isFresh()) reasons.unshift('the definitions could not be verified within pinning.maxAge');
  reasons.push(...runtime.listingNotes().slice(0, MAX_LISTING_NOTES));
  if (pinning.mode === 'trust-on-first-use') reasons.push(runtime.firstUse.describe());
  // Without it, what is hidden in strict mode is hidden unscanned, and what is not hidden is trusted unscanned.
  const scan = pinning.scan === 'off' ? ['pinning.scan: off'] : [];
  const state = reasons.length === 0 ? 'armed' : 'degraded';
  controls.set(`pins:${name}`, state, [...reasons, ...scan].join('; '));
}

/** Reports which backends of an aggregate are missing and how many names it hides. */
function setAggregate(
  controls: Controls,
  { name, backends }: AggregateSettings,
  { runtimes, aggregates }: ControlSources,
): void {
  const missing = backends.filter(({ upstream }) => runtimes.get(upstream)?.isUp() !== true);
  const hidden = aggregates.countHidden(name);
  const reasons = [
    ...(missing.length > 0 ? [`unreachable: ${missing.map(({ upstream }) => upstream).join(', ')}`] : []),
    ...(hidden > 0 ? [`hidden because they look alike: ${countOf(hidden, 'name')}`] : []),
  ];
  controls.set(`endpoint:${name}`, reasons.length === 0 ? 'armed' : 'degraded', reasons.join('; '));
}

/** Blocks that the control names; the rest are counted. */
const MAX_DESCRIBED_BLOCKS = 5;

/** A block takes no control away, so the control stays armed; the metric is what an alert would use. */
function setBlocks(controls: Controls, emit: Emit, blocks: readonly Block[], isShared: boolean): void {
  for (const target of BLOCK_TARGETS)
    emit('blocksCounted', {
      target,
      count: blocks.filter(({ revoked }) => revoked.block.target === target).length,
    });
  const described = blocks.slice(0, MAX_DESCRIBED_BLOCKS).map(describeBlock);
  const rest = blocks.length - described.length;
  const parts = [
    ...described,
    ...(rest > 0 ? [`and ${rest} more`] : []),
    ...(isShared ? [] : ['state.type: memory, so blocks and revocations end with the process']),
  ];
  controls.set('blocks', 'armed', parts.join('; '));
}

function describeBlock({ revoked, by, note, expiresAtMs }: Block): string {
  const until = endOf(expiresAtMs);
  const end = until === undefined ? '' : ` until ${until}`;
  return `${nameOfBlock(revoked.block)} is blocked${end} by ${JSON.stringify(by)}: ${JSON.stringify(note)}`;
}

/** Names of items come from people, but may quote an upstream, so they are quoted. */
function nameOfBlock(block: BlockTarget): string {
  switch (block.target) {
    case 'everything':
      return 'everything';
    case 'upstream':
      return `upstream ${block.upstream}`;
    case 'subject':
      return `subject ${JSON.stringify(block.subject)} of ${block.issuer}`;
    case 'client':
      return `client ${JSON.stringify(block.client)} of ${block.issuer}`;
    case 'tool':
    case 'prompt':
    case 'template':
    case 'resource':
      return `${block.target} ${JSON.stringify(block.name)} of ${block.upstream}`;
  }
}
