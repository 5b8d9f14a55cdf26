// For each key of the gateway file the test that goes from a file to what the key does: `file > part of the
// title`. config-effects.test.ts holds this to the schema and to the tests. A new key gets a line here.

export const gatewayEffects: Readonly<Record<string, string>> = {
  version: "unit/config/checks/refusals.test.ts > swap('version: 1', 'version: 2')",
  publicUrl: 'attacks/dpop-proofs.test.ts > is judged by the configured URL',
  keys: 'integration/replicas.test.ts > serves a session that it did not open',
  'tracing.otlp.{url,network}': 'integration/trace-export.test.ts > are sent to the receiver',
  'tracing.otlp.headers': 'integration/trace-export.test.ts > with the headers that are configured',
  'tracing.otlp.plaintext': 'unit/config/checks/tracing.test.ts > reaches a private network by plain http',
  'tracing.otlp.ca': 'integration/trace-export.test.ts > whose certificate another authority signed',
  'tracing.otlp.timeout': 'attacks/foreign-traces.test.ts > delays no call, and the control says so',
  'tracing.sampling': 'integration/trace-export.test.ts > for the share that is configured',
  'tracing.callerSampledPerSecond':
    'integration/trace-export.test.ts > whose issuer is trusted with it, within a bound',
  'tracing.callers': 'integration/trace-export.test.ts > tell callers apart by a keyed hash',

  'listeners.data.host': 'system/listeners.test.ts > is on its host alone',
  'listeners.data.port': 'integration/wire.test.ts > DELETE is answered with 204',
  'listeners.data.allowedOrigins': 'integration/cors.test.ts > a preflight of an allowed origin',
  'listeners.data.trustedProxies': 'integration/trusted-proxies.test.ts > where a trusted proxy wrote them',
  'listeners.data.dpop.nonce': 'integration/bound-tokens.test.ts > are asked for, given out with every answer',
  'listeners.data.dpop.maxAge': 'integration/effects-of-settings.test.ts > dpop.maxAge ends how long',
  'listeners.data.tls.{cert,key,clientCa}': 'attacks/certificate-bound-tokens.test.ts > passes over a connection',
  'listeners.ops.host': 'system/listeners.test.ts > is on its host alone',
  'listeners.ops.port': 'integration/probes.test.ts > say alive and ready, and nothing more',
  'listeners.ops.tls.{cert,key,clientCa}':
    'integration/listener-tls.test.ts > metrics are for those who prove a certificate',
  'listeners.admin.host': 'system/listeners.test.ts > is on its host alone',
  'listeners.admin.port': 'system/listeners.test.ts > takes a free port where the file says 0',
  'listeners.admin.tls.{cert,key,clientCa}':
    'integration/listener-tls.test.ts > nobody reaches the console without a certificate',

  'issuers.<name>.{issuer,network}': 'attacks/two-issuers.test.ts > passes by the keys of the issuer',
  'issuers.<name>.traceContext': 'integration/traces.test.ts > the trace of a caller is',
  'issuers.<name>.plaintext': 'attacks/plaintext-upstreams.test.ts > is believed where it was accepted',
  'issuers.<name>.algorithms': 'integration/effects-of-settings.test.ts > algorithms are those that may sign',
  'issuers.<name>.tokenType': 'attacks/token-kinds.test.ts > passes, and no other does',
  'issuers.<name>.maxLifetime': 'integration/effects-of-settings.test.ts > maxLifetime refuses tokens',
  'issuers.<name>.keysMaxAge': 'attacks/last-good-keys.test.ts > vouches for keysMaxAge',
  'issuers.<name>.introspection.{clientId,clientSecret,authentication,endpoint}':
    'integration/effects-of-settings.test.ts > introspection asks the endpoint',
  'issuers.<name>.introspection.cacheTtl': 'integration/issuer-reload.test.ts > is asked with the secret',
  'issuers.<name>.introspection.maxPerSecond': 'attacks/opaque-tokens.test.ts > floods ask no more than the rate',
  'issuers.<name>.claims.{client,scope,groups}': 'integration/effects-of-settings.test.ts > claims say where',
  'issuers.<name>.scopeHierarchy': 'attacks/scopes.test.ts > that is broad includes what the configuration says',

  'upstreams.<name>.url': 'integration/upstream-failures.test.ts > is 502 when nothing listens there',
  'upstreams.<name>.socket': 'integration/stdio.test.ts > over its Unix socket',
  'upstreams.<name>.path': 'integration/effects-of-settings.test.ts > path is where an upstream is called',
  'upstreams.<name>.transport':
    'attacks/hostile-sse-endpoints.test.ts > of another origin makes the upstream unlistable',
  'upstreams.<name>.network': 'integration/wire.test.ts > DELETE is answered with 204',
  'upstreams.<name>.plaintext': 'attacks/plaintext-upstreams.test.ts > is served where it was accepted',
  'upstreams.<name>.authentication': 'integration/effects-of-settings.test.ts > authentication: none lets everyone in',
  'upstreams.<name>.issuers': 'attacks/two-issuers.test.ts > may not vouch for this upstream',
  'upstreams.<name>.audiences': 'attacks/resource-metadata.test.ts > while a mapped audience, exactly',
  'upstreams.<name>.binding': 'integration/bound-tokens.test.ts > takes them with their proof, and no other token',
  'upstreams.<name>.scopesSupported': 'integration/reload.test.ts > of the gateway file is applied',
  'upstreams.<name>.sameAs':
    'unit/cli/pin/shadowing.test.ts > is approved without a finding where the gateway file declares it',
  'upstreams.<name>.required': 'integration/readiness.test.ts > that is in front of an upstream that',
  'upstreams.<name>.apps': 'integration/apps-by-capability.test.ts > gets what was pinned for hosts',
  'upstreams.<name>.flows.lists': 'attacks/lists-begin-no-flow.test.ts > a list is delivered whole to a client of',
  'upstreams.<name>.inspect': 'integration/effects-of-settings.test.ts > inspect of the upstream chooses',
  'upstreams.<name>.content.kind': 'integration/content-kinds.test.ts > leaves every character',
  'upstreams.<name>.content.tools.<name>':
    'integration/content-kinds.test.ts > markup has no code in which something may stay',
  'upstreams.<name>.content.tools.<name>.{kind,digest}':
    'integration/content-kinds.test.ts > ends when the server changes the definition',
  'upstreams.<name>.credentials.type': 'e2e/upstream-credentials.test.ts > are got by %s, for the resource',
  'upstreams.<name>.credentials.{header,value}':
    'attacks/redirects-of-upstreams.test.ts > keeps the credential at its upstream',
  'upstreams.<name>.credentials.{issuer,privateKey,clientId,clientSecret,clientAuthentication,scopes}':
    'e2e/upstream-credentials.test.ts > are got by %s, for the resource',
  'upstreams.<name>.credentials.{tokenEndpoint,network}':
    'attacks/faulty-token-exchange.test.ts > where the server is honest',
  'upstreams.<name>.credentials.plaintext': 'attacks/plaintext-upstreams.test.ts > issues credentials for an upstream',
  'upstreams.<name>.pinning.credentials.plaintext':
    'attacks/plaintext-upstreams.test.ts > issues credentials for an upstream',
  'upstreams.<name>.credentials.resource': 'e2e/upstream-credentials.test.ts > gives the upstream a token of its own',
  'upstreams.<name>.credentials.{audience,actorToken}':
    'integration/exchange-channels.test.ts > names the acting party and the audience',
  'upstreams.<name>.credentials.actorTokenType': 'integration/effects-of-settings.test.ts > name the type of the token',
  'upstreams.<name>.tls.ca': 'integration/upstream-tls.test.ts > where the configured authority issued it',
  'upstreams.<name>.tls.{cert,key}': 'integration/upstream-tls.test.ts > is shown to the upstream that asks for it',
  'upstreams.<name>.tls.serverName': 'integration/upstream-tls.test.ts > is held to the configured name',
  'upstreams.<name>.tls.pins': 'integration/upstream-tls.test.ts > lets in the server that has one of them',
  'upstreams.<name>.identity.{header,ttl}': 'integration/upstream-identity.test.ts > is as long as configured',
  'upstreams.<name>.tools.<name>.{name,description}':
    'attacks/presented-tools.test.ts > both sides have their names, values and headers',
  'upstreams.<name>.tools.<name>.parameters.<name>.{value,default,hide}':
    'attacks/presented-tools.test.ts > both sides have their names, values and headers',
  'upstreams.<name>.arguments':
    'integration/effects-of-settings.test.ts > arguments says what happens to those that nobody declared',
  'upstreams.<name>.arguments.undeclared':
    'integration/mended-arguments.test.ts > undeclared is what the words are short for',
  'upstreams.<name>.arguments.coerce':
    'integration/mended-arguments.test.ts > coerce turns strings into what the schema admits',
  'upstreams.<name>.arguments.drop': 'integration/mended-arguments.test.ts > drop removes what no schema declares',
  'upstreams.<name>.formats': 'integration/mended-arguments.test.ts > formats says whether a format is asserted',
  'upstreams.<name>.pinning.mode': 'integration/effects-of-settings.test.ts > mode: off calls what nobody has pinned',
  'upstreams.<name>.pinning.maxAge':
    'attacks/definitions-changed-after-listing.test.ts > when the definitions cannot be verified any more',
  'upstreams.<name>.pinning.verify':
    'attacks/pins-in-each-era.test.ts > is refused a tool that changed since the call before',
  'upstreams.<name>.pinning.scan': 'integration/definition-scan.test.ts > lists what it found, and records it',
  'upstreams.<name>.pinning.onDrift': 'integration/drift.test.ts > stops every tool of the upstream',
  'upstreams.<name>.pinning.credentials.{type,tokenEndpoint,network,clientId,clientSecret,clientAuthentication,scopes,audience}':
    'integration/effects-of-settings.test.ts > of pinning are asked for as they are configured',
  'upstreams.<name>.pinning.credentials.{header,value,resource}':
    'integration/effects-of-settings.test.ts > of pinning may be a header',
  'upstreams.<name>.pinning.credentials.{issuer,privateKey}':
    'e2e/upstream-credentials.test.ts > let the gateway list for itself',
  'upstreams.<name>.limits.requestTimeout': 'attacks/slow-answers.test.ts > is a 504 in time',
  'upstreams.<name>.limits.streamIdle': 'integration/bridged-upstreams.test.ts > is ended, and its channel with it',
  'upstreams.<name>.limits.exchangeMax': 'integration/exchange-bounds.test.ts > ends for a stateless client',
  'upstreams.<name>.limits.keepAlive': 'integration/exchange-bounds.test.ts > says that it lives, before its answer',
  'upstreams.<name>.limits.maxRequestBytes': 'integration/limits.test.ts > of the request body are exact to the byte',
  'upstreams.<name>.limits.maxResponseBytes': 'attacks/hostile-results.test.ts > at its cap passes whole',
  'upstreams.<name>.limits.maxValues': 'attacks/starvation.test.ts > of values in a result is withheld',
  'upstreams.<name>.limits.maxStreamBytesPerMinute':
    'attacks/starvation.test.ts > on a stream of its own is cut off by the minute',
  'upstreams.<name>.limits.maxListingBytesPerMinute':
    'attacks/starvation.test.ts > is not asked again in a minute in which its lists were too long',
  'upstreams.<name>.limits.concurrency': 'integration/limits.test.ts > what does not fit beside what runs',
  'upstreams.<name>.limits.concurrencyPerCaller': 'integration/limits.test.ts > of a caller leave the rest to others',
  'upstreams.<name>.limits.listTtl': 'attacks/cached-results.test.ts > leave as private and for a bounded time',

  'endpoints.<name>.{path,audiences}':
    'integration/effects-of-settings.test.ts > audiences open it in place of its own',
  'endpoints.<name>.authentication': 'integration/effects-of-settings.test.ts > authentication: none lets everyone in',
  'endpoints.<name>.issuers': 'integration/merged.test.ts > opens neither a member nor',
  'endpoints.<name>.upstreams.<name>.prefix': 'integration/effects-of-settings.test.ts > and prefix names its tools',

  'policies.dir': 'integration/reload.test.ts > of a policy is applied soon',
  'policies.mode': 'integration/shadow.test.ts > lets pass what the rules refuse',
  'policies.acceptUnenforced': 'unit/config/checks/refusals.test.ts > are a choice that is made twice',
  'pins.dir': 'integration/reload.test.ts > of a lock file that is corrupt',
  'pins.{signers.<name>.publicKey,require}':
    'integration/signed-pins.test.ts > a start and a reload, and validate says why',
  'pins.shadowing[].{items,owner,until}': 'unit/cli/pin/shadowing.test.ts > is approved where an exception names both',

  'inspection.profiles.<name>.request.secrets':
    'integration/effects-of-settings.test.ts > secrets of requests leave where nobody looks',
  'inspection.profiles.<name>.request.marks':
    'integration/redaction-marks.test.ts > are let pass where the profile says so',
  'inspection.profiles.<name>.request.links':
    'integration/effects-of-settings.test.ts > links of requests stay where a profile says so',
  'inspection.profiles.<name>.result.{secrets,links,activeContent,invisible,injection}':
    'integration/effects-of-settings.test.ts > acts on what it is about',
  'inspection.profiles.<name>.result.pii': 'integration/effects-of-settings.test.ts > inspect of the upstream chooses',
  'inspection.profiles.<name>.result.pii.{action,kinds}':
    'integration/effects-of-settings.test.ts > kinds are the personal data that is meant',

  'state.{type,url}': 'system/replicas.test.ts > share a limit',
  'state.maxAge': 'system/replicas.test.ts > refuse callers without news',
  'state.commandTimeout': 'system/replicas.test.ts > waits for the store as long as',
  'state.afterLoss': 'attacks/emptied-store.test.ts > lets nobody send on',
  'state.readiness': 'attacks/emptied-store.test.ts > is waited for before the gateway is ready',
  'shutdown.delay': 'e2e/cli.test.ts > accepts requests for its delay after SIGTERM',
  'shutdown.drain': 'integration/shutdown.test.ts > gets a refusal of the gateway, and is not recorded',
  'startup.wait': 'integration/readiness.test.ts > waits no longer than startup.wait',
  'state.prefix': 'system/replicas.test.ts > keeps what it shares under its prefix',

  'audit.sinks[].{type,durability}': 'integration/effects-of-settings.test.ts > a sink of type stdout gets every line',
  'audit.sinks[].{url,network,headers,secret}':
    'integration/audit-delivery.test.ts > gets every line once and in order',
  'audit.sinks[].name': 'integration/audit-delivery.test.ts > gets what waited while it was away',
  'audit.sinks[].format': 'integration/audit-delivery.test.ts > and OCSF events where they are chosen',
  'audit.sinks[].tls.{ca,cert,key,serverName,pins}':
    'integration/audit-delivery.test.ts > proves who it is, and learns who delivers',
  'audit.sinks[].plaintext': 'integration/audit-delivery.test.ts > in a private network by plain TCP',
  'audit.sinks[].maxMessage': 'integration/audit-delivery.test.ts > names a line that is too long for it',
  'audit.sinks[].facility': 'integration/audit-delivery.test.ts > gets RFC 5424 messages',
  'audit.sinks[].path': 'attacks/audit-that-cannot-be-written.test.ts > goes on in a new file',
  'audit.durability': 'integration/effects-of-settings.test.ts > says whether each write is synced',
  'audit.onFailure': 'integration/effects-of-settings.test.ts > onFailure: continue lets calls go on',
  'audit.rotate.age': 'integration/one-writer.test.ts > begins the next file and removes what is old',
  'audit.rotate.size': 'integration/one-writer.test.ts > once one has the size that is configured',
  'audit.rotate.compress':
    'integration/one-writer.test.ts > compresses what is no longer written, and says how much is free',
  'audit.minFree': 'integration/one-writer.test.ts > compresses what is no longer written, and says how much is free',
  'audit.retain': 'integration/one-writer.test.ts > begins the next file and removes what is old',
  'audit.checkpoint.every': 'integration/wire.test.ts > verifies a checkpoint',

  'metrics.{toolLabel,maxSeries}': 'integration/effects-of-settings.test.ts > toolLabel gives metrics the names',

  'admin.issuers.<name>.audience': 'integration/admin.test.ts > lets in who holds a role',
  'admin.issuers.<name>.roles.{viewer,reviewer,admin}':
    'integration/revocation.test.ts > lets reviewers revoke, admins lift, viewers look',
  'admin.publicUrl': 'integration/console.test.ts > logs in by code flow with PKCE',
  'admin.issuers.<name>.login': 'unit/config/checks/gateway.test.ts > is refused in its former place',
  'issuers.<name>.login.match': 'unit/config/checks/gateway.test.ts > matches people by',
  'issuers.<name>.login.{clientId,clientSecret}': 'integration/console.test.ts > logs in by code flow with PKCE',
  'issuers.<name>.login.authentication': 'attacks/console.test.ts > is presented as the configuration says',
  'issuers.<name>.login.scopes': 'integration/console.test.ts > asks for the scopes that are configured',
  'approvals.webhooks.<name>.{url,secret,network}':
    'e2e/approvals-review.test.ts > tells a receiver by a signed message',
  'approvals.webhooks.<name>.format': 'e2e/approvals-review.test.ts > in the form of each receiver',
  'approvals.webhooks.<name>.ca': 'e2e/approvals-review.test.ts > whose certificate another authority signed',
  'approvals.webhooks.<name>.plaintext': 'e2e/approvals-review.test.ts > in a private network by plain http',
  'admin.breakGlass.token': 'integration/admin.test.ts > shows every control to the break-glass token',
};
