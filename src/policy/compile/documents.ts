// The types of a policy file after YAML, in the shape that config/ has checked against the JSON Schema
// (docs/reference/policies.md#what-validate-reports), and of what compilation receives and reports. compile.ts turns
// documents into rules; nothing else reads a document.

import type { JsonObject, TaskUse } from '../../protocol/jsonrpc.js';
import type { Catalog } from '../definitions.js';

/** The names that policies may use, from the gateway file and the lock files. */
export type PolicyContext = {
  /** Hash of the policy files, lower-case hex; becomes the hash of the set. */
  readonly hash: string;
  readonly upstreams: readonly {
    readonly name: string;
    /** Absent where they are not known. */
    readonly issuers?: readonly string[] | undefined;
    /** Pinned strictly: what is not pinned can never be allowed. */
    readonly strict: boolean;
  }[];
  readonly profiles: readonly string[];
  readonly issuers: readonly string[];
  /** Those at which callers can log in. Absent where that is not known. */
  readonly logins?: readonly string[] | undefined;
  /** Upstreams whose lock file has mistakes, so that their pins are not known. */
  readonly invalidLocks?: ReadonlySet<string> | undefined;
  /** Absent: pins are unknown and not checked. An upstream without a lock file has no pins. */
  readonly pins?: ((upstream: string) => Catalog | undefined) | undefined;
  /** These policies are already in force: pins that changed since are no error, the rule just matches nothing. */
  readonly areInForce?: boolean;
  /** Also warns of what a glob grants besides what its author may mean: for whoever checks files, not at each reload. */
  readonly areGrantsChecked?: boolean;
  /** Also warns of what matters only to whoever takes warnings for errors. */
  readonly isStrict?: boolean;
  /** `observe`: no rule is enforced. */
  readonly mode?: 'enforce' | 'observe' | undefined;
  /** Absent where it is not known. */
  readonly reviewing?: Reviewing | undefined;
  /** Absent where nothing waits for a restart. */
  readonly closing?: Closing | undefined;
};

/** What rules cannot have before a restart. */
export type Closing = {
  /** Approvals are not yet answered by those whom the files name. */
  readonly reviewers: boolean;
  /** The store that replicas share is not used yet: each counts for itself. */
  readonly sharedState: boolean;
  /** What each rule and flow in force says, by its id; without those that are closed. */
  readonly open: ReadonlyMap<string, string>;
};

/** What the gateway file says of those who review. */
export type Reviewing = {
  /** Some group may answer. */
  readonly canReview: boolean;
  /** Issuers of callers or reviewers without a claim by which one person is known at the others too. */
  readonly unmatched: readonly string[];
};

type Path = PolicyDiagnostic['path'];

/** Reports one diagnostic at a path relative to that of the reporter. */
export type ReportDiagnostic = (
  path: Path,
  severity: PolicyDiagnostic['severity'],
  message: string,
  suggestion?: string,
) => void;

/** Collects all diagnostics of one compilation. */
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

export type WhoDocument = {
  readonly anyone?: true;
  readonly issuers?: readonly string[];
  readonly subjects?: readonly string[];
  readonly clients?: readonly string[];
  readonly groups?: readonly string[];
  readonly actors?: readonly string[];
  readonly claims?: { readonly [name: string]: readonly (string | number | boolean)[] };
};

/** Patterns: exact, `*` and `**` globs, or `re:` with an anchored RE2 expression. Templates are exact. */
export type WhatDocument = {
  readonly upstreams?: readonly string[];
  readonly tools?: readonly string[];
  readonly resources?: readonly string[];
  readonly templates?: readonly string[];
  readonly prompts?: readonly string[];
  /** The server requests that the rule applies to. */
  readonly sampling?: true | SamplingDocument;
  /** With `url`, the hosts that links may lead to. */
  readonly elicitation?: readonly ('form' | 'url')[] | { readonly form?: true; readonly url?: readonly string[] };
  readonly roots?: true;
  readonly tasks?: readonly TaskUse[];
};

