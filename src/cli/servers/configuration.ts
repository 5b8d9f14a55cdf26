// A configuration folder that exists: its gateway file as it is, checked without any secret, and where its policies, lock
// files and secrets are. Changes nothing. docs/reference/commands.md#add-remove-and-list.

import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { errorsOf, renderDiagnostics } from '../../config/diagnostics.js';
import { decodeUtf8, type Files } from '../../config/files.js';
import { loadGateway, type Outline } from '../../config/load.js';
import type { CliIo } from '../program.js';
import type { Configuration } from './add-server.js';
import { SECRETS_FOLDER } from './drafts.js';

export type ExistingConfiguration = Configuration & { readonly outline: Outline };

/** Reads the gateway file; `undefined`, with what is wrong printed, if it has errors. */
export function readConfiguration(
  config: string,
  io: CliIo,
  { readFile }: Pick<Files, 'readFile'>,
): ExistingConfiguration | undefined {
  const file = resolve(io.cwd, config);
  const { outline, diagnostics } = loadGateway(file, { readFile, env: io.env, secrets: 'skip' });
  const errors = errorsOf(diagnostics);
  if (outline === undefined || errors.length > 0) {
    io.stderr(renderDiagnostics(errors, 'text', io.cwd));
    return undefined;
  }
  const text = decodeUtf8(readFile(file)) ?? '';
  const folder = [dirname(file), dirname(dirname(file))].find((root) =>
    [outline.policiesDir, outline.pinsDir].every((dir) => pathBelow(root, dir) !== undefined),
  );
  if (folder === undefined) {
    io.stderr(
      'error: the folders of policies and lock files are neither beside the gateway file nor one folder above\n',
    );
    return undefined;
  }
  const at = (path: string): string => pathBelow(folder, path) ?? '';
  const layout = {
    config: at(file),
    policies: at(outline.policiesDir),
    pins: at(outline.pinsDir),
    secrets: at(resolve(dirname(file), SECRETS_FOLDER)),
  };
  return { folder, layout, text, isNew: false, ignored: [`/${layout.secrets}/`], outline };
}

/** A path relative to a folder, with slashes; `undefined` if it is not below it. */
function pathBelow(folder: string, path: string): string | undefined {
  const found = relative(folder, path).split(sep).join('/');
  return found === '' || found.startsWith('../') || found === '..' || isAbsolute(found) ? undefined : found;
}
