// Tells that a client's connection ended before its answer did. As an AbortSignal would, at a small part of
// its cost: one is made for every exchange, and few are ever asked. Decides nothing.

import type { ServerResponse } from 'node:http';
import type { LeaveListener, LeaveSignal } from '../mcp/transport.js';

/** The end of one response, for whoever must stop with it. Listeners are told once, in order, and forgotten. */
export class ClientLeave implements LeaveSignal {
  readonly #response: ServerResponse;
  #listeners: LeaveListener[] | undefined;
  #hasLeft = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get aborted(): boolean {
    return this.#hasLeft || (this.#response.destroyed && !this.#response.writableFinished);
  }

  addEventListener(_type: 'abort', listener: LeaveListener): void {
    if (this.aborted) return;
    this.#listeners ??= this.#listen();
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: LeaveListener): void {
    const listeners = this.#listeners ?? [];
    const at = listeners.indexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  }

  /** Nobody hears of an end before somebody listens. */
  #listen(): LeaveListener[] {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) this.#leave();
    });
    return [];
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const listeners = this.#listeners ?? [];
    this.#listeners = [];
    for (const listener of listeners) tell(listener);
  }
}

function tell(listener: LeaveListener): void {
  if (typeof listener === 'function') listener();
  else listener.handleEvent();
}
