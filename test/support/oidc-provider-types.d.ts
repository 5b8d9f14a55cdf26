// The part of oidc-provider that the tests use; the package brings no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  export type Context = {
    get(header: string): string;
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly session: { readonly accountId: string };
      readonly params: { readonly scope?: string; readonly resource?: string | readonly string[] };
    };
  };

  export class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    on(event: string, listener: (...args: readonly unknown[]) => void): this;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
    ): Promise<void>;
    readonly Grant: new (parts: {
      readonly accountId: string;
      readonly clientId: string;
    }) => {
      addOIDCScope(scope: string): void;
      addResourceScope(resource: string, scope: string): void;
      save(): Promise<string>;
    };
  }
}
