import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  isInstalled,
  isSupportedNode,
  prepare,
  runProgram,
} from '../../../scripts/dependencies.mjs';

let root: string;
let commands: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-clone-'));
  commands = [];
  writeLock('1.0.0');
});
afterEach(() => rmSync(root, { recursive: true }));

function writeLock(version: string): void {
  const packages = { '': {}, 'node_modules/thing': { version } };
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
}

/** What npm leaves behind, at a time given in seconds before now. */
function writeMarker(version: string, secondsAgo: number): void {
  const file = join(root, 'node_modules', '.package-lock.json');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(file, JSON.stringify({ packages: { 'node_modules/thing': { version } } }));
  const time = Date.now() / 1000 - secondsAgo;
  utimesSync(file, time, time);
}

function recorder(codes: Readonly<Record<string, number>> = {}) {
  return (_command: string, args: readonly string[]): Promise<number> => {
    const step = args.includes('ci') ? 'install' : 'build';
    commands.push(step);
    return Promise.resolve(codes[step] ?? 0);
  };
}

describe('a fresh clone', () => {
  it('[D-12] is installed, then built', async () => {
    expect(await prepare(root, { run: recorder(), say: () => undefined })).toBe(0);
    expect(commands).toEqual(['install', 'build']);
  });

  it('[D-12] is not installed again when everything is there', async () => {
    writeMarker('1.0.0', -5);
    expect(await prepare(root, { run: recorder(), say: () => undefined })).toBe(0);
    expect(commands).toEqual(['build']);
  });

  it('[D-12] is installed again when the lock names another version since', () => {
    writeMarker('0.9.0', 3_600);
    expect(isInstalled(root)).toBe(false);
    writeMarker('1.0.0', 3_600);
    expect(isInstalled(root)).toBe(true);
  });

  it('[D-12] stops at the step that fails, with its code', async () => {
    const run = recorder({ install: 7 });
    expect(await prepare(root, { run, say: () => undefined })).toBe(7);
    expect(commands).toEqual(['install']);
  });

  it('[D-12] says which Node it needs', () => {
    expect(isSupportedNode('20.18.3')).toBe(false);
    expect(isSupportedNode('20.19.0')).toBe(true);
    expect(isSupportedNode('24.0.0')).toBe(true);
  });

  it('[D-12] passes on how a program ended', async () => {
    const node = process.execPath;
    expect(await runProgram(node, ['-e', 'process.exit(3)'], { cwd: root })).toBe(3);
    const killed = ['-e', 'process.kill(process.pid, "SIGTERM")'];
    expect(await runProgram(node, killed, { cwd: root })).toBe(143);
  });
});
