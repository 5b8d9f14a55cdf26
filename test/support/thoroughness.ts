// How many cases a random test tries: few in `npm test`, all of them in `npm run test:all`, which the gate runs.

const isThorough = process.env['SALLYPORT_TESTS'] === 'all';

export function casesOf(all: number, few: number): number {
  return isThorough ? all : few;
}
