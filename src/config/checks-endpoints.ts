// What a schema cannot say about endpoints: members that exist, what all of them must accept, and prefixes
// that can be told apart. Paths and audiences are judged with those of upstreams. Reports and changes nothing.

import { checkName, checkPath, checkVouchers } from './checks-upstreams.js';
import type { Report } from './fault.js';
import { backendsOf } from './prefixes.js';
import { quote } from './schema-faults.js';
import { mapAt, textAt, textsAt } from './tree.js';

/** Checks every endpoint by itself. */
export function checkAggregates(root: unknown, report: Report): void {
  const upstreams = Object.keys(mapAt(root, ['upstreams']));
  for (const name of Object.keys(mapAt(root, ['endpoints']))) {
    if (upstreams.includes(name)) {
      report(['endpoints', name], 'an upstream has this name too', { at: 'key', rule: 'conflict' });
    }
    checkPath(root, ['endpoints', name], report);
    checkVouchers(root, ['endpoints', name], report);
    for (const { upstream } of backendsOf(root, name)) {
      const path = ['endpoints', name, 'upstreams', upstream];
      checkName(path, 'upstream', upstream, upstreams, report, 'key');
      if (upstreams.includes(upstream)) checkBackend(root, name, upstream, report);
    }
    checkPrefixes(root, name, report);
    checkBinding(root, name, report);
  }
}

/** INVARIANT: whoever may call here may call each member: an issuer that one of them lacks opens it to nobody. */
function checkBackend(root: unknown, name: string, upstream: string, report: Report): void {
  const path = ['endpoints', name];
  const backend = ['upstreams', upstream];
  const isOpen = textAt(root, [...path, 'authentication']) === 'none';
  if (isOpen && textAt(root, [...backend, 'authentication']) !== 'none') {
    report([...path, 'authentication'], `the member ${quote(upstream)} asks for a token`, {
      rule: 'unsafe',
    });
  }
  const accepted = textsAt(root, [...backend, 'issuers']).map(([, issuer]) => issuer);
  for (const [index, issuer] of textsAt(root, [...path, 'issuers'])) {
    if (accepted.includes(issuer)) continue;
    report(
      [...path, 'issuers', index],
      `the member ${quote(upstream)} does not accept this issuer`,
      {
        rule: 'conflict',
      },
    );
  }
}

/** Proofs and certificates are never both asked for. */
function checkBinding(root: unknown, name: string, report: Report): void {
  const bindings = backendsOf(root, name).map(({ upstream }) =>
    textAt(root, ['upstreams', upstream, 'binding']),
  );
  if (!bindings.includes('dpop') || !bindings.includes('mtls')) return;
  const message = 'one member wants tokens bound by "dpop", another by "mtls"';
  report(['endpoints', name, 'upstreams'], message, { at: 'key', rule: 'conflict' });
}

/** No prefix begins with another, in whatever case: a name belongs to one member, or to none. */
function checkPrefixes(root: unknown, name: string, report: Report): void {
  const backends = backendsOf(root, name);
  for (const [index, { upstream, prefix }] of backends.entries()) {
    const folded = prefix.toLowerCase();
    const other = backends
      .slice(0, index)
      .find((one) => areNested(folded, one.prefix.toLowerCase()));
    if (other === undefined) continue;
    report(
      ['endpoints', name, 'upstreams', upstream, 'prefix'],
      `names under this prefix could be those of ${quote(other.upstream)}: one prefix begins with the other`,
      { rule: 'conflict' },
    );
  }
}

function areNested(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}
