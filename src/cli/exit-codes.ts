// What each exit code of each command means: the one table, which the help of a command prints and the page
// docs/guides/exit-codes.md is rendered from. docs/contract.md §1.

/** Meanings by exit code: 129, 130, 141 and 143 are those of SIGHUP, SIGINT, SIGPIPE and SIGTERM, as a shell reports them. */
type ExitCodes = { readonly [code in 0 | 1 | 2 | 129 | 130 | 141 | 143]?: string };

const DONE = 'Success.';
const NOT_DONE =
  'Not done or not checked: a usage error, an error in a file that the command needs, an unreadable file, or an unreachable server.';

const ADMIN_CODES = {
  1: 'The gateway refused: the role does not allow it, or there is no such issuer, upstream or id.',
  2: 'Not done: a usage error, no token, an address that is not known, or a gateway that does not answer or does not accept the token.',
} as const;

const NEEDS_CONFIG = 'The gateway file cannot be read or has errors';

/** By the words of the command. A command that is not here has the general codes 0 and 2. */
export const EXIT_CODES: { readonly [command: string]: ExitCodes } = {
  serve: {
    1: 'The start failed: a listener, a file or the audit log is not available.',
    2: 'The configuration has errors; nothing was started.',
    130: 'Ended by SIGINT, after draining.',
    143: 'Ended by SIGTERM, after draining.',
  },
  init: {
    0: 'The files were written and are valid.',
    1: 'The files were written, but `validate` found errors.',
    2: 'Nothing was written: an option is missing or invalid, a file exists already, or the issuer or the upstream cannot be reached.',
  },
  dev: {
    0: 'With --exit: every outcome of the tour was as expected.',
    1: 'An outcome of the tour was not as expected, or the gateway could not start.',
    2: 'The upstream could not be listed.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  stdio: {
    1: 'The address is in use, or cannot be listened on.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  'demo-server': {
    1: 'The port is in use.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  validate: {
    0: 'No errors.',
    1: 'Errors; with --strict, warnings too.',
    2: 'A file cannot be read.',
  },
  test: {
    0: 'Every case is decided as expected.',
    1: 'A case is decided differently, or a smaller share of the rules than `--min-coverage` decides a case.',
    2: 'A gateway file, policy, lock file or test file cannot be read or has errors.',
  },
  'explain call': {
    0: 'The decision was explained, whether it allows or denies.',
    2: 'A gateway file, policy or lock file cannot be read or has errors, or the call is not described in full.',
  },
  'explain decision': {
    0: 'The decision was explained.',
    1: 'The audit files have no such decision, or policy rules did not make it.',
    2: 'A gateway file, policy, lock file or audit file cannot be read or has errors.',
  },
  replay: {
    0: 'No decision is known to change; with `--suggest`, the policy was printed.',
    1: 'Decisions would change.',
    2: 'A gateway file, policy or lock file has errors, or an audit file cannot be read or was altered.',
  },
  'pin fetch': {
    0: 'The lock files contain the definitions of the upstreams.',
    1: 'A definition cannot be pinned, or was not approved because of a finding of the scan; all others were written.',
    2: `${NEEDS_CONFIG}, a lock file cannot be read or written, or an upstream could not be listed.`,
  },
  'pin diff': {
    0: 'Everything was compared, with or without differences.',
    2: `${NEEDS_CONFIG}, or an upstream could not be listed.`,
  },
  'pin verify': {
    0: 'No drift. Pending definitions are printed but do not count.',
    1: 'Drift, or a lock file without the required signatures.',
    2: `No drift was found, but not everything could be checked. ${NEEDS_CONFIG}, or an upstream could not be listed.`,
  },
  'pin approve': {
    0: 'Every named definition is approved, or was not pending.',
    1: 'A definition was refused: it is not in the lock file, is blocked, has changed, or has a finding of the scan that was not accepted.',
    2: `${NEEDS_CONFIG}, no approver is named, or a name or digest is ambiguous.`,
  },
  'pin block': {
    0: 'The name is blocked.',
    1: 'The lock file has no such name.',
    2: `${NEEDS_CONFIG}, or the lock file cannot be read or written.`,
  },
  'pin sign': {
    0: 'Every named lock file has a valid signature with the key.',
    1: 'A lock file does not exist, or its counter is not known.',
    2: `${NEEDS_CONFIG}, the key cannot be used, or a lock file cannot be read or its signature written.`,
  },
  'audit tail': { 2: 'No audit file is named, or it cannot be read.' },
  'audit query': { 2: 'No audit file is named, or it cannot be read.' },
  'audit show': {
    1: 'No event and no decision has this id.',
    2: 'No audit file is named, or it cannot be read.',
  },
  'audit verify': {
    0: 'The chain is complete, and all of it was checked.',
    1: 'The chain was altered or is damaged.',
    2: 'Not checked: an older file or a key is missing, or a file cannot be read.',
  },
  'audit hash': { 2: `${NEEDS_CONFIG}, or names no key.` },
  ...Object.fromEntries(
    [
      ...['tool', 'prompt', 'template', 'resource', 'upstream', 'subject', 'client', 'everything'],
      ...['token', 'token-digest', 'tokens', 'session'],
    ].map((target) => [`block ${target}`, ADMIN_CODES]),
  ),
  'block list': { 2: ADMIN_CODES[2] },
  unblock: ADMIN_CODES,
  'keys public': {
    1: 'The file is not a gateway key, or the gateway file has errors.',
    2: 'The file cannot be read.',
  },
  healthcheck: {
    0: 'The gateway answers.',
    1: 'The gateway does not answer, or not with 200.',
  },
};

/** The codes of one command in ascending order: its own, and 0 and 2, which every command has. */
export function exitCodesOf(command: string): readonly (readonly [string, string])[] {
  return Object.entries({ 0: DONE, 2: NOT_DONE, ...EXIT_CODES[command] });
}
