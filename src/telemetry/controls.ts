// The table of controls. Each component reports whether its control is armed, with a reason when it is not; metrics and
// the admin listener show the table. Nothing is evaluated or turned on or off here.

import type { ControlState } from './metrics.js';

/** A control by name; one of several with what it protects: an issuer, an upstream, a profile, an aggregate, a listener. */
type ControlName =
  | 'policy'
  | 'audit'
  | 'metrics'
  | 'admin'
  | 'edge'
  | 'store'
  | 'pin-signatures'
  | 'blocks'
  | 'budgets'
  | `authn:${string}`
  | `audience:${string}`
  | `pins:${string}`
  | `upstream-connection:${string}`
  | `upstream-credentials:${string}`
  | `upstream-identity:${string}`
  | `binding:${string}`
  | 'tls:data'
  | `inspection:${string}`
  | `endpoint:${string}`;

export type ControlRow = {
  readonly control: string;
  readonly state: ControlState;
  /**
   * Why it is not armed, or what it promises while it is; mostly empty when it is armed. Fixed texts, of a rejected
   * reload the first error in the files, and of blocks what administrators wrote.
   */
  readonly reason: string;
  /** RFC 3339: since when it is in this state. */
  readonly since: string;
};

export interface Controls {
  set(control: ControlName, state: ControlState, reason?: string): void;
  /** Removes a control that is no longer configured. */
  remove(control: ControlName): void;
  /** All controls, sorted by name. */
  snapshot(): readonly ControlRow[];
}

type ControlPorts = {
  readonly now: () => number;
  /** Called for every change of state or reason. */
  readonly onChange: (row: ControlRow) => void;
  readonly onRemove: (control: string) => void;
};

/** An empty table. */
export function createControls({ now, onChange, onRemove }: ControlPorts): Controls {
  const rows = new Map<string, ControlRow>();
  return {
    set(control, state, reason = '') {
      const known = rows.get(control);
      if (known?.state === state && known.reason === reason) return;
      const since = known?.state === state ? known.since : new Date(now()).toISOString();
      const row = { control, state, reason, since };
      rows.set(control, row);
      onChange(row);
    },
    remove(control) {
      if (rows.delete(control)) onRemove(control);
    },
    snapshot: () => [...rows.values()].sort((a, b) => (a.control < b.control ? -1 : 1)),
  };
}
