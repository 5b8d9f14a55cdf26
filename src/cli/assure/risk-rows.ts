// The risks that others have named, and what answers each: one row for a risk or a mitigation, with the settings, the
// controls whose state says whether the answer is in force, the tests that attack it, and what is not covered. The page
// docs/reference/risks.md and `sallyport assure` are made of these rows; test/unit/cli/assure checks that every setting,
// control and test exists.
// Sources, in our words: Google's whitepaper "Agent Tools & Interoperability with MCP" (November 2025); CoSAI, "Model
// Context Protocol (MCP) Security", version 2.0 (August 2026); OWASP MCP Top 10, 2025 (beta).

/** The kinds of controls: what stands before the colon in the name of one. */
export const CONTROL_KINDS = [
  ...(['policy', 'configuration', 'edge', 'authn', 'audience', 'binding', 'tls', 'pins', 'pin-signatures'] as const),
  ...(['inspection', 'endpoint', 'upstream-connection', 'upstream-credentials', 'upstream-identity'] as const),
  ...(['store', 'blocks', 'budgets', 'approvals', 'audit', 'audit-space', 'audit-delivery'] as const),
  ...(['metrics', 'tracing', 'admin'] as const),
] as const;
export type ControlKind = (typeof CONTROL_KINDS)[number];

export const RISK_SOURCES = {
  whitepaper: 'Agent Tools & Interoperability with MCP (Google, November 2025)',
  cosai: 'CoSAI, Model Context Protocol (MCP) Security 2.0 (August 2026)',
  owasp: 'OWASP MCP Top 10, 2025 (beta)',
} as const;
export type RiskSource = keyof typeof RISK_SOURCES;

export type RiskRow = {
  readonly source: RiskSource;
  readonly id: string;
  /** The risk; of a mitigation that the source asks for, the mitigation. */
  readonly risk: string;
  readonly answer: string;
  /** Keys of the gateway file as the reference names them; of policies behind `policy: `. */
  readonly settings: readonly string[];
  readonly controls: readonly ControlKind[];
  /** Below test/, without `.test.ts`. */
  readonly tests: readonly string[];
  /** What the answer does not cover. */
  readonly open: string;
};

type Row = Omit<RiskRow, 'source'>;

