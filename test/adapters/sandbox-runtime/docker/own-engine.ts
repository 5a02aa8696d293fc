import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { describe } from 'vitest';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { isAlive, kill, livingProcesses, thaw } from './processes.ts';
import { unlessRequired } from './required.ts';

const run = promisify(execFile);

/** A second engine, which a test may stop and kill. It has a network namespace of its own, so that it leaves that of the first alone. */
export interface OwnEngine {
  readonly docker: Docker;
  /** `unix://...` */
  readonly host: string;
  /** Adds the options to those of the daemon. */
  start(...options: readonly string[]): Promise<void>;
  /** SIGTERM ends its containers in good order; SIGKILL leaves them behind. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Kills its containerd. The engine answers on, and starts another one some seconds later. */
  killContainerd(): Promise<void>;
  /** Removes it and all that it ever started, what it does not know of any more included. */
  close(): Promise<void>;
}

const startMs = 60_000;

const absent = await whyNoOwnEngine();

/**
 * Runs a suite with the real engine, which also starts engines of its own. Skips it with a warning if there can be none, or throws if
 * `SKEP_REQUIRE_DOCKER=1`.
 */
export function describeWithOwnEngine(name: string, suite: () => void): void {
  if (absent !== null) console.warn(`SKIPPED ${name}: ${absent}.`);
  describeWithDocker(name, () => {
    describe.skipIf(absent !== null)('with a private engine', suite);
  });
}

async function whyNoOwnEngine(): Promise<string | null> {
  if (process.getuid?.() !== 0) return unlessRequired('only root can run an engine of its own');
  const isThere = await run('sh', ['-c', 'command -v dockerd && unshare --net ip link']).then(() => true, () => false);
  return unlessRequired(isThere ? null : 'this machine has no dockerd or ip, or no network namespaces');
}

export async function createOwnEngine(): Promise<OwnEngine> {
  // The folder for temporary files may be in memory. Files of a container would count as its memory there.
  const folder = await mkdtemp('/var/tmp/skep-engine-');
  const at = (name: string): string => join(folder, name);
  const docker = new Docker({ socketPath: at('sock') });
  let daemon: ChildProcess | undefined;

  async function start(...more: readonly string[]): Promise<void> {
    // What one that was killed left; its process may not have been buried yet, and would count as alive.
    for (const left of ['pid', 'exec/containerd/containerd.pid']) await rm(at(left), { force: true });
    const options = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid'), '--host', `unix://${at('sock')}`, ...more];
    const started = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up && exec dockerd "$@"', 'sh', ...options], {
      stdio: 'ignore',
    });
    daemon = started;
    await until(
      () => docker.ping().then(() => true, () => started.exitCode ?? false),
      (answer) => answer !== false,
      startMs,
    );
    await docker.ping();
  }

  const containerdPid = async (): Promise<number> =>
    Number(await readFile(at('exec/containerd/containerd.pid'), 'utf8').catch(() => '0'));

  async function killContainerd(): Promise<void> {
    const containerd = await containerdPid();
    await kill([containerd]);
    await until(() => isAlive(containerd), (alive) => !alive, startMs);
  }

  async function stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const stopped = daemon;
    daemon = undefined;
    if (stopped === undefined || stopped.exitCode !== null || stopped.signalCode !== null) return;
    const containerd = await containerdPid();
    stopped.kill(signal);
    await once(stopped, 'exit');
    await until(() => isAlive(containerd), (alive) => !alive, startMs);
  }

  /** Answers with how many there were. */
  async function removeContainers(): Promise<number> {
    const left = await docker.listContainers({ all: true });
    for (const { Id } of left) await docker.getContainer(Id).remove({ force: true }).catch(unlessGone);
    return left.length;
  }

  /** What an engine that was killed in the middle of something left behind, and the next one knows nothing of. */
  async function endProcesses(): Promise<void> {
    const living = await livingProcesses();
    const ours = living.filter(({ commandLine }) => commandLine.includes(`${folder}/`)).map(({ pid }) => pid);
    // A container's first process is the child of its shim, and its others end with it.
    const first = living.filter(({ parent }) => ours.includes(parent)).map(({ pid }) => pid);
    for (const pid of first) await thaw(pid);
    await kill([...first, ...ours]);
  }

  async function close(): Promise<void> {
    try {
      if (daemon === undefined) await start();
      await until(removeContainers, (left) => left === 0);
      await stop('SIGTERM');
    } finally {
      await endProcesses();
      // The engine mounts its folder upon itself.
      const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').flatMap((line) => line.split(' ')[1] ?? []);
      for (const mount of mounts.filter((path) => path.startsWith(`${folder}/`)).toReversed()) await run('umount', ['-l', mount]);
      await rm(folder, { recursive: true, force: true });
    }
  }

  try {
    await start();
    await run('sh', ['-c', `docker save ${images.tiny} | docker -H unix://${at('sock')} load`]);
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
  return { docker, host: `unix://${at('sock')}`, start, stop, killContainerd, close };
}

/** Somebody else may have removed it, or be about to. */
function unlessGone(error: unknown): void {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : null;
  if (status !== 404 && status !== 409) throw error;
}
