import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { scripts } from '../../../src/adapters/sandbox-runtime/execution-scripts.ts';

/** Returns the folder of an execution whose command reads nothing. The input of the command is held open by the returned process. */
async function createExecution(): Promise<{ readonly folder: string; readonly holder: ChildProcess }> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'kept'));
  execFileSync('mkfifo', [join(folder, 'in')]);
  const holder = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void holder.kill('SIGKILL'));
  await once(holder, 'spawn');
  await writeFile(join(folder, 'kept/begun'), '1 1 run-1\n');
  // An id that no process has.
  await writeFile(join(folder, 'pids'), `1 1 ${holder.pid} ${2 ** 30}\n`);
  return { folder, holder };
}

/** Runs the script that writes input. Returns its exit code. */
async function input(folder: string, close: '' | 'all' | 'starter', path = process.env['PATH']): Promise<unknown> {
  const [program = '', ...args] = scripts.input(close === 'starter' ? 'none' : 'any', close)(folder, 'run-1');
  const script = spawn(program, args, { stdio: 'ignore', env: { PATH: path } });
  return (await once(script, 'exit'))[0];
}

test('a program that is missing or killed while it passes on input does not mean that the input is closed', async () => {
  const { folder } = await createExecution();
  const programs = join(folder, 'programs');
  await mkdir(programs);
  expect(await input(folder, '', programs)).toBe(127);
  await writeFile(join(programs, 'dd'), '#!/bin/sh\nkill -KILL $$\n', { mode: 0o755 });
  expect(await input(folder, '', programs)).toBe(137);
  await writeFile(join(programs, 'dd'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  expect(await input(folder, '', programs)).toBe(5);
});

test.each(['all', 'starter'] as const)('the input is closed although that can not be noted for later writes (%s)', async (close) => {
  const { folder, holder } = await createExecution();
  await symlink(join(folder, 'missing/closed'), join(folder, 'closed'));
  const ended = once(holder, 'exit');
  expect(await input(folder, close)).toBe(0);
  expect(await ended).toEqual([null, 'SIGTERM']);
});
