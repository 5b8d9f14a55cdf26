// For each key of a lock file the test that goes from a file to what the key does: `file > part of the title`.
// config-effects.test.ts holds this to the schema and to the tests. A new key gets a line here.

const TESTS = 'unit/pins/lock-effects.test.ts';

export const lockEffects: Readonly<Record<string, string>> = {
  '{lockfileVersion,upstream}': `${TESTS} > lockfileVersion and upstream must be`,
  'server.{name,title,version,websiteUrl}': `${TESTS} > server is whom the answers`,
  'instructions.{status,sha256,text}': `${TESTS} > text, sha256 and status say what models are shown`,
  'instructions.approval.{by,at,note}': `${TESTS} > an approval of them says who, when and why`,
  'instructions.block.{by,at,note}': `${TESTS} > a block of them says who, when and why`,
  'instructions.variants[].block.{by,at,note}': `${TESTS} > a block of them says who, when and why`,
  'instructions.variants[].{status,sha256,text}': `${TESTS} > text, sha256 and status say what models are shown`,
  'instructions.variants[].approval.{by,at,note}': `${TESTS} > an approval of them says who, when and why`,
  '{tools,prompts,resourceTemplates,resources}.<name>.{status,sha256,definition}': `${TESTS} > status, sha256 and definition say`,
  '{tools,prompts,resourceTemplates,resources}.<name>.approval.{by,at,note}': `${TESTS} > nothing is approved without one`,
  '{tools,prompts,resourceTemplates,resources}.<name>.approval.accepted': `${TESTS} > an approval says which findings were accepted`,
  '{tools,prompts,resourceTemplates,resources}.<name>.variants[].approval.accepted': `${TESTS} > an approval says which findings were accepted`,
  'instructions.approval.accepted': `${TESTS} > an approval of them says which findings were accepted`,
  'instructions.variants[].approval.accepted': `${TESTS} > an approval of them says which findings were accepted`,
  '{tools,prompts,resourceTemplates,resources}.<name>.block.{by,at,note}': `${TESTS} > a block says who, when and why`,
  '{tools,prompts,resourceTemplates,resources}.<name>.variants[].block.{by,at,note}': `${TESTS} > a block says who, when and why`,
  '{tools,prompts,resourceTemplates,resources}.<name>.variants[].{status,sha256,definition}': `${TESTS} > variants stand beside it`,
  '{tools,prompts,resourceTemplates,resources}.<name>.variants[].approval.{by,at,note}': `${TESTS} > nothing is approved without one`,
};
