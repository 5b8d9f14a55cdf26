// Makes an approved definition ready for decisions: schemas compiled, mirrored parameters found.
// Once a digest, not once a request or a reload. Never compiles what nobody approved.
// Contract §5; MCP 2026-07-28, tools (x-mcp-header).

import { isObject, type JsonObject } from '../mcp/message.js';
import type { CompiledSchema, PinKind, PinnedDefinition } from '../policy/definition.js';

type Mirrored = PinnedDefinition['mirrored'];

/** How schemas are compiled and mirrored parameters read: policy/schema.ts and mcp/headers.ts. */
export type SchemaTools = {
  compileSchema(
    schema: JsonObject | boolean,
  ):
    | { readonly ok: true; readonly schema: CompiledSchema }
    | { readonly ok: false; readonly why: string };
  mirroredParameters(
    inputSchema: JsonObject,
  ):
    | { readonly valid: true; readonly mirrored: Mirrored }
    | { readonly valid: false; readonly why: string };
};

export type CompiledDefinition =
  | { readonly ok: true; readonly pinned: PinnedDefinition }
  | { readonly ok: false; readonly why: string };

/** Compiles one approved definition, or says why it cannot be used. Never throws. */
export type CompileDefinition = (
  kind: PinKind,
  name: string,
  version: { readonly sha256: string; readonly definition: JsonObject },
) => CompiledDefinition;

/** Compiled definitions kept; past it the oldest goes. */
export const MAX_COMPILED = 5000;

/** A compiler that remembers by kind and digest, for as many catalogues as share it. */
export function createDefinitionCompiler(
  tools: SchemaTools,
  maxCompiled = MAX_COMPILED,
): CompileDefinition {
  const known = new Map<string, CompiledDefinition>();
  return (kind, name, version) => {
    // The digest covers the name: equal digests of one kind are equal definitions.
    const key = `${kind} ${version.sha256}`;
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const compiled = compileGuarded(tools, kind, name, version);
    const oldest = known.size >= maxCompiled ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(key, compiled);
    return compiled;
  };
}

function compileGuarded(
  tools: SchemaTools,
  ...[kind, name, version]: Parameters<CompileDefinition>
): CompiledDefinition {
  try {
    return compile(tools, kind, name, version);
  } catch {
    // Schemas are written by strangers: one that breaks its compiler is one that cannot be used.
    return { ok: false, why: 'the definition cannot be compiled' };
  }
}

function compile(
  tools: SchemaTools,
  ...[kind, name, { sha256, definition }]: Parameters<CompileDefinition>
): CompiledDefinition {
  const pinned = { kind, name, digest: sha256, definition };
  if (kind !== 'tool') {
    return { ok: true, pinned: { ...pinned, input: undefined, output: undefined, mirrored: [] } };
  }
  const inputSchema = definition['inputSchema'];
  if (!isObject(inputSchema)) return { ok: false, why: 'inputSchema is missing' };
  const input = tools.compileSchema(inputSchema);
  if (!input.ok) return { ok: false, why: `inputSchema: ${input.why}` };
  const mirrored = tools.mirroredParameters(inputSchema);
  if (!mirrored.valid) return { ok: false, why: `x-mcp-header: ${mirrored.why}` };
  const output = compileOutput(tools, definition);
  if (output !== undefined && !output.ok) return { ok: false, why: `outputSchema: ${output.why}` };
  return {
    ok: true,
    pinned: { ...pinned, input: input.schema, output: output?.schema, mirrored: mirrored.mirrored },
  };
}

function compileOutput(
  tools: SchemaTools,
  definition: JsonObject,
): ReturnType<SchemaTools['compileSchema']> | undefined {
  const schema = definition['outputSchema'];
  if (schema === undefined) return undefined;
  if (isObject(schema) || typeof schema === 'boolean') return tools.compileSchema(schema);
  return { ok: false, why: 'not a schema' };
}
