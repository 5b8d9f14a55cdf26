// The files that `sallyport init` writes for one upstream, as texts: gateway file, policy and its tests. Names from the
// upstream are quoted, and a policy grants only names that it lists. docs/reference/commands.md#init-and-dev---save;
// docs/reference/configuration.md; docs/reference/policies.md.

import { IGNORED_AUDIT_FILES } from '../../audit/run-name.js';
import type { Network } from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import { type Lock, type Pin, versionsOf } from '../../pins/lock.js';
import { isExactPattern } from '../../policy/patterns.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { quoteYaml } from '../../text/escaping.js';
import { chooseContent } from '../content-choice.js';
import { scanOwn } from '../pin/lock-files.js';
import { CONFIG_FILE } from '../program.js';

/** What a person says about the gateway to be. */
export type InitAnswers = {
  readonly name: string;
  readonly url: string;
  readonly network: Network;
  readonly issuer: string;
  readonly issuerNetwork: Network;
  readonly groups: readonly string[];
  readonly publicUrl: string;
  /** The audience of tokens, for issuers that cannot mint the resource identifier. */
  readonly audience: string | undefined;
  readonly header: { readonly name: string; readonly value: string } | undefined;
  /** The scopes that clients request at the issuer. */
  readonly scopes: readonly string[];
  /** The tools that the policy grants: those that say that they only read, or all. */
  readonly allow: 'read-only' | 'all';
};

/** Paths relative to the folder. */
type InitPaths = {
  readonly config: string;
  readonly policy: string;
  readonly test: string;
  readonly lock: string;
  readonly key: string;
  readonly header: string;
  readonly ignore: string;
};

const ISSUER_NAME = 'idp';
const SECRETS_FOLDER = 'secrets';
const PINS_FOLDER = 'policies/pins';
const DEFAULT_PORT = 8080;

export function initPaths(name: string): InitPaths {
  return {
    config: CONFIG_FILE,
    policy: `policies/${name}.policy.yaml`,
    test: `policies/${name}.policy.test.yaml`,
    lock: `${PINS_FOLDER}/${name}.lock.yaml`,
    key: `${SECRETS_FOLDER}/sallyport-key`,
    header: `${SECRETS_FOLDER}/${name}-header`,
    ignore: '.gitignore',
  };
}

/** What must not be committed: secrets, the audit files of runs, and what earlier versions wrote. */
export const IGNORED: readonly string[] = [`/${SECRETS_FOLDER}/`, ...IGNORED_AUDIT_FILES];

/** The endpoint that clients use, which is also the audience of their tokens. */
export function resourceOf({ publicUrl, name }: InitAnswers): string {
  return `${publicUrl.replace(/\/+$/, '')}/${name}`;
}

/** On loopback the gateway listens where its public URL points; elsewhere a proxy in front of it does. */
function dataPort({ publicUrl }: InitAnswers): number {
  const { hostname, port } = new URL(publicUrl);
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(hostname);
  return isLoopback && port !== '' ? Number(port) : DEFAULT_PORT;
}

/** Whoever gives a plain http URL in a private network finds the risk in the file, and in the controls. */
function plaintextOf(url: string, network: Network): string {
  return network === 'private' && url.startsWith('http:')
    ? '\n    # Nothing is encrypted on the way there. Delete this line when the URL is https.\n    plaintext: accepted'
    : '';
}

