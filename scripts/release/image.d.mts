// Types of image.mjs for the tests that build the image by it.

type Finished = { readonly code: number; readonly stdout: string };

export const IMAGE: string;
export function buildImage(
  root: string,
  folder: string,
  ports: {
    readonly run: (program: string, args: readonly string[]) => Promise<Finished>;
    readonly must: (program: string, args: readonly string[]) => Promise<string>;
  },
): Promise<void>;
