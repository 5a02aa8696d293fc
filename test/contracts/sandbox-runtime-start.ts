import assert from 'node:assert/strict';
import type { Reason } from '../../src/domain/reason.ts';
import { eventually, type StageCase } from './sandbox-runtime-harness.ts';

export const startCases: readonly StageCase[] = [
  [
    'says in one line that it answers',
    async ({ runtime }) => {
      const { ok, detail } = await runtime.check();
      assert.equal(ok, true, detail);
      assert.doesNotMatch(detail, /\n/);
      assert.notEqual(runtime.name, '');
    },
  ],
  [
    'finds nothing of a sandbox that was never started, and makes none of it',
    async ({ runtime, launch, resume, leftovers }) => {
      const stranger = launch('counts');
      const facts = [
        await runtime.inspect(stranger.id),
        await runtime.freeze(stranger.id),
        await runtime.stop(stranger.id),
        await resume(stranger),
      ];
      for (const { id, state, exposedUrls } of facts) {
        assert.deepEqual({ id, state, exposedUrls }, { id: stranger.id, state: 'absent', exposedUrls: [] });
      }
      await runtime.remove(stranger.id);
      assert.deepEqual(await runtime.list(), []);
      assert.deepEqual(await leftovers(stranger.id), []);
    },
  ],
  [
    'starts a sandbox, and shows a URL for each port of its spec',
    async ({ runtime, start, launch, runs, countsOn }) => {
      const sandbox = launch('counts');
      const fact = await start(sandbox);
      assert.equal(fact.id, sandbox.id);
      assert.equal(fact.state, 'running');
      assert.deepEqual(
        fact.exposedUrls.map(({ name, port }) => ({ name, port })),
        sandbox.spec.ports,
      );
      for (const { url } of fact.exposedUrls) assert.equal(new URL(url).protocol, 'http:');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
      assert.deepEqual(await runtime.inspect(sandbox.id), fact);
      assert.deepEqual(await runtime.list(), [fact]);
    },
  ],
  [
    'reports the progress of a start',
    async ({ runtime, launch }) => {
      const reasons: Reason[] = [];
      await runtime.start(launch('counts'), (reason) => reasons.push(reason), new AbortController().signal);
      assert.ok(reasons.length > 0);
    },
  ],
  [
    'does nothing when what runs is started again',
    async ({ start, begun, runs, countsOn }) => {
      const sandbox = await begun('counts');
      assert.equal((await start(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    'leaves a frozen and a stopped sandbox so when it is started again',
    async ({ runtime, start, begun, runs }) => {
      const sandbox = await begun('counts');
      await runtime.freeze(sandbox.id);
      assert.equal((await start(sandbox)).state, 'frozen');
      await runtime.stop(sandbox.id);
      assert.equal((await start(sandbox)).state, 'stopped');
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    "hands the spec's environment and the session key to the program",
    async ({ begun, readFile }) => {
      const sandbox = await begun('tells');
      await eventually('it tells', async () => (await readFile(sandbox.id, 'told')) !== null);
      assert.equal(await readFile(sandbox.id, 'told'), `hello there\n${sandbox.sessionApiKey}\n`);
    },
  ],
  [
    'finds a sandbox stopped whose command ended, and tells how',
    async ({ runtime, start, launch, runs, traits }) => {
      const sandbox = launch('exits');
      await start(sandbox);
      await eventually('it ends', async () => (await runtime.inspect(sandbox.id)).state === 'stopped');
      const fact = await runtime.inspect(sandbox.id);
      assert.deepEqual(fact.exposedUrls, []);
      if (traits.exitCode === 'told') assert.ok(fact.reason?.code === 'process_exited' && fact.reason.exitCode === 3, JSON.stringify(fact.reason));
      assert.equal((await start(sandbox)).state, 'stopped');
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    'answers with a fact, not a failure, where the command does not exist',
    async ({ runtime, start, launch, traits, leftovers }) => {
      const sandbox = launch('missing');
      const fact = await start(sandbox);
      assert.equal(fact.state, traits.missingCommand);
      assert.notEqual(fact.reason, null);
      if (fact.state !== 'absent') assert.deepEqual(await runtime.inspect(sandbox.id), fact);
      await runtime.remove(sandbox.id);
      assert.deepEqual(await leftovers(sandbox.id), []);
    },
  ],
  [
    'lets who listens on a port be reached, before and after a freeze, unless its ports are pretended',
    async ({ runtime, resume, begun, traits }) => {
      const sandbox = await begun('serves');
      if (traits.ports === 'pretended') {
        for (const { url } of (await runtime.inspect(sandbox.id)).exposedUrls) assert.match(new URL(url).hostname, /\.invalid$/);
        return;
      }
      const ask = async (): Promise<string> => {
        const [exposed] = (await runtime.inspect(sandbox.id)).exposedUrls;
        assert.ok(exposed);
        let answer = '';
        await eventually('it serves', async () => {
          answer = await fetch(exposed.url).then((response) => response.text(), () => '');
          return answer !== '';
        });
        return answer;
      };
      assert.equal(await ask(), '1');
      await runtime.freeze(sandbox.id);
      await resume(sandbox);
      assert.equal(await ask(), '2');
      await runtime.stop(sandbox.id);
      await resume(sandbox);
      assert.equal(await ask(), '1');
    },
  ],
  [
    'stops waiting for a start when it is told to, and can go on with it later',
    async ({ runtime, start, launch, countsOn, runs }) => {
      const sandbox = launch('counts');
      const reason = new Error('no longer wanted');
      const controller = new AbortController();
      controller.abort(reason);
      await assert.rejects(runtime.start(sandbox, () => {}, controller.signal), (error) => error === reason);
      assert.equal((await start(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
];
