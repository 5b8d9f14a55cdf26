// The table of secrets that are recognizable by their format: published token formats and keys. It holds data
// only; secrets.ts applies it, and the prefilter looks for the anchors. INVARIANT: a pattern never matches
// without one of its anchors (case-insensitive), and every repeat is bounded, so that matching is linear.
// secrets.ts extends a match beyond that bound. No secret stands in the tree: a test makes the examples of each row
// from its pattern, random ones that must be found, and ones of a single character, which are samples.
// Source: the token format pages of the services named; RFC 7468 (PEM); RFC 7519 (JWT); RFC 3986 §3.2.1.

import { appliedRows, type DetectorRow } from '../detector-row.js';

/**
 * The check of a match: randomness of its characters, of a PEM body, the rules for human passwords, a password that has
 * to look random too, or a user name and a password in base64.
 */
type SecretCheck = 'random' | 'pem' | 'password' | 'random-password' | 'basic';

export type SecretFormat = Pick<DetectorRow, 'id' | 'isOff'> & {
  /** The name in placeholders and findings; the class of the row. */
  readonly kind: string;
  /** Lower-case literals of at least three characters. Without any, every long token is checked. */
  readonly anchors: readonly string[];
  /** Global pattern. A group, if any, is the secret and must end the match. */
  readonly pattern: RegExp;
  readonly check: SecretCheck;
  /** The shortest random part of such a secret, in characters. */
  readonly window: number;
  /** A character with which the secret may continue after the match. */
  readonly tail: RegExp;
  /** A character that belongs to the secret before the match, if any does. */
  readonly before?: RegExp;
  /** The secret has only capitals and digits, so that apparent words in it are chance. */
  readonly hasNoDictionaryTerms?: boolean;
  /** True where the prefix is so short that it occurs in random text. */
  readonly hasShortPrefix?: boolean;
  /** Required form of a value directly after a letter or digit. */
  readonly behindLetters?: RegExp;
};

type FormatOptions = Partial<Omit<SecretFormat, 'kind' | 'anchors' | 'pattern'>>;

const LOOK_AROUND = /\(\?<?[=!](?:\[(?:[^\]\\]|\\.)*\]|\\.|[^)[\\])*\)/g;
const CLASS = /\[(?:[^\]\\]|\\.)+\]/g;

/** The last character class of a pattern outside lookarounds. */
function lastClass(source: string): string {
  return source.replace(LOOK_AROUND, '').match(CLASS)?.at(-1) ?? '(?!)';
}

/** The longest of the minimum lengths of a pattern's character classes. */
function longestPart(source: string): number {
  return Math.max(...[...source.matchAll(/\]\{(\d+)/g)].map(([, least]) => Number(least)));
}

function row(
  kind: string,
  anchors: readonly string[],
  source: string,
  more: FormatOptions = {},
  flags = 'g',
): SecretFormat {
  return {
    id: `secret-${kind}`,
    kind,
    anchors,
    pattern: new RegExp(source, flags),
    check: 'random',
    window: more.window ?? longestPart(source),
    tail: new RegExp(lastClass(source), flags.replace('g', '')),
    ...more,
  };
}

function anyCase(kind: string, anchors: readonly string[], source: string, more: FormatOptions = {}): SecretFormat {
  return row(kind, anchors, source, more, 'gi');
}

/** Between a cue word and the value: quotes, also escaped in nested JSON, blanks and an assignment sign. */
const TO_VALUE = `["'\\\\]{0,16}\\s{0,4}(?::=|=>|[:=])\\s{0,4}["'\\\\]{0,16}`;
/** A few more hex digits may begin a word; eight make it another number. */
const HEX_END = '(?![0-9a-f]{8})';
/** A prefix that occurs in longer runs by chance. */
const SHORT = { hasShortPrefix: true } as const;
/** The same for a prefix that ends words (`task-`, `disk-`) which identifiers may follow. */
const SHORT_AND_COMMON = {
  ...SHORT,
  behindLetters: /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{40}/,
} as const;
/** Matches no character. */
const NONE = /(?!)/;

const SK_ANCHORS = [...'0123456789abcdef'].map((digit) => `sk${digit}`);

/** A user name and a password as HTTP's Basic scheme writes them. */
export const BASIC_CREDENTIALS = 'basic-credentials';
/** The signature of a signed link, which is a secret nowhere else. */
export const LINK_SIGNATURE = 'link-signature';

