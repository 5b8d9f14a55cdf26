import { describe, expect, it } from 'vitest';
import { addFinding, type Finding, MAX_FINDINGS } from '../../../src/policy/record.js';

function finding(detector: string, path: string): Finding {
  return { detector, direction: 'to-client', path, count: 1, action: 'drop' };
}

describe('the findings of a record', () => {
  it('[H-05] count what is found again', () => {
    const findings: Finding[] = [];
    for (let i = 0; i < 1000; i += 1) addFinding(findings, finding('foreign-message', ''));
    addFinding(findings, finding('foreign-message', '/result'));
    expect(findings).toEqual([
      { ...finding('foreign-message', ''), count: 1000 },
      finding('foreign-message', '/result'),
    ]);
  });

  it('[H-05] stay few, and each detector keeps its place behind a flood of another', () => {
    const findings: Finding[] = [];
    for (let i = 0; i < 10_000; i += 1) addFinding(findings, finding('noise', `/${i}`));
    addFinding(findings, finding('secret', '/result/content/0/text'));
    addFinding(findings, finding('secret', '/result/content/1/text'));
    expect(findings).toHaveLength(MAX_FINDINGS + 1);
    expect(findings.reduce((sum, { count }) => sum + count, 0)).toBe(10_002);
    expect(findings.at(-1)).toEqual({ ...finding('secret', ''), count: 2 });
  });
});
