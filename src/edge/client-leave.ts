// Tells that a client's connection ended before its answer did. As an AbortSignal would, at a small part of
// its cost: one is made for nearly every exchange. Decides nothing.

import type { ServerResponse } from 'node:http';
import type { LeaveSignal } from '../mcp/transport.js';

/** The end of one response, for whoever must stop with it. Listeners are told once, in order, and forgotten. */
export class ClientLeave implements LeaveSignal {
  #aborted: boolean;
  #listeners: (() => void)[] = [];

  constructor(response: ServerResponse) {
    this.#aborted = response.destroyed;
    response.on('close', () => {
      if (!response.writableFinished) this.#leave();
    });
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#aborted && !this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }

  #leave(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}
