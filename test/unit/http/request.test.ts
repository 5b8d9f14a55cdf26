// What the gateway reads of a request is plain values: copies of it lose nothing, and all share one shape.

import { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ClientDisconnect,
  createAddressOf,
  createBodyReader,
  createConcurrencyLimits,
  toIncoming,
  type UnreadBody,
} from '../../../src/http/request.js';

describe('a request as the gateway sees it', () => {
  it('[PRF-04] has no accessors, so that a copy of it is the same and tells of the same leave', () => {
    const request = { method: 'POST', headers: {}, socket: {} } as unknown as IncomingMessage;
    const response = { destroyed: false, on: () => undefined } as unknown as ServerResponse;
    const facts = {
      id: '00000000-0000-4000-8000-000000000000',
      receivedAt: 1,
      startedMs: 1,
      route: { upstream: 'files', maxRequestBytes: 1, concurrency: 1, concurrencyPerCaller: 1 },
      query: '',
      repeated: new Set<string>(),
      body: new Uint8Array(0),
      remoteAddress: '192.0.2.1',
    };
    const incoming = toIncoming(request, response, facts, {
      acquire: () => 'regular',
      keep: () => () => undefined,
    });
    const described = Object.values(Object.getOwnPropertyDescriptors(incoming));
    expect(described.length).toBeGreaterThan(10);
    expect(described.filter(({ get }) => get !== undefined)).toEqual([]);
    expect({ ...incoming }.signal).toBe(incoming.signal);
  });
});

describe('the address of the record', () => {
  const of = createAddressOf(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1']);

  it.each([
    ['198.51.100.9', '203.0.113.1', '198.51.100.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['::ffff:10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['2001:db8::1', '203.0.113.1, 10.9.9.9', '203.0.113.1'],
    ['192.0.2.1', '203.0.113.1', '203.0.113.1'],
    ['192.0.2.2', '203.0.113.1', '192.0.2.2'],
    ['10.0.0.1', '203.0.113.1, 198.51.100.9', '198.51.100.9'],
    ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['10.0.0.1', '203.0.113.1:4711', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['', '203.0.113.1', ''],
  ])('[BND-28] of peer %s with %j is %s', (peer, forwarded, expected) => {
    expect(of(peer, forwarded)).toBe(expected);
  });

  it('[BND-28] is always one that the peer or a trusted proxy has named, never other text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(of('10.0.0.1', text)).toMatch(/^[0-9a-f.:]+$/);
        expect(createAddressOf([])('10.0.0.1', text)).toBe('10.0.0.1');
      }),
    );
    const long = Array(5_000).fill('10.0.0.2').join(',');
    expect(of('10.0.0.1', long)).toBe('10.0.0.2');
  });
});

const limitOf = (concurrency: number, concurrencyPerCaller = concurrency) => ({
  concurrency,
  concurrencyPerCaller,
});
const routeOf = (upstream: string, ...given: Parameters<typeof limitOf>) => ({
  ...{ upstream, maxRequestBytes: 1 },
  ...limitOf(...given),
});

describe('[MRG-19] places at an upstream', () => {
  it('are shared by its own path and by every endpoint, and given back once', () => {
    const limits = createConcurrencyLimits();
    const aggregate = {
      ...routeOf('all', 0),
      backends: new Map([
        ['left', limitOf(1)],
        ['right', limitOf(2)],
      ]),
    };
    const own = routeOf('left', 1);
    const first = limits.forOne(aggregate);
    expect([first.acquire('ann', 'left'), first.acquire('ann', 'left'), first.acquire('ann', 'right')]).toEqual([
      ...['regular', 'regular', 'regular'],
    ]);
    expect(limits.forOne(own).acquire('ann')).toBe('reserved');
    const second = limits.forOne(aggregate);
    expect([second.acquire('ann', 'left'), second.acquire('ann', 'right')]).toEqual(['reserved', 'regular']);
    expect(limits.forOne(aggregate).acquire('ann', 'stranger')).toBeUndefined();
    first.release();
    first.release();
    const third = limits.forOne(own);
    expect([third.acquire('ann'), third.acquire('ann')]).toEqual(['regular', 'regular']);
    expect(limits.forOne(own).acquire('ann')).toBe('reserved');
    third.release();
    second.release();
  });
});

