// Reads a port from the command line.

import { InvalidArgumentError } from 'commander';

const MAX_PORT = 65_535;

/** @throws InvalidArgumentError, which the command line shows as a mistake of usage. */
export function readPort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) throw new InvalidArgumentError('Expected a port.');
  return port;
}
