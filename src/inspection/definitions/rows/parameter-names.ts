// Rows for the names of parameters that a model fills with what it has been told, whatever the tool is for: its
// instructions, the conversation, its reasoning, its other tools and what they returned, which model it is, or a file
// that holds secrets. Names stand without separators, in lower case, and in the form in which look-alikes are equal.

import { appliedRows, type DetectorRow } from '../../detector-row.js';

const SOURCE = 'parameters of published attacks by which a model gives away its context';

/** What a model fills the parameter with: the conversation or its instructions, its own name, or a file. */
type Sought = 'context' | 'model' | 'file';

export type ParameterRow = DetectorRow & { readonly seeks: Sought; readonly pattern: RegExp };

function seeking(
  seeks: Sought,
  id: string,
  pattern: RegExp,
  matches: readonly string[],
  passes: readonly string[],
): ParameterRow {
  const about = { class: 'context-parameter', language: 'en', source: SOURCE } as const;
  return { ...about, id: `parameter-${id}`, seeks, pattern, matches, passes };
}

/** All rows of this family, also those that are off. */
export const PARAMETER_ROWS: readonly ParameterRow[] = [
  seeking(
    'context',
    'system-prompt',
    /^(?:system|developer|hidden|meta)(?:prompts?|instructions?|messages?|directives?)$/,
    ['systemprompt'],
    ['prompt', 'metadata'],
  ),
  seeking(
    'context',
    'initial-prompt',
    /^(?:initial|base|original|starting)(?:prompts?|instructions)$/,
    ['initialprompt'],
    ['initialvalue'],
  ),
  seeking(
    'context',
    'full-context',
    /^(?:full|entire|complete|original|raw|exact|verbatim)(?:(?:user)?prompt|chat|context|conversation|dialogue?|user(?:request|message|query|input))$/,
    ['fullconversation', 'exactuserrequest'],
    ['fullname'],
  ),
  seeking(
    'context',
    'history',
    /^(?:conversations?|chats?|messages?|dialogue?s?|sessions?|prompts?|turns?|interactions?|discussion)(?:history|logs?|context|transcript|memory|sofar|messages|turns)$/,
    ['conversationhistory'],
    ['messageid', 'history'],
  ),
  seeking('context', 'conversation', /^conversation$/, ['conversation'], ['conversationid']),
  seeking(
    'context',
    'history-of',
    /^(?:history|transcript|contents?|text|log|copy)of(?:the)?(?:this|current|full|entire)?(?:conversations?|chats?|session|messages|dialogue?)$/,
    ['transcriptofthissession'],
    ['contentofpage'],
  ),
  seeking(
    'context',
    'earlier-messages',
    /^(?:last|latest|recent|previous|prior|past|earlier|preceding|all)(?:user|assistant|model|agent|chat)?(?:messages|prompts?|turns|conversations?|utterances?)$/,
    ['previousmessages'],
    ['lastname', 'lastmessageid'],
  ),
  seeking(
    'context',
    'last-message',
    /^(?:last|latest|previous|prior)(?:user|assistant|model|agent)(?:message|response|answer|reply|output|turn|input|query|request)$/,
    ['lastusermessage'],
    ['lastmessage'],
  ),
  seeking(
    'context',
    'reasoning',
    /^(?:chainofthoughts?|cot|(?:inner|internal)(?:monologue|reasoning|thoughts?|dialogue)|hidden(?:reasoning|thoughts?|chainofthought)|scratchpad|(?:thought|thinking)process|(?:thinking|reasoning)(?:trace|process|chain|history|log|content)|(?:model|assistant|agent|llm)(?:reasoning|thoughts?|thinking))$/,
    ['chainofthought', 'scratchpad'],
    ['reasoning', 'thought'],
  ),
  seeking(
    'context',
    'call-history',
    /^(?:tools?|(?:tools?|functions?)(?:calls?|usage|use|invocations?|executions?))(?:history|logs?|trace|transcript|sofar)$/,
    ['toolcallhistory'],
    ['toolcall'],
  ),
  seeking(
    'context',
    'tool-results',
    /^(?:(?:all|last|recent|previous|prior|past|earlier|other)?tool|(?:all|last|recent|previous|prior|past|earlier)function)(?:calls|invocations|results|outputs|responses)$/,
    ['toolresults'],
    ['toolname'],
  ),
  seeking(
    'context',
    'tool-list',
    /^(?:tools?(?:list|listing|catalog|catalogue|inventory|definitions?|schemas|descriptions|available)|listof(?:all)?(?:the)?(?:available|other)?(?:mcp)?tools)$/,
    ['toollist', 'listofalltools'],
    ['tooltype'],
  ),
  seeking(
    'context',
    'available-tools',
    /^(?:available|all|other|known|installed|loaded|registered|accessible|connected|current|your)?(?:mcp(?:tools|servers)|(?<=.)tools|(?<=.)tool(?=names|list|definitions|schemas|descriptions))(?:names|list|definitions|schemas|descriptions)?$/,
    ['availabletools', 'mcpservers'],
    ['tools'],
  ),
  seeking(
    'context',
    'context-window',
    /^(?:(?:context|model)window|(?:agent|assistant|llm|model)(?:context|memories)|(?:agent|assistant|llm)memory|(?:assistant|llm)instructions)$/,
    ['contextwindow'],
    ['context', 'memory'],
  ),
  seeking('context', 'sidenote', /^sidenote$/, ['sidenote'], ['note']),
  seeking(
    'model',
    'model-name',
    /^(?:(?:model|llm)(?:name|identity|identifier|vendor|provider)|(?:llm|ai|language|assistant|agent|caller|calling|client|host|current|your)model(?:name|id|identifier|version)?|(?:assistant|agent|llm)name|llm(?:id|version|model))$/,
    ['modelname', 'yourmodel'],
    ['model'],
  ),
  seeking(
    'file',
    'secret-file',
    /(?:contents?|reading|text)(?:of|from|in)\w{0,40}(?:idrsa|ided25519|dotssh|etcpasswd|etcshadow|dotenv|dotaws|awscredential|kubeconfig|netrc)/,
    ['contentofdotsshidrsa'],
    ['contentofpage'],
  ),
];

/** The patterns of the names that seek this. */
export function namesSeeking(sought: Sought): readonly RegExp[] {
  return appliedRows(PARAMETER_ROWS).flatMap(({ seeks, pattern }) => (seeks === sought ? [pattern] : []));
}
