// Measures how long each operation of the shared store takes, and whether it fails. It changes neither what an operation
// returns nor the error with which it rejects.

import type { Measured } from '../policy/events.js';
import type { StoreLink } from './store.js';
import { storeErrorType } from './store-errors.js';

/** What leaves no trace of its duration: it is no operation of the store, or none that anybody waits for. */
type Unmeasured = 'isPrivate' | 'opened' | 'describe' | 'onHint' | 'close';

type Operation = Exclude<keyof StoreLink, Unmeasured>;

/** `operation`: the name of a method of the link. */
type Report = (operation: Operation, measured: Measured) => void;

export function measureStore(link: StoreLink, report: Report): StoreLink {
  function measured<Arguments extends readonly unknown[], Result>(
    operation: Operation,
    run: (...given: Arguments) => Promise<Result>,
  ): (...given: Arguments) => Promise<Result> {
    return async (...given) => {
      const startedMs = performance.now();
      let error = '';
      try {
        return await run(...given);
      } catch (thrown) {
        error = storeErrorType(thrown);
        throw thrown;
      } finally {
        report(operation, { durationMs: performance.now() - startedMs, error });
      }
    };
  }

  return {
    ...link,
    poll: measured('poll', link.poll),
    revocations: measured('revocations', link.revocations),
    addRevocation: measured('addRevocation', link.addRevocation),
    liftRevocation: measured('liftRevocation', link.liftRevocation),
    endSession: measured('endSession', link.endSession),
    enqueueMessages: measured('enqueueMessages', link.enqueueMessages),
    replicas: measured('replicas', link.replicas),
    take: measured('take', link.take),
    raiseCounters: measured('raiseCounters', link.raiseCounters),
    setFlowMarks: measured('setFlowMarks', link.setFlowMarks),
    flowMarks: measured('flowMarks', link.flowMarks),
    useOnce: measured('useOnce', link.useOnce),
    keepFirst: measured('keepFirst', link.keepFirst),
    addRecord: measured('addRecord', link.addRecord),
    replaceRecord: measured('replaceRecord', link.replaceRecord),
    record: measured('record', link.record),
    recordIdOf: measured('recordIdOf', link.recordIdOf),
    aliasRecord: measured('aliasRecord', link.aliasRecord),
    recordBody: measured('recordBody', link.recordBody),
    records: measured('records', link.records),
    openRecords: measured('openRecords', link.openRecords),
    overdueRecords: measured('overdueRecords', link.overdueRecords),
  } satisfies { readonly [name in Operation]: unknown } & StoreLink;
}
