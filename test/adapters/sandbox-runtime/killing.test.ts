import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { killing } from '../../../src/adapters/sandbox-runtime/shell-functions.ts';

/** Starts a process that ends at the end of the scope. */
function sleeper(env: Readonly<Record<string, string>>): Disposable & { readonly child: ChildProcess } {
  const child = spawn('/bin/sleep', ['1000'], { env, stdio: 'ignore' });
  return { child, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

test('kills only the processes with the mark, and soon even if all have large environments', async () => {
  using all = new DisposableStack();
  const start = (env: Readonly<Record<string, string>>): ChildProcess => all.use(sleeper(env)).child;
  const large = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`LARGE_${at}`, 'x'.repeat(100_000)]));
  const marked = Array.from({ length: 16 }, () => start({ ...large, MARK: 'kept.one.' }));
  const others = [
    start({ A: 'b', MARK: 'kept.one-' }), start({ MARK: 'kept.one.', SPARED: 'yes' }), start({ ...large, SPARED: 'yes', MARK: 'kept.one.' }),
    ...Array.from({ length: 20 }, () => start(large)),
  ];
  const exited = Promise.all(marked.map(async (child) => await once(child, 'exit')));
  await Promise.all([...marked, ...others].map(async (child) => child.pid ?? (await once(child, 'spawn'))));

  const begun = performance.now();
  const script = spawn('/bin/sh', ['-c', killing.trim(), 'kill', 'none', 'none', 'MARK=kept.one.', 'SPARED=yes'], { stdio: 'inherit' });
  expect((await once(script, 'exit'))[0]).toBe(0);
  expect(performance.now() - begun).toBeLessThan(10_000);
  expect(await exited).toEqual(marked.map(() => [null, 'SIGKILL']));
  expect(others.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual(others.map(() => null));
});
