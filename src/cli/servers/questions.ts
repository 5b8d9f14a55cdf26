// What `init` and `add` have to know: taken from options, asked for on a terminal where an option is missing, and refused
// with the name of the option where nobody can be asked. docs/reference/commands.md#init-and-dev---save.

import { escapeForTerminal } from '../../text/escaping.js';
import type { CliIo } from '../program.js';

/** A terminal that a person answers questions on. */
export type Questions = {
  /** The next line; `undefined` at the end of the input. */
  ask(question: string): Promise<string | undefined>;
  close(): void;
};

/** One thing to know. */
export type Asked = {
  readonly flag: string;
  readonly question: string;
  readonly given: string | undefined;
  readonly fallback?: string | undefined;
  /** What is wrong with an answer; `undefined` if nothing is. */
  readonly findError: (answer: string) => string | undefined;
};

/** The answers in order; `undefined` if a mistake or what is missing was printed. */
export async function askAll(
  asked: readonly Asked[],
  questions: Questions | undefined,
  command: 'init' | 'add',
  io: CliIo,
): Promise<readonly string[] | undefined> {
  const missing = asked.filter(({ given, fallback }) => (given ?? fallback) === undefined);
  if (questions === undefined && missing.length > 0) {
    const flags = missing.map(({ flag }) => flag).join(', ');
    io.stderr(`error: missing: ${flags}; give them as options, or run ${command} on a terminal\n`);
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

async function answerTo(asked: Asked, questions: Questions | undefined, io: CliIo): Promise<string | undefined> {
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

/** Names that were given in one line, separated by commas. */
export function namesIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

export function findUrlError(text: string): string | undefined {
  // Parsing drops white space, and the text is written into files as it is.
  if (/\s/.test(text) || !URL.canParse(text)) {
    return 'this is not a URL, such as https://mcp.example.com/mcp';
  }
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return 'the URL must be https or http';
  return username === '' && password === '' ? undefined : 'the URL carries credentials; give them with --header';
}

/** The question after the groups that may use a server. */
export function groupsAsked(given: readonly string[] | undefined): Asked {
  return {
    flag: '--group',
    question: 'Groups that may use its tools (separated by commas)',
    given: given?.join(','),
    findError: (text) => (namesIn(text).length === 0 ? 'name one group or more' : undefined),
  };
}

export function urlAsked(given: string | undefined): Asked {
  return { flag: '--url', question: 'URL of the MCP server', given, findError: findUrlError };
}

/** The only issuer of the gateway file needs no question. */
export function issuersAsked(given: readonly string[] | undefined, known: readonly string[]): Asked {
  const [only, ...others] = known;
  const unknown = (text: string): string | undefined => namesIn(text).find((name) => !known.includes(name));
  return {
    flag: '--issuer',
    question: `Issuers of the tokens of callers (of ${known.join(', ')}, separated by commas)`,
    given: given?.join(',') ?? (others.length === 0 ? only : undefined),
    findError(text) {
      if (namesIn(text).length === 0) return `name one issuer or more of: ${known.join(', ')}`;
      const name = unknown(text);
      return name && `the gateway file has no issuer "${escapeForTerminal(name)}", but: ${known.join(', ')}`;
    },
  };
}
