import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { killing } from '../../../src/adapters/sandbox-runtime/shell-functions.ts';
import { until } from '../../support/until.ts';

/** Starts a process that ends at the end of the scope. */
function sleeper(env: Readonly<Record<string, string>>): Disposable & { readonly child: ChildProcess } {
  const child = spawn('/bin/sleep', ['1000'], { env, stdio: 'ignore' });
  return { child, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

/** Runs the script. Returns its exit code. */
async function killMarked(): Promise<unknown> {
  const script = spawn('/bin/sh', ['-c', killing.trim(), 'kill', 'none', 'none', 'MARK=kept.one.', 'SPARED=yes'], { stdio: 'inherit' });
  return (await once(script, 'exit'))[0];
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
  expect(await killMarked()).toBe(0);
  expect(performance.now() - begun).toBeLessThan(10_000);
  expect(await exited).toEqual(marked.map(() => [null, 'SIGKILL']));
  expect(others.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual(others.map(() => null));
});

/** Starts a process, prints its id, and reaps it half a second after it was killed, or never. */
const parent = `$| = 1;
my $pid = fork // die;
exec qw(env MARK=kept.one. sleep 1000) unless $pid;
print "$pid\\n";
my $reaps = shift;
do { select undef, undef, undef, 0.01; open my $file, '<', "/proc/$pid/stat"; $stat = <$file> } until $stat =~ /\\) Z /;
$reaps ? select(undef, undef, undef, 0.5) : sleep 1000;
waitpid $pid, 0`;

test.each([{ reaps: 'late' }, { reaps: 'never' }])('waits until the killed are reaped, but not for ever: $reaps', async ({ reaps }) => {
  const child = spawn('/usr/bin/perl', ['-e', parent, reaps === 'late' ? '1' : '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  using _ = { [Symbol.dispose]: () => void child.kill('SIGKILL') };
  const pid = String((await once(child.stdout.setEncoding('utf8'), 'data'))[0]).trim();
  await until(() => readFile(`/proc/${pid}/environ`, 'utf8'), (environment) => environment.includes('MARK='));
  expect(await killMarked()).toBe(0);
  expect(existsSync(`/proc/${pid}`)).toBe(reaps === 'never');
});
