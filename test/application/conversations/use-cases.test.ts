import { describe, expect, test, vi } from 'vitest';
import { createMemoryGitProvider } from '../../doubles/memory/index.ts';
import { conversationStartStatuses } from '../../../src/domain/conversation.ts';
import { startSteps } from '../../../src/domain/conversation-next-step.ts';
import { Failure, isFailure, type FailureCode } from '../../../src/domain/failure.ts';
import { gate } from './support.ts';
import { calm, createOne, plain, said, told, type WorldOptions } from './world.ts';

function world(options: WorldOptions = {}) {
  return createOne({ agent: null, ...options });
}

const claim = { ownerId: 'me', key: 'k', fingerprint: 'f' };
const freezeRefused = new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'unreachable' }, retryAfterSeconds: 1 });

/** A server that runs as many sandboxes as it may. The next start pauses an idle one, which waits until the test lets it. */
async function full() {
  const w = world({ limits: { running: 1 }, whenFull: 'pause_idle' });
  await w.sweeper.start();
  await w.sandboxes.start('me', { specId: null });
  await calm();
  w.clock.advance(5 * 60_000);
  const held = gate();
  const freeze = w.runtime.freeze.bind(w.runtime);
  vi.spyOn(w.runtime, 'freeze').mockImplementation(async (...given) => await held.opened.then(() => freeze(...given)));
  return { ...w, held };
}

async function codeOf(promise: Promise<unknown>): Promise<FailureCode | null> {
  return await promise.then(() => null, (error: unknown) => {
    if (!isFailure(error)) throw error;
    return error.code;
  });
}

