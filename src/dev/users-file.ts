// The files of a development issuer that outlives its process: who may log in, with which password and groups, and the
// key that signs. Both hold secrets, so they are read only where they are ordinary files of mode 0600, and never through
// a link. The users are read again at each login and each refresh. An unreadable users file lets nobody in.
// docs/reference/commands.md#dev-issuer.

import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { platform } from 'node:os';
import { updateFile } from '../pins/file-update.js';
import { isObject } from '../protocol/jsonrpc.js';
import { createRate } from '../state/bounds.js';
import { escapeForTerminal } from '../text/escaping.js';
import { describeReadError, errorCode, systemErrorCode } from '../text/wording.js';
import { readYaml } from '../text/yaml.js';
import { addToMap, removeFromMap } from '../text/yaml-edit.js';
import type { DevUser, People } from './issuer-grants.js';
import { isPassword, readHash } from './passwords.js';

const MAX_BYTES = 1024 * 1024;
const YAML_LIMITS = { maxDepth: 8, maxValues: 100_000, isGenerated: false };
/** A name that reads the same in a URL, a log and a policy. */
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._@+-]{0,62}[A-Za-z0-9])?$/;
const GROUP = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;
/** RFC 6749 §3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/;
const OWNER_ONLY = 0o600;
const OF_OTHERS = 0o077;
const NO_LINK = constants.O_NOFOLLOW ?? 0;
// Not waiting for the writer of a pipe.
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | NO_LINK;

type Failed = { readonly why: string; readonly isAbsent?: true };
type TextReading = { readonly text: string } | Failed;
type KnownUser = DevUser & { readonly hash: NonNullable<ReturnType<typeof readHash>> };
type UsersReading = { readonly users: readonly KnownUser[] } | Failed;

export const NAME_RULE =
  'a name has up to 64 letters, digits and . _ @ + -, and begins and ends with a letter or digit';

export function isUserName(name: string): boolean {
  return NAME.test(name);
}

/** What is wrong with groups and scopes, in one clause. */
export function findGrantMistake({ groups, scopes }: Pick<DevUser, 'groups' | 'scopes'>): string | undefined {
  if (!groups.every((group) => GROUP.test(group))) return 'a group is a text without control characters';
  return scopes.every((scope) => SCOPE.test(scope)) ? undefined : 'a scope has no spaces and is ASCII';
}

/** The text of a file that nobody but its owner can read or write; `why` continues a sentence about it. */
async function readOwnFile(path: string): Promise<TextReading> {
  let handle: FileHandle;
  try {
    handle = await open(path, READ);
  } catch (error) {
    if (systemErrorCode(error) === 'ELOOP') return { why: 'is a link, which may lead anywhere; name the file itself' };
    const isAbsent = systemErrorCode(error) === 'ENOENT';
    return { why: describeReadError(error), ...(isAbsent ? { isAbsent } : {}) };
  }
  try {
    const status = await handle.stat();
    if (!status.isFile()) return { why: 'is not a file' };
    if (status.size > MAX_BYTES) return { why: `is larger than ${MAX_BYTES} bytes` };
    if (platform() !== 'win32' && (status.mode & OF_OTHERS) !== 0)
      return { why: 'can be used by others than its owner; run chmod 600 on it' };
    return { text: await handle.readFile('utf8') };
  } finally {
    await handle.close();
  }
}

/** The users of a file, by its text. No value is quoted. */
export function readUsers(text: string): UsersReading {
  const read = readYaml(text, YAML_LIMITS);
  if (!read.ok) {
    const [mistake] = read.mistakes;
    return { why: `is no YAML that can be read: line ${mistake?.line}: ${mistake?.message}` };
  }
  const root = read.value;
  if (!isObject(root) || Object.keys(root).join() !== 'users') return { why: 'has to have the one key "users"' };
  const { users } = root;
  if (users === null) return { users: [] };
  if (!isObject(users)) return { why: 'has no map of names below "users"' };
  const found: KnownUser[] = [];
  for (const [name, entry] of Object.entries(users)) {
    const user = readUser(name, entry);
    if (typeof user !== 'string') found.push(user);
    else return { why: `line ${read.locate(['users', name], 'key').line}: ${user}` };
  }
  return { users: found };
}

const KEYS: ReadonlySet<string> = new Set(['password', 'groups', 'scopes']);

