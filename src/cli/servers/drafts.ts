// The texts that `sallyport init` and `sallyport add` write: the gateway file without servers, the entry of one server in
// it, its policy and the tests of that. Names from the upstream are quoted, and a policy grants only names that it lists.
// docs/reference/commands.md#init-and-dev---save; docs/reference/configuration.md; docs/reference/policies.md.

import { IGNORED_AUDIT_FILES } from '../../audit/run-name.js';
import type { Network } from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import { sha256Hex } from '../../pins/digest.js';
import { type Lock, type Pin, versionsOf } from '../../pins/lock.js';
import { isExactPattern } from '../../policy/patterns.js';
import { claimsToRead, refersToSecrets } from '../../policy/tool-effect.js';
import { nameInYaml, quoteYaml } from '../../text/escaping.js';
import { chooseContent } from '../content-choice.js';
import { scanOwn } from '../pin/lock-files.js';
import { CONFIG_FILE } from '../program.js';
import { adaptPolicy, type Fit, type LibraryPolicy } from './library.js';

/** The header that a server gets, and where the gateway finds its value. */
export type ServerHeader = {
  readonly name: string;
  /** `file` is relative to the gateway file; with `value` it is written. */
  readonly from: { readonly file: string; readonly value?: string } | { readonly env: string };
};

/** What a person says about a server, and about who may use it. */
export type ServerAnswers = {
  readonly name: string;
  readonly url: string;
  /** The Unix socket instead of the host of the URL, as the gateway file has it. */
  readonly socket?: string | undefined;
  readonly network: Network;
  /** The key `transport`, if it is not the default. */
  readonly transport?: string | undefined;
  /** The key `limits.requestTimeout`, if it is not the default. */
  readonly requestTimeout?: string | undefined;
  /** The names of issuers in the gateway file. */
  readonly issuers: readonly string[];
  readonly groups: readonly string[];
  /** The audience of tokens, for issuers that cannot mint the resource identifier. */
  readonly audience: string | undefined;
  readonly header: ServerHeader | undefined;
  /** The scopes that clients request at the issuer. */
  readonly scopes: readonly string[];
  /** The tools that the policy grants: those that say that they only read, or all. */
  readonly allow: 'read-only' | 'all';
  /** The kind of what the server returns; by default it is chosen by the definitions. */
  readonly content?: string | undefined;
  /** A policy of the library by name, or `none`; by default the one that fits. */
  readonly library?: string | undefined;
  /** The command that starts it, where it speaks stdio. */
  readonly command?: readonly string[] | undefined;
};

/** What a person says about the gateway to be. */
export type GatewayAnswers = {
  readonly issuer: string;
  readonly issuerNetwork: Network;
  readonly publicUrl: string;
};

/** Where the files of a configuration are: paths relative to one folder, with slashes. */
export type Layout = {
  readonly config: string;
  readonly policies: string;
  readonly pins: string;
  readonly secrets: string;
};

/** The name of the issuer that `init` writes. */
export const ISSUER_NAME = 'idp';
const DEFAULT_PORT = 8080;
/** The folder of secrets, beside the gateway file. */
export const SECRETS_FOLDER = 'secrets';

/** The layout that `init` writes. */
export const NEW_LAYOUT: Layout = {
  config: CONFIG_FILE,
  policies: 'policies',
  pins: 'policies/pins',
  secrets: SECRETS_FOLDER,
};

export const KEY_FILE = `${NEW_LAYOUT.secrets}/sallyport-key`;

/** The files of one server. */
export function serverPaths({ policies, pins }: Layout, name: string) {
  return {
    policy: `${policies}/${name}.policy.yaml`,
    test: `${policies}/${name}.policy.test.yaml`,
    lock: `${pins}/${name}.lock.yaml`,
  };
}

/** What must not be committed: secrets, the audit files of runs, and what earlier versions wrote. */
export const IGNORED: readonly string[] = [`/${NEW_LAYOUT.secrets}/`, ...IGNORED_AUDIT_FILES];

