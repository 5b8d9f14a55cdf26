import { describe, expect, it } from 'vitest';
import type { Diagnostic } from '../../../src/config/diagnostics.js';
import { renderDiagnostics } from '../../../src/config/diagnostics.js';

const DIAGNOSTICS: readonly Diagnostic[] = [
  {
    ...{ file: '/srv/config/gateway.yaml', line: 3, column: 7, severity: 'error' },
    ...{ rule: 'unknown-key', message: 'unknown key "isuers"', suggestion: 'issuers' },
  },
  {
    ...{ file: '/etc/x.policy.yaml', line: 1, column: 1, severity: 'warning' },
    ...{ rule: 'policy', message: 'matches nothing' },
  },
] as readonly Diagnostic[];

describe('[C-16] reports', () => {
  it('are lines for people, files named from where one stands', () => {
    expect(renderDiagnostics(DIAGNOSTICS, 'text', '/srv')).toBe(
      'config/gateway.yaml:3:7 error unknown key "isuers"; did you mean "issuers"?\n' +
        '/etc/x.policy.yaml:1:1 warning matches nothing\n',
    );
    expect(renderDiagnostics([], 'text', '/srv')).toBe('');
  });

  it('are JSON', () => {
    expect(JSON.parse(renderDiagnostics(DIAGNOSTICS, 'json', '/srv'))).toEqual({
      faults: [{ ...DIAGNOSTICS[0], file: 'config/gateway.yaml' }, DIAGNOSTICS[1]],
    });
  });

  it('are SARIF 2.1.0', () => {
    const sarif = JSON.parse(renderDiagnostics(DIAGNOSTICS, 'sarif', '/srv'));
    expect(sarif.version).toBe('2.1.0');
    const [run] = sarif.runs;
    expect(run.tool.driver.rules).toEqual([{ id: 'policy' }, { id: 'unknown-key' }]);
    expect(run.results[0]).toEqual({
      ruleId: 'unknown-key',
      ruleIndex: 1,
      level: 'error',
      message: { text: 'unknown key "isuers"; did you mean "issuers"?' },
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: 'config/gateway.yaml' },
            region: { startLine: 3, startColumn: 7 },
          },
        },
      ],
    });
    expect(run.results[1].locations[0].physicalLocation.artifactLocation.uri).toBe('file:///etc/x.policy.yaml');
  });

  it('stay one line a fault, whatever a file is called', () => {
    const [diagnostic] = DIAGNOSTICS;
    const odd = { ...diagnostic, file: 'a\nb\u001b[2J\u202e.yaml' } as Diagnostic;
    const text = renderDiagnostics([odd], 'text', '/srv');
    expect(text.split('\n')).toHaveLength(2);
    expect(text).toContain('a\\u{a}b\\u{1b}[2J\\u{202e}.yaml:3:7');
  });
});
