// For each key of a policy file the test that goes from a file to what the key does: `file > part of the
// title`. config-effects.test.ts holds this to the schema and to the tests. A new key gets a line here.

export const policyEffects: Readonly<Record<string, string>> = {
  version: "unit/config/policies.test.ts > swap('version: 1', 'version: 2')",
  policy: 'integration/effects-of-rules.test.ts > policy and id what the record says',
  mode: 'integration/shadow.test.ts > refuses nothing, and the record says',
  labels: 'integration/flows.test.ts > needs each of its labels',
  'flows[].{id,from,to,within,effect}':
    'integration/flows.test.ts > refuses the sink after a result, names its decision',
  'sensitive.<name>[]': 'integration/sensitive-fields.test.ts > redacted and tagged, for SDK clients of each era',
  'sensitive.<name>[].{pointer,effect}':
    'integration/sensitive-fields.test.ts > redacted and tagged, for SDK clients of each era',

  'rules[].id': 'integration/effects-of-rules.test.ts > policy and id what the record says',
  'rules[].effect': 'attacks/log-injection.test.ts > a deny wins over an allow, in any order',
  'defaults.{issuers,upstreams}': 'unit/config/policies.test.ts > are those of rules that name none',
  'rules[].who.actors': 'integration/effects-of-rules.test.ts > by the current actor',
  'rules[].who.{anyone,issuers,subjects,clients,groups,claims}':
    'integration/effects-of-rules.test.ts > for exactly the callers that they name',
  'rules[].what.{upstreams,tools}': 'integration/effects-of-rules.test.ts > for exactly the callers that they name',
  'rules[].what.resources': 'attacks/log-injection.test.ts > a URI within its rule leaves as it was checked',
  'rules[].what.templates': 'integration/merged-harm.test.ts > is not read in the place of one whose template',
  'rules[].what.prompts': 'e2e/merged.test.ts > gets prompts, reads resources and completes',
  'rules[].what.sampling': 'integration/questions.test.ts > that was not declared is refused though it is granted',
  'rules[].what.{elicitation,elicitation[]}':
    'integration/questions.test.ts > is inspected under the profile that a rule asks for',
  'rules[].what.sampling.{includeContext,tools}':
    'integration/questions.test.ts > unless its context and tools are those that the rule names',
  'rules[].what.elicitation.{form,url}': 'integration/questions.test.ts > unless its host is one that the rule names',
  'rules[].what.tasks': 'integration/tasks.test.ts > takes these away, and leaves the others',
  'rules[].what.roots': 'integration/questions.test.ts > that is not granted is gone from the capabilities',
  'rules[].{args,when}': 'integration/effects-of-rules.test.ts > args and when of an allow',
  'rules[].scopes': 'attacks/scopes.test.ts > that is missing is named in sessions too',
  'rules[].limits.rate': 'integration/limits.test.ts > for that subject alone',
  'rules[].limits.per': 'integration/effects-of-rules.test.ts > per of a limit says whose calls',
  'rules[].limits.budget.{name,cost,per,within,max}':
    'integration/effects-of-rules.test.ts > a budget is spent over several tools',
  'rules[].reason': 'integration/effects-of-rules.test.ts > reason is what the caller is told',
  '{rules,flows}[].approval.{by,proof,expires,use,remember,count}':
    'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  '{rules,flows}[].approval.remember.{for,same}':
    'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  '{rules,flows}[].approval.reviewers.groups':
    'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  'rules[].approval.asks': 'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  'flows[].approval.asks': 'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  'flows[].reason': 'unit/config/policies.test.ts > an approval is what a rule and a flow say',
  'rules[].inspect': 'integration/effects-of-settings.test.ts > acts on what it is about',
  'rules[].maxResultBytes': 'attacks/rules-hold-beside-the-result.test.ts > caps the bytes of an error',
  'rules[].audit.capture': 'integration/captures.test.ts > is the text of the value at each pointer',
};