/** The endpoint that clients use, which is also the audience of their tokens. */
export function resourceOf(publicUrl: string, name: string): string {
  return `${publicUrl.replace(/\/+$/, '')}/${name}`;
}

/** On loopback the gateway listens where its public URL points; elsewhere a proxy in front of it does. */
function dataPort({ publicUrl }: GatewayAnswers): number {
  const { hostname, port } = new URL(publicUrl);
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(hostname);
  return isLoopback && port !== '' ? Number(port) : DEFAULT_PORT;
}

/** Whoever gives a plain http URL in a private network finds the risk in the file, and in the controls. */
function plaintextOf(url: string, network: Network): readonly string[] {
  return network === 'private' && url.startsWith('http:')
    ? ['# Nothing is encrypted on the way there. Delete this line when the URL is https.', 'plaintext: accepted']
    : [];
}

function listInYaml(texts: readonly string[], write: (text: string) => string = quoteYaml): string {
  return `[${texts.map(write).join(', ')}]`;
}

/** The gateway file before its first server. */
export function gatewayText(answers: GatewayAnswers): string {
  const { issuer, issuerNetwork, publicUrl } = answers;
  const plaintext = plaintextOf(issuer, issuerNetwork).map((line) => `\n    ${line}`);
  return `# A gateway, written by \`sallyport init\`; \`sallyport add NAME\` adds a server. Every key is explained in
# docs/reference/configuration.md; a key that is absent has its default. Paths are relative to this file.
version: 1
# The URL of the gateway as its clients see it. The path of a server at its end makes the audience of tokens for it.
publicUrl: ${quoteYaml(publicUrl)}

# To be reached from outside this machine, as in a container, listen on host 0.0.0.0.
listeners:
  data: {host: 127.0.0.1, port: ${dataPort(answers)}}
  ops: {host: 127.0.0.1, port: 9464}

# Keep this file secret and backed up. To rotate, put a new key first and keep the old one for a day.
keys: [{file: ./${KEY_FILE}}]

issuers:
  ${ISSUER_NAME}:
    issuer: ${quoteYaml(issuer)}
    network: ${issuerNetwork}${plaintext.join('')}
    # What the issuer signs access tokens with.
    algorithms: [ES256, RS256]
    # The header type (typ) of its access tokens. Some issuers write JWT there, and Keycloak does for every client
    # where "Use at+jwt as access token header type" is off: see docs/reference/authorization.md.
    tokenType: at+jwt

upstreams: {}

policies: {dir: ./${NEW_LAYOUT.policies}}
pins: {dir: ./${NEW_LAYOUT.pins}}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

/** The entry of a server in the gateway file, as lines below its name. */
export function stanzaLines(answers: ServerAnswers, lock?: Lock, proposed?: Proposed): readonly string[] {
  const { url, socket, network, transport, requestTimeout, issuers, audience, scopes, header } = answers;
  const audiences = issuers.map((issuer) => `${nameInYaml(issuer)}: [${quoteYaml(audience ?? '')}]`);
  return [
    `url: ${quoteYaml(url)}`,
    ...(socket === undefined ? [] : [`socket: ${quoteYaml(socket)}`]),
    ...(socket === undefined ? [`network: ${network}`, ...plaintextOf(url, network)] : []),
    ...(transport === undefined ? [] : [`transport: ${transport}`]),
    `issuers: ${listInYaml(issuers, nameInYaml)}`,
    ...(audience === undefined ? [] : [`audiences: {${audiences.join(', ')}}`]),
    ...(scopes.length === 0
      ? []
      : ['# Clients request these scopes at the issuer.', `scopesSupported: ${listInYaml(scopes)}`]),
    ...(header === undefined ? [] : credentialLines(header)),
    ...(requestTimeout === undefined ? [] : [`limits: {requestTimeout: ${requestTimeout}}`]),
    ...contentLines(answers, lock, proposed),
  ];
}

function credentialLines({ name, from }: ServerHeader): readonly string[] {
  const reference = 'env' in from ? `{env: ${from.env}}` : `{file: ${referenceTo(from.file)}}`;
  return [
    "# The server gets this credential; the caller's token is never forwarded.",
    `credentials: {type: static, header: ${quoteYaml(name)}, value: ${reference}}`,
  ];
}

function referenceTo(file: string): string {
  const path = /^[./]/.test(file) ? file : `./${file}`;
  return /^[\w./-]+$/.test(path) ? path : quoteYaml(path);
}

/** A kind that was named counts; otherwise the definitions decide. */
function contentLines(answers: ServerAnswers, lock: Lock | undefined, proposed?: Proposed): readonly string[] {
  const { content } = answers;
  if (content === 'auto') return [];
  if (content !== undefined) return [`content: {kind: ${content}}`];
  return contentOf(answers, lock, proposed)?.lines ?? [];
}

/** What is chosen where nobody has named a kind. */
export function contentOf({ command }: ServerAnswers, lock: Lock | undefined, proposed?: Proposed) {
  const { row, fitting } = proposed?.fit ?? {};
  const named = row?.code?.filter((tool) => fitting?.has(tool) === true);
  return chooseContent(lock, { command, named, isApproved: false });
}

/** A policy of the library with the names of this server. */
export type Proposed = LibraryPolicy & { readonly fit: Fit };

export function proposedBy(fit: Fit, text: string, { name, issuers, groups }: ServerAnswers): Proposed {
  const names = { name: nameInYaml(name), issuers: listInYaml(issuers, nameInYaml), groups: listInYaml(groups) };
  return { fit, ...adaptPolicy(text, fit, names) };
}

const MARK = '# As long as the lines above are as they were written, `sallyport remove` deletes this file. SHA-256: ';

/** A draft with a last line by which `remove` knows that nobody has edited it. */
function signDraft(text: string): string {
  return `${text}${MARK}${sha256Hex(text)}\n`;
}

/** Whether a draft is as it was written. */
export function isUnedited(text: string): boolean {
  const at = text.lastIndexOf(MARK);
  return at >= 0 && text.slice(at) === `${MARK}${sha256Hex(text.slice(0, at))}\n`;
}

type Tools = {
  readonly granted: readonly string[];
  /** Tools that say that they only read, but whose names or definitions speak against granting them unseen. */
  readonly doubtful: readonly string[];
  readonly listed: readonly string[];
  /** Names that a rule would read as a pattern. */
  readonly patterns: readonly string[];
};

/** Whether the scan of definitions found more than a note in a pending tool. */
export function foundIn(lock: Lock): (tool: string) => boolean {
  const findings = scanOwn(lock, pendingOf(lock));
  return (tool) => findings.some(({ tier, item }) => tier !== 'note' && item.kind === 'tool' && item.name === tool);
}

function sortTools(lock: Lock | undefined, allow: ServerAnswers['allow'], proposed?: Proposed): Tools {
  const tools = [...(lock?.pins.tool ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
  const exact = tools.filter(([name]) => isExactPattern(name));
  const isFound = lock === undefined ? () => false : foundIn(lock);
  const placeOf = ([name, pin]: readonly [string, Pin]): 'granted' | 'doubtful' | 'listed' => {
    if (proposed !== undefined) return proposed.granted.includes(name) ? 'granted' : 'listed';
    if (allow === 'all') return 'granted';
    if (!isReadOnly(pin)) return 'listed';
    return refersToSecrets(name) || isFound(name) ? 'doubtful' : 'granted';
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

/** Whether every version of the tool says that it only reads. Absent, the hint is false (MCP, ToolAnnotations). */
function isReadOnly(pin: Pin): boolean {
  return versionsOf(pin).every(({ definition }) => claimsToRead(definition));
}

/** The policy. Without a lock file, or where no tool is granted, its rule is written as a comment. */
export function policyText(answers: ServerAnswers, lock: Lock | undefined, proposed?: Proposed): string {
  const { name, issuers, groups, allow } = answers;
  if (proposed !== undefined)
    return signDraft(`# Who may use ${name}, drafted by Sallyport from the policy for ${proposed.fit.name} that comes with Sallyport.
${proposed.text}`);
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
    `    who: {issuers: ${listInYaml(issuers, nameInYaml)}, groups: ${listInYaml(groups)}}`,
    '    what:',
    `      upstreams: [${nameInYaml(name)}]`,
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
  return signDraft(`# Who may use ${name}, drafted by Sallyport. What no rule allows is neither listed nor callable.
# Tools are granted by name, one a line, so that a review shows each grant. A grant takes effect once the
# definition of the tool is approved (\`sallyport pin approve\`). Prompts and resources need a grant as well: add
# prompts: [NAME] or resources: ["URI"] beside tools.
version: 1
policy: ${nameInYaml(name)}
${rules.join('\n')}
`);
}

const MAX_NAMED = 8;

/** What the policy grants, in sentences; the names in them are not safe for a terminal. */
export function describeGrants({ allow }: ServerAnswers, lock: Lock, proposed?: Proposed): string {
  const { granted, doubtful, listed, patterns } = sortTools(lock, allow, proposed);
  const all = granted.length + doubtful.length + listed.length + patterns.length;
  if (proposed !== undefined) return describeProposed(proposed, granted.length, all);
  const which = allow === 'all' ? 'all tools' : 'the tools with readOnlyHint';
  const more = doubtful.length > MAX_NAMED ? ` and ${doubtful.length - MAX_NAMED} more` : '';
  const named = `${doubtful.slice(0, MAX_NAMED).join(', ')}${more}`;
  const without = doubtful.length === 0 ? '' : `. Left out because of their names or findings of the scan: ${named}`;
  return `The policy grants ${which}: ${granted.length} of ${all}${without}`;
}

function describeProposed({ fit: { name, row, fitting, leftOut } }: Proposed, granted: number, all: number): string {
  const named = [...leftOut].slice(0, MAX_NAMED).map(([tool, why]) => `${tool} (${why})`);
  const more = leftOut.size > MAX_NAMED ? ` and ${leftOut.size - MAX_NAMED} more` : '';
  const without = leftOut.size === 0 ? '' : `. Left out: ${named.join(', ')}${more}`;
  const fits = `${fitting.size} of its ${fitting.size + leftOut.size} tools are offered as they were in version ${row.version} of ${row.package}`;
  return `The policy is the one for ${name} of the library, because ${fits}. It grants ${granted} of ${all}, which only read; --library none writes a draft by readOnlyHint instead${without}`;
}

/** The first tests of the policy. They hold before anything is approved; the last one waits for that, as a comment. */
export function testText(answers: ServerAnswers, lock: Lock | undefined, proposed?: Proposed): string {
  const { name, issuers, groups, allow } = answers;
  const { granted, doubtful, listed } = sortTools(lock, allow, proposed);
  const issuer = nameInYaml(issuers[0] ?? '');
  const lacking = [...doubtful, ...listed];
  const list = (names: readonly string[]): string => listInYaml(names);
  const server = nameInYaml(name);
  const hidden =
    lacking.length === 0
      ? ''
      : `  - name: a member sees no tool that is not granted
    as: member
    list: ${server}
    lacks: ${list(lacking)}
`;
  const shown =
    granted.length === 0
      ? ''
      : `  # Holds once the definitions are approved (\`sallyport pin approve\`). Then remove the # here.
  # - name: a member sees what is granted
  #   as: member
  #   list: ${server}
  #   items: ${list(granted)}
`;
  return signDraft(`# Tests of the policy, drafted by Sallyport. Run them with: sallyport test policies
# docs/guides/writing-policies.md shows how to go on.
version: 1
principals:
  member: {issuer: ${issuer}, groups: ${list(groups.slice(0, 1))}}
  stranger: {issuer: ${issuer}}
cases:
  - name: whoever is in no group sees nothing
    as: stranger
    list: ${server}
    items: []
${hidden}${shown}`);
}
