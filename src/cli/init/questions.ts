// What `sallyport init` has to know: taken from its options, asked for on a terminal where one is missing, and
// refused with the name of the option where nobody can be asked. docs/contract.md §1.

import type { Network } from '../../config/settings.js';
import type { CliIo } from '../program.js';
import type { InitAnswers } from './files.js';

export type InitOptions = {
  readonly dir?: string | undefined;
  readonly url?: string;
  readonly issuer?: string;
  readonly group?: readonly string[];
  readonly name?: string;
  readonly publicUrl?: string;
  readonly audience?: string;
  readonly header?: string;
  readonly scope?: readonly string[];
  readonly allow?: InitAnswers['allow'];
  readonly yes?: boolean;
  readonly offline?: boolean;
};

/** A terminal that a person answers questions on. */
export type Questions = {
  /** The next line; `undefined` at the end of the input. */
  ask(question: string): Promise<string | undefined>;
  close(): void;
};

export type QuestionPorts = {
  /** Absent where stdin is no terminal. */
  readonly questions?: (() => Questions) | undefined;
  /** The narrowest network that contains what the host of a URL resolves to. */
  networkOf(url: string): Promise<Network>;
};

const DEFAULT_PUBLIC_URL = 'http://127.0.0.1:8080';
const DEFAULT_NAME = 'mcp';
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const IPV4 = /^[0-9.]+$/;
/** Field name and value of a header (RFC 9110 §5.1, §5.5): no control characters. */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;

type Asked = {
  readonly flag: string;
  readonly question: string;
  readonly given: string | undefined;
  readonly fallback?: string;
  /** What is wrong with an answer; `undefined` if nothing is. */
  readonly findError: (answer: string) => string | undefined;
};

/** Everything that the files need; `undefined` if a mistake or what is missing was printed. */
export async function readAnswers(
  options: InitOptions,
  io: CliIo,
  ports: QuestionPorts,
): Promise<InitAnswers | undefined> {
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const given = await askAll(options, questions, io);
    const header = readHeader(options.header, io);
    if (given === undefined || header === 'invalid') return undefined;
    const [url = '', issuer = '', groups = '', publicUrl = ''] = given;
    const name = options.name ?? nameOf(url);
    if (!NAME.test(name)) {
      io.stderr('error: --name takes lower-case letters, digits, - and _\n');
      return undefined;
    }
    return {
      ...{ name, url, issuer, publicUrl, header },
      groups: options.group?.filter((group) => group.trim() !== '') ?? groupsOf(groups),
      network: await ports.networkOf(url),
      issuerNetwork: await ports.networkOf(issuer),
      audience: options.audience,
      scopes: options.scope ?? [],
      allow: options.allow ?? 'read-only',
    };
  } finally {
    questions?.close();
  }
}

async function askAll(
  { url, issuer, group, publicUrl }: InitOptions,
  questions: Questions | undefined,
  io: CliIo,
): Promise<readonly string[] | undefined> {
  const asked: readonly Asked[] = [
    { flag: '--url', question: 'URL of the MCP server', given: url, findError: findUrlError },
    {
      flag: '--issuer',
      question: 'Issuer of the tokens of callers (URL)',
      given: issuer,
      findError: findUrlError,
    },
    {
      flag: '--group',
      question: 'Groups that may use its tools (separated by commas)',
      given: group?.join(','),
      findError: (text) => (groupsOf(text).length === 0 ? 'name one group or more' : undefined),
    },
    {
      flag: '--public-url',
      question: 'URL of the gateway as clients see it',
      given: publicUrl,
      fallback: DEFAULT_PUBLIC_URL,
      findError: findUrlError,
    },
  ];
  const missing = asked.filter(({ given, fallback }) => (given ?? fallback) === undefined);
  if (questions === undefined && missing.length > 0) {
    const flags = missing.map(({ flag }) => flag).join(', ');
    io.stderr(`error: missing: ${flags}; give them as options, or run init on a terminal\n`);
    return undefined;
  }
  const answers: string[] = [];
  for (const one of asked) {
    const answer = await answerTo(one, questions, io);
    if (answer === undefined) return undefined;
    answers.push(answer);
  }
  return answers;
}

async function answerTo(
  asked: Asked,
  questions: Questions | undefined,
  io: CliIo,
): Promise<string | undefined> {
  const { flag, given, fallback, findError } = asked;
  const known = given ?? (questions === undefined ? fallback : undefined);
  if (known === undefined) return questions && askUntilValid(asked, questions, io);
  const error = findError(known);
  if (error === undefined) return known;
  io.stderr(`error: ${flag}: ${error}\n`);
  return undefined;
}

async function askUntilValid(
  { question, fallback, findError }: Asked,
  questions: Questions,
  io: CliIo,
): Promise<string | undefined> {
  const suffix = fallback === undefined ? '' : ` [${fallback}]`;
  for (;;) {
    const line = await questions.ask(`${question}${suffix}: `);
    if (line === undefined) {
      io.stderr('\nerror: the input ended before the last question; nothing was written\n');
      return undefined;
    }
    const answer = line.trim() || (fallback ?? '');
    const error = findError(answer);
    if (error === undefined) return answer;
    io.stderr(`${error}\n`);
  }
}

function groupsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '');
}

function findUrlError(text: string): string | undefined {
  // Parsing drops white space, and the text is written into files as it is.
  if (/\s/.test(text) || !URL.canParse(text)) {
    return 'this is not a URL, such as https://mcp.example.com/mcp';
  }
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return 'the URL must be https or http';
  return username === '' && password === ''
    ? undefined
    : 'the URL carries credentials; give them with --header';
}

function readHeader(text: string | undefined, io: CliIo): InitAnswers['header'] | 'invalid' {
  if (text === undefined) return undefined;
  const [, name, value] = HEADER.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { name, value };
  io.stderr("error: --header takes 'Name: value'\n");
  return 'invalid';
}

/** The first label of the host name, which tells upstreams apart in most networks. */
function nameOf(url: string): string {
  const { hostname } = new URL(url);
  if (IPV4.test(hostname) || hostname.startsWith('[') || hostname === 'localhost') {
    return DEFAULT_NAME;
  }
  const label = (hostname.split('.')[0] ?? '').toLowerCase();
  return NAME.test(label) ? label : DEFAULT_NAME;
}
