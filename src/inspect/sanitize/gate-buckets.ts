// Sorts the anchors of the prefilter into as many buckets as their vectors have bits, so that few places of
// ordinary text look like the beginning of one. A bucket says, for each of four characters in a row, which
// classes may stand there; it only errs towards "may begin here". Decides nothing.

/** By position: the classes that may stand there, a bit for each. */
export type Bucket = readonly [number, number, number, number];

/** The first three classes of an anchor, and those that may come fourth. */
export type AnchorStart = Bucket;

const POSITIONS = 4;
const CLASSES = 32;

/** How often a character of each class stands in prose, code and JSON, in thousandths. */
const FREQUENCY = [
  130, 50, 22, 40, 28, 85, 15, 16, 25, 58, 3, 6, 32, 30, 55, 57, 25, 8, 60, 55, 65, 23, 12, 10, 6,
  12, 14, 8, 18, 10, 14, 7,
];

function share(classes: number): number {
  let sum = 0;
  for (let one = 0; one < CLASSES; one++) {
    if (((classes >>> one) & 1) === 1) sum += FREQUENCY[one] ?? 0;
  }
  return sum / 1000;
}

/** How often a place of ordinary text is taken for one of this bucket. */
function costOf([first, second, third, fourth]: Bucket): number {
  return share(first) * share(second) * share(third) * share(fourth);
}

function union(one: Bucket, other: Bucket): Bucket {
  return [one[0] | other[0], one[1] | other[1], one[2] | other[2], one[3] | other[3]];
}

type Group = { readonly bucket: Bucket; readonly cost: number };

function groupOf(bucket: Bucket): Group {
  return { bucket, cost: costOf(bucket) };
}

function joined(one: Group, other: Group): number {
  return costOf(union(one.bucket, other.bucket)) - one.cost - other.cost;
}

/** Joins, again and again, the two groups whose union costs least more than they do apart. */
export function sortIntoBuckets(
  starts: readonly AnchorStart[],
  maxBuckets: number,
): readonly Bucket[] {
  const groups = groupByTwo(starts);
  const extra = groups.map((one) => groups.map((other) => joined(one, other)));
  while (groups.length > maxBuckets) {
    const [low, high] = cheapest(extra);
    const [one, other] = [groups[low], groups[high]];
    if (one === undefined || other === undefined) break;
    const made = groupOf(union(one.bucket, other.bucket));
    groups[low] = made;
    groups.splice(high, 1);
    extra.splice(high, 1);
    for (const row of extra) row.splice(high, 1);
    recompute(extra, groups, low);
  }
  return groups.map(({ bucket }) => bucket);
}

type Costs = number[][];

/** The costs of joining a group that has changed, in its row and its column. */
function recompute(extra: Costs, groups: readonly Group[], changed: number): void {
  const made = groups[changed];
  const row = extra[changed];
  if (made === undefined || row === undefined) return;
  for (const [at, group] of groups.entries()) {
    row[at] = joined(made, group);
    const other = extra[at];
    if (other !== undefined) other[changed] = row[at];
  }
}

/** Anchors that begin with the same two classes go together from the start. */
function groupByTwo(starts: readonly AnchorStart[]): Group[] {
  const byTwo = new Map<string, Bucket>();
  for (const start of starts) {
    const key = `${start[0]} ${start[1]}`;
    const known = byTwo.get(key);
    byTwo.set(key, known === undefined ? start : union(known, start));
  }
  return [...byTwo.values()].map(groupOf);
}

function cheapest(extra: readonly (readonly number[])[]): readonly [number, number] {
  let best = Number.POSITIVE_INFINITY;
  let found: readonly [number, number] = [0, 1];
  for (let row = 0; row < extra.length; row++) {
    for (let column = row + 1; column < extra.length; column++) {
      const cost = extra[row]?.[column] ?? best;
      if (cost >= best) continue;
      best = cost;
      found = [row, column];
    }
  }
  return found;
}

/** For a position and a half of the classes: sixteen bytes, each the buckets that take that class there. */
export function bucketTable(
  buckets: readonly Bucket[],
  position: number,
  half: 0 | 1,
): readonly number[] {
  return Array.from({ length: CLASSES / 2 }, (_, offset) => {
    let bits = 0;
    for (const [index, bucket] of buckets.entries()) {
      const classes = bucket[position % POSITIONS] ?? 0;
      if (((classes >>> (half * (CLASSES / 2) + offset)) & 1) === 1) bits |= 1 << index;
    }
    return bits;
  });
}
