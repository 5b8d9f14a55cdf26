// The demo upstream: the scripted MCP server with the help desk as its script, which misbehaves on request. It checks no
// token, because it runs behind the gateway.

import { randomBytes } from 'node:crypto';
import {
  createHelpDesk,
  type DemoSecrets,
  deriveDemoSecrets,
  GOOD_BEHAVIOUR,
  type Misbehaviour,
} from './demo-content.js';
import { type ScriptedServer, startScriptedServer } from './scripted-server.js';

export type DemoUpstream = Omit<ScriptedServer, 'announceChange'> & {
  /** The secrets in customer records, so that a check can search for them. */
  readonly secrets: DemoSecrets;
  /** Changes the given traits and keeps the others; a drift is announced on open streams. */
  misbehave(change: Partial<Misbehaviour>): void;
  behave(): void;
};

/**
 * Starts the demo upstream on loopback. With `port` 0 or absent it uses a free port; `seed` determines the
 * secrets. Rejects if the port is not available.
 */
export async function startDemoUpstream(
  options: { readonly port?: number; readonly seed?: string } = {},
): Promise<DemoUpstream> {
  const secrets = deriveDemoSecrets(options.seed ?? randomBytes(16).toString('hex'));
  let behaviour = GOOD_BEHAVIOUR;
  const { announceChange, ...server } = await startScriptedServer({
    story: createHelpDesk(secrets, () => behaviour),
    port: options.port,
    delivery: () => behaviour,
  });
  function misbehave(change: Partial<Misbehaviour>): void {
    const before = behaviour.drift;
    behaviour = { ...behaviour, ...change };
    if (behaviour.drift !== before) announceChange();
  }
  return { ...server, secrets, misbehave, behave: () => misbehave(GOOD_BEHAVIOUR) };
}
