// Tells that whoever waited for something waits no more. As an AbortController would, at a small part of its
// cost: one is made for every exchange, and few are ever asked. Decides nothing.

import type { LeaveListener, LeaveSignal } from './transport.js';

/** The sign, and the way to give it. Listeners are told once, in order, and forgotten. */
export class Leaving implements LeaveSignal {
  #listeners: LeaveListener[] | undefined;
  #hasLeft = false;

  get aborted(): boolean {
    return this.#hasLeft;
  }

  addEventListener(_type: 'abort', listener: LeaveListener): void {
    if (this.aborted) return;
    if (this.#listeners === undefined) {
      this.#listeners = [];
      this.watch();
    }
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: LeaveListener): void {
    const listeners = this.#listeners ?? [];
    const at = listeners.indexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  }

  /** Tells everyone who listens; of a second time nobody hears. */
  abort(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const listeners = this.#listeners ?? [];
    // One at a time: whoever goes while others are told is not told any more.
    for (let next = listeners.shift(); next !== undefined; next = listeners.shift()) notify(next);
  }

  /** Called before the first listener is entered: nobody hears of an end before somebody listens. */
  protected watch(): void {
    // Whoever gives the sign itself has nothing to watch.
  }
}

function notify(listener: LeaveListener): void {
  if (typeof listener === 'function') listener();
  else listener.handleEvent();
}