export function gatewayText(answers: InitAnswers, lock?: Lock): string {
  const { name, url, network, issuer, issuerNetwork, publicUrl, audience, header, scopes } = answers;
  const paths = initPaths(name);
  const audiences = audience === undefined ? '' : `\n    audiences: {${ISSUER_NAME}: [${quoteYaml(audience)}]}`;
  const requested =
    scopes.length === 0
      ? ''
      : `\n    # Clients request these scopes at the issuer.
    scopesSupported: [${scopes.map(quoteYaml).join(', ')}]`;
  const credentials =
    header === undefined
      ? ''
      : `\n    # The server gets this credential; the caller's token is never forwarded.
    credentials: {type: static, header: ${quoteYaml(header.name)}, value: {file: ./${paths.header}}}`;
  const content = chooseContent(lock, { isApproved: false })
    ?.lines.map((line) => `\n    ${line}`)
    .join('');
  return `# The gateway in front of ${name}, written by \`sallyport init\`. Every key is explained in
# docs/reference/configuration.md; a key that is absent has its default. Paths are relative to this file.
version: 1
# The URL of the gateway as its clients see it. The audience of their tokens is ${audience === undefined ? resourceOf(answers) : 'mapped below'}.
publicUrl: ${quoteYaml(publicUrl)}

# To be reached from outside this machine, as in a container, listen on host 0.0.0.0.
listeners:
  data: {host: 127.0.0.1, port: ${dataPort(answers)}}
  ops: {host: 127.0.0.1, port: 9464}

# Keep this file secret and backed up. To rotate, put a new key first and keep the old one for a day.
keys: [{file: ./${paths.key}}]

issuers:
  ${ISSUER_NAME}:
    issuer: ${quoteYaml(issuer)}
    network: ${issuerNetwork}${plaintextOf(issuer, issuerNetwork)}
    # What the issuer signs access tokens with.
    algorithms: [ES256, RS256]
    # The header type (typ) of its access tokens. Some issuers write JWT there, and Keycloak does for every client
    # where "Use at+jwt as access token header type" is off: see docs/reference/authorization.md.
    tokenType: at+jwt

upstreams:
  ${name}:
    url: ${quoteYaml(url)}
    network: ${network}${plaintextOf(url, network)}
    issuers: [${ISSUER_NAME}]${audiences}${requested}${credentials}${content ?? ''}

policies: {dir: ./policies}
pins: {dir: ./${PINS_FOLDER}}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

type Tools = {
  readonly granted: readonly string[];
  /** Tools that say that they only read, but whose names or definitions speak against granting them unseen. */
  readonly doubtful: readonly string[];
  readonly listed: readonly string[];
  /** Names that a rule would read as a pattern. */
  readonly patterns: readonly string[];
};

function sortTools(lock: Lock | undefined, allow: InitAnswers['allow']): Tools {
  const tools = [...(lock?.pins.tool ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
  const exact = tools.filter(([name]) => isExactPattern(name));
  const findings = lock === undefined ? [] : scanOwn(lock, pendingOf(lock));
  const isFound = (tool: string): boolean =>
    findings.some(({ tier, item }) => tier !== 'note' && item.kind === 'tool' && item.name === tool);
  const placeOf = ([name, pin]: readonly [string, Pin]): 'granted' | 'doubtful' | 'listed' => {
    if (allow === 'all') return 'granted';
    if (!isReadOnly(pin)) return 'listed';
    return speaksOfSecrets(name) || isFound(name) ? 'doubtful' : 'granted';
  };
  const namesAt = (place: ReturnType<typeof placeOf>): readonly string[] =>
    exact.filter((tool) => placeOf(tool) === place).map(([name]) => name);
  return {
    granted: namesAt('granted'),
    doubtful: namesAt('doubtful'),
    listed: namesAt('listed'),
    patterns: tools.map(([name]) => name).filter((name) => !isExactPattern(name)),
  };
}

/** Words of a tool's name after which a reader should look at what it returns before granting it. */
const SENSITIVE_WORD =
  /^(?:env|environ|environment|secrets?|credentials?|creds?|passwords?|passwd|tokens?|keys?|apikeys?|keychain|vault)$/;

/** Whether a name speaks of secrets or of the environment of the server, in snake, kebab or camel case. */
function speaksOfSecrets(name: string): boolean {
  const parts = name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').split(/[^A-Za-z0-9]+/);
  return parts.some((part) => SENSITIVE_WORD.test(part.toLowerCase()));
}

/** Whether every version of the tool says that it only reads. Absent, the hint is false (MCP, ToolAnnotations). */
function isReadOnly(pin: Pin): boolean {
  return versionsOf(pin).every(({ definition }) => {
    const { annotations } = definition;
    return isObject(annotations) && annotations['readOnlyHint'] === true;
  });
}

/** The policy. Without a lock file, or where no tool is granted, its rule is written as a comment. */
export function policyText(answers: InitAnswers, lock: Lock | undefined): string {
  const { name, groups, allow } = answers;
  const { granted, doubtful, listed, patterns } = sortTools(lock, allow);
  const isEmpty = granted.length === 0;
  const names = (tools: readonly string[], mark: string): string[] =>
    tools.map((tool) => `        ${mark}- ${quoteYaml(tool)}`);
  const heading =
    allow === 'all'
      ? []
      : ['        # The server says that these only read (readOnlyHint); the gateway cannot check it.'];
  const rule = [
    `  - id: ${name}-${allow === 'all' ? 'tools' : 'read'}`,
    '    effect: allow',
    `    who: {issuers: [${ISSUER_NAME}], groups: [${groups.map(quoteYaml).join(', ')}]}`,
    '    what:',
    `      upstreams: [${name}]`,
    '      tools:',
    ...(isEmpty ? [] : [...heading, ...names(granted, '')]),
    ...(doubtful.length === 0
      ? []
      : [
          '        # It says so of these too, but their names refer to secrets or to the environment, or the scan of',
          '        # definitions found something in them. To grant one, remove the # before its name.',
        ]),
    ...names(doubtful, isEmpty ? '' : '# '),
    ...(listed.length === 0
      ? []
      : ['        # It does not say so of these. To grant one, remove the # before its name.']),
    ...names(listed, isEmpty ? '' : '# '),
    ...(isEmpty && listed.length + doubtful.length === 0 ? ['        - name-of-a-tool'] : []),
    ...patterns.map((tool) => `        # No rule can name ${quoteYaml(tool)} exactly: it reads as a pattern.`),
  ];
  const rules = isEmpty
    ? [
        'rules: []',
        '# No tool is granted yet. To grant some, write in place of the line above:',
        '# rules:',
        ...rule.map((line) => `# ${line}`),
      ]
    : ['rules:', ...rule];
  return `# Who may use ${name}, written by \`sallyport init\`. What no rule allows is neither listed nor callable.
# Tools are granted by name, one a line, so that a review shows each grant. A grant takes effect once the
# definition of the tool is approved (\`sallyport pin approve\`). Prompts and resources need a grant as well: add
# prompts: [NAME] or resources: ["URI"] beside tools.
version: 1
policy: ${name}
${rules.join('\n')}
`;
}

