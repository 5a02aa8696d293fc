import { describe, expect, test } from 'vitest';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createReady, failureOf, gate } from './support.ts';
import { createWorking, fileAt, refuse, start } from './work-tree.ts';
import { plain, until } from './world.ts';

describe('an archived conversation', () => {
  test('has its changes as they were when it was archived', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    w.tree.files = [fileAt('b')];
    expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: null });
    expect(await w.view()).toMatchObject({ sandboxStatus: 'MISSING' });
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), startPoint: start, files: [{ path: 'b' }] });
    expect(await w.patch()).toBe('diff --git a/b b/b\n+x\n');
    expect(await failureOf(w.conversations.workTree('me', w.id, neverAborts))).toMatchObject({
      code: 'conversation_changes_unavailable', context: { id: w.id, reason: { code: 'conversation_archived' } },
    });
  });

  test('cannot be published', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    await w.archive();
    const request = { branch: 'topic', commitMessage: null, patterns: null, pullRequest: null };
    expect(await failureOf(w.conversations.publish('me', w.id, request, neverAborts))).toMatchObject({
      code: 'conversation_publish_refused', context: { id: w.id, branch: 'topic', reason: { code: 'conversation_archived' } },
    });
  });

  test('has the changes of its last turn if its sandbox was paused or deleted', async () => {
    for (const end of ['pause', 'delete'] as const) {
      const w = await createWorking();
      await w.turn(fileAt('a'));
      await w.sandboxes[end]('me', w.sandboxId);
      expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: null });
      expect((await w.list()).files).toMatchObject([{ path: 'a' }]);
    }
  });

  test('keeps its sandbox if the last changes cannot be kept, until they are or it is deleted', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    w.tree.files = [fileAt('b')];
    w.tree.take = refuse;
    const { agents } = w;
    expect(await w.archive()).toMatchObject({
      releasedAt: null, statusReason: { code: 'changes_not_kept', cause: { code: 'snapshot_damaged' }, sandboxId: w.sandboxId },
    });
    expect(agents.get(w.id)).toBeNull();
    const { taken } = w.tree;
    const next = w.boot();
    await next.sweeper.sweep();
    await next.conversationReconciler.reconcile(w.id);
    expect(w.tree.taken).toBe(taken);
    expect(await w.view()).toMatchObject({ sandboxStatus: 'RUNNING' });
    w.tree.take = async () => {};
    expect(await w.patch('b')).toBe('diff --git a/b b/b\n+x\n');

    expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: null });
    expect(await w.view()).toMatchObject({ sandboxStatus: 'MISSING' });
    expect((await w.list()).files).toMatchObject([{ path: 'b' }]);
  });

  test('keeps its sandbox if the patch is too large, files are left out, or the sandbox was used after the last changes were kept', async () => {
    const large = await createWorking();
    large.tree.patchOf = () => 'x'.repeat(5 * 2 ** 20);
    large.tree.files = [fileAt('a')];
    expect(await large.archive()).toMatchObject({ statusReason: { code: 'changes_not_kept', cause: { code: 'too_large' }, sandboxId: large.sandboxId } });
    expect(await large.patch()).toHaveLength(5 * 2 ** 20);

    const partial = await createWorking();
    partial.tree.files = [fileAt('a')];
    partial.tree.complete = false;
    expect(await partial.archive()).toMatchObject({ releasedAt: null, statusReason: { code: 'changes_not_kept', cause: { code: 'files_left_out' } } });

    for (const complete of [true, false]) {
      const w = await createWorking();
      w.tree.complete = !complete;
      await w.turn(fileAt('a'));
      w.tree.complete = complete;
      const statusReason = complete ? null : { code: 'changes_not_kept', cause: { code: 'files_left_out' } };
      expect(await w.archive()).toMatchObject({ statusReason });
    }

    const used = await createWorking();
    await used.turn(fileAt('a'));
    used.tree.take = refuse;
    used.clock.advance(1);
    await used.store.sandboxes.touch(used.sandboxId, used.clock.now());
    await used.sandboxes.pause('me', used.sandboxId);
    expect(await used.archive()).toMatchObject({ statusReason: { code: 'changes_not_kept', cause: { failure: 'sandbox_not_running' } } });
    expect(await used.view()).toMatchObject({ sandboxStatus: 'PAUSED' });
  });

  test('keeps its sandbox if it ran on after the changes were kept, until it was killed, and shows them as incomplete', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    w.engine.crash(w.sandboxId);
    await w.sweeper.sweep();
    expect(await w.view()).toMatchObject({ sandboxStatus: 'ERROR' });
    expect(await w.list()).toMatchObject({ complete: false, files: [{ path: 'a' }] });
    expect(await w.archive()).toMatchObject({ releasedAt: null, statusReason: { code: 'changes_not_kept', sandboxId: w.sandboxId } });
    await w.sandboxes.delete('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ complete: false, files: [{ path: 'a' }] });
  });

  test('keeps its sandbox if its changes could not be kept at the pause, and shows the earlier ones as incomplete', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    w.tree.take = refuse;
    w.clock.advance(1);
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ complete: false, files: [{ path: 'a' }] });
    expect(await w.archive()).toMatchObject({ releasedAt: null, statusReason: { code: 'changes_not_kept', sandboxId: w.sandboxId } });
  });

  test('keeps its sandbox if it was used while the last changes were read', async () => {
    const w = await createWorking();
    w.tree.take = async () => {
      w.clock.advance(1);
      await w.store.sandboxes.touch(w.sandboxId, w.clock.now());
    };
    await w.turn(fileAt('a'));
    w.tree.take = refuse;
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await w.archive()).toMatchObject({ statusReason: { code: 'changes_not_kept', cause: { failure: 'sandbox_not_running' } } });
  });

  test('can be read until its sandbox is deleted, and then has no changes', async () => {
    const w = await createWorking();
    w.tree.take = refuse;
    await w.archive();
    expect(await failureOf(w.list())).toMatchObject({ context: { reason: { code: 'snapshot_damaged' } } });
    await w.sandboxes.delete('me', w.sandboxId);
    const reason = { code: 'changes_not_kept', cause: { code: 'snapshot_damaged' } };
    expect((await w.view()).conversation.statusReason).toEqual(reason);
    expect(await failureOf(w.list())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason } });
    expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: { code: 'changes_not_kept' } });
  });

  test('keeps its sandbox also when another conversation in it ends', async () => {
    const w = await createWorking();
    w.tree.take = refuse;
    const { conversation: { id } } = await w.conversations.start('me', { ...plain, sandboxId: w.sandboxId });
    await w.archive();
    await w.conversations.delete('me', id);
    expect(await w.view()).toMatchObject({ sandboxStatus: 'RUNNING' });
    await w.conversations.delete('me', w.id);
    expect(await failureOf(w.sandboxes.get('me', w.sandboxId))).toMatchObject({ code: 'sandbox_not_found' });
  });

  test('reports why it has no changes', async () => {
    const lost = await createWorking();
    await lost.sandboxes.delete('me', lost.sandboxId);
    expect(await lost.archive()).toMatchObject({ statusReason: { code: 'changes_not_kept', cause: { failure: 'sandbox_not_found' } } });
    const without = await createReady();
    await without.conversations.update('me', without.id, { archived: true });
    expect(await failureOf(without.conversations.changes('me', without.id, neverAborts))).toMatchObject({ context: { reason: { code: 'no_repository' } } });
  });

  test('says that its changes are being kept, and a repeated request waits for that', async () => {
    const w = await createWorking();
    const { opened, open } = gate();
    w.tree.take = () => opened;
    const first = w.conversations.update('me', w.id, { archived: true });
    await until(() => w.tree.taken > 0);
    expect(await w.record()).toMatchObject({ statusReason: { code: 'keeping_changes' }, releasedAt: null });
    const again = w.conversations.update('me', w.id, { archived: true });
    open();
    expect(await Promise.all([first, again])).toMatchObject([{ sandboxStatus: 'MISSING' }, { sandboxStatus: 'MISSING' }]);
    expect(w.tree.taken).toBe(1);
  });

  test('keeps its sandbox until its changes are kept, even if the process ends meanwhile', async () => {
    const w = await createWorking();
    w.tree.files = [fileAt('a')];
    const begun = Promise.withResolvers<void>();
    w.tree.take = async (signal) => {
      begun.resolve();
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('ended')));
      });
    };
    const archiving = w.conversations.update('me', w.id, { archived: true });
    await begun.promise;
    await w.conversationReconciler.close();
    await archiving;
    expect(await w.record()).toMatchObject({ archivedAt: expect.any(Number), releasedAt: null });
    w.tree.take = async () => {};
    const next = w.boot();
    await next.conversationReconciler.reconcile(w.id);
    expect(await w.record()).toMatchObject({ releasedAt: expect.any(Number) });
    expect(await next.conversations.changes('me', w.id, neverAborts)).toMatchObject({ files: [{ path: 'a' }] });
  });
});
