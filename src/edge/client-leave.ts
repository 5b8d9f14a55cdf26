// Tells that a client's connection ended before its answer did. Decides nothing.

import type { ServerResponse } from 'node:http';
import { Leaving } from '../mcp/leaving.js';

/** The end of one response, for whoever must stop with it. */
export class ClientLeave extends Leaving {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    super();
    this.#response = response;
  }

  override get aborted(): boolean {
    return super.aborted || (this.#response.destroyed && !this.#response.writableFinished);
  }

  protected override watch(): void {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) this.abort();
    });
  }
}
