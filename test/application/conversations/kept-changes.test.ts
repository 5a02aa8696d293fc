import { describe, expect, test } from 'vitest';
import { neverAborts, onAbort } from '../../../src/ports/abort-signals.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';
import { failureOf } from './support.ts';
import { createWorking, fileAt, start } from './work-tree.ts';
import { said, told, until } from './world.ts';

describe('after a turn', () => {
  test('an event has the counts of files and lines, if the turn changed the work tree', async () => {
    const w = await createWorking();
    await w.turn();
    await w.turn(fileAt('a'), fileAt('b', { binary: true, added: null, removed: null }));
    await w.turn(fileAt('a'), fileAt('b', { binary: true, added: null, removed: null }));
    await w.turn();
    const log = await w.log();
    expect(told(log, 'turn_ended', 'work_tree_changed').map(({ kind, ...data }) => ('files' in data ? data : kind))).toEqual([
      'turn_ended',
      'turn_ended', { files: 2, linesAdded: 3, linesRemoved: 1 },
      'turn_ended',
      'turn_ended', { files: 0, linesAdded: 0, linesRemoved: 0 },
    ]);
    expect(log.find(({ kind }) => kind === 'work_tree_changed')).toMatchObject({ actor: 'agent', conversationId: w.id, reason: null });
  });

  test('a failed snapshot does not fail the turn, and a slow one delays the next by 10 seconds at most', async () => {
    const w = await createWorking();
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.turn(fileAt('a'));
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null } });

    w.tree.take = async (signal) => await new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('ended')));
    });
    const { taken } = w.tree;
    await w.conversations.send('me', w.id, said('first'));
    await until(() => w.tree.taken > taken);
    await w.conversations.send('me', w.id, said('second'));
    expect(w.handed).not.toContain('second');
    w.tree.take = async () => {};
    w.clock.advance(10_000);
    await w.conversationReconciler.reconcile(w.id);
    expect(w.handed).toContain('second');
    expect(told(await w.log(), 'work_tree_changed')).toEqual([{ kind: 'work_tree_changed', files: 1, linesAdded: 3, linesRemoved: 1 }]);
  });
});

test('a file whose path is not UTF-8 is listed, but has no patch of its own', async () => {
  const w = await createWorking();
  w.tree.files = [fileAt('bad\ufffd')];
  expect((await w.list()).files).toHaveLength(1);
  expect(await failureOf(w.patch('bad\ufffd'))).toMatchObject({ code: 'file_not_found' });
});

describe('while the sandbox does not run', () => {
  test('list and patch are the kept ones, and the sandbox is not resumed', async () => {
    const w = await createWorking();
    const files = [
      fileAt('a'), fileAt('link', { mode: '120000' }), fileAt('c', { status: 'renamed', oldPath: 'b' }), fileAt('new', { status: 'added', oldMode: null }),
    ];
    // A file that became a link has two parts in a patch.
    w.tree.patchOf = ({ path }) => `diff --git a/${path} b/${path}\n+diff --git of ${path}\n`.repeat(path === 'link' ? 2 : 1);
    await w.turn(...files);
    const whole = files.map((file) => w.tree.patchOf(file));
    expect(await w.list()).toEqual({ startPoint: start, keptAt: null, head: 'c0ffee', complete: true, commits: [], files, publications: [] });
    for (const kind of ['freeze', 'stop'] as const) {
      await w.sandboxes.pause('me', w.sandboxId, kind);
      expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files });
      expect(await w.patch()).toBe(whole.join(''));
      for (const [index, { path }] of files.entries()) expect(await w.patch(path)).toBe(whole[index]);
      expect(await failureOf(w.patch('b'))).toMatchObject({ code: 'file_not_found' });
    }
    expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED' });
    await w.sandboxes.delete('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files });
  });

  test('the list is from just before the pause, even without a turn', async () => {
    const w = await createWorking();
    w.tree.files = [fileAt('by hand')];
    await w.sandboxes.pause('me', w.sandboxId);
    expect((await w.list()).files).toMatchObject([{ path: 'by hand' }]);
    await w.sandboxes.resume('me', w.sandboxId);
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files: [{ path: 'by hand' }] });
  });

  test('a shutdown before they are kept leaves the pause to the next server, which keeps them', async () => {
    const w = await createWorking();
    w.tree.files = [fileAt('by hand')];
    w.tree.take = async (signal) => await new Promise((_, reject) => onAbort(signal, () => reject(new Error('ended'))));
    const paused = w.sandboxes.pause('me', w.sandboxId);
    await until(() => w.tree.taken === 1);
    await w.close();
    expect(await paused).toMatchObject({ status: 'PAUSING' });
    expect(w.engine.inspect(w.sandboxId).state).toBe('running');
    w.tree.take = async () => {};
    const next = w.boot();
    await next.sweeper.sweep();
    await until(() => next.sandboxes.get('me', w.sandboxId), ({ status }) => status === 'PAUSED');
    expect((await next.conversations.changes('me', w.id, neverAborts)).files).toMatchObject([{ path: 'by hand' }]);
  });

  test('a patch that was too large to keep fails, but the list is returned', async () => {
    const w = await createWorking();
    w.tree.patchOf = () => 'x'.repeat(3 * 2 ** 20);
    await w.turn(fileAt('a'), fileAt('b'));
    await w.sandboxes.pause('me', w.sandboxId);
    expect((await w.list()).files).toHaveLength(2);
    expect(await failureOf(w.patch())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason: { code: 'too_large' } } });
  });

  test('the list fails with `sandbox_not_running` if nothing was kept', async () => {
    const w = await createWorking();
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.turn(fileAt('a'));
    expect(await failureOf(w.list())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason: { code: 'git_missing' } } });
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await failureOf(w.list())).toMatchObject({ code: 'sandbox_not_running' });
  });
});
