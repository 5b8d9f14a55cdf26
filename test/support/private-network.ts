// A private network for tests, on loopback alone: names that resolve to what a test says, and addresses of 10.77.0.0/16
// at which the servers of 127.0.0.1 answer. A connection to one of them shows that address as its peer's, so that every
// check of the gateway sees a private network.

import dns, { type LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import net, { type Socket, type TcpNetConnectOpts } from 'node:net';
import { vi } from 'vitest';

/** What a name resolves to, asked anew for each query. */
export type Names = { readonly [name: string]: () => readonly string[] };

export type PrivateNetwork = {
  /** Every address that was dialled for one of the names or within the network, in order. */
  dialled(): readonly string[];
  restore(): void;
};

type Resolved = (error: Error | null, addresses: LookupAddress[]) => void;

function isInside(address: unknown): address is string {
  return typeof address === 'string' && address.startsWith('10.77.');
}

/** To be installed before the gateway starts, and restored at the end. */
export function installPrivateNetwork(names: Names): PrivateNetwork {
  const dialled: string[] = [];
  const { lookup: resolve } = dns;
  const { connect } = net;

  function dial(socket: Socket, address: string): void {
    dialled.push(address);
    if (isInside(address)) Object.defineProperty(socket, 'remoteAddress', { value: address });
  }

  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((name: string, options: object, callback: Resolved) => {
    const addresses = names[name];
    if (addresses === undefined) return Reflect.apply(resolve, dns, [name, options, callback]);
    const found = addresses().map((address) => ({ address, family: net.isIP(address) }));
    setImmediate(() => callback(null, found));
  }) as unknown as typeof dns.lookup);

  const connecting = vi.spyOn(net, 'connect').mockImplementation(((...args: unknown[]) => {
    const [options] = args as [TcpNetConnectOpts];
    const { host, lookup: guarded } = options;
    if (isInside(host)) {
      const socket = connect({ ...options, host: '127.0.0.1' });
      dial(socket, host);
      return socket;
    }
    if (host === undefined || names[host] === undefined || guarded === undefined)
      return Reflect.apply(connect, net, args);
    const socket: Socket = connect({
      ...options,
      lookup(name, lookupOptions, callback) {
        guarded(name, { ...lookupOptions, all: true }, ((error, addresses) => {
          const [first] = addresses;
          if (error !== null || first === undefined) return callback(error, '', 0);
          dial(socket, first.address);
          const address = isInside(first.address) ? '127.0.0.1' : first.address;
          if (lookupOptions.all === true) callback(null, [{ address, family: net.isIP(address) }]);
          else callback(null, address, net.isIP(address));
        }) as Resolved as Parameters<typeof guarded>[2]);
      },
    });
    return socket;
  }) as typeof net.connect);
  syncBuiltinESMExports();

  return {
    dialled: () => dialled,
    restore() {
      lookup.mockRestore();
      connecting.mockRestore();
      syncBuiltinESMExports();
    },
  };
}
