// A policy that lets every verified caller use everything an upstream offers. Templates are named one by
// one, because a policy matches them exactly (docs/contract.md §4).

/** The templates of the reference server "everything". */
export const EVERYTHING_TEMPLATES: readonly string[] = [
  'demo://resource/dynamic/text/{resourceId}',
  'demo://resource/dynamic/blob/{resourceId}',
];

/** Everyone may use everything; of templates, these. */
export function writeOpenPolicy(templates: readonly string[]): string {
  const named = templates.map((template) => JSON.stringify(template)).join(', ');
  return `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], prompts: ["*"], resources: ["**"], templates: [${named}]}
`;
}
