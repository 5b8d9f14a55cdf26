// A process that writes audit lines beside a path until it is killed, and prints each one only when it is durable.

import { createAuditFile } from '../../../src/audit/file.js';
import { lifecycle, makeSink } from './sink-rig.js';

const [path = '', rotateBytes] = process.argv.slice(2);
const rotation = rotateBytes === undefined ? {} : { rotation: { bytes: Number(rotateBytes), ageMs: undefined } };
const { sink } = makeSink(createAuditFile(path, { instance: `${process.pid}`, ...rotation }));
await sink.start();

async function writeOn(writer: number): Promise<void> {
  for (let index = 0; ; index += 1) {
    const name = `${process.pid}-${writer}-${index}`;
    await sink.append(lifecycle(name));
    process.stdout.write(`${name}\n`);
  }
}

await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(writeOn));
