import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxExecutions } from '../../../../src/ports/sandbox-executions.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { startProxy } from './proxy.ts';
import { launchOf } from './programs.ts';

async function end(executions: SandboxExecutions, id: string, executionId: string) {
  const { exitCode } = await executions.ended(id, executionId, neverAborts);
  const read = async (stream: 'stdout' | 'stderr'): Promise<string> =>
    text(await executions.output(id, executionId, { stream, after: 0, follow: true }, neverAborts));
  return { out: await read('stdout'), err: await read('stderr'), code: exitCode };
}

/** Returns a script that creates a program. */
function program(path: string, script: string): string {
  return `printf '%s\\n' '#!/bin/bash' '${script}' >${path}; chmod +x ${path};`;
}

describeWithDocker('Shells that wait in Docker containers', () => {
  const engine = createEngine();
  // For freezes by hand. No other runtime may look for leftovers then: a command that begins during a freeze can wedge the container.
  const [freezing, resuming] = [createEngine(), createEngine()];
  afterEach(() => engine.clear());
  afterAll(() => Promise.all([engine, freezing, resuming].map((one) => one.close())));

  let count = 0;

  async function started(image: string, options: Parameters<typeof engine.open>[0] = {}, by = engine) {
    const runtime = by.open(options);
    const launch = launchOf(shell('exec sleep 100000'), { ports: [], image });
    await runtime.start(launch, () => {}, neverAborts);
    return { runtime, launch, id: launch.id };
  }

  async function begin(executions: SandboxExecutions, id: string, script: string, env: Record<string, string> = {}): Promise<string> {
    const executionId = `exec-${(count += 1)}`;
    const { durable } = await executions.start(id, { executionId, command: shell(script), env, stdin: false, tty: null }, neverAborts);
    assert.equal(durable, true);
    return executionId;
  }

  const run = async (executions: SandboxExecutions, id: string, script: string, env: Record<string, string> = {}) =>
    end(executions, id, await begin(executions, id, script, env));

  const processes = async (id: string, by = engine): Promise<readonly { readonly pid: string; readonly args: string }[]> =>
    (await by.container(id).top({ ps_args: '-eo pid,args' })).Processes.map(([pid = '', args = '']: string[]) => ({ pid, args }));
  const shells = async (id: string, by = engine): Promise<readonly string[]> =>
    (await processes(id, by)).flatMap(({ pid, args }) => (args.includes('skep-shell') ? [pid] : []));
  const left = async (id: string): Promise<readonly unknown[]> =>
    (await processes(id)).filter(({ args }) => args.startsWith('sleep 20'));
  /** The engine forgets an execution some time after its end, but not while it runs. */
  const executionsOf = async (id: string): Promise<readonly string[]> => (await engine.container(id).inspect()).ExecIDs ?? [];

  test.each([images.debian, images.tiny])('run one command after the other without another execution of the engine: %s', async (image) => {
    const { runtime: { executions }, id } = await started(image);
    const script = 'cd /tmp; export LEFT=1; umask 0; printf "%s %s" "$GIVEN" "$PWD"; echo bad >&2; exit 3';
    const firstId = await begin(executions, id, script, { GIVEN: "it's\n\\n" });
    const first = await end(executions, id, firstId);
    const [execution, ...others] = await executionsOf(id);
    const second = await run(executions, id, 'echo "${GIVEN-none}" "${LEFT-none}" "${OLDPWD-none}" "$PWD"; umask');
    expect([first, second]).toEqual([
      { out: "it's\n\\n /tmp", err: 'bad\n', code: 3 },
      { out: 'none none none /workspace\n0022\n', err: '', code: 0 },
    ]);
    await executions.remove(id, firstId);
    await assert.rejects(executions.state(id, firstId), (error) => isFailureOf(error, 'execution_not_found'));
    expect([others, await executionsOf(id)]).toEqual([[], [execution]]);
  });

  test('begin the first of many commands before the shells for the others start', async () => {
    const { runtime: { executions }, id } = await started(images.debian);
    const begun = Array.from({ length: 8 }, () => begin(executions, id, 'true'));
    await Promise.race(begun);
    expect((await executionsOf(id)).length).toBeLessThan(8);
    await Promise.all(begun);
  });

  test('run also programs that change files', async () => {
    const { runtime, id } = await started(images.debian);
    await run(runtime.executions, id, 'true');
    const before = await executionsOf(id);
    await runtime.files.write(id, '/workspace/a', ReadableStream.from([Buffer.from('hello')]), {}, neverAborts);
    await runtime.files.move(id, '/workspace/a', '/workspace/b', neverAborts);
    const names: string[] = [];
    for await (const { path } of runtime.files.list(id, '/workspace', 1, neverAborts)) names.push(path);
    expect([names, (await run(runtime.executions, id, 'cat b')).out]).toEqual([['/workspace/b'], 'hello']);
    expect(await executionsOf(id)).toEqual(before);
  });

  test('find a program that moved meanwhile', async () => {
    const { runtime: { files }, id } = await started(images.debian);
    await files.write(id, '/workspace/a', ReadableStream.from([Buffer.from('hello')]), {}, neverAborts);
    await engine.ask(id, 'mv /bin/mv /usr/local/bin/mv', 'root');
    await files.move(id, '/workspace/a', '/workspace/b', neverAborts);
  });

  test('are not used for another command while processes of the last one still write', async () => {
    const { runtime: { executions }, id } = await started(images.debian);
    const noisy = await begin(executions, id, '(while :; do echo noise; echo noise >&2; sleep 0.01; done) & echo first');
    await executions.ended(id, noisy, neverAborts);
    expect(await run(executions, id, 'sleep 0.1; echo second')).toEqual({ out: 'second\n', err: '', code: 0 });
    await executions.remove(id, noisy);
  });

  test('are not used for another command if the supervisor of the last one was killed', async () => {
    const { runtime: { executions }, id } = await started(images.debian);
    await run(executions, id, 'true');
    const noisy = await begin(executions, id, 'kill -9 $PPID; while :; do echo noise; sleep 0.01; done');
    await pause(100);
    expect(await run(executions, id, 'sleep 0.1; echo second')).toEqual({ out: 'second\n', err: '', code: 0 });
    await executions.remove(id, noisy);
  });

  async function replaces(signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
    const { runtime: { executions }, id } = await started(images.debian);
    await run(executions, id, 'true');
    const [waiting = ''] = await shells(id);
    process.kill(Number(waiting), signal);
    expect(await run(executions, id, 'echo again')).toEqual({ out: 'again\n', err: '', code: 0 });
    await eventually('the old one has ended', async () => !(await shells(id)).includes(waiting));
  }

  /** Another server freezes the sandbox for longer than a shell may take to begin a command. */
  async function beginsOnceAfterFreeze(): Promise<void> {
    const { runtime: { executions }, id } = await started(images.debian, {}, freezing);
    await run(executions, id, 'true');
    const [waiting = ''] = await shells(id, freezing);
    process.kill(Number(waiting), 'SIGSTOP');
    const begun = run(executions, id, 'echo begun >>begun; cat begun');
    begun.catch(() => {});
    await pause(300);
    await freezing.container(id).pause();
    await pause(5_000);
    process.kill(Number(waiting), 'SIGCONT');
    await freezing.container(id).unpause();
    expect(await begun).toEqual({ out: 'begun\n', err: '', code: 0 });
  }

  /** The time in which a shell may begin a command ends while the sandbox is resumed. */
  async function beginsDuringResume(): Promise<void> {
    const proxy = await startProxy(undefined, { requests: /\/unpause/, ms: 2_500 });
    const { runtime, launch, id } = await started(images.debian, { host: `tcp://127.0.0.1:${proxy.port}`, env: {} }, resuming);
    await run(runtime.executions, id, 'true');
    const [waiting = ''] = await shells(id, resuming);
    process.kill(Number(waiting), 'SIGSTOP');
    const begun = run(runtime.executions, id, 'sleep 1; exit 3');
    begun.catch(() => {});
    await pause(300);
    await resuming.container(id).pause();
    process.kill(Number(waiting), 'SIGCONT');
    await pause(3_500);
    await runtime.resume(launch, neverAborts);
    expect(await begun).toEqual({ out: '', err: '', code: 3 });
    await runtime.close();
    await proxy.close();
  }

  test('that the sandbox has ended or stopped are replaced, but not in a frozen sandbox', async () => {
    await Promise.all([replaces('SIGKILL'), replaces('SIGSTOP'), beginsOnceAfterFreeze(), beginsDuringResume()]);
  });

  test('are kept when a command is killed, which keeps its exit code', async () => {
    const { runtime: { executions }, id } = await started(images.debian);
    await run(executions, id, 'true');
    const killed = await begin(executions, id, 'echo begun; exec sleep 100');
    await executions.signal(id, killed, 'SIGKILL');
    expect(await end(executions, id, killed)).toEqual({ out: 'begun\n', err: '', code: 137 });
    expect(await run(executions, id, 'echo next')).toEqual({ out: 'next\n', err: '', code: 0 });
    await eventually('one shell waits', async () => (await shells(id)).length === 1);
  });

  test('are not needed to end a command that leaves no room for another process', async () => {
    const { runtime: { executions }, id } = await started(images.debian);
    const fill = async (): Promise<string> => {
      const executionId = await begin(executions, id, '(while sleep 201 & do :; done); exec sleep 202');
      await eventually('it is full', async () => (await processes(id)).some(({ args }) => args === 'sleep 202'));
      return executionId;
    };
    const killed = await fill();
    await executions.signal(id, killed, 'SIGKILL');
    expect((await end(executions, id, killed)).code).toBe(137);
    await executions.remove(id, await fill());
    expect(await left(id)).toEqual([]);
  });

  test.each(['UID', 'GROUPS'])('do not run a command with an environment that bash refuses: %s', async (name) => {
    const { runtime: { executions }, id } = await started(images.debian);
    await engine.ask(id, 'ln -sf bash /bin/sh', 'root');
    await run(executions, id, 'true');
    expect(await run(executions, id, 'echo "$GIVEN"', { GIVEN: 'x', [name]: '77' })).toEqual({ out: 'x\n', err: '', code: 0 });
  });

  test('run no other command once they are to be killed', async () => {
    const { runtime: { executions, files }, id } = await started(images.debian);
    await engine.ask(id, `rm /bin/mv; ${program('/bin/mv', 'touch /tmp/moves; sleep 0.3')}`, 'root');
    const cancelled = new AbortController();
    const written = files.write(id, '/workspace/a', ReadableStream.from([Buffer.from('a')]), {}, cancelled.signal);
    written.catch(() => {});
    await eventually('it moves the file', async () => (await engine.readFile(id, '/tmp/moves')) !== null);
    // In a frozen sandbox, the kill has to wait.
    await engine.container(id).pause();
    cancelled.abort();
    await pause(900);
    await engine.container(id).unpause();
    await pause(400);
    expect(await run(executions, id, 'sleep 0.7; echo next')).toEqual({ out: 'next\n', err: '', code: 0 });
    await expect(written).rejects.toBe(cancelled.signal.reason);
  });

  test('end a command that is not durable when it is killed, and with the runtime', async () => {
    const { runtime: { executions, files, ...runtime }, id } = await started(images.debian);
    await engine.ask(id, 'rm /usr/bin/tee', 'root');
    const start = async (executionId: string): Promise<void> => {
      // Leaves a shell that waits.
      await files.write(id, '/workspace/a', ReadableStream.from([Buffer.from('hello')]), {}, neverAborts);
      const command = shell('(setsid sleep 201 &); sleep 202');
      await executions.start(id, { executionId, command, stdin: false, tty: null }, neverAborts);
      await eventually('it runs', async () => (await left(id)).length === 2);
    };
    await start('killed');
    await executions.signal(id, 'killed', 'SIGKILL');
    expect(await left(id)).toEqual([]);
    await start('closed');
    await runtime.close();
    expect(await left(id)).toEqual([]);
  });

  test('end with the runtime, and the command of a shell does not', async () => {
    const { runtime: { executions, ...runtime }, id } = await started(images.debian);
    await run(executions, id, 'true');
    await runtime.close();
    await eventually('the waiting shell has ended', async () => (await shells(id)).length === 0);

    const second = engine.open();
    await run(second.executions, id, 'true');
    const running = await begin(second.executions, id, 'sleep 1; echo done');
    await second.close();
    const third = engine.open();
    expect(await end(third.executions, id, running)).toEqual({ out: 'done\n', err: '', code: 0 });
    await third.close();
    await eventually('its shell has ended', async () => (await shells(id)).length === 0);
  });
});
