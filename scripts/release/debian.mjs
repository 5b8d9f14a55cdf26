// The Debian package: the packed npm package under /usr/lib/sallyport, the command, a systemd unit, and a configuration
// in /etc/sallyport that is the administrator's once it is installed.

import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const SOURCES = join(import.meta.dirname, 'debian');
const CONFIGURATION = ['etc/sallyport/gateway.yaml', 'etc/sallyport/policies/first.policy.yaml'];
/** From the folder beside this file to the root of the package. */
const COPIED = [
  ['gateway.yaml', CONFIGURATION[0]],
  ['first.policy.yaml', CONFIGURATION[1]],
  ['sallyport.service', 'usr/lib/systemd/system/sallyport.service'],
  ['sysusers.conf', 'usr/lib/sysusers.d/sallyport.conf'],
];
const SCRIPTS = ['postinst', 'prerm', 'postrm'];
const EXECUTABLE = 0o755;

/** Debian sorts `1.0.0~rc.1` before `1.0.0`, as Semantic Versioning sorts `1.0.0-rc.1`. */
export function debianVersion(version) {
  return version.replace('-', '~');
}

function controlText({ version, oldestNode, maintainer, kibibytes }) {
  return `Package: sallyport
Version: ${debianVersion(version)}
Architecture: all
Maintainer: ${maintainer}
Installed-Size: ${kibibytes}
Depends: nodejs (>= ${oldestNode}), systemd | systemd-standalone-sysusers
Section: net
Priority: optional
Description: security gateway for MCP traffic
 Sallyport stands between MCP clients and MCP servers: audience-bound tokens, YAML
 policy, pinned tool definitions, sanitized results, a tamper-evident audit log.
 .
 The service is neither enabled nor started by the installation: its configuration
 in /etc/sallyport has no server yet.
`;
}

/** Builds the package of the npm tarball in `scratch`, and gives the name of its file in `output`. */
export function buildDebianPackage(
  root,
  { version, epoch, oldestNode, maintainer },
  { tarball, scratch, output },
  must,
) {
  const stage = join(scratch, 'debian');
  const library = join(stage, 'usr/lib/sallyport');
  const papers = join(stage, 'usr/share/doc/sallyport');
  for (const folder of [library, papers, join(stage, 'usr/bin'), join(stage, 'etc/sallyport/policies/pins')])
    mkdirSync(folder, { recursive: true });
  must('tar', ['-xzf', tarball, '-C', library, '--strip-components=1', '--no-same-owner']);
  chmodSync(join(library, 'dist/main.js'), EXECUTABLE);
  symlinkSync('../lib/sallyport/dist/main.js', join(stage, 'usr/bin/sallyport'));
  cpSync(join(root, 'LICENSE'), join(papers, 'copyright'));
  for (const [from, to] of COPIED) {
    mkdirSync(dirname(join(stage, to)), { recursive: true });
    cpSync(join(SOURCES, from), join(stage, to));
  }
  const kibibytes = Number.parseInt(must('du', ['-sk', '--apparent-size', stage]), 10);
  const control = join(stage, 'DEBIAN');
  mkdirSync(control);
  writeFileSync(join(control, 'control'), controlText({ version, oldestNode, maintainer, kibibytes }));
  writeFileSync(join(control, 'conffiles'), CONFIGURATION.map((name) => `/${name}\n`).join(''));
  must('chmod', ['-R', 'u=rwX,go=rX', stage]);
  for (const script of SCRIPTS) {
    cpSync(join(SOURCES, script), join(control, script));
    chmodSync(join(control, script), EXECUTABLE);
  }
  const name = `sallyport_${debianVersion(version)}_all.deb`;
  // One thread and this level give the same bytes everywhere, in a tenth of the time of the highest.
  const how = ['--root-owner-group', '-Zxz', '-z1', '--threads-max=1'];
  must('dpkg-deb', [...how, '--build', stage, join(output, name)], { env: { SOURCE_DATE_EPOCH: String(epoch) } });
  return name;
}
