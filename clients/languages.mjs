// Makes what the other languages need in a temporary folder: a virtual environment with the Python SDK and FastMCP,
// the Go programs, and the Java classes. A language that the machine lacks is told as such and left out.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { firstLine, isInstalled, run } from './process.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The interpreter with the locked SDK, or `undefined` where there is no Python with `venv`. */
export async function preparePython(folder) {
  if (!isInstalled('python3', ['-c', 'import venv, ensurepip'])) return undefined;
  const venv = join(folder, 'venv');
  await run('python3', ['-m', 'venv', venv]);
  const python = join(venv, 'bin/python');
  const quiet = ['--quiet', '--disable-pip-version-check'];
  await run(python, ['-m', 'pip', 'install', ...quiet, '-r', here('./python/requirements.txt')]);
  return {
    version: firstLine(python, ['--version']),
    client: [python, here('./python/client.py')],
    fastmcp: [python, here('./python/fastmcp_client.py')],
    server: [python, here('./python/server.py')],
    parser: [python, here('./python/parser.py')],
  };
}

/** The built programs, or `undefined` where there is no Go. */
export async function prepareGo(folder) {
  if (!isInstalled('go', ['version'])) return undefined;
  const build = ['build', '-buildvcs=false', '-o', `${folder}/`];
  await run('go', [...build, './client', './server', './parser'], { cwd: here('./go') });
  return {
    version: firstLine('go', ['env', 'GOVERSION']),
    client: [join(folder, 'client')],
    server: [join(folder, 'server')],
    parser: [join(folder, 'parser')],
  };
}

/** The compiled classes, or `undefined` where there is no Java compiler or no Maven. */
export async function prepareJava(folder) {
  if (!isInstalled('javac', ['-version']) || !isInstalled('mvn', ['-v'])) return undefined;
  const [lib, out] = [join(folder, 'java-lib'), join(folder, 'java-out')];
  const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${lib}`];
  await run('mvn', ['-q', '-B', '-f', here('./java/pom.xml'), ...copy]);
  const sources = ['Client', 'Parser', 'Server'].map((name) => here(`./java/${name}.java`));
  await run('javac', ['-cp', `${lib}/*`, '-d', out, ...sources]);
  const java = (name) => ['java', '-cp', `${lib}/*:${out}`, name];
  return {
    version: firstLine('javac', ['-version']),
    sdk: await sdkVersion(lib),
    client: java('Client'),
    server: java('Server'),
    parser: java('Parser'),
  };
}

/** The version of the SDK among the copied libraries: its classes do not tell it. */
async function sdkVersion(lib) {
  const names = await readdir(lib);
  return names.map((name) => /^mcp-core-(.+)\.jar$/.exec(name)?.[1]).find((version) => version);
}
