// A receiver that speaks syslog (RFC 5424) over TCP or TLS, with octet counting (RFC 6587, RFC 5425). Syslog confirms
// nothing, so a batch counts once the connection that carried it was ended in order: the receiver closes its side after
// it has read everything. A connection that breaks before leaves its batch to be sent again. Each batch has a connection
// of its own for that reason; under load batches are large.
// docs/reference/audit.md#delivery

import type { Socket } from 'node:net';
import { hostname } from 'node:os';
import { valueAt } from '../audit/chain.js';
import type { DeliverySettings } from '../config/settings.js';
import { errorCode } from '../text/wording.js';
import { createDialer, describeConnectionError } from '../upstream/safe-fetch.js';
import type { Attempt, Line, Receiver } from './delivery.js';
import { renderLine } from './http.js';
import { severityOf } from './ocsf.js';

const TIMEOUT_MS = 30_000;
/** One that takes connections and ends them does so within this time. */
const SETTLE_MS = 100;

/** Numbers of facilities (RFC 5424 §6.2.1). */
const FACILITIES: Readonly<Record<DeliverySettings['facility'], number>> = {
  ...{ audit: 13, auth: 4, authpriv: 10, daemon: 3, user: 1 },
  ...{ local0: 16, local1: 17, local2: 18, local3: 19, local4: 20, local5: 21, local6: 22, local7: 23 },
};
const CODES_PER_FACILITY = 8;
const NORMAL = 5;
const WARNING = 4;
const ERROR = 3;
const HIGH = 4;
const MEDIUM = 3;
const NIL = '-';

function priorityOf({ record = {} }: Line, facility: DeliverySettings['facility']): number {
  const severity = severityOf(record);
  const code = severity >= HIGH ? ERROR : severity === MEDIUM ? WARNING : NORMAL;
  return FACILITIES[facility] * CODES_PER_FACILITY + code;
}

/** PRINTUSASCII of a length; NIL where nothing is left. */
function field(value: unknown, maxLength: number): string {
  const text = typeof value === 'string' ? value.replace(/[^\x21-\x7e]/g, '').slice(0, maxLength) : '';
  return text === '' ? NIL : text;
}

const MAX_HOSTNAME = 255;
const MAX_PROCID = 128;
const MAX_MSGID = 32;

/** What a message ends with in place of a line that is too long for it. */
const LEFT_OUT = /,"left_out_bytes":\d+\}$/;

/** In place of a line that is too long: what finds it in the file. */
function stub({ record = {} }: Line, bytes: number): string {
  const { id, time, type, chain } = record;
  const decision = valueAt(record, 'decision', 'id');
  return JSON.stringify({ id, time, type, decision, chain, left_out_bytes: bytes });
}

/**
 * One message with its length in front. The process is the chain: one of each run and sink. A receiver cuts what is
 * longer than it takes, and would read the rest as another message, whose text a caller may have chosen.
 */
export function syslogFrame(
  line: Line,
  settings: Pick<DeliverySettings, 'facility' | 'format' | 'maxMessage'>,
  host: string,
): string {
  const { record = {} } = line;
  const time = field(record['time'], MAX_PROCID);
  const epoch = field(valueAt(record, 'gateway', 'epoch'), MAX_PROCID);
  const type = field(record['type'], MAX_MSGID);
  const head = `<${priorityOf(line, settings.facility)}>1 ${time} ${field(host, MAX_HOSTNAME)} sallyport ${epoch} ${type} ${NIL} `;
  const message = head + renderLine(line, settings.format);
  const bytes = Buffer.byteLength(message);
  return bytes <= settings.maxMessage ? `${bytes} ${message}` : framed(head + stub(line, bytes));
}

function framed(message: string): string {
  return `${Buffer.byteLength(message)} ${message}`;
}

/** Creates the receiver. A connection goes to addresses that upstreams may have. */
export function createSyslogReceiver(settings: DeliverySettings, isOwnListener: (socket: Socket) => boolean): Receiver {
  const { url, tls } = settings;
  const dial = createDialer(url, settings, { tls, isOwnListener });
  const host = hostname();
  let open: Socket | undefined;

  return {
    render: (line) => syslogFrame(line, settings, host),
    async send(parts) {
      let socket: Socket;
      try {
        socket = await dial();
      } catch (error) {
        return { outcome: 'failed', why: `could not be reached (${describeConnectionError(errorCode(error))})` };
      }
      open = socket;
      const attempt = await write(socket, parts.join('')).finally(() => {
        open = undefined;
        socket.destroy();
      });
      const tooLong = parts.filter((part) => LEFT_OUT.test(part)).length;
      if (attempt.outcome !== 'delivered' || tooLong === 0) return attempt;
      return { ...attempt, leftOut: tooLong };
    },
    async close() {
      open?.destroy();
    },
  };
}

/**
 * Resolves when the receiver has closed its side behind the text. One that closes it before it was told the end has not
 * read everything, such as a balancer whose receiver is away.
 */
function write(socket: Socket, text: string): Promise<Attempt> {
  return new Promise((resolve) => {
    const fail = (why: string) => resolve({ outcome: 'failed', why });
    let hasEnded = false;
    const deadline = setTimeout(() => {
      fail('did not end the connection in time, and so does not confirm what it was sent');
    }, TIMEOUT_MS);
    socket.on('error', (error) => fail(`the connection broke (${errorCode(error)})`));
    socket.on('end', () => {
      if (!hasEnded) fail('ended the connection before everything was sent');
    });
    socket.on('close', (hasFailed) => {
      clearTimeout(deadline);
      if (!hasFailed && socket.writableFinished) resolve({ outcome: 'delivered' });
      else fail('the connection was closed before everything was sent');
    });
    // What a receiver says is not read; it has to be taken, or its end is not seen.
    socket.resume();
    socket.write(text, () => {
      setTimeout(() => {
        hasEnded = true;
        socket.end();
      }, SETTLE_MS);
    });
  });
}
