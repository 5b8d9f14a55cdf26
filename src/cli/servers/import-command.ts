// `sallyport add --from FILE`: adds the servers of a client's configuration file that a person says yes to. The file is
// untrusted: everything in it is shown with what cannot be seen, and nothing is started or contacted before the yes. The
// file itself is left as it is. docs/reference/commands.md#add---from.

import { readFileSync, realpathSync, statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { decodeUtf8 } from '../../config/files.js';
import { countOf, describeReadError } from '../../text/wording.js';
import { type CliIo, commandLine, didYouMean, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED, UsageError } from '../program.js';
import { type AddCommandPorts, type AddOptions, addTo, stdioLine } from './add-by-kind.js';
import { MAX_CLIENT_FILE_BYTES, readClientFile } from './client-files.js';
import { type ExistingConfiguration, readConfiguration } from './configuration.js';
import { type ImportedServer, type ImportPlan, planImport, visible } from './import-plan.js';
import { askAll, groupsAsked, issuersAsked, namesIn, type Questions } from './questions.js';
import { optionalAnswers } from './server-options.js';

type ImportOptions = AddOptions & { readonly from: string };

/** Exit 1: a server that was chosen was not added, or `validate` found errors. */
export async function runImport(options: ImportOptions, io: CliIo, ports: AddCommandPorts): Promise<number> {
  const file = resolve(io.cwd, options.from);
  const found = readClientFile(readSource(file, options.from));
  if ('error' in found) throw new UsageError(`error: ${visible(options.from)}: ${found.error}\n`);
  const configuration = readConfiguration(options.config, io, ports.files);
  if (configuration === undefined) return EXIT_UNCHECKED;
  const plans = planImport(
    found.servers,
    configuration.outline.upstreams.map(({ name }) => name),
  );
  io.stdout(listText(plans, options.from, isInside(io.cwd, file)));
  const usable = plans.filter((plan): plan is ImportedServer => !('refused' in plan));
  const chosen = await choose(usable, plans, options, configuration, io, ports);
  if (chosen === undefined) return EXIT_UNCHECKED;
  if (chosen.servers.length === 0) return EXIT_FINE;
  const added = await addAll(chosen, options, configuration, io, ports);
  if (added.length === 0) return EXIT_FAILED;
  const code = await ports.validate(configuration.outline.file);
  io.stdout(nextText(added, options, configuration, io));
  return added.length < chosen.servers.length ? EXIT_FAILED : code;
}

/** @throws UsageError where it is no file, too large, or not UTF-8. */
function readSource(file: string, given: string): string {
  const shown = visible(given);
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new UsageError(`error: ${shown} is no file\n`);
    if (status.size > MAX_CLIENT_FILE_BYTES)
      throw new UsageError(`error: ${shown} is larger than ${MAX_CLIENT_FILE_BYTES} bytes\n`);
    const text = decodeUtf8(readFileSync(file));
    if (text === undefined) throw new UsageError(`error: ${shown} is not UTF-8 text\n`);
    return text;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`error: ${shown} ${describeReadError(error)}\n`);
  }
}

/** Whether the file is below the folder, wherever links lead. */
function isInside(folder: string, file: string): boolean {
  const path = relative(realpathSync(folder), realpathSync(file));
  return path !== '..' && !path.startsWith(`..${sep}`) && resolve(folder, path) !== path;
}

function listText(plans: readonly ImportPlan[], from: string, isUntrusted: boolean): string {
  const warning = isUntrusted
    ? 'It is inside the working folder, where a checkout of somebody else may have put it: it is untrusted.\n'
    : '';
  const rows = plans.map((plan) =>
    'refused' in plan ? `\n${visible(plan.written)}: not possible: ${plan.refused}\n` : `\n${serverText(plan)}`,
  );
  return `${visible(from)} has ${countOf(plans.length, 'server')}. Nothing is started and nobody is contacted before a yes.\n${warning}${rows.join('')}`;
}

function serverText({ written, shown, notes }: ImportedServer): string {
  return `${visible(written)}: ${shown}\n${notes.map((note) => `  ${note}\n`).join('')}`;
}

type Chosen = {
  readonly servers: readonly ImportedServer[];
  readonly issuers: readonly string[];
  readonly groups: readonly string[];
};

