import assert from 'node:assert/strict';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { freeze, type StageCase, waitUntilStopped } from './sandbox-runtime-harness.ts';

export const survivalCases: readonly StageCase[] = [
  [
    'lets sandboxes run on after it is closed, and can be closed twice',
    async ({ runtime, open, begun, runs, countsOn }) => {
      const sandbox = await begun('counts');
      await runtime.close();
      await runtime.close();
      await countsOn(sandbox.id);
      assert.equal((await (await open()).inspect(sandbox.id)).state, 'running');
      assert.equal(await runs(sandbox.id), 1);
    },
    'can share',
  ],
  [
    'finds every sandbox of an earlier runtime in the same state',
    async ({ runtime, open, begun, start, launch }) => {
      const running = await begun('counts');
      const frozen = await begun('counts');
      const stopped = await begun('counts');
      const ended = launch('exits');
      await start(ended);
      await freeze(runtime, frozen.id);
      await runtime.stop(stopped.id);
      await waitUntilStopped(runtime, ended.id);
      const found = await runtime.list();
      assert.equal(found.length, 4);
      await runtime.close();

      const reopened = await open();
      assert.deepEqual(await reopened.list(), found);
      for (const observed of found) assert.deepEqual(await reopened.inspect(observed.id), observed);
      assert.equal((await reopened.inspect(running.id)).state, 'running');
    },
  ],
  [
    'manages the sandboxes of an earlier runtime',
    async ({ runtime, frozen, open, begun, runs, countsOn, leftovers }) => {
      const first = await begun('counts');
      const second = await begun('counts');
      const third = await begun('counts');
      await freeze(runtime, second.id);
      await runtime.stop(third.id);
      await runtime.close();

      const reopened = await open();
      for (const [name, sandbox] of Object.entries({ first, second, third })) {
        assert.notEqual((await reopened.start(sandbox, () => {}, neverAborts)).state, 'absent', name);
        assert.equal((await reopened.resume(sandbox, neverAborts)).state, 'running', name);
        await countsOn(sandbox.id);
      }
      const times = await Promise.all([first, second, third].map(({ id }) => runs(id)));
      assert.deepEqual(times, [1, 1, 2], 'how often the programs ran: only the stopped one ran again');
      assert.equal((await freeze(reopened, first.id)).state, frozen);
      assert.equal((await reopened.stop(second.id)).state, 'stopped');
      for (const { id } of [first, second, third]) {
        await reopened.remove(id);
        assert.deepEqual(await leftovers(id), [], id);
      }
      assert.deepEqual(await reopened.list(), []);
    },
  ],
  [
    'detects sandboxes that were killed while no runtime was open',
    async ({ runtime, open, begun, crash }) => {
      const running = await begun('counts');
      const frozen = await begun('counts');
      await freeze(runtime, frozen.id);
      await runtime.close();
      await crash(running.id);
      await crash(frozen.id);
      const reopened = await open();
      for (const { id } of [running, frozen]) {
        await waitUntilStopped(reopened, id);
      }
    },
  ],
  [
    'keeps the owner and the spec id of each sandbox on the engine',
    async ({ runtime, start, launch, resume, open }) => {
      const sandbox = { ...launch('counts'), ownerId: 'ann@example.com' };
      assert.equal(await runtime.keptLaunch(sandbox.id), null);
      await start(sandbox);
      const { ownerId: _ofHarness, ...unowned } = launch('counts');
      await start(unowned);
      await runtime.stop(sandbox.id);
      const reopened = await open();
      for (const [{ id, sessionApiKey, spec }, ownerId] of [[sandbox, 'ann@example.com'], [unowned, null]] as const) {
        const kept = await reopened.keptLaunch(id);
        assert.deepEqual({ specId: kept?.specId, ownerId: kept?.ownerId }, { specId: spec.id, ownerId });
        const key = kept?.fixedEnv[spec.sessionKeyEnv];
        assert.ok(key === undefined || key === sessionApiKey, 'the kept session key is another one');
      }
      await resume({ ...sandbox, ownerId: 'bob' });
      const { ownerId } = (await runtime.keptLaunch(sandbox.id)) ?? {};
      assert.ok(ownerId === 'bob' || ownerId === 'ann@example.com', `the owner after the resumption is ${ownerId}`);
    },
  ],
];
