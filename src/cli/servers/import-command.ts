// `sallyport add --from FILE`: adds the servers of a client's configuration file that a person says yes to. The file is
// untrusted: everything in it is shown with what cannot be seen, and nothing is started or contacted before the yes. The
// file itself is left as it is. docs/reference/commands.md#add---from.

import { type CliIo, commandLine, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import { type AddCommandPorts, type AddOptions, addTo, stdioLine } from './add-by-kind.js';
import { type ExistingConfiguration, readConfiguration } from './configuration.js';
import { askEach, listServers, namedServers } from './import-choice.js';
import { type ImportedServer, type ImportPlan, visible } from './import-plan.js';
import { askAll, groupsAsked, issuersAsked, namesIn } from './questions.js';
import { optionalAnswers } from './server-options.js';

type ImportOptions = AddOptions & { readonly from: string };

/** Exit 1: a server that was chosen was not added, or `validate` found errors. */
export async function runImport(options: ImportOptions, io: CliIo, ports: AddCommandPorts): Promise<number> {
  const configuration = readConfiguration(options.config, io, ports.files);
  if (configuration === undefined) return EXIT_UNCHECKED;
  const taken = configuration.outline.upstreams.map(({ name }) => name);
  const plans = listServers(options.from, taken, io);
  const chosen = await choose(plans, options, configuration, io, ports);
  if (chosen === undefined) return EXIT_UNCHECKED;
  if (chosen.servers.length === 0) return EXIT_FINE;
  const added = await addAll(chosen, options, configuration, io, ports);
  if (added.length === 0) return EXIT_FAILED;
  const code = await ports.validate(configuration.outline.file);
  io.stdout(nextText(added, options, configuration, io, ports));
  return added.length < chosen.servers.length ? EXIT_FAILED : code;
}

type Chosen = {
  readonly servers: readonly ImportedServer[];
  readonly issuers: readonly string[];
  readonly groups: readonly string[];
};

/** Who is added, and for whom; `undefined` if a mistake or what is missing was printed. */
async function choose(
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
        ? namedServers(yes as readonly string[], plans, io)
        : await askEach(plans, { question: questionOf, io }, questions);
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

function questionOf({ name, command }: ImportedServer): string {
  const act = command === undefined ? 'It is asked for its definitions' : 'It is started once for its definitions';
  return `Add ${name}? ${act}.`;
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
  ports: Pick<AddCommandPorts, 'gitIdentity'>,
): string {
  const by = ports.gitIdentity?.() === undefined ? ' --by "$(id -un)"' : '';
  const variables = [...new Set(added.flatMap((one) => one.variables))].filter((name) => io.env[name] === undefined);
  const steps = [
    ...(variables.length === 0
      ? []
      : [[`set ${variables.join(', ')} where the gateway and the adapter run`, undefined] as const]),
    ...(added.some(({ command }) => command !== undefined)
      ? [['start the adapter, in a terminal of its own', stdioLine(layout.config, folder, io)] as const]
      : []),
    ['read the policies and what is pending', commandLine(io, ['pin', 'diff', '-c', config])] as const,
    ['approve what you have read', `${commandLine(io, ['pin', 'approve', '-c', config, '--all'])}${by}`] as const,
    ['start the gateway, if it does not run', commandLine(io, ['serve', '-c', config])] as const,
  ];
  const lines = steps.map(([what, line], at) => `${at + 1}. ${what}${line === undefined ? '' : `:\n   ${line}`}\n`);
  const secrets = added.some(({ hasSecrets }) => hasSecrets)
    ? 'was not changed and still holds the secrets that were copied to files of mode 0600; remove them there'
    : 'was not changed';
  return `\nNext:\n${lines.join('')}${visible(from)} ${secrets}.\n`;
}
