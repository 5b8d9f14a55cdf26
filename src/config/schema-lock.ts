// The JSON Schema of a lock file: definitions as they were approved, with their digests.
// Values only. Contract §5; digests are recomputed by pins/, which a schema cannot do.

import { DIALECT, record, type Schema, text, words } from './schema-parts.js';

const SHA256: Schema = {
  type: 'string',
  title: 'a SHA-256 digest in lower-case hex',
  pattern: '^[0-9a-f]{64}$',
  description: 'Digest of the domain tag and the RFC 8785 form of the whole definition.',
};

const APPROVAL = record('Who approved it, when and why.', {
  by: text('Who.'),
  at: text('When, RFC 3339.'),
  note: { type: 'string', description: 'Why.' },
});

const VARIANT = record(
  'A further approved definition.',
  {
    status: words('Where it stands.', ['pending', 'approved', 'blocked']),
    sha256: SHA256,
    approval: APPROVAL,
    definition: { type: 'object', description: 'The whole definition.' },
  },
  { required: ['sha256', 'definition'] },
);

function entries(description: string): Schema {
  return {
    type: 'object',
    description,
    additionalProperties: record(
      'One pinned definition.',
      {
        status: words('Where it stands.', ['pending', 'approved', 'blocked']),
        sha256: SHA256,
        approval: APPROVAL,
        definition: { type: 'object', description: 'The whole definition.' },
        variants: { type: 'array', items: VARIANT, description: 'Further approved definitions.' },
      },
      { required: ['status', 'sha256', 'definition'] },
    ),
  };
}

/** JSON Schema of `*.lock.yaml`. */
export const LOCK_SCHEMA: Schema = {
  $schema: DIALECT,
  $id: 'urn:sallyport:schema:lock:1',
  ...record(
    'Approved definitions of one upstream. Written by `sallyport pin`, reviewed by people.',
    {
      lockfileVersion: { const: 1, description: 'Version of this format.' },
      upstream: text('Name of the upstream in the gateway file.'),
      instructions: record(
        'The instructions that the server may give to models.',
        { sha256: SHA256, text: { type: 'string', description: 'The whole text.' } },
        { required: ['sha256', 'text'] },
      ),
      tools: entries('Tools by name.'),
      prompts: entries('Prompts by name.'),
      resourceTemplates: entries('Resource templates by uriTemplate.'),
    },
    { title: 'a lock file', required: ['lockfileVersion', 'upstream'] },
  ),
};
