// For whom commands say what policies decide: the caller that options describe, or one who stands for each group that a
// rule names. docs/reference/commands.md.

import { type Access, accessTo, type SupposedCaller } from '../../policy/access.js';
import { isListed } from '../../policy/decide.js';
import { isObject, type JsonObject } from '../../protocol/jsonrpc.js';
import { type Command, UsageError } from '../program.js';
import { NO_ISSUER, principalOf, type Workspace, type WorkspacePorts } from './workspace.js';

type CallerPorts = Pick<WorkspacePorts, 'supposePrincipal'>;
type Configure = Parameters<Command['configure']>[0];

/** The options that describe one caller. */
export type CallerOptions = {
  /** JSON. */
  readonly as?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly client?: string;
  readonly group?: readonly string[];
  readonly scope?: readonly string[];
  /** `NAME=VALUE`, where the value is JSON or text. */
  readonly claim?: readonly string[];
};

export function withCallerOptions(command: Configure): Configure {
  return command
    .option('--as <json>', 'the caller: issuer, subject, client, groups, scopes, claims')
    .option('--issuer <name>', 'issuer of the caller, by its name in the gateway file')
    .option('--subject <subject>', 'subject of the caller')
    .option('--client <client>', 'client of the caller')
    .option('--group <group...>', 'groups of the caller')
    .option('--scope <scope...>', 'scopes that the token states')
    .option('--claim <name=value...>', 'other claims of the token');
}

/** The caller that the options describe, to be checked; without any, one of whom the token says nothing. */
export function callerOf({ as, issuer, subject, client, group, scope, claim }: CallerOptions): JsonObject {
  const claims = claim && Object.fromEntries(claim.map(readClaim));
  const flags = { issuer, subject, client, groups: group, scopes: scope, claims };
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  return { ...readJsonObject('--as', as ?? '{}'), ...Object.fromEntries(given) } as JsonObject;
}

export function isCallerGiven({ as, issuer, subject, client, group, scope, claim }: CallerOptions): boolean {
  return [as, issuer, subject, client, group, scope, claim].some((value) => value !== undefined);
}

function readClaim(text: string): readonly [string, unknown] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`error: --claim: expected NAME=VALUE\n`);
  const value = text.slice(at + 1);
  try {
    return [text.slice(0, at), JSON.parse(value)];
  } catch {
    return [text.slice(0, at), value];
  }
}

function readJsonObject(option: string, text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError(`error: ${option} is not valid JSON; quote it for the shell\n`);
  }
  if (!isObject(value)) throw new UsageError(`error: ${option}: expected a JSON object\n`);
  return value;
}

/** Who stands for everybody at an issuer, or for everybody there in one group. */
export type GroupCaller = SupposedCaller & { readonly issuer: string; readonly group?: string };

/** No token has these, so that no rule names them by accident. */
const NOBODY = { subject: '', client: '', scopes: [], claims: {} };

/** Who calls a server that requires no token, whatever a caller presents. */
const ANONYMOUS = { issuer: NO_ISSUER, subject: 'anonymous', client: 'anonymous', groups: [], scopes: [], claims: {} };

/** A caller of each group that a rule names, and one of no group, at each issuer. */
export function groupCallers(workspace: Workspace, ports: CallerPorts): readonly GroupCaller[] {
  const groups = new Set<string>();
  for (const { rule } of workspace.written.values()) for (const group of rule.who.groups ?? []) groups.add(group);
  const { issuers } = workspace.outline;
  if (issuers.length === 0)
    return [{ issuer: NO_ISSUER, principal: principalOf(ANONYMOUS, workspace, ports), isAnyone: false }];
  return issuers.flatMap((issuer) =>
    [undefined, ...[...groups].sort()].map((group): GroupCaller => {
      const caller = { ...NOBODY, issuer, groups: group === undefined ? [] : [group] };
      const named = group === undefined ? {} : { group };
      return { issuer, principal: principalOf(caller, workspace, ports), isAnyone: true, ...named };
    }),
  );
}

/** As whom an upstream sees a caller; undefined if it does not accept the issuer. */
function seenAs(
  upstream: string,
  caller: SupposedCaller,
  workspace: Workspace,
  ports: CallerPorts,
): SupposedCaller | undefined {
  const accepted = workspace.outline.upstreams.find(({ name }) => name === upstream)?.issuers ?? [];
  if (accepted.length === 0) return { principal: principalOf(ANONYMOUS, workspace, ports), isAnyone: false };
  return accepted.includes(caller.principal.issuer) ? caller : undefined;
}

/** How many tools of the server a caller is shown, as `tools/list` would filter them. */
export function countListed(
  upstream: string,
  caller: SupposedCaller,
  workspace: Workspace,
  ports: CallerPorts,
): number {
  const seen = seenAs(upstream, caller, workspace, ports);
  if (seen === undefined) return 0;
  const { policies, catalogOf } = workspace;
  const kind = 'tool';
  return catalogOf(upstream)
    .names(kind)
    .filter((name) => {
      const target = { kind, name } as const;
      return isListed(policies, seen.principal, upstream, target, catalogOf(upstream, target));
    }).length;
}

/** What the gateway says of a caller's calls; `issuer`: the server does not accept its tokens. */
export type ToolAccess = Access | { readonly access: 'no'; readonly reason: 'issuer'; readonly rules: readonly [] };

export function toolAccess(
  upstream: string,
  name: string,
  caller: SupposedCaller,
  workspace: Workspace,
  ports: CallerPorts,
): ToolAccess {
  const seen = seenAs(upstream, caller, workspace, ports);
  if (seen === undefined) return { access: 'no', reason: 'issuer', rules: [] };
  const { policies, written, catalogOf } = workspace;
  const target = { kind: 'tool', name } as const;
  return accessTo(policies, written, seen, { upstream, target, catalog: catalogOf(upstream, target) });
}