const CLOUD: readonly SecretFormat[] = [
  row('aws-access-key', ['akia', 'asia', 'abia', 'acca'], `(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}`, {
    ...SHORT,
    hasNoDictionaryTerms: true,
  }),
  anyCase(
    'aws-secret-key',
    ['aws_secret', 'awssecret', 'aws-secret', 'secret_access', 'secretaccess', 'secret-access'],
    `(?:aws[_-]?secret[_-]?(?:access[_-]?)?key|secret[_-]?access[_-]?key)${TO_VALUE}([A-Za-z0-9/+]{40})`,
  ),
  row('google-api-key', ['aiza'], `AIza[A-Za-z0-9_-]{35}`, SHORT),
  row('google-oauth-secret', ['gocspx-'], `GOCSPX-[A-Za-z0-9_-]{20,40}`),
  row('google-oauth-token', ['ya29.'], `ya29\\.[A-Za-z0-9_-]{20,1000}`),
  row('google-refresh-token', ['1//0'], `1//0[A-Za-z0-9_-]{30,200}`, SHORT),
  anyCase('azure-storage-key', ['accountkey'], `AccountKey=([A-Za-z0-9+/]{86}==)`),
  anyCase('azure-shared-access-key', ['sharedaccesskey'], `SharedAccessKey=([A-Za-z0-9+/]{43}=)`),
  // links.ts drops what stands in no link.
  anyCase(LINK_SIGNATURE, ['-signature='], `X-(?:Amz|Goog|Oss|Tos|Obs)-Signature=([0-9a-f]{64,1024})`),
  row('azure-sas', ['sig='], `[?&;]sig=([A-Za-z0-9%+/_-]{40,120}={0,2})`),
  row(
    'azure-client-secret',
    [...'0123456789'].map((digit) => `${digit}q~`),
    `[A-Za-z0-9_~.-]{3}\\dQ~[A-Za-z0-9_~.-]{31,34}`,
  ),
  row('digitalocean-token', ['dop_v1_', 'doo_v1_', 'dor_v1_'], `do[opr]_v1_[0-9a-f]{64}`),
  row('heroku-key', ['hrku-'], `HRKU-[A-Za-z0-9_-]{36,64}`),
  anyCase(
    'heroku-key',
    ['heroku'],
    `heroku(?!_app_id|_uuid|_id)[a-z_ .-]{0,24}${TO_VALUE}([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`,
    { id: 'secret-heroku-setting' },
  ),
  anyCase(
    'cloudflare-key',
    ['cloudflare', 'cf_api'],
    `(?:cloudflare|cf_api)[a-z_ .-]{0,24}${TO_VALUE}([0-9a-z_-]{37,40})`,
    // Signs divide the value into what looks like short words.
    { window: 24 },
  ),
  row('databricks-token', ['dapi'], `dapi[0-9a-f]{32}(?:-\\d)?`, SHORT),
  row('vault-token', ['hvs.', 'hvb.', 'hvr.'], `hv[sbr]\\.[A-Za-z0-9_-]{24,300}`, SHORT),
  row('terraform-token', ['.atlasv1.'], `\\.(?<=[A-Za-z0-9]{14}\\.)atlasv1\\.[A-Za-z0-9_=-]{60,70}`, {
    before: /[A-Za-z0-9]/,
  }),
  row(
    'doppler-token',
    ['dp.pt.', 'dp.st.', 'dp.ct.', 'dp.sa.', 'dp.scim.', 'dp.audit.'],
    `dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9_.-]{40,80}`,
  ),
  row('pulumi-token', ['pul-'], `pul-[0-9a-f]{40}`, SHORT),
  row('planetscale-token', ['pscale_'], `pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}`),
  row('supabase-token', ['sbp_'], `sbp_[0-9a-f]{40}`, SHORT),
  row('flyio-token', ['fm2_'], `fm2_[A-Za-z0-9+/=_-]{60,1000}`, SHORT),
  row('netlify-token', ['nfp_'], `nfp_[A-Za-z0-9]{36}`, SHORT),
];