describe('[H-10] a caller', () => {
  it('has its quota of the places of an upstream, on whatever path, and the others have the rest', () => {
    const limits = createConcurrencyLimits();
    const own = routeOf('left', 4, 2);
    const aggregate = { ...routeOf('all', 0), backends: new Map([['left', limitOf(4, 2)]]) };
    const [first, second] = [limits.forOne(own), limits.forOne(aggregate)];
    expect([first.acquire('ann'), second.acquire('ann', 'left')]).toEqual(['regular', 'regular']);
    expect(limits.forOne(own).acquire('ann')).toBe('reserved');
    expect(limits.forOne(aggregate).acquire('ann', 'left')).toBe('reserved');
    const others = [limits.forOne(own), limits.forOne(own), limits.forOne(own)];
    expect(others.map((one, index) => one.acquire(`other ${index}`))).toEqual(['regular', 'regular', 'reserved']);
    // What is given back is the caller's again, and no more than that.
    second.release();
    expect(limits.forOne(own).acquire('ann')).toBe('regular');
    expect(limits.forOne(own).acquire('ann')).toBe('reserved');
  });

  it('has another quota at another upstream', () => {
    const limits = createConcurrencyLimits();
    expect(limits.forOne(routeOf('left', 2, 1)).acquire('ann')).toBe('regular');
    expect(limits.forOne(routeOf('left', 2, 1)).acquire('ann')).toBe('reserved');
    expect(limits.forOne(routeOf('right', 2, 1)).acquire('ann')).toBe('regular');
  });

  it.each([
    // The limits, what a caller may have of the reserve, and what all may have of it.
    [limitOf(100, 50), 50, 100],
    [limitOf(100, 100), 100, 200],
    [limitOf(1, 1), 8, 16],
  ])('past %j has a reserve of %i, of %i for all', (limit, own, all) => {
    const limits = createConcurrencyLimits();
    const route = { upstream: 'left', maxRequestBytes: 1, ...limit };
    const take = (caller: string): string | undefined => limits.forOne(route).acquire(caller);
    const countOf = (caller: string, capacity: string): number => {
      let count = 0;
      while (take(caller) === capacity) count += 1;
      return count;
    };
    for (let at = 0; at < limit.concurrency; at += limit.concurrencyPerCaller)
      expect(countOf(`running ${at}`, 'regular')).toBe(limit.concurrencyPerCaller);
    // Each of them has taken one of the reserve besides.
    const taken = limit.concurrency / limit.concurrencyPerCaller;
    expect(countOf('one', 'reserved')).toBe(own);
    expect(countOf('running 0', 'reserved')).toBe(Math.min(own - 1, all - taken - own));
    expect(take('one')).toBeUndefined();
  });

  it('that gives back what it has of the reserve leaves the requests in progress as they are', () => {
    const limits = createConcurrencyLimits();
    const route = routeOf('left', 1);
    const running = limits.forOne(route);
    expect(running.acquire('ann')).toBe('regular');
    const reply = limits.forOne(route);
    expect([reply.acquire('ann'), reply.acquire('ann')]).toEqual(['reserved', 'reserved']);
    reply.release();
    expect(limits.forOne(route).acquire('ann')).toBe('reserved');
    running.release();
    expect(limits.forOne(route).acquire('ann')).toBe('regular');
  });
});

