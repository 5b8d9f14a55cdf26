// What compilation is given, and where its faults go. Decides nothing.

import type { Catalogue } from './definition.js';
import type { PolicyDiagnostic } from './document.js';

/** The names that policies may use, from the gateway file and the lock files. */
export type PolicyContext = {
  /** Of the policy files, lower-case hex; becomes the hash of the set. */
  readonly hash: string;
  readonly upstreams: readonly {
    readonly name: string;
    readonly issuers: readonly string[];
    /** Pinned strictly: what is not pinned can never be allowed. */
    readonly strict: boolean;
  }[];
  readonly profiles: readonly string[];
  readonly issuers: readonly string[];
  /** Absent: pins are not known and not checked. An upstream without a lock file has no pins. */
  readonly pins?: ((upstream: string) => Catalogue | undefined) | undefined;
  /** These very policies run already: pins that changed since make no error, the rule matches nothing. */
  readonly areInForce?: boolean;
};

type Path = PolicyDiagnostic['path'];

/** Reports one fault at a path, relative to what the reporter was made for. */
export type ReportDiagnostic = (
  path: Path,
  severity: PolicyDiagnostic['severity'],
  message: string,
  suggestion?: string,
) => void;

/** Keeps all faults of one compilation. */
export class DiagnosticCollector {
  readonly all: PolicyDiagnostic[] = [];

  get hasErrors(): boolean {
    return this.all.some(({ severity }) => severity === 'error');
  }

  forFile(file: string): ReportDiagnostic {
    return (path, severity, message, suggestion) => {
      const diagnostic = { file, path, severity, message };
      this.all.push(suggestion === undefined ? diagnostic : { ...diagnostic, suggestion });
    };
  }
}
