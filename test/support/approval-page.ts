// The page on which callers answer, on a data listener of its own, with approvals that a test makes. The logins are those
// of a test, or those of a real provider.

import { createHash, randomBytes } from 'node:crypto';
import { type ApprovalSession, createCallerPages, type PendingApproval } from '../../src/approvals/caller-pages.js';
import type { VerifiedLogin } from '../../src/auth/login.js';
import type { LoginClient } from '../../src/http/browser-login.js';
import { createDataServer } from '../../src/http/data-server.js';
import {
  type AnswerOutcome,
  type ApprovalDesk,
  type ApprovalVoice,
  isSamePerson,
  openParties,
  type ShownApproval,
  stateOf,
} from '../../src/policy/approval.js';
import { createKeyRing } from '../../src/state/derived-keys.js';
import { sealedToken } from '../../src/state/sealed-token.js';
import { type BrowserPage, TestBrowser } from './console-rig.js';

export const ISSUER = 'https://idp.example.com';

/** An approval of a call of `ann`, which waits. */
export function makeApproval(changes: Partial<ShownApproval> = {}): ShownApproval {
  const now = Date.now();
  return {
    id: randomBytes(16).toString('hex'),
    subject: {
      caller: {
        ...{ issuer: ISSUER, issuerName: 'idp', subject: 'ann', client: 'agent', match: undefined },
        actors: [],
      },
      ...{ upstream: 'desk', method: 'tools/call', name: 'delete_record', args: 'd', pin: 'p', rules: 'r' },
      digest: 'digest-1',
      remembered: undefined,
    },
    demand: {
      ...{ rules: ['desk/ask'], reasons: ['It deletes.'], reviewer: undefined },
      caller: { proof: 'login', remember: undefined },
      ...{ expiresMs: 600_000, useMs: 120_000 },
    },
    content: {
      args: '{"id":"one"}',
      definition: { name: 'delete_record', description: 'Deletes a record.', inputSchema: { type: 'object' } },
      ...{ selfReported: undefined, labels: [], findings: [], sensitive: [] },
    },
    ...{ shown: 'f'.repeat(64), decisionId: '00000000-0000-4000-8000-000000000000' },
    ...{ createdAtMs: now, expiresAtMs: now + 600_000, answers: [], state: 'waiting' },
    ...{ usableUntilMs: undefined, rememberedUntilMs: undefined },
    ...changes,
  };
}

/** Keeps approvals in memory and takes the answers of their callers. */
function createDesk(now: () => number) {
  const kept = new Map<string, ShownApproval>();
  const voices: (ApprovalVoice & { readonly verdict: string })[] = [];
  const desk: Pick<ApprovalDesk, 'find' | 'answer'> = {
    find: async (id) => kept.get(id) ?? 'unknown',
    async answer(id, verdict, voice): Promise<AnswerOutcome> {
      const approval = kept.get(id);
      if (approval === undefined || stateOf(approval, now()) !== 'waiting') return { kind: 'over', approval };
      if (!isSamePerson(approval.subject.caller, voice.person)) return { kind: 'refused', why: 'not-the-caller' };
      if (!openParties(approval).includes('caller')) return { kind: 'refused', why: 'not-asked' };
      voices.push({ ...voice, verdict });
      const { party, person, proof } = voice;
      const answers = [...approval.answers, { party, person, proof, verdict, atMs: now() }];
      const state =
        verdict === 'denied' ? 'denied' : openParties({ ...approval, answers }).length > 0 ? 'waiting' : 'granted';
      const usableUntilMs = state === 'granted' ? now() + approval.demand.useMs : undefined;
      const next = { ...approval, answers, state, usableUntilMs } as const;
      kept.set(id, next);
      return { kind: 'taken', approval: next };
    },
  };
  return { desk, kept, voices };
}

type Ending = Awaited<ReturnType<LoginClient<VerifiedLogin>['finish']>>;

/** A login that ends as a test says; the browser is sent straight back. */
export function loginOf(callback: () => string, ending: () => Ending): LoginClient<VerifiedLogin> {
  return {
    async begin() {
      const [state = '', nonce = '', verifier = ''] = [1, 2, 3].map(() => randomBytes(32).toString('base64url'));
      return { url: `${callback()}?code=c&state=${state}`, checks: { state, nonce, verifier } };
    },
    finish: async () => ending(),
  };
}

