// Which tools return the content of files and nothing else, and which commands start a server of local files. `init` and
// `dev` choose the kind `code` by it, print the choice, and write it with the digest of the definition; the gateway never
// asks. A definition is written by the server, so everything in it has to fit: a name alone proves nothing, and what
// returns issues, comments, messages or pages is not chosen whatever it is called. docs/guides/content.md.

import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';

/** Names of tools that read files as text. Those that return media are left out: hosts draw what they return. */
const NAMES: ReadonlySet<string> = new Set([
  ...['read_file', 'read_files', 'read_text_file', 'read_text_files', 'read_multiple_files'],
  ...['read_file_content', 'read_file_contents', 'read_file_lines', 'read_file_range'],
  ...['get_file_content', 'get_file_contents', 'get_text_file_content', 'get_text_file_contents'],
]);

/** Arguments that say which file: at least one is required, and a text or a list of texts or of objects. */
const PATHS = setOf('path paths file_path file_paths filepath filename file files relative_path');

/** Further arguments of reading a file: which part of it, how it is encoded, and where in a repository it is. */
const OPTIONS = setOf(
  'head tail offset limit start end start_line end_line line_start line_end line_count ranges lines max_lines max_chars max_answer_chars encoding line_numbers show_line_numbers with_line_numbers owner repo repository project project_id ref sha branch commit',
);

/** Members of a result with the content of files. */
const RESULTS = setOf(
  'content contents text file files path lines encoding size total_lines start_line end_line line_count truncated result',
);

/** What speaks of files that are read. */
const READS = /\b(?:read|get|return|content)/i;
const FILES = /\b(?:files?|directory)\b/i;
/** Words of what people or pages write, and of what is fetched from elsewhere. */
const OTHERS =
  /\b(?:urls?|https?|web|pages?|issues?|comments?|messages?|mails?|e-?mails?|inbox|tickets?|chats?|channels?|threads?|posts?|wikis?|discussions?|reviews?|feeds?|documents?|search(?:es)?)\b/i;
/** Errors of reading are called messages too. */
const ERROR_MESSAGES = /\berror messages?\b/gi;

function setOf(text: string): ReadonlySet<string> {
  return new Set(text.split(' '));
}

/** Whether a tool returns the content of files and nothing else, by all of its definition. */
export function returnsFilesOnly(definition: JsonObject): boolean {
  const { name, title, description, inputSchema, outputSchema, annotations } = definition;
  if (typeof name !== 'string' || !NAMES.has(snakeCase(name))) return false;
  if (typeof description !== 'string' || !describesFiles(description)) return false;
  if (typeof title === 'string' && speaksOfOthers(title)) return false;
  if (isObject(annotations)) {
    const { readOnlyHint, destructiveHint, openWorldHint } = annotations;
    if (readOnlyHint === false || destructiveHint === true || openWorldHint === true) return false;
  }
  return takesFiles(inputSchema) && (outputSchema === undefined || givesFiles(outputSchema));
}

/** `readTextFile` and `read-text-file` are `read_text_file`. */
function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

function describesFiles(text: string): boolean {
  return READS.test(text) && FILES.test(text) && !speaksOfOthers(text);
}

function speaksOfOthers(text: string): boolean {
  return OTHERS.test(text.replace(ERROR_MESSAGES, 'errors'));
}

function takesFiles(schema: Json | undefined): boolean {
  const members = propertiesOf(schema);
  if (members === undefined || !isObject(schema)) return false;
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const names = Object.keys(members).map((name) => [name, snakeCase(name)] as const);
  if (!names.every(([, known]) => PATHS.has(known) || OPTIONS.has(known))) return false;
  return names.some(([name, known]) => PATHS.has(known) && required.includes(name));
}

function givesFiles(schema: Json): boolean {
  const members = propertiesOf(schema);
  return members !== undefined && Object.keys(members).every((name) => RESULTS.has(snakeCase(name)));
}

function propertiesOf(schema: Json | undefined): JsonObject | undefined {
  const members = isObject(schema) ? schema['properties'] : undefined;
  return isObject(members) ? members : undefined;
}

/** Servers of local files and nothing else, by what starts them: compared exactly, without a version. */
const PROGRAMS: ReadonlySet<string> = new Set(['mcp-server-filesystem', 'rust-mcp-filesystem']);
const PACKAGES: ReadonlySet<string> = new Set(['@modelcontextprotocol/server-filesystem']);
const IMAGES: ReadonlySet<string> = new Set(['mcp/filesystem']);

const PACKAGE_RUNNERS = setOf('npx npm pnpm pnpx bunx bun yarn node cmd');
const IMAGE_RUNNERS = setOf('docker podman');
/** Words of package runners that stand before the package. */
const RUNNER_ARGUMENTS = setOf('/c x dlx exec run npx');
/** With these, what runs is not the package that is named behind them. */
const OTHER_PROGRAM = /^(?:-p|--package|-c|--call|-e|--eval|-r|--require|--import|--loader)(?:=|$)/;
/** Options of image runners that take the next argument. */
const IMAGE_OPTIONS = setOf('-v --volume --mount -e --env --env-file --name --network -u --user -w --workdir');
/** An installed package by the path of a file in it. */
const PACKAGE_PATH = /(?:^|[\\/])node_modules[\\/](@[\w.-]+[\\/][\w.-]+|[\w.-]+)(?:[\\/]|$)/g;

/**
 * Whether a command starts a server of local files and nothing else: the program itself, or the package or image that a
 * runner starts. What the server is told, such as its directories, never counts.
 */
export function startsFileServer([program = '', ...args]: readonly string[]): boolean {
  const name = program.replace(/^.*[\\/]/, '').replace(/\.(?:cmd|exe)$/i, '');
  if (PROGRAMS.has(name)) return true;
  if (PACKAGE_RUNNERS.has(name)) return PACKAGES.has(packageOf(startedPackage(args) ?? ''));
  return IMAGE_RUNNERS.has(name) && IMAGES.has(withoutVersion(startedImage(args) ?? ''));
}

/** The first argument that is neither an option nor a word of the runner. */
function startedPackage(args: readonly string[]): string | undefined {
  const at = args.findIndex((arg) => !arg.startsWith('-') && !RUNNER_ARGUMENTS.has(arg.toLowerCase()));
  return args.slice(0, at).some((arg) => OTHER_PROGRAM.test(arg)) ? undefined : args[at];
}

/** The image that `run` starts; undefined where something else in it is started. */
function startedImage([command, ...args]: readonly string[]): string | undefined {
  if (command !== 'run' || args.some((arg) => arg.startsWith('--entrypoint'))) return undefined;
  return args.find((arg, index) => !arg.startsWith('-') && !IMAGE_OPTIONS.has(args[index - 1] ?? ''));
}

function packageOf(arg: string): string {
  const [, installed] = [...arg.matchAll(PACKAGE_PATH)].at(-1) ?? [];
  return installed === undefined ? withoutVersion(arg) : installed.replaceAll('\\', '/');
}

function withoutVersion(name: string): string {
  return name.replace(/(?<=.)[@:][\w.-]+$/, '');
}
