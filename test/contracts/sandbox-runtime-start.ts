import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import type { Reason } from '../../src/domain/reason.ts';
import type { SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { type SandboxLaunch, unknownUsage } from '../../src/ports/sandbox-runtime.ts';
import { assertRejects, decidedBy } from './contract.ts';
import { filesOf } from './sandbox-files.ts';
import { eventually, freeze, type StageCase, waitUntilStopped } from './sandbox-runtime-harness.ts';

function withSpec(launch: SandboxLaunch, changes: Partial<SandboxSpec>): SandboxLaunch {
  return { ...launch, spec: { ...launch.spec, ...changes } };
}

export const startCases: readonly StageCase[] = [
  [
    'reports its health in one line, and has the declared traits',
    async ({ runtime, traits }) => {
      assert.equal(runtime.capabilities.freeze, traits.freeze, 'the trait freeze is the capability of the runtime');
      assert.deepEqual(runtime.ignores.toSorted(), traits.ignores.toSorted(), 'the trait ignores is that of the runtime');
      const { ok, detail } = await runtime.check();
      assert.equal(ok, true, detail);
      assert.doesNotMatch(detail, /\n/);
      assert.notEqual(runtime.name, '');
    },
  ],
  [
    'reports an unknown sandbox as absent, and never creates it on freeze, stop or resume',
    async ({ runtime, launch, resume, leftovers }) => {
      const stranger = launch('counts');
      const found = [
        await runtime.inspect(stranger.id),
        await freeze(runtime, stranger.id),
        await runtime.stop(stranger.id),
        await resume(stranger),
      ];
      for (const { id, state, exposedUrls } of found) {
        assert.deepEqual({ id, state, exposedUrls }, { id: stranger.id, state: 'absent', exposedUrls: [] }, 'of an unknown sandbox');
      }
      await runtime.remove(stranger.id);
      assert.deepEqual(await runtime.list(), []);
      assert.deepEqual(await leftovers(stranger.id), []);
    },
  ],
  [
    'starts a sandbox, and returns a URL for each port of its spec',
    async ({ runtime, start, launch, runs, countsOn }) => {
      const sandbox = launch('counts');
      const observed = await start(sandbox);
      assert.equal(observed.id, sandbox.id);
      assert.equal(observed.state, 'running');
      assert.deepEqual(
        observed.exposedUrls.map(({ name, port }) => ({ name, port })),
        sandbox.spec.ports,
      );
      for (const { url } of observed.exposedUrls) assert.equal(new URL(url).protocol, 'http:');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
      assert.deepEqual(await runtime.inspect(sandbox.id), observed);
      assert.deepEqual(await runtime.list(), [observed]);
    },
  ],
  [
    'reports the progress of a start',
    async ({ runtime, launch }) => {
      const reasons: Reason[] = [];
      await runtime.start(launch('counts'), (reason) => reasons.push(reason), neverAborts);
      assert.ok(reasons.length > 0, 'the start reports no progress');
    },
  ],
  [
    'ignores options in the spec for another runtime',
    async ({ start, launch }) => {
      const sandbox = withSpec(launch('counts'), { runtimeOptions: { 'another-runtime': { colour: 'red' } } });
      assert.equal((await start(sandbox)).state, 'running');
    },
  ],
  [
    'refuses unknown options under its own name, unless it declares that it ignores them',
    async ({ runtime, start, launch }) => {
      const sandbox = withSpec(launch('counts'), { runtimeOptions: { [runtime.name]: { 'no such option': true } } });
      const provision = await runtime.provide(sandbox.spec, () => {}, neverAborts);
      const observed = await start(sandbox);
      const isIgnored = runtime.ignores.includes('runtimeOptions');
      assert.equal(observed.state === 'running', isIgnored, `ignores is [${runtime.ignores.join()}], and the sandbox is ${observed.state}`);
      if (isIgnored) return;
      assert.equal(provision.kind, 'refused', "provide takes options that are refused when the sandbox starts");
      assert.notEqual(observed.reason, null);
    },
  ],
  [
    'limits the number of open files',
    async ({ runtime, launch, start, commands }) => {
      const { spec } = launch('counts');
      const sandbox = withSpec(launch('counts'), { resources: { ...spec.resources, openFiles: 77 } });
      await start(sandbox);
      const { stdout } = await runtime.execute(sandbox.id, { command: commands['counts open files'] }, neverAborts);
      assert.equal((await text(stdout)).trim(), '77', 'ignores does not contain resources, and the limit has no effect');
    },
    'if it limits resources',
  ],
  [
    'makes the root read-only',
    async ({ runtime, launch, start, commands }) => {
      const { spec } = launch('counts');
      const sandbox = withSpec(launch('counts'), { isolation: { ...spec.isolation, readOnlyRoot: true } });
      await start(sandbox);
      const { exited } = await runtime.execute(sandbox.id, { command: commands['writes to the root'] }, neverAborts);
      assert.notEqual(await exited, 0, 'ignores does not contain isolation, and a command writes to the root');
    },
    'if it isolates',
  ],
  [
    'does nothing if a running sandbox is started again',
    async ({ start, begun, runs, countsOn }) => {
      const sandbox = await begun('counts');
      assert.equal((await start(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
    },
    'can share',
  ],
  [
    'leaves a frozen or stopped sandbox unchanged if it is started again',
    async ({ runtime, frozen, start, begun, runs }) => {
      const sandbox = await begun('counts');
      await freeze(runtime, sandbox.id);
      assert.equal((await start(sandbox)).state, frozen);
      await runtime.stop(sandbox.id);
      assert.equal((await start(sandbox)).state, 'stopped');
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    "passes the spec's environment and the session key to the program at each start",
    async (stage) => {
      const { runtime, begun, resume, readFile } = stage;
      const sandbox = await begun('tells');
      for (const run of ['first run', 'run after a stop']) {
        await eventually(`the program of ${sandbox.id} writes what it got`, async () => (await readFile(sandbox.id, 'told')) !== null);
        assert.equal(await readFile(sandbox.id, 'told'), `hello there\n${sandbox.sessionApiKey}\n`, run);
        await runtime.stop(sandbox.id);
        await filesOf(stage, sandbox).remove('told');
        await resume(sandbox);
      }
    },
  ],
  [
    'passes the current secrets to the program unchanged at each start',
    async ({ start, launch, resume, runtime, readFile }) => {
      const secret = `it's a "secret" of $HOME, \\n and \`more\``;
      const plain = withSpec(launch('tells'), { initialEnv: {}, secrets: ['GREETING'] });
      const sandbox = { ...plain, secrets: { GREETING: secret } };
      // The message of a failure does not show the secrets.
      const told = (text: string) => eventually(`the program of ${sandbox.id} writes the secret`, async () =>
        (await readFile(sandbox.id, 'told')) === `${text}\n${sandbox.sessionApiKey}\n`);
      await start(sandbox);
      await told(secret);
      await runtime.stop(sandbox.id);
      await resume({ ...sandbox, secrets: { GREETING: 'another one' } });
      await told('another one');
    },
  ],
  [
    'reports a sandbox whose command exited as stopped, with the exit code if it is known',
    async (stage) => {
      const { runtime, start, launch, runs } = stage;
      const sandbox = launch('exits');
      await start(sandbox);
      const observed = await waitUntilStopped(runtime, sandbox.id);
      assert.deepEqual(observed.exposedUrls, []);
      assert.equal(observed.endedFromOutside, false, 'endedFromOutside of a command that exited by itself');
      await decidedBy(stage.traits, 'exitCode', (code) => {
        const { reason } = observed;
        if (code === 'known') assert.ok(reason?.code === 'process_exited' && reason.exitCode === 3, JSON.stringify(reason));
      });
      assert.equal((await start(sandbox)).state, 'stopped');
      assert.equal(await runs(sandbox.id), 1);
    },
  ],
  [
    'names the signal that ended a command',
    async (stage) => {
      const { runtime, start, launch } = stage;
      const { id } = await start(launch('ends itself'));
      const { reason } = await waitUntilStopped(runtime, id);
      await decidedBy(stage.traits, 'exitCode', (code) => {
        if (code === 'known') assert.ok(reason?.code === 'process_exited' && reason.signal === 'SIGTERM', JSON.stringify(reason));
      });
    },
  ],
  [
    'reports that something outside ended a sandbox, until it runs again',
    async ({ runtime, begun, resume, endFromOutside }) => {
      const sandbox = await begun('counts');
      await endFromOutside(sandbox.id);
      const { endedFromOutside } = await waitUntilStopped(runtime, sandbox.id);
      assert.equal(endedFromOutside, true, 'endedFromOutside after an end from outside');
      assert.equal((await resume(sandbox)).endedFromOutside, false, 'endedFromOutside of a running sandbox');
    },
    'if it reports an end from outside',
  ],
  [
    'returns the usage and the disk space as far as they are known',
    async ({ runtime, begun, launch }) => {
      const sandbox = await begun('counts');
      for (const amount of Object.values(await runtime.usage(sandbox.id))) assert.ok(amount === null || amount >= 0, String(amount));
      assert.deepEqual(await runtime.usage(launch('counts').id), unknownUsage);
      const { totalBytes, freeBytes } = (await runtime.diskSpace()) ?? { totalBytes: 1, freeBytes: 0 };
      assert.ok(totalBytes > 0 && freeBytes >= 0 && freeBytes <= totalBytes, `${freeBytes} of ${totalBytes}`);
    },
    'can share',
  ],
  [
    'returns a state with a reason if the command does not exist',
    async (stage) => {
      const { runtime, start, launch, leftovers } = stage;
      const sandbox = launch('missing');
      const observed = await start(sandbox);
      await decidedBy(stage.traits, 'missingCommand', (state) => assert.equal(observed.state, state));
      assert.notEqual(observed.reason, null, 'the reason of a missing command');
      if (observed.state !== 'absent') assert.deepEqual(await runtime.inspect(sandbox.id), observed);
      await runtime.remove(sandbox.id);
      assert.deepEqual(await leftovers(sandbox.id), []);
    },
  ],
  [
    'serves an exposed port before and after a freeze and a stop, unless its ports are simulated',
    async (stage) => {
      const { runtime, resume, begun, traits } = stage;
      const sandbox = await begun('serves');
      const { exposedUrls } = await runtime.inspect(sandbox.id);
      if (traits.ports === 'simulated') {
        await decidedBy(stage.traits, 'ports', () => exposedUrls.forEach(({ url }) => assert.match(new URL(url).hostname, /\.invalid$/)));
        return;
      }
      const ask = async (): Promise<string> => {
        const [exposed] = (await runtime.inspect(sandbox.id)).exposedUrls;
        assert.ok(exposed, `${sandbox.id} has no exposed URL`);
        let answer = '';
        await eventually(`the program of ${sandbox.id} answers on ${exposed.url}`, async () => {
          answer = await fetch(exposed.url).then((response) => response.text(), () => '');
          return answer !== '';
        });
        return answer;
      };
      await decidedBy(stage.traits, 'ports', async () => assert.equal(await ask(), '1'));
      await freeze(runtime, sandbox.id);
      await resume(sandbox);
      assert.equal(await ask(), '2');
      await runtime.stop(sandbox.id);
      await resume(sandbox);
      assert.equal(await ask(), '1');
    },
  ],
  [
    'rejects calls whose signal has fired with its reason, and later calls succeed',
    async ({ runtime, start, resume, launch, countsOn, runs }) => {
      const sandbox = launch('counts');
      const reason = new Error('no longer wanted');
      const fired = AbortSignal.abort(reason);
      await assertRejects(runtime.provide(sandbox.spec, () => {}, fired), reason, 'provide');
      await assertRejects(runtime.start(sandbox, () => {}, fired), reason, 'start');
      assert.equal((await start(sandbox)).state, 'running');
      await countsOn(sandbox.id);
      assert.equal(await runs(sandbox.id), 1);
      await runtime.stop(sandbox.id);
      await assertRejects(runtime.resume(sandbox, fired), reason, 'resume');
      assert.equal((await resume(sandbox)).state, 'running');
    },
  ],
];