const WHITEPAPER: readonly Row[] = [
  {
    id: 'W1',
    risk: 'Dynamic capability injection: a server adds or changes tools, prompts or resources without notice.',
    answer:
      'Every definition and the instructions of a server are pinned; what is new, changed or unknown is hidden and refused until a person approves it.',
    settings: ['upstreams.<name>.pinning.mode', 'upstreams.<name>.pinning.onDrift', 'upstreams.<name>.pinning.maxAge'],
    controls: ['pins', 'policy'],
    tests: ['attacks/changed-definitions', 'attacks/definitions-changed-after-listing', 'attacks/pins-in-each-era'],
    open: 'A server that changes what a tool does and not what it says of it is not noticed.',
  },
  {
    id: 'W1.1',
    risk: 'Mitigation: an explicit allow-list of tools.',
    answer: 'Nothing is listed or callable unless an allow rule names it for this caller.',
    settings: ['policy: rules[].what.tools', 'policy: rules[].who', 'policies.mode'],
    controls: ['policy'],
    tests: ['integration/laws', 'attacks/hidden-looks-like-absent', 'attacks/policies-in-each-era'],
    open: 'A rule can be written too widely; `validate` warns of some of these and not of all.',
  },
  {
    id: 'W1.2',
    risk: 'Mitigation: a mandatory notification of changes.',
    answer:
      'Drift is recorded, counted and shown in the console, and clients get `list_changed`; what changed stays refused.',
    settings: ['upstreams.<name>.pinning.maxAge', 'upstreams.<name>.pinning.verify'],
    controls: ['pins', 'metrics'],
    tests: ['integration/drift', 'attacks/definitions-changed-after-listing'],
    open: 'A server is not told; who reads the alert is up to the operator.',
  },
  {
    id: 'W1.3',
    risk: 'Mitigation: pinning of tools and packages.',
    answer: 'Lock files pin definitions by SHA-256, and can require signatures of named reviewers.',
    settings: ['upstreams.<name>.pinning.mode', 'pins.signers', 'pins.require'],
    controls: ['pins', 'pin-signatures'],
    tests: ['attacks/changed-definitions', 'integration/signed-pins'],
    open: 'The code of a server is not pinned: pin its package or image where it is deployed.',
  },
  {
    id: 'W1.4',
    risk: 'Mitigation: a gateway through which all tools are reached.',
    answer:
      'Only configured servers are reachable through it, and each can demand an assertion, a certificate or a credential that only the gateway has.',
    settings: ['upstreams', 'upstreams.<name>.identity', 'upstreams.<name>.tls.cert', 'upstreams.<name>.credentials'],
    controls: ['upstream-identity', 'upstream-credentials', 'upstream-connection'],
    tests: ['integration/upstream-identity', 'integration/upstream-tls'],
    open: 'A client that can reach a server directly goes around it: close that way by network policy.',
  },
  {
    id: 'W1.5',
    risk: 'Mitigation: servers run in a controlled environment.',
    answer:
      'The chart runs the gateway without rights and closes its egress; `sallyport stdio` gives a server a process of its own with a small environment.',
    settings: [],
    controls: [],
    tests: ['integration/stdio', 'attacks/left-processes', 'system/container'],
    open: 'Servers are not sandboxed by Sallyport; where they run, and what they reach, is up to the operator.',
  },
  {
    id: 'W2',
    risk: 'Tool shadowing: a tool with a greedy description or a name that is easily confused attracts calls meant for another.',
    answer:
      'Names are compared by their look across all servers, near copies and references to other tools are found before approval, and a call reaches only the server of its path or prefix.',
    settings: ['pins.shadowing', 'upstreams.<name>.pinning.scan', 'endpoints.<name>.upstreams.<name>.prefix'],
    controls: ['pins', 'endpoint'],
    tests: ['attacks/spellings-of-names', 'integration/definition-scan', 'integration/merged-harm'],
    open: 'Two honest descriptions with the same purpose are not told apart by meaning.',
  },
  {
    id: 'W2.1',
    risk: 'Mitigation: no collisions of names.',
    answer:
      'Each server has a path and an audience of its own; on a merged endpoint each has a prefix, and look-alike names are hidden.',
    settings: ['upstreams.<name>.path', 'endpoints.<name>.upstreams.<name>.prefix'],
    controls: ['endpoint', 'audience'],
    tests: ['attacks/spellings-of-names', 'integration/merged'],
    open: 'A client that connects to several paths still merges the names itself.',
  },
  {
    id: 'W2.2',
    risk: 'Mitigation: mutual TLS.',
    answer:
      'The gateway presents a certificate to servers, and verifies theirs by authority, name and pinned key; callers can be required to prove a key or a certificate.',
    settings: [
      'upstreams.<name>.tls.cert',
      'upstreams.<name>.tls.pins',
      'listeners.data.tls.clientCa',
      'upstreams.<name>.binding',
    ],
    controls: ['upstream-connection', 'binding', 'tls'],
    tests: ['integration/upstream-tls', 'attacks/certificate-bound-tokens', 'attacks/renewed-client-authorities'],
    open: 'Behind a proxy that ends TLS, certificates of callers cannot be verified; DPoP can.',
  },
  {
    id: 'W2.3',
    risk: 'Mitigation: deterministic rules before discovery, before a call, before data is returned, and before a tool sends data out.',
    answer:
      'One pure decision filters lists and admits calls, another part inspects every result before it is returned.',
    settings: ['policy: rules[]', 'inspection.profiles.<name>'],
    controls: ['policy', 'inspection', 'pins'],
    tests: ['integration/laws', 'attacks/checks-hold-for-what-leaves', 'attacks/rules-hold-beside-the-result'],
    open: 'What a server itself sends out is not seen here: that is the business of its network policy.',
  },
  {
    id: 'W2.4',
    risk: 'Mitigation: a person confirms high-risk operations, whichever tool asks for them.',
    answer: 'Require rules put a call to its caller by a login, or to reviewers; a yes is for exactly that call, once.',
    settings: ['policy: rules[].approval', 'issuers.<name>.login', 'admin.issuers.<name>.roles.reviewer'],
    controls: ['approvals', 'admin', 'store'],
    tests: [
      'attacks/approval-page',
      'attacks/approved-requests',
      'attacks/forms-in-our-name',
      'attacks/reviewers',
      'integration/approval-rules',
    ],
    open: 'That a person read the page cannot be proved; an agent that drives his browser can answer in his name.',
  },
  {
    id: 'W2.5',
    risk: 'Mitigation: no access to unauthorized servers.',
    answer: 'Only servers of the gateway file are reached, at addresses of the network that is configured for each.',
    settings: ['upstreams.<name>.url', 'upstreams.<name>.network'],
    controls: ['upstream-connection', 'configuration'],
    tests: ['attacks/redirects-of-upstreams', 'attacks/plaintext-upstreams', 'unit/upstream/safe-fetch'],
    open: 'Servers that a client is configured with beside the gateway are not seen.',
  },
  {
    id: 'W3',
    risk: 'Malicious definitions and consumed contents: instructions to the model, or active content, in definitions and results.',
    answer:
      'Definitions are scanned before approval; everything that is sent to the client is inspected twice by separate code, and findings are attached.',
    settings: ['upstreams.<name>.pinning.scan', 'upstreams.<name>.inspect', 'inspection.profiles.<name>.result'],
    controls: ['inspection', 'pins'],
    tests: [
      'attacks/hostile-results',
      'attacks/active-content',
      'attacks/instructions-outside-descriptions',
      'attacks/broken-inspector',
    ],
    open: 'Instructions in plain words pass unless the profile blocks them, and no filter knows all of them.',
  },
  {
    id: 'W3.1',
    risk: 'Mitigation: validation of inputs.',
    answer:
      'Arguments must fit the approved schema; rules constrain values, and ambiguous JSON, sizes and depths are refused.',
    settings: [
      'upstreams.<name>.arguments.undeclared',
      'policy: rules[].args',
      'policy: rules[].when',
      'upstreams.<name>.limits.maxRequestBytes',
    ],
    controls: ['policy', 'pins', 'edge'],
    tests: ['attacks/duplicate-members', 'attacks/checks-hold-for-what-leaves', 'integration/effects-of-rules'],
    open: 'A path, a query or a command is checked only by a rule or a schema that somebody wrote.',
  },
  {
    id: 'W3.2',
    risk: 'Mitigation: outputs are sanitized: secrets, personal data, active Markdown and HTML, links.',
    answer:
      'Detectors redact secrets and personal data and make active content inert in every channel of a result; links outside an allow-list are flagged or removed.',
    settings: [
      'inspection.profiles.<name>.result.secrets',
      'inspection.profiles.<name>.result.pii',
      'inspection.profiles.<name>.result.activeContent',
      'inspection.profiles.<name>.result.links',
    ],
    controls: ['inspection'],
    tests: ['attacks/secrets-in-every-carrier', 'attacks/active-content', 'attacks/secret-split-over-events'],
    open: 'Formats that no detector knows, encodings beyond the stated depth, and the content of images pass.',
  },
  {
    id: 'W3.3',
    risk: 'Mitigation: inputs of users are kept apart from what others wrote (two planners, for trusted and untrusted content).',
    answer:
      'Two endpoints can divide trusted from untrusted servers, and flows keep what one returned from what the other publishes.',
    settings: ['endpoints', 'policy: labels', 'policy: flows'],
    controls: ['policy', 'endpoint', 'store'],
    tests: ['integration/flows', 'attacks/uris-into-sinks', 'attacks/received-outside-of-responses'],
    open: 'How a client builds the context of its model is not seen here.',
  },
  {
    id: 'W3.4',
    risk: 'Mitigation: resources are validated against an allow-list.',
    answer:
      'Resources are read only where a pattern on the parsed URI grants it, and exactly the URI that was checked is forwarded.',
    settings: ['policy: rules[].what.resources', 'policy: rules[].what.templates'],
    controls: ['policy'],
    tests: ['attacks/spellings-of-resources', 'attacks/hundreds-of-uris'],
    open: 'What a server returns under a granted URI is inspected, not compared with a pin.',
  },
  {
    id: 'W3.5',
    risk: 'Mitigation: descriptions are sanitized before they reach the model.',
    answer:
      'What is approved is shown to a reviewer with everything invisible written out; what is not approved is hidden, and remote icons are removed.',
    settings: ['upstreams.<name>.pinning.mode', 'upstreams.<name>.pinning.scan'],
    controls: ['pins'],
    tests: ['integration/definition-scan', 'attacks/remote-icons', 'attacks/instructions-outside-descriptions'],
    open: 'With `pinning.mode: trust-on-first-use` or `off`, only the scan stands between a description and the model.',
  },
  {
    id: 'W4',
    risk: 'Sensitive information leaks, also by a server that asks the user for secrets.',
    answer:
      'Secrets and personal data are found in both directions; forms and links by which a server asks are refused unless a rule grants them, and never for secrets.',
    settings: [
      'inspection.profiles.<name>.request.secrets',
      'inspection.profiles.<name>.result.secrets',
      'policy: rules[].what.elicitation',
    ],
    controls: ['inspection', 'policy'],
    tests: [
      'attacks/secrets-in-every-carrier',
      'attacks/server-questions',
      'attacks/forms-in-our-name',
      'attacks/rules-about-server-requests',
    ],
    open: 'A hostile server can encrypt what it sends; secrets of unknown form are not found.',
  },
  {
    id: 'W4.1',
    risk: 'Mitigation: structured outputs whose sensitive fields are annotated.',
    answer:
      'Policies name fields of arguments and results by JSON pointer; they are redacted, tagged or refused in every carrier.',
    settings: ['policy: sensitive'],
    controls: ['policy', 'inspection'],
    tests: ['integration/sensitive-fields', 'attacks/sensitive-fields-in-every-carrier'],
    open: 'A field that nobody named is covered by detectors alone.',
  },
  {
    id: 'W4.2',
    risk: 'Mitigation: tainted sources and sinks are tracked.',
    answer:
      'After untrusted or sensitive results, calls that publish are refused or put to a person for a time, over all clients, servers and replicas of the caller.',
    settings: ['policy: labels', 'policy: flows', 'state.type', 'state.afterLoss'],
    controls: ['policy', 'store'],
    tests: ['integration/flows', 'attacks/lists-begin-no-flow', 'attacks/emptied-store', 'system/replicas'],
    open: 'The memory of a model, and what does not pass the gateway, carries no mark.',
  },
  {
    id: 'W5',
    risk: 'No way to limit access: one coarse grant for a whole server.',
    answer:
      'Tokens are for one server, rules need scopes for single tools, arguments and results are limited, and rates and budgets bound the use.',
    settings: [
      'upstreams.<name>.audiences',
      'policy: rules[].scopes',
      'policy: rules[].limits',
      'policy: rules[].args',
    ],
    controls: ['audience', 'policy', 'budgets'],
    tests: ['attacks/tokens-for-another-audience', 'attacks/scopes', 'integration/limits', 'e2e/gateway-oauth'],
    open: 'The rights that a server grants to the credential of the gateway are set at that server.',
  },
  {
    id: 'W5.1',
    risk: 'Mitigation: audience and scope of every credential are validated.',
    answer:
      'Issuer, audience, type, times and scopes are compared exactly; tokens that are exchanged for a server are checked in the same way.',
    settings: [
      'issuers.<name>.issuer',
      'issuers.<name>.tokenType',
      'upstreams.<name>.audiences',
      'upstreams.<name>.credentials.resource',
    ],
    controls: ['authn', 'audience', 'upstream-credentials'],
    tests: [
      'attacks/tokens-for-another-audience',
      'attacks/token-claims',
      'attacks/token-kinds',
      'attacks/faulty-token-exchange',
    ],
    open: 'Where an issuer cannot name a resource, its configured audience may serve other purposes too; the control says so.',
  },
  {
    id: 'W5.2',
    risk: 'Mitigation: least privilege.',
    answer:
      'Denied unless allowed, for named tools and people; `replay --suggest` proposes the least rules that explain what was used.',
    settings: ['policy: rules[].who', 'policy: rules[].what'],
    controls: ['policy'],
    tests: ['integration/laws', 'integration/replay'],
    open: 'Nobody is made to narrow a rule.',
  },
  {
    id: 'W5.3',
    risk: 'Mitigation: secrets and credentials stay out of the context of the agent.',
    answer:
      'Credentials for servers are added by the gateway; that of a caller is never forwarded, and both are refused or redacted wherever they appear.',
    settings: ['upstreams.<name>.credentials', 'inspection.profiles.<name>.request.secrets'],
    controls: ['upstream-credentials', 'inspection'],
    tests: ['attacks/token-passthrough', 'attacks/own-credentials', 'unit/inspection/detectors/upstream-credentials'],
    open: 'What a client puts into its own context is not seen here.',
  },
  {
    id: 'W6',
    risk: 'Confused deputy: a server or gateway uses its own rights for whoever asks.',
    answer:
      "The caller's own rights decide each call; servers get a signed assertion of who calls, or a token exchanged for that caller.",
    settings: ['upstreams.<name>.credentials.type', 'upstreams.<name>.identity'],
    controls: ['policy', 'upstream-credentials', 'upstream-identity'],
    tests: [
      'attacks/token-passthrough',
      'attacks/invented-headers',
      'attacks/faulty-token-exchange',
      'integration/upstream-identity',
    ],
    open: 'With a static credential, a server that ignores the assertion sees one caller: the gateway.',
  },
  {
    id: 'W7',
    risk: 'Authentication and authorization are not ready for an enterprise.',
    answer:
      'Any issuer with metadata and keys or introspection works, with step-up by scopes, bound tokens, revocation within two seconds and open streams that end.',
    settings: ['issuers', 'upstreams.<name>.binding', 'listeners.data.dpop', 'state.type'],
    controls: ['authn', 'binding', 'blocks', 'store'],
    tests: [
      'e2e/gateway-oauth',
      'attacks/unsigned-tokens',
      'attacks/dpop-proofs',
      'integration/revocation',
      'attacks/streams-end-with-their-lease',
    ],
    open: 'The gateway is no authorization server: clients are registered and people log in at the issuer.',
  },
  {
    id: 'W8',
    risk: 'Ambiguous identity: user, agent and service cannot be told apart.',
    answer:
      'A principal has subject, client and the chain of actors from the token, apart from what the client says of itself, in rules, audit and assertion.',
    settings: ['issuers.<name>.claims', 'policy: rules[].who.actors', 'policy: rules[].who.clients'],
    controls: ['authn', 'upstream-identity', 'audit'],
    tests: ['attacks/identities-that-look-alike', 'attacks/switched-off-actors', 'e2e/callers', 'unit/auth/principal'],
    open: 'Which agent acts is known only if the token says so.',
  },
  {
    id: 'W9',
    risk: 'No observability: nobody can say what happened.',
    answer:
      'Every decision and outcome, refusals and lists included, is a line of a hash-chained audit log; metrics and traces go with it.',
    settings: ['audit.sinks', 'audit.onFailure', 'audit.checkpoint.every', 'tracing', 'metrics'],
    controls: ['audit', 'audit-space', 'audit-delivery', 'metrics', 'tracing'],
    tests: [
      'attacks/audit-that-cannot-be-written',
      'attacks/audit-of-replicas',
      'attacks/log-injection',
      'integration/traces',
    ],
    open: 'The end of a file behind the last signed checkpoint can be cut off by whoever can write it.',
  },
  {
    id: 'W10',
    risk: 'Context bloat: every tool of every server is in the context of the model.',
    answer:
      'A caller is listed only what he may use, with schemas narrowed to what his rules allow; the sizes of lists are measured.',
    settings: ['policy: rules[].what.tools', 'policy: rules[].args', 'policy: rules[].maxResultBytes'],
    controls: ['policy', 'metrics'],
    tests: ['integration/merged-lists', 'unit/policy/narrowed-schema'],
    open: 'Tools are not retrieved by meaning.',
  },
  {
    id: 'W11',
    risk: 'A stateful protocol is hard to scale and to secure: session ids that others use, state that dies with a replica.',
    answer:
      'Ids are sealed and bound to the caller, any replica serves them, and the stateless revision is translated to servers with sessions.',
    settings: ['keys', 'state.type', 'upstreams.<name>.transport'],
    controls: ['store', 'authn'],
    tests: ['attacks/stolen-sessions', 'attacks/stolen-tasks', 'attacks/session-ids-of-servers', 'system/any-replica'],
    open: 'Streams that were open at a replica that ends are begun again by the client.',
  },
];

