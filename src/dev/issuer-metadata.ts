// What the development issuer says of itself, under both well-known paths.
// RFC 8414 §2, OpenID Connect Discovery 1.0 §3, RFC 9207 §3.

/** The metadata document. `takesDocuments`: clients may name themselves by the URL of a document. */
export function issuerMetadata(issuer: string, takesDocuments: boolean): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    jwks_uri: `${issuer}/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_post', 'client_secret_basic'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: takesDocuments,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}
