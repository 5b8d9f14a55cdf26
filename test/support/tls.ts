// Certificates, and a TLS proxy in front of a plain server.

import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { type AddressInfo, connect, isIPv4 } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';

// A certificate authority of a test's own: writes X.509 certificates in DER from nothing but node:crypto, so
// that TLS is tested with real handshakes and no fixture ever expires. P-256 and SHA-256 alone.
// RFC 5280 §4; ITU-T X.690.

/** PEM texts. */
export type CertifiedKey = {
  readonly cert: string;
  readonly key: string;
  /** The SubjectPublicKeyInfo and the whole certificate, in DER. */
  readonly spki: Buffer;
  readonly der: Buffer;
};

export type CertificateRequest = {
  readonly commonName?: string;
  /** DNS names and IPv4 addresses. */
  readonly names?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
};

export type Authority = CertifiedKey & {
  /** A certificate for servers and clients, signed by this authority. */
  issue(request?: CertificateRequest): CertifiedKey;
};

const DAY_MS = 24 * 60 * 60 * 1000;
const OID = {
  commonName: [2, 5, 4, 3],
  ecdsaWithSha256: [1, 2, 840, 10045, 4, 3, 2],
  basicConstraints: [2, 5, 29, 19],
  keyUsage: [2, 5, 29, 15],
  extendedKeyUsage: [2, 5, 29, 37],
  subjectAltName: [2, 5, 29, 17],
  serverAuth: [1, 3, 6, 1, 5, 5, 7, 3, 1],
  clientAuth: [1, 3, 6, 1, 5, 5, 7, 3, 2],
} as const;

function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const size: number[] = [];
  for (let rest = body.length; rest > 0; rest >>= 8) size.unshift(rest & 0xff);
  const length = body.length < 0x80 ? [body.length] : [0x80 | size.length, ...size];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts);
const octets = (bytes: Uint8Array): Buffer => tlv(0x04, bytes);
const bits = (bytes: Uint8Array, unused = 0): Buffer => tlv(0x03, Buffer.from([unused]), bytes);
const yes = tlv(0x01, Buffer.from([0xff]));

/** Positive: a leading zero where the first bit is set. */
function integer(bytes: Uint8Array): Buffer {
  return tlv(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.from([0]) : Buffer.alloc(0), bytes);
}

/** Its first byte is neither zero nor negative, so that it is in the shortest form. */
function serialNumber(): Buffer {
  return Buffer.concat([Buffer.from([0x40]), randomBytes(15)]);
}

function oid(arcs: readonly number[]): Buffer {
  const [first = 0, second = 0, ...rest] = arcs;
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}

function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return tlv(0x18, Buffer.from(`${text}Z`));
}

function named(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(oid(OID.commonName), tlv(0x0c, Buffer.from(commonName)))));
}

function extension(id: readonly number[], value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [yes] : []), octets(value));
}

function altNames(names: readonly string[]): Buffer {
  const general = names.map((name) =>
    isIPv4(name) ? tlv(0x87, Buffer.from(name.split('.').map(Number))) : tlv(0x82, Buffer.from(name)),
  );
  return extension(OID.subjectAltName, sequence(...general));
}

type Written = {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly request: CertificateRequest;
  readonly extensions: readonly Buffer[];
};

function writeCertificate(written: Written): Buffer {
  const { notBefore, notAfter } = written.request;
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const body = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    algorithm,
    named(written.issuer),
    sequence(time(notBefore ?? new Date(Date.now() - DAY_MS)), time(notAfter ?? new Date(Date.now() + DAY_MS))),
    named(written.subject),
    written.publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...written.extensions)),
  );
  return sequence(body, algorithm, bits(sign('sha256', body, written.signer)));
}

function certify(der: Buffer, privateKey: KeyObject): CertifiedKey {
  const certificate = new X509Certificate(der);
  return {
    cert: certificate.toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    spki: certificate.publicKey.export({ type: 'spki', format: 'der' }),
    der,
  };
}

/** An authority that nobody else knows. */
export function makeAuthority(name = 'Test Authority'): Authority {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const extensions = [
    extension(OID.basicConstraints, sequence(yes), true),
    // keyCertSign and cRLSign.
    extension(OID.keyUsage, bits(Buffer.from([0x06]), 1), true),
  ];
  const der = writeCertificate({
    subject: name,
    issuer: name,
    publicKey: own.publicKey,
    signer: own.privateKey,
    request: {},
    extensions,
  });
  return {
    ...certify(der, own.privateKey),
    issue(request = {}) {
      const { commonName = 'test', names = ['127.0.0.1', 'localhost'] } = request;
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const issued = writeCertificate({
        subject: commonName,
        issuer: name,
        publicKey: pair.publicKey,
        signer: own.privateKey,
        request,
        extensions: [
          extension(OID.basicConstraints, sequence(), true),
          extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth), oid(OID.clientAuth))),
          altNames(names),
        ],
      });
      return certify(issued, pair.privateKey);
    },
  };
}

// TLS before a plain server: ends real handshakes and passes the bytes on. It tells which certificates its
// clients showed.

export type TlsFront = {
  readonly port: number;
  /** Common names of the clients whose handshake succeeded; empty where none was shown. */
  readonly clients: string[];
  /** Shows another certificate from the next handshake on, and ends the connections that there are. */
  show(next: CertifiedKey): void;
  close(): Promise<void>;
};

/** `clientCa`: clients must show a certificate of this authority (PEM). */
export async function startTlsFront(target: string, own: CertifiedKey, clientCa?: string): Promise<TlsFront> {
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