const COSAI: readonly Row[] = [
  {
    id: 'MCP-T1',
    risk: 'Improper authentication and identity management.',
    answer:
      'Tokens are verified by the keys or the introspection of their issuer alone, in one spelling, with type, audience and times; user, client and actors are kept apart.',
    settings: ['issuers', 'issuers.<name>.algorithms', 'issuers.<name>.maxLifetime', 'upstreams.<name>.binding'],
    controls: ['authn', 'audience', 'binding'],
    tests: [
      'attacks/unsigned-tokens',
      'attacks/two-issuers',
      'attacks/respelt-tokens',
      'attacks/two-credentials',
      'attacks/opaque-tokens',
    ],
    open: 'The identity of an agent is what its issuer attests; workloads are not attested here.',
  },
  {
    id: 'MCP-T2',
    risk: 'Missing or improper access control.',
    answer:
      'Denied unless a rule allows it, for lists and calls alike, by one decision; refused and hidden look like absent.',
    settings: ['policy: rules[]', 'policies.mode', 'policy: rules[].scopes'],
    controls: ['policy'],
    tests: [
      'integration/laws',
      'attacks/hidden-looks-like-absent',
      'attacks/every-named-item-counts',
      'attacks/reload-under-load',
    ],
    open: 'Rights inside a server, such as rows of a table, are the business of that server.',
  },
  {
    id: 'MCP-T3',
    risk: 'Input is not validated or sanitized.',
    answer:
      'Strict JSON, approved schemas, rules on arguments, and limits on bytes, depth and values, before anything is forwarded.',
    settings: [
      'upstreams.<name>.arguments.undeclared',
      'upstreams.<name>.formats',
      'policy: rules[].args',
      'policy: rules[].when',
    ],
    controls: ['edge', 'policy', 'pins'],
    tests: [
      'attacks/duplicate-members',
      'attacks/ambiguous-json',
      'attacks/bodies-that-are-not-plain-json',
      'attacks/name-header-against-body',
    ],
    open: 'Injection into SQL, shells or paths is refused only by schemas or rules that describe the argument.',
  },
  {
    id: 'MCP-T4',
    risk: 'Data and control are not kept apart: instructions in data.',
    answer:
      'Definitions are pinned and scanned, results inspected and marked, and flows keep untrusted results from calls that publish.',
    settings: ['upstreams.<name>.pinning.scan', 'inspection.profiles.<name>.result.injection', 'policy: flows'],
    controls: ['pins', 'inspection', 'policy'],
    tests: ['attacks/hostile-results', 'attacks/instructions-outside-descriptions', 'integration/flows'],
    open: 'Visible instructions in honest words reach the model; a flow limits what follows and does not prevent it.',
  },
  {
    id: 'MCP-T5',
    risk: 'Inadequate protection of data and confidentiality.',
    answer:
      'Secrets, personal data and named fields are redacted both ways; ids and shared state are sealed, logs and metrics hold no secret.',
    settings: ['inspection.profiles.<name>', 'policy: sensitive', 'keys', 'listeners.data.tls'],
    controls: ['inspection', 'store', 'tls'],
    tests: [
      'attacks/secrets-in-every-carrier',
      'attacks/sensitive-fields-in-every-carrier',
      'attacks/secrets-in-terminal-sequences',
      'integration/shared-store',
    ],
    open: 'Audit files hold names, subjects and captured arguments in the clear: protect their volume.',
  },
  {
    id: 'MCP-T6',
    risk: 'Missing controls of integrity and verification.',
    answer:
      'Definitions are pinned by digest, lock files and audit checkpoints signed, and webhooks and batches of audit lines signed where a secret is configured.',
    settings: [
      'upstreams.<name>.pinning.mode',
      'pins.signers',
      'audit.checkpoint.every',
      'approvals.webhooks.<name>.secret',
    ],
    controls: ['pins', 'pin-signatures', 'audit'],
    tests: ['attacks/changed-definitions', 'integration/signed-pins', 'e2e/audit-commands'],
    open: 'Policies and the gateway file are not signed; results carry no signature, and servers are not attested.',
  },
  {
    id: 'MCP-T7',
    risk: 'Failures of session and transport security.',
    answer:
      'Ids of sessions, tasks and events are sealed and bound to the caller; HTTP is framed strictly; TLS 1.2 or later, with pins where configured.',
    settings: [
      'listeners.data.tls',
      'upstreams.<name>.tls',
      'upstreams.<name>.plaintext',
      'listeners.data.allowedOrigins',
    ],
    controls: ['edge', 'tls', 'upstream-connection'],
    tests: [
      'attacks/stolen-sessions',
      'attacks/requests-with-two-lengths',
      'attacks/hostile-event-streams',
      'attacks/shared-and-closed-connections',
      'integration/listener-tls',
    ],
    open: 'Where TLS ends at a proxy, the way from there to the gateway is up to the operator.',
  },
  {
    id: 'MCP-T8',
    risk: 'Failures of network binding and isolation.',
    answer:
      'Listeners are on the addresses that are configured, Host and Origin are checked, and connections go only to the configured network, checked at connect.',
    settings: ['listeners.data.host', 'listeners.data.trustedProxies', 'upstreams.<name>.network'],
    controls: ['edge', 'upstream-connection'],
    tests: [
      'attacks/false-hosts-and-paths',
      'attacks/redirects-of-upstreams',
      'attacks/hostile-sse-endpoints',
      'unit/upstream/safe-fetch',
    ],
    open: 'Servers are isolated by their deployment, not by the gateway.',
  },
  {
    id: 'MCP-T9',
    risk: 'Failures of trust boundaries and the design of privileges; consent that tires.',
    answer:
      'Trust is labelled in policies, flows cross it only as rules say, and an approval is bound to the exact call and asked again only as its terms say.',
    settings: ['policy: labels', 'policy: flows', 'policy: rules[].approval'],
    controls: ['policy', 'approvals', 'admin'],
    tests: [
      'integration/flows',
      'attacks/approved-requests',
      'attacks/floods-of-approvals',
      'attacks/token-passthrough',
    ],
    open: 'What a model decides with what it was given is not controlled.',
  },
  {
    id: 'MCP-T10',
    risk: 'No management of resources and no rate limits.',
    answer:
      'Rates and budgets by caller, bounds for every server and caller, sizes and depths, and refusal at once of servers that hang.',
    settings: ['policy: rules[].limits', 'upstreams.<name>.limits', 'state.type'],
    controls: ['budgets', 'store', 'upstream-connection'],
    tests: [
      'attacks/starvation',
      'attacks/bodies-that-never-end',
      'attacks/compressed-responses',
      'attacks/floods-of-unknown-keys',
      'attacks/hanging-tools',
    ],
    open: 'Floods below HTTP, and the cost of a model, are not limited here.',
  },
  {
    id: 'MCP-T11',
    risk: 'Failures of the supply chain and of the lifecycle.',
    answer:
      'What a server offers is reviewed, pinned and compared for as long as it runs, and can be blocked within two seconds.',
    settings: ['upstreams.<name>.pinning.mode', 'pins.signers', 'upstreams'],
    controls: ['pins', 'pin-signatures', 'blocks'],
    tests: [
      'attacks/changed-definitions',
      'integration/server-identity',
      'integration/blocks',
      'attacks/links-of-a-checkout',
    ],
    open: 'Packages and images of servers are not verified; releases of Sallyport are not signed yet.',
  },
  {
    id: 'MCP-T12',
    risk: 'Insufficient logging, monitoring and auditability.',
    answer:
      'A hash-chained audit with signed checkpoints, delivered at least once to a SIEM, also as OCSF; metrics, traces and the state of every control.',
    settings: ['audit.sinks', 'audit.onFailure', 'audit.durability', 'audit.retain', 'tracing'],
    controls: ['audit', 'audit-space', 'audit-delivery', 'metrics', 'tracing'],
    tests: [
      'attacks/audit-that-cannot-be-written',
      'attacks/log-injection',
      'integration/audit-delivery',
      'system/siem',
    ],
    open: 'The prompt and the reasoning of a model are not recorded, because they do not pass.',
  },
];