const DEVELOPMENT: readonly SecretFormat[] = [
  row('github-token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], `gh[pousr]_[A-Za-z0-9]{36,255}`),
  row('github-token', ['github_pat_'], `github_pat_[A-Za-z0-9_]{40,255}`, { id: 'secret-github-fine-grained-token' }),
  row(
    'gitlab-token',
    ['glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glimt-', 'glagent-', 'glsoat-', 'gloas-'],
    `gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[A-Za-z0-9_.=-]{20,300}`,
  ),
  row('npm-token', ['npm_'], `npm_[A-Za-z0-9]{36}`),
  row('pypi-token', ['pypi-'], `pypi-[A-Za-z0-9_-]{50,1000}`),
  row('rubygems-key', ['rubygems_'], `rubygems_[0-9a-f]{48}`),
  row('docker-token', ['dckr_pat_', 'dckr_oat_'], `dckr_[po]at_[A-Za-z0-9_-]{20,64}`),
  row('sonar-token', ['squ_', 'sqp_', 'sqa_'], `sq[upa]_[0-9a-f]{40}`, SHORT),
  row('sentry-token', ['sntrys_', 'sntryu_'], `sntry[su]_[A-Za-z0-9+/=_-]{40,400}`),
  row('grafana-token', ['glsa_', 'glc_'], `gl(?:sa|c)_[A-Za-z0-9_+/=]{32,400}`, SHORT),
  row('postman-key', ['pmak-'], `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`),
  row('figma-token', ['figd_'], `figd_[A-Za-z0-9_-]{38,64}`),
  row('linear-key', ['lin_api_', 'lin_oauth_'], `lin_(?:api|oauth)_[A-Za-z0-9]{32,64}`),
  row('notion-token', ['ntn_'], `ntn_[A-Za-z0-9]{40,60}`, SHORT),
  row('notion-token', ['secret_'], `secret_[A-Za-z0-9]{43}`, { ...SHORT, id: 'secret-notion-former-token' }),
  row(
    'atlassian-token',
    ['atatt3', 'atctt3', 'atbb'],
    `(?:ATATT3|ATCTT3)[A-Za-z0-9_=-]{50,250}|ATBB[A-Za-z0-9]{28,32}`,
    { ...SHORT, window: 28 },
  ),
  row('airtable-token', [], `pat[A-Za-z0-9]{14}\\.[0-9a-f]{64}`, SHORT),
  row('newrelic-key', ['nrak-', 'nral-', 'nrii-', 'nrjs-', 'nriq-'], `NR(?:AK|AL|II|JS|IQ)-[A-Za-z0-9_-]{19,40}`, {
    hasNoDictionaryTerms: true,
  }),
  anyCase(
    'datadog-key',
    ['datadog', 'dd_api', 'dd_app', 'dd-api', 'dd-app'],
    `(?:datadog|dd[_-]ap[ip])[a-z_ .-]{0,24}${TO_VALUE}([0-9a-f]{32}(?:[0-9a-f]{8})?)`,
  ),
];

const MODELS: readonly SecretFormat[] = [
  row('anthropic-key', ['sk-ant-'], `sk-ant-[A-Za-z0-9_-]{20,250}`),
  row('openai-key', ['sk-'], `sk-(?!ant-)(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,250}`, SHORT_AND_COMMON),
  row('huggingface-token', ['hf_', 'api_org_'], `(?:hf|api_org)_[A-Za-z0-9]{30,60}`, SHORT),
  row('groq-key', ['gsk_'], `gsk_[A-Za-z0-9]{48,60}`, SHORT),
  row('perplexity-key', ['pplx-'], `pplx-[A-Za-z0-9]{40,64}`),
  row('replicate-token', ['r8_'], `r8_[A-Za-z0-9]{37,40}`, SHORT),
];

const MESSAGING: readonly SecretFormat[] = [
  row(
    'slack-token',
    ['xoxa', 'xoxb', 'xoxe', 'xoxo', 'xoxp', 'xoxr', 'xoxs', 'xoxc', 'xoxd'],
    `xox[abceoprsd](?:\\.xox[bp])?-[A-Za-z0-9%-]{16,250}`,
  ),
  row('slack-token', ['xapp-'], `xapp-\\d-[A-Z0-9]{5,20}-\\d{5,20}-[a-z0-9]{20,128}`, { id: 'secret-slack-app-token' }),
  row(
    'slack-webhook',
    ['hooks.slack.com/'],
    `hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,120}`,
  ),
  row('discord-webhook', ['/api/webhooks/'], `discord(?:app)?\\.com/api/webhooks/\\d{15,22}/[A-Za-z0-9_-]{40,100}`),
  row('discord-token', [], `[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,38}`),
  row('telegram-token', [':aa'], `\\d{8,10}:AA[A-Za-z0-9_-]{32,35}`),
  row('twilio-key', SK_ANCHORS, `SK[0-9a-f]{32}${HEX_END}`, SHORT),
  anyCase('twilio-token', ['twilio'], `twilio[a-z_ .-]{0,24}${TO_VALUE}([0-9a-f]{32})`),
  row('sendgrid-key', ['sg.'], `SG\\.[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}`, SHORT),
  row('mailgun-key', ['key-'], `key-[0-9a-f]{32}${HEX_END}`, SHORT),
  row(
    'mailchimp-key',
    [...'123456789'].map((digit) => `-us${digit}`),
    `[0-9a-f]{32}-us\\d{1,2}`,
    { tail: /\d/ },
  ),
];

const COMMERCE: readonly SecretFormat[] = [
  row(
    'stripe-key',
    ['sk_live_', 'sk_test_', 'sk_prod_', 'rk_live_', 'rk_test_', 'rk_prod_'],
    `[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}`,
  ),
  row('stripe-webhook-secret', ['whsec_'], `whsec_[A-Za-z0-9+/=]{24,100}`),
  row('shopify-token', ['shpat_', 'shpca_', 'shppa_', 'shpss_'], `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`),
  row('square-token', ['sq0atp-', 'sq0csp-', 'sq0idp-'], `sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}`),
  row('square-token', ['eaaa'], `EAAA[A-Za-z0-9_-]{60}`, { ...SHORT, id: 'secret-square-access-token' }),
  row('facebook-token', ['eaa'], `EAA[A-Za-z0-9]{80,250}`, SHORT),
];

const GENERAL: readonly SecretFormat[] = [
  // secrets.ts reads what follows the first line.
  row('private-key', ['--begin '], `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`, {
    check: 'pem',
    window: 64,
    tail: /[A-Za-z0-9+/=\s\\:,.()]/,
  }),
  // RFC 7617, in headers; the same in the settings of Docker and npm.
  anyCase(BASIC_CREDENTIALS, ['basic'], `basic\\s{1,4}([A-Za-z0-9+/_-]{8,2000}={0,2})`, {
    check: 'basic',
  }),
  anyCase(BASIC_CREDENTIALS, ['auth'], `auth${TO_VALUE}([A-Za-z0-9+/_-]{8,2000}={0,2})`, {
    id: 'secret-basic-setting',
    check: 'basic',
  }),
  anyCase(
    'netrc-password',
    ['machine'],
    `machine\\s{1,16}\\S{1,255}(?:\\s{1,16}(?:login|account)\\s{1,16}\\S{1,255}){0,2}\\s{1,16}password\\s{1,16}["']?([^\\s"']{3,512})`,
    { check: 'password', window: 3, tail: /[^\s"']/ },
  ),
  anyCase(
    'netrc-password',
    ['default'],
    `default\\s{1,16}login\\s{1,16}\\S{1,255}\\s{1,16}password\\s{1,16}["']?([^\\s"']{8,512})`,
    { id: 'secret-netrc-default', check: 'random-password', window: 8, tail: /[^\s"']/ },
  ),
  // host:port:database:user:password, with the ports at which PostgreSQL and its poolers usually listen.
  anyCase(
    'pgpass-password',
    [':543', ':6432', ':6543', ':15432', ':25432', ':25060', ':26257', ':*:'],
    `(?<=[a-z0-9_.*\\]-]):(?:543\\d|6432|6543|15432|25432|25060|26257|\\*):[a-z_*][a-z0-9_.*-]{0,62}:[a-z_*][a-z0-9_.*@-]{0,62}:(?=[^\\s:]{0,64}[a-z0-9])((?:[^\\s:\\\\"'<>]|\\\\[:\\\\]){3,512})(?![^\\s\\\\"'])`,
    { check: 'password', window: 3, tail: /[^\s"'\\]/ },
  ),
  row('age-key', ['age-secret-key-1'], `AGE-SECRET-KEY-1[A-Z0-9]{58}`, {
    hasNoDictionaryTerms: true,
  }),
  row(
    'jwt',
    ['eyj'],
    // The header is matched backwards from its end, so that each run of characters is read once.
    `\\.(?<=eyJ[A-Za-z0-9_-]{10,65536}\\.)eyJ[A-Za-z0-9_-]{10,65536}\\.[A-Za-z0-9_-]{20,2000}`,
    { before: /[A-Za-z0-9_-]/ },
  ),
  anyCase('bearer-token', ['bearer'], `bearer\\s{1,4}([A-Za-z0-9._~+/-]{20,2000}={0,2})`),
  anyCase(
    'url-credentials',
    ['://'],
    `(?<=[a-z0-9+.-])://[^\\s/?#:@"'<>]{0,1000}:([^\\s/?#@"'<>]{3,16384})(?=@[a-z0-9[.-])`,
    { check: 'password', window: 3, tail: NONE },
  ),
  anyCase(
    'connection-password',
    ['password', 'pwd'],
    `;\\s{0,2}(?:password|pwd)\\s{0,2}=\\s{0,2}([^;"'\\s<>{}$]{4,128})`,
    { check: 'password', window: 4, tail: /[^;"'\s<>{}$]/ },
  ),
];

/** All rows, also those that are off. */
export const SECRET_FORMAT_ROWS: readonly SecretFormat[] = [
  ...CLOUD,
  ...DEVELOPMENT,
  ...MODELS,
  ...MESSAGING,
  ...COMMERCE,
  ...GENERAL,
];

/** The formats that are applied. */
export const SECRET_FORMATS: readonly SecretFormat[] = appliedRows(SECRET_FORMAT_ROWS);
