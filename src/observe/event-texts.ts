// The parts of an event that many events share, built once and kept: the versions of the files, who was
// verified, what was asked for, what the rule said. Each is exactly the text that building it anew would
// give; what is kept is bounded, and holds nothing that a client chose.

import type { Principal } from '../policy/principal.js';
import type { RequestRecord } from '../policy/record.js';
import type { GatewayFacts } from './audit-event.js';
import { quoteList, quoteNumber, quoteOptional, quoteVerified } from './quoting.js';

/** Lists in an event end here. */
const MAX_LISTED = 64;
const MAX_TARGETS = 1024;

type FileVersions = Pick<GatewayFacts, 'config' | 'policy' | 'pins'>;

/** One piece of memory: a text put together of many parts would be put together again at each writing. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

let lastInstance = { name: '', text: '""' };

/** The name of this run of the gateway. */
export function instanceText({ instance }: GatewayFacts): string {
  if (lastInstance.name !== instance)
    lastInstance = { name: instance, text: quoteVerified(instance) };
  return lastInstance.text;
}

/** Versions change with a reload, so the text of the last ones serves nearly every event. */
const versionTexts = new WeakMap<
  FileVersions,
  { readonly program: string; readonly text: string }
>();

/** From the end of the epoch to the end of `gateway`, under the given versions or the gateway's own. */
export function versionsText(gateway: GatewayFacts, decided: FileVersions = gateway): string {
  const kept = versionTexts.get(decided);
  if (kept?.program === gateway.version) return kept.text;
  const text = flat(
    `","version":${quoteVerified(gateway.version)},"config":${quoteVerified(decided.config)},"policy":${quoteVerified(decided.policy)},"pins":${quoteVerified(decided.pins)}}`,
  );
  versionTexts.set(decided, { program: gateway.version, text });
  return text;
}

/** A verified token is presented many times: its part of the line is built once. */
const provedTexts = new WeakMap<Principal, string>();

/** The actor up to the groups that were used. */
export function provedText(principal: Principal): string {
  const kept = provedTexts.get(principal);
  if (kept !== undefined) return kept;
  const { token } = principal;
  const act = principal.actors
    .slice(0, MAX_LISTED)
    .map((actor) => `{"iss":${quoteOptional(actor.issuer)},"sub":${quoteVerified(actor.subject)}}`);
  const text = flat(
    `{"iss":${quoteVerified(principal.issuerUrl)},"sub":${quoteVerified(principal.subject)},"client_id":${quoteVerified(principal.client)},"act":[${act.join()}],` +
      `"token":{"id":${quoteVerified(token.id)},"aud":${quoteVerified(token.audience)},"scopes":${quoteList(principal.statedScopes ?? principal.scopes, MAX_LISTED)},"exp":${quoteNumber(token.expiresAt / 1000)},"binding":"${token.binding}"},"groups_used":`,
  );
  provedTexts.set(principal, text);
  return text;
}

type Pinned = {
  readonly upstream: string;
  readonly aggregate: string | undefined;
  readonly method: string | undefined;
  readonly kind: string | undefined;
  readonly name: string | undefined;
  readonly definition: string | undefined;
  readonly text: string;
};

function isOf(kept: Pinned, { upstream, aggregate, target }: RequestRecord): boolean {
  return (
    kept.method === target.method &&
    kept.name === target.name &&
    kept.upstream === upstream &&
    kept.aggregate === aggregate &&
    kept.kind === target.kind &&
    kept.definition === target.definition
  );
}

/** By digest of the pin. */
const targetTexts = new Map<string, Pinned>();

/** The target of a call to something pinned, up to the id of the request. */
export function pinnedTargetText(record: RequestRecord): string {
  const { upstream, aggregate, target } = record;
  const { method, kind, name, definition, pin = '' } = target;
  const kept = targetTexts.get(pin);
  if (kept !== undefined && isOf(kept, record)) return kept.text;
  const through = aggregate === undefined ? '' : `,"endpoint":${quoteVerified(aggregate)}`;
  const text = flat(
    `{"upstream":${quoteVerified(upstream)}${through},"method":${quoteOptional(method)},"kind":${quoteOptional(kind)},"name":${quoteOptional(name)},"definition":${quoteOptional(definition)},"pin":${quoteOptional(pin)},"request_id":`,
  );
  if (targetTexts.size >= MAX_TARGETS) targetTexts.clear();
  targetTexts.set(pin, { upstream, aggregate, method, kind, name, definition, text });
  return text;
}

type Ruled = Pick<RequestRecord['decision'], 'verdict' | 'action' | 'stage' | 'policy' | 'rule'> & {
  readonly text: string;
};

let lastRuled: Ruled | undefined;

function describesDecision(kept: Ruled, decision: RequestRecord['decision']): boolean {
  return (
    kept.verdict === decision.verdict &&
    kept.action === decision.action &&
    kept.stage === decision.stage &&
    kept.policy === decision.policy &&
    kept.rule === decision.rule
  );
}

/** What was decided, from behind the id to the reasons; the last one serves most events. */
export function ruledText(decision: RequestRecord['decision']): string {
  const { verdict, action, stage, policy, rule } = decision;
  const kept = lastRuled;
  if (kept !== undefined && describesDecision(kept, decision)) return kept.text;
  const text = flat(
    `,"verdict":"${verdict}","action":"${action}","mode":"enforce","stage":"${stage}","policy":${quoteOptional(policy)},"rule":${quoteOptional(rule)},"reasons":`,
  );
  lastRuled = { verdict, action, stage, policy, rule, text };
  return text;
}
