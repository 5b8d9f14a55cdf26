// TLS before a plain server: ends real handshakes and passes the bytes on. It tells which certificates its
// clients showed.

import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { CertifiedKey } from './authority.js';

export type TlsFront = {
  readonly port: number;
  /** Common names of the clients whose handshake succeeded; empty where none was shown. */
  readonly clients: string[];
  /** Shows another certificate from the next handshake on, and ends the connections that there are. */
  show(next: CertifiedKey): void;
  close(): Promise<void>;
};

/** `clientCa`: clients must show a certificate of this authority (PEM). */
export async function startTlsFront(
  target: string,
  own: CertifiedKey,
  clientCa?: string,
): Promise<TlsFront> {
  const clients: string[] = [];
  const sockets = new Set<TLSSocket>();
  const behind = Number(new URL(target).port);
  const asks = clientCa === undefined ? {} : { ca: clientCa, requestCert: true };
  const server = createServer({ cert: own.cert, key: own.key, ...asks }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    const { subject } = socket.getPeerCertificate();
    clients.push(String(subject?.CN ?? ''));
    const plain = connect(behind, '127.0.0.1');
    socket.pipe(plain).pipe(socket);
    for (const one of [socket, plain]) {
      one.on('error', () => {
        socket.destroy();
        plain.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    clients,
    show({ cert, key }) {
      server.setSecureContext({ cert, key });
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
