// Work on thousands of pins beside the requests of a running gateway.

const SLICE_MS = 10;

/** Takes a step for each item, and lets the event loop serve everything else every ten milliseconds. */
export async function inSlices<Item>(
  items: Iterable<Item>,
  step: (item: Item) => void,
): Promise<void> {
  let startedMs = performance.now();
  for (const item of items) {
    step(item);
    if (performance.now() - startedMs < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    startedMs = performance.now();
  }
}
