import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { describeUnknownOption } from '../../../src/cli/program.js';

const root = new Command('root');
root.command('serve').requiredOption('-c, --config <file>', 'a file').option('--json', 'as JSON');
root.command('pin').command('fetch').option('--note <text>', 'why').option('--approve', 'now');

const strange = (line: string) => describeUnknownOption(root, line.split(' '));

describe('a misspelt option', () => {
  it.each([
    ['serve --confg x', `error: unknown option '--confg'; did you mean "--config"?`],
    ['serve -c x --jsn=1', `error: unknown option '--jsn'; did you mean "--json"?`],
    ['pin fetch --aprove', `error: unknown option '--aprove'; did you mean "--approve"?`],
    ['pin fetch --zzzzzzzzzz', `error: unknown option '--zzzzzzzzzz'`],
  ])('[C-20] of "%s" is told with what was meant', (line, printed) => {
    expect(strange(line)).toBe(printed);
  });

  it.each([
    'serve -c --odd',
    'pin fetch --note --odd --approve',
    'serve -- --odd',
    'serve --help',
    'nothing',
  ])('[C-20] is not seen in "%s", where it is a value or asked for', (line) => {
    expect(strange(line)).toBeUndefined();
  });
});
