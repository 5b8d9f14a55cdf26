// Brings the call of a tool that is presented otherwise than its server offers it into the server's form, before it is
// admitted as if it had come so: the name, the arguments that are filled in, and the headers that mirror both. Whether it
// is refused for what its client sent is decided with everything else (stages.ts), so that nothing tells who may not see
// the tool that there is one. docs/reference/definitions.md#presentation; MCP 2026-07-28, transports (standard headers).

import { definitionOf } from '../policy/definitions.js';
import { calledTool, type PresentedTool, toOwnForm, withheldIn } from '../policy/presentation.js';
import { copyAdmitted } from '../protocol/admission.js';
import type { AdmittedMessage, PresentedCall, TextEdit } from '../protocol/admitted-request.js';
import { encodeHeaderValue, type HeaderMap, PARAM_PREFIX, paramHeadersOf } from '../protocol/headers.js';
import type { Snapshot } from './ports.js';

/** What is made of a call, once: it stays when the call is admitted again. */
export type OwnCall = {
  readonly presented: PresentedCall;
  /** Undefined for a name that clients do not know. */
  readonly tool: PresentedTool | undefined;
  readonly edits: readonly TextEdit[];
  readonly filledIn: readonly string[];
};

type Presenting = Pick<Snapshot, 'presentation' | 'catalogFor'>;

/** Undefined for every message but a call of a name that is presented otherwise. */
export function ownCallOf({ presentation, catalogFor }: Presenting, admitted: AdmittedMessage): OwnCall | undefined {
  const { target, args, text } = admitted;
  if (presentation === undefined || target.kind !== 'tool' || args === undefined) return undefined;
  const { name } = target;
  const tool = calledTool(presentation, name);
  if (tool === 'as-is') return undefined;
  if (tool === 'unknown')
    return {
      ...{ tool: undefined, edits: [], filledIn: [] },
      presented: { name, key: undefined, refused: 'unknown' },
    };
  const mirrored = mirroredBy(catalogFor(admitted), tool);
  const parameter = withheldIn(tool, [...Object.keys(args), ...mirroredNames(admitted, mirrored)]);
  const refused = parameter === undefined ? undefined : { parameter };
  return { tool, ...toOwnForm(tool, text, args), presented: { name, key: tool.key, refused } };
}

type Mirrored = ReturnType<typeof mirroredBy>;

function mirroredBy(catalog: ReturnType<Snapshot['catalogFor']>, { tool }: PresentedTool) {
  return definitionOf(catalog.statusOf('tool', tool))?.mirrored ?? [];
}

/** The arguments that headers of the call mirror, or in a session might be taken to. */
function mirroredNames({ paramHeaders }: AdmittedMessage, mirrored: Mirrored): readonly string[] {
  return Object.keys(paramHeaders).flatMap((header) => {
    const declared = mirrored.filter((one) => PARAM_PREFIX + one.header.toLowerCase() === header);
    // A header that the schema gives to one parameter is no other parameter's, though it may have its name.
    return declared.length === 0
      ? [header.slice(PARAM_PREFIX.length)]
      : declared.flatMap(({ path }) => path.slice(0, 1));
  });
}

/** The headers of the call in the server's form. */
export function ownHeaders(headers: HeaderMap, { tool }: OwnCall): HeaderMap {
  if (tool === undefined || headers['mcp-name'] === undefined) return headers;
  return { ...headers, 'mcp-name': encodeHeaderValue(tool.tool) };
}

/** The call as it was admitted in the server's form, with the headers that mirror what was filled in. */
export function inOwnForm({ catalogFor }: Presenting, admitted: AdmittedMessage, own: OwnCall): AdmittedMessage {
  const { tool, filledIn, presented } = own;
  const { args, protocol, paramHeaders } = admitted;
  if (tool === undefined || args === undefined || filledIn.length === 0 || !protocol.mirrorsBody)
    return copyAdmitted(admitted, { presented });
  const mirrored = mirroredBy(catalogFor(admitted), tool).filter(({ path }) => filledIn.includes(path[0] ?? ''));
  // A header that the client sent stays, and is compared.
  const filled = Object.fromEntries(paramHeadersOf(mirrored, args));
  return copyAdmitted(admitted, { presented, paramHeaders: { ...filled, ...paramHeaders } });
}