const OWASP: readonly Row[] = [
  {
    id: 'MCP01',
    risk: 'Token mismanagement and secret exposure.',
    answer:
      "A caller's token is never forwarded; secrets come from files or the environment, are watched and never shown, and are redacted in both directions.",
    settings: [
      'upstreams.<name>.credentials',
      'issuers.<name>.maxLifetime',
      'inspection.profiles.<name>.request.secrets',
      'inspection.profiles.<name>.result.secrets',
    ],
    controls: ['upstream-credentials', 'inspection', 'authn'],
    tests: [
      'attacks/token-passthrough',
      'attacks/secrets-in-every-carrier',
      'attacks/own-credentials',
      'e2e/token-life',
    ],
    open: 'Secrets in the memory of a model or a client are not reached; how long a token lives is set at its issuer, and capped here.',
  },
  {
    id: 'MCP02',
    risk: 'Privilege escalation by scope creep.',
    answer:
      'Scopes are exact and needed for each tool, step-up asks for what is missing, and unused rights are named by `replay --suggest`.',
    settings: ['policy: rules[].scopes', 'issuers.<name>.scopeHierarchy', 'upstreams.<name>.scopesSupported'],
    controls: ['policy', 'audience'],
    tests: ['attacks/scopes', 'attacks/tokens-for-another-audience', 'integration/replay'],
    open: 'Grants do not expire by themselves: rules have no date.',
  },
  {
    id: 'MCP03',
    risk: 'Tool poisoning.',
    answer:
      'Every string of a definition is scanned, pinned and reviewed; a change hides the tool and refuses its call.',
    settings: ['upstreams.<name>.pinning.mode', 'upstreams.<name>.pinning.scan', 'upstreams.<name>.pinning.onDrift'],
    controls: ['pins', 'pin-signatures'],
    tests: [
      'attacks/changed-definitions',
      'attacks/definitions-changed-after-listing',
      'attacks/hostile-lists',
      'integration/definition-scan',
    ],
    open: 'A reviewer who approves a poisoned text has approved it.',
  },
  {
    id: 'MCP04',
    risk: 'Software supply chain attacks and tampering with dependencies.',
    answer:
      'What a server offers and how it names itself is pinned; its certificate or key can be pinned too. Sallyport has few dependencies, none with install scripts.',
    settings: ['upstreams.<name>.pinning.mode', 'upstreams.<name>.tls.pins', 'pins.signers'],
    controls: ['pins', 'pin-signatures', 'upstream-connection'],
    tests: ['integration/server-identity', 'integration/upstream-tls', 'integration/signed-pins', 'architecture'],
    open: 'The code of servers is not verified, and behaviour behind an unchanged definition is not noticed.',
  },
  {
    id: 'MCP05',
    risk: 'Command injection and execution.',
    answer:
      'Arguments are held to the approved schema and to rules with functions for paths, URLs and patterns; unknown arguments are refused where it is configured.',
    settings: ['policy: rules[].args', 'policy: rules[].when', 'upstreams.<name>.arguments.undeclared'],
    controls: ['policy', 'pins'],
    tests: [
      'integration/effects-of-rules',
      'attacks/checks-hold-for-what-leaves',
      'unit/policy/cel',
      'unit/policy/json-schema/validator',
    ],
    open: 'A command in an argument that no rule describes is forwarded: the server must not run it.',
  },
  {
    id: 'MCP06',
    risk: 'Prompt injection by contextual payloads (subversion of the flow of intent).',
    answer:
      'Results are inspected and hidden text removed; after untrusted results, calls that publish or destroy are refused or put to a person.',
    settings: [
      'inspection.profiles.<name>.result.injection',
      'inspection.profiles.<name>.result.invisible',
      'policy: flows',
      'policy: rules[].approval',
    ],
    controls: ['inspection', 'policy', 'approvals'],
    tests: [
      'attacks/hostile-results',
      'integration/flows',
      'attacks/approved-requests',
      'attacks/received-outside-of-responses',
    ],
    open: 'Plain instructions are flagged at best; a filter cannot tell honest prose from malicious prose.',
  },
  {
    id: 'MCP07',
    risk: 'Insufficient authentication and authorization.',
    answer:
      'Every request is authenticated and decided by itself, on every path and revision; `authentication: none` is a control that is off.',
    settings: ['upstreams.<name>.authentication', 'upstreams.<name>.issuers', 'policy: rules[]'],
    controls: ['authn', 'audience', 'policy'],
    tests: [
      'attacks/unsigned-tokens',
      'attacks/false-hosts-and-paths',
      'attacks/policies-in-each-era',
      'integration/laws-of-requests',
    ],
    open: 'A server that can be reached directly has to authenticate its callers itself.',
  },
  {
    id: 'MCP08',
    risk: 'Lack of audit and telemetry.',
    answer:
      'No call without its line: structured, chained, signed at checkpoints, kept as long as configured and delivered at least once.',
    settings: ['audit.sinks', 'audit.onFailure', 'audit.retain', 'audit.checkpoint.every', 'tracing'],
    controls: ['audit', 'audit-space', 'audit-delivery', 'metrics', 'tracing'],
    tests: ['attacks/audit-that-cannot-be-written', 'attacks/audit-of-replicas', 'integration/audit-delivery'],
    open: 'Storage that cannot be rewritten is provided by the receiver, not by the gateway.',
  },
  {
    id: 'MCP09',
    risk: 'Shadow MCP servers.',
    answer:
      'Only servers of the reviewed gateway file are reachable through it, and each is known by its address, its certificate and what it says of itself.',
    settings: ['upstreams', 'upstreams.<name>.tls', 'upstreams.<name>.pinning.mode'],
    controls: ['configuration', 'upstream-connection', 'pins'],
    tests: ['integration/server-identity', 'attacks/redirects-of-upstreams', 'attacks/hostile-sse-endpoints'],
    open: 'Servers that somebody runs beside the gateway are not discovered.',
  },
  {
    id: 'MCP10',
    risk: 'Context injection and over-sharing.',
    answer:
      'Results, lists and sessions belong to one caller; fields that are not needed are redacted by name, results are capped, and flows keep contexts apart.',
    settings: [
      'policy: sensitive',
      'policy: rules[].maxResultBytes',
      'policy: flows',
      'upstreams.<name>.limits.listTtl',
    ],
    controls: ['policy', 'inspection', 'store'],
    tests: [
      'attacks/cached-results',
      'attacks/stolen-sessions',
      'attacks/sensitive-fields-in-every-carrier',
      'integration/flows',
    ],
    open: 'A client that mixes the contexts of several people itself is not seen.',
  },
];

/** Every row, in the order of the page. */
export const RISK_ROWS: readonly RiskRow[] = [
  ...WHITEPAPER.map((row) => ({ source: 'whitepaper' as const, ...row })),
  ...COSAI.map((row) => ({ source: 'cosai' as const, ...row })),
  ...OWASP.map((row) => ({ source: 'owasp' as const, ...row })),
];
