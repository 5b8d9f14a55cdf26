// Which scopes a broader scope includes, through all steps. Pure; whether a scope may include itself is
// for the checks to say. MCP 2026-07-28, scope challenge handling (hierarchies).

/** Every scope that `scope` includes, itself only where a circle leads back to it. Ends on any input. */
export function impliedBy(
  scope: string,
  hierarchy: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const found = new Set<string>();
  const open = [...(hierarchy.get(scope) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(hierarchy.get(next) ?? []));
  }
  return [...found].sort();
}
