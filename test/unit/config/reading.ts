// Reads gateway texts in tests: files and environment are maps, one small text is right and the
// tests change it.

import type { Diagnostic } from '../../../src/config/diagnostics.js';
import type { Files } from '../../../src/config/files.js';
import { type GatewayReading, loadGateway } from '../../../src/config/load.js';
import type { Settings } from '../../../src/config/settings.js';

export const FOLDER = '/srv/config';
export const FILE = `${FOLDER}/gateway.yaml`;
/** 32 bytes as hex: a gateway key that is plainly none of anybody's. */
export const KEY_HEX = '0123456789abcdef'.repeat(4);

export const GOOD = `version: 1
publicUrl: https://mcp.example.com
keys: [{env: KEY}]
issuers:
  corp:
    issuer: https://idp.example.com
    algorithms: [ES256]
upstreams:
  github:
    url: https://github.example.com/mcp
    issuers: [corp]
policies: {dir: policies}
`;

export const LOCAL = `version: 1
publicUrl: http://127.0.0.1:8080
upstreams:
  demo:
    url: http://127.0.0.1:3001/mcp
    network: loopback
    authentication: none
policies: {dir: policies}
`;

/** Files of a map; what is not in it cannot be read. */
export function filesOf(files: Readonly<Record<string, string | Uint8Array>>): Files {
  return {
    readFile(path) {
      const content = files[path];
      if (content === undefined) throw new Error('no such file');
      return typeof content === 'string' ? new TextEncoder().encode(content) : content;
    },
    listFolder(path) {
      const names = Object.keys(files)
        .filter((file) => file.startsWith(`${path}/`))
        .map((file) => file.slice(path.length + 1))
        .filter((name) => !name.includes('/'));
      if (names.length === 0) throw new Error('no such folder');
      return names;
    },
  };
}

export type Surroundings = {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets?: 'read' | 'skip';
};

export function read(text: string, around: Surroundings = {}): GatewayReading {
  return loadGateway(FILE, {
    readFile: filesOf({ [FILE]: text, ...around.files }).readFile,
    env: { KEY: KEY_HEX, ...around.env },
    secrets: around.secrets ?? 'read',
  });
}

/** The faults of a text, as the lines that a user sees, without the file's name. */
export function diagnosticLines(text: string, around: Surroundings = {}): readonly string[] {
  return read(text, around).diagnostics.map(lineOf);
}

export function lineOf({ line, column, severity, message, suggestion }: Diagnostic): string {
  const suggestionText = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
  return `${line}:${column} ${severity} ${message}${suggestionText}`;
}

export function settingsOf(text: string, around: Surroundings = {}): Settings {
  const { settings, diagnostics } = read(text, around);
  if (settings === undefined) throw new Error(diagnostics.map(lineOf).join('\n'));
  return settings;
}
