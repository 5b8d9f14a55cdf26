// How often what an upstream offers is reported.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createPacedReport } from '../../../src/gateway/upstreams.js';

const COST_MS = 10;
const PAGES = 1_000;
let reports = 0;

function createCostlyReport() {
  reports = 0;
  return createPacedReport(() => {
    reports += 1;
    vi.advanceTimersByTime(COST_MS);
  });
}

function showPages(report: ReturnType<typeof createCostlyReport>): void {
  for (let page = 0; page < PAGES; page += 1) report.sendPaced();
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('reports at once what a page shows, and what a thousand show after it together', () => {
  const report = createCostlyReport();
  showPages(report);
  expect(reports).toBe(1);
  vi.advanceTimersByTime(COST_MS);
  expect(reports).toBe(1);
  vi.runAllTimers();
  expect(reports).toBe(2);
});

it('reports what pages show before a listing may remove it, and once', () => {
  const report = createCostlyReport();
  showPages(report);
  report.flush();
  expect(reports).toBe(2);
  report.flush();
  vi.runAllTimers();
  expect(reports).toBe(2);
});
