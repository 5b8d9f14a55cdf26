// A process that writes audit lines until it is killed, and says each one only when it is durable.

import { createAuditFile } from '../../../src/observe/audit-file.js';
import { lifecycle, makeSink } from './sink-rig.js';

const path = process.argv[2] ?? '';
const { sink } = makeSink(createAuditFile(path));
await sink.start();

async function writeOn(writer: number): Promise<never> {
  for (let index = 0; ; index += 1) {
    const name = `${process.pid}-${writer}-${index}`;
    await sink.append(lifecycle(name));
    process.stdout.write(`${name}\n`);
  }
}

await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(writeOn));
