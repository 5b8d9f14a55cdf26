// Decisions that are evaluated again from what the audit writes of them: for all policies and calls, whatever is said to
// be known is what would be decided, and a suggested policy changes nothing that is known.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { decisionEvent } from '../../../../src/audit/event.js';
import { createEventJoiner } from '../../../../src/audit/query.js';
import { isDecision, isKnownForm, noteGroups, type RecordedCall, readCall } from '../../../../src/audit/recorded.js';
import { supposePrincipal } from '../../../../src/auth/principal.js';
import { compileSuggested, runReplay, suggestPolicy } from '../../../../src/cli/policy/replay.js';
import type { Workspace } from '../../../../src/cli/policy/workspace.js';
import { evaluate, evaluateAgain } from '../../../../src/cli/policy/workspace.js';
import { loadPolicies } from '../../../../src/config/load.js';
import { captureArguments } from '../../../../src/inspection/capture.js';
import { compilePolicies } from '../../../../src/policy/compile/compile.js';
import type { RuleDocument } from '../../../../src/policy/compile/documents.js';
import { capturedBy, decide } from '../../../../src/policy/decide.js';
import { writtenRules } from '../../../../src/policy/explain.js';
import { fold, openRecord } from '../../../../src/policy/record.js';
import { ruleTexts } from '../../../../src/policy/recorded-outcomes.js';
import type { PolicyQuery, PolicySet } from '../../../../src/policy/rules.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { ruleFacts } from '../../../../src/proxy/record-facts.js';
import { nameOf } from '../../../../src/proxy/request-context.js';
import { call, pins, rules } from '../../policy/generated.js';
import { CONTEXT, document, principal } from '../../policy/samples.js';
import { terminal } from '../console.js';
import { PORTS, ROOT, TEAMS, TEAMS_LOG, TEAMS_POLICIES } from './ports.js';

const CAPTURE: RuleDocument = {
  id: 'captures',
  effect: 'require',
  who: { anyone: true },
  what: { tools: ['t_a'], prompts: ['p'] },
  audit: { capture: ['/owner'] },
};
/** Makes sure that members of a group are allowed something. */
const OPEN: RuleDocument = {
  id: 'open',
  effect: 'allow',
  who: { groups: ['eng'] },
  what: { tools: ['*'], resources: ['**'] },
};
const ISSUER = { url: 'https://idp.example.com', impliedScopes: {}, isIntrospected: false };

function workspaceOf(written: readonly RuleDocument[], before = written): Workspace {
  const documents = [document(written)];
  const { policies } = compilePolicies(documents, CONTEXT);
  const { upstreams, issuers, profiles } = CONTEXT;
  const outline = { upstreams, issuers, profiles, issuerFacts: new Map([['corp', ISSUER]]) };
  return {
    outline: outline as unknown as Workspace['outline'],
    policies,
    written: writtenRules(documents),
    texts: ruleTexts(documents),
    inForce: { hash: 'p', texts: ruleTexts([document(before)]) },
    locate: () => ({ line: 1, column: 1 }),
    catalogOf: () => pins,
  };
}

type Query = PolicyQuery & { readonly args: JsonObject };

/** The event of a decision as the audit writes it and the commands read it. */
function record(policies: PolicySet, query: Query, token: string) {
  const { target, args, upstream, catalog } = query;
  const decision = decide(policies, query);
  const kept = openRecord({
    ...{ id: `id-${token}`, receivedAt: 0, startedMs: 0, upstream, httpMethod: 'POST' },
    ...{ aggregate: undefined, remoteAddress: '127.0.0.1' },
  });
  const isPinned = target.kind === 'tool' || target.kind === 'prompt';
  const principal = { ...query.principal, token: { ...query.principal.token, id: token } };
  const { caller, decision: rule } = ruleFacts(principal, decision);
  fold(kept, {
    caller: { principal, ...caller },
    target: {
      kind: target.kind,
      name: nameOf(target),
      pin: isPinned ? catalog.statusOf(target.kind, target.name).pinned?.digest : undefined,
    },
    ...(isPinned && {
      args: {
        ...{ digest: 'd', bytes: JSON.stringify(args).length, keys: Object.keys(args) },
        captured: captureArguments(args, capturedBy(decision), undefined),
      },
    }),
    decision: rule,
    ...(decision.verdict === 'deny' && { reason: decision.reason }),
  });
  const gateway = { instance: 'i', version: '0', config: 'c', policy: 'p', pins: 'p' };
  const { before, after } = decisionEvent(kept, { gateway, nowMs: 0 });
  const line = `${before}0${after}}`;
  return createEventJoiner()(JSON.parse(line), line.length).record;
}

/** A sequence of calls of a few tokens, each of one caller. */
const calls = fc.array(call, { minLength: 1, maxLength: 8 }).map((all) => {
  const callers = all.slice(0, 3).map((one) => one.principal);
  return all.map((query, index) => {
    const token = index % callers.length;
    return {
      query: { ...query, principal: callers[token] ?? query.principal },
      token: `t${token}`,
    };
  });
});

