// A running gateway with an aggregate whose files, revocations and sessions a test changes under what its callers hold.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ADMINS, adminsOf, type MergedRig, startMergedRig } from './deployments.js';
import { ALLOW_ALL, type RunningGateway } from './gateway.js';
import { grantQuestions } from './sdk-clients.js';

/** Everybody is denied everything. */
export const DENY_ALL = ALLOW_ALL.replace('effect: allow', 'effect: deny');

export type ChangingRig = MergedRig & {
  /** Reads the files again; they must have no mistakes. */
  reload(): Promise<void>;
  applyPolicy(text: string): Promise<void>;
  /** Replaces each text by the other in the gateway file as it was at the start. */
  applySettings(...changes: readonly (readonly [string, string])[]): Promise<void>;
  /** Takes the upstream `left` away, and its place in the aggregate. */
  removeLeft(): Promise<void>;
  revokeSubject(subject: string): Promise<void>;
  /** Revokes the session that this subject used last. */
  revokeSessionOf(subject: string): Promise<void>;
};

/** Starts it; everybody may use everything, and every question is granted. */
export async function startChangingRig(): Promise<ChangingRig> {
  const rig = await startMergedRig({
    more: ADMINS,
    policies: { open: ALLOW_ALL, questions: grantQuestions() },
  });
  const { gateway } = rig;
  const admins = adminsOf(gateway);
  const file = join(gateway.folder, 'gateway.yaml');
  const settings = await readFile(file, 'utf8');

  async function applySettings(...changes: readonly (readonly [string, string])[]): Promise<void> {
    let text = settings;
    for (const [from, to] of changes) {
      expect(text).toContain(from);
      text = text.replaceAll(from, to);
    }
    await writeFile(file, text);
    await reloadOf(gateway);
  }

  async function revoke(order: object): Promise<void> {
    expect((await admins.revoke(order)).status).toBe(201);
  }

  return {
    ...rig,
    reload: () => reloadOf(gateway),
    async applyPolicy(text) {
      await gateway.writePolicy('open', text);
      await reloadOf(gateway);
    },
    applySettings,
    removeLeft: () => applySettings(['  left:\n', '  gone:\n'], ['{left: {prefix', '{gone: {prefix']),
    revokeSubject: (subject) => revoke({ subject: { issuer: 'test', subject } }),
    async revokeSessionOf(subject) {
      const line = (await gateway.audit()).findLast(
        (one) => one['actor']?.sub === subject && one['client']?.session !== null,
      );
      await revoke({ session: { digest: line?.['client'].session } });
    },
  };
}

async function reloadOf(gateway: RunningGateway): Promise<void> {
  const diagnostics = await gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

/** Ends the session that these headers name, as its client does. */
export async function endSession(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(204);
}

export type Gate = { readonly passed: Promise<void>; open(): void };

/** What waits for `passed` goes on once it is opened. */
export function createGate(): Gate {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}
