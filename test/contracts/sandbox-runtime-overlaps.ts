import assert from 'node:assert/strict';
import type { ObservedSandbox, ObservedState } from '../../src/domain/sandbox.ts';
import type { SandboxLaunch } from '../../src/ports/sandbox-runtime.ts';
import { freeze, type SandboxRuntimeStage, type StageCase, waitFor } from './sandbox-runtime-harness.ts';

type Call = 'freeze' | 'stop' | 'resume';

const results: Readonly<Record<Call, ObservedState>> = { freeze: 'frozen', stop: 'stopped', resume: 'running' };
const calls: readonly Call[] = ['freeze', 'stop', 'resume'];

function make({ runtime, resume }: SandboxRuntimeStage, call: Call, launch: SandboxLaunch): Promise<ObservedSandbox> {
  if (call === 'freeze') return freeze(runtime, launch.id);
  return call === 'resume' ? resume(launch) : runtime.stop(launch.id);
}

/** Asserts that the sandbox's real state is the state that the runtime reports. */
async function assertTrue(stage: SandboxRuntimeStage, launch: SandboxLaunch): Promise<void> {
  const { runtime, resume, countsOn } = stage;
  const { state } = await runtime.inspect(launch.id);
  if (state === 'running') await countsOn(launch.id);
  assert.equal((await resume(launch)).state, 'running');
  await countsOn(launch.id);
}

const overlappingPairs: readonly StageCase[] = calls.flatMap((first) =>
  calls.map((second): StageCase => [
    `ends in the state of one of both calls if ${first} and ${second} overlap`,
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const [one, other] = await Promise.all([make(stage, first, sandbox), make(stage, second, sandbox)]);
      const { state } = await stage.runtime.inspect(sandbox.id);
      const asked = new Set([results[first], results[second]]);
      for (const [what, found] of Object.entries({ [first]: one.state, [`${second} too`]: other.state, inspect: state })) {
        assert.ok(asked.has(found), `${what} returns ${found}`);
      }
      await assertTrue(stage, sandbox);
    },
    ...([first, second].includes('freeze') ? ['if it freezes'] as const : []),
  ]),
);

/** Calls for one sandbox that a runtime must make one after another. */
export const callOverlapCases: readonly StageCase[] = [
  [
    'runs the command once if a sandbox is started eight times at once',
    async ({ start, launch, runs, countsOn }) => {
      const sandbox = launch('counts');
      const found = await Promise.all(Array.from({ length: 8 }, () => start(sandbox)));
      assert.deepEqual(found.map(({ state }) => state), found.map(() => 'running'));
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    'runs the command once if a stopped sandbox is resumed eight times at once',
    async ({ runtime, begun, resume, runs, countsOn }) => {
      const sandbox = await begun('counts');
      await runtime.stop(sandbox.id);
      await Promise.all(Array.from({ length: 8 }, () => resume(sandbox)));
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 2);
    },
  ],
  ...overlappingPairs,
];

/** Calls that overlap while processes start or end, also those of another runtime. */
export const processOverlapCases: readonly StageCase[] = [
  [
    'runs the command once if two runtimes start or resume a sandbox at once',
    async ({ runtime, open, launch, runs, countsOn }) => {
      const other = await open();
      const { signal } = new AbortController();
      const sandbox = launch('counts');
      for (let life = 1; life < 5; life += 1) {
        const found = await Promise.all(
          [runtime, other].map((one) => (life === 1 ? one.start(sandbox, () => {}, signal) : one.resume(sandbox, signal))),
        );
        assert.deepEqual(found[1], found[0], `run ${life}, as both runtimes report it`);
        await countsOn(sandbox.id);
        assert.equal(await runs(sandbox.id), life, 'how often the command ran');
        await runtime.stop(sandbox.id);
      }
    },
  ],
  [
    'can freeze a sandbox while it starts',
    async (stage) => {
      const { runtime, launch, start } = stage;
      const sandbox = launch('counts');
      const [started] = await Promise.all([start(sandbox), freeze(runtime, sandbox.id)]);
      assert.ok(['running', 'frozen'].includes(started.state), `the started sandbox is ${started.state}`);
      await assertTrue(stage, sandbox);
    },
    'if it freezes',
  ],
  [
    'leaves a complete sandbox or none if it is removed while it starts',
    async ({ runtime, launch, start, countsOn, leftovers }) => {
      for (let times = 0; times < 5; times += 1) {
        const sandbox = launch('counts');
        await Promise.all([start(sandbox), runtime.remove(sandbox.id)]);
        const { state } = await runtime.inspect(sandbox.id);
        assert.ok(state === 'absent' || state === 'running', `the sandbox is ${state} in round ${times}`);
        if (state === 'running') await countsOn(sandbox.id);
        await runtime.remove(sandbox.id);
        assert.deepEqual(await leftovers(sandbox.id), [], `round ${times}`);
      }
    },
  ],
  [
    'removes a sandbox if removals, a stop and a freeze overlap',
    async ({ runtime, begun, leftovers }) => {
      const sandbox = await begun('stubborn');
      await Promise.all([
        runtime.stop(sandbox.id),
        freeze(runtime, sandbox.id),
        runtime.remove(sandbox.id),
        runtime.remove(sandbox.id),
      ]);
      assert.equal((await runtime.inspect(sandbox.id)).state, 'absent');
      assert.deepEqual(await leftovers(sandbox.id), []);
    },
  ],
  [
    'starts and freezes a sandbox while another one is being stopped',
    async ({ runtime, begun, start, launch, runs }) => {
      const stubborn = await begun('stubborn');
      const stopped = runtime.stop(stubborn.id);
      const quick = launch('counts');
      await start(quick);
      await waitFor(`the program of ${quick.id} runs`, () => runs(quick.id), (times) => times === 1);
      await freeze(runtime, quick.id);
      assert.equal((await stopped).state, 'stopped');
    },
  ],
];
