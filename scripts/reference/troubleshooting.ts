// Renders the troubleshooting guide: for each reason of a refusal its usual cause and what to do. The type makes
// an entry for every reason of the table mandatory. Pure: it returns text, and the caller writes the file.

import { REASONS, type Reason, type Stage } from '../../src/policy/reasons.js';

type Entry = { readonly cause: string; readonly cure: string };

const ENTRIES: { readonly [reason in Reason]: Entry } = {
  'malformed-request': {
    cause: 'The client did not send valid HTTP/1.1, for example TLS to a plain listener.',
    cure: 'Check the scheme of the URL (`http` or `https`) and whether a proxy in front ends TLS.',
  },
  'request-timeout': {
    cause: 'The request headers or body did not arrive in time.',
    cure: 'Look for a slow or stalled client, or for a proxy that holds the request body back.',
  },
  'headers-too-large': {
    cause: 'The request headers exceed the limit, often because of cookies or a very large token.',
    cure: 'Send less: strip cookies in front of the gateway, and use tokens with fewer groups.',
  },
  'origin-forbidden': {
    cause: 'A browser page from an origin that is not configured sent the request.',
    cure: 'If the page may call, add its exact origin to `listeners.data.allowedOrigins`.',
  },
  'host-forbidden': {
    cause:
      'The `Host` header names another host than `publicUrl`, often because a proxy replaces it, or the client uses an IP address.',
    cure: 'Connect by the host of `publicUrl`, and let the proxy pass `Host` on. See [behind a proxy](behind-a-proxy.md).',
  },
  'body-too-large': {
    cause: 'The request body is larger than `limits.maxRequestBytes` of the upstream.',
    cure: 'Send less, or raise the limit for this upstream.',
  },
  'unsupported-media-type': {
    cause: 'The request has no `Content-Type: application/json`, or it is compressed.',
    cure: 'Use an MCP client, or send plain JSON in UTF-8 with this content type.',
  },
  'malformed-json': {
    cause: 'The body is empty, cut off, not JSON, or not UTF-8.',
    cure: 'Log what the client sends. Check that no proxy rewrites or truncates bodies.',
  },
  'duplicate-key': {
    cause:
      'An object has two members of the same name, or names that differ only in case where the protocol defines the member or a rule reads it. Parsers disagree about which one counts.',
    cure: 'Correct the client. The gateway never forwards such a message.',
  },
  'invalid-message': {
    cause:
      'The JSON is not a single JSON-RPC 2.0 request, notification or response, is nested too deeply, or has more than `limits.maxValues` values.',
    cure: 'Correct the client. For large messages, raise `limits.maxValues` of the upstream.',
  },
  'batch-forbidden': {
    cause: 'The client sent an array of messages. Only revision 2025-03-26 allows batches.',
    cure: 'Send one message per request.',
  },
  'header-mismatch': {
    cause:
      'With revision 2026-07-28, `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` or an `Mcp-Param-*` header is missing or does not match the body.',
    cure: 'Update the client, and check that no proxy strips or rewrites these headers.',
  },
  'unsupported-version': {
    cause: 'Client and gateway, or gateway and upstream, have no protocol revision in common.',
    cure: 'The response lists the supported revisions. Update the client or the server.',
  },
  'unknown-session': {
    cause:
      'The session has ended, was revoked, was opened by another caller, or was sealed with a key that is no longer configured; or the server has lost it, as after a restart, and then `detail` names what it answered.',
    cure: 'Clients initialize again by themselves. If it happens after every deployment, keep the old key in `keys` while rotating.',
  },
  'session-required': {
    cause: 'The client sent a request of a session-based revision without `Mcp-Session-Id`.',
    cure: 'Initialize first, and send the session id of the response with every request. Check that no proxy strips the header.',
  },
  'method-unknown': {
    cause: 'The method does not exist in the protocol revision of the client.',
    cure: 'Correct the client, or use a revision that has the method.',
  },
  'method-forbidden': {
    cause: 'The method exists, but the gateway does not support it here.',
    cure: 'See [the protocol reference](../reference/protocol.md). On an endpoint of several upstreams, use the path of the upstream itself.',
  },
  'token-missing': {
    cause:
      'The request has no `Authorization` header. This is the normal first step of a login: the challenge names the metadata document.',
    cure: 'If the client does not open a login, see [connecting clients](connect-clients.md), and check that the proxy passes `Authorization` and `WWW-Authenticate` on.',
  },
  'token-malformed': {
    cause: 'The header is not `Bearer` or `DPoP` with one token, or the token is not canonically encoded.',
    cure: 'Check for line breaks, quotes or a doubled `Bearer` in the pasted header, and for a token in the query.',
  },
  'token-signature': {
    cause:
      'The signature does not verify, the algorithm is not listed in `algorithms`, or the signing key is not in the key set of the issuer.',
    cure: 'Compare `alg` and `kid` in the token header with `issuers.<name>.algorithms` and the issuer’s JWKS. The log line `part of the keys or metadata of an issuer cannot be used` names keys that were left out, and why.',
  },
  'token-type': {
    cause:
      'The `typ` header is not `tokenType` (default `at+jwt`), or the claims show an identity token or a refresh token.',
    cure: 'Send an access token. If the issuer uses another type, set `tokenType`, for example `JWT`, or `none` if it sends no type.',
  },
  'token-issuer': {
    cause: '`iss` is not the `issuer` of an issuer that this upstream lists under `issuers`.',
    cure: 'Compare the two values exactly, including a trailing slash, and check `upstreams.<name>.issuers`.',
  },
  'token-audience': {
    cause: 'The audience is not exactly `publicUrl` + path of the upstream, or the token has more than one audience.',
    cure: 'Let the authorization server write this URL into `aud` and nothing else (see the guide for your identity provider), or map the audience with `upstreams.<name>.audiences`.',
  },
  'token-expired': {
    cause: '`exp` is in the past.',
    cure: 'Get a new token. If it happens with fresh tokens, synchronize the clocks.',
  },
  'token-not-yet-valid': {
    cause: '`nbf` or `iat` is in the future.',
    cure: 'Synchronize the clocks of the gateway and the authorization server.',
  },
  'token-lifetime': {
    cause:
      'The token is valid for longer than `issuers.<name>.maxLifetime` (default one hour). The log line and the event `auth.failure` name both times.',
    cure: 'Shorten the lifetime at the authorization server, or raise `maxLifetime`.',
  },
  'token-revoked': {
    cause: 'An administrator revoked the token or its subject, or the issuer says that it is not active.',
    cure: 'Log in again. Revocations in force are at `GET /api/revocations` of the admin listener.',
  },
  'token-binding': {
    cause:
      'The token is bound to a key or a certificate and the request does not prove possession, or the upstream requires bound tokens (`binding`).',
    cure: 'Use a client that supports DPoP, or connect with the client certificate. Certificates do not work behind a proxy that ends TLS.',
  },
  'keys-unavailable': {
    cause: 'The gateway cannot reach the issuer: its metadata, its key set or its introspection endpoint.',
    cure: 'The log names the URL and the error. Check DNS, TLS, the egress policy and `issuers.<name>.network`.',
  },
  'insufficient-scope': {
    cause: 'A rule grants the call, but the token lacks a scope of that rule.',
    cure: 'The challenge names all needed scopes. Let the client request them, and check that the authorization server grants them.',
  },
  'no-matching-allow': {
    cause: 'No `allow` rule matches the caller, the upstream and the name. The caller only sees “not found”.',
    cure: 'Compare `actor` and `target` of the audit event with `who` and `what` of the rules: issuer name, groups, spelling of the tool.',
  },
  'denied-by-rule': {
    cause: 'A `deny` rule matches. The audit event names it (`decision.rule`).',
    cure: 'If the call is legitimate, narrow the rule. Deny overrides allow, regardless of their order.',
  },
  blocked: {
    cause:
      'An administrator has blocked the item, the caller, the upstream or everything. The audit event names the block (`decision.rule`).',
    cure: '`sallyport block list` shows who blocked what, and why; an admin lifts it with `sallyport unblock ID`.',
  },
  'policy-error': {
    cause: 'A `when` expression failed, for example because it reads a claim that this token lacks.',
    cure: 'Guard optional values with `has(...)`. The log names the rule.',
  },
  'rate-limited': {
    cause: 'The rate of a rule is used up, or the caller opened more than 3,000 sessions in a minute.',
    cure: 'Wait for the stated number of seconds. To allow more, raise `limits.rate` of the rule that the audit event names.',
  },
  overloaded: {
    cause:
      'Too many requests are in flight: `limits.concurrency` of the upstream, `limits.concurrencyPerCaller`, open streams, or a full inspection queue.',
    cure: 'Look at `sallyport_inflight_requests` and the latency of the upstream. Raise the limit if the upstream can take more.',
  },
  'approval-required': {
    cause:
      'A rule or a flow asks for the approval of a person (`decision.rule`), and nobody has given it yet. `decision.approval` of the audit event is the id of the question; without one, too many questions of this caller stand already, or the arguments are too large to be shown.',
    cure: 'The caller opens the link in the answer, or a reviewer answers (console, `sallyport approvals list`). Then the client sends the same request again. If nobody can answer, the control `approvals` says why.',
  },
  'approval-denied': {
    cause: 'A person said no. The audit event `approval.denied` with the id in `decision.approval` says who.',
    cure: 'The no holds for the same request until the approval expires. A request with other arguments is another question.',
  },
  'approval-expired': {
    cause: 'There was a yes, but the request was not sent again before `use` of the rule had passed.',
    cure: 'A new question stands already. Send the request again soon after the yes, or raise `use`.',
  },
  'approval-mismatch': {
    cause:
      'The same caller sent the same request, but since the question was asked the pin of the definition, or a rule that asks for the approval, has changed.',
    cure: 'Send the request again: the person is shown it as it is now.',
  },
  'restart-pending': {
    cause:
      'A rule that is new or changed needs a key of the gateway file that takes effect at a start only, such as `admin` for the reviewers that it asks. The control `configuration` names the key and the rule.',
    cure: 'Restart the gateway, or put the key back; then the rule is in force as it is written.',
  },
  'tainted-flow': {
    cause:
      'A flow refuses the request because of results that the same issuer and subject received before. The audit event names the flow (`decision.rule`) and the decisions that delivered the results (`decision.causes`).',
    cure: 'Wait for the stated number of seconds. If the results are to be trusted, label their tool or upstream `trusted`.',
  },
  'tool-unpinned': {
    cause: 'The definition is not in the lock file, or it is pending.',
    cure: 'Run `sallyport pin fetch`, read the definition, then `sallyport pin approve UPSTREAM NAME`.',
  },
  'tool-changed': {
    cause: 'The upstream now serves a definition that differs from the approved one.',
    cure: 'Run `sallyport pin diff`. If the change is wanted, `sallyport pin fetch`, review and approve; otherwise restore the server.',
  },
  'tool-blocked': {
    cause: 'Somebody blocked the definition with `sallyport pin block`.',
    cure: 'Run `sallyport pin approve UPSTREAM NAME --digest DIGEST`. Only an approval with a digest lifts a block.',
  },
  'tool-poisoned': {
    cause:
      'Nobody approved the definition, and the scan found in it what addresses the model in place of describing a tool, or the scan did not finish. The audit events `pin.finding` and the control `pins:UPSTREAM` name what was found.',
    cure: 'Read the definition with `sallyport pin diff UPSTREAM`. If it is meant well, approve it with `sallyport pin approve UPSTREAM NAME --accept FINDING`; otherwise block it with `sallyport pin block`, and tell whoever runs the server.',
  },
  'tool-shadowed': {
    cause: 'Two names look alike, for example by letters of another alphabet.',
    cure: 'Rename one of them at its server, or give the backend another prefix.',
  },
  'tool-invalid': {
    cause: 'The definition is not valid for the protocol revision, or its schema cannot be compiled.',
    cure: 'The log names the error. Correct the schema at the server.',
  },
  'pins-stale': {
    cause:
      'The gateway could not list the definitions of the upstream within `pinning.maxAge`: the upstream is down, slow, or refuses the credential of the gateway; or one of its lists fails while the others are used (`detail` says which).',
    cure: 'The log lines `upstream could not be listed` and `part of a listing cannot be used`, and the control `pins:<upstream>`, say what was wrong. Check the upstream, and `pinning.credentials` if it lists only for authenticated callers.',
  },
  'arguments-invalid': {
    cause:
      'The arguments do not match the approved input schema, or no rule allows these values. The text of the refusal says which argument.',
    cure: 'Correct the arguments, or extend `args` of the rule.',
  },
  'arguments-content': {
    cause: 'A detector found a secret, or the caller’s own token, in the arguments.',
    cure: 'The text of the refusal, the log line and `findings` of the audit event name the place and the detector. Remove the value, or change `request.secrets` of the inspection profile.',
  },
  'arguments-redacted': {
    cause:
      'The arguments contain a redaction mark of this gateway. The text that was read had been altered, and the mark would overwrite the original. Upstreams and tools whose content is of the kind `code` refuse this by default.',
    cure: 'Change only parts without a mark (an edit instead of a whole write). To let the text be read whole, change `secrets` or `pii` of the inspection profile; to let marks pass, set its `request.marks`.',
  },
  'result-invalid': {
    cause: 'The structured result does not match the approved output schema.',
    cure: 'Correct the server, or fetch and approve the definition that describes what it returns.',
  },
  'result-content': {
    cause: 'A detector that is set to `block` found something in the result, or the result could not be inspected.',
    cure: '`findings` of the audit event name detector and path. Choose `redact` or `flag` in the profile if this content may pass.',
  },
  'result-too-large': {
    cause:
      'The result exceeds `limits.maxResponseBytes` or `limits.maxValues` of the upstream, or `maxResultBytes` of a rule. It was not read, which says nothing of what is in it.',
    cure: 'Ask for less, for example page by page, or raise the limit.',
  },
  'resource-forbidden': {
    cause: 'No rule allows this resource URI. The caller only sees “not found”.',
    cure: 'Compare `target.name` of the audit event with `what.resources` of the rules.',
  },
  'elicitation-sensitive': {
    cause: 'The server asked the user for a password, token or similar secret.',
    cure: 'Servers must not collect secrets this way. Use OAuth, or an upstream credential of the gateway.',
  },
  'elicitation-url': {
    cause:
      'The link is not a plain `https` URL (it has another scheme, a user name and password, or invisible or ambiguous characters, or is too long), or no rule names its host.',
    cure: 'Correct the server, or name the host in `what.elicitation.url` of a rule if users may be sent there. Look-alike links are never shown to users.',
  },
  'elicitation-approval': {
    cause:
      'The server sent a form or a link that speaks in the name of the gateway or asks to approve a call. A person cannot tell it from a question of the gateway.',
    cure: 'Let the server ask about its own things in its own words (“Delete 12 files?”). Calls are approved by [rules](../reference/approvals.md).',
  },
  'elicitation-forbidden': {
    cause: 'The server requested input from the user, and no rule grants it.',
    cure: 'Grant elicitation in a rule. See [policies](../reference/policies.md#server-requests-by-content).',
  },
  'sampling-forbidden': {
    cause:
      'The server requested output of the client’s model, and no rule allows it with this context and these tools.',
    cure: 'Grant sampling in a rule, if this server may use the model of your users.',
  },
  'roots-forbidden': {
    cause: 'The server requested the roots of the client, and no rule grants it.',
    cure: 'Grant roots in a rule, if this server may know them.',
  },
  'unknown-task': {
    cause: 'The task id belongs to another caller, was altered, or has expired.',
    cure: 'Start the task again.',
  },
  'upstream-unavailable': {
    cause:
      'No connection to the MCP server: DNS, refused connection, TLS, or an address outside `network` of the upstream; or it failed with a 5xx, or broke its answer off.',
    cure: 'The log names the error, `detail` the status or how the answer ended. For addresses of a private network set `network: private`.',
  },
  'upstream-timeout': {
    cause: 'The server sent no response within `limits.requestTimeout`.',
    cure: 'Check the server, or raise the limit for slow tools.',
  },
  'upstream-protocol': {
    cause:
      'The server sent something other than MCP: a redirect, an HTML page, invalid JSON, a content encoding, an unexpected status such as 404, or a stream that ended without a response.',
    cure: '`detail` of the log line and of the audit event (`decision.detail`) says what was wrong, such as `404 to tools/list`, `redirect to https://…`, `content-encoding: gzip` or `tools/call: the stream ended without a response`. Often the path is missing from `url` (`/mcp`), or the server refuses the `Host` header.',
  },
  'upstream-credentials': {
    cause:
      'The gateway could not obtain the credential for this upstream, or the upstream refused it (401, 403 or 407, named in `detail`).',
    cure: 'Check `credentials` of the upstream and the authorization server named there. The control `upstream-credentials:<upstream>` states the error.',
  },
  'asked-elsewhere': {
    cause: 'A reply arrived for a call that has ended or that runs on another replica.',
    cure: 'Call again. With several replicas, configure the shared store and a load balancer that keeps a caller on one replica.',
  },
  'already-answered': {
    cause: 'The client replied twice to the same server request.',
    cure: 'Nothing to do; the first reply was forwarded.',
  },
  'gateway-starting': {
    cause:
      'The ports were open, but the audit log, the shared store or the first reading of the files was not ready yet. Nothing was sent to a server.',
    cure: 'Send the request again. Let the balancer ask `/readyz`, so that it sends nothing to a gateway that is starting. If it lasts, the log says what the start waits for.',
  },
  'gateway-stopping': {
    cause:
      'The gateway was told to end while the request ran longer than `shutdown.drain`, or a request came on an open connection after it had stopped accepting.',
    cure: 'If the text says that the request was not carried out, send it again. Otherwise it had been sent to the server: look first whether it was carried out. For long calls raise `shutdown.drain` and the grace period of the container together.',
  },
  'audit-unavailable': {
    cause: 'The audit file cannot be written: disk full, permissions, or another process writes it.',
    cure: 'The control `audit` states the error. Free the disk, or move the file away; the gateway continues by itself.',
  },
  'store-unavailable': {
    cause: 'Redis has not been reachable for longer than `state.maxAge`, or a single-use value cannot be checked.',
    cure: 'Check Redis and the network. Service resumes with the first successful poll.',
  },
  internal: {
    cause: 'A defect, or an error of the machine such as lack of memory.',
    cure: 'The log has the error under the decision id. Please report it with that line.',
  },
};

