// The nonces that proofs must carry where the configuration demands them: the gateway's own keyed digest
// of the time, so that every replica knows them and none is kept. Nobody can sign a proof for later with a
// nonce that does not exist yet.
// RFC 9449 §8, §9 and §11.3.

/** A nonce is handed out for so long, and accepted for as long again. */
const STEP_MS = 120_000;

export type ProofNonces = {
  /** The nonce to use now. */
  current(): string;
  /** True for the nonce of this step or of the one before. */
  isFresh(nonce: string): boolean;
};

export type NoncePorts = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Keyed digests under every key of the gateway, the newest first. */
  readonly hmacAll: (purpose: string, text: string) => readonly string[];
};

/** Makes the nonces of one set of keys; replicas with the same keys have the same. */
export function createProofNonces({ now, hmacAll }: NoncePorts): ProofNonces {
  let made: { readonly step: number; readonly fresh: readonly string[] } | undefined;

  function fresh(): readonly string[] {
    const step = Math.floor(now() / STEP_MS);
    if (made?.step !== step) {
      const of = (each: number): readonly string[] => hmacAll('dpop-nonce', String(each));
      made = { step, fresh: [...of(step), ...of(step - 1)] };
    }
    return made.fresh;
  }

  return {
    current: () => fresh()[0] ?? '',
    isFresh: (nonce) => fresh().includes(nonce),
  };
}
