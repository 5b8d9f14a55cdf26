// The JSON Schema of a lock file: definitions as they were approved, with their digests.
// Data only; pins/ recomputes the digests, which a schema cannot do. docs/contract.md §5.

import {
  list,
  literal,
  oneOfStrings,
  published,
  record,
  type Typed,
  text,
  typed,
} from './definitions.js';

const SHA256 = typed<string>({
  type: 'string',
  title: 'a SHA-256 digest in lower-case hex',
  pattern: '^[0-9a-f]{64}$',
  description: 'Digest of the domain tag and the RFC 8785 form of the whole definition.',
});

const APPROVAL = record('Who approved it, when and why.', {
  by: text('Who.'),
  at: text('When, RFC 3339.'),
  note: typed<string>({ type: 'string', description: 'Why.' }),
  accepted: list(
    'The findings of the scan, of the tier block, that were accepted with it.',
    text('A finding.'),
  ),
});

const BLOCK = record('Who blocked it, when and why; only where `status` is `blocked`.', {
  by: text('Who.'),
  at: text('When, RFC 3339.'),
  note: typed<string>({ type: 'string', description: 'Why.' }),
});

const STATUS = oneOfStrings('Where it stands; nothing but `approved` grants anything.', [
  'pending',
  'approved',
  'blocked',
]);
const DEFINITION = typed<object>({ type: 'object', description: 'The whole definition.' });
const INSTRUCTIONS = typed<string>({ type: 'string', description: 'The whole text.' });

/** One reviewed version of an item, with its further versions. */
function pinned(description: string, member: string, content: Typed<unknown>) {
  const keys = {
    ...{ status: STATUS, sha256: SHA256, approval: APPROVAL, block: BLOCK },
    [member]: content,
  };
  const required = ['status', 'sha256', member];
  const variant = record('A further version.', keys, { required });
  const variants = list('Further versions.', variant);
  return record(description, { ...keys, variants }, { required });
}

function entries(description: string) {
  const additionalProperties = pinned('One pinned definition.', 'definition', DEFINITION);
  return typed<object>({ type: 'object', description, additionalProperties });
}

/** JSON Schema of `*.lock.yaml`. */
export const LOCK_SCHEMA = published(
  'urn:sallyport:schema:lock:1',
  record(
    'Approved definitions of one upstream. Written by `sallyport pin`, reviewed by people.',
    {
      lockfileVersion: literal(1, 'Version of this format.'),
      upstream: text('Name of the upstream in the gateway file.'),
      server: record(
        'What the server called itself when it was approved. A change is drift that hides nothing.',
        {
          name: text('Its name.'),
          title: text('Its title.'),
          version: text('Its version; another one is told and is no drift.'),
          websiteUrl: text('Its page.'),
        },
        { required: ['name'] },
      ),
      instructions: pinned(
        'The instructions that the server may give to models.',
        'text',
        INSTRUCTIONS,
      ),
      tools: entries('Tools by name.'),
      prompts: entries('Prompts by name.'),
      resourceTemplates: entries('Resource templates by uriTemplate.'),
      resources: entries('Content of the `ui://` resources that tools refer to, by uri.'),
    },
    { title: 'a lock file', required: ['lockfileVersion', 'upstream'] },
  ),
);
