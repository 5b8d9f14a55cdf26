// How long a test waits for what must come: far longer than it takes, since a busy machine proves nothing.

/** For `expect.poll`. */
export const PATIENT = { timeout: 20_000 } as const;
