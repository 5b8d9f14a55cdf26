// Which features a message uses: none for a plain one, and each exactly where the message asks for it.

import { describe, expect, it } from 'vitest';
import type { SensitiveSet } from '../../../../src/policy/information-flow.js';
import { admitPost } from '../../../../src/protocol/admission.js';
import type { AdmittedMessage, SessionFacts } from '../../../../src/protocol/admitted-request.js';
import { INPUT_RETRY } from '../../../../src/proxy/features/input-required.js';
import { FOLLOWED_REQUEST } from '../../../../src/proxy/features/progress.js';
import { featuresOf, SUBSCRIPTION_STREAM } from '../../../../src/proxy/features/table.js';
import { TASK_USE } from '../../../../src/proxy/features/task-requests.js';
import { BRIDGED_LEGACY_SSE, DIRECT_LEGACY_SSE } from '../../../../src/proxy/legacy-sse/messages.js';
import type { Snapshot } from '../../../../src/proxy/ports.js';
import { admitted, inSession, META, SESSION, stateless } from '../../protocol/admission.js';

const CALL = { name: 'echo', arguments: { text: 'a' } };
const WITH_TASKS: SessionFacts = { ...SESSION, tasks: ['call', 'list', 'cancel'] };
const LEGACY: SessionFacts = { version: '2024-11-05', target: { kind: 'bridged' } };

type Upstream = {
  readonly isDirect?: boolean;
  readonly tasks?: readonly 'call'[];
  readonly sensitive?: SensitiveSet;
};

function snapshotOf({ isDirect = false, tasks = [], sensitive }: Upstream): Snapshot {
  const supportedVersions = { sessions: ['2025-11-25'], stateless: [], tasks };
  const legacySse = { messageUrl: '', isDirect };
  return { supportedVersions, legacySse, policies: { sensitive } } as unknown as Snapshot;
}

const featuresUsedBy = (message: AdmittedMessage, upstream: Upstream = {}) => [
  ...featuresOf(message, snapshotOf(upstream)),
];

function onLegacyStream(method: string, params: object = CALL): AdmittedMessage {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return admitted(
    admitPost({
      headers: { 'mcp-session-id': 's-1' },
      repeated: new Set(),
      body: new TextEncoder().encode(body),
      isLegacySse: true,
      openSession: () => LEGACY,
    }),
  );
}

describe('a plain message', () => {
  it.each([
    ['a stateless call', stateless('tools/call', CALL)],
    ['a call in a session', inSession('tools/call', CALL)],
    ['a list', inSession('tools/list')],
    ['a read', stateless('resources/read', { uri: 'memo://a' })],
  ])('uses no feature: %s', (_what, outcome) => {
    expect(featuresUsedBy(admitted(outcome))).toEqual([]);
  });
});

describe('a message that uses a feature', () => {
  const withMeta = (meta: object) => ({ ...CALL, _meta: { ...META, ...meta } });

  it('reports progress under its token', () => {
    const call = admitted(stateless('tools/call', withMeta({ progressToken: 0 })));
    expect(featuresUsedBy(call)).toEqual([FOLLOWED_REQUEST]);
  });

  it('is followed in its session if the tool has sensitive fields', () => {
    const fields = { results: [], arguments: [], labels: [] };
    const sensitive = { of: () => fields };
    expect(featuresUsedBy(admitted(inSession('tools/call', CALL)), { sensitive })).toEqual([FOLLOWED_REQUEST]);
    expect(featuresUsedBy(admitted(stateless('tools/call', CALL)), { sensitive })).toEqual([]);
  });

  it.each([{ requestState: 's' }, { inputResponses: {} }])('answers an input request: %j', (more) => {
    expect(featuresUsedBy(admitted(stateless('tools/call', { ...CALL, ...more })))).toEqual([INPUT_RETRY]);
  });

  it('opens a subscription', () => {
    const listen = stateless('subscriptions/listen', { notifications: { toolsListChanged: true } });
    expect(featuresUsedBy(admitted(listen))).toEqual([SUBSCRIPTION_STREAM]);
  });

  it.each([
    ['requests one', inSession('tools/call', { ...CALL, task: {} }, { session: WITH_TASKS })],
    ['requests one of a server without tasks', inSession('tools/call', { ...CALL, task: {} })],
    ['asks about one', inSession('tasks/get', { taskId: 't' }, { session: WITH_TASKS })],
    [
      'names one',
      inSession('tools/call', {
        ...CALL,
        _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } },
      }),
    ],
  ])('has to do with a task: it %s', (_what, outcome) => {
    expect(featuresUsedBy(admitted(outcome))).toEqual([TASK_USE]);
  });

  it('goes to a server that may insist on a task', () => {
    const call = admitted(stateless('tools/call', CALL));
    expect(featuresUsedBy(call, { tasks: ['call'] })).toEqual([TASK_USE]);
    expect(featuresUsedBy(admitted(stateless('tools/list')), { tasks: ['call'] })).toEqual([]);
  });

  it('is posted to legacy SSE, and sealed after its tasks were restored', () => {
    expect(featuresUsedBy(onLegacyStream('tools/call'))).toEqual([BRIDGED_LEGACY_SSE]);
    expect(featuresUsedBy(onLegacyStream('tools/call'), { isDirect: true })).toEqual([DIRECT_LEGACY_SSE]);
    const named = { ...CALL, task: {}, _meta: { progressToken: 1 } };
    expect(featuresUsedBy(onLegacyStream('tools/call', named), { isDirect: true })).toEqual([
      TASK_USE,
      DIRECT_LEGACY_SSE,
      FOLLOWED_REQUEST,
    ]);
  });
});
