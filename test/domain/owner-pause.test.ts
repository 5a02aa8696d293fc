import { expect, test } from 'vitest';
import { newConversation, type QueuedMessage } from '../../src/domain/conversation.ts';
import { nextWorkStep } from '../../src/domain/conversation-next-step.ts';
import type { EventActor } from '../../src/domain/event.ts';
import { applyTransition, mayTryAgain, stopFrozen, type SandboxTransition } from '../../src/domain/sandbox-lifecycle.ts';
import { newSandbox, type Sandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';

const spec = sandboxSpec({ id: 'plain' });
const running: Sandbox = { ...newSandbox({ id: 'sb', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 }), status: 'RUNNING' };
const fresh = newConversation({
  id: 'conv', ownerId: 'me', title: null, taken: running, sandboxId: 'sb', spec, repository: null, selectedRepository: null, selectedBranch: null, initialMessage: null, permissionPolicy: null, now: 0,
});

type Happening = 'message' | readonly [SandboxTransition, EventActor] | 'stop frozen';
const paused = [['pause', 'user'], ['paused', 'skep']] as const;
const rested = [['pause', 'skep'], ['paused', 'skep']] as const;
const resumed = [['resume', 'user'], ['ready', 'runtime']] as const;

/** Returns the next step of a conversation after these events, all at the same time. */
function stepAfter(happenings: readonly Happening[]): string {
  let sandbox = running;
  const queue: QueuedMessage[] = [];
  for (const one of happenings) {
    if (one === 'message') queue.push({ messageId: 'm', message: { content: [] }, sandboxVersion: sandbox.version });
    else if (one === 'stop frozen') sandbox = stopFrozen(sandbox, { code: 'idle', tier: 'stop', afterMs: 1 }, 0);
    else sandbox = applyTransition(sandbox, one[0], one[1], { now: 0, reason: null, ...(one[0] === 'pause' && { pauseKind: 'freeze' as const }) }) ?? sandbox;
  }
  expect(sandbox.status).toBe('PAUSED');
  return nextWorkStep({ ...fresh, startStatus: 'READY', executionStatus: 'idle', queue }, sandbox, null, 0).kind;
}

test.each<readonly [string, boolean, readonly Happening[]]>([
  ['its owner paused the sandbox after the message', true, ['message', ...paused]],
  ['a message came after the pause', false, ['message', ...paused, 'message']],
  ['the message came while the sandbox was PAUSING', false, [paused[0], 'message', paused[1]]],
  ['a rule stopped the sandbox after its owner froze it', true, ['message', ...paused, 'stop frozen']],
  ['a rule paused the sandbox', false, ['message', ...rested]],
  ['the sandbox was stopped outside Skep', false, ['message', ['pause', 'runtime'], ['paused', 'skep']]],
  ['the runtime refused a resume after the owner paused the sandbox', true, ['message', ...paused, ['resume', 'user'], ['refused', 'runtime']]],
  ['the owner resumed the sandbox, and a rule paused it later', false, ['message', ...paused, ...resumed, ...rested]],
  ['a rule paused the sandbox, and its owner paused it later', true, ['message', ...rested, ...resumed, ...paused]],
])('a waiting message is held if %s: %s', (_, held, happenings) => {
  expect(stepAfter(happenings)).toBe(held ? 'none' : 'resume-sandbox');
});

test('the record says who paused the sandbox and why, until it runs again', () => {
  const reason = { code: 'paused_by_owner' } as const;
  const pausing = applyTransition(running, 'pause', 'user', { now: 1, reason, pauseKind: 'stop' }) ?? running;
  const resting = applyTransition(pausing, 'paused', 'skep', { now: 2, reason: null }) ?? running;
  const again = applyTransition(applyTransition(resting, 'resume', 'user', { now: 3, reason: null }) ?? running, 'refused', 'runtime', { now: 4, reason: { code: 'vanished' } });
  for (const one of [pausing, resting, again]) expect(one?.pausedBy).toEqual({ actor: 'user', reason, version: 2, since: 1 });
  expect(applyTransition(pausing, 'refused', 'runtime', { now: 2, reason: null })?.pausedBy).toBeNull();
});

test('Skep tries again when the delay is over, also if the time of the machine is set back meanwhile', () => {
  const hour = 3_600_000;
  let sandbox = running;
  for (const transition of ['pause', 'refused', 'pause', 'refused'] as const) {
    sandbox = applyTransition(sandbox, transition, 'skep', { now: hour, reason: null, pauseKind: 'freeze' }) ?? sandbox;
  }
  expect(sandbox.refused?.times).toBe(2);
  expect([hour, hour + 1999, hour + 2000, hour - 1000, 0].map((now) => mayTryAgain(sandbox, now))).toEqual([false, false, true, true, true]);
});
