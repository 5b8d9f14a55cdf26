// `sallyport approvals`: what waits for a reviewer at a running gateway, and the answers, by the API of its admin listener.
// Every text that comes back may be a caller's or an upstream's: it is shown with what is invisible in it, and whole.
// docs/reference/approvals.md#reviewers.

import { isObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal, makeVisible, toVisibleJson } from '../text/escaping.js';
import { layOutJson } from '../text/json-layout.js';
import { countOf, sizeText } from '../text/wording.js';
import { type AdminApiPorts, type AdminOptions, createSender, type Shown, withAdminOptions } from './admin-client.js';
import { type CliIo, type Command, EXIT_FINE, withUsage } from './program.js';

const PATH = '/api/approvals';

type Options = AdminOptions & { readonly history?: boolean; readonly sensitive?: boolean };

function visible(text: string): string {
  return makeVisible(escapeForTerminal(text));
}

/** A member as one line of text; nothing where it is absent. */
function textOf(shown: Shown, name: string): string {
  const value = shown[name];
  return typeof value === 'string' || typeof value === 'number' ? visible(String(value)) : '';
}

function objectOf(value: unknown): Shown {
  return isObject(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): string {
  return listOf(value)
    .map((one) => visible(String(one)))
    .join(', ');
}

function describeCaller(caller: Shown): string {
  const actors = listOf(caller['actors']).map((actor) => textOf(objectOf(actor), 'subject'));
  const acting = actors.length === 0 ? '' : `, acted for by ${actors.join(', ')}`;
  return `${textOf(caller, 'subject')} of ${textOf(caller, 'issuer')} by ${textOf(caller, 'client')}${acting}`;
}

/** One approval on one line. */
function describeInLine(shown: Shown): string {
  const state = shown['state'] === 'waiting' ? `waits for ${textsOf(shown['waitsFor'])}` : textOf(shown, 'state');
  const what = `${textOf(shown, 'method')} ${textOf(shown, 'name')} at ${textOf(shown, 'upstream')}`;
  // A yes is of use for less time than the question would have stood.
  const until = textOf(shown, shown['state'] === 'granted' ? 'usableUntil' : 'expires');
  return `${textOf(shown, 'id')} ${state}: ${what}, rule ${textsOf(shown['rules'])}, until ${until}`;
}

function listWaiting(value: Shown): string {
  const lines: string[] = [];
  for (const group of listOf(value['callers']).map(objectOf)) {
    lines.push(describeCaller(objectOf(group['caller'])));
    for (const one of listOf(group['approvals']).map(objectOf)) lines.push(`  ${describeInLine(one)}`);
    const more = Number(group['more']);
    if (more > 0) lines.push(`  and ${more} more of this caller`);
  }
  const unlisted = Number(value['unlisted']);
  if (unlisted > 0) lines.push(`and ${unlisted} of other callers`);
  return lines.map((line) => `${line}\n`).join('');
}

const MAX_NAMED_LETTERS = 20;

/** Letters outside ASCII may look like others: they are named by their codes. */
function foreignLetters(text: string): string {
  const found = new Set([...text].filter((character) => character > '~'));
  if (found.size === 0) return '';
  const codes = [...found].slice(0, MAX_NAMED_LETTERS).map((one) => `U+${(one.codePointAt(0) ?? 0).toString(16)}`);
  const more = found.size > codes.length ? ` and ${found.size - codes.length} others` : '';
  return `  (has characters outside ASCII: ${codes.join(', ')}${more})\n`;
}

function laidOut(json: string): string {
  return `${layOutJson(json, visible).replaceAll(/^/gm, '  ')}\n`;
}

function describeInFull(shown: Shown): string {
  const args = String(shown['arguments'] ?? '');
  const reviewers = objectOf(shown['reviewers']);
  const groups = listOf(reviewers['groups']).map((list) => listOf(list).map(String).join(' or '));
  const agent = objectOf(shown['selfReported']);
  const facts: readonly (readonly [string, string])[] = [
    ['id', textOf(shown, 'id')],
    ['state', shown['state'] === 'waiting' ? `waits for ${textsOf(shown['waitsFor'])}` : textOf(shown, 'state')],
    ['caller', describeCaller(objectOf(shown['caller']))],
    ['agent', 'name' in agent ? `says it is ${textOf(agent, 'name')} ${textOf(agent, 'version')}` : ''],
    ['upstream', textOf(shown, 'upstream')],
    ['request', `${textOf(shown, 'method')} ${textOf(shown, 'name')}`],
    ['known as', 'shownAs' in shown ? textOf(shown, 'shownAs') : ''],
    ['rules', textsOf(shown['rules'])],
    ['reasons', textsOf(shown['reasons'])],
    ['reviewers', 'count' in reviewers ? `${countOf(Number(reviewers['count']), 'reviewer')}` : ''],
    ['in groups', groups.map(visible).join('; and ')],
    ['received', describeLabels(shown['labels'])],
    ['created', textOf(shown, 'created')],
    ['expires', textOf(shown, 'expires')],
    ['decision', textOf(shown, 'decision')],
    ['shown', textOf(shown, 'shown')],
  ];
  const answers = listOf(shown['answers']).map(objectOf).map(describeAnswer);
  const findings = listOf(shown['findings']).map(objectOf).map(describeFinding);
  const definition = shown['definition'];
  return [
    ...facts.filter(([, value]) => value !== '').map(([name, value]) => `${name.padEnd(10)} ${value}\n`),
    ...answers,
    ...findings,
    `arguments  ${sizeText(Number(shown['argumentsBytes']))}, as they would be sent:\n`,
    laidOut(args),
    foreignLetters(args),
    ...listOf(shown['masked']).map((pointer) => `masked     ${visible(String(pointer))}; --sensitive shows it\n`),
    ...(isObject(definition) ? ['definition as it is approved:\n', laidOut(JSON.stringify(definition))] : []),
  ].join('');
}

/** Null where it is not known; absent where it is not kept any more. */
function describeLabels(labels: unknown): string {
  if (labels === undefined) return '';
  return labels === null ? 'not known' : textsOf(labels) || 'nothing that carries a label';
}

function describeAnswer(answer: Shown): string {
  const who = objectOf(answer['person']);
  const person = `${textOf(who, 'subject')} of ${textOf(who, 'issuer')}`;
  return `${textOf(answer, 'verdict').padEnd(10)} by ${person} as ${textOf(answer, 'party')} (${textOf(answer, 'proof')}), ${textOf(answer, 'at')}\n`;
}

function describeFinding(finding: Shown): string {
  return `finding    ${textOf(finding, 'detector')} at ${textOf(finding, 'path')}\n`;
}

async function runList(options: Options, io: CliIo, ports: AdminApiPorts): Promise<number> {
  const send = await createSender(options, io, ports);
  const { value } = await send(options.history === true ? `${PATH}/history` : PATH, { method: 'GET' });
  if (options.json === true) {
    io.stdout(`${toVisibleJson(value, 0)}\n`);
    return EXIT_FINE;
  }
  const text =
    options.history === true
      ? listOf(value['approvals'])
          .map((one) => `${describeInLine(objectOf(one))}\n`)
          .join('')
      : listWaiting(value);
  if (text === '') io.stderr(`note: ${options.history === true ? 'nothing was answered' : 'nothing waits'}\n`);
  io.stdout(text);
  return EXIT_FINE;
}

async function runShow(id: string, options: Options, io: CliIo, ports: AdminApiPorts): Promise<number> {
  const send = await createSender(options, io, ports);
  const query = options.sensitive === true ? '?show=sensitive' : '';
  const { value } = await send(`${PATH}/${encodeURIComponent(id)}${query}`, { method: 'GET' });
  const approval = objectOf(value['approval']);
  io.stdout(options.json === true ? `${toVisibleJson(approval, 0)}\n` : describeInFull(approval));
  return EXIT_FINE;
}

async function runAnswer(
  verb: 'grant' | 'deny',
  id: string,
  options: Options,
  io: CliIo,
  ports: AdminApiPorts,
): Promise<number> {
  const send = await createSender(options, io, ports);
  const { value } = await send(`${PATH}/${encodeURIComponent(id)}/${verb}`, { method: 'POST', body: '{}' });
  const approval = objectOf(value['approval']);
  if (options.json === true) io.stdout(`${toVisibleJson(approval, 0)}\n`);
  else {
    const caller = describeCaller(objectOf(approval['caller']));
    const done = verb === 'grant' ? 'granted' : 'denied';
    io.stdout(`${done} ${describeInLine(approval)}\n  ${caller}\n`);
  }
  return EXIT_FINE;
}

export function approvalsCommand(io: CliIo, ports: AdminApiPorts): Command {
  const [argument, about] = ['<id>', 'id, as `approvals list` prints it'] as const;
  return {
    name: 'approvals',
    summary: 'List, show, grant and deny the requests that wait for a reviewer at a running gateway.',
    examples: [
      'sallyport approvals list --token-file reviewer.token',
      'sallyport approvals show Xk3v0m1rQm6Zb2c9yT4hLw',
      'sallyport approvals grant Xk3v0m1rQm6Zb2c9yT4hLw',
      'sallyport approvals list --history --json',
    ],
    configure(command, finish) {
      const list = command.command('list').description('List what waits, by caller.');
      withAdminOptions(list, io)
        .option('--history', 'list what was answered, used or has expired instead')
        .action(async (options: Options) => finish(await withUsage(io, () => runList(options, io, ports))));
      const show = command.command('show').description('Show one request with its arguments.');
      withAdminOptions(show.argument(argument, about), io)
        .option('--sensitive', 'show the values that are masked')
        .action(async (id: string, options: Options) =>
          finish(await withUsage(io, () => runShow(id, options, io, ports))),
        );
      for (const verb of ['grant', 'deny'] as const) {
        const what =
          verb === 'grant'
            ? 'Grant one request; needs a token with an "auth_time" of the last five minutes.'
            : 'Deny one request.';
        withAdminOptions(command.command(verb).description(what).argument(argument, about), io).action(
          async (id: string, options: Options) =>
            finish(await withUsage(io, () => runAnswer(verb, id, options, io, ports))),
        );
      }
    },
  };
}