function readAll(
  old: readonly RuleDocument[],
  sequence: readonly { readonly query: Query; readonly token: string }[],
  workspace: Workspace,
): readonly { readonly query: Query; readonly read: RecordedCall }[] {
  const { policies } = compilePolicies([document([...old, CAPTURE])], CONTEXT);
  const events = sequence.map(({ query, token }) => record(policies, query, token));
  const groups = new Map<string, Set<string>>();
  for (const event of events) noteGroups(event, groups);
  return events.flatMap((event, index) => {
    const read = readCall(event, groups, workspace, { supposePrincipal });
    const query = sequence[index]?.query;
    return read === undefined || query === undefined ? [] : [{ query, read }];
  });
}

describe('[POL-02] replay', () => {
  it('says of a decision what would be decided, or that it is not known', () => {
    const seen = { allow: 0, deny: 0, unknown: 0 };
    void fc.assert(
      fc.property(rules, rules, calls, (old, next, sequence) => {
        const workspace = workspaceOf([...next, OPEN]);
        for (const { query, read } of readAll([...old, OPEN], sequence, workspace)) {
          const now = evaluate(read, workspace);
          seen[now?.verdict ?? 'unknown'] += 1;
          if (now === undefined || now.verdict === 'unknown') continue;
          expect(now.verdict).toBe(decide(workspace.policies, query).verdict);
        }
      }),
      { numRuns: 120 },
    );
    for (const times of Object.values(seen)) expect(times).toBeGreaterThan(8);
  });
});

describe('[POL-02] a rule whose text did not change', () => {
  it('makes no decision unknown, and says nothing else than would be decided where others change', () => {
    let known = 0;
    const kept = fc.array(fc.boolean(), { minLength: 7, maxLength: 7 });
    void fc.assert(
      fc.property(rules, rules, kept, calls, (old, other, keeps, sequence) => {
        const before = [...old, OPEN];
        const base = [...before, CAPTURE];
        const same = workspaceOf(base);
        const next = [
          ...base.filter((_, index) => keeps[index % keeps.length]),
          ...other.map((one) => ({ ...one, id: `new-${one.id}` })),
        ];
        const changed = workspaceOf(next, base);
        for (const { query, read } of readAll(before, sequence, same)) {
          if (read.facts === undefined) continue;
          expect(evaluateAgain(read, same)?.verdict).toBe(read.verdict);
          const now = evaluateAgain(read, changed);
          if (now === undefined || now.verdict === 'unknown') continue;
          known += 1;
          expect(now.verdict).toBe(decide(changed.policies, query).verdict);
        }
      }),
      { numRuns: 100 },
    );
    expect(known).toBeGreaterThan(20);
  });
});

describe('[POL-02] the lines of a log', () => {
  it('are read in the forms that this version knows, and in no later one', () => {
    const forms = ['sallyport.audit/1', 'sallyport.audit/2', 'sallyport.audit/3', undefined];
    expect(forms.map(isKnownForm)).toEqual([true, true, false, false]);
  });

  it('have each decision once, in both forms', () => {
    const outcome = { type: 'mcp.outcome', gateway: { policy: 'p' } };
    expect(isDecision({ ...outcome, schema: 'sallyport.audit/1' })).toBe(false);
    expect(isDecision({ ...outcome, schema: 'sallyport.audit/2' })).toBe(true);
    expect(isDecision({ ...outcome, gateway: {} })).toBe(false);
    expect(isDecision({ type: 'mcp.decision' })).toBe(true);
  });
});