/** Who is added, and for whom; `undefined` if a mistake or what is missing was printed. */
async function choose(
  usable: readonly ImportedServer[],
  plans: readonly ImportPlan[],
  options: ImportOptions,
  { outline }: ExistingConfiguration,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<Chosen | undefined> {
  const { yes, from } = options;
  const questions = Array.isArray(yes) ? undefined : ports.questions?.();
  try {
    if (questions === undefined && !Array.isArray(yes)) {
      const line = commandLine(io, ['add', '--from', from, '--group', 'GROUP', '--yes']);
      io.stdout(`\nTo add some of them, run on a terminal, or name them: ${line} NAME…\n`);
      return { servers: [], issuers: [], groups: [] };
    }
    const servers =
      questions === undefined
        ? namedServers(yes as readonly string[], usable, plans, io)
        : await askEach(usable, questions, io);
    if (servers === undefined) return undefined;
    if (servers.length === 0) return { servers, issuers: [], groups: [] };
    const asked = [issuersAsked(options.issuer, outline.issuers), groupsAsked(options.group)];
    const given = await askAll(asked, questions, 'add', io);
    if (given === undefined) return undefined;
    const [issuers = '', groups = ''] = given;
    return { servers, issuers: namesIn(issuers), groups: namesIn(groups) };
  } finally {
    questions?.close();
  }
}

/** Those that `--yes` names, by the name of the file or by that which they get here. */
function namedServers(
  names: readonly string[],
  usable: readonly ImportedServer[],
  plans: readonly ImportPlan[],
  io: CliIo,
): readonly ImportedServer[] | undefined {
  const chosen = new Set<ImportedServer>();
  for (const name of names) {
    const found = usable.filter((one) => one.name === name || one.written === name);
    if (found.length === 0) {
      const refused = plans.find((plan) => plan.written === name);
      const why =
        refused !== undefined && 'refused' in refused
          ? `: ${refused.refused}`
          : didYouMean(
              name,
              usable.map((one) => one.name),
            );
      io.stderr(
        `error: ${visible(name)} cannot be added${why || ': the file has no such server'}; nothing was added\n`,
      );
      return undefined;
    }
    for (const one of found) chosen.add(one);
  }
  return [...chosen];
}

async function askEach(
  usable: readonly ImportedServer[],
  questions: Questions,
  io: CliIo,
): Promise<readonly ImportedServer[] | undefined> {
  const chosen: ImportedServer[] = [];
  for (const server of usable) {
    io.stderr(`\n${serverText(server)}`);
    const act =
      server.command === undefined ? 'It is asked for its definitions' : 'It is started once for its definitions';
    const answer = await questions.ask(`Add ${server.name}? ${act}. [y/N] `);
    if (answer === undefined) {
      io.stderr('\nerror: the input ended before the last question; nothing was written\n');
      return undefined;
    }
    if (/^\s*y(?:es)?\s*$/i.test(answer)) chosen.push(server);
  }
  return chosen;
}

/** Adds one after the other; what cannot be added costs itself, with the reason printed. */
async function addAll(
  { servers, issuers, groups }: Chosen,
  options: AddOptions,
  { outline }: ExistingConfiguration,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<readonly ImportedServer[]> {
  // What the other servers of the file still lack must not keep a server from being asked.
  const unset = Object.fromEntries(
    servers.flatMap(({ variables }) => variables.map((name) => [name, io.env[name] ?? 'unset'])),
  );
  const own: CliIo = { ...io, env: { ...io.env, ...unset } };
  const added: ImportedServer[] = [];
  for (const server of servers) {
    const { name, url = '', transport, header, command, variables } = server;
    io.stdout(`\nadding     ${name}\n`);
    const current = readConfiguration(outline.file, io, ports.files);
    if (current === undefined) break;
    const missing = variables.filter((variable) => io.env[variable] === undefined);
    if (missing.length > 0) io.stdout(`not asked  because ${missing.join(' and ')} is not set\n`);
    const offline = options.offline === true || missing.length > 0;
    const network = command === undefined ? await ports.networkOf(url) : 'loopback';
    const answers = { ...optionalAnswers(options), ...{ name, url, transport, header, network, issuers, groups } };
    if ((await addTo(current, answers, command, { ...options, offline }, own, ports)) !== undefined) added.push(server);
    else io.stderr(`error: ${name} was not added\n`);
  }
  return added;
}

/** What to do next; the last line is about the source. */
function nextText(
  added: readonly ImportedServer[],
  { from, config }: ImportOptions,
  { layout, folder }: ExistingConfiguration,
  io: CliIo,
): string {
  const variables = [...new Set(added.flatMap((one) => one.variables))].filter((name) => io.env[name] === undefined);
  const steps = [
    ...(variables.length === 0
      ? []
      : [[`set ${variables.join(', ')} where the gateway and the adapter run`, undefined] as const]),
    ['read the policies and what is pending', commandLine(io, ['pin', 'diff', '-c', config])] as const,
    ...(added.some(({ command }) => command !== undefined)
      ? [['start the adapter', stdioLine(layout.config, folder, io)] as const]
      : []),
  ];
  const lines = steps.map(([what, line], at) => `${at + 1}. ${what}${line === undefined ? '' : `:\n   ${line}`}\n`);
  const secrets = added.some(({ hasSecrets }) => hasSecrets)
    ? 'was not changed and still holds the secrets that were copied to files of mode 0600; remove them there'
    : 'was not changed';
  return `\nNext:\n${lines.join('')}${visible(from)} ${secrets}.\n`;
}