/** Who logs in where nothing else is said. */
export function verifiedNow(changes: Partial<VerifiedLogin> = {}): VerifiedLogin {
  const now = Date.now();
  return {
    ...{ kind: 'verified', issuer: ISSUER, subject: 'ann', match: undefined, groups: [], actors: [] },
    ...{ issuedAtMs: now, authTimeMs: now },
    ...changes,
  };
}

export type ApprovalPageRig = Awaited<ReturnType<typeof startApprovalPage>>;

/** Opens the listener. `client`: the logins by issuer; without it, whoever `ending` says logs in at `idp`. */
export async function startApprovalPage(
  options: {
    readonly ending?: () => Ending;
    readonly client?: (publicBase: string, issuer: string) => LoginClient<VerifiedLogin> | undefined;
    readonly isShut?: (session: ApprovalSession) => boolean;
    readonly now?: () => number;
    readonly allowedOrigins?: readonly string[];
  } = {},
) {
  const { ending = () => verifiedNow(), now = Date.now } = options;
  const { desk, kept, voices } = createDesk(now);
  const ring = createKeyRing([{ id: 'test', bytes: randomBytes(32) }]);
  const session = sealedToken<ApprovalSession>('approval-session/1');
  const pending = sealedToken<PendingApproval>('approval-login/1');
  const used = new Set<string>();
  const problems: string[] = [];
  const refused: string[] = [];
  const hosts = new Set<string>();
  const origins = new Set<string>(options.allowedOrigins ?? []);
  let url = '';
  const tables = {
    ...{ routes: new Map(), documents: new Map(), hosts, origins, hasPages: true },
    ...{ refusesForwarded: () => false, addressOf: (peer: string) => peer },
  };
  const refusals: number[] = [];
  let page: ReturnType<typeof createCallerPages> | undefined;
  const server = createDataServer({
    isStarting: () => false,
    tables: () => tables,
    handle: () => Promise.reject(new Error('no message is expected')),
    answerPage: (request, path, query) => {
      page ??= createCallerPages({
        ...{ publicBase: url, desk, now },
        client: (issuer) =>
          options.client === undefined
            ? issuer === 'idp'
              ? loginOf(() => `${url}/.well-known/sallyport/approve/callback`, ending)
              : undefined
            : options.client(url, issuer),
        sealSession: (value, expiresAtMs) => session.seal(ring, [], value, expiresAtMs),
        openSession: (sealed) => session.open(ring, [], sealed, now()),
        sealLogin: (value, expiresAtMs) => pending.seal(ring, [], value, expiresAtMs),
        openLogin: (sealed) => pending.open(ring, [], sealed, now()),
        formToken: (one, other) =>
          createHash('sha256')
            .update(JSON.stringify([one, other]))
            .digest('hex'),
        async useState(state) {
          const isFirst = !used.has(state);
          used.add(state);
          return isFirst;
        },
        isShut: options.isShut ?? (() => false),
        onLoginImpossible: (_issuer, detail) => problems.push(detail),
        onLoginRefused: (_issuer, detail) => refused.push(detail),
      });
      return page(request, path, query);
    },
    reportRefusal: ({ status }) => refusals.push(status),
  });
  const port = await server.listen('127.0.0.1', 0);
  url = `http://127.0.0.1:${port}`;
  hosts.add(`127.0.0.1:${port}`);
  origins.add(url);
  return {
    ...{ url, kept, voices, problems, refused, refusals },
    linkOf: (id: string) => `${url}/.well-known/sallyport/approve/${id}`,
    add(changes: Partial<ShownApproval> = {}): ShownApproval {
      const approval = makeApproval(changes);
      kept.set(approval.id, approval);
      return approval;
    },
    close: () => server.close(0),
  };
}

/** Opens a link, logs in, and is on the page of the request. */
export async function logInAt(
  link: string,
  browser = new TestBrowser(),
): Promise<{ browser: TestBrowser; page: BrowserPage }> {
  const page = await browser.submit(link, { do: 'login' });
  return { browser, page };
}