const STAGE_TITLES: readonly (readonly [Stage, string])[] = [
  ['edge', 'Before anything is read'],
  ['authn', 'Tokens'],
  ['admit', 'The message'],
  ['decide', 'Policy and pins'],
  ['guard', 'Content of the arguments'],
  ['settle', 'Limits'],
  ['record', 'The audit log'],
  ['forward', 'The upstream'],
  ['inspect', 'The result'],
];

function section([stage, title]: readonly [Stage, string]): string {
  const names = (Object.keys(REASONS) as Reason[]).filter((name) => REASONS[name].stage === stage);
  const entries = names.map((name) => {
    const { cause, cure } = ENTRIES[name];
    return `### \`${name}\`\n\n${REASONS[name].text}\n\n- **Cause:** ${cause}\n- **What to do:** ${cure}\n`;
  });
  return `## ${title}\n\n${entries.join('\n')}`;
}

/** docs/guides/troubleshooting.md */
export function renderTroubleshootingPage(): string {
  return `# Troubleshooting by reason

<!-- Rendered from the source. Change the source, then run the tests with UPDATE_REFERENCE=1. -->

Every refusal has a reason and a decision id. The client shows the id, in \`data["dev.sallyport/decision"]\` or in the header \`Sallyport-Decision\`. The reason is there too if the caller may know that the target exists; otherwise the caller only sees “not found”. The audit log always has both. With the id in \`DECISION_ID\`:

<!-- try -->
\`\`\`sh
sallyport audit show "$DECISION_ID" .                    # everything about one decision, in the folder of the audit files
sallyport audit query --reason token-audience --since 30m .
\`\`\`

If nothing was refused but something seems wrong, look at \`sallyport_controls\` and [what to watch](observability.md). [The table of reasons](../reference/reasons.md) has statuses and codes.

${STAGE_TITLES.map(section).join('\n')}`;
}
