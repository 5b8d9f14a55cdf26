// The part of oidc-provider that the tests use; the package brings no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  export type Context = {
    get(header: string): string;
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly session: { readonly accountId: string };
      readonly params: {
        readonly grant_type?: string;
        readonly scope?: string;
        readonly resource?: string | readonly string[];
        readonly subject_token?: string;
      };
    };
  };

  /** A request as middleware and grants see it. */
  export type GrantContext = Context & { readonly path: string; status: number; body: unknown };

  export type AccessToken = { resourceServer: ResourceServer; save(): Promise<string> };
  export type ResourceServer = { readonly audience: string };

  export class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    use(middleware: (context: GrantContext, next: () => Promise<void>) => Promise<void>): void;
    registerGrantType(
      name: string,
      answer: (context: GrantContext) => Promise<void>,
      parameters: readonly string[],
    ): void;
    readonly AccessToken: new (
      parts: object,
    ) => AccessToken;
    readonly ResourceServer: new (
      identifier: string,
      parts: object,
    ) => ResourceServer;
    on(event: string, listener: (...args: readonly unknown[]) => void): this;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
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