const MAX_NAMED = 8;

/** What the policy grants, in sentences; the names in them are not safe for a terminal. */
export function describeGrants({ allow }: InitAnswers, lock: Lock): string {
  const { granted, doubtful, listed, patterns } = sortTools(lock, allow);
  const all = granted.length + doubtful.length + listed.length + patterns.length;
  const which = allow === 'all' ? 'all tools' : 'the tools with readOnlyHint';
  const more = doubtful.length > MAX_NAMED ? ` and ${doubtful.length - MAX_NAMED} more` : '';
  const named = `${doubtful.slice(0, MAX_NAMED).join(', ')}${more}`;
  const without = doubtful.length === 0 ? '' : `. Left out because of their names or findings of the scan: ${named}`;
  return `The policy grants ${which}: ${granted.length} of ${all}${without}`;
}

/** The first tests of the policy. They hold before anything is approved; the last one waits for that, as a comment. */
export function testText(answers: InitAnswers, lock: Lock | undefined): string {
  const { name, groups, allow } = answers;
  const { granted, doubtful, listed } = sortTools(lock, allow);
  const lacking = [...doubtful, ...listed];
  const list = (names: readonly string[]): string => `[${names.map(quoteYaml).join(', ')}]`;
  const hidden =
    lacking.length === 0
      ? ''
      : `  - name: a member sees no tool that is not granted
    as: member
    list: ${name}
    lacks: ${list(lacking)}
`;
  const shown =
    granted.length === 0
      ? ''
      : `  # Holds once the definitions are approved (\`sallyport pin approve\`). Then remove the # here.
  # - name: a member sees what is granted
  #   as: member
  #   list: ${name}
  #   items: ${list(granted)}
`;
  return `# Tests of the policy, written by \`sallyport init\`. Run them with: sallyport test policies
# docs/guides/writing-policies.md shows how to go on.
version: 1
principals:
  member: {groups: ${list(groups.slice(0, 1))}}
  stranger: {}
cases:
  - name: whoever is in no group sees nothing
    as: stranger
    list: ${name}
    items: []
${hidden}${shown}`;
}
