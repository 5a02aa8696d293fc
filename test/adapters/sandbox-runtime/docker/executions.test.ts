import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { buffer, text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { afterAll, afterEach, onTestFinished, test } from 'vitest';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { Execution, SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { finish } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const sleeping = shell('exec sleep 100000');

describeWithDocker('Commands in Docker containers', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  async function started(spec: Partial<SandboxSpec> = {}): Promise<{ readonly runtime: SandboxRuntime; readonly launch: SandboxLaunch }> {
    const runtime = engine.open();
    const launch = launchOf(sleeping, { ports: [], ...spec });
    const { state, reason } = await runtime.start(launch, () => {}, neverAborts);
    assert.equal(state, 'running', JSON.stringify(reason));
    return { runtime, launch };
  }

  const commandsIn = async (id: string): Promise<string[]> =>
    (await engine.container(id).top({ ps_args: '-eo pid,args' })).Processes.map((row: string[]) => row.at(-1) ?? '');

  /** Ways to leave what one is known by. */
  const escapes = `
    sleep 2001 &
    setsid sleep 2002 &
    (setsid sleep 2003 &)
    env -i "$(command -v sleep)" 2004 &
    trap '' TERM HUP INT
    echo begun
    while :; do sh -c 'exec sleep 0.01'; done`;

  test.each([
    ['busybox', { image: images.tiny }, { uid: '0', gid: '0' }],
    ['busybox, as a named user', { image: images.tiny, isolation: 'agent' }, { uid: '1000', gid: '1000' }],
    ['Debian, as a numeric user', { image: images.debian, isolation: '4321:1234' }, { uid: '4321', gid: '1234' }],
  ] as const)('are killed with all their child processes: %s', async (_, { image, ...rest }, { uid, gid }) => {
    const base = launchOf(sleeping).spec;
    const { runtime, launch } = await started({
      image,
      isolation: { ...base.isolation, user: 'isolation' in rest ? rest.isolation : null },
    });
    const who = await finish(await runtime.execute(launch.id, { command: shell('id -u; id -g; echo $$ > /workspace/file') }, neverAborts));
    assert.deepEqual(who, { out: `${uid}\n${gid}\n`, err: '', code: 0 });

    const bystander = await runtime.execute(launch.id, { command: ['sleep', '3000'] }, neverAborts);
    const execution = await runtime.execute(launch.id, { command: shell(escapes) }, neverAborts);
    const reader = execution.stdout.getReader();
    await reader.read();
    await eventually('all commands run', async () => {
      const running = (await commandsIn(launch.id)).join('\n');
      return [2001, 2002, 2003, 2004].every((number) => running.includes(`sleep ${number}`) || running.includes(` ${number}`));
    });
    await execution.kill();
    assert.equal(await execution.exited, 137);
    assert.deepEqual((await commandsIn(launch.id)).filter((line) => /sleep.* (?:200\d|0\.01)$/.test(line)), []);
    assert.ok((await commandsIn(launch.id)).some((line) => line.includes('sleep 3000')));
    await bystander.kill();
  });

  test('are killed at once although they started a program of another user, which can not be killed', async () => {
    const { runtime, launch } = await started({
      image: images.debian,
      isolation: { ...launchOf(sleeping).spec.isolation, user: '1000' },
      runtimeOptions: { docker: { new_privileges: true } },
    });
    await engine.ask(launch.id, 'cp "$(command -v setpriv)" /usr/bin/become; chmod 4755 /usr/bin/become', 'root');
    // More processes to look at than fit into the time limit if it looked again and again.
    const others = 'for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do sleep 3000 & done; wait';
    await runtime.execute(launch.id, { command: shell(others) }, neverAborts);
    const command = shell("setsid sh -c 'become --reuid=0 sleep 2001; :' & sleep 2002 & wait");
    await runtime.executions.start(launch.id, { executionId: 'exec-1', command, stdin: false, tty: null }, neverAborts);
    const left = async (): Promise<string[]> => (await commandsIn(launch.id)).filter((line) => /^sleep 200\d$/.test(line));
    await eventually('both run', async () => (await left()).length === 2);
    await runtime.executions.signal(launch.id, 'exec-1', 'SIGKILL');
    assert.deepEqual(await left(), ['sleep 2001']);
  });

  test('need /bin/sh in the image, and report if it is missing', async () => {
    const image = `skep-test/no-shell-${engine.deployment}`;
    const source = launchOf(sleeping);
    const runtime = engine.open();
    await runtime.start(source, () => {}, neverAborts);
    // An image with one program, and nothing else.
    const archive = await engine.container(source.id).getArchive({ path: '/bin/busybox' });
    await text(await engine.docker.importImage(archive, { repo: image }));
    try {
      const { launch } = await started({ image, command: ['/busybox', 'sleep', '100000'] });
      const { out, err, code } = await finish(await runtime.execute(launch.id, { command: ['/busybox', 'true'] }, neverAborts));
      assert.deepEqual({ out, code }, { out: '', code: 127 });
      assert.match(err, /no \/bin\/sh/);
      const start = { executionId: 'exec-1', command: ['/busybox', 'true'], stdin: false, tty: null };
      await runtime.executions.start(launch.id, start, neverAborts);
      assert.deepEqual((await runtime.executions.ended(launch.id, 'exec-1', neverAborts)).exitCode, 127);
      // Nothing is kept of it, so another process has nothing to remove.
      await engine.open().executions.remove(launch.id, 'exec-1');
    } finally {
      await engine.clear();
      await engine.docker.getImage(image).remove({ force: true });
    }
  });

  test('fail with exit code 126 if /bin/sh in the sandbox was replaced and writes endless output', async () => {
    const { runtime, launch } = await started({ image: images.debian });
    const replacing = "printf '#!/bin/bash\\nexec yes\\n' > /bin/sh.new && chmod 755 /bin/sh.new && mv /bin/sh.new /bin/sh";
    await finish(await runtime.execute(launch.id, { command: ['/bin/bash', '-c', replacing] }, neverAborts));
    const { err, code } = await finish(await runtime.execute(launch.id, { command: ['true'] }, AbortSignal.timeout(15_000)));
    assert.equal(code, 126);
    assert.match(err, /its \/bin\/sh/);
  });

  test('report their exit while a child holds their outputs, and while nobody reads', async () => {
    const { runtime, launch } = await started();
    const held = await runtime.execute(launch.id, { command: shell('dd if=/dev/zero bs=1k count=600 2>/dev/null; exit 4') }, neverAborts);
    assert.equal(await held.exited, 4);
    assert.equal((await buffer(held.stdout)).length, 600 * 1024);
    const leaving = await runtime.execute(launch.id, { command: shell('sleep 2005 & exit 5') }, neverAborts);
    assert.equal(await leaving.exited, 5);
    assert.ok((await commandsIn(launch.id)).some((line) => line.includes('2005')));
    await leaving.kill();
    assert.equal((await buffer(leaving.stdout)).length, 0);
    assert.ok(!(await commandsIn(launch.id)).some((line) => line.includes('2005')));
    const real = await runtime.execute(launch.id, { command: shell('exit 126') }, neverAborts);
    assert.equal(await real.exited, 126);
  });

  test.each(['kill', 'stop', 'remove'] as const)(
    'end with unread output if someone else ends the container: %s',
    async (ending) => {
      const { runtime, launch } = await started();
      const executions: Execution[] = [];
      for (let n = 0; n < 3; n += 1)
        executions.push(await runtime.execute(launch.id, { command: shell('exec dd if=/dev/zero bs=1M count=100000 2>/dev/null') }, neverAborts));
      const container = engine.container(launch.id);
      if (ending === 'remove') await container.remove({ force: true });
      else if (ending === 'stop') await container.stop({ t: 1 });
      else await container.kill();
      for (const { exited, stdout } of executions) {
        const code = await exited;
        assert.ok(code === null || code > 128, String(code));
        await buffer(stdout);
      }
    },
  );

  test.each(['running', 'frozen', 'used'] as const)('of a killed Skep are ended by the next one if the sandbox is %s', async (state) => {
    const { launch } = await started();
    const script = fileURLToPath(new URL('killed-skep.ts', import.meta.url));
    const killed = spawn(process.execPath, [script, engine.deployment, launch.id, escapes], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(killed.stdout, 'data');
    killed.kill('SIGKILL');
    await once(killed, 'close');
    const left = async (): Promise<string[]> => (await commandsIn(launch.id)).filter((line) => /sleep.* (?:2001|2002|2003)$/.test(line));
    await eventually('all commands run', async () => (await left()).length === 3);
    if (state === 'frozen') await engine.container(launch.id).pause();
    const runtime = engine.open();
    if (state === 'used') {
      const seen = await runtime.execute(launch.id, { command: shell('ps | grep -c "sleep 200[123]"') }, neverAborts);
      assert.equal((await finish(seen)).out, '0\n');
    }
    runtime.subscribe(() => {});
    if (state === 'frozen') await runtime.resume(launch, neverAborts);
    await eventually('no command is left', async () => (await left()).length === 0);
    const own = await runtime.execute(launch.id, { command: ['sleep', '3001'] }, neverAborts);
    await runtime.freeze(launch.id);
    await runtime.resume(launch, neverAborts);
    const { out } = await finish(await runtime.execute(launch.id, { command: ['echo', 'on'] }, neverAborts));
    assert.equal(out, 'on\n');
    assert.ok((await commandsIn(launch.id)).some((line) => line.includes('sleep 3001')));
    await own.kill();
  });

  test('get their whole input once after kill -9 of the process that was writing it', async () => {
    const { runtime, launch } = await started({ image: images.debian });
    const executionId = 'exec-fed';
    const inContainer = (script: string): Promise<string> => engine.ask(launch.id, script);
    // The first bytes leave no room in the pipe for a whole number of blocks.
    const [begin, whole] = ['begin\n', `begin\n${Array.from({ length: 10_000 }, (_, line) => `line ${line}\n`).join('')}`];
    const command = shell('while [ ! -e /workspace/go ]; do sleep 0.05; done; exec cat > /workspace/got');
    const first = await runtime.executions.open(launch.id, { executionId, command }, neverAborts);
    await first.stdin.getWriter().write(Buffer.from(begin));
    await runtime.close();
    const script = fileURLToPath(new URL('killed-feeder.ts', import.meta.url));
    const killed = spawn(process.execPath, [script, engine.deployment, launch.id, executionId, whole], { stdio: 'inherit' });
    onTestFinished(() => void killed.kill('SIGKILL'));
    let passedOn = 0;
    await eventually('the pipe is full', async () => {
      const before = passedOn;
      passedOn = Number(await inContainer(`wc -c < /tmp/.skep-executions/${executionId}/kept/in`));
      return passedOn > begin.length && passedOn === before;
    });
    killed.kill('SIGKILL');
    await once(killed, 'close');
    const next = engine.open();
    // The first execution ends what earlier processes left.
    await finish(await next.execute(launch.id, { command: ['true'] }, neverAborts));
    const reopening = next.executions.reopen(launch.id, executionId, 0, neverAborts);
    await inContainer('touch /workspace/go');
    const { stdin, handedOver } = await reopening;
    await stdin.getWriter().write(Buffer.from(whole.slice(handedOver.bytes)));
    await eventually('the whole input has arrived', async () => Number(await inContainer('wc -c < /workspace/got')) >= whole.length);
    assert.equal(await engine.readFile(launch.id, '/workspace/got'), whole);
  });

  test('continue if the engine fails once to report their state', async () => {
    const docker = new Docker();
    const dial = docker.modem.dial.bind(docker.modem);
    let failures = 0;
    docker.modem.dial = (options, callback) => {
      if (failures > 0 || !/^\/exec\/\w+\/json/.test(options.path ?? '')) return dial(options, callback);
      failures += 1;
      setImmediate(() => callback?.(new Error('socket hang up'), null));
    };
    const { launch } = await started();
    const runtime = engine.open({ docker });
    failures = 1;
    // Nobody reads, so the runtime has to ask the engine.
    const execution = await runtime.execute(launch.id, { command: shell('dd if=/dev/zero bs=1k count=600 2>/dev/null; exit 4') }, neverAborts);
    failures = 0;
    await eventually('the engine has failed', async () => failures === 1);
    assert.equal((await buffer(execution.stdout)).length, 600 * 1024);
    assert.equal(await execution.exited, 4);
  });

  test('are ended when the runtime is closed, even if the sandbox is frozen', async () => {
    const { runtime, launch } = await started();
    const execution = await runtime.execute(launch.id, { command: ['sleep', '2006'] }, neverAborts);
    await runtime.freeze(launch.id);
    const killed = execution.kill();
    await runtime.close();
    await killed;
    assert.equal(await execution.exited, null);
    assert.equal((await engine.open().inspect(launch.id)).state, 'frozen');
  });
});