describe('[POL-08] a suggested policy', () => {
  it('keeps what was allowed to the group, and refuses what was refused, apart from what it names', () => {
    let granted = 0;
    void fc.assert(
      fc.property(rules, calls, (old, sequence) => {
        const workspace = workspaceOf([...old, OPEN]);
        const all = readAll([...old, OPEN], sequence, workspace);
        const members = all.filter(({ read }) => read.groups.includes('eng'));
        const suggestion = suggestPolicy(
          'eng',
          members.map(({ read }) => read),
          workspace,
        );
        const suggested = compileSuggested(suggestion.document, workspace);
        const isApart = ({ upstream, kind, name }: RecordedCall): boolean =>
          suggestion.apart.some((one) => one.upstream === upstream && one.kind === kind && one.name === name);
        for (const { query, read } of members) {
          if (isApart(read)) continue;
          const now = evaluate(read, suggested);
          const isNamed = suggestion.unknown.some(({ name }) => name === read.name);
          if (now?.verdict === 'unknown') expect(read.verdict === 'deny' && isNamed).toBe(true);
          else expect(now?.verdict).toBe(read.verdict);
          if (read.verdict === 'deny') continue;
          granted += 1;
          expect(decide(suggested.policies, query).verdict).toBe('allow');
        }
      }),
      { numRuns: 120 },
    );
    expect(granted).toBeGreaterThan(8);
  });

  it('tells allowed from refused calls by a captured argument where scopes do not', async () => {
    const io = terminal({ cwd: ROOT });
    const options = { ...TEAMS, log: [TEAMS_LOG], group: 'finance' };
    expect(await runReplay({ ...options, suggest: true }, io, PORTS)).toBe(0);
    expect(io.out()).toContain('tools:\n        - "refund"\n    args: {"amount":{"type":"number","maximum":2400}}\n');
    expect(io.err()).toContain('3 rules from 5 decisions; 0 targets without a rule\n');
  });

  it('is a policy file that validates', () => {
    const allow: RuleDocument = {
      ...{ id: 'r', effect: 'allow', who: { groups: ['Team: A'] } },
      ...{ what: { tools: ['t_a', 'u_c'], resources: ['repo://acme/**'] }, scopes: ['s1'] },
    };
    const workspace = workspaceOf([allow]);
    const from = principal({ groups: ['Team: A'], scopes: ['s1'] });
    const base = { principal: from, upstream: 'github', catalog: pins, args: {} };
    const sequence = [
      { query: { ...base, target: { kind: 'tool', name: 't_a' } as const }, token: 'a' },
      {
        query: { ...base, target: { kind: 'resource', uri: 'repo://acme/x' } as const },
        token: 'a',
      },
      {
        query: {
          ...base,
          principal: principal({ groups: ['Team: A'] }),
          target: { kind: 'tool', name: 't_a' } as const,
        },
        token: 'b',
      },
      {
        query: {
          ...base,
          principal: principal({ groups: ['Team: A'] }),
          target: { kind: 'resource', uri: 'repo://acme/y' } as const,
        },
        token: 'b',
      },
    ];
    const read = readAll([allow], sequence, workspace).map((one) => one.read);
    const { text, apart, unused, document: made } = suggestPolicy('Team: A', read, workspace);
    expect(apart).toEqual([]);
    expect(unused).toEqual([{ rule: 'main/r', names: ['github/u_c', 'mail/t_a', 'mail/u_c'] }]);
    const loaded = loadPolicies('/p', {
      files: {
        listFolder: () => ['team.policy.yaml'],
        readFile: () => new TextEncoder().encode(text),
      },
      compile: (documents, hash) => compilePolicies(documents, { ...CONTEXT, hash }),
    });
    expect(loaded.diagnostics).toEqual([]);
    expect(loaded.documents.map(({ rules: all }) => all)).toEqual([made.rules]);
    expect(made.rules).toEqual([
      {
        id: 'team-a-github',
        effect: 'allow',
        who: { issuers: ['corp'], groups: ['Team: A'] },
        what: { upstreams: ['github'], tools: ['t_a'] },
        scopes: ['s1'],
      },
      {
        id: 'team-a-github-2',
        effect: 'allow',
        who: { issuers: ['corp'], groups: ['Team: A'] },
        what: { upstreams: ['github'], resources: ['repo://acme/x'] },
      },
    ]);
  });
});

describe('[AR-05] replay, with rules that ask', () => {
  const allow = (tools: readonly string[]): RuleDocument => ({ ...OPEN, who: { anyone: true }, what: { tools } });
  const added: RuleDocument = {
    id: 'ask',
    effect: 'require',
    who: { anyone: true },
    what: { tools: ['u_c'] },
    approval: { by: 'reviewer', count: 1, expiresMs: 1, useMs: 1 },
  };
  const query = {
    ...{ principal: principal(), upstream: 'github', target: { kind: 'tool', name: 'u_c' } as const },
    ...{ args: { owner: 'acme' }, catalog: pins },
  };

  it('says of a recorded call which rules ask about it now', () => {
    const before = [allow(['*'])];
    const line = record(compilePolicies([document(before)], CONTEXT).policies, query, 't');
    const workspace = workspaceOf([...before, added], before);
    const read = readCall(line, new Map(), workspace, { supposePrincipal });
    expect(read && evaluateAgain(read, workspace)).toEqual({
      verdict: 'allow',
      rule: 'main/open',
      askers: ['main/ask'],
    });
  });

  it('counts apart the calls that need an approval', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-replay-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    cpSync(join(ROOT, TEAMS_POLICIES), folder, { recursive: true });
    writeFileSync(
      join(folder, 'ask.policy.yaml'),
      `version: 1
policy: ask
rules:
  - {id: money, effect: require, who: {anyone: true}, what: {upstreams: [payments], tools: [refund]}, approval: {by: reviewer}}
`,
    );
    const io = terminal({ cwd: ROOT });
    const options = { ...TEAMS, policies: folder, log: [TEAMS_LOG] };
    await runReplay(options, io, PORTS);
    expect(io.err()).toMatch(/ unchanged, 0 would change, [1-9]\d* need approval, /);
    expect(io.out()).toMatch(
      /^need approval: \d+ × \S+ \(\S+\) payments tool refund: allow by .*, once approved: ask\/money/m,
    );
  });
});
