// What the gateway shows an upstream to prove itself. Never the caller's token: no function here
// receives a principal or a request (MCP security best practices, token passthrough).

/** `static` sends one header whose value was read from a secret reference. */
export type UpstreamCredentials =
  | { readonly type: 'none' }
  | { readonly type: 'static'; readonly header: string; readonly value: string };

/** The one header that carries the credential, or `undefined` where none is configured. */
export function credentialHeader(
  credentials: UpstreamCredentials,
): { readonly name: string; readonly value: string } | undefined {
  switch (credentials.type) {
    case 'none':
      return undefined;
    case 'static':
      return { name: credentials.header, value: credentials.value };
  }
}