function readUser(name: string, entry: unknown): KnownUser | string {
  if (!isUserName(name)) return NAME_RULE;
  if (!isObject(entry)) return `${name} has to have "password" and "groups"`;
  const unknown = Object.keys(entry).find((key) => !KEYS.has(key));
  if (unknown !== undefined) return `${name} has the unknown key "${escapeForTerminal(unknown)}"`;
  const { password, groups = [], scopes = [] } = entry;
  const hash = typeof password === 'string' ? readHash(password) : undefined;
  if (hash === undefined) return `the password of ${name} is no hash that \`dev-issuer user\` writes`;
  if (!isTexts(groups) || !isTexts(scopes)) return `"groups" and "scopes" of ${name} are lists of texts`;
  const mistake = findGrantMistake({ groups, scopes });
  return mistake === undefined ? { name, groups, scopes, hash } : `${name}: ${mistake}`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** The users now. */
export async function readUsersFile(path: string): Promise<UsersReading> {
  const read = await readOwnFile(path);
  return 'why' in read ? read : readUsers(read.text);
}

const NEW_FILE = `# The users of \`sallyport dev-issuer\`. Passwords are hashes; \`sallyport dev-issuer user NAME\` writes them.
users:
`;

type UserEntry = Pick<DevUser, 'name'> & {
  readonly hash: string;
  /** Those that the user has already, if absent. */
  readonly groups?: readonly string[] | undefined;
  readonly scopes?: readonly string[] | undefined;
};

function withUser(before: string, { name, hash, groups, scopes }: UserEntry): TextReading {
  const known = readUsers(before);
  if ('why' in known) return known;
  const old = known.users.find((user) => user.name === name);
  const held = { groups: groups ?? old?.groups ?? [], scopes: scopes ?? old?.scopes ?? [] };
  const lines = [
    `password: ${JSON.stringify(hash)}`,
    `groups: ${JSON.stringify(held.groups)}`,
    ...(held.scopes.length === 0 ? [] : [`scopes: ${JSON.stringify(held.scopes)}`]),
  ];
  const removed = old === undefined ? { text: before } : removeFromMap(before, ['users'], name);
  const added = 'error' in removed ? removed : addToMap(removed.text, ['users'], name, lines);
  return 'error' in added ? { why: `cannot be edited: ${added.error}` } : added;
}

/** Adds a user, or replaces the password; comments and the other users stay. Resolves with why that failed. */
export async function writeUser(path: string, entry: UserEntry): Promise<string | undefined> {
  const read = await readOwnFile(path);
  if ('why' in read && read.isAbsent !== true) return read.why;
  const before = 'text' in read ? read.text : NEW_FILE;
  const edited = withUser(before, entry);
  if ('why' in edited) return edited.why;
  try {
    if (!('text' in read)) await writeFile(path, edited.text, { flag: 'wx', mode: OWNER_ONLY });
    else if ((await updateFile(path, () => edited.text)) !== undefined) return 'is being written by another process';
    return undefined;
  } catch (error) {
    return `cannot be written (${errorCode(error)})`;
  }
}

/** Failed logins of one name and of all together, and how fast they are forgiven: two a minute, and twenty. */
const PACE = { one: { burst: 5, perSecond: 1 / 30 }, all: { burst: 40, perSecond: 1 / 3 } };

/** The people of a users file. `report` is told once of each reason why nobody can log in. */
export function peopleOf(path: string, now: () => number, report: (why: string) => void): People {
  const ofOne = createRate(PACE.one, now);
  const ofAll = createRate(PACE.all, now);
  let reported: string | undefined;

  async function read(): Promise<readonly KnownUser[] | undefined> {
    const users = await readUsersFile(path);
    const why = 'why' in users ? users.why : undefined;
    if (why !== undefined && why !== reported) report(why);
    reported = why;
    return 'why' in users ? undefined : users.users;
  }

  return {
    list: async () => (await read()) ?? [],
    async verify(name, password) {
      const users = await read();
      if (users === undefined) return { why: 'unavailable' };
      const user = users.find((one) => one.name === name);
      // Names that nobody has share one pace, so that inventing them fills no table.
      const key = user?.name ?? '';
      if (ofOne.left(key) < 1 || ofAll.left() < 1) return { why: 'paced' };
      // Taken before the work, so that attempts at the same time count too.
      const count = (amount: number): void => {
        ofOne.spend(amount, key);
        ofAll.spend(amount);
      };
      count(1);
      if (!(await isPassword(password, user?.hash)) || user === undefined) return { why: 'wrong' };
      count(-1);
      return { user };
    },
  };
}

/** The signing key of a file, which is created if there is none. */
export async function openKeyFile(
  path: string,
): Promise<{ readonly key: KeyObject; readonly isNew: boolean } | Failed> {
  const read = await readOwnFile(path);
  if ('why' in read && read.isAbsent !== true) return read;
  const isNew = !('text' in read);
  const text = 'text' in read ? read.text : newKeyText();
  const key = readSigningKey(text);
  if (key === undefined) return { why: 'holds no private key of the curve P-256 in PEM' };
  if (!isNew) return { key, isNew };
  try {
    // With `wx` the system follows no link in place of the file.
    await writeFile(path, text, { flag: 'wx', mode: OWNER_ONLY });
    return { key, isNew };
  } catch (error) {
    return { why: `cannot be written (${errorCode(error)})` };
  }
}

function newKeyText(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
}

function readSigningKey(text: string): KeyObject | undefined {
  try {
    const key = createPrivateKey(text);
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined;
  } catch {
    return undefined;
  }
}
