// The provenance statement of a release: an in-toto Statement v1 with the predicate SLSA Provenance v1. Nobody signs it, and
// it says so. Pure.

const UNSIGNED =
  'This statement is unsigned. It is what the machine that built the release says of itself, and proves nothing: whoever can change the files can change this one too.';

/** `subjects` and `materials` are `{name, digest}`; `tools` maps the name of a program to its version. */
export function provenanceStatement({ subjects, commit, materials, tools, options }) {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:sallyport:build:npm-run-release:1',
        externalParameters: options,
        internalParameters: { signed: false, note: UNSIGNED },
        resolvedDependencies: [{ name: 'source', digest: { gitCommit: commit } }, ...materials],
      },
      runDetails: { builder: { id: 'urn:sallyport:builder:local', version: tools } },
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}
