import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBodyReader, type UnreadBody } from '../../../src/http/request.js';

const MAX_BYTES = 100;
const MAX_TOTAL_BYTES = 150;

describe('bodies on their way', () => {
  let server: Server;
  let outcomes: Map<string, Uint8Array | UnreadBody>;
  let arrived: string[];
  const sockets: Socket[] = [];

  beforeEach(async () => {
    // A connection of the test before may end only now.
    const own = new Map<string, Uint8Array | UnreadBody>();
    outcomes = own;
    arrived = [];
    const bodies = createBodyReader(MAX_TOTAL_BYTES);
    server = createServer((request: IncomingMessage, response) => {
      const name = request.url ?? '';
      request.on('data', () => arrived.push(name));
      void bodies.read(request, MAX_BYTES).then((outcome) => {
        own.set(name, outcome);
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });

  /** Begins a body of `length` bytes and sends the first `bytes` of it. */
  async function begin(name: string, length: number, bytes: number): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write(`POST ${name} HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`);
    socket.write('a'.repeat(bytes));
    await expect.poll(() => arrived.includes(name)).toBe(true);
    return socket;
  }

  const outcome = (name: string) => expect.poll(() => outcomes.get(name));

  it('[H-02] are whole, too large or aborted, each by itself', async () => {
    await begin('/whole', 60, 60);
    await outcome('/whole').toEqual(Buffer.from('a'.repeat(60)));
    await begin('/large', 101, 101);
    await outcome('/large').toBe('too-large');
    (await begin('/gone', 60, 10)).destroy();
    await outcome('/gone').toBe('aborted');
  });

  it('[H-02] give way in the order in which they were begun, once all are too much', async () => {
    await begin('/first', 100, 70);
    await begin('/second', 100, 70);
    const third = await begin('/third', 61, 60);
    await outcome('/first').toBe('crowded-out');
    third.write('a');
    await outcome('/third').toEqual(Buffer.from('a'.repeat(61)));
    expect(outcomes.has('/second')).toBe(false);
    // What was read or given up counts no longer.
    await begin('/fourth', 60, 60);
    await outcome('/fourth').toEqual(Buffer.from('a'.repeat(60)));
    expect(outcomes.has('/second')).toBe(false);
  });

  it('[H-02] are whole with their first piece, and then crowd nobody out', async () => {
    await begin('/first', 100, 70);
    await begin('/second', 100, 70);
    await begin('/third', 60, 60);
    await outcome('/third').toEqual(Buffer.from('a'.repeat(60)));
    expect([...outcomes.keys()]).toEqual(['/third']);
  });

  it('[H-02] are read piece by piece, of a length that was told or not', async () => {
    const declared = await begin('/told', 90, 30);
    declared.write('b'.repeat(60));
    await outcome('/told').toEqual(Buffer.from('a'.repeat(30) + 'b'.repeat(60)));
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/untold`, {
      method: 'POST',
      body: new Blob(['a'.repeat(40), 'b'.repeat(40)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(response.status).toBe(200);
    await outcome('/untold').toEqual(Buffer.from('a'.repeat(40) + 'b'.repeat(40)));
  });
});