/** What a sampling request may contain. */
type SamplingDocument = {
  readonly includeContext?: readonly ('none' | 'thisServer' | 'allServers')[];
  /** Names of tools; `false` for none. */
  readonly tools?: readonly string[] | false;
};

export type LimitsDocument = {
  readonly rate?: { readonly count: number; readonly windowMs: number };
  readonly per: 'subject' | 'client' | 'rule';
  readonly budget?: {
    readonly name: string;
    /** A CEL expression. */
    readonly cost: string;
    readonly per: 'subject' | 'client' | 'all';
    readonly withinMs: number;
    readonly max: number;
  };
};

type RuleBase = {
  readonly id: string;
  readonly who: WhoDocument;
  readonly what: WhatDocument;
  /** JSON Schemas by top-level argument name. */
  readonly args?: { readonly [name: string]: JsonObject | boolean };
  /** A CEL expression over args, uri, principal and tool. */
  readonly when?: string;
};

type ApprovalTimes = {
  readonly expiresMs: number;
  readonly useMs: number;
  /** By default every call. */
  readonly asks?: 'beyond-limits';
};

/** Whom a rule or flow asks, with the defaults. */
export type ApprovalDocument =
  | (ApprovalTimes & {
      readonly by: 'caller';
      readonly proof: 'login' | 'client';
      readonly remember: 'none' | { readonly forMs: number; readonly same?: readonly string[] };
    })
  | (ApprovalTimes & {
      readonly by: 'reviewer';
      readonly reviewers?: { readonly groups: readonly string[] };
      readonly count: number;
    });

export type RuleDocument =
  | (RuleBase & {
      readonly effect: 'allow';
      readonly scopes?: readonly string[];
      readonly limits?: LimitsDocument;
    })
  | (RuleBase & { readonly effect: 'deny'; readonly reason?: string })
  | (RuleBase & {
      readonly effect: 'require';
      readonly limits?: LimitsDocument;
      readonly inspect?: string;
      readonly maxResultBytes?: number;
      readonly audit?: { readonly capture: readonly string[] };
      readonly approval?: ApprovalDocument;
      /** What the person reads who is asked. */
      readonly reason?: string;
    });

export type PolicyDocument = {
  /** Path of the file, for diagnostics. */
  readonly file: string;
  /** The `policy` key: unique across all files. */
  readonly policy: string;
  /** `shadow`: its rules are evaluated for the record, and decide nothing. */
  readonly mode?: 'enforce' | 'shadow';
  readonly defaults?: DefaultsDocument | undefined;
  readonly rules: readonly RuleDocument[];
  /** By `UPSTREAM` or `UPSTREAM/TOOL`, whose tool may be a glob. */
  readonly labels?: LabelsDocument | undefined;
  readonly flows?: readonly FlowDocument[] | undefined;
  /** By `UPSTREAM/TOOL`, whose tool may be a glob. */
  readonly sensitive?: SensitiveDocument | undefined;
};

/** JSON pointers; one without an effect is redacted. */
type SensitiveDocument = {
  readonly [target: string]: readonly (string | { readonly pointer: string; readonly effect?: 'redact' | 'tag' })[];
};

type LabelsDocument = { readonly [target: string]: readonly string[] };

export type FlowDocument = {
  readonly id: string;
  readonly from: string | readonly string[];
  readonly to: string;
  readonly withinMs: number;
  readonly effect: 'deny' | 'approve';
  readonly approval?: ApprovalDocument;
  /** What the person reads who is asked. */
  readonly reason?: string;
};

/** What the rules of a file are about where they do not say it. */
export type DefaultsDocument = {
  readonly issuers?: readonly string[];
  readonly upstreams?: readonly string[];
};

/** A mistake in a policy: file, position, message, and a suggestion if one was found. */
export type PolicyDiagnostic = {
  readonly file: string;
  /** Path into the document: `['rules', 2, 'when']`. */
  readonly path: readonly (string | number)[];
  readonly severity: 'error' | 'warning' | 'note';
  readonly message: string;
  readonly suggestion?: string;
};
