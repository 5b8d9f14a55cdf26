// Finds what a model heeds without any demand in words: imitated turns and tags of a conversation, and commands of a
// shell that destroy or send data.

import { STRUCTURES } from '../detectors/injection-phrases.js';
import type { Match } from './demands.js';

/** Tags and headings that claim to speak to the model, whatever their name is made of. */
const TAGS: readonly RegExp[] = [
  /<\/?(?:[a-z]{1,20}[_-]){0,4}(?:important|system|instructions?|admin|secret|hidden|directive|policy|override|mandatory|critical|assistant|internal)(?:[_-][a-z]{1,20}){0,4}>/,
  /\[\/?(?:[a-z]{1,20}[_ -]){0,3}(?:instructions?|directive|override|system|assistant)(?:[_ -][a-z]{1,20}){0,3}\]/,
  /<\/(?:description|tool|tools|tool_description|function|schema)>/,
  /(?:^|\n|[.:] )[ \t]{0,8}#{1,6}[ \t]{1,4}(?:system|assistant|developer)(?: message| prompt| override)?[ \t]{0,4}(?:\n|$)/,
  /-{2,}[ ]?(?:end|begin|start) of (?:the )?(?:tool |function |system )?(?:description|prompt|message|instructions)/,
  /\n[ \t]{0,8}(?:new|updated|additional|hidden|secret) (?:system )?instructions?[ \t]{0,4}:/,
];

/** Commands of a shell that delete everything, or send what they are given. */
const SHELL =
  /\brm -[rf]{2} [/~]|\|\s{0,4}(?:ba|z)?sh\b|<\(\s{0,4}curl\b|\|\s{0,4}(?:nc|netcat)\s|\/dev\/tcp\/|\bchmod (?:-r )?0?777\b|\bcurl (?:[^\n]{0,120} )?(?:-d|--data|--data-binary|-f) ?@|\$\((?:whoami|hostname|env|cat |id\))|\benv ?\| ?base64|\b(?:system|popen)\(['"]/;

/** A picture whose address has a query: what is shown is also sent. */
const PICTURE = /!\[[^\]\n]{0,80}\]\(https?:\/\/[^)\s?]{1,300}\?/;

/** `parameters`: names that a list of arguments in the description may begin a line with. */
export function markersIn(text: string, parameters: ReadonlySet<string>): readonly Match[] {
  const lower = text.toLowerCase();
  const commands = matchOf(SHELL, lower, 'review', 'It has a command that destroys or sends data.');
  const pictures = matchOf(PICTURE, lower, 'review', 'It has a picture whose address takes data.');
  const roles = [...STRUCTURES.map(({ pattern }) => pattern), ...TAGS].flatMap((pattern) =>
    matchOf(pattern, lower, 'block', 'It imitates a role or a message of the conversation.'),
  );
  const isArgument = ({ start, end }: Match): boolean =>
    parameters.has(lower.slice(start, end).replace(/[\s:]/g, ''));
  const sent = pictures.map((match) => ({ ...match, kind: 'exfiltration' as const }));
  return [...commands, ...sent, ...roles.filter((match) => !isArgument(match))];
}

function matchOf(
  pattern: RegExp,
  text: string,
  tier: Match['tier'],
  reason: string,
): readonly Match[] {
  const match = pattern.exec(text);
  if (match === null) return [];
  const end = match.index + match[0].length;
  return [{ kind: 'order-to-model', tier, reason, start: match.index, end }];
}
