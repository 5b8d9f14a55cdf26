// The bill of materials of a release, from the lock file: the packages that are in the tarball. Pure. (`npm sbom` refuses
// this tree: it takes a version that `overrides` chose for an invalid one.)

import { createHash } from 'node:crypto';

const UUID_PARTS = [8, 4, 4, 4, 12];
/** Where a UUID states its version, 8 (made by a rule of its own, RFC 9562 §5.8), and its variant. */
const STATED = { 12: '8', 16: '8' };
const FOLDER = 'node_modules/';
const ALGORITHMS = { sha512: 'SHA-512', sha384: 'SHA-384', sha256: 'SHA-256', sha1: 'SHA-1' };

function uuidOf(text) {
  const digits = [...createHash('sha256').update(text).digest('hex')];
  for (const [at, digit] of Object.entries(STATED)) digits[at] = digit;
  return UUID_PARTS.map((length) => digits.splice(0, length).join('')).join('-');
}

const nameOf = (path) => path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
const referenceOf = (path, { version }) => `${nameOf(path)}@${version}`;

function licensesOf({ license }) {
  if (license === undefined) return {};
  return { licenses: [/^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license }] };
}

function hashesOf({ integrity }) {
  return integrity.split(' ').map((one) => {
    const [algorithm, digest] = one.split(/-(.*)/);
    return { alg: ALGORITHMS[algorithm], content: Buffer.from(digest, 'base64').toString('hex') };
  });
}

function componentOf([path, entry]) {
  const reference = referenceOf(path, entry);
  return {
    type: 'library',
    'bom-ref': reference,
    name: nameOf(path),
    version: entry.version,
    scope: 'required',
    hashes: hashesOf(entry),
    ...licensesOf(entry),
    purl: `pkg:npm/${nameOf(path).replace('@', '%40')}@${entry.version}`,
    properties: [{ name: 'cdx:npm:package:bundled', value: 'true' }],
  };
}

/** Where Node finds a package by its name from a folder of the lock file; `undefined` for one that is not there. */
function resolve(packages, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf(`/${FOLDER}`), 0))) {
    const path = `${folder === '' ? '' : `${folder}/`}${FOLDER}${name}`;
    if (path in packages) return path;
    if (folder === '') return undefined;
  }
}

/** Also optional and peer dependencies, where they are shipped. */
function dependenciesOf(packages, [path, entry], reference) {
  const names = ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((kind) =>
    Object.keys(entry[kind] ?? {}),
  );
  const found = names.map((name) => resolve(packages, path, name)).filter((at) => at !== undefined);
  const dependsOn = [...new Set(found.map((at) => referenceOf(at, packages[at])))].sort();
  return { ref: reference, dependsOn };
}

/**
 * CycloneDX 1.6, equal for equal lock files of one commit. Sallyport itself has no package URL: its name in a registry is
 * not ours.
 */
export function billOfMaterials(lock, { version, createdAt }) {
  const shipped = Object.entries(lock.packages).filter(([path, entry]) => path !== '' && !entry.dev);
  const packages = Object.fromEntries(shipped);
  const { license, dependencies } = lock.packages[''];
  const self = `sallyport@${version}`;
  const components = new Map(shipped.map((one) => [referenceOf(...one), componentOf(one)]));
  const edges = new Map(
    shipped.map((one) => [referenceOf(...one), dependenciesOf(packages, one, referenceOf(...one))]),
  );
  const content = {
    metadata: {
      timestamp: createdAt,
      lifecycles: [{ phase: 'build' }],
      component: {
        ...{ type: 'application', 'bom-ref': self, name: 'sallyport', version },
        ...licensesOf({ license }),
      },
    },
    components: [...components.values()],
    dependencies: [dependenciesOf(packages, ['', { dependencies }], self), ...edges.values()],
  };
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 },
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`,
    ...content,
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}