describe('body', () => {
  const MAX_BYTES = 100;
  const MAX_TOTAL_BYTES = 150;

  describe('bodies of running requests', () => {
    const size = 64 * 1024;
    const bodies = createBodyReader({ maxTotalBytes: 4 * size, maxCallerBytes: 2 * size });
    const hold = (bytes: number) => bodies.hold(new Uint8Array(bytes));

    it('[H-02] are held for a caller up to its share, and one of any size', () => {
      const first = hold(size);
      const second = hold(size);
      const third = hold(size);
      expect([first, second].map((body) => body.assign('a'))).toEqual(['regular', 'regular']);
      expect(hold(10 * size).assign('c')).toBe('regular');
      expect(first.assign('a')).toBe('regular');
      first.release();
      expect(third.assign('a')).toBe('regular');
      // What is past the share is of the reserve: a single body too may be of any size there.
      const [reply, over] = [hold(3 * size), hold(size)];
      expect([reply.assign('a'), over.assign('a'), over.assign('b')]).toEqual(['reserved', undefined, 'regular']);
      reply.release();
      expect(hold(size).assign('a')).toBe('reserved');
      second.release();
      expect(hold(size).assign('a')).toBe('regular');
    });

    it('[H-02] that are small are not counted', () => {
      const small = Array.from({ length: 100 }, () => hold(size - 1).assign('d'));
      expect(small).toEqual(small.map(() => 'regular'));
    });
  });

  it('[H-02, PRF-10] large bodies that end together are joined in a turn of the loop each', async () => {
    const bodies = createBodyReader({ maxTotalBytes: 1 << 26, maxCallerBytes: 1 << 26 });
    let turn = 0;
    const count = (): void => {
      turn += 1;
      if (turn < 1_000) setImmediate(count);
    };
    setImmediate(count);
    const turns = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const request = Object.assign(new PassThrough(), { headers: {} });
        const body = bodies.read(request as unknown as IncomingMessage, 1 << 22);
        request.write(Buffer.alloc(1 << 19, 'a'));
        request.end(Buffer.alloc(1 << 19, 'b'));
        expect(await body).toHaveLength(1 << 20);
        return turn;
      }),
    );
    expect(new Set(turns).size).toBe(turns.length);
  });

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
      const bodies = createBodyReader({
        maxTotalBytes: MAX_TOTAL_BYTES,
        maxCallerBytes: MAX_TOTAL_BYTES,
      });
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
});

// A client that leaves is told as an AbortSignal would tell it, to whoever still listens.
describe('client disconnect', () => {
  function response(state: { destroyed?: boolean; writableFinished?: boolean } = {}) {
    const emitter = Object.assign(new EventEmitter(), {
      destroyed: false,
      writableFinished: false,
      ...state,
    });
    return emitter as EventEmitter & typeof emitter & ServerResponse;
  }

  describe('a client that leaves', () => {
    it('[PRF-04] is told once, to each listener that is still there', () => {
      const socket = response();
      const leave = new ClientDisconnect(socket);
      const notified: string[] = [];
      const first = (): void => void notified.push('first');
      const second = (): void => void notified.push('second');
      leave.addEventListener('abort', first);
      leave.addEventListener('abort', first);
      leave.addEventListener('abort', second);
      leave.addEventListener('abort', () => void notified.push('third'));
      leave.removeEventListener('abort', second);
      expect(leave.aborted).toBe(false);
      leave.addEventListener('abort', { handleEvent: () => void notified.push('object') });
      socket.emit('close');
      socket.emit('close');
      expect(leave.aborted).toBe(true);
      expect(notified).toEqual(['first', 'third', 'object']);
    });

    it('[PRF-04] has not left where its answer was written to the end', () => {
      const socket = response({ writableFinished: true });
      const leave = new ClientDisconnect(socket);
      leave.addEventListener('abort', () => expect.unreachable());
      socket.emit('close');
      expect(leave.aborted).toBe(false);
    });

    it('[PRF-04] has left where the connection was gone before anyone asked', () => {
      const leave = new ClientDisconnect(response({ destroyed: true }));
      expect(leave.aborted).toBe(true);
      leave.addEventListener('abort', () => expect.unreachable());
      const unheard = response();
      const left = new ClientDisconnect(unheard);
      unheard.destroyed = true;
      expect(left.aborted).toBe(true);
    });

    it.each([
      ['at once', (work: () => void) => work()],
      ['in promises', (work: () => void) => void Promise.resolve().then(work)],
    ])('[PRF-14] is told of at once, and after other events where those before take long %s', async (_when, take) => {
      const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
      // A turn of its own: what the tests before took does not count.
      await nextTurn();
      let nowMs = 0;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      const notified: string[] = [];
      for (const name of ['first', 'second', 'third']) {
        const socket = response();
        new ClientDisconnect(socket).addEventListener('abort', () => {
          notified.push(name);
          take(() => {
            nowMs += 10;
          });
        });
        socket.emit('close');
        // Each connection closes in an event of its own, after which promises settle.
        await Promise.resolve();
      }
      expect(notified).toEqual(['first']);
      await nextTurn();
      expect(notified).toEqual(['first', 'second']);
      await vi.waitFor(() => expect(notified).toEqual(['first', 'second', 'third']));
      clock.mockRestore();
    });
  });
});
