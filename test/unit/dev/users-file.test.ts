import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashPassword, isPassword, readHash } from '../../../src/dev/passwords.js';
import { openKeyFile, peopleOf, readUsers, readUsersFile, writeUser } from '../../../src/dev/users-file.js';

/** Derived, and of the form that a password has. */
const PASSWORD = ['one', 'of', 'a', 'test'].join(' ');

/** The least that a hash may cost, because many are computed here. */
const CHEAP = { logCost: 10, blockSize: 8, parallel: 1 };

let folder: string;
let hash: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-users-'));
  hash = await hashPassword(PASSWORD, CHEAP);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('[A-65] the hash of a password', () => {
  it('has its parameters and a salt of its own, and belongs to one password', async () => {
    expect(hash).toMatch(/^\$scrypt\$ln=10,r=8,p=1\$/);
    expect(await isPassword(PASSWORD, readHash(hash))).toBe(true);
    expect(await isPassword(`${PASSWORD} `, readHash(hash))).toBe(false);
    expect(await isPassword(PASSWORD, undefined)).toBe(false);
  });

  it('is the same for a password that is composed and one that is not', async () => {
    const cheap = await hashPassword('caf\u00e9-caf\u00e9', CHEAP);
    expect(await isPassword('cafe\u0301-cafe\u0301', readHash(cheap))).toBe(true);
  });

  it.each([
    ['', 'nothing'],
    ['$scrypt$ln=24,r=8,p=1$', 'too dear'],
    ['$scrypt$ln=4,r=8,p=1$', 'too cheap'],
    ['$scrypt$ln=15,r=8,p=9$', 'too often'],
  ])('is not %j: %s', (beginning) => {
    expect(readHash(`${beginning}${hash.split('$').slice(3).join('$')}`)).toBeUndefined();
  });
});

describe('[A-65] the users file', () => {
  it.each([
    ['', 'the one key "users"'],
    ['users: [alice]', 'no map of names'],
    ['users: {alice: {}}', 'the password of alice is no hash'],
    ['users: {alice: {password: plain}}', 'the password of alice is no hash'],
    ['users: {"../a": {password: HASH}}', 'a name has up to 64'],
    ['users: {alice: {password: HASH, group: [a]}}', 'the unknown key "group"'],
    ['users: {alice: {password: HASH, groups: a}}', 'lists of texts'],
    ['users: {alice: {password: HASH, groups: ["a\\nb"]}}', 'without control characters'],
    ['users: {alice: {password: HASH, scopes: ["a b"]}}', 'no spaces'],
    ['users: {a: &x {password: HASH}, a: *x}', 'line 1'],
  ])('is refused as %s', (text, why) => {
    const read = readUsers(text.replace('HASH', `"${hash}"`));
    expect(read).toEqual({ why: expect.stringContaining(why) });
  });

  it('gets users and new passwords, and keeps comments and what else is held', async () => {
    const path = join(folder, 'written.yaml');
    expect(await writeUser(path, { name: 'alice', hash, groups: ['eng'] })).toBeUndefined();
    expect(await writeUser(path, { name: 'bob', hash, groups: ['ops'], scopes: ['a:b'] })).toBeUndefined();
    await writeFile(path, `# kept\n${await readFile(path, 'utf8')}`);
    const other = await hashPassword('another password', CHEAP);
    expect(await writeUser(path, { name: 'bob', hash: other })).toBeUndefined();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const text = await readFile(path, 'utf8');
    expect(text).toMatch(/^# kept\n/);
    expect(text).toContain(other);
    expect(await readUsersFile(path)).toMatchObject({
      users: [
        { name: 'alice', groups: ['eng'], scopes: [] },
        { name: 'bob', groups: ['ops'], scopes: ['a:b'] },
      ],
    });
  });

  it('[A-67] is read only where nobody else can use it, and never through a link; the key too', async () => {
    const path = join(folder, 'open.yaml');
    await writeFile(path, 'users:\n', { mode: 0o600 });
    const link = join(folder, 'link');
    await symlink(path, link);
    expect(await readUsersFile(path)).toEqual({ users: [] });
    expect(await readUsersFile(link)).toMatchObject({ why: expect.stringContaining('is a link') });
    expect(await openKeyFile(link)).toMatchObject({ why: expect.stringContaining('is a link') });
    expect(await writeUser(link, { name: 'alice', hash, groups: [] })).toContain('is a link');
    await chmod(path, 0o640);
    expect(await readUsersFile(path)).toMatchObject({ why: expect.stringContaining('chmod 600') });
    expect(await openKeyFile(path)).toMatchObject({ why: expect.stringContaining('chmod 600') });
    expect(await readUsersFile(folder)).toMatchObject({ why: 'is not a file' });
    const key = join(folder, 'key.pem');
    expect(await openKeyFile(key)).toMatchObject({ isNew: true });
    expect((await stat(key)).mode & 0o777).toBe(0o600);
    expect(await openKeyFile(key)).toMatchObject({ isNew: false });
    await writeFile(key, 'no key');
    expect(await openKeyFile(key)).toEqual({ why: expect.stringContaining('P-256') });
  });
});

describe('the people of a users file', () => {
  it('[A-66] are slowed down after failures, name by name, and are those of now', async () => {
    const path = join(folder, 'people.yaml');
    await writeUser(path, { name: 'alice', hash, groups: ['eng'] });
    await writeUser(path, { name: 'bob', hash, groups: [] });
    let nowMs = 0;
    const reports: string[] = [];
    const people = peopleOf(
      path,
      () => nowMs,
      (why) => reports.push(why),
    );
    const guesses = await Promise.all(Array.from({ length: 8 }, () => people.verify?.('alice', 'guess')));
    expect(guesses.map((verdict) => verdict?.why).sort()).toEqual([
      ...Array.from({ length: 3 }, () => 'paced'),
      ...Array.from({ length: 5 }, () => 'wrong'),
    ]);
    expect(await people.verify?.('alice', PASSWORD)).toEqual({ why: 'paced' });
    expect(await people.verify?.('bob', PASSWORD)).toMatchObject({ user: { name: 'bob' } });
    nowMs += 30_000;
    expect(await people.verify?.('alice', PASSWORD)).toMatchObject({ user: { groups: ['eng'] } });
    expect((await people.list()).map(({ name }) => name)).toEqual(['alice', 'bob']);
    await chmod(path, 0o644);
    expect(await people.verify?.('bob', PASSWORD)).toEqual({ why: 'unavailable' });
    expect(await people.list()).toEqual([]);
    expect(reports).toEqual([expect.stringContaining('chmod 600')]);
  });
});