describe('a conversation', () => {
  test('starts its sandbox and is READY when the sandbox runs', async () => {
    const { conversations, sandboxes } = world();
    const { conversation, sandboxStatus } = await conversations.start('me', { ...plain, title: 'Hello' });
    expect(conversation).toMatchObject({ startStatus: expect.stringMatching(/WORKING|WAITING/), title: 'Hello', executionStatus: null });
    expect(sandboxStatus).toBe('STARTING');
    await calm();
    expect(await conversations.get('me', conversation.id)).toMatchObject({ conversation: { startStatus: 'READY' }, sandboxStatus: 'RUNNING' });
    expect(await sandboxes.get('me', conversation.sandboxId)).toMatchObject({ status: 'RUNNING' });
  });

  test('starts its sandbox once if a sweep finds the conversation while the start waits for room', async () => {
    const { conversations, clock, store, held } = await full();
    const starting = conversations.start('me', plain);
    for (let seconds = 0; seconds < 3; seconds += 1) {
      await calm();
      clock.advance(1000);
    }
    held.open();
    const { conversation: { id } } = await starting;
    await calm();
    expect(await conversations.get('me', id)).toMatchObject({ conversation: { startStatus: 'READY' }, sandboxStatus: 'RUNNING' });
    const events = await store.events.read({ ownerId: 'me', conversationId: id }, 0, 100);
    expect(told(events, 'start_step').map(({ to }) => to)).toEqual(['WORKING', 'WAITING_FOR_SANDBOX', 'READY']);
  });

  test.each([true, false])('has one outcome for a repeated start while the first waits for room (which it gets: %s)', async (isRoom) => {
    const { conversations, runtime, held } = await full();
    if (!isRoom) vi.spyOn(runtime, 'freeze').mockImplementation(async () => await held.opened.then(() => Promise.reject(freezeRefused)));
    const start = () => conversations.start('me', { ...plain, claim });
    const starts = [start()];
    await calm();
    starts.push(start());
    await calm();
    held.open();
    const ids = starts.map((started) => started.then(({ conversation: { id } }) => id, (error: Failure) => error.code));
    const [first, repeated] = await Promise.all(ids);
    expect(repeated).toBe(first);
    expect(await codeOf(conversations.get('me', repeated!))).toBe(isRoom ? null : 'conversation_not_found');
    if (!isRoom) expect(repeated).toBe('sandbox_limit_reached');
  });

  test('refuses a message if its start is undone meanwhile', async () => {
    const { conversations, store } = world({ agent: {} });
    const { conversation: { id } } = await conversations.start('me', plain);
    await calm();
    vi.spyOn(store.sandboxes, 'find').mockImplementation(async () => {
      vi.spyOn(store.conversations, 'find').mockResolvedValue(null);
      return null;
    });
    expect(await codeOf(conversations.send('me', id, said('one'), claim))).toBe('conversation_not_found');
  });

  test('is an ERROR with the reason if its sandbox fails to start', async () => {
    const spec = { ports: [{ name: 'H', port: 80 }], ready: { probe: { kind: 'tcp' as const, port: 80 }, withinMs: 1000 } };
    const { conversations, probe, clock } = world({ spec });
    const { conversation } = await conversations.start('me', plain);
    probe.answer(`http://${conversation.sandboxId}.invalid:80`, null);
    await calm();
    clock.advance(1000);
    await calm();
    const view = await conversations.get('me', conversation.id);
    expect(view.conversation).toMatchObject({ startStatus: 'ERROR', statusReason: { code: 'step_failed', cause: { code: 'sandbox_lost', cause: { code: 'not_ready_in_time', withinMs: 1000 } } } });
  });

  test('uses and resumes a given sandbox of the same owner', async () => {
    const { conversations, sandboxes } = world();
    const { id } = await sandboxes.start('me', { specId: null });
    await calm();
    await sandboxes.pause('me', id, 'freeze');
    const { conversation } = await conversations.start('me', { ...plain, sandboxId: id });
    await calm();
    expect(await conversations.get('me', conversation.id)).toMatchObject({ conversation: { sandboxId: id, startStatus: 'READY' }, sandboxStatus: 'RUNNING' });
    expect(await codeOf(conversations.start('you', { ...plain, sandboxId: id }))).toBe('sandbox_not_found');
  });

  test('fails with `repository_not_found` if its repository does not exist', async () => {
    const provider = createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: [] }] });
    const { conversations } = world({ providers: [provider] });
    const { conversation } = await conversations.start('me', { ...plain, selectedRepository: 'acme/shop' });
    expect(conversation).toMatchObject({ selectedRepository: 'acme/shop', gitProvider: provider.name });
    expect(await codeOf(conversations.start('me', { ...plain, selectedRepository: 'acme/none' }))).toBe('repository_not_found');
  });

  test('leaves no record if a limit refuses its sandbox', async () => {
    const { conversations, sandboxes } = world({ limits: { running: 1 } });
    await sandboxes.start('me', { specId: null });
    expect(await codeOf(conversations.start('me', plain))).toBe('sandbox_limit_reached');
    expect((await conversations.search('me', {}, 'CREATED_AT', { after: null, limit: 10 })).items).toEqual([]);
  });

  test('deletes its sandbox with it, unless another conversation uses the sandbox', async () => {
    const { conversations, sandboxes } = world();
    const { conversation: first } = await conversations.start('me', plain);
    await calm();
    const { conversation: second } = await conversations.start('me', { ...plain, sandboxId: first.sandboxId });
    await calm();
    await conversations.delete('me', first.id);
    expect(await codeOf(conversations.get('me', first.id))).toBe('conversation_not_found');
    expect(await sandboxes.get('me', first.sandboxId)).toMatchObject({ status: 'RUNNING' });
    await conversations.delete('me', second.id);
    expect(await codeOf(sandboxes.get('me', first.sandboxId))).toBe('sandbox_not_found');
    expect(await codeOf(conversations.delete('me', second.id))).toBeNull();
    expect(await codeOf(conversations.delete('you', second.id))).toBe('conversation_not_found');
  });

  test.each(['archived', 'deleted'] as const)('that is %s leaves the sandbox that it started to another one, which ends it when it is archived', async (how) => {
    const { conversations } = world();
    const { conversation: { id, sandboxId } } = await conversations.start('me', plain);
    await calm();
    const { conversation: { id: next } } = await conversations.start('me', { ...plain, sandboxId });
    await calm();
    await (how === 'archived' ? conversations.update('me', id, { archived: true }) : conversations.delete('me', id));
    await calm();
    expect(await conversations.get('me', next)).toMatchObject({ sandboxStatus: 'RUNNING' });
    await conversations.update('me', next, { archived: true });
    await calm();
    expect(await conversations.get('me', next)).toMatchObject({ sandboxStatus: 'MISSING' });
  });

  test('leaves a sandbox that its user started when it is archived, but not when it is deleted', async () => {
    const { conversations, sandboxes } = world();
    const { id: sandboxId } = await sandboxes.start('me', { specId: null });
    const { conversation: { id } } = await conversations.start('me', { ...plain, sandboxId });
    await calm();
    await conversations.update('me', id, { archived: true });
    expect(await sandboxes.get('me', sandboxId)).toMatchObject({ status: 'RUNNING' });
    const { conversation: { id: last } } = await conversations.start('me', { ...plain, sandboxId });
    await calm();
    await conversations.delete('me', last);
    expect(await codeOf(sandboxes.get('me', sandboxId))).toBe('sandbox_not_found');
  });

  test('deletes the sandbox if two conversations that share it are archived at once', async () => {
    const { conversations, sandboxes } = world();
    const { conversation: { id, sandboxId } } = await conversations.start('me', plain);
    await calm();
    const { conversation: { id: next } } = await conversations.start('me', { ...plain, sandboxId });
    await calm();
    await Promise.all([id, next].map((one) => conversations.update('me', one, { archived: true })));
    await calm();
    expect(await codeOf(sandboxes.get('me', sandboxId))).toBe('sandbox_not_found');
  });

  test('shows its sandbox as MISSING if that was deleted', async () => {
    const { conversations, sandboxes } = world();
    const { conversation } = await conversations.start('me', plain);
    await calm();
    await sandboxes.delete('me', conversation.sandboxId);
    expect(await conversations.get('me', conversation.id)).toMatchObject({ sandboxStatus: 'MISSING', conversation: { startStatus: 'READY' } });
  });

  test('is created once for an idempotency key, and a different request with the key is a conflict', async () => {
    const { conversations } = world();
    const claim = { ownerId: 'me', key: 'k', fingerprint: 'a' };
    const first = await conversations.start('me', { ...plain, claim });
    const again = await conversations.start('me', { ...plain, claim });
    expect(again.conversation.id).toBe(first.conversation.id);
    expect(await codeOf(conversations.start('me', { ...plain, claim: { ...claim, fingerprint: 'b' } }))).toBe('idempotency_conflict');
  });

  test.each(['WORKING', 'WAITING_FOR_SANDBOX'] as const)('continues a start that was interrupted at %s in the next process', async (startStatus) => {
    const { store, boot, clock, conversations, conversationReconciler, sandboxReconciler } = world();
    const { conversation } = await conversations.start('me', plain);
    await calm();
    await Promise.all([conversationReconciler.close(), sandboxReconciler.close()]);
    const found = await store.conversations.find(conversation.id);
    if (found === null) throw new Error('no record');
    const interrupted = { ...found, id: `conv-${startStatus.toLowerCase().replaceAll('_', '-')}`, startStatus, version: 1, sandboxId: startStatus === 'WORKING' ? 'sb-later' : found.sandboxId };
    await store.conversations.insert(interrupted);
    const next = boot();
    await next.sweeper.start();
    await calm();
    clock.advance(1);
    await calm();
    expect(await next.conversations.get('me', interrupted.id)).toMatchObject({ conversation: { startStatus: 'READY' }, sandboxStatus: 'RUNNING' });
  });
});

test('a start in READY or ERROR has no next step, and every other one can become ERROR', () => {
  for (const status of conversationStartStatuses) {
    if (status === 'READY' || status === 'ERROR') expect(startSteps[status]).toEqual([]);
    else expect(startSteps[status]).toContain('ERROR');
  }
});
