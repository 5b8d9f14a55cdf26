// Those who wait for one write of the audit: one promise that they share, and how it is refused.

/** Refused: the place cannot be written. */
export class SinkUnavailable extends Error {
  override readonly name = 'SinkUnavailable';
}

/** Those who wait for one write. */
export type CommitGroup = {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** A group that nobody has joined yet. */
export function createCommitGroup(): CommitGroup {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  // Those who wait hold the same promise; a group nobody waits for must not end the process.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
