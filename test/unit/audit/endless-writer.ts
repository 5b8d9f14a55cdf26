// A process that writes audit lines until it is killed, and says each one only when it is durable. With
// `FILE TIMES`, the times of the lease as JSON, it waits for the lease first; it says why it may not write.
// With `asked` behind them it writes one line for each line of its input.

import { createInterface } from 'node:readline';
import { createAuditFile } from '../../../src/audit/file.js';
import type { LeaseTimes } from '../../../src/audit/writer-lease.js';
import { lifecycle, makeSink } from './sink-rig.js';

const [path = '', times, asked] = process.argv.slice(2);
const lease = {
  instance: `writer-${process.pid}`,
  ...(times === undefined ? {} : { times: JSON.parse(times) as LeaseTimes }),
};
const { sink } = makeSink(createAuditFile(path, { lease }));
const refused = await sink.acquire(() => undefined);
if (refused !== undefined) {
  process.stdout.write(`refused: ${refused}\n`);
  process.exit(1);
}
await sink.start();

async function writeOne(name: string): Promise<void> {
  await sink.append(lifecycle(name));
  process.stdout.write(`${name}\n`);
}

async function writeOn(writer: number): Promise<void> {
  for (let index = 0; ; index += 1) await writeOne(`${process.pid}-${writer}-${index}`);
}

try {
  if (asked !== undefined) for await (const line of createInterface(process.stdin)) await writeOne(line);
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(writeOn));
} catch (error) {
  process.stdout.write(`refused: ${String(error)}\n`);
  process.exit(1);
}
